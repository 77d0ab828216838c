"""The readers as Spark calls them, without a session: what partitions hold, archives that die or change, cost when idle."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

from aeron_spark.archive.segments import Folder
from aeron_spark.errors import DataLossError, PeerError, UsageError
from aeron_spark.spark.planning import uncommitted
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.reading import batch as reader_module
from aeron_spark.spark.reading.batch import AeronBatchReader, RangesPartition
from aeron_spark.spark.reading.schema import default_schema
from aeron_spark.spark.reading.stream import AeronStreamReader
from tests.kit import dirs
from tests.kit.payload import payload
from tests.spark import recorded

SIZES = [8, 100, 1377, 5000]
Row = tuple[int, int, bytes]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Recording 0: 3,000 messages; 1 to 29: 5 each; 30: none."""
    archive_dir = tmp_path_factory.mktemp("reader") / "archive"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, archive_dir) as archive:
        archive.recorded(1000, 3000, SIZES)
        for stream_id in range(1001, 1030):
            archive.recorded(stream_id, 5, SIZES)
        archive.recorded(1030, 0, SIZES)
    return archive_dir


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """A folder to be changed."""
    shutil.copytree(folder, tmp_path / "copy")
    return tmp_path / "copy"


def batch(folder: Path, **options: str) -> AeronBatchReader:
    return AeronBatchReader(ReadOptions.parse({"path": str(folder), **options}, streaming=False), default_schema())


Stream = Callable[..., AeronStreamReader]


@pytest.fixture
def stream() -> Iterator[Stream]:
    """Makes stream readers."""
    with ExitStack() as opened:

        def make(folder: Path, **options: str) -> AeronStreamReader:
            given = {"path": str(folder), "startingPositions": "earliest", **options}
            reader = AeronStreamReader(ReadOptions.parse(given, streaming=True), default_schema())
            opened.callback(reader.stop)
            return reader

        yield make


def rows(
    reader: DataSourceReader | DataSourceStreamReader, partitions: Sequence[InputPartition], ids: Sequence[int] = (0,)
) -> list[Row]:
    """Rows of some recordings, as the tasks give them: reader and partition are pickled in between."""
    found: list[Row] = []
    for partition in partitions:
        task, its_part = pickle.loads(pickle.dumps((reader, partition)))  # noqa: S301 - our own
        for arrow in task.read(its_part):
            found.extend((row["recording_id"], row["position"], row["value"]) for row in arrow.to_pylist())
    return [row for row in found if row[0] in ids]


# Offset from a record's begin in the catalog, and layout (Spec: 06 §3).
Field = tuple[int, str]
STATE, START_POSITION, STOP_POSITION, START_TIMESTAMP = (4, "<i"), (72, "<q"), (80, "<q"), (56, "<q")


def edit_catalog(folder: Path, recording_id: int, field: Field, value: int) -> None:
    """Changes a field of a record."""
    path = folder / "archive.catalog"
    catalog = bytearray(path.read_bytes())
    at = 32
    while struct.unpack_from("<q", catalog, at + 32 + 16)[0] != recording_id:
        at += 32 + struct.unpack_from("<i", catalog, at)[0]
    struct.pack_into(field[1], catalog, at + field[0], value)
    path.write_bytes(catalog)


def test_small_recordings_share_a_partition(folder: Path) -> None:
    small = ",".join(map(str, range(1, 31)))
    reader = batch(folder, recordingIds=small)
    (partition,) = reader.partitions()
    assert len(cast("RangesPartition", partition).ranges) == 29
    found = rows(reader, [partition], range(31))
    expected = [
        payload(1000 + recording_id, index, SIZES[index % 4]) for recording_id in range(1, 30) for index in range(5)
    ]
    assert [value for _, _, value in found] == expected
    assert len(batch(folder, recordingIds=small, maxBytesPerPartition="1").partitions()) >= 29
    assert len(batch(folder, recordingIds=small, minPartitions="7").partitions()) >= 7


