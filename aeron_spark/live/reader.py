"""Reads directories of drivers and folders of archives into snapshots, ours or stock's.

Each snapshot opens them anew, so servers may come and go. What can't be read is a reading with a reason. What a counter's key
and label say is kept by their bytes, so a snapshot of thousands of counters mostly reads numbers. One thread.
"""

from __future__ import annotations

import itertools
import os
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from aeron_spark.archive.tools import Catalog, MarkFile, RecordingState
from aeron_spark.archive_health import may_hold
from aeron_spark.counters import Counters, DriverInfo, ErrorEntry, LossEntry
from aeron_spark.errors import AeronError, StorageError
from aeron_spark.live.snapshot import (
    ArchiveReading,
    Beat,
    Counted,
    DriverReading,
    Entry,
    Lost,
    Recorded,
    ServerState,
    Snapshot,
)
from aeron_spark.logs import LoggedError, logged
from aeron_spark.metrics.archive import Forecast
from aeron_spark.metrics.counter_types import RANK_OF_STREAMS, STREAMS, CounterTypes, Series
from aeron_spark.metrics.driver import counter_rows
from aeron_spark.metrics.samples import MAX_SERIES, cut, directory_label
from aeron_spark.texts import escaped

_MS = 1000
_BLOCK_BYTES = 512  # of st_blocks
_MAX_ROWS = 10_000
_MAX_MESSAGE = 2000
#: Catalog and files are looked at again after this many seconds, and so many times what the last look took.
_SURVEY_S, _SURVEY_SHARE = 1.0, 20


