"""Micro-batches by position. One object lives on the driver for the life of the query and does all planning.

Spark's habits this copes with (spec 09 section 3): the initial offset is asked for twice and after a crash inside batch 0
once more; offsets are compared as text; nothing checks that they advance; partitions are planned again on replay; commits
come one batch late; when idle, the latest offset is polled many times a second.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

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

from aeron_spark.archive.segments import Extent, Folder, Recording
from aeron_spark.errors import AeronError, DataLossError, UsageError
from aeron_spark.spark.bounds import Bounds
from aeron_spark.spark.loss import LOG, goes_on, lost, segment_path
from aeron_spark.spark.offsets import Offset
from aeron_spark.spark.options import LATEST, ReadOptions
from aeron_spark.spark.plan import Advance, Budget, Range, Slice, share_out
from aeron_spark.spark.reader import RangesPartition, partition_ranges, read_partition
from aeron_spark.spark.rows import Rows
from aeron_spark.spark.sbe_values import times_of
from aeron_spark.spark.selection import check_asked_for, identity_of, open_folder, select_recordings

__all__ = ["AeronStreamReader", "RefusedStream"]

#: Bytes of one micro-batch where no option says otherwise: about a second of work for a task slot.
DEFAULT_MAX_BYTES_PER_TRIGGER = 256 << 20
#: Spark polls an idle source 60 to 90 times a second; looking at the archive more often than this helps nobody.
REFRESH_INTERVAL_SECONDS = 0.01
#: What a look costs grows with the number of recordings. The next one waits this many times as long, but not longer than a
#: second: an idle query must not keep a core busy.
LOOK_PAUSE_FACTOR = 10
MAX_REFRESH_INTERVAL_SECONDS = 1.0


def _advance_in(folder: Folder, options: ReadOptions) -> Advance:
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
class _Look:
    """The chosen recordings at one moment, by id."""

    recordings: Mapping[int, Recording]
    extents: Mapping[int, Extent]
    identities: Mapping[int, int]

    def limits(self) -> dict[int, int]:
        """How far each goes."""
        return {recording_id: extent.limit_position for recording_id, extent in self.extents.items()}


@dataclass(frozen=True, slots=True)
class _Answer:
    """What ``latestOffset`` said, and to what: when idle, Spark asks the same again and again."""

    look: _Look
    start: dict[str, object]
    limit: ReadLimit
    latest: dict[str, object]


class AeronStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches of the chosen recordings; recordings that appear later join from their start."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._rows = Rows(options, schema)
        self._folder: Folder | None = None
        self._last_look: _Look | None = None
        self._look_again_at = 0.0
        self._answer: _Answer | None = None
        self._reported: tuple[_Look, dict[str, object]] | None = None
        self._initial: dict[str, object] | None = None
        self._pinned_limits: Mapping[int, int] | None = None
        self._waited: Mapping[int, int] = {}
        self._batch_at: float | None = None

    def __getstate__(self) -> dict[str, object]:
        """Tasks get options and what makes rows; the open folder stays on the driver."""
        return {"_options": self._options, "_rows": self._rows}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    # -- looking at the archive ------------------------------------------------------------------------------------

    def _opened(self) -> Folder:
        if self._folder is None:
            self._folder = open_folder(self._options)
        return self._folder

    def _look(self, *, fresh: bool) -> _Look:
        now = time.monotonic()
        if self._last_look is not None and not fresh and now < self._look_again_at:
            return self._last_look
        folder = self._opened()
        folder.refresh()
        recordings = select_recordings(folder, self._options, allow_none=True)
        look = _Look(
            recordings={recording.recording_id: recording for recording in recordings},
            extents={recording.recording_id: folder.extent(recording.recording_id) for recording in recordings},
            identities={recording.recording_id: identity_of(recording) for recording in recordings},
        )
        pause = LOOK_PAUSE_FACTOR * (time.monotonic() - now)
        self._last_look = look
        self._look_again_at = now + min(max(pause, REFRESH_INTERVAL_SECONDS), MAX_REFRESH_INTERVAL_SECONDS)
        return look

    # -- Spark's calls ---------------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, object]:
        """Resolved once: Spark asks twice, and "latest" must not move in between."""
        if self._initial is None:
            look = self._look(fresh=True)
            if self._options.recording_ids is not None:
                select_recordings(self._opened(), self._options, allow_none=False)
            check_asked_for(self._options, look.extents)
            bounds = Bounds(self._opened(), self._options, times_of(self._options))
            starts: dict[int, int] = {}
            for recording_id, extent in look.extents.items():
                is_latest = self._options.starting_positions.of(recording_id) == LATEST
                position = bounds.start(look.recordings[recording_id], extent)
                starts[recording_id] = self._opened().align(
                    recording_id, position, extent.limit_position, back=is_latest
                )
                LOG.info("recording %d of %s: begins at %d", recording_id, self._options.path, starts[recording_id])
            self._initial = Offset(positions=starts, starts=starts, identities=look.identities).to_json_dict()
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        """The main limit; ``latestOffset`` applies the other one as well."""
        if self._options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self._options.max_bytes_per_trigger)
        if self._options.max_messages_per_trigger is not None:
            return ReadMaxRows(self._options.max_messages_per_trigger)
        return ReadMaxBytes(DEFAULT_MAX_BYTES_PER_TRIGGER)

    def latestOffset(self, start: dict[str, object], limit: ReadLimit) -> dict[str, object]:
        """The end of the next micro-batch: a message boundary per recording, within the limit."""
        look = self._look(fresh=False)
        answer = self._answer
        if answer is not None and answer.look is look and answer.start == start and answer.limit == limit:
            return answer.latest
        begin = self._known(Offset.from_json_dict(start), look)
        slices: list[Slice] = []
        starts = dict(begin.starts)
        identities = dict(begin.identities)
        for recording_id, extent in look.extents.items():
            if recording_id not in begin.positions:
                if self._pinned_limits is not None and recording_id not in self._pinned_limits:
                    continue
                starts[recording_id] = extent.start_position
                identities[recording_id] = look.identities[recording_id]
            asked: int = begin.positions.get(recording_id, extent.start_position)
            position = self._available(look.recordings[recording_id], asked, extent)
            end: int = extent.limit_position
            if self._pinned_limits is not None:
                end = min(end, self._pinned_limits.get(recording_id, position))
            slices.append(Slice(recording_id=recording_id, begin=position, limit=max(end, position)))
        if self._shall_wait(slices, limit):
            return start
        ends = share_out(slices, self._budget(limit), _advance_in(self._opened(), self._options), self._waited)
        reached = Offset(positions=ends, starts=starts, identities=identities)
        if self._options.fail_on_data_loss:
            begin.check_advances_to(reached)
        self._waited = {
            part.recording_id: self._waited.get(part.recording_id, 0) + 1
            for part in slices
            if part.backlog and ends[part.recording_id] == part.begin
        }
        latest = reached.to_json_dict()
        if latest != start:
            self._batch_at = time.monotonic()
            for recording_id in sorted(reached.positions.keys() - begin.positions.keys()):
                LOG.info("recording %d of %s joins at %d", recording_id, self._options.path, starts[recording_id])
        self._answer = _Answer(look, start, limit, latest)
        return latest

    def reportLatestOffset(self) -> dict[str, object] | None:
        """How far the recordings go now: the lag is the distance from the batch's end offset."""
        look = self._look(fresh=False)
        if self._reported is None or self._reported[0] is not look:
            starts = {recording_id: extent.start_position for recording_id, extent in look.extents.items()}
            reported = Offset(positions=look.limits(), starts=starts, identities=look.identities)
            self._reported = (look, reported.to_json_dict())
        return self._reported[1]

    def prepareForTriggerAvailableNow(self) -> None:
        """Pins the end once: what is recorded later is not of this run."""
        self._pinned_limits = self._look(fresh=True).limits()

    def partitions(self, start: dict[str, object], end: dict[str, object]) -> Sequence[InputPartition]:
        """A function of the two offsets, the options and the recorded bytes: a replayed batch reads the same rows."""
        first = Offset.from_json_dict(start)
        look = self._look(fresh=True)
        last = self._known(Offset.from_json_dict(end), look)
        if self._options.fail_on_data_loss:
            first.check_advances_to(last)
        ranges: list[Range] = []
        for recording_id, position in last.positions.items():
            begin = first.begin_of(recording_id, last)
            if begin < position:
                recording, extent = look.recordings[recording_id], look.extents[recording_id]
                low = self._available(recording, begin, extent)
                high = min(position, self._available(recording, position, extent))
                if low == begin != last.starts[recording_id] and low < high:
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
        """Closes the folder; Spark seldom calls this, the process ending does as well."""
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
        """Less than ``minBytesPerTrigger`` is there, and ``maxTriggerDelay`` is not over. A run that ends waits for nothing."""
        least = self._options.min_bytes_per_trigger
        if least is None or self._batch_at is None or self._pinned_limits is not None:
            return False
        if isinstance(limit, ReadAllAvailable) or sum(part.backlog for part in slices) >= least:
            return False
        return time.monotonic() - self._batch_at < self._options.max_trigger_delay

    def _known(self, offset: Offset, look: _Look) -> Offset:
        """The offset without recordings that are gone, if that may be."""
        gone = [recording_id for recording_id in offset.identities if recording_id not in look.identities]
        for recording_id in gone:
            lost(
                self._options,
                f"recording {recording_id} of the checkpoint, read up to {offset.positions[recording_id]}, is not in archive "
                f"{self._options.path} any more (or no longer matches the options); it was purged, or the path is another "
                f"archive's: restore it, or begin with a new checkpoint folder",
            )
        for recording_id, identity in offset.identities.items():
            if recording_id not in gone and look.identities[recording_id] != identity:
                raise UsageError(
                    f"recording {recording_id} in archive {self._options.path} is not the one the checkpoint was made "
                    f"from; give the archive this query began with, or a new checkpoint folder"
                )
        return offset.without(gone) if gone else offset

    def _available(self, recording: Recording, position: int, extent: Extent) -> int:
        """The position, or the nearest that is there, if that may be."""
        recording_id, path = recording.recording_id, segment_path(self._options, recording, position)
        if position < extent.start_position:
            lost(
                self._options,
                f"recording {recording_id} of {self._options.path}: position {position}, in {path}, is wanted, but the "
                f"recording now starts at {extent.start_position} and ends at {extent.limit_position}: "
                f"{extent.start_position - position} bytes were purged before they were read; restore its segments, or begin "
                f"with a new checkpoint folder",
            )
            return extent.start_position
        if position > extent.limit_position:
            lost(
                self._options,
                f"recording {recording_id} of {self._options.path}: position {position}, in {path}, was read before, but the "
                f"recording now ends at {extent.limit_position}: it was truncated, or the "
                f"archive lost its tail in a crash; begin with a new checkpoint folder",
            )
            return extent.limit_position
        return position

    def _boundary(self, recording_id: int, begin: int, end: int) -> int:
        """The position, if a message begins there, as one must."""
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


class RefusedStream(DataSourceStreamReader):
    """Tells why there is no reader, when it is first asked: an error at its making Spark hides behind one of its own."""

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
