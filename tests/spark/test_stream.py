"""Micro-batches: restarts, limits, AvailableNow, live recordings, and offsets that do not fit the archive."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from aeron_spark.spark.listener import Lag, lag, total
from tests.kit import dirs
from tests.kit.payload import payload
from tests.kit.wait import wait_until
from tests.spark import recorded

pytestmark = pytest.mark.usefixtures("engine")

SIZES = [8, 100, 1377]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Recording 0: 3,000 messages; recording 1: 300."""
    archive_dir = tmp_path_factory.mktemp("stream") / "archive"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, archive_dir) as archive:
        archive.recorded(1001, 3000, SIZES)
        archive.recorded(1002, 300, SIZES)
    return archive_dir


class Batches:
    """A foreachBatch that keeps every batch's rows, per run of a batch id."""

    def __init__(self) -> None:
        self.runs: list[tuple[int, list[tuple[int, int, bytes]]]] = []

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        rows = frame.orderBy("recording_id", "position").collect()
        self.runs.append((batch_id, [(row.recording_id, row.position, bytes(row.value)) for row in rows]))

    def rows(self) -> list[tuple[int, int, bytes]]:
        return [row for _, rows in self.runs for row in rows]


def start(
    spark: SparkSession, folder: Path, checkpoint: Path, batches: Batches, *, available_now: bool = True, **options: str
) -> StreamingQuery:
    options = {"startingPositions": "earliest", **options}
    stream = spark.readStream.format("aeron").options(**options).load(str(folder))
    writer = stream.writeStream.foreachBatch(batches).option("checkpointLocation", str(checkpoint))
    return (
        writer.trigger(availableNow=True).start()
        if available_now
        else writer.trigger(processingTime="0 seconds").start()
    )


def run(spark: SparkSession, folder: Path, checkpoint: Path, **options: str) -> Batches:
    batches = Batches()
    start(spark, folder, checkpoint, batches, **options).awaitTermination(120)
    return batches


def expected(stream_id: int, count: int) -> list[bytes]:
    return [payload(stream_id, index, SIZES[index % len(SIZES)]) for index in range(count)]


def values(batches: Batches, recording_id: int) -> list[bytes]:
    return [value for rec, _, value in batches.rows() if rec == recording_id]


@pytest.mark.parametrize(
    ("options", "at_least_batches"),
    [
        ({}, 1),
        ({"maxBytesPerTrigger": "400k"}, 3),
        ({"maxMessagesPerTrigger": "1500"}, 3),
    ],
)
def test_available_now_reads_all_once(
    spark: SparkSession, folder: Path, tmp_path: Path, options: dict[str, str], at_least_batches: int
) -> None:
    batches = run(spark, folder, tmp_path / "checkpoint", **options)
    assert values(batches, 0) == expected(1001, 3000)
    assert values(batches, 1) == expected(1002, 300)
    assert len(batches.runs) >= at_least_batches
    if "maxMessagesPerTrigger" in options:
        assert max(len(rows) for _, rows in batches.runs) <= int(options["maxMessagesPerTrigger"])


def test_available_now_ends_where_recordings_did_when_it_began(spark: SparkSession, tmp_path: Path) -> None:
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, tmp_path / "archive") as archive:
        with archive.record(1001) as publication:
            recorded.publish(publication, 1001, 20, SIZES)
            archive.wait_recorded(1001, publication.position)

            class Publishing(Batches):
                def __call__(self, frame: DataFrame, batch_id: int) -> None:
                    if batch_id < 5:
                        recorded.publish(publication, 1001, 10, SIZES, first=20 + 10 * batch_id)
                        archive.wait_recorded(1001, publication.position)
                    super().__call__(frame, batch_id)

            batches = Publishing()
            query = start(spark, tmp_path / "archive", tmp_path / "checkpoint", batches, maxMessagesPerTrigger="10")
            assert query.awaitTermination(120)
    assert values(batches, 0) == expected(1001, 20)


