"""Snapshots of a query's recordings, in NumPy arrays: a folder can hold 100,000 of them, and Spark asks many times a second.

Whether a query chooses a recording, and the recording's identity, are cached until the catalog's entry changes. Positions come
from the catalog in one call; only active recordings are asked for one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from aeron_spark.archive.segments import Extent, Recording
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.spark.planning.offsets import Numbers, Offset, find
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.planning.selection import identity_of, is_chosen, stays_chosen
from aeron_spark.types import NULL_VALUE, Position

__all__ = ["Pace", "Snapshot", "SnapshotCache"]

#: The cost of a refresh grows with the number of recordings. The next one waits this many times as long, at most a second, so
#: that an idle query does not keep a core busy.
REFRESH_PAUSE_FACTOR = 10
MAX_REFRESH_INTERVAL_SECONDS = 1.0


class Pace:
    """When to refresh what a query knows of its archive."""

    def __init__(self, interval_seconds: float) -> None:
        self._interval_seconds = interval_seconds
        self.due_at = 0.0

    @property
    def is_due(self) -> bool:
        """The pause after the last refresh is over."""
        return time.monotonic() >= self.due_at

    @contextmanager
    def refreshing(self) -> Iterator[None]:
        """Measures a refresh, and sets when the next one is due."""
        began = time.monotonic()
        yield
        pause = max(REFRESH_PAUSE_FACTOR * (time.monotonic() - began), self._interval_seconds)
        self.due_at = began + min(pause, MAX_REFRESH_INTERVAL_SECONDS)


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The chosen recordings in id order: ranges that can be read, and identities."""

    ids: Numbers
    starts: Numbers
    limits: Numbers
    identities: Numbers

    def extent(self, index: int) -> Extent:
        """How far the recording at an index can be read."""
        # Whether it goes on is of no use to planning.
        return Extent(
            start_position=Position(int(self.starts[index])),
            limit_position=Position(int(self.limits[index])),
            is_active=False,
        )


class SnapshotCache:
    """Takes the snapshots of one query, and caches what does not change between them."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        empty = np.empty(0, np.int64)
        self._ids, self._revisions, self._identities = empty, empty, empty
        self._chosen = np.empty(0, bool)

    def snapshot(self, folder: RecordingSource) -> Snapshot:
        """Takes a snapshot now."""
        folder.refresh()
        columns = folder.columns()
        self._learn(columns.recording_id, columns.revision, folder.recording_at)
        chosen = self._chosen
        ids, starts, limits = columns.recording_id, columns.start_position, columns.stop_position
        if not chosen.all():
            ids, starts, limits = ids[chosen], starts[chosen], limits[chosen]
        active = np.flatnonzero(limits == NULL_VALUE)
        if len(active):
            starts[active], limits[active] = folder.extents(ids[active])
        return Snapshot(ids, starts, limits, self._identities[chosen])

    def keep(self, offset: Offset, folder: RecordingSource) -> list[int]:
        """Has an offset's recordings stay the query's, as without a restart; ids of those that were so no more."""
        at, is_same = find(self._ids, offset.ids)
        is_same[is_same] = self._identities[at[is_same]] == offset.identities[is_same]
        left_out = at[is_same][~self._chosen[at[is_same]]]
        kept = [index for index in left_out.tolist() if stays_chosen(folder.recording_at(index), self._options)]
        self._chosen[kept] = True
        return [int(self._ids[index]) for index in kept]

    def _learn(self, ids: Numbers, revisions: Numbers, recording_at: Callable[[int], Recording]) -> None:
        """Updates the cache for recordings that are new or whose catalog entry has changed."""
        if np.array_equal(ids, self._ids) and np.array_equal(revisions, self._revisions):
            return
        chosen, identities = np.zeros(len(ids), bool), np.zeros(len(ids), np.int64)
        at, same = find(self._ids, ids)
        is_known = same.copy()
        same[same] = self._revisions[at[same]] == revisions[same]
        chosen[same], identities[same] = self._chosen[at[same]], self._identities[at[same]]
        for index in np.flatnonzero(~same).tolist():
            recording = recording_at(index)
            identities[index] = identity_of(recording)
            # A recording that was the query's stays so: an extension gives it another session, an update another channel.
            was_chosen = (
                is_known[index] and self._chosen[at[index]] and self._identities[at[index]] == identities[index]
            )
            chosen[index] = was_chosen or is_chosen(recording, self._options)
        self._ids, self._revisions, self._chosen, self._identities = ids, revisions, chosen, identities
