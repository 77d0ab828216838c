"""How far the messages of recordings that grow have their times of the time index, whose entries come after the bytes."""

from __future__ import annotations

import time

from aeron_spark.archive.sources import RecordingSource
from aeron_spark.errors import DataLossError

__all__ = ["Timed"]

#: What an archive whose disk stalls may add to the two intervals within which it writes an entry. Without a sign of life for so
#: long an archive counts as dead.
SLACK_SECONDS = 10.0


class Timed:
    """Remembers since when entries are missing: what the archive owes for too long is lost, and the messages have no time."""

    def __init__(self, source: RecordingSource) -> None:
        self._source = source
        #: By recording, up to where the index reached when entries behind that were missed first, and when that was.
        self._missed: dict[int, tuple[int, float]] = {}

    def limit(self, recording_id: int, begin: int, limit: int) -> int:
        """The last message boundary in [begin, limit] up to which times are known, or will never be."""
        reach = self._source.time_reach(recording_id)
        if reach.position >= limit or reach.interval == 0:
            return limit
        now = time.monotonic()
        missed = self._missed.get(recording_id)
        if missed is None or missed[0] != reach.position:
            missed = self._missed[recording_id] = (reach.position, now)
        if now - missed[1] > 2 * reach.interval + SLACK_SECONDS:
            return limit
        try:
            return self._source.advance(recording_id, begin, max(begin, reach.position))
        except DataLossError:
            return limit  # who reads finds it, behind the messages before
