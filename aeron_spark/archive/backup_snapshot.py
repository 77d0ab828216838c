"""What a consistent copy of an archive's folder holds, while the archive goes on.

A snapshot is the catalog as it was at one moment, and for each recording the position where the copy ends (its cut):

  1. the recorded positions of the ledger of exactly-once writes,
  2. the catalog, read until two reads are equal,
  3. the recorded positions of the other active recordings, and a fingerprint of the frame that ends at each cut.

An entry of the ledger is appended when the ranges that it names are recorded, so each entry below the ledger's cut names bytes
below the other cuts. Recorded positions never pass bytes that are written, and end at whole frames. Bytes below a recorded
position change in one way only: the recording is truncated and extended again. `Snapshot.why_broken` looks at the folder after
the copying. It reports a change or a deletion of what the snapshot names; then another snapshot is taken.
"""

from __future__ import annotations

import os
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from aeron_spark.archive.backup_files import CATALOG, INDEX_HEADER_BYTES, MAX_SEGMENT_BYTES
from aeron_spark.archive.fingerprints import same_fingerprint
from aeron_spark.archive.recordings import Recording, is_ledger
from aeron_spark.archive.segment_files import segment_files
from aeron_spark.archive.segments import Folder
from aeron_spark.archive.tools import Catalog, CatalogEntry, RecordingState
from aeron_spark.errors import AeronError, DataLossError, PeerError, StorageError

__all__ = [
    "Snapshot",
    "Wanted",
    "catalog_entries",
    "edited_catalog",
    "next_recording_id",
    "read_index_header",
    "take_snapshot",
    "used_files",
]

_TRIES = 50
_PAUSE_S = 0.02
# Spec: 06 §3.1 - bytes 20 to 31 are unused; our archive keeps there which process wrote last, which a copy has none of.
#: A catalog is made longer by zeros up to a multiple of it.
CATALOG_PAGE = 4096
_HEADER_BYTES, _UNUSED = 32, slice(20, 32)
# Of a time index: control session id, correlation id, session id, a gap, first slot in use.
_INDEX_HEADER = struct.Struct("<24xqqi4xq8x")
_INDEX_ENTRY_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A file of the source that the copy holds up to `length`."""

    name: str
    length: int
    file_length: int
    recording: Recording
    entry: CatalogEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The catalog of the copy, its entries as the source had them, and each valid recording's cut."""

    taken_ms: int
    catalog: bytes
    entries: tuple[CatalogEntry, ...]
    cuts: dict[int, int]
    fingerprints: dict[int, int] = field(default_factory=dict)

    def segments(self, folder: Path) -> list[Wanted]:
        """The segment files, by recording and position; of a recording that is INVALID whatever is there."""
        found = [
            Wanted(name=name, length=used, file_length=length, recording=entry.recording, entry=entry)
            for entry in self.entries
            if entry.state == RecordingState.VALID
            for name, used, length in used_files(entry.recording, self.cuts[entry.recording.recording_id])
        ]
        invalid: dict[int, CatalogEntry] = {
            entry.recording.recording_id: entry for entry in self.entries if entry.state == RecordingState.INVALID
        }
        if invalid:
            for file in segment_files(folder):
                if (
                    file.recording_id in invalid
                    and file.path.suffix == ".rec"
                    and file.position is not None
                    and file.size <= MAX_SEGMENT_BYTES
                ):
                    entry = invalid[file.recording_id]
                    size = file.size
                    found.append(
                        Wanted(
                            name=file.path.name, length=size, file_length=size, recording=entry.recording, entry=entry
                        )
                    )
        return found

    def why_broken(self, folder: Folder) -> str:
        """What happened to the bytes that this snapshot names since it was taken; empty if nothing did."""
        folder.refresh()
        now = {recording.recording_id: recording for recording in folder.recordings()}
        for entry in self.entries:
            recording_id = entry.recording.recording_id
            if entry.state != RecordingState.VALID:
                continue
            found, cut = now.get(recording_id), self.cuts[recording_id]
            if found is None:
                return f"recording {recording_id} was purged"
            if found.start_position > entry.recording.start_position:
                return f"segments of recording {recording_id} were purged or detached"
            if found.stop_position is not None and found.stop_position < cut:
                return f"recording {recording_id} was truncated"
        fingerprints = _fingerprints(folder, self.cuts)
        for one, before in self.fingerprints.items():
            if not same_fingerprint(fingerprints[one], before):
                return f"recording {one} was truncated and extended"
        return ""


def take_snapshot(path: Path, aeron_dir: str | None) -> Snapshot:
    """A snapshot of a folder whose archive runs, ended or died.

    PeerError: its driver's counters can't be read, with the setting to change; DataLossError: the catalog is damaged.
    """
    reason = ""
    for _ in range(_TRIES):
        with Folder(path, aeron_dir=aeron_dir) as folder:
            try:
                snapshot = _try(path, folder)
            except (PeerError, StorageError):
                raise
            except AeronError as failure:  # a recording that is gone by now, or a record that is being written
                reason, snapshot = str(failure), None
        if snapshot is not None:
            return snapshot
        time.sleep(_PAUSE_S)
    raise DataLossError(
        f"the catalog of {path} can't be copied: {reason or 'it changes all the time'}; check it with aeron-spark archive "
        f"verify {path}, or stop the archive and try again"
    )


