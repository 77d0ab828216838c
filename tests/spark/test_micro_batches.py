"""Micro-batches without Spark: whatever the limit, every message comes once, and no batch is larger than was allowed.

A reader is a new one from batch to batch, as after a restart: an offset has to say all that the next batch needs.

Spec: 09 §3.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows

from aeron_spark.errors import DataLossError, UsageError
from aeron_spark.spark.reading.stream import AeronStreamReader
from tests.kit import dirs
from tests.spark import recorded
from tests.spark.readers import batch, read, stream

SIZES = [8, 100, 1377, 5000]
Row = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Recordings of 400, 40 and 4 messages, and one of none."""
    archive_dir = tmp_path_factory.mktemp("limits") / "archive"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, archive_dir) as archive:
        for stream_id, count in ((1001, 400), (1002, 40), (1003, 4), (1004, 0)):
            archive.recorded(stream_id, count, SIZES)
    return archive_dir


@pytest.fixture(scope="module")
def whole(folder: Path) -> list[Row]:
    return read(batch(folder))


def key(row: Row) -> tuple[int, int]:
    return row["recording_id"], row["position"]


@contextmanager
def opened(folder: Path, **options: str) -> Iterator[AeronStreamReader]:
    """A reader that has been asked for nothing yet."""
    reader = stream(folder, **options)
    try:
        yield reader
    finally:
        reader.stop()


def step(
    folder: Path, offset: dict[str, object], limit: ReadLimit, **options: str
) -> tuple[dict[str, object], list[Row]]:
    """The next batch, planned by a reader that knows the offset alone; the offsets go through Spark's text."""
    with opened(folder, **options) as reader:
        end = json.loads(json.dumps(reader.latestOffset(offset, limit)))
        return end, read(reader, reader.partitions(offset, end))


def initial(folder: Path, **options: str) -> dict[str, object]:
    with opened(folder, **options) as reader:
        begin: dict[str, object] = json.loads(json.dumps(reader.initialOffset()))
        return begin


@pytest.mark.parametrize("limit", [1, 64, 4_000, 5_504, 20_000, 64 << 10, 200_000, 10 << 20])
def test_a_limit_of_bytes_drops_and_repeats_nothing(folder: Path, whole: list[Row], limit: int) -> None:
    # By one byte every message is a batch: of the small recordings that is enough.
    options = {"recordingIds": "1,2,3"} if limit <= 64 else {}
    expected = [row for row in whole if not options or row["recording_id"]]
    offset, seen = initial(folder, **options), []
    for _ in range(len(expected) + 1):
        end, rows = step(folder, offset, ReadMaxBytes(limit), **options)
        if end == offset:
            break
        begins, ends = offset["positions"], end["positions"]
        assert isinstance(begins, dict)
        assert isinstance(ends, dict)
        assert sum(ends[one] - begins[one] for one in ends) <= limit or len(rows) == 1, "at least one message"
        assert rows, "a batch that gets on has rows"
        offset, seen = end, seen + rows
    assert sorted(seen, key=key) == sorted(expected, key=key)


@pytest.mark.parametrize("limit", [7, 50, 1000])
def test_a_limit_of_messages_is_exact(folder: Path, whole: list[Row], limit: int) -> None:
    offset, seen, counts = initial(folder), [], []
    while (found := step(folder, offset, ReadMaxRows(limit)))[0] != offset:
        offset, rows = found
        seen, counts = seen + rows, [*counts, len(rows)]
    assert sorted(seen, key=key) == sorted(whole, key=key)
    assert max(counts) <= limit


@pytest.mark.parametrize("limit", [ReadMaxRows(1), ReadMaxBytes(200)])
def test_what_ends_inside_a_message_holds_nothing_back(tmp_path: Path, limit: ReadLimit) -> None:
    """As after a publisher or its archive died: two such recordings, and a limit of fewer messages."""
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, tmp_path / "archive") as archive:
        for stream_id in (1001, 1002):
            recording_id = archive.recorded(stream_id, 2, [5000])
            whole = read(batch(tmp_path / "archive", recordingIds=str(recording_id)))
            archive.control.truncate_recording(recording_id, whole[1]["position"] + 3 * 1408)
        archive.recorded(1003, 20, [100])
    with opened(tmp_path / "archive") as reader:
        reader.prepareForTriggerAvailableNow()
        offset, seen = reader.initialOffset(), []
        while (end := reader.latestOffset(offset, limit)) != offset:
            seen += read(reader, reader.partitions(offset, end))
            offset = end
    assert sorted(seen, key=key) == sorted(read(batch(tmp_path / "archive")), key=key)
    assert len(seen) == 22


def test_both_limits_hold_whichever_spark_has(folder: Path) -> None:
    """Spark has room for one limit; the other is applied as well."""
    options = {"recordingIds": "0", "maxMessagesPerTrigger": "3", "maxBytesPerTrigger": "100k"}
    for limit in (ReadMaxBytes(100 << 10), ReadMaxRows(3)):
        assert len(step(folder, initial(folder, **options), limit, **options)[1]) == 3
    options["maxBytesPerTrigger"] = "300"
    for limit in (ReadMaxBytes(300), ReadMaxRows(3)):
        assert len(step(folder, initial(folder, **options), limit, **options)[1]) == 2


