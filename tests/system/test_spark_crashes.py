"""Spark while others are killed with -9: its workers in mid-read and mid-write, and the driver under a sink and a query."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aeron_spark import Archive, ArchiveServer, Folder, MediaDriver
from tests.kit.processes import Process
from tests.kit.wait import wait_until
from tests.spark import recorded
from tests.system.crashes import CHANNEL, SETTINGS, STREAM, end_of_frames
from tests.system.spark_crashes import KILLS, PARTITIONS, ROWS

ROOT = Path(__file__).resolve().parents[2]
# More than fits between Spark and the sink, so that the sink is never done. The input must have an end: Spark's worker reads
# all of it after a failure, and the JVM may hear of that only then.
BATCHES_AFTER_THE_KILL = 20


def application(what: str, directory: Path) -> dict[str, object]:
    """What the application of spark_crashes.py printed."""
    process = Process(
        f"spark {what}",
        [sys.executable, "-m", "tests.system.spark_crashes", what, directory],
        env={"PYSPARK_PYTHON": sys.executable},
        cwd=ROOT,
    )
    assert process.wait_end(timeout=240) == 0, process.report()
    result: dict[str, object] = json.loads(process.stdout().splitlines()[-1])
    killed = result.pop("killed")
    assert isinstance(killed, list)
    assert len(killed) == KILLS
    assert "Python worker exited unexpectedly" in process.stderr(), process.report()
    return result


@pytest.mark.more
def test_reading_is_complete_and_exact_when_workers_are_killed(aeron_dir: Path, tmp_path: Path) -> None:
    archive_dir, count = tmp_path / "archive", 60_000
    settings = {"aeron.archive.segment.file.length": "16m", "aeron.ipc.term.buffer.length": "16m"}
    with recorded.archive(aeron_dir, archive_dir, settings) as archive:
        publication = archive.record(STREAM, "aeron:ipc")
        recorded.publish(publication, STREAM, count, [2000])
        archive.stop(publication, STREAM, "aeron:ipc")
    result = application("read", archive_dir)
    with Folder(archive_dir) as folder:
        table = pa.Table.from_batches(list(folder.read(0, columns=["value", "reserved_value"])))
    assert result == {
        "count": count,
        "positions": count,
        "crc": sum(zlib.crc32(value.as_buffer()) for value in table["value"]),
        "reserved": pc.sum(table["reserved_value"]).as_py(),
    }


@pytest.mark.more
def test_writing_is_at_least_once_when_workers_are_killed(aeron_dir: Path, tmp_path: Path) -> None:
    archive_dir = tmp_path / "archive"
    with recorded.archive(aeron_dir, archive_dir, {key: str(value) for key, value in SETTINGS.items()}) as archive:
        archive.control.start_recording(CHANNEL, STREAM)
        assert application("write", aeron_dir) == {}
    seen: list[set[int]] = []
    with Folder(archive_dir) as folder:
        for recording in folder.recordings():
            numbers: list[int] = []
            for batch in folder.read(recording.recording_id, columns=["value", "reserved_value"]):
                numbers += batch.column("reserved_value").to_pylist()
                assert [int(value.rstrip(b".")) for value in batch.column("value").to_pylist()] == numbers[
                    -len(batch) :
                ]
            # A worker's next task goes on in the same recording.
            begins = [0, *(at for at in range(1, len(numbers)) if numbers[at] != numbers[at - 1] + 1), len(numbers)]
            # A worker that was killed before its first row leaves a recording without any.
            attempts = [numbers[begin:end] for begin, end in itertools.pairwise(begins) if begin < end]
            assert all(attempt[0] % (ROWS // PARTITIONS) == 0 for attempt in attempts), (
                "each attempt publishes in order"
            )
            seen += map(set, attempts)
    assert set().union(*seen) == set(range(ROWS)), "every row is there"
    assert len(seen) >= PARTITIONS + KILLS
    assert sum(len(numbers) for numbers in seen) > ROWS, "what a killed attempt had published stays published"


def test_a_killed_driver_fails_the_sink_and_a_query_goes_on_after_the_restart(
    spark: SparkSession, aeron_dir: Path, archive_dir: Path, tmp_path: Path
) -> None:
    """The sink publishes, the archive records that, a query follows the recording; then the driver dies."""
    killed = tmp_path / "killed"
    batches: list[tuple[int, int, int]] = []

    def collect(frame: DataFrame, _: int) -> None:
        row = frame.agg(F.count("*"), F.min("position"), F.max("next_position")).first()
        if row is not None and row[0]:
            batches.append((row[0], row[1], row[2]))

    driver = MediaDriver(aeron_dir, settings=SETTINGS, embedded=False)
    server = ArchiveServer(archive_dir, aeron_dir, settings=SETTINGS, embedded=False)
    with Archive(aeron_dir=aeron_dir) as archive:
        archive.start_recording(CHANNEL, STREAM)
    stream = spark.readStream.format("aeron").options(startingPositions="earliest", maxBytesPerTrigger="64m")
    writer = stream.load(str(archive_dir)).writeStream.foreachBatch(collect)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    def kill() -> None:
        try:
            wait_until(lambda: batches or query.exception(), 90, "a first batch of the query")
        finally:
            os.kill(driver.pid, signal.SIGKILL)
            killed.touch()

    def numbered(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin, after = 0, 0
        while after < BATCHES_AFTER_THE_KILL:
            after += killed.exists()
            numbers = pa.array(range(begin, begin + 10_000)).cast(pa.string())
            yield pa.RecordBatch.from_arrays([pc.utf8_rpad(numbers, width=200, padding=".")], names=["value"])
            begin += 10_000

    killer = threading.Thread(target=kill)
    killer.start()
    rows = spark.range(0, 1, 1, 1).mapInArrow(numbered, "value string")
    options = {"channel": str(CHANNEL), "streamId": str(STREAM), "aeronDir": str(aeron_dir)}
    with pytest.raises(
        PySparkException, match=rf"row \d+ of partition 0 was not published .*{aeron_dir} is closed: the media"
    ):
        rows.write.format("aeron").options(**options).mode("append").save()
    killer.join()
    wait_until(lambda: server.failure is not None, 20, "the archive to notice")
    server.close()
    driver.close()
    end = end_of_frames(archive_dir, 0)
    with (
        MediaDriver(aeron_dir, settings=SETTINGS, embedded=False),
        ArchiveServer(archive_dir, aeron_dir, settings=SETTINGS, embedded=False),
    ):
        wait_until(
            lambda: batches[-1][2] == end or query.exception(),
            200,
            "the query to read up to the end",
            state=lambda: batches[-1],
        )
        query.stop()
    assert query.exception() is None
    with Folder(archive_dir) as folder:
        rows_recorded = sum(batch.num_rows for batch in folder.read(0, columns=["position"]))
    assert sum(count for count, _, _ in batches) == rows_recorded
    assert all(first >= end for (_, _, end), (_, first, _) in itertools.pairwise(batches))
