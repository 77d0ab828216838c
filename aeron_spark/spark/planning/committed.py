"""Planning for ``isolation=read_committed``: the ledger's entries, the ranges that they name, and what a micro-batch takes.

A stream's offset is a position in the ledger, not in the recordings. The order of entries never changes, but ranges of a
recording can be committed in another order than they were published in. A micro-batch takes whole entries, so it never shows
a part of what was committed together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from aeron_spark.archive.fingerprints import same_fingerprint
from aeron_spark.archive.recordings import Recording, is_ledger
from aeron_spark.archive.segments import Extent
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.errors import DataLossError, UsageError
from aeron_spark.spark.ledger import Batches, Entries, PublishedRange, first_of_each, read_entries
from aeron_spark.spark.log import LOG, facts
from aeron_spark.spark.planning.offsets import Offset
from aeron_spark.spark.planning.options import LATEST, ReadOptions
from aeron_spark.spark.planning.ranges import Budget, Range
from aeron_spark.spark.planning.selection import identity_of, is_chosen, open_folder, select_recordings
from aeron_spark.spark.planning.snapshot import Pace

__all__ = [
    "CommittedPlanner",
    "check_isolation",
    "committed_now",
]

#: Spark polls an idle stream 60 to 90 times a second. A refresh of a local archive costs little more than reading the catalog.
REFRESH_INTERVAL_SECONDS = 0.02


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
    """The recordings that the options choose, whatever their session is now, without the ledger's own."""
    found = select_recordings(folder, replace(options, session_id=None), allow_none=True)
    return {recording.recording_id: recording for recording in found if not is_ledger(recording)}


def _is_of_session(part: PublishedRange, options: ReadOptions) -> bool:
    """By the entry, which never changes: an extension gives the recording another session."""
    return options.session_id in (None, part.session_id)


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
            extra=facts(path=options.path),
        )


def committed_now(folder: RecordingSource, options: ReadOptions) -> list[Range]:
    """What a batch reads: everything committed that the archive still holds, as it is now."""
    check_ledger(folder)
    warn_without_ledger(folder, options)
    is_all = options.starting_positions.word != LATEST
    counting = first_of_each(read_entries(folder, {}), Batches()) if is_all else []
    parts = [part for item in counting for part in item.entry.ranges]
    folder.refresh()
    # Purged recordings, and purged heads of recordings, no longer belong to a table.
    return list(committed_ranges(folder, parts, options, purged_is_loss=False))


