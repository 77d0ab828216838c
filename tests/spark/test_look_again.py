"""What retention purges while a read is planned is no loss: nothing of it was read. The plan is made again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.planning.ranges import Budget
from aeron_spark.spark.planning.snapshot import SnapshotCache
from aeron_spark.spark.planning.uncommitted import UncommittedPlanner
from aeron_spark.spark.reading import batch
from aeron_spark.spark.reading.batch import AeronBatchReader, RangesPartition
from aeron_spark.spark.reading.rows import read_schema
from tests.kit import dirs
from tests.spark import recorded

KEPT, PURGED = 1001, 1002
SEGMENT = 128 * 1024
ALL = Budget(max_bytes=None, max_messages=None)


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[recorded.Archive]:
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, tmp_path / "archive") as servers:
        servers.recorded(KEPT, 10, [1000])
        yield servers


def purge(archive: recorded.Archive, what: str) -> None:
    """A recording, or the first segments of it."""
    recording_id = archive.recording_id(PURGED)
    if what == "recording":
        archive.control.purge_recording(recording_id)
    else:
        archive.control.purge_segments(recording_id, 2 * SEGMENT)


def once_after(function: Callable[..., Any], step: Callable[[], None]) -> Callable[..., Any]:
    """The function, with a step behind its first call."""
    left = [step]

    def called(*given: Any, **named: Any) -> Any:
        found = function(*given, **named)
        if left:
            left.pop()()
        return found

    return called


def options(archive: recorded.Archive, *, streaming: bool, **given: str) -> ReadOptions:
    return ReadOptions.parse({"path": str(archive.archive_dir), **given}, streaming=streaming)


def test_a_batch_leaves_out_a_recording_that_goes_while_it_is_planned(
    archive: recorded.Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.recorded(PURGED, 1000, [1000])
    chosen = options(archive, streaming=False)
    step = once_after(batch.select_recordings, lambda: purge(archive, "recording"))
    monkeypatch.setattr(batch, "select_recordings", step)
    planned = AeronBatchReader(chosen, read_schema(chosen)).partitions()
    found = {part.recording_id for one in planned if isinstance(one, RangesPartition) for part in one.ranges}
    assert found == {archive.recording_id(KEPT)}


@pytest.fixture
def planner(archive: recorded.Archive) -> Iterator[UncommittedPlanner]:
    made = UncommittedPlanner(options(archive, streaming=True, startingPositions="earliest"))
    yield made
    made.source.close()


@pytest.mark.parametrize("what", ["recording", "segments"])
@pytest.mark.parametrize("at", ["begin", "later"])
def test_a_stream_leaves_out_what_goes_before_it_has_read_of_it(
    archive: recorded.Archive, planner: UncommittedPlanner, monkeypatch: pytest.MonkeyPatch, what: str, at: str
) -> None:
    start = None if at == "begin" else planner.initial()
    archive.recorded(PURGED, 1000, [1000])
    kept, purged = archive.recording_id(KEPT), archive.recording_id(PURGED)
    planner.pace.due_at = 0.0
    step = once_after(SnapshotCache.snapshot, lambda: purge(archive, what))
    monkeypatch.setattr(SnapshotCache, "snapshot", step)
    start = planner.initial() if start is None else start
    end = planner.next_end(start, ALL)
    begins = {part.recording_id: part.start for part in planner.ranges(start, end)}
    assert begins == ({kept: 0} if what == "recording" else {kept: 0, purged: 2 * SEGMENT})
