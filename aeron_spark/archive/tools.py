"""A folder's catalog with every record in any state, for `aeron-spark archive describe | verify | checksum | ...`.

Reads work on live, stopped and crashed archives of this project and of stock Aeron. Writes need
`Catalog(path, writable=True)`, which refuses a live archive (UsageError) and prevents any archive from starting on the
folder until it is closed.
Thread rule: as every handle, one thread at a time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.callback import Callbacks
from aeron_spark._native.check import c_path, check, error, string
from aeron_spark._native.handle import Handle
from aeron_spark.archive.recordings import Recording, RecordingState, recording_from
from aeron_spark.counters import ErrorEntry
from aeron_spark.errors import UsageError
from aeron_spark.types import NULL_VALUE, Position, RecordChecksum

__all__ = [
    "Catalog",
    "CatalogEntry",
    "CatalogInfo",
    "ChecksumReport",
    "Frame",
    "MarkFile",
    "RecordingState",
    "VerifyOutcome",
    "VerifyReport",
    "migrate",
    "state_name",
    "total_bytes",
    "version_text",
]

# An archive updates its timestamp in the mark file every second.
_SIGN_OF_LIFE_S = 3.0
# Argument: the bytes processed so far. An exception stops the work and is raised by the call.
OnProgress = Callable[[int], object]


class VerifyOutcome(IntEnum):
    """Result of verifying a recording."""

    OK = lib.AS_VERIFY_OK
    SKIPPED = lib.AS_VERIFY_SKIPPED
    REPAIRABLE = lib.AS_VERIFY_REPAIRABLE
    REPAIRED = lib.AS_VERIFY_REPAIRED
    BAD = lib.AS_VERIFY_BAD


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogInfo:
    """The catalog file; `damage` explains why records after the last one can't be read, "" if there is none."""

    version: int
    alignment: int
    next_recording_id: int
    capacity: int
    used: int
    damage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """One record of the catalog; `checksum` is 0 if none is stored."""

    index: int
    recording: Recording
    state: RecordingState | int
    checksum: int
    control_session_id: int
    correlation_id: int
    offset: int
    length: int

    @property
    def era(self) -> tuple[int, int, int]:
        """Names the request that began or last extended the recording: control session, correlation id, session."""
        return self.control_session_id, self.correlation_id, int(self.recording.session_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkFile:
    """The mark file's content; `activity_timestamp_ms` is None after an orderly shutdown."""

    path: Path
    version: int
    activity_timestamp_ms: int | None
    start_timestamp_ms: int
    pid: int
    archive_id: int
    is_live: bool
    control_stream_id: int
    local_control_stream_id: int
    events_stream_id: int
    header_length: int
    error_buffer_length: int
    control_channel: str
    local_control_channel: str
    events_channel: str
    aeron_dir: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """A verified recording: `text` describes its damage, or other findings."""

    outcome: VerifyOutcome
    checksum: RecordChecksum
    is_catalog_checksum_stale: bool
    stop_position: Position | None
    frames: int
    bytes: int
    text: str

    @property
    def is_finding(self) -> bool:
        """True if the outcome needs an operator's action."""
        return self.outcome in {VerifyOutcome.BAD, VerifyOutcome.REPAIRABLE}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecksumReport:
    """Frames with a checksum, the number of them that changed, and the bytes processed."""

    frames: int
    changed: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One frame of a recording as its segment file holds it; `payload` is empty for padding."""

    position: Position
    segment_base: Position
    frame_length: int
    version: int
    flags: int
    type: int
    term_offset: int
    session_id: int
    stream_id: int
    term_id: int
    reserved_value: int
    payload: bytes

    @property
    def is_padding(self) -> bool:
        """True where only the header is stored."""
        return self.type == 0


class Catalog(Handle):
    """Every record of a folder's catalog, in any state.

    DataLossError: no catalog, or one of another major version; UsageError with `writable`: a live archive owns the
    folder.
    """

    def __init__(self, path: str | os.PathLike[str], *, writable: bool = False) -> None:
        self.path = Path(path)
        out = ffi.new("as_catalog **")
        check(lib.as_catalog_open(c_path(path), writable, out))
        super().__init__(out[0], lib.as_catalog_close)

    def info(self) -> CatalogInfo:
        """Header and size of the catalog file."""
        raw = ffi.new("as_catalog_info *")
        with self._use() as catalog:
            check(lib.as_catalog_get_info(catalog, raw))
            damage = string(raw.damage)
        return CatalogInfo(
            version=raw.version,
            alignment=raw.alignment,
            next_recording_id=raw.next_recording_id,
            capacity=raw.capacity,
            used=raw.used,
            damage=damage,
        )

    def entries(self, recording_id: int | None = None) -> list[CatalogEntry]:
        """Every record, or those of one id; UsageError for an id without a record."""
        raw = ffi.new("as_catalog_entry *")
        found = []
        with self._use() as catalog:
            for index in range(lib.as_catalog_count(catalog)):
                check(lib.as_catalog_at(catalog, index, raw))
                if recording_id is None or raw.recording.recording_id == recording_id:
                    found.append(_entry(index, raw))
        if recording_id is not None and not found:
            raise UsageError(f"no recording found with recordingId: {recording_id} in {self.path}")
        return found

    def is_kept(self) -> bool:
        """Whether an archive works on this very folder; False only after a period without activity.

        The mark file of a copy, or of an archive that was killed, appears live for 10 s.
        """
        deadline = time.monotonic() + _SIGN_OF_LIFE_S
        first = mark = self.mark()
        while mark is not None and mark.is_live and first is not None:
            if mark.activity_timestamp_ms != first.activity_timestamp_ms:
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)
            mark = self.mark()
        return False

    def mark(self) -> MarkFile | None:
        """The mark file's content, None without one."""
        raw = ffi.new("as_mark_view *")
        with self._use() as catalog:
            if not check(lib.as_catalog_mark(catalog, raw)):
                return None
            texts = {
                name: string(getattr(raw, name))
                for name in ("control_channel", "local_control_channel", "events_channel", "aeron_dir")
            }
            path = Path(string(raw.path))
        return MarkFile(
            path=path,
            version=raw.version,
            activity_timestamp_ms=None if raw.activity_timestamp_ms == NULL_VALUE else raw.activity_timestamp_ms,
            start_timestamp_ms=raw.start_timestamp_ms,
            pid=raw.pid,
            archive_id=raw.archive_id,
            is_live=raw.is_live,
            control_stream_id=raw.control_stream_id,
            local_control_stream_id=raw.local_control_stream_id,
            events_stream_id=raw.events_stream_id,
            header_length=raw.header_length,
            error_buffer_length=raw.error_buffer_length,
            **texts,
        )

    def errors(self) -> list[ErrorEntry]:
        """The distinct errors that the folder's archive logged."""
        found: list[ErrorEntry] = []

        def on_entry(count: int, first_ms: int, last_ms: int, text: Any, length: int) -> None:
            found.append(
                ErrorEntry(
                    count=count,
                    first_ms=first_ms,
                    last_ms=last_ms,
                    text=bytes(ffi.buffer(text, length)).decode("utf-8", "replace"),
                )
            )

        callbacks = Callbacks(on_error_entry=on_entry)
        with self._use() as catalog:
            lib.as_catalog_errors(catalog, lib.asp_on_error_entry, callbacks.context)
        callbacks.reraise()
        return found

    def set_state(self, entry: CatalogEntry, state: RecordingState) -> None:
        """VALID to INVALID and back; UsageError for another transition."""
        with self._use() as catalog:
            check(lib.as_catalog_set_state(catalog, entry.index, int(state)))

    def set_stop(self, entry: CatalogEntry, position: int | None, timestamp_ms: int | None) -> None:
        """Change where a recording ends, in a copy of a folder; None: its end is found as after a crash."""
        stop, when = (NULL_VALUE if value is None else value for value in (position, timestamp_ms))
        with self._use() as catalog:
            check(lib.as_catalog_set_stop(catalog, entry.index, stop, when))

    def verify(
        self,
        entry: CatalogEntry,
        *,
        all_segments: bool = False,
        repair: bool = False,
        checksum: RecordChecksum = RecordChecksum.AUTO,
        live_limit: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> VerifyReport:
        """Check one recording against its segment files; the report lists the findings.

        `live_limit` is the recorded position of a recording that is currently active. `repair` stores the findings.
        """
        options = ffi.new("as_verify_options *")
        lib.as_verify_options_init(options)
        options.all_segments, options.repair, options.checksum = all_segments, repair, int(checksum)
        options.live_limit = NULL_VALUE if live_limit is None else live_limit
        callbacks = Callbacks(on_progress=on_progress)
        options.on_progress, options.context = lib.asp_on_progress, callbacks.context
        raw = ffi.new("as_verify_report *")
        with self._use() as catalog:
            result = lib.as_catalog_verify(catalog, entry.index, options, raw)
            callbacks.reraise()
            check(result)
        return VerifyReport(
            outcome=VerifyOutcome(raw.outcome),
            checksum=RecordChecksum(int(raw.checksum)),
            is_catalog_checksum_stale=raw.is_catalog_checksum_stale,
            stop_position=None if raw.stop_position == NULL_VALUE else Position(raw.stop_position),
            frames=raw.frames,
            bytes=raw.bytes,
            text=string(raw.text),
        )

    def checksum(
        self,
        entry: CatalogEntry,
        checksum: RecordChecksum,
        *,
        all_segments: bool = False,
        dry: bool = True,
        on_progress: OnProgress | None = None,
    ) -> ChecksumReport:
        """Recompute the checksums of a recording and, unless `dry`, store them.

        DataLossError: frames can't be read; the checksums before them are stored.
        """
        callbacks = Callbacks(on_progress=on_progress)
        raw = ffi.new("as_checksum_report *")
        with self._use() as catalog:
            result = lib.as_catalog_checksum(
                catalog,
                entry.index,
                int(checksum),
                all_segments,
                dry,
                lib.asp_on_progress,
                callbacks.context,
                raw,
            )
            failure = error(result) if result < 0 else None
        callbacks.reraise()
        if failure is not None:
            raise failure
        return ChecksumReport(frames=raw.frames, changed=raw.changed, bytes=raw.bytes)

    def compact(self) -> tuple[int, int]:
        """Remove the records that are not valid; returns their number and bytes. Close the catalog afterwards."""
        deleted, reclaimed = ffi.new("int64_t *"), ffi.new("int64_t *")
        with self._use() as catalog:
            check(lib.as_catalog_compact(catalog, deleted, reclaimed))
        return deleted[0], reclaimed[0]

    def frames(self, entry: CatalogEntry, start: int, end: int, *, limit: int) -> Iterator[Frame]:
        """Frames that begin in [start, end); DataLossError where one is broken, after those before it.

        `limit` >= end is the recording's end. UsageError: [start, end) is not within the recording.
        """
        with _Dump(self, entry.index, start, end, limit) as dump:
            while (frame := dump.next()) is not None:
                yield frame


class _Dump(Handle):
    def __init__(self, catalog: Catalog, index: int, start: int, end: int, limit: int) -> None:
        out = ffi.new("as_dump **")
        with catalog._use() as pointer:
            check(lib.as_dump_open(pointer, index, start, end, limit, out))
            super().__init__(out[0], lib.as_dump_close, catalog)
        self._raw = ffi.new("as_dump_frame *")

    def next(self) -> Frame | None:
        raw = self._raw
        with self._use() as dump:
            if not check(lib.as_dump_next(dump, raw)):
                return None
            return Frame(
                position=Position(raw.position),
                segment_base=Position(raw.segment_base),
                frame_length=raw.frame_length,
                version=raw.version,
                flags=raw.flags,
                type=raw.type,
                term_offset=raw.term_offset,
                session_id=raw.session_id,
                stream_id=raw.stream_id,
                term_id=raw.term_id,
                reserved_value=raw.reserved_value,
                payload=bytes(ffi.buffer(raw.payload, raw.payload_length)),
            )


def migrate(path: str | os.PathLike[str], *, dry: bool = True, on_step: Callable[[str], object] | None = None) -> int:
    """Migrate a folder of storage version 0, 1 or 2 to the current one; returns the number of steps, 0 if current.

    `dry` only reports the planned steps to `on_step`. DataLossError: no such folder, or an earlier step was
    interrupted.
    """
    callbacks = Callbacks(on_text=on_step and (lambda text: on_step(string(text))))
    steps = ffi.new("int32_t *")
    result = lib.as_archive_migrate(c_path(path), dry, lib.asp_on_text, callbacks.context, steps)
    failure = error(result) if result < 0 else None
    callbacks.reraise()
    if failure is not None:
        raise failure
    return int(steps[0])


def version_text(version: int) -> str:
    """Text of a composed version: major.minor.patch."""
    return f"{version >> 16}.{version >> 8 & 0xFF}.{version & 0xFF}"


def state_name(state: RecordingState | int) -> str:
    """Name of a record's state, or its number where it has none."""
    return state.name if isinstance(state, RecordingState) else str(state)


def total_bytes(entries: Iterable[CatalogEntry], *, all_segments: bool) -> int:
    """Approximate bytes that verifying these reads, used to estimate the time left."""
    total = 0
    for entry in entries:
        recording = entry.recording
        if entry.state == RecordingState.DELETED or recording.stop_position is None:
            continue
        length = max(0, recording.stop_position - recording.start_position)
        total += length if all_segments else min(length, recording.segment_file_length)
    return total


def _entry(index: int, raw: Any) -> CatalogEntry:
    known = raw.state in RecordingState._value2member_map_
    return CatalogEntry(
        index=index,
        recording=recording_from(raw.recording),
        state=RecordingState(raw.state) if known else int(raw.state),
        checksum=raw.checksum,
        control_session_id=raw.control_session_id,
        correlation_id=raw.correlation_id,
        offset=raw.offset,
        length=raw.length,
    )