def committed_ranges(
    folder: RecordingSource, parts: Iterable[PublishedRange], options: ReadOptions, *, purged_is_loss: bool
) -> Iterator[Range]:
    """Those of the committed ranges in chosen recordings; DataLossError where the archive does not hold one any more.

    The folder's catalog must have been read after the entries, else it may lack a recording that they name.
    """
    absent = {recording.recording_id for recording in folder.without_segments() if is_chosen(recording, options)}
    chosen = chosen_recordings(folder, options)
    known = {recording.recording_id for recording in folder.recordings()}
    for part in parts:
        if part.recording_id in absent:
            raise DataLossError(
                f"recording {part.recording_id}, in which [{part.begin}, {part.end}) was committed, has no segment in "
                f"{folder.path}: put its segment files there"
            )
        may_be_chosen = part.recording_id in (options.recording_ids or [part.recording_id])
        may_be_chosen = may_be_chosen and options.stream_id in (None, part.stream_id) and _is_of_session(part, options)
        if part.recording_id not in known and purged_is_loss and may_be_chosen:
            raise DataLossError(
                f"recording {part.recording_id} of {folder.path}, in which [{part.begin}, {part.end}) was committed, is "
                f"gone: it was purged before it was read"
            )
        recording = chosen.get(part.recording_id)
        if recording is None or not _is_of_session(part, options):
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
    """The ledger as far as it was read: entries that count, and how far each of its recordings goes.

    An entry of two ranges takes about 125 bytes, for the life of the query.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._seen = Batches()
        self.pace = Pace(REFRESH_INTERVAL_SECONDS)
        self.folder = open_folder(options)
        #: By recording of the ledger.
        self._entries: dict[int, Entries] = {}
        self.count = 0
        #: Recordings that entries name.
        self.named: set[int] = set()
        self.positions: dict[int, int] = {}
        self.starts: dict[int, int] = {}
        self.identities: dict[int, int] = {}
        self._extents: dict[int, Extent] = {}
        #: Up to where it was read, with marks.
        self.newest = self.offset({}, {})

    def refresh(self, *, fresh: bool) -> None:
        """Reads what was appended since."""
        if not (fresh or self.pace.is_due):
            return
        with self.pace.refreshing():
            self._refresh()

    def _refresh(self) -> None:
        self.folder.refresh()
        check_ledger(self.folder)
        for recording in filter(is_ledger, self.folder.recordings()):
            extent = self.folder.extent(recording.recording_id)
            self._extents[recording.recording_id] = extent
            self.identities.setdefault(recording.recording_id, identity_of(recording))
            self.starts.setdefault(recording.recording_id, extent.start_position)
            self.positions.setdefault(recording.recording_id, extent.start_position)
        self.check(self.newest)
        for item in read_entries(self.folder, self.positions):
            for counting in first_of_each([item], self._seen):
                self._entries.setdefault(item.recording_id, Entries()).append(counting)
                self.named.update(part.recording_id for part in counting.entry.ranges)
                self.count += 1
            self.positions[item.recording_id] = item.next_position
        if self.positions != self.newest.by_id(self.newest.positions):
            self.newest = self.marked(self.offset(self.positions, {}))
        # Once more: entries read now may name recordings that began after the first refresh.
        self.folder.refresh()

    def offset(self, positions: Mapping[int, int], starts: Mapping[int, int]) -> Offset:
        """The offset at these positions of the ledger's recordings."""
        return Offset.of_recordings(
            positions=positions,
            starts={key: starts.get(key, self.starts[key]) for key in positions},
            identities={key: self.identities[key] for key in positions},
        )

    def marked(self, offset: Offset) -> Offset:
        """The same with the fingerprints of the entries before its positions."""
        marks = self.folder.fingerprints(offset.ids, offset.positions)
        return Offset.of(
            ids=offset.ids,
            positions=offset.positions,
            starts=offset.starts,
            identities=offset.identities,
            marks=marks,
        )

    def check(self, offset: Offset) -> None:
        """Raises if a checkpoint's offset is not one of this ledger, or the ledger no longer what was read."""
        ids, positions = offset.ids.tolist(), offset.positions.tolist()
        for recording_id, position, identity in zip(ids, positions, offset.identities.tolist(), strict=True):
            if self.identities.get(recording_id) != identity:
                raise UsageError(
                    f"recording {recording_id} of the checkpoint is not the ledger of {self._options.path}: a checkpoint "
                    f"belongs to one archive and one isolation, give the right ones, or a new checkpoint folder"
                )
            self.check_holds(recording_id, position)
            if position > self._extents[recording_id].limit_position:
                raise DataLossError(
                    f"ledger recording {recording_id} of {self._options.path}: position {position} was read before, but "
                    f"the ledger now ends at {self._extents[recording_id].limit_position}: it was truncated, or the archive "
                    f"lost its tail in a crash; begin with a new checkpoint folder"
                )
        found = self.folder.fingerprints(offset.ids, offset.positions).tolist()
        for recording_id, position, mark, now in zip(ids, positions, offset.marks.tolist(), found, strict=True):
            if not same_fingerprint(mark, now):
                raise DataLossError(
                    f"ledger recording {recording_id} of {self._options.path}: another entry stands before position "
                    f"{position} than when this query reached it: the ledger was truncated, or lost its tail in a crash, and "
                    f"grew again; begin with a new checkpoint folder"
                )

    def check_holds(self, recording_id: int, position: int) -> None:
        """Raises if entries from this position on were purged."""
        start = self._extents[recording_id].start_position
        if position < start:
            raise DataLossError(
                f"ledger recording {recording_id} of {self._options.path} now starts at {start}: entries from position "
                f"{position} on were purged before this query read them; begin with a new checkpoint folder"
            )

    def between(self, start: Offset, end: Offset) -> Iterator[tuple[int, int, tuple[PublishedRange, ...]]]:
        """Of the entries of (start, end] the recording of the ledger, the position behind it, and the ranges."""
        begins = end.by_id(start.begins(end))
        for recording_id, last in end.by_id(end.positions).items():
            if recording_id in self._entries:
                for next_position, ranges in self._entries[recording_id].between(begins[recording_id], last):
                    yield recording_id, next_position, ranges


