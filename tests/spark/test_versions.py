"""Which pyspark a test run means, and how its JVM starts. `make test` runs a part of these tests with the lowest one, too."""

from __future__ import annotations

import os

import pyspark
from pyspark.sql import SparkSession

from tests.kit import spark_jvm


def test_driver_jvm_and_workers_run_the_same_pyspark(spark: SparkSession) -> None:
    def of_a_worker(_: int) -> str:
        import pyspark

        return pyspark.__version__

    seen = {pyspark.__version__, spark.version, spark.sparkContext.parallelize([0], 1).map(of_a_worker).first()}
    assert seen == {os.environ.get("AERON_SPARK_PYSPARK", pyspark.__version__)}


def test_the_jvm_starts_as_the_kit_says(spark: SparkSession) -> None:
    """Each start costs many seconds more without; a name that Spark does not read would be noticed by nobody."""
    runtime = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()  # type: ignore[union-attr]
    assert set(spark_jvm.environment()["SPARK_SUBMIT_OPTS"].split()) <= set(runtime.getInputArguments())
