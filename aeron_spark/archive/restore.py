"""`aeron-spark archive restore`: recordings of a backup put into an archive's folder, an empty one or one whose archive ended.

A backup is not trusted. Its manifest's parser checks names and sizes, the code that reads catalogs its catalog. Each file is
written under a name of its own, compared with its digest, and then linked to its name, which never replaces a file. Files that
are there already stay if they begin with the same bytes; else nothing is written at all. The catalog comes last.

Three cases, by what the folder has:

  no catalog          the backup's recordings are put there. Where a segment goes on behind the backup's end, or there are
                      later segments, the archive recorded on after the backup, and its catalog was lost. Such a recording
                      gets no stop position: its end is found as after a crash (`reopened`).
  the recording       segments that it lacks are put back. Its entry stays as it is.
  other recordings    the entry is added. The ids of the folder's archive go on behind both.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from aeron_spark.archive.backup import Limiter, read_manifest, stored_catalog, stored_name
from aeron_spark.archive.backup_files import CATALOG, MANIFEST, Manifest, StoredFile, recording_of
from aeron_spark.archive.backup_snapshot import (
    CATALOG_PAGE,
    catalog_entries,
    edited_catalog,
    next_recording_id,
    used_files,
)
from aeron_spark.archive.backup_store import FOLDER_MODE, FileWriter, Store, read_chunks, sync_path
from aeron_spark.archive.segment_files import SegmentFile, segment_files
from aeron_spark.archive.tools import Catalog, CatalogEntry, RecordingState, version_text
from aeron_spark.errors import DataLossError, StorageError, UsageError
from aeron_spark.small_files import FILE_MODE
from aeron_spark.types import Position

__all__ = ["RestoreReport", "restore"]

# Arguments: bytes done, bytes of all.
OnProgress = Callable[[int, int], object]

_PART = re.compile(r"\.(.+)\.[0-9a-f]{16}\.part", re.ASCII)
# Spec: 06 §3.1 - version, length, next recording id, alignment.
_HEADER = struct.Struct("<iiqi12x")
_WRITER_BYTES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreReport:
    """What a restore did. `reopened` recordings go on behind the backup's end, `unknown` ones have segments and no entry.

    `missing` segments are not in the backup either.
    """

    taken_ms: int
    recordings: tuple[int, ...]
    files: int
    bytes: int
    reopened: tuple[int, ...]
    unknown: tuple[int, ...]
    missing: tuple[str, ...]


@dataclass(slots=True)
class _Plan:
    """What will be done: files to write, ids whose entries are added, and ids that get no stop position."""

    files: list[StoredFile] = field(default_factory=list)
    added: list[CatalogEntry] = field(default_factory=list)
    recordings: list[int] = field(default_factory=list)
    reopened: list[int] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def restore(
    store: Store,
    folder: str | os.PathLike[str],
    recording_ids: Sequence[int] = (),
    *,
    rate: int | None = None,
    on_progress: OnProgress | None = None,
) -> RestoreReport:
    """Put recordings of a backup, all of them by default, into a folder.

    UsageError: an archive runs on the folder, or a file there has other bytes. DataLossError: the backup is damaged.
    StorageError: a file can't be read or written, or the disk is too small. After an error, a repeated call goes on.
    """
    return _Restore(store, Path(folder), Limiter(rate), on_progress).run(recording_ids)


class _Restore:
    def __init__(self, store: Store, folder: Path, limiter: Limiter, on_progress: OnProgress | None) -> None:
        self._store = store
        self._folder = folder
        self._limiter = limiter
        self._on_progress = on_progress
        self._there = store.list()
        manifest = read_manifest(store)
        if manifest is None:
            raise UsageError(
                f"{store.name} is no backup: there is no {MANIFEST} in it; give what aeron-spark archive backup wrote"
            )
        self._manifest: Manifest = manifest
        self._files = manifest.by_name()
        self._catalog = stored_catalog(store, manifest, self._there)
        self._entries = catalog_entries(self._catalog, store.name)

    def run(self, recording_ids: Sequence[int]) -> RestoreReport:
        with _failures(self._folder):
            target = self._target_catalog()
            plan, unknown = self._plan(self._chosen(recording_ids), target)
            self._check_space(plan.files)
            self._folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            self._write_all(plan.files)
            if plan.added or target is None:
                self._put_catalog(target, plan)
            sync_path(self._folder)
        return RestoreReport(
            taken_ms=self._manifest.taken_ms,
            recordings=tuple(plan.recordings),
            files=len(plan.files),
            bytes=sum(file.data_bytes for file in plan.files),
            reopened=tuple(plan.reopened),
            unknown=tuple(unknown),
            missing=tuple(plan.missing),
        )

    # -- planning ----------------------------------------------------------------------------------------------------

    def _chosen(self, recording_ids: Sequence[int]) -> list[CatalogEntry]:
        usable = [entry for entry in self._entries if entry.state != RecordingState.DELETED]
        known = {int(entry.recording.recording_id): entry for entry in usable}
        for recording_id in recording_ids:
            if recording_id not in known:
                raise UsageError(
                    f"the backup {self._store.name} has no recording {recording_id}; it has "
                    f"{', '.join(map(str, sorted(known)[:20])) or 'none'}"
                )
        return [known[one] for one in sorted(set(recording_ids))] if recording_ids else usable

    def _target_catalog(self) -> bytes | None:
        """The folder's catalog, of an archive that does not run; None without one."""
        if self._folder.is_symlink():
            raise UsageError(f"{self._folder} is a symbolic link, which is not followed: name the folder itself")
        path = self._folder / CATALOG
        if not os.path.lexists(path):
            return None
        with Catalog(self._folder, writable=True) as catalog:  # refuses a running archive
            damage = catalog.info().damage
        if damage:
            raise DataLossError(
                f"{damage}; to take the backup's in its place, move it away: mv {path} {path}.damaged, and restore again"
            )
        return path.read_bytes()

    def _plan(self, chosen: list[CatalogEntry], target: bytes | None) -> tuple[_Plan, list[int]]:
        plan = _Plan()
        entries = [] if target is None else catalog_entries(target, str(self._folder))
        known = {int(entry.recording.recording_id): entry for entry in entries if entry.state != RecordingState.DELETED}
        there = {file.path.name: file for file in segment_files(self._folder)} if self._folder.is_dir() else {}
        for entry in chosen:
            recording_id = int(entry.recording.recording_id)
            own = known.get(recording_id)
            if own is None:
                plan.added.append(entry)
                names = self._names(entry)
                plan.missing += [name for name in names if name in self._manifest.missing]
                names = [name for name in names if name in self._files]
                if self._goes_on(entry, there):
                    plan.reopened.append(recording_id)
            else:
                names = self._lacking(entry, own, there)
            files = [self._files[name] for name in names]
            plan.files += [file for file in files if not self._has(file)]
            if own is None or names:
                plan.recordings.append(recording_id)
        ids = {int(entry.recording.recording_id) for entry in (*self._entries, *entries)}
        unknown = sorted({file.recording_id for file in there.values()} - ids)
        return plan, unknown

    def _names(self, entry: CatalogEntry) -> list[str]:
        """Files of a recording that the backup should have, by its catalog and by its manifest."""
        recording = entry.recording
        if entry.state == RecordingState.INVALID or recording.stop_position is None:
            return [name for name in self._files if recording_of(name) == recording.recording_id]
        names = []
        for name, used, length in used_files(recording, recording.stop_position):
            file = self._files.get(name)
            if file is None and name not in self._manifest.missing:
                raise self._contradiction(f"{name} is not in the manifest")
            if file is not None and (file.length, file.file_length) != (used, length):
                raise self._contradiction(f"{name} has {file.length} of {file.file_length} bytes in the manifest")
            names.append(name)
        index = f"{recording.recording_id}.time-index"
        return [*names, index] if index in self._files else names

    def _contradiction(self, reason: str) -> DataLossError:
        return DataLossError(f"{self._store.name}: {reason}, which contradicts the catalog; use another backup")

    def _lacking(self, entry: CatalogEntry, own: CatalogEntry, there: dict[str, SegmentFile]) -> list[str]:
        """Segments of a recording of the folder that are not there."""
        recording, mine = entry.recording, own.recording
        facts = ("start_timestamp_ms", "initial_term_id", "stream_id", "segment_file_length", "term_buffer_length")
        if any(getattr(recording, fact) != getattr(mine, fact) for fact in facts):
            raise UsageError(
                f"recording {recording.recording_id} of {self._folder} is another one than the backup's: restore into an empty "
                f"folder"
            )
        stop = mine.stop_position
        if stop is None:  # its end is not known before the archive's next start: as far as there are segments
            bases = [file.position or 0 for file in there.values() if file.recording_id == mine.recording_id]
            stop = Position(max([*bases, mine.start_position]))
        lacking = []
        for name, used, _ in used_files(mine, stop):
            if name in there:
                continue
            file = self._files.get(name)
            if file is None or file.length < used:
                raise DataLossError(
                    f"{name} is missing in {self._folder}, and {self._store.name} has "
                    f"{'no such segment' if file is None else f'{file.length} of its {used} bytes'}: use another backup, or "
                    f"give up what is behind it: aeron-spark archive verify {self._folder} --repair"
                )
            lacking.append(name)
        return lacking

    def _goes_on(self, entry: CatalogEntry, there: dict[str, SegmentFile]) -> bool:
        """Whether the folder has more of a recording than the backup."""
        recording = entry.recording
        stop = recording.stop_position
        if stop is None or entry.state != RecordingState.VALID:
            return False
        last = recording.segment_base(stop)
        own = [file.position for file in there.values() if file.recording_id == recording.recording_id]
        if any(position is not None and position > last for position in own):
            return True
        file = there.get(f"{recording.recording_id}-{last}.rec")
        if file is None or stop - last + 4 > file.size:
            return False
        with file.path.open("rb") as opened:
            opened.seek(stop - last)
            return bool(any(opened.read(4)))  # the length of a frame

    def _has(self, file: StoredFile) -> bool:
        """Whether the folder has the file; UsageError: it begins with other bytes."""
        path = self._folder / file.name
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            if file.name.endswith(".time-index"):
                return True  # the folder's own knows more
            digest = hashlib.sha256()
            for chunk in read_chunks(descriptor, file.length, file.hole_end):
                digest.update(chunk)
            if os.fstat(descriptor).st_size == file.file_length and digest.hexdigest() == file.sha256:
                return True
        finally:
            os.close(descriptor)
        raise UsageError(
            f"{path} has other bytes than the backup, and is not overwritten: restore into an empty folder, or move it away"
        )

    def _check_space(self, files: Iterable[StoredFile]) -> None:
        wanted = sum(file.data_bytes for file in files)
        nearest = next(path for path in (self._folder, *self._folder.absolute().parents) if path.exists())
        free = shutil.disk_usage(nearest).free
        if wanted > free:
            raise StorageError(
                f"{self._folder}: {wanted:,} bytes are to be restored, {free:,} are free; make room, restore to another disk, "
                f"or choose recordings with --recording"
            )

    # -- writing -----------------------------------------------------------------------------------------------------

    def _write_all(self, files: Sequence[StoredFile]) -> None:
        for name in os.listdir(self._folder):  # noqa: PTH208 - names
            if (part := _PART.fullmatch(name)) and (recording_of(part[1]) is not None or part[1] == CATALOG):
                (self._folder / name).unlink()  # of a restore that was killed
        done, total = 0, sum(file.data_bytes for file in files)
        for file in files:
            digest = hashlib.sha256()
            with self._part(file.name) as (path, descriptor):
                out = FileWriter(descriptor, file.file_length, file.hole_end)
                for chunk in self._store.chunks(stored_name(file, self._there), file):
                    self._limiter.take(len(chunk))
                    digest.update(chunk)
                    out.write(chunk)
                    done += len(chunk)
                    if self._on_progress is not None:
                        self._on_progress(done, total)
                if digest.hexdigest() != file.sha256:
                    raise DataLossError(
                        f"{self._store.name}/{file.name} has other bytes than its manifest says, and was not restored; "
                        f"use another backup, or leave recording {recording_of(file.name)} out with --recording"
                    )
                out.finish()
                os.fsync(descriptor)
                os.utime(descriptor, ns=(file.mtime_ns, file.mtime_ns))
                self._link(path, file.name)

    @contextmanager
    def _part(self, name: str) -> Iterator[tuple[Path, int]]:
        path = self._folder / f".{name}.{secrets.token_hex(8)}.part"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, FILE_MODE)
        try:
            yield path, descriptor
        finally:
            os.close(descriptor)
            with suppress(FileNotFoundError):
                path.unlink()

    def _link(self, path: Path, name: str) -> None:
        try:
            os.link(path, self._folder / name)
        except FileExistsError:
            raise UsageError(
                f"{self._folder / name} was made meanwhile, and is not overwritten: stop what writes there, and restore again"
            ) from None

    def _put_catalog(self, target: bytes | None, plan: _Plan) -> None:
        data = self._merged(target, plan)
        with self._part(CATALOG) as (path, descriptor):
            FileWriter(descriptor, len(data), 0).write(memoryview(data))
            os.fsync(descriptor)
            if target is None:
                self._link(path, CATALOG)
                return
            with Catalog(self._folder, writable=True):
                if (self._folder / CATALOG).read_bytes() != target:
                    raise UsageError(
                        f"{self._folder / CATALOG} has changed meanwhile: stop the archive, and restore again; what was "
                        f"restored stays"
                    )
                path.replace(self._folder / CATALOG)

    def _merged(self, target: bytes | None, plan: _Plan) -> bytes:
        """The catalog with the entries that are added, by id. Spec: 06 §3."""

        def reopen(catalog: Catalog) -> None:
            for entry in catalog.entries():
                if entry.recording.recording_id in plan.reopened and entry.state == RecordingState.VALID:
                    catalog.set_stop(entry, None, None)

        source = edited_catalog(self._catalog, reopen)
        version, length, next_id, alignment = _HEADER.unpack_from(source)
        records = {
            entry.recording.recording_id: source[entry.offset : entry.offset + entry.length] for entry in plan.added
        }
        next_ids = [next_id, next_recording_id(self._catalog)]
        if target is not None:
            other_version, _, other_id, other_alignment = _HEADER.unpack_from(target)
            if (version >> 16, alignment) != (other_version >> 16, other_alignment):
                raise UsageError(
                    f"{self._folder} has a catalog of version {version_text(other_version)}, the backup one of "
                    f"{version_text(version)}: restore into an empty folder"
                )
            version = other_version
            next_ids.append(other_id)
            for entry in catalog_entries(target, str(self._folder)):
                records.setdefault(entry.recording.recording_id, target[entry.offset : entry.offset + entry.length])
        files = segment_files(self._folder)
        next_ids += [file.recording_id + 1 for file in files if file.recording_id < 1 << 62]
        # Behind these fields stands which archive wrote last, and how: it decides what of the last frames counts after a crash.
        writer = bytes(_WRITER_BYTES) if target is None else target[_HEADER.size - _WRITER_BYTES : _HEADER.size]
        data = _HEADER.pack(version, length, max(next_ids), alignment)[:-_WRITER_BYTES] + writer
        data += b"".join(records[recording_id] for recording_id in sorted(records))
        return data + bytes(-len(data) % CATALOG_PAGE)


@contextmanager
def _failures(folder: Path) -> Iterator[None]:
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(
            f"cannot restore into {folder}: {error.strerror or error}; check its rights and file system, and restore again, "
            f"which goes on",
            code=error.errno or 0,
        ) from None
