"""Message boundaries of a remote recording, used to cut it into ranges as `Folder` does for local ones.

A message never crosses a term, so every term begin is a boundary that is known without a read. Messages are read, from
the term's begin on, only where a range must end inside a term. Pure functions of the recorded bytes: the same arguments
always give the same answer. The cuts may differ from those of `Folder`; the rows are the same.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.segments import Choice, Extent, RecordingColumns
from aeron_spark.archive.times import TimeIndexInfo, TimePosition, TimeReach
from aeron_spark.batch import Batches
from aeron_spark.closing import Closing
from aeron_spark.errors import UsageError
from aeron_spark.types import NULL_VALUE, Position

__all__ = ["TermCuts"]

_BOUNDARIES = ("position", "next_position")


class TermCuts(Closing):
    """`advance`, `align`, `split` and the list as arrays, based on `recordings`, `recording`, `extent` and `read`."""

    is_local = False
    _listed: Sequence[Recording] = ()

    def close(self) -> None:
        """No effect: nothing is open between calls."""

    @abstractmethod
    def recordings(self) -> list[Recording]:
        """Every recording, by id."""

    def hidden_count(self) -> int:
        """0: neither an archive nor a store lists recordings that are marked INVALID."""
        return 0

    def without_segments(self) -> list[Recording]:
        """Empty by default; sources that detect such recordings override it."""
        return []

    def columns(self) -> RecordingColumns:
        """The list as arrays, in a folder's format; `extents` must be called for recordings without a stop position."""
        self._listed = self.recordings()
        return RecordingColumns(
            np.array([one.recording_id for one in self._listed], np.int64),
            np.array([_revision(one) for one in self._listed], np.int64),
            np.array([one.start_position for one in self._listed], np.int64),
            np.array([self._known_stop(one) for one in self._listed], np.int64),
        )

    def _known_stop(self, recording: Recording) -> int:
        """The limit position where it is known without a request, else -1."""
        return NULL_VALUE if recording.stop_position is None else recording.stop_position

    def recording_at(self, index: int) -> Recording:
        """The recording at an index of the last `columns()`."""
        return self._listed[index]

    def extents(self, recording_ids: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Start and limit positions of recordings, as `extent` gives them one by one."""
        found = [self.extent(recording_id) for recording_id in recording_ids.tolist()]
        starts = np.array([extent.start_position for extent in found], np.int64)
        return starts, np.array([extent.limit_position for extent in found], np.int64)

    def fingerprints(
        self,
        recording_ids: np.ndarray[Any, Any],
        positions: np.ndarray[Any, Any],  # noqa: ARG002 - as a folder's
    ) -> np.ndarray[Any, Any]:
        """No fingerprints: fetching the frame before a position costs more than the check is worth."""
        return np.zeros(len(recording_ids), np.int64)

    @abstractmethod
    def recording(self, recording_id: int) -> Recording:
        """One recording."""

    @abstractmethod
    def extent(self, recording_id: int) -> Extent:
        """The range that can be read now."""

    @abstractmethod
    def read(
        self,
        recording_id: int,
        start: int | None = None,
        end: int | None = None,
        *,
        limit: int | None = None,
        **choice: Unpack[Choice],
    ) -> Batches:
        """Messages that begin in [start, end); `start` is a boundary."""

    @abstractmethod
    def begins_message(self, recording_id: int, position: int) -> bool:
        """Whether a message begins exactly at `position`: a quick check, False where it is unknown."""

    def position_at(self, *_: object, **__: object) -> TimePosition:
        """UsageError: the time index is a file beside the segments, which this source does not have."""
        raise _no_times()

    def position_at_reserved(self, *_: object, **__: object) -> Position:
        """As `position_at`."""
        raise _no_times()

    def times_at(self, *_: object, **__: object) -> pa.TimestampArray:
        """As `position_at`."""
        raise _no_times()

    index_times_at = times_at

    def time_reach(self, *_: object, **__: object) -> TimeReach:
        """As `position_at`."""
        raise _no_times()

    def time_index(self, *_: object, **__: object) -> TimeIndexInfo:
        """As `position_at`."""
        raise _no_times()

    def align(self, recording_id: int, position: int, limit: int, *, back: bool = False) -> Position:
        """Message boundary at or after `position`, or with `back` at or before it, inside [start_position, limit].

        If the last message is incomplete at `limit`, the boundary before that message.
        """
        first = self.extent(recording_id).start_position
        term_length = self.recording(recording_id).term_buffer_length
        position = max(first, min(position, limit))
        base = position - position % term_length
        if position in (first, base) or (position < limit and self.begins_message(recording_id, position)):
            return Position(position)
        low = max(base, first)
        high = min(limit, base + term_length)
        last = low
        for begin, end in self._messages(recording_id, low, high):
            for boundary in (begin, end):
                if boundary >= position:
                    return Position(last if back and boundary > position else boundary)
                last = boundary
        return Position(high if high % term_length == 0 and not back else last)

    def advance(
        self,
        recording_id: int,
        start: int,
        limit: int,
        *,
        max_bytes: int | None = None,
        max_messages: int | None = None,
    ) -> Position:
        """A message boundary in [start, limit] within `max_bytes` and `max_messages`; `start` is a boundary.

        With a byte bound, prefers a term's begin to a later boundary that would require a read. Advances by at least
        one message when a whole one lies before `limit`.
        """
        term_length = self.recording(recording_id).term_buffer_length
        target = limit if max_bytes is None else min(limit, start + max_bytes)
        base = target - target % term_length
        low = start
        if max_messages is None and base > start:
            if base == target or target < limit:
                return Position(base)
            low = base
        reached, count = low, 0
        while low < limit:
            high = min(limit, low - low % term_length + term_length)
            for begin, end in self._messages(recording_id, low, high):
                # Padding before a message belongs to the part before it; a message is passed whole or not at all.
                over = end > target or (max_messages is not None and count >= max_messages)
                if over and reached > start:
                    return Position(begin if begin <= target else reached)
                reached, count = end, count + 1
                if over:
                    return Position(reached)
            if high % term_length != 0 or high > target:
                break
            low = reached = high
        return Position(reached)

    def split(self, recording_id: int, start: int, end: int, target_bytes: int) -> list[Position]:
        """Starts of ranges of about `target_bytes`, at least one term each, that together cover [start, end)."""
        term_length = self.recording(recording_id).term_buffer_length
        starts: list[Position] = []
        cut = start
        while cut < end:
            starts.append(Position(cut))
            wanted = cut + target_bytes
            base = wanted - wanted % term_length
            cut = base if base > cut else cut - cut % term_length + term_length
        return starts

    def _messages(self, recording_id: int, low: int, high: int) -> Iterator[tuple[int, int]]:
        batches = self.read(recording_id, low, high, limit=high, columns=_BOUNDARIES, row_capacity=4096)
        for batch in batches:
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _revision(recording: Recording) -> int:
    """Changes when the recording differs in more than positions and stop time."""
    return hash(
        (
            recording.start_timestamp_ms,
            recording.initial_term_id,
            recording.term_buffer_length,
            recording.segment_file_length,
            recording.session_id,
            recording.stream_id,
            recording.stripped_channel,
            recording.original_channel,
            recording.source_identity,
        )
    )


def _no_times() -> UsageError:
    return UsageError(
        "the time index is found in the archive's own folder only: read with access=segments, or name the source of messages' "
        "times by timestampFrom: reserved(ns) or sbe:<field>"
    )
