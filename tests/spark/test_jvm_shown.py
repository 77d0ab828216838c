"""What operators see of the engine in Spark's JVM: sizes in its pages, and lines of the log where something changes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.kit import dirs
from tests.spark import recorded
from tests.spark.test_jvm import BEYOND, load

pytestmark = pytest.mark.usefixtures("with_jar")


@contextmanager
def logged(spark: SparkSession) -> Iterator[Any]:
    """A writer of Java that gets the engine's lines meanwhile."""
    java: Any = spark._jvm
    log4j = java.org.apache.logging.log4j
    lines = java.java.io.StringWriter()
    appender = log4j.core.appender.WriterAppender.createAppender(None, None, lines, "test", False, True)  # noqa: FBT003 - Java's
    appender.start()
    logger = log4j.LogManager.getLogger("aeron")
    level = logger.getLevel()
    log4j.core.config.Configurator.setLevel("aeron", log4j.Level.INFO)
    logger.addAppender(appender)
    try:
        yield lines
    finally:
        logger.removeAppender(appender)
        log4j.core.config.Configurator.setLevel("aeron", level)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    archive_dir = tmp_path_factory.mktemp("shown") / "archive"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, archive_dir) as archive:
        archive.recorded(1001, 10, [8])
    return archive_dir


def test_the_log_says_which_engine_reads_when_it_is_another_one(spark: SparkSession, folder: Path) -> None:
    load(spark, folder, "auto", **BEYOND).count()
    with logged(spark) as lines:
        for options in ({}, {}, BEYOND, BEYOND, {}):
            assert load(spark, folder, "auto", **options).count() == 10
    kinds = [line.split(":")[0] for line in str(lines.toString()).splitlines() if "engine=" in line]
    assert kinds == ["engine=jvm", "engine=python", "engine=jvm"]


def test_the_log_says_what_seems_damaged_and_what_python_reads_of_it(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    for at, text, said in (
        (4, b"\x09", "check it with aeron-spark archive verify"),
        (0, b"\x05\0\0\0", "Python reads the rest of"),
    ):
        with (copy / "0-0.rec").open("r+b") as file:
            file.seek(at)
            file.write(text)
        with logged(spark) as lines:
            load(spark, copy, "jvm", onCorruption="skip").count()
        assert f"{copy}: " in str(lines.toString())
        assert said in str(lines.toString())


def test_spark_knows_how_many_bytes_a_read_takes(spark: SparkSession, folder: Path) -> None:
    """So it joins a small recording by a broadcast."""
    frame = load(spark, folder, "jvm")
    length = frame.agg({"next_position": "max"}).first()
    assert length is not None
    plan: Any = frame._jdf.queryExecution().optimizedPlan()
    assert str(plan.stats().sizeInBytes()) == str(length[0])


def test_a_stream_shows_what_its_tasks_have_read(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    stream = spark.readStream.format("aeron").option("startingPositions", "earliest").load(str(folder))
    writer = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    assert writer.trigger(availableNow=True).start().awaitTermination(120)
    metrics = spark._jsparkSession.sharedState().statusStore().executionsList().last().metrics()
    assert "messages read" in {metrics.apply(at).name() for at in range(metrics.size())}


def test_sizes_have_the_unit_that_leaves_the_fewest_digits(spark: SparkSession) -> None:
    java: Any = spark._jvm
    metrics = java.java.lang.Thread.currentThread().getContextClassLoader().loadClass("aeronspark.Metrics")
    size = {method.getName(): method for method in metrics.getDeclaredMethods()}["size"]
    size.setAccessible(True)

    def shown(count: int) -> str:
        arguments = spark.sparkContext._gateway.new_array(java.java.lang.Object, 1)  # type: ignore[union-attr]
        arguments[0] = count
        return str(size.invoke(None, arguments))

    found = [shown(count) for count in (0, 1023, 1024, 1536, 1 << 20, 5 << 60)]
    assert found == ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "1.0 MiB", "5.0 EiB"]
