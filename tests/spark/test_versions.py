"""Which pyspark a test run means. `make test` runs a part of these tests with the lowest one that must work."""

from __future__ import annotations

import os

import pyspark
from pyspark.sql import SparkSession


def test_driver_jvm_and_workers_run_the_same_pyspark(spark: SparkSession) -> None:
    def of_a_worker(_: int) -> str:
        import pyspark

        return pyspark.__version__

    seen = {pyspark.__version__, spark.version, spark.sparkContext.parallelize([0], 1).map(of_a_worker).first()}
    assert seen == {os.environ.get("AERON_SPARK_PYSPARK", pyspark.__version__)}
