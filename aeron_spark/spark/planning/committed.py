"""Planning for ``isolation=read_committed``: the ledger's entries, the ranges that they name, and what a micro-batch takes.

A stream's offset is a position in the ledger, not in the recordings. The order of entries never changes, but ranges of a
recording can be committed in another order than they were published in. A micro-batch takes whole entries, so it never shows
a part of what was committed together.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from uuid import UUID

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
)

from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.errors import DataLossError, UsageError
from aeron_spark.spark.ledger import Entry, OffsetEntry, PublishedRange, first_of_each, is_ledger, read_entries
from aeron_spark.spark.planning.data_loss import LOG
from aeron_spark.spark.planning.offsets import Offset
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.planning.ranges import Range
from aeron_spark.spark.planning.selection import identity_of, is_chosen, open_folder, select_recordings

__all__ = [
    "EntryBudget",
    "LedgerView",
    "check_isolation",
    "check_ledger",
    "chosen_recordings",
    "committed_ranges",
    "warn_without_ledger",
]

#: Spark polls an idle stream 60 to 90 times a second. A refresh of a local archive costs little more than reading the catalog;
#: after an expensive one the next waits this many times as long, at most a second.
REFRESH_INTERVAL_SECONDS = 0.02
REFRESH_PAUSE_FACTOR = 10
MAX_REFRESH_INTERVAL_SECONDS = 1.0


def check_isolation(options: ReadOptions) -> None:
    """UsageError for options that cut into entries."""
    if options.starting_positions.by_recording or options.ending_positions.by_recording:
        raise UsageError(
            "isolation=read_committed reads whole entries of the ledger: startingPositions may be earliest or latest, "
            "endingPositions has no meaning"
        )
    cutting = {
        "startingTimestamp": options.starting_timestamp,
        "endingTimestamp": options.ending_timestamp,
        "tail": options.tail,
        "minBytesPerTrigger": options.min_bytes_per_trigger,
        "filterPushdown": options.filter_pushdown or None,
        "segment files": options.segments,
    }
    for name, value in cutting.items():
        if value is not None:
            raise UsageError(f"isolation=read_committed reads whole entries of the ledger: {name} cannot be given")
    if options.skip_corruption or not options.fail_on_data_loss:
        raise UsageError(
            "isolation=read_committed leaves nothing out: onCorruption=skip and failOnDataLoss=false cannot be given"
        )


def chosen_recordings(folder: RecordingSource, options: ReadOptions) -> dict[int, Recording]:
    """The recordings that the options choose, without the ledger's own."""
    found = select_recordings(folder, options, allow_none=True)
    return {recording.recording_id: recording for recording in found if not is_ledger(recording)}


def check_ledger(folder: RecordingSource) -> None:
    """Raises for a store without the ledger's segments, which would seem to have nothing committed."""
    for recording in filter(is_ledger, folder.without_segments()):
        raise DataLossError(
            f"the ledger, recording {recording.recording_id}, has no segment in {folder.path}: put its segment files there, "
            f"beside those of the recordings that it names"
        )


def warn_without_ledger(folder: RecordingSource, options: ReadOptions) -> None:
    """Logs a warning for an archive without a ledger: it has no committed rows."""
    if not any(map(is_ledger, folder.recordings())):
        LOG.warning(
            "%s has no ledger: nothing was written there with guarantee=exactly-once, so isolation=read_committed has no rows",
            options.path,
        )


def committed_ranges(
    folder: RecordingSource, entries: Iterable[Entry], options: ReadOptions, *, purged_is_loss: bool
) -> Iterator[Range]:
    """The committed ranges of the chosen recordings; DataLossError where the archive does not hold one any more.

    The folder's catalog must have been read after the entries, else it may lack a recording that they name.
    """
    absent = {recording.recording_id for recording in folder.without_segments() if is_chosen(recording, options)}
    chosen = chosen_recordings(folder, options)
    known = {recording.recording_id for recording in folder.recordings()}
    for entry in entries:
        for part in entry.ranges:
            if part.recording_id in absent:
                raise DataLossError(
                    f"recording {part.recording_id}, in which [{part.begin}, {part.end}) was committed, has no segment in "
                    f"{folder.path}: put its segment files there"
                )
            may_be_chosen = part.recording_id in (options.recording_ids or [part.recording_id])
            may_be_chosen = may_be_chosen and options.stream_id in (None, part.stream_id)
            if part.recording_id not in known and purged_is_loss and may_be_chosen:
                raise DataLossError(
                    f"recording {part.recording_id} of {folder.path}, in which [{part.begin}, {part.end}) was committed, is "
                    f"gone: it was purged before it was read"
                )
            recording = chosen.get(part.recording_id)
            if recording is None:
                continue
            if identity_of(recording) != part.identity:
                raise DataLossError(
                    f"recording {part.recording_id} of {folder.path} is not the one that the ledger names: the folder holds "
                    f"the ledger of another archive"
                )
            extent = folder.extent(part.recording_id)
            if part.end > extent.limit_position:
                raise DataLossError(
                    f"recording {part.recording_id} of {folder.path}: [{part.begin}, {part.end}) was committed, but the "
                    f"recording now ends at {extent.limit_position}: it was truncated, or the archive lost its tail in a "
                    f"crash; write with syncLevel=1 where machines lose power"
                )
            # The catalog knows what an archive purged; anything else that a store lacks is missing.
            is_missing = max(part.begin, recording.start_position) < min(part.end, extent.start_position)
            if part.begin < extent.start_position and (purged_is_loss or is_missing):
                raise DataLossError(
                    f"recording {part.recording_id} of {folder.path}: [{part.begin}, {part.end}) was committed, but the "
                    f"recording now starts at {extent.start_position}: bytes were purged before they were read, or not moved"
                )
            begin = max(part.begin, extent.start_position)
            if begin < part.end:
                yield Range(part.recording_id, begin, part.end, part.end)


