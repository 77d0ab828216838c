"""Metrics of an archive's folder: its mark file, error log, catalog, files, and when its file system will be full.

What the archive counts in shared memory (rates, sessions, positions) comes with its driver's directory (`driver.py`).
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aeron_spark.archive.tools import Catalog, RecordingState
from aeron_spark.metrics.driver import add_errors
from aeron_spark.metrics.samples import Samples, directory_label

_MS = 1e3
_BLOCK_BYTES = 512  # of st_blocks
#: Catalog and files are looked at again after this many seconds, and so many times what the last look took.
_SURVEY_S, _SURVEY_SHARE = 10.0, 20
_FORECAST_S = 600.0
_FORECAST_LEAST_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Survey:
    """What costs time in a large folder."""

    active: int
    unfinished: int
    stopped: int
    invalid: int
    segment_files: int
    disk_bytes: int


class Forecast:
    """When something that shrinks will be used up, by the last ten minutes."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def seconds(self, now_s: float, free: int) -> float | None:
        """Until 0 at this rate; None while it is not known, or nothing is used."""
        self._seen.append((now_s, free))
        while now_s - self._seen[0][0] > _FORECAST_S:
            self._seen.popleft()
        first_s, first = self._seen[0]
        if now_s - first_s < _FORECAST_LEAST_S or free >= first:
            return None
        return free * (now_s - first_s) / (first - free)


class ArchiveMetrics:
    """The metrics of one folder, scrape after scrape. One thread."""

    def __init__(
        self,
        directory: str | os.PathLike[str],
        clock_s: Callable[[], float] = time.time,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.directory = Path(directory)
        self._dir = directory_label(directory)
        self._clock_s, self._monotonic_s = clock_s, monotonic_s
        self._survey: _Survey | None = None
        self._next_survey_s = 0.0
        self._forecast = Forecast()

    def collect(self, samples: Samples) -> bool:
        """Add what there is now; whether a live archive has the folder.

        AeronError, OSError: no folder of an archive, or one that is damaged.
        """
        of = (self._dir,)
        now_s = self._monotonic_s()
        with Catalog(self.directory) as catalog:
            mark = catalog.mark()
            add_errors(samples, "aeron_archive_logged_errors", self._dir, catalog.errors())
            if self._survey is None or now_s >= self._next_survey_s:
                self._survey = self._look(catalog, is_live=mark is not None and mark.is_live)
                self._next_survey_s = now_s + max(_SURVEY_S, _SURVEY_SHARE * (self._monotonic_s() - now_s))
        for state in ("active", "unfinished", "stopped", "invalid"):
            samples.add("aeron_archive_recordings", (*of, state), getattr(self._survey, state))
        samples.add("aeron_archive_segment_files", of, self._survey.segment_files)
        samples.add("aeron_archive_disk_bytes", of, self._survey.disk_bytes)
        space = os.statvfs(self.directory)
        free = space.f_bavail * space.f_frsize
        samples.add("aeron_archive_free_bytes", of, free)
        samples.add("aeron_archive_file_system_bytes", of, space.f_blocks * space.f_frsize)
        full_s = self._forecast.seconds(now_s, free)
        if full_s is not None:
            samples.add("aeron_archive_full_seconds", of, full_s)
        if mark is None:
            return False
        samples.add("aeron_archive_start_time_seconds", of, mark.start_timestamp_ms / _MS)
        if mark.activity_timestamp_ms is not None:
            age_s = self._clock_s() - mark.activity_timestamp_ms / _MS
            samples.add("aeron_archive_heartbeat_age_seconds", of, max(0.0, age_s))
        return mark.is_live

    def _look(self, catalog: Catalog, *, is_live: bool) -> _Survey:
        endless = stopped = invalid = 0
        for entry in catalog.entries():
            if entry.state == RecordingState.VALID:
                endless += entry.recording.stop_position is None
                stopped += entry.recording.stop_position is not None
            elif entry.state == RecordingState.INVALID:
                invalid += 1
        segment_files = disk_bytes = 0
        with os.scandir(self.directory) as entries:
            for file in entries:
                try:
                    disk_bytes += file.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
                except FileNotFoundError:
                    continue  # deleted meanwhile
                segment_files += file.name.endswith(".rec")
        return _Survey(
            active=endless if is_live else 0,
            unfinished=0 if is_live else endless,
            stopped=stopped,
            invalid=invalid,
            segment_files=segment_files,
            disk_bytes=disk_bytes,
        )
