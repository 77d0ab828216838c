"""When a recording's messages were written: lookups in both directions in the time indexes of an archive's folder.

A message's time is the archive's clock at the write that made the message whole, and never less than the time of the
write before it; in nanoseconds since 1970-01-01 UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.check import check, nanoseconds
from aeron_spark._native.handle import Handle
from aeron_spark.errors import UsageError
from aeron_spark.types import NULL_VALUE, Position

UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePosition:
    """Message boundary from which to read messages at or after a time.

    `is_rebuilt`: known only from the modification times of segments, so early by up to a segment.
    """

    position: Position
    is_rebuilt: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeReach:
    """How far messages have their times of the time index: those that end at or before `position` have one, or none for good.

    `interval`: seconds; the archive writes the next entry within two of them after the bytes. 0: it writes none any more.
    """

    position: Position
    interval: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeIndexInfo:
    """Summary of a recording's time index; times in ns since 1970-01-01 UTC, None without entries.

    `is_believed` is False if there is none, or if an archive without time index support has extended the recording
    since. `broken_count` entries were torn or lost in a crash.
    """

    file_length: int
    run_count: int
    rebuilt_count: int
    broken_count: int
    indexed_bytes: int
    recording_bytes: int
    first_ns: int | None
    last_ns: int | None
    exists: bool
    is_believed: bool

    @property
    def has_times_of_writes(self) -> bool:
        """It holds times of the archive's clock, not only such as were made from the segments' modification times."""
        return self.is_believed and self.run_count != self.rebuilt_count


def time_ns(when: datetime | int) -> int:
    """Nanoseconds since 1970-01-01 UTC; a datetime without zone is local time."""
    if isinstance(when, datetime):
        try:
            delta = when.astimezone(UTC) - _EPOCH
        except (ValueError, OverflowError):
            raise UsageError(f"time {when} lies outside of the years 1 to 9999 in UTC") from None
        when = (delta.days * 86_400 + delta.seconds) * 10**9 + delta.microseconds * 1000
        when += getattr(delta, "nanoseconds", 0)  # of pandas
    if not -(2**62) < when < 2**62:
        raise UsageError(f"time {when} ns lies more than 146 years from 1970")
    return when


class Times(Handle):
    """The time lookups of a folder."""

    def position_at(self, recording_id: int, when: datetime | int) -> TimePosition:
        """Message boundary at or before the first message at or after `when`, never past it.

        Early by at most one interval of the archive's time index (10 ms or 64 KiB unless set otherwise). Returns the
        recording's limit if it has no such message yet.
        """
        raw = ffi.new("as_time_position *")
        with self._use() as folder:
            check(lib.as_folder_position_at_time(folder, recording_id, time_ns(when), raw))
        return TimePosition(position=Position(raw.position), is_rebuilt=raw.is_rebuilt)

    def position_at_reserved(
        self, recording_id: int, when: datetime | int, *, unit: str = "ns", skew: float = 1.0
    ) -> Position:
        """First message whose reserved value, a time in `unit` ("ns", "us", "ms") since 1970, is at or after `when`.

        Exact if publishers stamp messages in ascending order, with clocks at most `skew` seconds ahead of the
        archive's: also reads what was recorded within `skew` before `when`.
        """
        if unit not in UNITS_NS:
            raise UsageError(f"unit {unit!r} is none of {', '.join(UNITS_NS)}")
        out = ffi.new("int64_t *")
        with self._use() as folder:
            check(
                lib.as_folder_position_at_reserved_time(
                    folder, recording_id, time_ns(when), UNITS_NS[unit], min(nanoseconds(skew), 2**62), out
                )
            )
        return Position(out[0])

    def times_at(self, recording_id: int, positions: Sequence[int] | pa.Array) -> pa.TimestampArray:
        """When the bytes at `positions` were written: not later than the true time, and at most an interval earlier.

        Timestamps in ns, UTC. Ascending positions give non-decreasing times and are fast. The last byte of a message,
        `next_position - 1`, has the message's time.
        """
        return self._times_at(recording_id, positions)[0]

    def index_times_at(self, recording_id: int, positions: Sequence[int] | pa.Array) -> pa.TimestampArray:
        """As `times_at`, but null where the time index has no entry."""
        times, sources = self._times_at(recording_id, positions)
        known = sources == int(lib.AS_TIME_FROM_INDEX)
        if known.all():
            return times
        validity = pa.py_buffer(np.packbits(known, bitorder="little"))
        return pa.Array.from_buffers(times.type, len(times), [validity, times.buffers()[1]])

    def _times_at(
        self, recording_id: int, positions: Sequence[int] | pa.Array
    ) -> tuple[pa.TimestampArray, np.ndarray[Any, Any]]:
        asked = pa.array(positions, pa.int64())
        if asked.null_count:
            raise UsageError("positions must not be null")
        count = len(asked)
        # Arrow's own buffers, aligned and padded to the length that the C side writes.
        times, sources = pa.allocate_buffer(max(count, 1) * 8), np.zeros(max(count, 1), np.uint8)
        with self._use() as folder:
            check(
                lib.as_folder_times_at(
                    folder,
                    recording_id,
                    ffi.cast("int64_t *", asked.buffers()[1].address + asked.offset * 8) if count else ffi.NULL,
                    count,
                    ffi.cast("int64_t *", times.address),
                    ffi.cast("uint8_t *", ffi.from_buffer(sources)),
                )
            )
        return pa.Array.from_buffers(pa.timestamp("ns", "UTC"), count, [None, times]), sources[:count]

    def time_at(self, recording_id: int, position: int) -> int:
        """When the byte at `position` was written, in ns since 1970-01-01 UTC: as `times_at`."""
        return int(self.times_at(recording_id, [position]).cast(pa.int64())[0].as_py())

    def time_reach(self, recording_id: int) -> TimeReach:
        """How far the messages of an active recording have times: the index's entries come later than the bytes."""
        raw = ffi.new("as_time_reach *")
        with self._use() as folder:
            check(lib.as_folder_time_reach(folder, recording_id, raw))
        return TimeReach(position=Position(raw.position), interval=raw.interval_ns / 10**9)

    def time_index(self, recording_id: int) -> TimeIndexInfo:
        """Summary of the recording's time index."""
        raw: Any = ffi.new("as_time_index_info *")
        with self._use() as folder:
            check(lib.as_folder_time_index_info(folder, recording_id, raw))
        return TimeIndexInfo(
            file_length=raw.file_length,
            run_count=raw.run_count,
            rebuilt_count=raw.rebuilt_count,
            broken_count=raw.broken_count,
            indexed_bytes=raw.indexed_bytes,
            recording_bytes=raw.recording_bytes,
            first_ns=None if raw.first_ns == NULL_VALUE else raw.first_ns,
            last_ns=None if raw.last_ns == NULL_VALUE else raw.last_ns,
            exists=raw.exists,
            is_believed=raw.is_believed,
        )

    def rebuild_time_index(self, recording_id: int) -> None:
        """Rebuild the recording's time index, the only call of a folder that writes.

        Keeps existing entries; fills gaps from the modification times of segments, and marks them. UsageError while the
        recording is active.
        """
        with self._use() as folder:
            check(lib.as_folder_rebuild_time_index(folder, recording_id))
