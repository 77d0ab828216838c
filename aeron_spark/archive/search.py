"""Searches in a recording: positions of a time, by the time index or by the messages' own times, and the last messages.

Every search answers with a position that is never past a message that was asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aeron_spark.archive.ranges import Range
from aeron_spark.archive.segments import Extent
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.archive.times import UNITS_NS
from aeron_spark.errors import DataLossError

__all__ = ["TimesOf", "clamped_ns", "first_at", "first_timed", "index_time_position", "reserved_times", "tail_position"]

#: Times of a batch's messages in ns since 1970-01-01 UTC, null where a message has none.
TimesOf = Callable[[pa.Array], pa.Array]

#: A search by time reads the last range of this size from end to end.
SCAN_BYTES = 256 << 10
#: Messages that a probe of a search reads at a time.
PROBE_ROWS = 256
#: The smallest range that is searched for the last messages.
TAIL_BYTES = 64 << 10


def reserved_times(stamps: pa.Array, unit: str) -> pa.Array:
    """Times in ns of reserved values in a unit; 0, and what is too far from 1970, is none."""
    import pyarrow.compute as pc  # noqa: PLC0415 - it loads for longer than most searches take

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
        probe = first_timed(folder, Range(recording_id, middle, high, limit), times_of, column)
        if probe is None:
            high = middle
        elif probe[1] >= when:
            found, high = probe[0], middle
        else:
            low = probe[0]
    first = first_timed(folder, Range(recording_id, low, high, limit), times_of, column, at_least=when)
    return found if first is None else first[0]


def first_timed(
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


def tail_position(
    folder: RecordingSource,
    recording_id: int,
    extent: Extent,
    count: int,
    *,
    end: int | None = None,
    leaves_out: bool = False,
) -> int:
    """Where the last ``count`` messages begin; the start if there are fewer.

    ``end``: of the messages that begin before it. ``leaves_out``: what cannot be read does not count.
    DataLossError for it otherwise.
    """
    limit = extent.limit_position
    end = limit if end is None else end
    if count == 0:
        return end
    room = max(TAIL_BYTES, count * 64)
    while True:
        start = max(extent.start_position, end - room)
        found = _begins(folder, Range(recording_id, start, end, limit), leaves_out=leaves_out)
        if len(found) >= count:
            return int(found[-count])
        if start == extent.start_position:
            return int(start)
        room *= 4


def _begins(folder: RecordingSource, part: Range, *, leaves_out: bool) -> npt.NDArray[np.int64]:
    """Where the messages of a range begin."""
    begins = [np.empty(0, np.int64)]
    try:
        for batch in folder.read(part.recording_id, part.start, part.end, limit=part.limit, columns=("position",)):
            begins.append(batch.column("position").to_numpy())  # noqa: PERF401 - those before what cannot be read stay
    except DataLossError:
        if not leaves_out:
            raise
        # Messages never cross terms, so only one with broken bytes ends before its end.
        term_length = folder.recording(part.recording_id).term_buffer_length
        middle = (part.start + part.end) // 2 // term_length * term_length
        border = middle if middle > part.start else (part.start // term_length + 1) * term_length
        if border < part.end:
            halves = replace(part, end=border), replace(part, start=border)
            begins = [_begins(folder, half, leaves_out=True) for half in halves]
    return np.concatenate(begins)
