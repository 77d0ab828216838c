"""The Spark session of the tests, benchmarks and crash loops: small, quiet, local."""

from __future__ import annotations

from pyspark.sql import SparkSession

from aeron_spark.testing.session import DEFAULTS


def build_session(name: str, *, master: str = "local[2]", **settings: str) -> SparkSession:
    """`settings` are Spark settings with `__` for the dots."""
    builder = SparkSession.builder
    for key, value in {**DEFAULTS, "spark.app.name": name, "spark.master": master}.items():
        builder = builder.config(key, value)
    for key, value in settings.items():
        builder = builder.config(key.replace("__", "."), value)
    return builder.getOrCreate()
