"""Where reading a recording begins and ends: words, positions, times, the last n messages; and ranges of segment files.

Everything given is accepted where it lies and moved to a message boundary, never past a message that was asked for.
"""

from __future__ import annotations

from functools import partial

from aeron_spark.archive.search import TimesOf, first_at, index_time_position, reserved_times, tail_position
from aeron_spark.archive.segments import Extent, Recording
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.errors import DataLossError, UsageError
from aeron_spark.spark.log import LOG, facts
from aeron_spark.spark.planning.data_loss import goes_on, lost, segment_path
from aeron_spark.spark.planning.options import EARLIEST, LATEST, ReadOptions
from aeron_spark.spark.planning.ranges import Range

__all__ = ["Bounds"]


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
            return tail_position(
                self._folder, recording.recording_id, extent, options.tail, leaves_out=goes_on(options)
            )
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
                recording_id=recording.recording_id,
                position=base,
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
                recording_id=recording.recording_id,
                position=position,
            )
        return inside

    def _at_time(self, recording: Recording, extent: Extent, when: int, *, is_end: bool) -> int:
        if extent.start_position == extent.limit_position:
            return extent.start_position
        try:
            found = self._found_at(recording, extent, when, is_end=is_end)
        except DataLossError:
            if not goes_on(self._options):
                raise
            # Nothing that is asked for is left out; the task finds out what can be read.
            option, taken = ("endingTimestamp", "end") if is_end else ("startingTimestamp", "start")
            LOG.warning(
                "%s: recording %d of %s cannot be read where that time is searched: it is read from or to its %s",
                option, recording.recording_id, self._options.path, taken,
                extra=facts(path=self._options.path, recording=recording.recording_id),
            )  # fmt: skip
            return extent.limit_position if is_end else extent.start_position
        return min(max(found, extent.start_position), extent.limit_position)

    def _found_at(self, recording: Recording, extent: Extent, when: int, *, is_end: bool) -> int:
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
            if extent.is_active and index.is_believed and index.run_count == 0:
                # Its first messages were written a moment ago, and the index of them was not yet.
                return extent.limit_position
            if not index.has_times_of_writes:
                raise UsageError(
                    f"endingTimestamp: recording {recording_id} of {self._options.path} has no time index of its own archive; "
                    f"name the source of messages' times by timestampFrom: reserved(ns) or sbe:<field>"
                )
            found = index_time_position(self._folder, recording_id, extent, when)
        else:
            found = self._folder.position_at(recording_id, when).position
        return found