class Reader:
    """Takes snapshots of the same directories. The clocks are for tests."""

    def __init__(
        self,
        dirs: Sequence[str | os.PathLike[str]],
        archive_dirs: Sequence[str | os.PathLike[str]] = (),
        *,
        clock_s: Callable[[], float] = time.time,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock_s, self._monotonic_s = clock_s, monotonic_s
        self._drivers = [_Driver(one) for one in dict.fromkeys(map(Path, dirs))]
        self._archives = [_Archive(one, monotonic_s) for one in dict.fromkeys(map(Path, archive_dirs))]

    def snapshot(self) -> Snapshot:
        """What there is now."""
        time_s = self._clock_s()
        return Snapshot(
            at_s=self._monotonic_s(),
            time_ms=int(time_s * _MS),
            drivers=tuple(one.read(time_s) for one in self._drivers),
            archives=tuple(one.read(time_s) for one in self._archives),
        )


class _Driver:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._types = CounterTypes("")
        self._known: dict[tuple[int, int, int, bytes, bytes], Series | None] = {}

    def read(self, time_s: float) -> DriverReading:
        try:
            with Counters(self._path) as counters:
                return self._reading(counters, time_s)
        except (AeronError, OSError) as error:
            # A driver that starts again numbers anew.
            self._known = {}
            remedy = f"start a driver: aeron-spark driver --dir {shlex.quote(str(self._path))}"
            reason = _reason(error, self._path, "cnc.dat", remedy)
            return DriverReading(path=directory_label(self._path), state=ServerState.UNREADABLE, trouble=reason)

    def _reading(self, counters: Counters, time_s: float) -> DriverReading:
        info = counters.driver()
        space = os.statvfs(self._path)
        counted: list[Counted] = []
        recorded: list[Recorded] = []
        clients: list[Beat] = []
        values: dict[tuple[str, str], float] = {}
        archives: dict[str, dict[tuple[str, str], float]] = {}
        before, self._known = self._known, {}
        ranked, counters_left_out = counter_rows(counters, MAX_SERIES, RANK_OF_STREAMS)
        for row in itertools.chain.from_iterable(ranked):
            counter_id, type_id, value, registration_id, reference_id, key, label, owner_id = row
            at = (counter_id, type_id, registration_id, key, label)
            series = self._known[at] = before[at] if at in before else self._types.series(row)
            if series is None:
                continue
            labels = series.labels
            if type_id in STREAMS and series.stream is not None:
                stream_id, session_id = series.stream
                party_id, channel = series.party_id, labels[3]
                one = Counted(type_id, value, stream_id, session_id, channel, party_id, reference_id, owner_id)
                counted.append(one)
            elif series.name == "aeron_recording_position_bytes":
                told = series.stream[0] if series.stream else None
                recorded.append(Recorded(labels[1], int(labels[2]), told, int(labels[4]), labels[5], value))
            elif series.is_heartbeat:
                clients.append(Beat(int(labels[1]), labels[2], max(0.0, time_s - value / _MS)))
            elif series.name.startswith("aeron_driver_"):
                values[series.name, labels[1] if len(labels) > 1 else ""] = value / series.divisor
            elif series.name.startswith("aeron_archive_"):
                own = archives.setdefault(labels[1], {})
                own[series.name, labels[2] if len(labels) > 2 else ""] = value / series.divisor  # noqa: PLR2004 - agent
        self._types.forget()
        errors, losses = counters.errors(), counters.losses()
        return DriverReading(
            path=directory_label(self._path),
            state=_driver_state(info),
            pid=info.pid,
            start_ms=info.start_timestamp_ms,
            heartbeat_age_s=None if info.heartbeat_ms is None else max(0.0, time_s - info.heartbeat_ms / _MS),
            free_bytes=space.f_bavail * space.f_frsize,
            total_bytes=space.f_blocks * space.f_frsize,
            errors=_errors("driver", self._path, errors),
            counted=tuple(counted),
            recorded=tuple(recorded),
            clients=tuple(clients),
            losses=_losses(losses),
            values=values,
            archives=archives,
            left_out={"counters": counters_left_out, "errors": _beyond(errors), "losses": _beyond(losses)},
        )


def _beyond(rows: Sequence[object]) -> int:
    return max(0, len(rows) - _MAX_ROWS)


def _errors(module: str, path: Path, entries: list[ErrorEntry]) -> tuple[LoggedError, ...]:
    """The last observed of too many."""
    found = logged(
        module, path, sorted(entries, key=lambda one: one.last_ms)[-_MAX_ROWS:] if _beyond(entries) else entries
    )
    return tuple(replace(one, message=escaped(one.message[:_MAX_MESSAGE])) for one in found)


def _driver_state(info: DriverInfo) -> ServerState:
    if info.is_active:
        return ServerState.ALIVE
    return ServerState.ENDED if info.heartbeat_ms is None else ServerState.DEAD


def _losses(entries: list[LossEntry]) -> tuple[Lost, ...]:
    return tuple(
        Lost(
            stream_id=one.stream_id,
            session_id=one.session_id,
            channel=cut(one.channel),
            source=cut(one.source),
            gaps=one.count,
            lost_bytes=one.bytes_lost,
            last_ms=one.last_ms,
        )
        for one in entries[:_MAX_ROWS]
    )


class _Archive:
    def __init__(self, path: Path, monotonic_s: Callable[[], float]) -> None:
        self._path, self._monotonic_s = path, monotonic_s
        self._forecast = Forecast()
        self._entries: tuple[Entry, ...] = ()
        self._entries_left_out = 0
        self._disk_bytes: int | None = None
        self._next_survey_s: float | None = None

    def read(self, time_s: float) -> ArchiveReading:
        try:
            with Catalog(self._path) as catalog:
                return self._reading(catalog, time_s)
        except (AeronError, OSError) as error:
            self._next_survey_s = None
            reason = _reason(error, self._path, "archive.catalog", "name the folder of an archive")
            return ArchiveReading(path=directory_label(self._path), state=ServerState.UNREADABLE, trouble=reason)

    def _reading(self, catalog: Catalog, time_s: float) -> ArchiveReading:
        now_s = self._monotonic_s()
        if self._next_survey_s is None or now_s >= self._next_survey_s:
            self._entries, self._entries_left_out = _entries(catalog)
            self._disk_bytes = _disk_bytes(self._path)
            self._next_survey_s = now_s + max(_SURVEY_S, _SURVEY_SHARE * (self._monotonic_s() - now_s))
        space, at = os.statvfs(self._path), self._path.stat()
        free = space.f_bavail * space.f_frsize
        mark, errors = catalog.mark(), catalog.errors()
        active_ms = mark.activity_timestamp_ms if mark is not None else None
        return ArchiveReading(
            path=directory_label(self._path),
            state=_archive_state(mark),
            pid=mark.pid if mark is not None else None,
            start_ms=mark.start_timestamp_ms if mark is not None else None,
            heartbeat_age_s=None if active_ms is None else max(0.0, time_s - active_ms / _MS),
            free_bytes=free,
            total_bytes=space.f_blocks * space.f_frsize,
            errors=_errors("archive", self._path, errors),
            left_out={"recordings": self._entries_left_out, "errors": _beyond(errors)},
            inode=(at.st_dev, at.st_ino),
            archive_id=str(mark.archive_id) if mark is not None else "",
            aeron_dir=directory_label(mark.aeron_dir) if mark is not None else "",
            full_s=self._forecast.seconds(now_s, free),
            disk_bytes=self._disk_bytes,
            entries=self._entries,
        )


def _archive_state(mark: MarkFile | None) -> ServerState:
    if mark is not None and mark.is_live:
        return ServerState.ALIVE
    return ServerState.ENDED if mark is None or mark.activity_timestamp_ms is None else ServerState.DEAD


def _entries(catalog: Catalog) -> tuple[tuple[Entry, ...], int]:
    """Recordings of a catalog but deleted ones, of too many those without an end and the newest; how many more there are."""
    entries = [one for one in catalog.entries() if one.state != RecordingState.DELETED]
    left_out = _beyond(entries)
    if left_out:
        entries.sort(key=lambda one: (one.recording.stop_position is None, one.recording.recording_id))
        entries = sorted(entries[left_out:], key=lambda one: one.recording.recording_id)
    found = []
    for entry in entries:
        one = entry.recording
        active = "active" if one.stop_position is None else "stopped"
        found.append(
            Entry(
                recording_id=one.recording_id,
                state=active if entry.state == RecordingState.VALID else "invalid",
                stream_id=one.stream_id,
                session_id=one.session_id,
                channel=cut(one.stripped_channel),
                start_ms=one.start_timestamp_ms,
                stop_ms=one.stop_timestamp_ms,
                start_position=one.start_position,
                stop_position=one.stop_position,
            )
        )
    return tuple(found), left_out


def _disk_bytes(folder: Path) -> int:
    total = 0
    with os.scandir(folder) as files:
        for file in files:
            try:
                total += file.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
            except FileNotFoundError:
                continue  # deleted meanwhile
    return total


def _reason(error: Exception, path: Path, file: str, remedy: str) -> str:
    """Why a directory cannot be read, in one line."""
    if isinstance(error, StorageError | FileNotFoundError) and not may_hold(path, file):
        return escaped(f"there is no {file} in {path}; {remedy}")
    return escaped(" ".join(str(error).split()))