def test_everything_available_is_all_of_it(folder: Path, whole: list[Row]) -> None:
    options = {"maxMessagesPerTrigger": "3", "maxBytesPerTrigger": "300"}
    end, rows = step(folder, initial(folder), ReadAllAvailable(), **options)
    assert sorted(rows, key=key) == sorted(whole, key=key)
    assert step(folder, end, ReadAllAvailable(), **options) == (end, [])


def test_a_batch_is_the_same_when_it_is_planned_again(folder: Path, rng: random.Random) -> None:
    """By another reader, with other cuts; and a batch 0 whose initial offset is a later one goes by the journaled end."""
    begin = initial(folder)
    middle, first = step(folder, begin, ReadMaxBytes(rng.randrange(10_000, 500_000)))
    end, second = step(folder, middle, ReadMaxBytes(rng.randrange(10_000, 500_000)))
    latest = initial(folder, startingPositions="latest")
    for start, stop, rows in ((begin, middle, first), (middle, end, second), (latest, middle, first)):
        with opened(folder, maxBytesPerPartition=str(rng.randrange(5_000, 100_000))) as reader:
            assert sorted(read(reader, reader.partitions(start, stop)), key=key) == sorted(rows, key=key)


def changed(offset: dict[str, object], section: str, change: int) -> dict[str, object]:
    """An offset with another number for recording 0."""
    numbers = offset[section]
    assert isinstance(numbers, dict)
    return {**offset, section: {**numbers, "0": numbers["0"] + change}}


def test_a_checkpoint_of_another_archive_is_refused(folder: Path) -> None:
    """By each call that gets an offset, and of either offset of a batch."""
    begin = initial(folder)
    end, _ = step(folder, begin, ReadMaxBytes(50_000))
    told = "recording 0 in archive .* is not the one the checkpoint was made from"
    for call in (
        lambda reader: reader.latestOffset(changed(begin, "archive", 1), ReadAllAvailable()),
        lambda reader: reader.partitions(changed(begin, "archive", 1), changed(end, "archive", 1)),
        lambda reader: reader.partitions(begin, changed(end, "archive", 1)),
    ):
        with opened(folder) as reader, pytest.raises(UsageError, match=told):
            call(reader)


@pytest.mark.parametrize("inside", [32, 64, 1376])
def test_an_offset_between_two_boundaries_is_data_loss(folder: Path, whole: list[Row], inside: int) -> None:
    """As after the recording was truncated and then extended by messages of other lengths."""
    begin = initial(folder)
    end, rows = step(folder, begin, ReadMaxBytes(100_000))
    large = next(row["position"] for row in rows if len(row["value"]) == 5000)
    inner = {**begin, "positions": {**begin["positions"], "0": large + inside}}  # type: ignore[dict-item]
    told = f"no message begins at position {large + inside} any more"
    with opened(folder) as reader, pytest.raises(DataLossError, match=told):
        reader.partitions(inner, end)
    # What is no loss: to begin where the query began.
    with opened(folder) as reader:
        assert sorted(read(reader, reader.partitions(begin, end)), key=key) == sorted(rows, key=key)


def test_an_end_before_the_begin_is_data_loss(folder: Path) -> None:
    begin = initial(folder)
    middle, _ = step(folder, begin, ReadMaxBytes(50_000))
    end, _ = step(folder, middle, ReadMaxBytes(50_000))
    told = r"recording 0: the batch would end at \d+, before its begin"
    with opened(folder) as reader, pytest.raises(DataLossError, match=told):
        reader.partitions(end, middle)


def test_an_available_now_run_ends_where_it_was_pinned(folder: Path, whole: list[Row], tmp_path: Path) -> None:
    """Several batches; a recording that was not there when the run began is not of it."""
    with (
        dirs.fresh("aeron") as aeron_dir,
        recorded.archive(aeron_dir, tmp_path / "archive") as archive,
        ExitStack() as opening,
    ):
        publication = opening.enter_context(archive.record(1001))
        recorded.publish(publication, 1001, 50, [100])
        archive.wait_recorded(1001, publication.position)
        reader = opening.enter_context(opened(tmp_path / "archive"))
        reader.prepareForTriggerAvailableNow()
        offset, seen = reader.initialOffset(), []
        late = opening.enter_context(archive.record(1002))
        for one, stream_id in ((publication, 1001), (late, 1002)):
            recorded.publish(one, stream_id, 20, [100], first=50)
            archive.wait_recorded(stream_id, one.position)
        for _ in range(100):
            reader.planner.pace.due_at = 0.0
            end = reader.latestOffset(offset, ReadMaxBytes(1_000))
            if end == offset:
                break
            seen += read(reader, reader.partitions(offset, end))
            offset = end
        assert len(seen) == 50
        assert {row["recording_id"] for row in seen} == {0}
        # The next run takes both, the new recording from its start.
        _, rest = step(tmp_path / "archive", offset, ReadAllAvailable())
        assert [row["recording_id"] for row in rest] == [0] * 20 + [1] * 20