@pytest.mark.parametrize(
    ("end", "partition_bytes", "partitions"), [(30_016, "1", 18), (100_000, "10k", 8), (1 << 20, "150k", 7)]
)
def test_splits_lose_and_repeat_nothing(folder: Path, end: int, partition_bytes: str, partitions: int) -> None:
    chosen = {"recordingIds": "0", "endingPositions": f'{{"0": {end}}}'}
    whole, split = (
        batch(folder, minPartitions="1", **chosen),
        batch(folder, maxBytesPerPartition=partition_bytes, **chosen),
    )
    assert len(split.partitions()) >= partitions
    assert rows(split, split.partitions()) == rows(whole, whole.partitions())


def test_nothing_to_read_is_a_partition_without_rows(folder: Path) -> None:
    """Spark makes up a partition of its own where there is none."""
    for options in ({"recordingIds": "30"}, {"recordingIds": "0", "endingPositions": '{"0": 0}'}):
        reader = batch(folder, **options)
        assert rows(reader, reader.partitions()) == []
        assert len(reader.partitions()) == 1


def test_another_number_of_cores_changes_the_cuts_but_not_the_rows(
    stream: Stream, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch may be replayed by a driver on another machine."""
    reader = stream(folder)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxBytes(3 << 20))
    plans = []
    for slots in (1, 2, 7, 64):
        monkeypatch.setattr(reader_module, "task_slots", lambda slots=slots: slots)
        monkeypatch.setattr("aeron_spark.spark.planning.ranges.MIN_SPLIT_BYTES", 1)
        plans.append(stream(folder).partitions(start, end))
    assert len({len(plan) for plan in plans}) >= 3
    first, *others = [sorted(rows(reader, plan, range(31))) for plan in plans]
    assert first
    assert all(other == first for other in others)
    assert reader.partitions(start, end) == reader.partitions(start, end)


def test_limits_of_the_trigger_win_or_hold(stream: Stream, folder: Path) -> None:
    reader = stream(folder, recordingIds="0", maxMessagesPerTrigger="10")
    start = reader.initialOffset()
    assert reader.initialOffset() == start
    ten = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert len(rows(reader, reader.partitions(start, ten))) == 10
    both = stream(folder, recordingIds="0", maxMessagesPerTrigger="10", maxBytesPerTrigger="300")
    assert len(rows(both, both.partitions(start, both.latestOffset(start, ReadMaxRows(10))))) == 2
    everything = reader.latestOffset(start, ReadAllAvailable())
    assert len(rows(reader, reader.partitions(start, everything))) == 3000
    assert rows(reader, reader.partitions(everything, everything)) == []


def test_idle_polling_does_not_look_at_the_archive_each_time(
    stream: Stream, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = stream(folder)
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    looks = 0
    refresh = Folder.refresh

    def counted(self: Folder) -> None:
        nonlocal looks
        looks += 1
        refresh(self)

    monkeypatch.setattr(Folder, "refresh", counted)
    began = time.monotonic()
    for _ in range(20_000):
        assert reader.latestOffset(end, ReadAllAvailable()) == end
        reader.reportLatestOffset()
    assert looks <= 1 + (time.monotonic() - began) / uncommitted.REFRESH_INTERVAL_SECONDS


def test_commits_that_come_late_or_never(stream: Stream, folder: Path) -> None:
    """A batch is committed when the next one is planned, the last one never: plans do not rest on it."""
    reader, silent = stream(folder), stream(folder)
    everything = range(31)
    start = reader.initialOffset()
    assert reader.initialOffset() == start, "Spark asks twice"
    middle = reader.latestOffset(start, ReadMaxRows(100))
    first = rows(reader, reader.partitions(start, middle), everything)
    end = reader.latestOffset(middle, ReadAllAvailable())
    reader.commit(middle)
    for one in (reader, silent):
        again = rows(one, one.partitions(start, middle), everything)
        assert again == first, "a batch that was committed can be asked for again"
    assert len(first) + len(rows(silent, silent.partitions(middle, end), everything)) == 3000 + 29 * 5
    reader.commit(end)
    assert reader.latestOffset(end, ReadAllAvailable()) == end


def test_a_starting_position_of_an_unknown_recording_is_told(stream: Stream, folder: Path) -> None:
    with pytest.raises(UsageError, match="recording 99, which is not among"):
        stream(folder, startingPositions='{"99": 0}').initialOffset()


@pytest.mark.parametrize(
    ("recording_id", "change", "names"),
    [
        (0, (STOP_POSITION, 1024), r"recording 0 of .*now ends at 1024: it was truncated"),
        (
            0,
            (START_POSITION, 131072),
            r"recording 0 of .*0-0.rec.*starts at 131072 and ends at \d+: \d+ bytes were purged",
        ),
        (3, (STATE, 2), "recording 3 of the checkpoint, read up to \\d+, is not in archive .*new checkpoint"),
        (3, (START_TIMESTAMP, 1), "recording 3 .* is not the one the checkpoint was made"),
    ],
)
def test_recordings_that_change_while_they_are_followed(
    stream: Stream, copy: Path, recording_id: int, change: tuple[Field, int], names: str
) -> None:
    reader = stream(copy)
    start = reader.initialOffset()
    middle = reader.latestOffset(start, ReadMaxBytes(100_000))
    edit_catalog(copy, recording_id, *change)
    with pytest.raises((DataLossError, UsageError), match=names):
        reader.partitions(start, middle)
    with pytest.raises((DataLossError, UsageError), match=names):
        stream(copy).latestOffset(middle, ReadAllAvailable())


def test_an_offset_inside_a_message_is_data_loss(stream: Stream, folder: Path) -> None:
    """As after truncating and extending with other messages."""
    reader = stream(folder, recordingIds="0")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxBytes(100_000))
    large = next(position for _, position, value in rows(reader, reader.partitions(start, end)) if len(value) == 5000)
    inside = {**start, "positions": {"0": large + 32}}
    with pytest.raises(DataLossError, match=f"no message begins at position {large + 32} any more"):
        reader.partitions(inside, end)


def test_a_plan_whose_recording_was_cut_fails_in_the_task(copy: Path) -> None:
    reader = batch(copy, recordingIds="0")
    partitions = reader.partitions()
    edit_catalog(copy, 0, STOP_POSITION, 1024)
    with pytest.raises(DataLossError, match=r"recording 0: .* from .*0-0.rec on, but now \[0, 1024\) is there"):
        rows(reader, partitions)


def test_live_archive_that_is_killed(stream: Stream, tmp_path: Path) -> None:
    """Its rows stay readable, in a plan made before as in one made after; a copy from its life is read or refused."""
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir) as archive:
            publication = archive.record(1001)
            recorded.publish(publication, 1001, 500, SIZES)
            archive.wait_recorded(1001, publication.position)
            expected = [payload(1001, index, SIZES[index % 4]) for index in range(500)]
            reader = stream(archive_dir)
            reader.prepareForTriggerAvailableNow()
            start = reader.initialOffset()
            recorded.publish(publication, 1001, 100, SIZES, first=500)
            archive.wait_recorded(1001, publication.position)
            pinned = reader.latestOffset(start, ReadAllAvailable())
            reader.planner.pace.due_at = 0.0
            assert reader.latestOffset(pinned, ReadAllAvailable()) == pinned, "what came later is not of this run"
            planned = reader.partitions(start, pinned)
            with pytest.raises(PeerError, match=f"recording 0 of {archive_dir} is being recorded.*{tmp_path}/none"):
                batch(archive_dir, aeronDir=str(tmp_path / "none")).partitions()
            with Folder(archive_dir) as opened:
                os.kill(opened.info().pid, signal.SIGKILL)
            for limit_reader, plan in ((reader, planned), (batch(archive_dir), batch(archive_dir).partitions())):
                values = [value for _, _, value in rows(limit_reader, plan)]
                assert values[:500] == expected
                assert len(values) == (500 if limit_reader is reader else 600)


def test_largest_message_whatever_the_batch_size(tmp_path: Path) -> None:
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir) as archive:
            channel = "aeron:ipc?term-length=128m"
            publication = archive.record(1001, channel)
            recorded.publish(publication, 1001, 3, [100, 16 << 20, 100])
            archive.stop(publication, 1001, channel)
        reader = batch(archive_dir, bytesPerBatch="1k", rowsPerBatch="2", maxBytesPerPartition="1m")
        partitions = reader.partitions()
        values = [value for _, _, value in rows(reader, partitions)]
        assert values == [payload(1001, 0, 100), payload(1001, 1, 16 << 20), payload(1001, 2, 100)]