def test_limit_below_one_message_progresses(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    batches = Batches()
    query = start(
        spark, folder, tmp_path / "checkpoint", batches, available_now=False, recordingIds="1", maxBytesPerTrigger="1"
    )
    wait_until(lambda: len(batches.runs) >= 3 or query.exception(), 60, "three batches")
    query.stop()
    assert [len(rows) for _, rows in batches.runs[:3]] == [1, 1, 1]
    assert values(batches, 1)[:3] == expected(1002, 3)


def test_restart_continues_and_replays_the_same(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    first = run(spark, folder, checkpoint, maxMessagesPerTrigger="700")
    commits = sorted((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    commits[-1].unlink()  # as after a crash between the offset log and the commit log
    (commits[-1].parent / f".{commits[-1].name}.crc").unlink(missing_ok=True)
    again = Batches()
    query = start(spark, folder, checkpoint, again, maxMessagesPerTrigger="700")
    query.awaitTermination(120)
    replayed_id, replayed = again.runs[0]
    progress = query.recentProgress[0]
    assert progress["batchId"] == replayed_id
    assert total(lag(progress)) == Lag(bytes=None), "Spark asks for no latest offset: unknown is not zero"
    assert total(lag(progress, folder)).bytes == 0, "the folder knows"
    assert replayed_id == int(commits[-1].name)
    assert replayed == dict(first.runs)[replayed_id]
    assert len(again.runs) == 1


def test_crash_inside_batch_0_keeps_where_latest_was(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir) as archive:
            publication = archive.record(1001)
            recorded.publish(publication, 1001, 100, SIZES)
            archive.wait_recorded(1001, publication.position)
            batches = Batches()
            query = start(spark, archive_dir, checkpoint, batches, available_now=False, startingPositions="latest")
            wait_until(lambda: query.lastProgress is not None or query.exception(), 60, "the query to be running")
            recorded.publish(publication, 1001, 50, SIZES, first=100)
            wait_until(lambda: values(batches, 0) == expected(1001, 150)[100:] or query.exception(), 60, "50 messages")
            query.stop()
            first = dict(batches.runs)
            for commit in (checkpoint / "commits").glob("*"):
                commit.unlink()
            for offset in (checkpoint / "offsets").glob("*"):
                if offset.name.strip(".").removesuffix(".crc") != "0":
                    offset.unlink()
            recorded.publish(publication, 1001, 10, SIZES, first=150)
            archive.wait_recorded(1001, publication.position)
            again = run(spark, archive_dir, checkpoint, startingPositions="latest")
            assert again.runs[0] == (0, first[0])
            assert values(again, 0) == expected(1001, 160)[100:]
            publication.close()


def test_live_recording_is_followed_and_not_overtaken(spark: SparkSession, tmp_path: Path) -> None:
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir) as archive:
            publication = archive.record(1001)
            batches = Batches()
            query = start(spark, archive_dir, tmp_path / "checkpoint", batches, available_now=False)
            for first in range(0, 2000, 200):
                recorded.publish(publication, 1001, 200, SIZES, first=first)
            wait_until(
                lambda: len(values(batches, 0)) >= 2000 or query.exception(),
                60,
                "2,000 messages",
                state=lambda: len(values(batches, 0)),
            )
            late = archive.record(1002)  # a recording that appears later joins from its start
            recorded.publish(late, 1002, 30, SIZES)
            wait_until(
                lambda: len(values(batches, 1)) >= 30 or query.exception(), 60, "30 messages of the late recording"
            )
            progress = query.lastProgress
            query.stop()
            assert values(batches, 0) == expected(1001, 2000)
            assert values(batches, 1) == expected(1002, 30)
            reported = progress["sources"][0]["latestOffset"]
            assert json.loads(reported)["positions"]["0"] == publication.position
            publication.close()
            late.close()


def edit_offset(checkpoint: Path, change: object) -> None:
    """Rewrites the last journaled offset."""
    path = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda entry: int(entry.name))
    lines = path.read_text().splitlines()
    offset = json.loads(lines[-1])
    assert callable(change)
    change(offset)
    path.write_text("\n".join([*lines[:-1], json.dumps(offset)]))
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)


def test_offset_that_is_not_ours_is_an_error(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """The text reaches the query's exception; what else may be wrong with an offset is in test_reader."""
    checkpoint = tmp_path / "checkpoint"
    run(spark, folder, checkpoint, recordingIds="1")
    edit_offset(checkpoint, lambda offset: offset.update(version=99))
    with pytest.raises(StreamingQueryException, match="version 99"):
        start(spark, folder, checkpoint, Batches(), recordingIds="1").awaitTermination(60)


def test_recording_that_is_gone_is_data_loss(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    next(copy.glob("0-131072.rec")).unlink()
    with pytest.raises(StreamingQueryException, match=r"0-131072\.rec"):
        start(spark, copy, tmp_path / "checkpoint", Batches(), recordingIds="0").awaitTermination(60)


def test_unknown_option_is_told_before_the_query_runs(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="did you mean maxBytesPerTrigger"):
        start(spark, folder, tmp_path / "checkpoint", Batches(), maxBytePerTrigger="1m").awaitTermination(60)
