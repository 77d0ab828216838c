"""Planning by positions: a micro-batch ends at a message boundary of each recording; new recordings join from their start."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aeron_spark.archive.segments import Extent
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.errors import DataLossError
from aeron_spark.spark.log import LOG, facts
from aeron_spark.spark.planning.bounds import Bounds
from aeron_spark.spark.planning.continuity import Continuity
from aeron_spark.spark.planning.data_loss import goes_on, looked_again
from aeron_spark.spark.planning.offsets import Numbers, Offset, find
from aeron_spark.spark.planning.options import LATEST, ReadOptions
from aeron_spark.spark.planning.ranges import Advance, Budget, Range, Slice, share_out
from aeron_spark.spark.planning.sbe_times import times_of
from aeron_spark.spark.planning.selection import check_asked_for, log_hidden, open_folder, select_recordings
from aeron_spark.spark.planning.snapshot import Pace, Snapshot, SnapshotCache
from aeron_spark.spark.planning.start_times import StartTimes
from aeron_spark.types import NULL_VALUE

__all__ = ["Followed", "UncommittedPlanner"]

#: Spark polls an idle source 60 to 90 times a second; a shorter interval helps nobody.
REFRESH_INTERVAL_SECONDS = 0.01
#: Recordings that one log message names at most.
MAX_LOGGED = 20


@dataclass(frozen=True, slots=True)
class _Answer:
    """The last answer and its arguments: an idle query asks the same again and again."""

    snapshot: Snapshot
    start: Offset
    budget: Budget
    end: Offset


@dataclass(frozen=True, slots=True)
class Followed:
    """What a batch of Real-Time Mode follows: each range from its begin on, also beyond its end."""

    ranges: list[Range]
    #: The recordings of the batch, whether something follows them or not.
    offset: Offset
    #: Recordings beyond these, or active ones that are not of these, are none of the batch's.
    newest: int
    known: tuple[int, ...]


class UncommittedPlanner:
    """See ``Planner``. Remembers only what saves work, what waits for its turn, and what an available-now run has pinned."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self.source = open_folder(options)
        self.pace = Pace(REFRESH_INTERVAL_SECONDS)
        self._cache = SnapshotCache(options)
        self._continuity = Continuity(self.source, options)
        self._start_times = StartTimes(self.source, options)
        self._snapshot: Snapshot | None = None
        self._pinned: Snapshot | None = None
        self._answer: _Answer | None = None
        self._newest: tuple[Snapshot, Offset] | None = None
        self._waited: Mapping[int, int] = {}
        self._batch_at: float | None = None

    def _recent(self, *, fresh: bool) -> Snapshot:
        snapshot = self._snapshot
        if snapshot is None or fresh or self.pace.is_due:
            with self.pace.refreshing():
                self._snapshot = snapshot = self._cache.snapshot(self.source)
        return snapshot

    def _keeping(self, offset: Offset, snapshot: Snapshot) -> Snapshot:
        """The snapshot, also of those of the offset's recordings that an extension or an update has given other names."""
        kept = self._cache.keep(offset, self.source)
        if not kept:
            return snapshot
        LOG.warning(
            "%s: recordings %s are read on, as the checkpoint has them, though the options no longer choose them: an extension "
            "or an update has changed their session or channel. Options that were changed need a new checkpoint folder",
            self._options.path, kept[:20], extra=facts(path=self._options.path, recordings=len(kept)),
        )  # fmt: skip
        snapshot = self._recent(fresh=True)
        if self._pinned is not None:
            # It was pinned before the offset was known.
            self._pinned = snapshot
        return snapshot

    # -- a query's begin -------------------------------------------------------------------------------------------

    def initial(self) -> Offset:
        """Where the options say that the query begins in each recording."""
        return looked_again(self._initial, self._initial)

    def _initial(self) -> Offset:
        snapshot = self._recent(fresh=True)
        log_hidden(self.source, self._options)
        if self._options.recording_ids is not None:
            select_recordings(self.source, self._options, allow_none=False)
        check_asked_for(self._options, snapshot.ids.tolist())
        starts = self._starts(snapshot)
        self._log_positions("begins at", snapshot.ids, starts)
        return Offset.of(ids=snapshot.ids, positions=starts, starts=starts, identities=snapshot.identities)

    def _starts(self, snapshot: Snapshot) -> Numbers:
        options, source = self._options, self.source
        given = options.starting_positions
        starts = (snapshot.limits if given.word == LATEST else snapshot.starts).copy()
        to_find = np.arange(len(snapshot.ids))
        if not given.by_recording and options.tail is None and options.starting_timestamp is None:
            # Only recordings that hold messages need a search.
            to_find = np.flatnonzero(snapshot.starts != snapshot.limits)
        bounds = Bounds(source, options, times_of(options))
        for index in to_find.tolist():
            recording_id, limit = int(snapshot.ids[index]), int(snapshot.limits[index])
            position = bounds.start(source.recording(recording_id), snapshot.extent(index))
            try:
                starts[index] = source.align(recording_id, position, limit, back=given.of(recording_id) == LATEST)
            except DataLossError:
                if not goes_on(options):
                    raise
                starts[index] = position  # the task finds out what can be read from there on
        return starts

    def _log_positions(self, what: str, ids: Numbers, positions: Numbers) -> None:
        """Logs the first recordings one by one: a folder can hold very many."""
        for recording_id, position in zip(ids[:MAX_LOGGED].tolist(), positions[:MAX_LOGGED].tolist(), strict=True):
            LOG.info(
                "recording %d of %s: %s %d", recording_id, self._options.path, what, position,
                extra=facts(path=self._options.path, recording_id=recording_id, position=position),
            )  # fmt: skip
        if len(ids) > MAX_LOGGED:
            more = len(ids) - MAX_LOGGED
            LOG.info(
                "%d more recordings of %s: %s their positions", more, self._options.path, what,
                extra=facts(path=self._options.path, recordings=more),
            )  # fmt: skip

    # -- a micro-batch's end ---------------------------------------------------------------------------------------

    def next_end(self, start: Offset, budget: Budget) -> Offset:
        """A message boundary per recording, within the budget."""
        return looked_again(
            lambda: self._next_end(start, budget, fresh=False), lambda: self._next_end(start, budget, fresh=True)
        )

    def _next_end(self, start: Offset, budget: Budget, *, fresh: bool) -> Offset:
        snapshot = self._recent(fresh=fresh)
        answer = self._answer
        if answer is not None and (answer.snapshot, answer.start, answer.budget) == (snapshot, start, budget):
            return answer.end
        snapshot = self._keeping(start, snapshot)
        begin = self._continuity.known(start, snapshot)
        positions, starts, is_read, slices = self._slices(begin, snapshot)
        if self._shall_wait(slices.values(), budget):
            return start
        ends = share_out([*slices.values()], budget, _advance_in(self.source, self._options), self._waited)
        self._waited = {
            part.recording_id: self._waited.get(part.recording_id, 0) + 1
            for part in slices.values()
            if ends[part.recording_id] == part.begin
        }
        for index, part in slices.items():
            if ends[part.recording_id] > part.begin:
                positions[index] = ends[part.recording_id]
        end = self._reached(begin, snapshot, positions, starts, is_read)
        if self._options.fail_on_data_loss:
            begin.check_advances_to(end)
        if end is not begin:
            self._batch_at = time.monotonic()
        self._answer = _Answer(snapshot, start, budget, end)
        return end

    def _slices(
        self, begin: Offset, snapshot: Snapshot
    ) -> tuple[Numbers, Numbers, npt.NDArray[np.bool_], dict[int, Slice]]:
        """Per recording of the snapshot where it is read from, its start, and whether it is read; what there is to read."""
        at, _ = find(snapshot.ids, begin.ids)
        positions, starts, limits = snapshot.starts.copy(), snapshot.starts.copy(), snapshot.limits
        positions[at], starts[at] = begin.positions, begin.starts
        is_read = np.ones(len(snapshot.ids), bool)
        if self._pinned is not None:
            pinned, is_read = find(self._pinned.ids, snapshot.ids)
            stops = positions.copy()
            stops[is_read] = self._pinned.limits[pinned[is_read]]
            limits = np.minimum(limits, stops)
            is_read[at] = True
        is_waiting = (positions == starts) & (self._options.starting_timestamp is not None)
        for index in np.flatnonzero(is_read & ((positions < snapshot.starts) | (positions > snapshot.limits))).tolist():
            recording_id, position = int(snapshot.ids[index]), int(positions[index])
            positions[index] = self._available(
                recording_id, position, snapshot.extent(index), is_waiting=bool(is_waiting[index])
            )
        # Nothing of these was read yet, also where the position had to move: they still wait for that time.
        starts[is_waiting] = positions[is_waiting]
        begins = self._start_times.begins(snapshot.ids, positions, starts, limits, is_read & (limits > positions))
        slices = {
            index: Slice(recording_id=int(snapshot.ids[index]), begin=int(begins[index]), limit=int(limits[index]))
            for index in np.flatnonzero(is_read & (limits > begins)).tolist()
        }
        return positions, starts, is_read, slices

    def _available(self, recording_id: int, position: int, extent: Extent, *, is_waiting: bool) -> int:
        """The position, or the nearest one available; what was purged before ``startingTimestamp`` is no loss."""
        if is_waiting and position < extent.start_position and self._start_times.is_later(recording_id, extent):
            return extent.start_position
        return self._continuity.available(recording_id, position, extent)

    def _reached(
        self,
        begin: Offset,
        snapshot: Snapshot,
        positions: Numbers,
        starts: Numbers,
        is_read: npt.NDArray[np.bool_],
    ) -> Offset:
        """The offset at these positions of the snapshot's recordings; `begin` itself if none has moved."""
        at, _ = find(snapshot.ids, begin.ids)
        before, marks = snapshot.starts.copy(), np.zeros(len(snapshot.ids), np.int64)
        before[at], marks[at] = begin.positions, begin.marks
        moved = np.flatnonzero(positions != before)
        marks[moved] = self.source.fingerprints(snapshot.ids[moved], positions[moved])
        if len(begin.ids) == np.count_nonzero(is_read) and np.array_equal(begin.starts, starts[at]):
            return begin.moved(np.arange(len(begin.ids)), positions[at], marks[at])
        columns = snapshot.ids, positions, starts, snapshot.identities, marks
        ids, positions, starts, identities, marks = (column[is_read] for column in columns)
        is_new = ~find(begin.ids, ids)[1]
        self._log_positions("joins at", ids[is_new], starts[is_new])
        return Offset.of(ids=ids, positions=positions, starts=starts, identities=identities, marks=marks)

    def _shall_wait(self, slices: Collection[Slice], budget: Budget) -> bool:
        """``minBytesPerTrigger`` is not reached, nor ``maxTriggerDelay`` over. An available-now run never waits."""
        least = self._options.min_bytes_per_trigger
        if least is None or self._batch_at is None or self._pinned is not None:
            return False
        if budget.is_unbounded or sum(part.backlog for part in slices) >= least:
            return False
        return time.monotonic() - self._batch_at < self._options.max_trigger_delay

    def newest(self) -> dict[str, object]:
        """The lag is the distance from the batch's end offset."""
        snapshot = self._recent(fresh=False)
        if self._newest is None or self._newest[0] is not snapshot:
            before = None if self._newest is None else self._newest[1]
            if before is not None and _is_alike(before, snapshot):
                newest = before.moved(np.arange(len(snapshot.ids)), snapshot.limits)
            else:
                newest = Offset.of(
                    ids=snapshot.ids, positions=snapshot.limits, starts=snapshot.starts, identities=snapshot.identities
                )
            self._newest = (snapshot, newest)
        return self._newest[1].json

    def pin(self) -> None:
        """What is recorded later is not of this run."""
        self._pinned = self._recent(fresh=True)

    # -- a micro-batch's ranges ------------------------------------------------------------------------------------

    def ranges(self, first: Offset, last: Offset) -> list[Range]:
        """A function of the two offsets, the options and the recorded bytes: a replayed batch reads the same rows."""
        options = self._options
        snapshot = self._keeping(last, self._recent(fresh=True))
        last = self._continuity.known(last, snapshot)
        if options.fail_on_data_loss:
            first.check_advances_to(last)
        ranges: list[Range] = []
        at, _ = find(snapshot.ids, last.ids)
        begins = first.begins(last)
        marks = first.marks_at(last.ids, begins)
        to_read = np.flatnonzero(begins < last.positions)
        extents = [snapshot.extent(row) for row in at[to_read].tolist()]
        for column, kept in ((begins, marks), (last.positions, last.marks)):
            self._continuity.check_marks(last.ids[to_read], column[to_read], kept[to_read], extents)
        for index, extent in zip(to_read.tolist(), extents, strict=True):
            recording_id, begin, position = (int(column[index]) for column in (last.ids, begins, last.positions))
            is_waiting = options.starting_timestamp is not None and begin == last.starts[index]
            low = self._available(recording_id, begin, extent, is_waiting=is_waiting)
            high = min(position, self._continuity.available(recording_id, position, extent))
            if is_waiting and low < high:
                low = self._start_times.begin(recording_id, low, high)
            if low == begin != last.starts[index] and low < high:
                low = self._continuity.boundary(recording_id, low, high)
            if low < high:
                ranges.append(Range(recording_id, low, high, high))
        return ranges

    def follow(self, first: Offset) -> Followed:
        """All there is to read from an offset on, and the recordings that go on or have gone on meanwhile."""
        last = self.next_end(first, Budget(max_bytes=None, max_messages=None))
        ranges = self.ranges(first, last)
        snapshot, columns = self._recent(fresh=False), self.source.columns()
        active = columns.recording_id[columns.stop_position == NULL_VALUE]
        rows, is_there = find(snapshot.ids, last.ids)
        limits = last.positions.copy()
        limits[is_there] = snapshot.limits[rows[is_there]]
        # The snapshot is newer than the end: what has stopped since may hold more.
        is_active = np.isin(last.ids, active)
        is_left = is_there & (is_active | (limits > last.positions))
        at = np.flatnonzero(is_left & ~np.isin(last.ids, [part.recording_id for part in ranges]))
        ids, positions = last.ids[at], last.positions[at]
        extents = [snapshot.extent(row) for row in rows[at].tolist()]
        self._continuity.check_marks(ids, positions, first.marks_at(ids, positions), extents)
        for index in at.tolist():
            recording_id, begin, limit = int(last.ids[index]), int(last.positions[index]), int(limits[index])
            if self._options.starting_timestamp is not None and begin == last.starts[index]:
                # Nothing up to the end is of that time.
                found = self._start_times.begin(recording_id, begin, limit)
                begin = self.source.align(recording_id, found, limit, back=True)
            if is_active[index] or begin < limit:
                ranges.append(Range(recording_id, begin, begin, begin))
        began = np.setdiff1d(snapshot.ids, last.ids)
        newest = int(began.min()) - 1 if len(began) else int(columns.recording_id.max(initial=-1))
        return Followed(ranges, last, newest, tuple(np.setdiff1d(active, began).tolist()))


