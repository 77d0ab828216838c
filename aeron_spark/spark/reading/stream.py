"""Micro-batches by position. One object lives on the driver for the life of the query and does all planning.

It handles these habits of Spark (Spec: 09 §3): Spark asks for the initial offset twice, and once more after a crash
inside batch 0; offsets are compared as text; nothing checks that they advance; partitions are planned again on replay; commits
arrive one batch late; an idle query polls the latest offset many times a second.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from aeron_spark.archive.fingerprints import same_fingerprint
from aeron_spark.archive.segments import Extent
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.errors import AeronError, DataLossError, UsageError
from aeron_spark.spark.planning.bounds import Bounds
from aeron_spark.spark.planning.data_loss import LOG, goes_on, lost, segment_path
from aeron_spark.spark.planning.limits import default_read_limit
from aeron_spark.spark.planning.offsets import Numbers, Offset, find
from aeron_spark.spark.planning.options import LATEST, ReadOptions
from aeron_spark.spark.planning.ranges import Advance, Budget, Range, Slice, share_out
from aeron_spark.spark.planning.sbe_times import times_of
from aeron_spark.spark.planning.selection import check_asked_for, log_hidden, open_folder, select_recordings
from aeron_spark.spark.planning.snapshot import Snapshot, SnapshotCache
from aeron_spark.spark.reading.batch import RangesPartition, partition_ranges, read_partition
from aeron_spark.spark.reading.rows import Rows
from aeron_spark.types import Position

__all__ = ["AeronStreamReader", "RefusedStream"]

#: Spark polls an idle source 60 to 90 times a second; a shorter interval helps nobody.
REFRESH_INTERVAL_SECONDS = 0.01
#: The cost of a snapshot grows with the number of recordings. The next one waits this many times as long, at most a second, so
#: that an idle query does not keep a core busy.
REFRESH_PAUSE_FACTOR = 10
MAX_REFRESH_INTERVAL_SECONDS = 1.0
#: Recordings that one log message names at most.
MAX_LOGGED = 20


def _advance_in(folder: RecordingSource, options: ReadOptions) -> Advance:
    def advance(recording_id: int, begin: int, limit: int, max_bytes: int | None, max_messages: int | None) -> int:
        try:
            return folder.advance(recording_id, begin, limit, max_bytes=max_bytes, max_messages=max_messages)
        except DataLossError:
            if not goes_on(options):
                raise
        # Terms begin with a message whatever else is broken; what is broken in them, the task leaves out.
        term_length = folder.recording(recording_id).term_buffer_length
        terms = max(1, (limit - begin if max_bytes is None else max_bytes) // term_length)
        return min(limit, begin - begin % term_length + terms * term_length)

    return advance


@dataclass(frozen=True, slots=True)
class _Answer:
    """The last answer of ``latestOffset`` and its arguments: an idle query asks the same again and again."""

    snapshot: Snapshot
    start: dict[str, object]
    limit: ReadLimit
    latest: dict[str, object]


class AeronStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches of the chosen recordings; recordings that appear later join from their start."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._rows = Rows(options, schema)
        self._folder: RecordingSource | None = None
        self._snapshots = SnapshotCache(options)
        self._last_snapshot: Snapshot | None = None
        self._refresh_at = 0.0
        self._answer: _Answer | None = None
        self._reported: tuple[Snapshot, Offset] | None = None
        self._seen: tuple[Offset, ...] = ()
        self._initial: dict[str, object] | None = None
        self._pinned: Snapshot | None = None
        self._waited: Mapping[int, int] = {}
        self._batch_at: float | None = None
        #: Of recordings that nothing was read of: how far startingTimestamp was searched for, and where reading begins.
        self._timed: dict[tuple[int, int], tuple[int, int]] = {}

    def __getstate__(self) -> dict[str, object]:
        """Tasks get options and what makes rows; the open folder stays on the driver."""
        return {"_options": self._options, "_rows": self._rows}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    # -- snapshots of the archive -----------------------------------------------------------------------------------

    def _opened(self) -> RecordingSource:
        if self._folder is None:
            self._folder = open_folder(self._options)
        return self._folder

    def _snapshot(self, *, fresh: bool) -> Snapshot:
        now = time.monotonic()
        if self._last_snapshot is not None and not fresh and now < self._refresh_at:
            return self._last_snapshot
        snapshot = self._snapshots.snapshot(self._opened())
        pause = REFRESH_PAUSE_FACTOR * (time.monotonic() - now)
        self._last_snapshot = snapshot
        self._refresh_at = now + min(max(pause, REFRESH_INTERVAL_SECONDS), MAX_REFRESH_INTERVAL_SECONDS)
        return snapshot

    # -- Spark's calls ---------------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, object]:
        """Resolved once: Spark asks twice, and "latest" must not move in between."""
        if self._initial is None:
            snapshot = self._snapshot(fresh=True)
            log_hidden(self._opened(), self._options)
            if self._options.recording_ids is not None:
                select_recordings(self._opened(), self._options, allow_none=False)
            check_asked_for(self._options, snapshot.ids.tolist())
            starts = self._starts(snapshot)
            self._log_positions("begins at", snapshot.ids, starts)
            self._initial = Offset.of(
                ids=snapshot.ids, positions=starts, starts=starts, identities=snapshot.identities
            ).json
        return self._initial

    def _starts(self, snapshot: Snapshot) -> Numbers:
        """Where the query begins in each recording."""
        options, folder = self._options, self._opened()
        given = options.starting_positions
        starts = (snapshot.limits if given.word == LATEST else snapshot.starts).copy()
        to_find = np.arange(len(snapshot.ids))
        if not given.by_recording and options.tail is None and options.starting_timestamp is None:
            # Only recordings that hold messages need a search.
            to_find = np.flatnonzero(snapshot.starts != snapshot.limits)
        bounds = Bounds(folder, options, times_of(options))
        for index in to_find.tolist():
            recording_id, limit = int(snapshot.ids[index]), int(snapshot.limits[index])
            position = bounds.start(folder.recording(recording_id), snapshot.extent(index))
            starts[index] = folder.align(recording_id, position, limit, back=given.of(recording_id) == LATEST)
        return starts

    def _from_time(
        self, ids: Numbers, positions: Numbers, starts: Numbers, limits: Numbers, chosen: npt.NDArray[np.bool_]
    ) -> Numbers:
        """The positions; with startingTimestamp, where nothing was read yet, the first message of that time or the limit."""
        begins = positions.copy()
        if self._options.starting_timestamp is not None:
            for index in np.flatnonzero(chosen & (positions == starts)).tolist():
                begins[index] = self._at_time(int(ids[index]), int(positions[index]), int(limits[index]))
        return begins

    def _at_time(self, recording_id: int, begin: int, limit: int) -> int:
        options, folder = self._options, self._opened()
        searched, found = self._timed.get((recording_id, begin), (begin, begin))
        if found < searched:
            return min(found, limit)
        # The index dates what is written next by the clock, so it cannot answer for a time in the future.
        is_to_come = options.timestamp_from.kind == "index" and time.time_ns() < (options.starting_timestamp or 0)
        if limit <= searched or is_to_come:
            return limit
        extent = Extent(start_position=Position(begin), limit_position=Position(limit), is_active=True)
        try:
            position = Bounds(folder, options, times_of(options)).start(folder.recording(recording_id), extent)
            found = folder.align(recording_id, position, limit)
        except DataLossError:
            if not goes_on(options):
                raise
            found = begin  # the task finds out what can be read
        self._timed[recording_id, begin] = (limit, found)
        return found

    def _log_positions(self, what: str, ids: Numbers, positions: Numbers) -> None:
        """Logs the first recordings one by one: a folder can hold very many."""
        for recording_id, position in zip(ids[:MAX_LOGGED].tolist(), positions[:MAX_LOGGED].tolist(), strict=True):
            LOG.info("recording %d of %s: %s %d", recording_id, self._options.path, what, position)
        if len(ids) > MAX_LOGGED:
            LOG.info("%d more recordings of %s: %s their positions", len(ids) - MAX_LOGGED, self._options.path, what)

    def getDefaultReadLimit(self) -> ReadLimit:
        """The main limit; ``latestOffset`` applies the other one as well."""
        return default_read_limit(self._options)

    def latestOffset(self, start: dict[str, object], limit: ReadLimit) -> dict[str, object]:
        """The end of the next micro-batch: a message boundary per recording, within the limit."""
        snapshot = self._snapshot(fresh=False)
        answer = self._answer
        if answer is not None and answer.snapshot is snapshot and answer.start == start and answer.limit == limit:
            return answer.latest
        begin = self._known(self._offset(start), snapshot)
        at, _ = find(snapshot.ids, begin.ids)
        is_known = np.zeros(len(snapshot.ids), bool)
        is_known[at] = True
        positions, starts, limits = snapshot.starts.copy(), snapshot.starts.copy(), snapshot.limits
        positions[at], starts[at] = begin.positions, begin.starts
        before = positions.copy()
        is_read = np.ones(len(snapshot.ids), bool)
        if self._pinned is not None:
            pinned, is_pinned = find(self._pinned.ids, snapshot.ids)
            is_read = is_known | is_pinned
            stops = positions.copy()
            stops[is_pinned] = self._pinned.limits[pinned[is_pinned]]
            limits = np.minimum(limits, stops)
        for index in np.flatnonzero(is_read & ((positions < snapshot.starts) | (positions > snapshot.limits))).tolist():
            positions[index] = self._available(int(snapshot.ids[index]), int(positions[index]), snapshot.extent(index))
        begins = self._from_time(snapshot.ids, positions, starts, limits, is_read & (limits > positions))
        to_read = np.flatnonzero(is_read & (limits > begins))
        slices = [
            Slice(recording_id=recording_id, begin=position, limit=end)
            for recording_id, position, end in zip(
                snapshot.ids[to_read].tolist(), begins[to_read].tolist(), limits[to_read].tolist(), strict=True
            )
        ]
        if self._shall_wait(slices, limit):
            return start
        ends = share_out(slices, self._budget(limit), _advance_in(self._opened(), self._options), self._waited)
        self._waited = {
            part.recording_id: self._waited.get(part.recording_id, 0) + 1
            for part in slices
            if ends[part.recording_id] == part.begin
        }
        for index, part in zip(to_read.tolist(), slices, strict=True):
            if ends[part.recording_id] > part.begin:
                positions[index] = ends[part.recording_id]
        marks = np.zeros(len(snapshot.ids), np.int64)
        marks[at] = begin.marks
        moved = np.flatnonzero(positions != before)
        marks[moved] = self._opened().fingerprints(snapshot.ids[moved], positions[moved])
        if len(begin.ids) == np.count_nonzero(is_read):
            reached = begin.moved(np.arange(len(begin.ids)), positions[at], marks[at])
        else:
            columns = snapshot.ids, positions, starts, snapshot.identities, marks
            ids, positions, starts, identities, marks = (column[is_read] for column in columns)
            reached = Offset.of(ids=ids, positions=positions, starts=starts, identities=identities, marks=marks)
            is_new = ~find(begin.ids, ids)[1]
            self._log_positions("joins at", ids[is_new], starts[is_new])
        if self._options.fail_on_data_loss:
            begin.check_advances_to(reached)
        latest = self._remember(reached).json
        if latest is not begin.json:
            self._batch_at = time.monotonic()
        self._answer = _Answer(snapshot, start, limit, latest)
        return latest

    def reportLatestOffset(self) -> dict[str, object] | None:
        """How far the recordings go now: the lag is the distance from the batch's end offset."""
        snapshot = self._snapshot(fresh=False)
        if self._reported is None or self._reported[0] is not snapshot:
            before = None if self._reported is None else self._reported[1]
            if before is not None and _is_alike(before, snapshot):
                reported = before.moved(np.arange(len(snapshot.ids)), snapshot.limits)
            else:
                reported = Offset.of(
                    ids=snapshot.ids, positions=snapshot.limits, starts=snapshot.starts, identities=snapshot.identities
                )
            self._reported = (snapshot, reported)
        return self._reported[1].json

    def prepareForTriggerAvailableNow(self) -> None:
        """Pins the end once: what is recorded later is not of this run."""
        self._pinned = self._snapshot(fresh=True)

    def partitions(self, start: dict[str, object], end: dict[str, object]) -> Sequence[InputPartition]:
        """A function of the two offsets, the options and the recorded bytes: a replayed batch reads the same rows."""
        first = self._offset(start)
        snapshot = self._snapshot(fresh=True)
        last = self._known(self._offset(end), snapshot)
        if self._options.fail_on_data_loss:
            first.check_advances_to(last)
        ranges: list[Range] = []
        at, _ = find(snapshot.ids, last.ids)
        begins = first.begins(last)
        marks = first.marks_at(last.ids, begins)
        to_read = np.flatnonzero(begins < last.positions)
        extents = [snapshot.extent(row) for row in at[to_read].tolist()]
        for column, kept in ((begins, marks), (last.positions, last.marks)):
            self._check_marks(last.ids[to_read], column[to_read], kept[to_read], extents)
        for index, extent in zip(to_read.tolist(), extents, strict=True):
            recording_id, begin, position = (int(column[index]) for column in (last.ids, begins, last.positions))
            low = self._available(recording_id, begin, extent)
            high = min(position, self._available(recording_id, position, extent))
            if self._options.starting_timestamp is not None and begin == last.starts[index] and low < high:
                low = self._at_time(recording_id, low, high)
            if low == begin != last.starts[index] and low < high:
                low = self._boundary(recording_id, low, high)
            if low < high:
                ranges.append(Range(recording_id, low, high, high))
        return partition_ranges(self._opened(), ranges, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a task."""
        return read_partition(cast("RangesPartition", partition), self._options, self._rows)

    def commit(self, end: dict[str, object]) -> None:
        """Nothing to give back: the archive keeps its segments until somebody purges them."""

    def stop(self) -> None:
        """Closes the source. Spark seldom calls this; the end of the process does it as well."""
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    # -- checks ----------------------------------------------------------------------------------------------------

    def _budget(self, limit: ReadLimit) -> Budget:
        max_bytes = self._options.max_bytes_per_trigger
        max_messages = self._options.max_messages_per_trigger
        if isinstance(limit, ReadAllAvailable):
            return Budget(max_bytes=None, max_messages=None)
        if isinstance(limit, ReadMaxBytes):
            return Budget(max_bytes=limit.max_bytes, max_messages=max_messages)
        if isinstance(limit, ReadMaxRows):
            return Budget(max_bytes=max_bytes, max_messages=limit.max_rows)
        raise UsageError(f"read limit {type(limit).__name__} cannot be honoured, use bytes or rows")

    def _shall_wait(self, slices: Sequence[Slice], limit: ReadLimit) -> bool:
        """``minBytesPerTrigger`` is not reached, nor ``maxTriggerDelay`` over. An available-now run never waits."""
        least = self._options.min_bytes_per_trigger
        if least is None or self._batch_at is None or self._pinned is not None:
            return False
        if isinstance(limit, ReadAllAvailable) or sum(part.backlog for part in slices) >= least:
            return False
        return time.monotonic() - self._batch_at < self._options.max_trigger_delay

    def _offset(self, parsed: dict[str, object]) -> Offset:
        """Parses an offset, or finds it among the last ones: Spark mostly returns what it was given."""
        for seen in self._seen:
            if seen.json is parsed or seen.json == parsed:
                return seen
        return self._remember(Offset.from_json_dict(parsed))

    def _remember(self, offset: Offset) -> Offset:
        if offset not in self._seen:
            self._seen = (offset, *self._seen[:1])
        return offset

    def _known(self, offset: Offset, snapshot: Snapshot) -> Offset:
        """The offset without recordings that are gone; raises where that is data loss."""
        at, is_there = find(snapshot.ids, offset.ids)
        for index in np.flatnonzero(~is_there).tolist():
            lost(
                self._options,
                f"recording {offset.ids[index]} of the checkpoint, read up to {offset.positions[index]}, is not in archive "
                f"{self._options.path} any more (or no longer matches the options); it was purged, or the path is another "
                f"archive's: restore it, or begin with a new checkpoint folder",
            )
        if not is_there.all():
            offset, at = offset.only(is_there), at[is_there]
        for index in np.flatnonzero(snapshot.identities[at] != offset.identities)[:1].tolist():
            raise UsageError(
                f"recording {offset.ids[index]} in archive {self._options.path} is not the one the checkpoint was made "
                f"from; give the archive this query began with, or a new checkpoint folder"
            )
        return offset

    def _available(self, recording_id: int, position: int, extent: Extent) -> int:
        """The position, or the nearest one available; raises where that is data loss."""
        if extent.start_position <= position <= extent.limit_position:
            return position
        path = segment_path(self._options, self._opened().recording(recording_id), position)
        if position < extent.start_position:
            lost(
                self._options,
                f"recording {recording_id} of {self._options.path}: position {position}, in {path}, is wanted, but the "
                f"recording now starts at {extent.start_position} and ends at {extent.limit_position}: "
                f"{extent.start_position - position} bytes were purged before they were read; restore its segments, or begin "
                f"with a new checkpoint folder",
            )
            return extent.start_position
        lost(
            self._options,
            f"recording {recording_id} of {self._options.path}: position {position}, in {path}, was read before, but the "
            f"recording now ends at {extent.limit_position}: it was truncated, or the "
            f"archive lost its tail in a crash; begin with a new checkpoint folder",
        )
        return extent.limit_position

    def _check_marks(self, ids: Numbers, positions: Numbers, marks: Numbers, extents: Sequence[Extent]) -> None:
        """Checks that each position follows the same frame as when the query reached it."""
        found = self._opened().fingerprints(ids, positions)
        for recording_id, position, mark, now, extent in zip(
            *(column.tolist() for column in (ids, positions, marks, found)), extents, strict=True
        ):
            is_there = extent.start_position < position <= extent.limit_position
            if mark != 0 and is_there and not same_fingerprint(mark, now):
                lost(
                    self._options,
                    f"recording {recording_id} of {self._options.path}: other bytes stand before position {position} than when "
                    f"this query reached it: the recording was truncated and then extended; begin with a new checkpoint folder",
                )

    def _boundary(self, recording_id: int, begin: int, end: int) -> int:
        """The position, checked: a message must begin there."""
        try:
            aligned: int = self._opened().align(recording_id, begin, end)
        except DataLossError:
            if not goes_on(self._options):
                raise
            return begin  # the task finds out what can be read
        if aligned != begin:
            lost(
                self._options,
                f"recording {recording_id} of {self._options.path}: no message begins at position {begin} any more, where the "
                f"batch before ended: the recording was truncated and then extended; begin with a new checkpoint folder",
            )
        return aligned


def _is_alike(offset: Offset, snapshot: Snapshot) -> bool:
    """The snapshot differs from the offset in limits only."""
    pairs = (offset.ids, snapshot.ids), (offset.starts, snapshot.starts), (offset.identities, snapshot.identities)
    return all(np.array_equal(one, other) for one, other in pairs)


class RefusedStream(DataSourceStreamReader):
    """Raises the reason at the first call: Spark hides an error of the constructor behind one of its own."""

    def __init__(self, why: AeronError) -> None:
        self._why = why

    def initialOffset(self) -> dict[str, object]:
        """Raises."""
        raise self._why

    def latestOffset(self, start: dict[str, object], limit: ReadLimit) -> dict[str, object]:
        """Raises: after a restart it is asked first."""
        raise self._why

    def partitions(self, start: dict[str, object], end: dict[str, object]) -> Sequence[InputPartition]:
        """Raises."""
        raise self._why

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raises."""
        raise self._why
