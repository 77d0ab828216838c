"""One scrape of many directories: what fails in one of them is `aeron_up` 0 for that one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from aeron_spark.errors import AeronError
from aeron_spark.metrics.archive import ArchiveMetrics
from aeron_spark.metrics.driver import DriverMetrics
from aeron_spark.metrics.samples import MAX_SERIES, Samples, directory_label

_Paths = Sequence[str | os.PathLike[str]]


class Scraper:
    """Drivers' directories and archives' folders, opened anew by each scrape, so that servers may come and go. One thread."""

    def __init__(self, dirs: _Paths, archive_dirs: _Paths = (), *, max_series: int = MAX_SERIES) -> None:
        self._max_series = max_series
        self._targets: list[tuple[str, DriverMetrics | ArchiveMetrics]] = [
            *(("driver", DriverMetrics(path)) for path in dict.fromkeys(map(Path, dirs))),
            *(("archive", ArchiveMetrics(path)) for path in dict.fromkeys(map(Path, archive_dirs))),
        ]

    def scrape(self) -> Samples:
        """What all of them have now."""
        # Each directory has its own limit.
        found = Samples(self._max_series * len(self._targets) + 2 * len(self._targets))
        for kind, target in self._targets:
            own = Samples(self._max_series)
            try:
                is_up = target.collect(own)
            except (AeronError, OSError):
                own, is_up = Samples(0), False
            of = (directory_label(target.directory), kind)
            found.take(own)
            found.add("aeron_up", of, int(is_up))
            found.add("aeron_series_left_out", of, own.left_out)
        return found
