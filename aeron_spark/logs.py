"""What the distinct error logs of drivers and archives hold, merged by time, in the form of the servers' own log lines.

A line of the text form: time, level, module, message, then facts as name=value. Texts come from other processes: control
characters are escaped, so that none of them makes a line of its own or moves a terminal's cursor.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from aeron_spark.archive.tools import Catalog
from aeron_spark.counters import Counters, ErrorEntry
from aeron_spark.errors import AeronError
from aeron_spark.texts import escaped

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS = 253402300799999  # the end of the year 9999
_SEVERITY = re.compile(r"(WARN|ERROR) - ")
_PLAIN = re.compile(r"[!#-<>-\[\]-~]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedError:
    """One distinct error of a driver or an archive, `count` times from `first_ms` to `last_ms`."""

    module: str
    directory: str
    level: str
    message: str
    count: int
    first_ms: int
    last_ms: int

    @property
    def key(self) -> tuple[str, str, int, str]:
        """What stays the same while it is observed again."""
        return self.module, self.directory, self.first_ms, self.message


@dataclass(slots=True, kw_only=True)
class ErrorLogs:
    """Error logs of drivers' directories and archives' folders; `read` opens them anew. One thread."""

    dirs: list[Path]
    archive_dirs: list[Path]
    #: What could not be read by the last `news`, and why.
    troubles: dict[Path, Exception] = field(default_factory=dict)
    _told: dict[tuple[str, Path], set[tuple[tuple[str, str, int, str], int]]] = field(default_factory=dict)

    def read(self) -> list[LoggedError]:
        """Every distinct error, by the time of its last observation. AeronError, OSError: a directory cannot be read."""
        return _by_time(one for module, path in self._places() for one in _read(module, path))

    def news(self) -> list[LoggedError]:
        """Those that are new, or were observed again, since the last call, of directories that can be read."""
        fresh: list[LoggedError] = []
        self.troubles.clear()
        for module, path in self._places():
            try:
                found = _read(module, path)
            except (AeronError, OSError) as error:
                self.troubles[path] = error
                continue
            told = self._told.get((module, path), set())
            fresh += (one for one in found if (one.key, one.count) not in told)
            self._told[module, path] = {(one.key, one.count) for one in found}
        return _by_time(fresh)

    def _places(self) -> list[tuple[str, Path]]:
        return [*(("driver", path) for path in self.dirs), *(("archive", path) for path in self.archive_dirs)]


def _read(module: str, path: Path) -> list[LoggedError]:
    with Counters(path) if module == "driver" else Catalog(path) as log:
        return logged(module, path, log.errors())


def _by_time(errors: Iterable[LoggedError]) -> list[LoggedError]:
    return sorted(errors, key=lambda one: (one.last_ms, one.first_ms))


def logged(module: str, path: str | os.PathLike[str], entries: Iterable[ErrorEntry]) -> list[LoggedError]:
    """The entries of a server's distinct error log."""
    found = []
    for entry in entries:
        severity = _SEVERITY.match(entry.text)
        text = entry.text[severity.end() :] if severity else entry.text
        found.append(
            LoggedError(
                module=module,
                directory=os.fspath(path),
                level="WARNING" if severity and severity[1] == "WARN" else "ERROR",
                message=": ".join(filter(None, (line.rstrip() for line in text.split("\n")))),
                count=entry.count,
                first_ms=entry.first_ms,
                last_ms=entry.last_ms,
            )
        )
    return found


def time_text(time_ms: int) -> str:
    """UTC, to the millisecond; what no calendar has is moved to its ends."""
    moved = _EPOCH + timedelta(milliseconds=min(max(time_ms, 0), _LAST_MS))
    return f"{moved:%Y-%m-%dT%H:%M:%S}.{moved.microsecond // 1000:03d}Z"


def text_line(error: LoggedError) -> str:
    """As the servers write it."""
    head = f"{time_text(error.last_ms)} {error.level} {error.module}: {escaped(error.message)}"
    return f"{head} {facts(_facts(error))}"


def json_line(error: LoggedError) -> str:
    """As the servers write it with --log-format json."""
    head = {"time": time_text(error.last_ms), "level": error.level, "module": error.module, "message": error.message}
    return json.dumps({**head, **_facts(error)})


def _facts(error: LoggedError) -> dict[str, object]:
    return {"count": error.count, "first": time_text(error.first_ms), "dir": error.directory}


def facts(values: Mapping[str, object]) -> str:
    """name=value, quoted where the value has spaces, quotes, or what is no ASCII."""
    shown = ((name, str(value)) for name, value in values.items())
    return " ".join(f"{name}={text if _PLAIN.fullmatch(text) else json.dumps(text)}" for name, text in shown)
