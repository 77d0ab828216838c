"""Checks that an offset still fits its recordings; raises, or moves it, where that is data loss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aeron_spark.archive.fingerprints import same_fingerprint
from aeron_spark.archive.segments import Extent
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.errors import DataLossError, UsageError
from aeron_spark.spark.planning.data_loss import goes_on, lost, segment_path
from aeron_spark.spark.planning.offsets import Numbers, Offset, find
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.planning.snapshot import Snapshot

__all__ = ["Continuity"]


class Continuity:
    """The checks of one query."""

    def __init__(self, source: RecordingSource, options: ReadOptions) -> None:
        self._source = source
        self._options = options

    def known(self, offset: Offset, snapshot: Snapshot) -> Offset:
        """The offset without recordings that are gone; raises where that is data loss."""
        at, is_there = find(snapshot.ids, offset.ids)
        for index in np.flatnonzero(~is_there).tolist():
            lost(
                self._options,
                f"recording {offset.ids[index]} of the checkpoint, read up to {offset.positions[index]}, is not in archive "
                f"{self._options.path} any more (or no longer matches the options); it was purged, or the path is another "
                f"archive's: restore it, or begin with a new checkpoint folder",
                recording_id=int(offset.ids[index]),
                position=int(offset.positions[index]),
            )
        if not is_there.all():
            offset, at = offset.only(is_there), at[is_there]
        for index in np.flatnonzero(snapshot.identities[at] != offset.identities)[:1].tolist():
            raise UsageError(
                f"recording {offset.ids[index]} in archive {self._options.path} is not the one the checkpoint was made "
                f"from; give the archive this query began with, or a new checkpoint folder"
            )
        return offset

    def available(self, recording_id: int, position: int, extent: Extent) -> int:
        """The position, or the nearest one available; raises where that is data loss."""
        if extent.start_position <= position <= extent.limit_position:
            return position
        path = segment_path(self._options, self._source.recording(recording_id), position)
        if position < extent.start_position:
            lost(
                self._options,
                f"recording {recording_id} of {self._options.path}: position {position}, in {path}, is wanted, but the "
                f"recording now starts at {extent.start_position} and ends at {extent.limit_position}: "
                f"{extent.start_position - position} bytes were purged before they were read; restore its segments, or begin "
                f"with a new checkpoint folder",
                recording_id=recording_id,
                position=position,
            )
            return extent.start_position
        lost(
            self._options,
            f"recording {recording_id} of {self._options.path}: position {position}, in {path}, was read before, but the "
            f"recording now ends at {extent.limit_position}: it was truncated, or the "
            f"archive lost its tail in a crash; begin with a new checkpoint folder",
            recording_id=recording_id,
            position=position,
        )
        return extent.limit_position

    def check_marks(self, ids: Numbers, positions: Numbers, marks: Numbers, extents: Sequence[Extent]) -> None:
        """Checks that each position follows the same frame as when the query reached it."""
        found = self._source.fingerprints(ids, positions)
        for recording_id, position, mark, now, extent in zip(
            *(column.tolist() for column in (ids, positions, marks, found)), extents, strict=True
        ):
            is_there = extent.start_position < position <= extent.limit_position
            if mark != 0 and is_there and not same_fingerprint(mark, now):
                lost(
                    self._options,
                    f"recording {recording_id} of {self._options.path}: other bytes stand before position {position} than when "
                    f"this query reached it: the recording was truncated and then extended; begin with a new checkpoint folder",
                    recording_id=recording_id,
                    position=position,
                )

    def boundary(self, recording_id: int, begin: int, end: int) -> int:
        """The position, checked: a message must begin there."""
        try:
            aligned: int = self._source.align(recording_id, begin, end)
        except DataLossError:
            if not goes_on(self._options):
                raise
            return begin  # the task finds out what can be read
        if aligned != begin:
            lost(
                self._options,
                f"recording {recording_id} of {self._options.path}: no message begins at position {begin} any more, where the "
                f"batch before ended: the recording was truncated and then extended; begin with a new checkpoint folder",
                recording_id=recording_id,
                position=begin,
            )
        return aligned
