"""The Spark session of the tests, benchmarks and crash loops: small, quiet, local."""

from __future__ import annotations

from pyspark.sql import SparkSession

from aeron_spark.errors import UsageError
from aeron_spark.spark import jvm
from aeron_spark.testing.session import DEFAULTS


def _of_jar() -> dict[str, str]:
    try:
        return {"spark__jars": str(jvm.jar())}
    except UsageError:  # built without a JDK
        return {}


#: Settings of a session with the engine in the JVM, where it was built.
JAR = _of_jar()
#: Values of the option `engine`. `auto` is the JVM with the jar, for what it can do.
ENGINES = ("auto", "python") if JAR else ("python",)


def build_session(name: str, *, master: str = "local[2]", **settings: str) -> SparkSession:
    """`settings` are Spark settings with `__` for the dots."""
    builder = SparkSession.builder
    for key, value in {**DEFAULTS, "spark.app.name": name, "spark.master": master}.items():
        builder = builder.config(key, value)
    for key, value in settings.items():
        builder = builder.config(key.replace("__", "."), value)
    return builder.getOrCreate()