class LedgerView:
    """The ledger as far as it was read: entries that count, and how far each of its recordings goes."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._seen: set[tuple[UUID, int]] = set()
        self._refresh_at = 0.0
        self.folder = open_folder(options)
        self.entries: list[OffsetEntry] = []
        self.positions: dict[int, int] = {}
        self.starts: dict[int, int] = {}
        self.identities: dict[int, int] = {}

    def refresh(self, *, fresh: bool) -> None:
        """Reads what was appended since."""
        now = time.monotonic()
        if now < self._refresh_at and not fresh:
            return
        self.folder.refresh()
        check_ledger(self.folder)
        for recording in filter(is_ledger, self.folder.recordings()):
            start = self.folder.extent(recording.recording_id).start_position
            self.identities.setdefault(recording.recording_id, identity_of(recording))
            self.starts.setdefault(recording.recording_id, start)
            self.positions.setdefault(recording.recording_id, start)
        for item in read_entries(self.folder, self.positions):
            self.entries += first_of_each([item], self._seen)
            self.positions[item.recording_id] = item.next_position
        # Once more: entries read now may name recordings that began after the first refresh.
        self.folder.refresh()
        pause = max(REFRESH_INTERVAL_SECONDS, REFRESH_PAUSE_FACTOR * (time.monotonic() - now))
        self._refresh_at = now + min(pause, MAX_REFRESH_INTERVAL_SECONDS)

    def offset(self, positions: Mapping[int, int], starts: Mapping[int, int]) -> Offset:
        """The offset at these positions of the ledger's recordings."""
        return Offset.of_recordings(
            positions=positions,
            starts={key: starts.get(key, self.starts[key]) for key in positions},
            identities={key: self.identities[key] for key in positions},
        )

    def check(self, offset: Offset) -> None:
        """Raises if a checkpoint's offset is not one of this ledger."""
        for recording_id, position, identity in zip(
            offset.ids.tolist(), offset.positions.tolist(), offset.identities.tolist(), strict=True
        ):
            if self.identities.get(recording_id) != identity:
                raise UsageError(
                    f"recording {recording_id} of the checkpoint is not the ledger of {self._options.path}: a checkpoint "
                    f"belongs to one archive and one isolation, give the right ones, or a new checkpoint folder"
                )
            if position > self.positions[recording_id]:
                raise DataLossError(
                    f"ledger recording {recording_id} of {self._options.path}: position {position} was "
                    f"read before, but the ledger now ends at {self.positions[recording_id]}"
                )

    def between(self, start: Offset, end: Offset) -> list[OffsetEntry]:
        """Entries of (start, end]."""
        begins, ends = end.by_id(start.begins(end)), end.by_id(end.positions)
        return [
            item
            for item in self.entries
            if item.recording_id in ends and begins[item.recording_id] <= item.position < ends[item.recording_id]
        ]


class EntryBudget:
    """Bytes and messages that a micro-batch may still take; the first entry is always taken."""

    def __init__(self, options: ReadOptions, limit: ReadLimit) -> None:
        self._bytes = options.max_bytes_per_trigger
        self._rows = options.max_messages_per_trigger
        if isinstance(limit, ReadAllAvailable):
            self._bytes = self._rows = None
        elif isinstance(limit, ReadMaxBytes):
            self._bytes = limit.max_bytes
        elif isinstance(limit, ReadMaxRows):
            self._rows = limit.max_rows
        else:
            raise UsageError(f"read limit {type(limit).__name__} cannot be honoured, use bytes or rows")
        self._is_first = True

    def takes(self, ranges: Sequence[PublishedRange]) -> bool:
        """Whether an entry with these ranges still fits."""
        size = sum(part.end - part.begin for part in ranges)
        rows = sum(part.messages for part in ranges)
        fits = (self._bytes is None or size <= self._bytes) and (self._rows is None or rows <= self._rows)
        if not (fits or self._is_first):
            return False
        self._bytes = None if self._bytes is None else max(0, self._bytes - size)
        self._rows = None if self._rows is None else max(0, self._rows - rows)
        self._is_first = self._is_first and not ranges
        return True
