"""A frame, a view and the static side of a stream that are used again, after the recording has grown or was purged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from aeron_spark.publication import ExclusivePublication
from tests.kit import dirs
from tests.kit.wait import wait_until
from tests.spark import recorded

pytestmark = pytest.mark.usefixtures("with_jar")

STREAM = 1001


class Growing:
    """A recording that goes on."""

    def __init__(self, archive: recorded.Archive, publication: ExclusivePublication) -> None:
        self.archive, self._publication, self._count = archive, publication, 0

    def grow(self, count: int) -> None:
        """Records messages of 1,000 bytes."""
        recorded.publish(self._publication, STREAM, count, [1000], first=self._count)
        self._count += count
        self.archive.wait_recorded(STREAM, self._publication.position)


@contextmanager
def growing(folder: Path) -> Iterator[Growing]:
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, folder) as archive:
        with archive.record(STREAM) as publication:
            yield Growing(archive, publication)


@pytest.mark.parametrize("of_jar", ["jvm", "python"])
def test_a_frame_and_a_view_read_what_is_there_now(spark: SparkSession, tmp_path: Path, of_jar: str) -> None:
    with growing(tmp_path / "archive") as recording:
        recording.grow(100)
        frame = spark.read.format("aeron").options(engine=of_jar, columns="position").load(str(tmp_path / "archive"))
        spark.sql(
            f"CREATE OR REPLACE TEMPORARY VIEW again USING aeron OPTIONS (path '{tmp_path / 'archive'}', engine '{of_jar}')"
        )
        found = []
        for count in (0, 100, 100):
            recording.grow(count)
            found.append(
                (frame.count(), spark.table("again").count(), frame.union(frame).where("position >= 0").count())
            )
        recording.archive.control.purge_segments(recording.archive.recording_id(STREAM), 128 * 1024)
        fresh = spark.read.format("aeron").options(engine=of_jar).load(str(tmp_path / "archive")).count()
        assert found == [(100, 100, 200), (200, 200, 400), (300, 300, 600)]
        assert (frame.count(), spark.table("again").count()) == (fresh, fresh)


@pytest.mark.parametrize("of_jar", ["jvm", "python"])
def test_the_static_side_of_a_stream_reads_what_is_there_now(spark: SparkSession, tmp_path: Path, of_jar: str) -> None:
    joined: list[int] = []
    static_rows: list[int] = []
    with growing(tmp_path / "archive") as recording:
        recording.grow(10)
        options = {"engine": of_jar, "columns": "position"}
        static = spark.read.format("aeron").options(**options).load(str(tmp_path / "archive"))
        streaming = spark.readStream.format("aeron").options(**options, startingPositions="earliest")
        stream = streaming.load(str(tmp_path / "archive"))

        def each(batch: DataFrame, _: int) -> None:
            static_rows.append(static.count())
            joined.append(batch.count())

        def await_rows(count: int) -> None:
            """`processAllAvailable` ends with a trigger that found nothing, which may have looked before the recording grew."""
            wait_until(lambda: sum(joined) >= count, 60, f"{count} rows", state=lambda: (joined, query.exception()))

        query = (
            stream.join(static, "position")
            .writeStream.foreachBatch(each)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )
        try:
            await_rows(10)
            recording.grow(20)
            await_rows(30)
        finally:
            query.stop()
    assert (sum(joined), static_rows[0], static_rows[-1]) == (30, 10, 30)


@pytest.mark.parametrize("of_jar", ["jvm", "python"])
def test_a_plan_that_is_kept_says_how_to_read_again(spark: SparkSession, tmp_path: Path, of_jar: str) -> None:
    with growing(tmp_path / "archive") as recording:
        recording.grow(300)
        frame = spark.read.format("aeron").options(engine=of_jar).load(str(tmp_path / "archive"))
        assert len(frame.collect()) == 300
        recording.archive.control.purge_segments(recording.archive.recording_id(STREAM), 128 * 1024)
        with pytest.raises(PySparkException, match="a plan that Spark has kept reads the same again: load anew"):
            frame.collect()  # the second action of one kind runs the first one's plan
