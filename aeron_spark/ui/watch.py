"""What the page's server knows: facts of the directories, read at most once a second for all browsers, and findings."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from aeron_spark import doctor, doctor_facts
from aeron_spark.archive.tools import Catalog
from aeron_spark.doctor import Finding
from aeron_spark.errors import AeronError, UsageError
from aeron_spark.live.compare import facts
from aeron_spark.live.facts import Facts
from aeron_spark.live.reader import Reader
from aeron_spark.live.snapshot import Snapshot
from aeron_spark.metrics.samples import directory_label

_T = TypeVar("_T")
_FACTS_S, _FINDINGS_S = 0.9, 10.0
#: Facts of longer ago say nothing of what is now: nobody has looked since.
_OLDEST_S = 10.0


class _Kept(Generic[_T]):
    """What `make` returns, made anew when it is older than `seconds`; one thread makes it, others wait for it."""

    def __init__(self, make: Callable[[], _T], seconds: float) -> None:
        self._make, self._seconds = make, seconds
        self._lock = threading.Lock()
        self._made: tuple[float, _T] | None = None

    def get(self) -> _T:
        with self._lock:
            if self._made is None or time.monotonic() - self._made[0] >= self._seconds:
                made = self._make()
                self._made = (time.monotonic(), made)  # who waited for it does not make another
            return self._made[1]


class Watch:
    """Directories of drivers and folders of archives. Any number of threads."""

    def __init__(self, dirs: Sequence[str], archive_dirs: Sequence[str]) -> None:
        self.dirs, self._archive_dirs = _distinct(dirs), _distinct(archive_dirs)
        self.archives = [directory_label(one) for one in self._archive_dirs]
        """As facts name the folders."""
        self._reader = Reader(self.dirs, self._archive_dirs)
        self._last: Snapshot | None = None
        self._facts = _Kept(self._look, _FACTS_S)
        self._findings = _Kept(self._examine, _FINDINGS_S)

    def facts(self) -> Facts:
        """As they are now."""
        return self._facts.get()

    def findings(self) -> list[Finding]:
        """The doctor's, of every directory and folder, the worst first."""
        return self._findings.get()

    def folder(self, number: int) -> str:
        """The folder of an archive by its place. UsageError: there are fewer."""
        if number >= len(self._archive_dirs):
            raise UsageError(f"there are {len(self._archive_dirs)} archives here; --archive-dir FOLDER names one")
        return self._archive_dirs[number]

    def _look(self) -> Facts:
        before, self._last = self._last, self._reader.snapshot()
        is_old = before is not None and self._last.at_s - before.at_s > _OLDEST_S
        return facts(self._last, None if is_old else before)

    def _examine(self) -> list[Finding]:
        found = [one for directory in self.dirs for one in doctor.check(doctor_facts.gather(directory))]
        for folder in self._archive_dirs:
            directory = _driver_of(folder) or next(iter(self.dirs), None)
            found += doctor.check(doctor_facts.gather(directory, defines=[f"aeron.archive.dir={folder}"]))
        levels = ("error", "warn", "ok")
        return sorted(dict.fromkeys(found), key=lambda one: levels.index(one.level))


def _distinct(paths: Sequence[str]) -> list[str]:
    return [str(one) for one in dict.fromkeys(map(Path, paths))]


def _driver_of(folder: str) -> str | None:
    """The Aeron directory of an archive, by its mark file."""
    try:
        with Catalog(folder) as catalog:
            mark = catalog.mark()
    except (AeronError, OSError):
        return None  # the doctor says what is wrong with it
    return mark.aeron_dir if mark is not None and mark.aeron_dir else None