def _advance_in(source: RecordingSource, options: ReadOptions) -> Advance:
    def advance(recording_id: int, begin: int, limit: int, max_bytes: int | None, max_messages: int | None) -> int:
        try:
            return source.advance(recording_id, begin, limit, max_bytes=max_bytes, max_messages=max_messages)
        except DataLossError:
            if not goes_on(options):
                raise
        # Terms begin with a message whatever else is broken; what is broken in them, the task leaves out.
        term_length = source.recording(recording_id).term_buffer_length
        if max_bytes is None and max_messages is None:
            # Whoever asks for all there is may not ask again.
            return _last_boundary(source, recording_id, max(begin, limit - limit % term_length), limit)
        most = limit - begin if max_bytes is None else min(max_bytes, limit - begin)
        # Before what is broken there are fewer messages than may be, but nothing is known of the next term.
        terms = max(1, most // term_length) if max_messages is None else 1
        # The recorded position may lie inside a message: it is the end only where the rest of its term is left out.
        return min(limit, begin - begin % term_length + terms * term_length)

    return advance


def _last_boundary(source: RecordingSource, recording_id: int, begin: int, limit: int) -> int:
    """The last message boundary in a term, or the limit where the term's rest is left out."""
    try:
        return source.advance(recording_id, begin, limit)
    except DataLossError:
        return limit


def _is_alike(offset: Offset, snapshot: Snapshot) -> bool:
    """The snapshot differs from the offset in limits only."""
    pairs = (offset.ids, snapshot.ids), (offset.starts, snapshot.starts), (offset.identities, snapshot.identities)
    return all(np.array_equal(one, other) for one, other in pairs)
