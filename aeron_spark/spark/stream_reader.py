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

from aeron_spark.archive.segments import Extent, Folder
from aeron_spark.errors import DataLossError, UsageError
from aeron_spark.spark.offsets import Offset
from aeron_spark.spark.options import LATEST, ReadOptions
from aeron_spark.spark.plan import Advance, Budget, Slice, share_out
from aeron_spark.spark.reader import RangesPartition, partition_ranges, read_partition
from aeron_spark.spark.selection import (
    check_asked_for,
    identity_of,
    open_folder,
    resolve_position,
    select_recordings,
)

__all__ = ["AeronStreamReader"]

#: Bytes of one micro-batch where no option says otherwise: about a second of work for a task slot.
DEFAULT_MAX_BYTES_PER_TRIGGER = 256 << 20
#: Spark polls an idle source 60 to 90 times a second; looking at the archive more often than this helps nobody.
REFRESH_INTERVAL_SECONDS = 0.01
#: What a look costs grows with the number of recordings. The next one waits this many times as long, but not longer than a
#: second: an idle query must not keep a core busy.
LOOK_PAUSE_FACTOR = 10
MAX_REFRESH_INTERVAL_SECONDS = 1.0


def _advance_in(folder: Folder) -> Advance:
    def advance(recording_id: int, begin: int, limit: int, max_bytes: int | None, max_messages: int | None) -> int:
        return folder.advance(recording_id, begin, limit, max_bytes=max_bytes, max_messages=max_messages)

    return advance


@dataclass(frozen=True, slots=True)
class _Look:
    """The chosen recordings at one moment, by id."""

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
        self._schema = schema
        self._folder: Folder | None = None
        self._last_look: _Look | None = None
        self._look_again_at = 0.0
        self._answer: _Answer | None = None
        self._reported: tuple[_Look, dict[str, object]] | None = None
        self._initial: dict[str, object] | None = None
        self._pinned_limits: Mapping[int, int] | None = None

    def __getstate__(self) -> dict[str, object]:
        """Tasks get options and schema; the open folder stays on the driver."""
        return {"_options": self._options, "_schema": self._schema}

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
            starts: dict[int, int] = {}
            for recording_id, extent in look.extents.items():
                asked = self._options.starting_positions.of(recording_id)
                position = resolve_position("startingPositions", asked, recording_id, extent)
                starts[recording_id] = self._opened().align(
                    recording_id, position, extent.limit_position, back=asked == LATEST
                )
            check_asked_for(self._options, starts)
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
        begin = Offset.from_json_dict(start)
        self._check_known(begin, look)
        slices: list[Slice] = []
        starts = dict(begin.starts)
        identities = dict(begin.identities)
        for recording_id, extent in look.extents.items():
            if recording_id not in begin.positions:
                if self._pinned_limits is not None and recording_id not in self._pinned_limits:
                    continue
                starts[recording_id] = extent.start_position
                identities[recording_id] = look.identities[recording_id]
            position: int = begin.positions.get(recording_id, extent.start_position)
            self._check_available(recording_id, position, extent)
            end: int = extent.limit_position
            if self._pinned_limits is not None:
                end = min(end, self._pinned_limits.get(recording_id, position))
            slices.append(Slice(recording_id=recording_id, begin=position, limit=max(end, position)))
        ends = share_out(slices, self._budget(limit), _advance_in(self._opened()))
        reached = Offset(positions=ends, starts=starts, identities=identities)
        begin.check_advances_to(reached)
        latest = reached.to_json_dict()
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
        last = Offset.from_json_dict(end)
        first.check_advances_to(last)
        look = self._look(fresh=True)
        self._check_known(last, look)
        ranges: dict[int, tuple[int, int]] = {}
        for recording_id, position in last.positions.items():
            begin = first.begin_of(recording_id, last)
            if begin < position:
                self._check_available(recording_id, begin, look.extents[recording_id])
                self._check_available(recording_id, position, look.extents[recording_id])
                if begin != last.starts[recording_id]:
                    self._check_boundary(recording_id, begin, position)
            ranges[recording_id] = (begin, position)
        return partition_ranges(self._opened(), ranges, {key: high for key, (_, high) in ranges.items()}, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a task."""
        return read_partition(cast("RangesPartition", partition), self._options, self._schema)

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

    def _check_known(self, offset: Offset, look: _Look) -> None:
        for recording_id, identity in offset.identities.items():
            if recording_id not in look.identities:
                raise DataLossError(
                    f"recording {recording_id} of the checkpoint is not in archive {self._options.path} any more (or no longer "
                    f"matches the options); it was purged, or the path is another archive's: restore it, or begin with a new "
                    f"checkpoint folder"
                )
            if look.identities[recording_id] != identity:
                raise UsageError(
                    f"recording {recording_id} in archive {self._options.path} is not the one the checkpoint was made "
                    f"from; give the archive this query began with, or a new checkpoint folder"
                )

    def _check_available(self, recording_id: int, position: int, extent: Extent) -> None:
        if position < extent.start_position:
            raise DataLossError(
                f"recording {recording_id} of {self._options.path}: position {position} is wanted, but the recording now "
                f"starts at {extent.start_position}: {extent.start_position - position} bytes were purged before they were "
                f"read; restore its segments, or begin with a new checkpoint folder"
            )
        if position > extent.limit_position:
            raise DataLossError(
                f"recording {recording_id} of {self._options.path}: position {position} was read before, but the recording "
                f"now ends at {extent.limit_position}: it was truncated, or the archive lost its tail in a crash; begin with "
                f"a new checkpoint folder"
            )

    def _check_boundary(self, recording_id: int, begin: int, end: int) -> None:
        if self._opened().align(recording_id, begin, end) != begin:
            raise DataLossError(
                f"recording {recording_id} of {self._options.path}: no message begins at position {begin} any more, where the "
                f"batch before ended: the recording was truncated and then extended; begin with a new checkpoint folder"
            )
