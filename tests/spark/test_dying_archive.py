"""An archive that dies while a task reads a replay: the task fails within a stated time, a retry succeeds when it is back."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest

from aeron_spark import Archive, SourceLocation
from aeron_spark.errors import AeronError, ClosedError
from aeron_spark.spark import access
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.planning.planner import planner_of
from aeron_spark.spark.reading.batch import AeronBatchReader
from aeron_spark.spark.reading.rows import read_schema
from tests.kit import dirs, native
from tests.kit.wait import wait_until
from tests.spark.readers import read
from tests.spark.test_far_sink import FarArchive

#: docs/cluster.md promises it.
FAILS_WITHIN_S = 30
STREAM = 1001
MESSAGES = 4000


def record(far: FarArchive) -> None:
    """Messages of 1,000 bytes, many times what is in flight between two machines."""
    with Archive(aeron_dir=far.aeron_dir) as archive:
        archive.start_recording("aeron:ipc?term-length=64k", STREAM, source=SourceLocation.LOCAL)
        with archive.client.add_exclusive_publication("aeron:ipc?term-length=64k", STREAM) as publication:
            recording_id = archive.wait_recording("", STREAM, publication.session_id)
            bodies = pa.array([b"%04d" % number + bytes(996) for number in range(MESSAGES)], pa.binary())
            publication.offer_batch(bodies, timeout=20)
            archive.wait_position(recording_id, publication.position, timeout=20)


def test_a_query_that_waited_for_long_goes_on(
    aeron_dir: Path, archive_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its session has ended meanwhile, here with the archive: the next trigger takes another one."""
    monkeypatch.setattr(access, "_archives", {})  # tests before it may have left theirs
    far = FarArchive(aeron_dir, archive_dir)
    with dirs.fresh("query") as here:
        driver = native.driver(here)
        record(far)
        given = {"access": "replay", "controlChannel": far.control, "aeronDir": str(here)}
        planner = planner_of(ReadOptions.parse(given, streaming=True))
        seen = planner.newest()
        far.kill()
        far.start_again()
        (old,) = access._archives.values()
        planner.pace.due_at = 0.0
        assert planner.newest() == seen
        with pytest.raises(ClosedError):
            old.recordings()
        (new,) = access._archives.values()
        assert new is not old
        planner.source.close()
        access._archives.popitem()[1].close()
        far.stop()
        driver.stop()


def test_a_task_fails_in_time_and_its_retry_gives_the_same_rows(
    aeron_dir: Path, archive_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AERON_ARCHIVE_MESSAGE_TIMEOUT", "6s")
    far = FarArchive(aeron_dir, archive_dir)
    with dirs.fresh("task") as here:
        driver = native.driver(here)
        record(far)
        given = {"access": "replay", "controlChannel": far.control, "aeronDir": str(here), "maxBytesPerPartition": "2m"}
        options = ReadOptions.parse({**given, "rowsPerBatch": "10"}, streaming=False)
        reader = AeronBatchReader(options, read_schema(options))
        partitions = reader.partitions()
        assert len(partitions) > 1
        whole = read(reader, partitions)
        assert [row["value"][:4] for row in whole] == [b"%04d" % number for number in range(MESSAGES)]
        reading = reader.read(partitions[0])
        next(reading)
        far.kill()
        died = time.monotonic()
        with pytest.raises(AeronError, match=r"ended at position \d+ of \[0, .*try again|gave nothing for"):
            for _ in reading:
                pass
        assert time.monotonic() - died < FAILS_WITHIN_S
        with pytest.raises(AeronError, match=r"archive"):
            read(reader, partitions)
        far.start_again()

        def retry() -> bool:
            try:
                return read(reader, partitions) == whole
            except AeronError:
                return False

        wait_until(retry, 30, "a retry to succeed")
        while access._archives:
            access._archives.popitem()[1].close()
        far.stop()
        driver.stop()
