"""Where ``startingTimestamp`` begins in recordings of which a streaming query has read nothing yet."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from aeron_spark.archive.segments import Extent
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.errors import DataLossError
from aeron_spark.spark.planning.bounds import Bounds
from aeron_spark.spark.planning.data_loss import goes_on
from aeron_spark.spark.planning.offsets import Numbers
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.planning.sbe_times import times_of
from aeron_spark.types import Position

__all__ = ["StartTimes"]


class StartTimes:
    """Finds the first messages of that time, and remembers how far it has searched."""

    def __init__(self, source: RecordingSource, options: ReadOptions) -> None:
        self._source = source
        self._options = options
        #: How far each recording was searched from a position on, and what was found.
        self._searched: dict[tuple[int, int], tuple[int, int]] = {}

    def begins(
        self, ids: Numbers, positions: Numbers, starts: Numbers, limits: Numbers, chosen: npt.NDArray[np.bool_]
    ) -> Numbers:
        """The positions; where nothing was read yet, the first message of that time or the limit."""
        begins = positions.copy()
        if self._options.starting_timestamp is not None:
            for index in np.flatnonzero(chosen & (positions == starts)).tolist():
                begins[index] = self.begin(int(ids[index]), int(positions[index]), int(limits[index]))
        return begins

    def begin(self, recording_id: int, begin: int, limit: int) -> int:
        """The first message of that time in [begin, limit], or the limit."""
        options = self._options
        searched, found = self._searched.get((recording_id, begin), (begin, begin))
        if found < searched:
            return min(found, limit)
        if limit <= searched or self._is_to_come:
            return limit
        extent = Extent(start_position=Position(begin), limit_position=Position(limit), is_active=True)
        try:
            bounds = Bounds(self._source, options, times_of(options))
            position = bounds.start(self._source.recording(recording_id), extent)
            found = self._source.align(recording_id, position, limit)
        except DataLossError:
            if not goes_on(options):
                raise
            found = begin  # the task finds out what can be read
        self._searched[recording_id, begin] = (limit, found)
        return found

    def is_later(self, recording_id: int, extent: Extent) -> bool:
        """Whether that time is, by the time index, certainly later than all before the extent, which was purged.

        Not by the messages' own times: nobody knows those of purged ones.
        """
        if self._is_to_come:
            return True
        if self._options.timestamp_from.kind != "index":
            return False
        if not self._source.time_index(recording_id).has_times_of_writes:
            return False
        try:
            found = self._source.position_at(recording_id, self._options.starting_timestamp or 0)
        except DataLossError:
            return False
        return found.position > extent.start_position

    @property
    def _is_to_come(self) -> bool:
        """The index dates what is written next by the clock, so it cannot answer for a time in the future."""
        return self._options.timestamp_from.kind == "index" and time.time_ns() < (self._options.starting_timestamp or 0)
