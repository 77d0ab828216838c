"""The Spark session of the tests, benchmarks and crash loops: small, quiet, local."""

from __future__ import annotations

from pyspark.sql import SparkSession


def build_session(name: str, *, master: str = "local[2]", **settings: str) -> SparkSession:
    """`settings` are Spark settings with `__` for the dots."""
    builder = (
        SparkSession.builder.appName(name)
        .master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
    )
    for key, value in settings.items():
        builder = builder.config(key.replace("__", "."), value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
