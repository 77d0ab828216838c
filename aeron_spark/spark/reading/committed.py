"""Readers for ``isolation=read_committed``: they read the ranges that the ledger names, each once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from aeron_spark.spark.ledger import PublishedRange, first_of_each, read_entries
from aeron_spark.spark.planning.committed import (
    EntryBudget,
    LedgerView,
    check_ledger,
    chosen_recordings,
    committed_ranges,
    warn_without_ledger,
)
from aeron_spark.spark.planning.limits import default_read_limit
from aeron_spark.spark.planning.offsets import Offset
from aeron_spark.spark.planning.options import LATEST, ReadOptions
from aeron_spark.spark.planning.selection import open_folder
from aeron_spark.spark.reading.batch import RangesPartition, partition_ranges, read_partition
from aeron_spark.spark.reading.rows import Rows

__all__ = ["CommittedBatchReader", "CommittedStreamReader"]


class CommittedBatchReader(DataSourceReader):
    """Everything committed that the archive still holds, as it is when the query is planned."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._rows = Rows(options, schema)

    def partitions(self) -> Sequence[InputPartition]:
        """Fixes the ranges now."""
        with open_folder(self._options) as folder:
            check_ledger(folder)
            warn_without_ledger(folder, self._options)
            is_all = self._options.starting_positions.word != LATEST
            entries = [item.entry for item in first_of_each(read_entries(folder, {}), set())] if is_all else []
            folder.refresh()
            # Purged recordings, and purged heads of recordings, no longer belong to a table.
            found = list(committed_ranges(folder, entries, self._options, purged_is_loss=False))
            return partition_ranges(folder, found, self._options) or [RangesPartition(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a task."""
        return read_partition(cast("RangesPartition", partition), self._options, self._rows)


class CommittedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Micro-batches of whole entries. See ``stream`` for Spark's habits."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._rows = Rows(options, schema)
        self._opened: LedgerView | None = None
        self._initial: dict[str, object] | None = None
        self._pinned: dict[int, int] | None = None
        #: The last answer of ``latestOffset``, and what was behind it at a length of the ledger.
        self._reached: Offset | None = None
        self._behind: tuple[Offset, int, dict[str, object]] | None = None

    def __getstate__(self) -> dict[str, object]:
        """Tasks get options and what makes rows; the open folder stays on the driver."""
        return {"_options": self._options, "_rows": self._rows}

    def _ledger(self, *, fresh: bool) -> LedgerView:
        if self._opened is None:
            self._opened = LedgerView(self._options)
        self._opened.refresh(fresh=fresh)
        return self._opened

    def initialOffset(self) -> dict[str, object]:
        """Resolved once: Spark asks twice, and "latest" must not move in between."""
        if self._initial is None:
            ledger = self._ledger(fresh=True)
            warn_without_ledger(ledger.folder, self._options)
            is_latest = self._options.starting_positions.word == LATEST
            starts = dict(ledger.positions if is_latest else ledger.starts)
            self._initial = ledger.offset(starts, starts).json
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        """The main limit."""
        return default_read_limit(self._options)

    def latestOffset(self, start: dict[str, object], limit: ReadLimit) -> dict[str, object]:
        """After as many entries as the limits allow, at least one."""
        ledger = self._ledger(fresh=False)
        begin = Offset.from_json_dict(start)
        ledger.check(begin)
        targets = ledger.positions if self._pinned is None else self._pinned
        # A part of the ledger that appeared since is read from its start.
        starts = begin.by_id(begin.starts)
        reached = {**{key: ledger.starts[key] for key in targets}, **begin.by_id(begin.positions)}
        everything = ledger.offset(reached, starts)
        budget = EntryBudget(self._options, limit)
        entries = ledger.between(everything, ledger.offset(targets, starts))
        # Spark asks an idle stream all the time, and there may be many recordings.
        chosen = chosen_recordings(ledger.folder, self._options) if entries else {}
        for item in entries:
            if not budget.takes([part for part in item.entry.ranges if part.recording_id in chosen]):
                break
            reached[item.recording_id] = item.next_position
        self._reached = ledger.offset(reached, starts)
        return self._reached.json

    def reportLatestOffset(self) -> dict[str, object] | None:
        """The end of the ledger, and the committed ranges behind the last offset: see ``lag``."""
        ledger = self._ledger(fresh=False)
        latest = ledger.offset(ledger.positions, {}).json
        return latest if self._reached is None else {**latest, "behind": self._behind_of(ledger, self._reached)}

    def _behind_of(self, ledger: LedgerView, reached: Offset) -> dict[str, object]:
        known = self._behind
        if known is None or known[0].json != reached.json or known[1] != len(ledger.entries):
            end = ledger.offset(ledger.positions, reached.by_id(reached.starts))
            known = (reached, len(ledger.entries), self._count(ledger, reached, end))
            self._behind = known
        return known[2]

    def _count(self, ledger: LedgerView, reached: Offset, end: Offset) -> dict[str, object]:
        named = {part.recording_id for item in ledger.entries for part in item.entry.ranges}
        chosen = chosen_recordings(ledger.folder, self._options).keys() & named
        unread: dict[int, list[PublishedRange]] = {recording_id: [] for recording_id in sorted(chosen)}
        for item in ledger.between(reached, end):
            for part in item.entry.ranges:
                if part.recording_id in unread:
                    unread[part.recording_id].append(part)
        return {
            "after": {str(key): position for key, position in reached.by_id(reached.positions).items()},
            "ranges": {
                str(key): {
                    "bytes": sum(part.end - part.begin for part in parts),
                    "messages": sum(part.messages for part in parts),
                    "begin": min((part.begin for part in parts), default=0),
                    "end": max((part.end for part in parts), default=0),
                }
                for key, parts in unread.items()
            },
        }

    def prepareForTriggerAvailableNow(self) -> None:
        """Pins the end once."""
        self._pinned = dict(self._ledger(fresh=True).positions)

    def partitions(self, start: dict[str, object], end: dict[str, object]) -> Sequence[InputPartition]:
        """A function of the two offsets, the ledger and the options: a replayed batch reads the same rows."""
        first, last = Offset.from_json_dict(start), Offset.from_json_dict(end)
        first.check_advances_to(last)
        ledger = self._ledger(fresh=True)
        ledger.check(last)
        entries = [item.entry for item in ledger.between(first, last)]
        found = list(committed_ranges(ledger.folder, entries, self._options, purged_is_loss=True))
        return partition_ranges(ledger.folder, found, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a task."""
        return read_partition(cast("RangesPartition", partition), self._options, self._rows)

    def commit(self, end: dict[str, object]) -> None:
        """Nothing to give back."""

    def stop(self) -> None:
        """Closes the source. Spark seldom calls this; the end of the process does it as well."""
        if self._opened is not None:
            self._opened.folder.close()
            self._opened = None
