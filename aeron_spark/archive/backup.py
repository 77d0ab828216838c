"""`aeron-spark archive backup`: a consistent copy of an archive's folder, also of one whose archive runs, ours or stock.

Rounds of three steps: a snapshot says which bytes belong to the copy (`backup_snapshot`), files that changed since the last
backup are copied, and the folder is looked at again. If something happened to bytes of the snapshot meanwhile (a purge, a
truncation), there is another round, which copies only what changed since. At last the manifest is written; `backup_files`
explains why a backup is whole or the one before it is.

Times and size of a segment tell whether it has changed, unless it had just changed when it was copied. Then its bytes are read
and compared. Detached segments and files that no recording uses are not copied.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from aeron_spark.archive.backup_files import (
    CATALOG,
    INCOMING,
    INDEX_HEADER_BYTES,
    MANIFEST,
    MAX_MANIFEST_BYTES,
    NEW_MANIFEST,
    PROGRESS,
    Manifest,
    StoredFile,
    is_file_name,
    recording_of,
)
from aeron_spark.archive.backup_snapshot import (
    Snapshot,
    Wanted,
    catalog_entries,
    check_folder,
    next_recording_id,
    read_index_header,
    take_snapshot,
)
from aeron_spark.archive.backup_store import Store, read_chunks
from aeron_spark.archive.segments import Folder
from aeron_spark.archive.tools import CatalogEntry, RecordingState
from aeron_spark.errors import DataLossError, StorageError, UsageError

__all__ = ["BackupReport", "Limiter", "backup", "read_manifest", "stored_catalog"]

ROUNDS = 25
#: Files that are copied at a time: one is read and hashed while another is written.
WORKERS = 4
PROGRESS_S = 2.0
#: A file whose last change is not older than this when it is copied may change again within the same tick of its times.
SETTLED_NS = 2_000_000_000
PAUSE_S = 0.2
#: Rounds after which a segment is missing, and after which a time index is of no use.
LOST_ROUNDS, STALE_ROUNDS = 5, 3

# Arguments: bytes done, bytes of the round.
OnProgress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupReport:
    """What a backup did: segments that only the backup before has are `kept`, those that it lacks, too, are `missing`."""

    recordings: int
    files: int
    bytes: int
    copied_files: int
    copied_bytes: int
    rounds: int
    seconds: float
    kept: tuple[str, ...]
    missing: tuple[str, ...]


class Limiter:
    """Bytes a second, of all threads together; None: no bound."""

    def __init__(self, rate: int | None) -> None:
        self._rate = rate
        self._lock = threading.Lock()
        self._free_at = time.monotonic()

    def take(self, count: int) -> None:
        """Wait until `count` bytes more may be copied."""
        if self._rate is None:
            return
        with self._lock:
            now = time.monotonic()
            self._free_at = max(self._free_at, now) + count / self._rate
            wait = self._free_at - now
        if wait > 0:
            time.sleep(wait)


def backup(
    folder: str | os.PathLike[str],
    store: Store,
    *,
    aeron_dir: str | None = None,
    rate: int | None = None,
    on_progress: OnProgress | None = None,
) -> BackupReport:
    """Bring the backup in `store` to what the folder holds now.

    UsageError: the store has another archive's backup, or something else. PeerError: the driver of the live archive can't
    be reached. DataLossError: the catalog is damaged. StorageError: a file can't be read or written.
    """
    path = Path(folder)
    check_folder(path)
    if store.path is not None:
        _check_apart(path, store.path)
    with store.lock():
        run = _Run(path, store, aeron_dir, Limiter(rate), on_progress)
        return run.all()


def read_manifest(store: Store, name: str = MANIFEST) -> Manifest | None:
    """The manifest of the backup that counts, None where there is none. DataLossError: a damaged one."""
    data = store.read(name, MAX_MANIFEST_BYTES)
    if data is None and name == MANIFEST:
        new = store.read(NEW_MANIFEST, MAX_MANIFEST_BYTES)
        if new is not None:
            with suppress(DataLossError):  # that of a first backup which was being written
                return Manifest.parse_untrusted(new, f"{store.name}/{NEW_MANIFEST}")
        data = store.read(name, MAX_MANIFEST_BYTES)  # it may have been moved meanwhile
    return None if data is None else Manifest.parse_untrusted(data, f"{store.name}/{name}")


def stored_name(file: StoredFile, there: Iterable[str]) -> str:
    """Where a file of the manifest lies."""
    return file.incoming if file.incoming in there else file.name


def stored_catalog(store: Store, manifest: Manifest, there: dict[str, int]) -> bytes:
    """The catalog of a backup, by its digest. DataLossError: it is missing, or has other bytes."""
    file = manifest.by_name().get(CATALOG)
    if file is None:
        raise DataLossError(f"{store.name}/{MANIFEST} names no {CATALOG}: restore from another backup")
    data = store.read(stored_name(file, there), file.length)
    if data is None or hashlib.sha256(data).hexdigest() != file.sha256:
        raise DataLossError(
            f"{store.name}/{CATALOG} is missing or has other bytes than the backup's manifest says: restore from another backup"
        )
    return data


def finish(store: Store, manifest: Manifest) -> None:
    """Give the files of a written manifest their names, and delete what it does not name; repeating it is harmless."""
    there = store.list()
    moved = [file for file in manifest.files if file.incoming in there]
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda file: store.move(file.incoming, file.name), (one for one in moved if one.name != CATALOG)))
    for file in moved:
        if file.name == CATALOG:
            store.move(file.incoming, file.name)
    names = manifest.by_name()
    left = [name for name in store.list() if name.startswith(f"{INCOMING}/")]
    for name in (*(name for name in there if is_file_name(name) and name not in names), *left):
        store.delete(name)


def _check_apart(folder: Path, target: Path) -> None:
    source, there = folder.resolve(), target.resolve()
    if source == there or source in there.parents or there in source.parents:
        raise UsageError(f"{target} and {folder} lie in each other: give a backup a place of its own, on another disk")


class _UnsettledError(Exception):
    """The file does not belong to the snapshot any more."""


class _Run:
    """One backup."""

    def __init__(
        self, path: Path, store: Store, aeron_dir: str | None, limiter: Limiter, on_progress: OnProgress | None
    ) -> None:
        self._path = path
        self._store = store
        self._aeron_dir = aeron_dir
        self._limiter = limiter
        self._on_progress = on_progress
        self._done: dict[str, StoredFile] = {}
        self._fresh: dict[str, StoredFile] = {}  # of this run, or taken over from an unfinished one
        self._lock = threading.Lock()
        self._bytes = self._total = 0
        self._copied_files = self._copied_bytes = 0
        self._written: list[str] = []
        self._failed = threading.Event()

    def all(self) -> BackupReport:
        started = time.monotonic()
        before = read_manifest(self._store)
        there = self._store.list()
        if before is None:
            self._check_empty(there)
        else:
            if MANIFEST not in there:
                self._store.move(NEW_MANIFEST, MANIFEST)
            if any(file.incoming in there for file in before.files):
                finish(self._store, before)
            self._check_same_archive(stored_catalog(self._store, before, self._store.list()))
            there = self._store.list()
            self._done.update({file.name: file for file in before.files if self._store.has(file.name, file, there)})
        self._resume()
        for rounds in range(1, ROUNDS + 1):
            snapshot = take_snapshot(self._path, self._aeron_dir)
            files, lost = self._copy(snapshot)
            with Folder(self._path, aeron_dir=self._aeron_dir) as folder:
                broken = snapshot.why_broken(folder)
            enough = LOST_ROUNDS if any(one.name.endswith(".rec") for one in lost) else STALE_ROUNDS
            if not broken and (not lost or rounds >= enough):
                break
            self._save()
            time.sleep(PAUSE_S)
        else:
            raise DataLossError(
                f"{self._path} changes faster than it is copied ({broken}): try again while less is purged and truncated, or "
                f"without --rate; the backup before is as it was, and what was copied stays for the next try"
            )
        kept, missing = self._without(lost, before)
        catalog = self._write(CATALOG, len(snapshot.catalog), len(snapshot.catalog), [memoryview(snapshot.catalog)])
        taken = [file for file in (*files, *kept, catalog) if file is not None]
        manifest = Manifest(
            taken_ms=snapshot.taken_ms, source=str(self._path.resolve()), files=tuple(taken), missing=tuple(missing)
        )
        self._store.sync(self._written)
        self._store.put(MANIFEST, manifest.encoded(), is_durable=True)
        finish(self._store, manifest)
        return BackupReport(
            recordings=len(snapshot.cuts),
            files=len(taken),
            bytes=sum(file.data_bytes for file in taken),
            copied_files=self._copied_files,
            copied_bytes=self._copied_bytes,
            rounds=rounds,
            seconds=time.monotonic() - started,
            kept=tuple(file.name for file in kept),
            missing=tuple(missing),
        )

    # -- what is there -----------------------------------------------------------------------------------------------

    def _check_empty(self, there: dict[str, int]) -> None:
        foreign = sorted(name for name in there if is_file_name(name))
        if foreign:
            raise UsageError(
                f"{self._store.name} holds {foreign[0]}, but no {MANIFEST}: it is an archive's folder or a plain copy; "
                f"give a backup a folder of its own"
            )

    def _check_same_archive(self, catalog: bytes) -> None:
        """An archive never gives an id twice: one that begins again, or another one, must not replace this backup."""
        here = (self._path / CATALOG).read_bytes()
        now = {entry.recording.recording_id: entry for entry in catalog_entries(here, str(self._path))}
        entries = catalog_entries(catalog, self._store.name)
        ids = [entry.recording.recording_id for entry in entries]
        is_other = bool(ids) and next_recording_id(here) <= max(ids)
        for entry in entries:
            one, found = entry.recording, now.get(entry.recording.recording_id)
            if entry.state == RecordingState.VALID and one.stop_position != one.start_position and found is not None:
                other = found.recording
                facts = ("start_timestamp_ms", "initial_term_id", "stream_id")
                is_other = is_other or any(getattr(one, fact) != getattr(other, fact) for fact in facts)
        if is_other:
            raise UsageError(
                f"{self._store.name} is the backup of another archive, or of {self._path} before it began anew: to go back, "
                f"aeron-spark archive restore {self._store.name} {self._path}; to back this archive up, give another place"
            )

    def _resume(self) -> None:
        """Take over what an unfinished run has copied, as far as it is there."""
        try:
            progress = read_manifest(self._store, PROGRESS)
        except DataLossError:  # it was being written
            progress = None
        if progress is not None:
            there = self._store.list()
            self._fresh = {file.name: file for file in progress.files if self._store.has(file.incoming, file, there)}
            self._done.update(self._fresh)

    def _without(self, lost: list[Wanted], before: Manifest | None) -> tuple[list[StoredFile], list[str]]:
        """Missing segments: those that the backup before has whole, and the names of the others."""
        known = {} if before is None else before.by_name()
        kept, missing = [], []
        for wanted in lost:
            file = known.get(wanted.name)
            if file is not None and (file.length, file.file_length) == (wanted.length, wanted.file_length):
                kept.append(file)
            elif wanted.name.endswith(".rec"):
                missing.append(wanted.name)
        return kept, missing

    # -- copying -----------------------------------------------------------------------------------------------------

    def _copy(self, snapshot: Snapshot) -> tuple[list[StoredFile], list[Wanted]]:
        """The files of the snapshot as the store has them now, and those that the folder lacks."""
        wanted = [*self._indexes(snapshot), *snapshot.segments(self._path)]
        self._bytes, self._total = 0, sum(one.length for one in wanted)
        files: list[StoredFile] = []
        lost: list[Wanted] = []
        saved_at = time.monotonic()
        with ThreadPoolExecutor(WORKERS) as pool:
            try:
                for one, file in zip(wanted, pool.map(self._bring, wanted), strict=True):
                    if file is None:
                        lost.append(one)
                        continue
                    files.append(file)
                    if self._done.get(one.name) != file:
                        self._done[one.name] = self._fresh[one.name] = file
                        if time.monotonic() - saved_at >= PROGRESS_S:
                            self._save()
                            saved_at = time.monotonic()
            except BaseException:
                self._failed.set()
                pool.shutdown(cancel_futures=True)
                raise
        return files, lost

    def _save(self) -> None:
        """Make durable what was copied, and list it."""
        with self._lock:
            written, self._written = self._written, []
        self._store.sync(written)
        progress = Manifest(taken_ms=0, source="", files=tuple(self._fresh.values()))
        self._store.put(PROGRESS, progress.encoded(), is_durable=False)

    def _indexes(self, snapshot: Snapshot) -> Iterator[Wanted]:
        """Time indexes, which may end anywhere; before the segments, as an extension makes another one of them."""
        known: dict[int, CatalogEntry] = {
            entry.recording.recording_id: entry for entry in snapshot.entries if entry.state != RecordingState.DELETED
        }
        for entry in os.scandir(self._path):
            recording_id = recording_of(entry.name) if entry.name.endswith(".time-index") else None
            if recording_id in known and entry.is_file(follow_symlinks=False):
                try:
                    size, of = entry.stat(follow_symlinks=False).st_size, known[recording_id]
                except FileNotFoundError:  # a live archive purges
                    continue
                yield Wanted(name=entry.name, length=size, file_length=size, recording=of.recording, entry=of)

    def _bring(self, wanted: Wanted) -> StoredFile | None:
        """Copy a file unless the store has it as it is; None: the folder lacks it, or it does not fit the snapshot."""
        if self._failed.is_set():
            return None
        before = self._done.get(wanted.name)
        if before is not None and (before.length, before.file_length) != (wanted.length, wanted.file_length):
            before = None
        if wanted.length == 0:
            return before or self._write(wanted.name, 0, wanted.file_length, ())
        try:
            descriptor = os.open(self._path / wanted.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                return self._bring_open(wanted, descriptor, before)
            finally:
                os.close(descriptor)
        except (FileNotFoundError, _UnsettledError):
            return None
        except StorageError:
            raise
        except OSError as error:
            raise StorageError(
                f"cannot read {self._path / wanted.name}: {error.strerror or error}; run the backup as the archive's user, or "
                f"as a member of its group",
                code=error.errno or 0,
            ) from None

    def _bring_open(self, wanted: Wanted, descriptor: int, before: StoredFile | None) -> StoredFile | None:
        found = os.fstat(descriptor)
        mtime_ns, ctime_ns = found.st_mtime_ns, found.st_ctime_ns
        file = before
        if before is None or (before.mtime_ns, before.ctime_ns) != (mtime_ns, ctime_ns):
            settled_ns = ctime_ns if ctime_ns < time.time_ns() - SETTLED_NS else 0
            hole_end = self._hole_end(wanted, descriptor)
            if before is None or before.hole_end != hole_end or not self._is_same(before, descriptor):
                chunks = self._counted(read_chunks(descriptor, wanted.length, hole_end))
                file = self._write(wanted.name, wanted.length, wanted.file_length, chunks, hole_end)
                return None if file is None else replace(file, mtime_ns=mtime_ns, ctime_ns=settled_ns)
            file = replace(before, mtime_ns=mtime_ns, ctime_ns=settled_ns)
        self._count(wanted.length)
        return file

    def _hole_end(self, wanted: Wanted, descriptor: int) -> int:
        """Of a time index, which must be of the catalog's own extension: a later one does not fit the copy."""
        if not wanted.name.endswith(".time-index"):
            return 0
        found = read_index_header(descriptor)
        if found is None or found[0] != wanted.entry.era or found[1] > wanted.length:
            raise _UnsettledError
        return found[1] if found[1] > INDEX_HEADER_BYTES else 0

    def _is_same(self, before: StoredFile, descriptor: int) -> bool:
        digest = hashlib.sha256()
        for chunk in read_chunks(descriptor, before.length, before.hole_end):
            digest.update(chunk)
        return digest.hexdigest() == before.sha256

    def _write(
        self, name: str, length: int, file_length: int, chunks: Iterable[memoryview], hole_end: int = 0
    ) -> StoredFile | None:
        """The file as it is stored; None: the source has fewer bytes."""
        run, digest = secrets.token_hex(8), hashlib.sha256()
        written = 0
        with self._store.create(f"{INCOMING}/{run}-{name}", file_length, hole_end) as out:
            for chunk in chunks:
                digest.update(chunk)
                out.write(chunk)
                written += len(chunk)
            out.finish()
        with self._lock:
            self._written.append(f"{INCOMING}/{run}-{name}")
            self._copied_files += 1
            self._copied_bytes += written
        file = StoredFile(
            name=name,
            length=length,
            file_length=file_length,
            hole_end=hole_end,
            sha256=digest.hexdigest(),
            mtime_ns=0,
            ctime_ns=0,
            run=run,
        )
        return file if written == file.data_bytes else None

    def _counted(self, chunks: Iterator[memoryview]) -> Iterator[memoryview]:
        for chunk in chunks:
            if self._failed.is_set():
                raise _UnsettledError
            self._limiter.take(len(chunk))
            yield chunk
            self._count(len(chunk))

    def _count(self, count: int) -> None:
        with self._lock:
            self._bytes += count
            if self._on_progress is not None:
                self._on_progress(self._bytes, self._total)
