"""Partitions by time: each has what all recordings have of one span, so that sorting each one sorts the whole read.

Which spans: those by which the partitions hold about equally many bytes, guessed from the times at some positions of each
range. The cuts are exact whatever the guess: a partition's messages are all earlier than those of the next one, provided
that the times in a recording do not descend.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from aeron_spark.archive.search import TimesOf, first_at, first_timed, index_time_position, reserved_times
from aeron_spark.archive.segments import Extent
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.errors import UsageError
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.planning.ranges import Range
from aeron_spark.spark.planning.sbe_times import times_of
from aeron_spark.types import Position

__all__ = ["time_slices"]


def time_slices(
    folder: RecordingSource, ranges: Sequence[Range], target: int, options: ReadOptions
) -> list[tuple[Range, ...]]:
    """Ranges in spans of ascending time, of about `target` bytes each.

    UsageError: a recording has no time index, and times are to come from it.
    """
    clock = _Clock(folder, options)
    cuts = _cuts(clock, ranges, target)
    edges = [[part.start, *(clock.position(part, when) for when in cuts), part.end] for part in ranges]
    # Where times descend against the promise, each message is read once all the same.
    spans = [list(itertools.pairwise(np.maximum.accumulate(of_one).tolist())) for of_one in edges]
    return [
        members
        for span in zip(*spans, strict=True)
        if (
            members := tuple(
                Range(part.recording_id, low, high, part.limit)
                for part, (low, high) in zip(ranges, span, strict=True)
                if low < high
            )
        )
    ]


def _cuts(clock: _Clock, ranges: Sequence[Range], target: int) -> list[int]:
    """Times between the spans, ascending."""
    count = max(1, -(-sum(part.end - part.start for part in ranges) // target))
    found = sorted(
        (when, (part.end - part.start) / count)
        for part in ranges
        for position in range(part.start, part.end, max(1, (part.end - part.start) // count))
        if (when := clock.time(part, position)) is not None
    )
    return sorted(set(_after_each(found, target)))


def _after_each(found: Sequence[tuple[int, float]], target: int) -> Iterator[int]:
    """The times before which another `target` bytes lie."""
    held = 0.0
    for when, size in found:
        if held >= target:
            yield when
            held = 0.0
        held += size


class _Clock:
    """Times and positions of a query's recordings, by its `timestampFrom`."""

    def __init__(self, folder: RecordingSource, options: ReadOptions) -> None:
        self._folder = folder
        self._path = options.path
        source = options.timestamp_from
        self._column = "reserved_value" if source.kind == "reserved" else "value"
        self._times: TimesOf | None = times_of(options)
        if source.kind == "reserved":
            self._times = partial(reserved_times, unit=source.unit)

    def time(self, part: Range, position: int) -> int | None:
        """Of the first message from there on, about."""
        if self._times is None:
            self._check_index(part.recording_id)
            time = self._folder.index_times_at(part.recording_id, [position])[0]
            return time.value if time.is_valid else None
        rest = Range(part.recording_id, self._boundary(part, position), part.end, part.limit)
        found = first_timed(self._folder, rest, self._times, self._column)
        return None if found is None else found[1]

    def position(self, part: Range, when: int) -> int:
        """Where the first message at or after a time begins, in the range."""
        extent = Extent(start_position=Position(part.start), limit_position=Position(part.limit), is_active=False)
        if self._times is None:
            found = index_time_position(self._folder, part.recording_id, extent, when)
        else:
            found = first_at(self._folder, part.recording_id, extent, when, self._times, column=self._column)
        return min(max(found, part.start), part.end)

    def _boundary(self, part: Range, position: int) -> int:
        return self._folder.align(part.recording_id, position, part.limit)

    def _check_index(self, recording_id: int) -> None:
        index = self._folder.time_index(recording_id)
        if not index.has_times_of_writes:
            raise UsageError(
                f"partitionBy=time: recording {recording_id} of {self._path} has no time index of its own archive; "
                f"name the source of messages' times by timestampFrom: reserved(ns) or sbe:<field>"
            )
