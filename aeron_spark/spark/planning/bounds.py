"""Where reading a recording begins and ends: words, positions, times, the last n messages; and ranges of segment files.

Everything given is accepted where it lies and moved to a message boundary, never past a message that was asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aeron_spark.archive.segments import Extent, Recording
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.archive.times import UNITS_NS
from aeron_spark.errors import UsageError
from aeron_spark.spark.planning.data_loss import lost, segment_path
from aeron_spark.spark.planning.options import EARLIEST, LATEST, ReadOptions
from aeron_spark.spark.planning.ranges import Range

__all__ = ["Bounds", "clamped_ns", "first_at", "index_time_position", "reserved_times", "tail_position"]

#: Times of a batch's messages in ns since 1970-01-01 UTC, null where a message has none.
TimesOf = Callable[[pa.Array], pa.Array]

#: A search by time reads the last range of this size from end to end.
SCAN_BYTES = 256 << 10
#: Messages that a probe of a search reads at a time.
PROBE_ROWS = 256
#: The smallest range that is searched for the last messages.
TAIL_BYTES = 64 << 10


class Bounds:
    """Start and end of each recording by the options."""

    def __init__(self, folder: RecordingSource, options: ReadOptions, times_of: TimesOf | None = None) -> None:
        self._folder = folder
        self._options = options
        self._times_of = times_of

    def start(self, recording: Recording, extent: Extent) -> int:
        """Where the first message to read begins, or a position between it and the message before."""
        options = self._options
        if options.tail is not None:
            return tail_position(self._folder, recording.recording_id, extent, options.tail)
        if options.starting_timestamp is not None:
            return self._at_time(recording, extent, options.starting_timestamp, is_end=False)
        return self._at_position("startingPositions", recording, extent)

    def end(self, recording: Recording, extent: Extent) -> int:
        """Messages that begin before it are read."""
        if self._options.ending_timestamp is not None:
            return self._at_time(recording, extent, self._options.ending_timestamp, is_end=True)
        return self._at_position("endingPositions", recording, extent)

    def ranges(self, recording: Recording, extent: Extent) -> list[Range]:
        """What a batch reads of a recording."""
        recording_id = recording.recording_id
        start, end = self.start(recording, extent), self.end(recording, extent)
        if start > end:
            if self._options.starting_positions.by_recording and self._options.ending_positions.by_recording:
                raise UsageError(
                    f"recording {recording_id}: startingPositions {start} lies after endingPositions {end}"
                )
            end = start
        limit = extent.limit_position
        if self._options.segments is None:
            return [Range(recording_id, start, end, limit)]
        pieces = [self._of_file(recording, extent, base) for one, base in self._options.segments if one == recording_id]
        clipped = [Range(recording_id, max(low, start), min(high, end), limit) for low, high in pieces]
        return [part for part in clipped if part.start < part.end]

    def _of_file(self, recording: Recording, extent: Extent, base: int) -> tuple[int, int]:
        """Positions that a segment file holds."""
        name = f"{recording.recording_id}-{base}.rec"
        first = recording.segment_base(extent.start_position)
        length = recording.segment_file_length
        if base < first:
            lost(
                self._options,
                f"segment file {name} of {self._options.path} is wanted, but recording {recording.recording_id} now starts at "
                f"{extent.start_position} in {first}: it was purged",
            )
            return extent.start_position, extent.start_position
        if (base - first) % length or base > extent.limit_position:
            raise UsageError(
                f"{name} is no segment file of recording {recording.recording_id}: its segments begin every {length} bytes "
                f"from {first} on and it ends at {extent.limit_position}"
            )
        return max(base, extent.start_position), min(base + length, extent.limit_position)

    def _at_position(self, name: str, recording: Recording, extent: Extent) -> int:
        positions = self._options.starting_positions if name == "startingPositions" else self._options.ending_positions
        asked = positions.of(recording.recording_id)
        if asked == EARLIEST:
            return extent.start_position
        if asked == LATEST:
            return extent.limit_position
        position = int(asked)
        inside = min(max(position, extent.start_position), extent.limit_position)
        if inside != position:
            is_behind = position > extent.limit_position
            path = segment_path(self._options, recording, extent.limit_position if is_behind else position)
            file = f"{'which ends in' if is_behind else 'in'} {path}"
            lost(
                self._options,
                f"{name} {position} of recording {recording.recording_id}, {file}, is out of range, "
                f"{extent.start_position} to {extent.limit_position} can be read",
            )
        return inside

    def _at_time(self, recording: Recording, extent: Extent, when: int, *, is_end: bool) -> int:
        source = self._options.timestamp_from
        recording_id = recording.recording_id
        if source.kind == "reserved" and not self._folder.is_local:
            found: int = first_at(
                self._folder,
                recording_id,
                extent,
                when,
                partial(reserved_times, unit=source.unit),
                column="reserved_value",
            )
        elif source.kind == "reserved":
            found = self._folder.position_at_reserved(recording_id, when, unit=source.unit)
        elif source.kind == "sbe" and self._times_of is not None:
            found = first_at(self._folder, recording_id, extent, when, self._times_of)
        elif is_end:
            index = self._folder.time_index(recording_id)
            if not index.is_believed or index.run_count == index.rebuilt_count:
                raise UsageError(
                    f"endingTimestamp: recording {recording_id} of {self._options.path} has no time index of its own archive; "
                    f"name the source of messages' times by timestampFrom: reserved(ns) or sbe:<field>"
                )
            found = index_time_position(self._folder, recording_id, extent, when)
        else:
            found = self._folder.position_at(recording_id, when).position
        return min(max(found, extent.start_position), extent.limit_position)


def reserved_times(stamps: pa.Array, unit: str) -> pa.Array:
    """Times in ns of reserved values in a unit; 0, and what is too far from 1970, is none."""
    most = (2**63 - 1) // UNITS_NS[unit]
    is_time = pc.and_(pc.not_equal(stamps, 0), pc.and_(pc.less_equal(stamps, most), pc.greater_equal(stamps, -most)))
    return pc.multiply(pc.if_else(is_time, stamps, pa.scalar(None, pa.int64())), UNITS_NS[unit])


def index_time_position(folder: RecordingSource, recording_id: int, extent: Extent, when: int) -> int:
    """A position before which every message begins that is not certainly, by the time index, of ``when`` or later.

    So late by an interval of the index at most, as what the index calls the time of a byte is never later than its write.
    Where it knows nothing of a byte, the search takes the later half: a gap can only make it later.
    """
    low: int = extent.start_position
    high: int = extent.limit_position
    while low < high:
        middle = (low + high) // 2
        time = folder.index_times_at(recording_id, [middle])[0]
        if time.is_valid and time.value >= when:
            high = middle
        else:
            low = middle + 1
    if low == extent.limit_position:
        return low
    return folder.align(recording_id, low, extent.limit_position, back=True)


def clamped_ns(when: int) -> int:
    """The nearest time that an index can be searched for."""
    return min(max(when, 1 - 2**62), 2**62 - 1)


def first_at(
    folder: RecordingSource, recording_id: int, extent: Extent, when: int, times_of: TimesOf, *, column: str = "value"
) -> int:
    """Where the first message at or after ``when`` begins, the limit without one; messages without a time do not count.

    Exact where the times in a recording do not descend.
    """
    limit: int = extent.limit_position
    low: int = extent.start_position
    high = found = limit
    while high - low > SCAN_BYTES:
        middle = folder.align(recording_id, (low + high) // 2, high)
        if middle >= high:
            middle = folder.align(recording_id, (low + high) // 2, high, back=True)
            if middle <= low:
                break
        probe = _first_timed(folder, Range(recording_id, middle, high, limit), times_of, column)
        if probe is None:
            high = middle
        elif probe[1] >= when:
            found, high = probe[0], middle
        else:
            low = probe[0]
    first = _first_timed(folder, Range(recording_id, low, high, limit), times_of, column, at_least=when)
    return found if first is None else first[0]


def _first_timed(
    folder: RecordingSource, part: Range, times_of: TimesOf, column: str, *, at_least: int | None = None
) -> tuple[int, int] | None:
    """Position and time of the first message in a range that has a time, of ``at_least`` if given."""
    for batch in folder.read(
        part.recording_id,
        part.start,
        part.end,
        limit=part.limit,
        columns=("position", column),
        row_capacity=PROBE_ROWS,
    ):
        times = times_of(batch.column(column))
        valid = np.asarray(times.is_valid())
        numbers = times.fill_null(0).to_numpy()
        hits = np.flatnonzero(valid if at_least is None else valid & (numbers >= at_least))
        if len(hits):
            row = int(hits[0])
            return int(batch.column("position")[row].as_py()), int(numbers[row])
    return None


def tail_position(folder: RecordingSource, recording_id: int, extent: Extent, count: int) -> int:
    """Where the last ``count`` messages begin; the start if there are fewer."""
    limit = extent.limit_position
    if count == 0:
        return limit
    room = max(TAIL_BYTES, count * 64)
    while True:
        start = max(extent.start_position, limit - room)
        starts = [
            batch.column("position").to_numpy()
            for batch in folder.read(recording_id, start, limit, limit=limit, columns=("position",))
        ]
        found = np.concatenate(starts) if starts else np.empty(0, np.int64)
        if len(found) >= count:
            return int(found[-count])
        if start == extent.start_position:
            return int(start)
        room *= 4