class CommittedPlanner:
    """See ``Planner``. A micro-batch takes whole entries of the ledger."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._ledger = LedgerView(options)
        self.source, self.pace = self._ledger.folder, self._ledger.pace
        self._pinned: dict[int, int] | None = None
        #: The last answer of ``next_end``, and what was behind it at a length of the ledger.
        self._reached: Offset | None = None
        self._behind: tuple[Offset, int, dict[str, object]] | None = None

    def _recent(self, *, fresh: bool) -> LedgerView:
        self._ledger.refresh(fresh=fresh)
        return self._ledger

    def initial(self) -> Offset:
        """The begin or the end of the ledger."""
        ledger = self._recent(fresh=True)
        warn_without_ledger(ledger.folder, self._options)
        starts = dict(ledger.positions if self._options.starting_positions.word == LATEST else ledger.starts)
        return ledger.marked(ledger.offset(starts, starts))

    def next_end(self, start: Offset, budget: Budget) -> Offset:
        """After as many entries as the budget allows, at least one."""
        ledger = self._recent(fresh=False)
        ledger.check(start)
        targets = ledger.positions if self._pinned is None else self._pinned
        # A part of the ledger that appeared since is read from its start.
        starts = start.by_id(start.starts)
        reached = {**{key: ledger.starts[key] for key in targets}, **start.by_id(start.positions)}
        chosen: dict[int, Recording] | None = None
        left = _EntryBudget(budget)
        entries = ledger.between(ledger.offset(reached, starts), ledger.offset(targets, starts))
        for recording_id, next_position, ranges in entries:
            if chosen is None:  # Spark asks an idle stream all the time, and there may be many recordings
                chosen = chosen_recordings(ledger.folder, self._options)
            parts = [part for part in ranges if _is_of_session(part, self._options)]
            if not left.takes([part for part in parts if part.recording_id in chosen]):
                break
            reached[recording_id] = next_position
        is_moved = reached != start.by_id(start.positions)
        self._reached = ledger.marked(ledger.offset(reached, starts)) if is_moved else start
        return self._reached

    def newest(self) -> dict[str, object]:
        """The end of the ledger, and the committed ranges behind the last offset: see ``lag``."""
        ledger = self._recent(fresh=False)
        newest = ledger.newest.json
        return newest if self._reached is None else {**newest, "behind": self._behind_of(ledger, self._reached)}

    def _behind_of(self, ledger: LedgerView, reached: Offset) -> dict[str, object]:
        known = self._behind
        if known is None or known[0].json != reached.json or known[1] != ledger.count:
            end = ledger.offset(ledger.positions, reached.by_id(reached.starts))
            known = (reached, ledger.count, self._count(ledger, reached, end))
            self._behind = known
        return known[2]

    def _count(self, ledger: LedgerView, reached: Offset, end: Offset) -> dict[str, object]:
        chosen = chosen_recordings(ledger.folder, self._options).keys() & ledger.named
        unread = {key: {"bytes": 0, "messages": 0, "begin": 0, "end": 0} for key in sorted(chosen)}
        for _, _, ranges in ledger.between(reached, end):
            for part in ranges:
                of = unread.get(part.recording_id)
                if of is not None and _is_of_session(part, self._options):
                    of["begin"] = min(of["begin"], part.begin) if of["end"] else part.begin
                    of["end"] = max(of["end"], part.end)
                    of["bytes"] += part.end - part.begin
                    of["messages"] += part.messages
        return {
            "after": {str(key): position for key, position in reached.by_id(reached.positions).items()},
            "ranges": {str(key): of for key, of in unread.items()},
        }

    def pin(self) -> None:
        """Entries appended later are not of this run."""
        self._pinned = dict(self._recent(fresh=True).positions)

    def ranges(self, first: Offset, last: Offset) -> list[Range]:
        """A function of the two offsets, the ledger and the options: a replayed batch reads the same rows."""
        first.check_advances_to(last)
        ledger = self._recent(fresh=True)
        ledger.check(last)
        # A batch 0 that crashed begins where its end says.
        for recording_id, begin in last.by_id(first.begins(last)).items():
            ledger.check_holds(recording_id, begin)
        parts = (part for _, _, ranges in ledger.between(first, last) for part in ranges)
        return list(committed_ranges(ledger.folder, parts, self._options, purged_is_loss=True))


class _EntryBudget:
    """Bytes and messages that a micro-batch may still take; the first entry is always taken."""

    def __init__(self, budget: Budget) -> None:
        self._bytes, self._rows = budget.max_bytes, budget.max_messages
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
