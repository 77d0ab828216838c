"""The time of a message: by the archive's time index, its reserved value, or a field of its SBE message."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aeron_spark.archive.ranges import Range
from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.search import TimesOf, first_timed, reserved_times
from aeron_spark.archive.segments import Extent
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.archive.time_text import TimeSource
from aeron_spark.errors import DataLossError, UsageError
from aeron_spark.tables.pruning import Borders, Known

__all__ = ["MERGE_TIME", "TIMESTAMP", "UNITS", "Clock", "both"]

TIMESTAMP = "timestamp"
UNITS = ("ns", "us")
#: The clock's time in ns, by which recordings are merged. No field of SBE can have this name.
MERGE_TIME = pa.field("time of the merge", pa.timestamp("ns", "UTC"))
_COLUMNS = {"index": "next_position", "reserved": "reserved_value", "sbe": "value"}


class Clock:
    """Makes the column `timestamp`, in UTC.

    `is_ascending`: in each recording the messages' own times do not descend, so that a filter by time need not read all
    of them. The times of the index never descend.
    """

    def __init__(self, source: TimeSource, unit: str, field_times: TimesOf | None, *, is_ascending: bool) -> None:
        if unit not in UNITS:
            raise UsageError(f"time_unit={unit!r} is none of {', '.join(UNITS)}")
        self.kind = source.kind
        #: The column of a source's batches that the times are made of.
        self.column = _COLUMNS[source.kind]
        self.field = pa.field(TIMESTAMP, pa.timestamp(unit, "UTC"))
        self._unit = source.unit
        self._field_times = field_times
        self._is_ascending = is_ascending or source.kind == "index"

    def times(self, source: RecordingSource | None, recording: Recording | None, batch: pa.RecordBatch) -> pa.Array:
        """The times of a batch's messages in ns, null where they are not known; they share no memory with the batch."""
        column = batch.column(self.column)
        if self._field_times is not None or self.kind == "reserved":
            return self._own_times(column)
        if source is None or recording is None:
            raise UsageError("a live stream has no time index: name the messages' own times, timestamp='reserved(ns)'")
        return source.index_times_at(recording.recording_id, pc.subtract(column, 1))

    def _own_times(self, column: pa.Array) -> pa.Array:
        return reserved_times(column, self._unit) if self._field_times is None else self._field_times(column)

    def as_column(self, times: pa.Array) -> pa.Array:
        """Times in ns as the column `timestamp`."""
        if times.type == self.field.type:
            return times
        numbers = times.cast(pa.int64())
        if self.field.type.unit == "us":
            # Rounded down, also before 1970.
            whole = np.floor_divide(numbers.fill_null(0).to_numpy(), 1000)
            numbers = pa.array(whole, pa.int64(), mask=~np.asarray(numbers.is_valid()))
        return numbers.cast(self.field.type)

    def facts(
        self, source: RecordingSource, recording: Recording, extent: Extent, borders: Borders, name: str
    ) -> Known | None:
        """What is known of the times, the column `name`, of the messages between borders; None: nothing."""
        if not self._is_ascending:
            return None
        term_length, limit = recording.term_buffer_length, extent.limit_position
        starts = np.asarray(borders, np.int64)
        # The last message may end behind the border, but in its term, and no message is longer than an eighth of that.
        ends = np.minimum(np.minimum(starts + term_length // 8, -(-starts // term_length) * term_length), limit)
        if self.kind == "index":
            # In one call, since each opens the index: the first of them begin parts, the others end parts.
            asked = pa.array(np.concatenate([starts[:-1], ends[1:] - 1]))
            times = self.as_column(source.index_times_at(recording.recording_id, asked))
            behind = len(borders) - 2
            at = {name: times[: len(borders) - 1]}
            return Known(lambda first, last: _between(name, times[first], times[behind + last]), at)

        @functools.cache
        def time(position: int) -> pa.Scalar:
            found = self._first_from(source, recording, position, limit)
            return self.as_column(pa.array([found], pa.timestamp("ns", "UTC")))[0]

        return Known(lambda first, last: _between(name, time(int(starts[first])), time(int(ends[last]))), {})

    def known_start(self, source: RecordingSource, recording: Recording, position: int) -> int:
        """Where a message begins, not far before a position; or the position.

        To begin where no message does, a reader goes through the term from its start.
        """
        time = source.index_times_at(recording.recording_id, [position])[0] if self.kind == "index" else None
        if time is None or not time.is_valid:
            return position
        try:
            known = source.position_at(recording.recording_id, time.value).position
        except DataLossError:
            return position  # reading it tells, after the messages before
        return known if position - position % recording.term_buffer_length <= known < position else position

    def _first_from(self, source: RecordingSource, recording: Recording, position: int, limit: int) -> int | None:
        part = Range(recording.recording_id, position, limit, limit)
        found = first_timed(source, part, self._own_times, self.column) if position < limit else None
        return None if found is None else found[1]


def _between(name: str, low: pa.Scalar, high: pa.Scalar) -> pc.Expression:
    """No time, or one in the bounds that are known."""
    time = pc.field(name)
    bounds = [time >= low] if low.is_valid else []
    bounds += [time <= high] if high.is_valid else []
    return both([bound | time.is_null() for bound in bounds])


def both(facts: Sequence[pc.Expression]) -> pc.Expression:
    """All of them; without any, what always holds."""
    return functools.reduce(operator.and_, facts) if facts else pc.scalar(True)  # noqa: FBT003 - pyarrow takes it so
