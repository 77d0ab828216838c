"""`aeron-spark archive restore`: recordings of a backup put into an archive's folder, an empty one or one whose archive ended.

A backup is not trusted. Its manifest's parser checks names and sizes, the code that reads catalogs its catalog. Each file is
written under a name of its own, compared with its digest, and then linked to its name, which never replaces a file. Files that
are there already stay if they begin with the same bytes; else nothing is written at all. The catalog comes last.

Three cases, by what the folder has:

  no catalog          the backup's recordings are put there. Where a segment goes on behind the backup's end, or there are
                      later segments, the archive recorded on after the backup, and its catalog was lost. Such a recording
                      gets no stop position: its end is found as after a crash (`reopened`).
  the recording       segments that it lacks are put back. Its entry stays as it is. Where its archive died, that is all that
                      the backup has behind the last segment, too. A recording that was extended since the backup may have
                      been truncated before, and have other bytes: then the highest segment that folder and backup both
                      have must have the same ones.
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
from dataclasses import dataclass, field, replace
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
from aeron_spark.archive.backup_store import FOLDER_MODE, FileWriter, Store, read_chunks
from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.segment_files import SegmentFile, segment_files
from aeron_spark.archive.tools import Catalog, CatalogEntry, RecordingState, version_text
from aeron_spark.errors import DataLossError, StorageError, UsageError
from aeron_spark.small_files import FILE_MODE, sync_path
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
        self._files_of: dict[int, list[StoredFile]] = {}
        for file in manifest.files:
            if (recording_id := recording_of(file.name)) is not None:
                self._files_of.setdefault(recording_id, []).append(file)
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
        there_of: dict[int, dict[str, SegmentFile]] = {}
        for file in segment_files(self._folder) if self._folder.is_dir() else ():
            there_of.setdefault(file.recording_id, {})[file.path.name] = file
        for entry in chosen:
            recording_id = int(entry.recording.recording_id)
            own, there = known.get(recording_id), there_of.get(recording_id, {})
            if own is None:
                plan.added.append(entry)
                names = self._names(entry)
                plan.missing += [name for name in names if name in self._manifest.missing]
                names = [name for name in names if name in self._files]
                if self._goes_on(entry, there):
                    plan.reopened.append(recording_id)
            else:
                names = self._lacking(entry, own, there)
            plan.files += [self._files[name] for name in names if not self._has(self._files[name])]
            if own is None or names:
                plan.recordings.append(recording_id)
        ids = {int(entry.recording.recording_id) for entry in (*self._entries, *entries)}
        unknown = sorted(there_of.keys() - ids)
        return plan, unknown

    def _names(self, entry: CatalogEntry) -> list[str]:
        """Files of a recording that the backup should have, by its catalog and by its manifest."""
        recording = entry.recording
        if entry.state == RecordingState.INVALID or recording.stop_position is None:
            return [file.name for file in self._files_of.get(int(recording.recording_id), ())]
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
        """Segments of a recording of the folder that are not there, and are the recording's own in the backup."""
        recording, mine = entry.recording, own.recording
        facts = ("start_timestamp_ms", "initial_term_id", "stream_id", "segment_file_length", "term_buffer_length")
        if any(getattr(recording, fact) != getattr(mine, fact) for fact in facts):
            raise UsageError(
                f"recording {recording.recording_id} of {self._folder} is another one than the backup's: restore into an empty "
                f"folder"
            )
        first = mine.segment_base(mine.start_position)
        last = max((_base(name) for name in there if _is_above(name, first - 1)), default=first - 1)
        stop = mine.stop_position
        wanted = [
            (name, used)
            for name, used, _ in used_files(mine, Position(max(last, mine.start_position)) if stop is None else stop)
            if name not in there and used > 0
        ]
        # Of an archive that died the end is not known before its next start, which finds it in the highest segment.
        behind = [] if stop is not None else [name for name in self._names(entry) if _is_above(name, last)]
        behind = behind if any(self._length(name) > 0 for name in behind) else []
        if not wanted and not behind:
            return []
        same_to, other = self._compared(mine, there)
        if other and own.era != entry.era:
            behind = []  # of the recording as it was before it was truncated
        wanted += [(name, max(self._length(name), 0)) for name in behind]
        for name, used in wanted:
            if self._length(name) < used:
                raise self._not_there(name, used)
            if (other or own.era != entry.era) and _base(name) + used > same_to:
                raise self._unproven(name, other)
        return [name for name, _ in wanted]

    def _length(self, name: str) -> int:
        """Bytes that the backup has of a segment, -1 without it."""
        return self._files[name].length if name in self._files else -1

    def _compared(self, mine: Recording, there: dict[str, SegmentFile]) -> tuple[int, str]:
        """Up to where folder and backup are known to have the same bytes, and the name of a segment above with others.

        From the highest segment down to the first that begins with the same bytes in both: a truncation replaces all above.
        """
        other = ""
        first = mine.segment_base(mine.start_position)
        common = [
            file
            for file in self._files_of.get(int(mine.recording_id), ())
            if file.name in there and _is_above(file.name, first - 1)
        ]
        for file in sorted(common, key=lambda file: _base(file.name), reverse=True):
            base = _base(file.name)
            stop = base + file.length if mine.stop_position is None else mine.stop_position
            length = min(file.length, stop - base)
            if length > 0:
                found = self._digest(file, length)
                if found is not None and found[0] == self._stored_digest(file, length):
                    return base + length, other
                other = other or file.name
        return -1, other

    def _stored_digest(self, file: StoredFile, length: int) -> str:
        if length == file.length:
            return file.sha256
        digest = hashlib.sha256()
        for chunk in self._store.chunks(stored_name(file, self._there), replace(file, length=length)):
            digest.update(chunk)
        return digest.hexdigest()

    def _not_there(self, name: str, used: int) -> DataLossError:
        there = f"{self._length(name)} of its {used} bytes" if name in self._files else "no such segment"
        return DataLossError(
            f"{name} is missing in {self._folder}, and {self._store.name} has {there}: use another backup, or give up what is "
            f"behind it: aeron-spark archive verify {self._folder} --repair"
        )

    def _unproven(self, name: str, other: str) -> DataLossError:
        reason = (
            f"{other} has (move it away to have the backup's)"
            if other
            else "its recording was extended after the backup"
        )
        return DataLossError(
            f"{name} is missing in {self._folder}, and may have other bytes in {self._store.name}, because {reason}: use a "
            f"later backup, restore others with --recording, or give up what is behind it: aeron-spark archive verify "
            f"{self._folder} --repair"
        )

    def _goes_on(self, entry: CatalogEntry, there: dict[str, SegmentFile]) -> bool:
        """Whether the folder has more of a recording than the backup."""
        recording = entry.recording
        stop = recording.stop_position
        if stop is None or entry.state != RecordingState.VALID:
            return False
        last = recording.segment_base(stop)
        if any(file.position is not None and file.position > last for file in there.values()):
            return True
        file = there.get(f"{recording.recording_id}-{last}.rec")
        if file is None:
            return False
        with file.path.open("rb") as opened:
            opened.seek(stop - last)
            return any(opened.read(4))  # the length of a frame

    def _has(self, file: StoredFile) -> bool:
        """Whether the folder has the file; UsageError: it begins with other bytes."""
        if file.name.endswith(".time-index"):
            return os.path.lexists(self._folder / file.name)  # the folder's own knows more
        found = self._digest(file, file.length)
        if found is None or found == (file.sha256, file.file_length):
            return found is not None
        raise UsageError(
            f"{self._folder / file.name} has other bytes than the backup, and is not overwritten: restore into an empty "
            f"folder, or move it away"
        )

    def _digest(self, file: StoredFile, length: int) -> tuple[str, int] | None:
        """SHA-256 of the first bytes of the folder's file of that name, and its size; None: it is not there."""
        try:
            descriptor = os.open(self._folder / file.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            digest = hashlib.sha256()
            for chunk in read_chunks(descriptor, length, file.hole_end):
                digest.update(chunk)
            return digest.hexdigest(), os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)

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


def _base(name: str) -> int:
    """Position of a segment's first byte, by its name."""
    return int(name.rpartition("-")[2].removesuffix(".rec"))


def _is_above(name: str, base: int) -> bool:
    return name.endswith(".rec") and recording_of(name) is not None and _base(name) > base


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