def _try(path: Path, folder: Folder) -> Snapshot | None:
    """None: something changed meanwhile."""
    ledgers: dict[int, int] = {
        recording.recording_id: int(folder.extent(recording.recording_id).limit_position)
        for recording in folder.recordings()
        if is_ledger(recording)
    }
    catalog = _steady(path / CATALOG)
    if catalog is None:
        return None
    taken_ms = round(time.time() * 1000)
    entries = catalog_entries(catalog, str(path))
    folder.refresh()
    valid = [entry.recording for entry in entries if entry.state == RecordingState.VALID]
    active = [one.recording_id for one in valid if one.stop_position is None and not is_ledger(one)]
    limits: dict[int, int] = dict(zip(active, map(int, folder.extents(np.array(active, np.int64))[1]), strict=True))
    cuts: dict[int, int] = {}
    for one in valid:
        limit = limits.get(one.recording_id, one.stop_position)
        cut = ledgers.get(one.recording_id) if is_ledger(one) else limit
        if cut is None or cut < one.start_position or (one.stop_position is not None and cut > one.stop_position):
            return None
        cuts[one.recording_id] = cut

    def edit(catalog: Catalog) -> None:
        for entry in catalog.entries():
            cut = cuts.get(entry.recording.recording_id)
            if entry.state == RecordingState.VALID and cut is not None and entry.recording.stop_position != cut:
                catalog.set_stop(entry, cut, taken_ms)

    return Snapshot(
        taken_ms=taken_ms,
        catalog=edited_catalog(catalog, edit),
        entries=tuple(entries),
        cuts=cuts,
        fingerprints=_fingerprints(folder, cuts),
    )


def _fingerprints(folder: Folder, cuts: dict[int, int]) -> dict[int, int]:
    found = folder.fingerprints(np.array(list(cuts), np.int64), np.array(list(cuts.values()), np.int64))
    return dict(zip(cuts, map(int, found), strict=True))


def _steady(path: Path) -> bytes | None:
    """The file, if two reads are equal: its archive writes while it is read."""
    with path.open("rb") as file:
        first = file.read()
    with path.open("rb") as file:
        return first if file.read() == first else None


# -- the catalog as bytes ----------------------------------------------------------------------------------------------------


def catalog_entries(catalog: bytes, where: str) -> list[CatalogEntry]:
    """Every record of a catalog's bytes. DataLossError: it is damaged."""
    with _unpacked(catalog) as folder, Catalog(folder) as opened:
        damage = opened.info().damage
        if damage:
            raise DataLossError(f"{where}: {damage}")
        return opened.entries()


def next_recording_id(catalog: bytes) -> int:
    """The id that the archive would give next. Spec: 06 §3.1."""
    with _unpacked(catalog) as folder, Catalog(folder) as opened:
        return opened.info().next_recording_id


def edited_catalog(catalog: bytes, edit: Callable[[Catalog], None]) -> bytes:
    """The catalog's records after `edit`, without the marks of the process that wrote it."""
    with _unpacked(catalog) as folder:
        with Catalog(folder, writable=True) as opened:
            edit(opened)
            used = opened.info().used
        changed = bytearray((folder / CATALOG).read_bytes()[:used])
    changed[_UNUSED] = bytes(_HEADER_BYTES - _UNUSED.start)
    return bytes(changed) + bytes(-len(changed) % CATALOG_PAGE)


@contextmanager
def _unpacked(catalog: bytes) -> Iterator[Path]:
    """A folder with this catalog alone."""
    with tempfile.TemporaryDirectory(prefix="aeron-spark-catalog-") as name:
        (Path(name) / CATALOG).write_bytes(catalog)
        yield Path(name)


# -- files -------------------------------------------------------------------------------------------------------------------


def used_files(recording: Recording, end: int) -> Iterator[tuple[str, int, int]]:
    """Name, bytes in use and length of each segment file of a recording that ends at `end`.

    A full segment is followed by an empty one, as an archive makes it. A recording without bytes has no file.
    """
    length, start = recording.segment_file_length, recording.start_position
    if end == start:
        return
    for base in range(int(recording.segment_base(start)), int(recording.segment_base(end)) + 1, length):
        yield f"{recording.recording_id}-{base}.rec", min(end - base, length), length


def read_index_header(descriptor: int) -> tuple[tuple[int, int, int], int] | None:
    """The ids of the last extension that a time index knows, and where its entries in use begin; None without a header."""
    header = os.pread(descriptor, _INDEX_HEADER.size, 0)
    if len(header) < _INDEX_HEADER.size:
        return None
    control_session_id, correlation_id, session_id, first_slot = _INDEX_HEADER.unpack(header)
    size = os.fstat(descriptor).st_size
    begin = INDEX_HEADER_BYTES + max(first_slot, 0) * _INDEX_ENTRY_BYTES
    return (control_session_id, correlation_id, session_id), begin if begin <= size else INDEX_HEADER_BYTES


def check_folder(path: Path) -> None:
    """DataLossError: there is no archive there."""
    if not (path / CATALOG).is_file():
        raise DataLossError(f"{path} is no archive folder: there is no {CATALOG} in it; give the folder of an archive")
