"""Where a backup lies: a folder on a local path, or one of an object store.

Each holds files by name, some below `incoming/`. A local folder has segments in their full length, sparse, so that all tools
for an archive's folder work on it; a store has the bytes that hold data alone. Files are durable after `sync`, which takes many
at a time since each waits for the disk. A local folder is locked while one writes it; a store can't be.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from pyarrow import fs as filesystems

from aeron_spark.archive.addresses import open_filesystem, store_scheme
from aeron_spark.archive.backup_files import INCOMING, INDEX_HEADER_BYTES, StoredFile
from aeron_spark.archive.store_reads import read_range
from aeron_spark.errors import DataLossError, StorageError, UsageError
from aeron_spark.small_files import FILE_MODE, sync_path

__all__ = ["FOLDER_MODE", "Store", "Writer", "open_backup"]

#: Of a file at a time: it is hashed and written while it is in the processor's cache. Larger writes take memory in large
#: pieces, and in a virtual machine the host may have to bring each of these anew: 1 MiB cost five times the processor time.
_CHUNK_BYTES = 64 << 10
#: The disk begins with a file each time so much of it is written, while the rest is hashed.
_WRITEBACK_BYTES = 2 << 20
_OBJECT_CHUNK_BYTES = 1 << 20
_SYNCS = 8
#: Permissions of folders of an archive.
FOLDER_MODE = 0o750


class Writer(Protocol):
    """A file that is being written, in the order of its bytes."""

    def write(self, data: memoryview) -> None:
        """Append bytes; those of a time index's header are written at once."""

    def finish(self) -> None:
        """End it."""


class Store(Protocol):
    """The files of a backup by name. Every failure is a StorageError that names the store."""

    name: str

    @property
    def path(self) -> Path | None:
        """Of a local folder."""

    def list(self) -> dict[str, int]:
        """Sizes of the regular files, those in `incoming/` among them; empty if there is no such folder."""

    def has(self, name: str, file: StoredFile, there: Mapping[str, int]) -> bool:
        """Whether `there`, the result of `list`, has the file in its size."""

    def lock(self) -> contextlib.AbstractContextManager[None]:
        """Make the folder where it is absent. UsageError: another backup writes it."""

    def read(self, name: str, most: int) -> bytes | None:
        """The whole file, None if it is absent. DataLossError: it has more than `most` bytes."""

    def chunks(self, name: str, file: StoredFile) -> Iterator[memoryview]:
        """The bytes of a file that its entry describes, no more; each chunk is valid until the next."""

    def create(self, name: str, file_length: int, hole_end: int) -> contextlib.AbstractContextManager[Writer]:
        """A new file."""

    def put(self, name: str, data: bytes, *, is_durable: bool) -> None:
        """Replace a small file as a whole: if only `incoming/<name>` is there, that is whole.

        One that need not be durable may be lost, or torn.
        """

    def move(self, name: str, target: str) -> None:
        """Rename, over a file that is there."""

    def delete(self, name: str) -> None:
        """Delete a file, if it is there."""

    def sync(self, names: Sequence[str]) -> None:
        """Make these files of `incoming/` durable."""


def open_backup(address: str) -> Store:
    """The store of a local path or of a URI (`s3://bucket/folder`, ...)."""
    if store_scheme(address, "backup") is None:
        return _LocalStore(Path(re.sub(r"^file:(//)?", "", address)))
    return _ObjectStore(*open_filesystem(address, {}), address)


# -- a local folder --------------------------------------------------------------------------------------------------------


class _LocalStore:
    """A folder; symbolic links and special files in it are not followed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)

    def list(self) -> dict[str, int]:
        found: dict[str, int] = {}
        with self._failures(""):
            for prefix in ("", f"{INCOMING}/"):
                folder = self.path / prefix
                if not folder.is_dir() or (prefix and folder.is_symlink()):
                    continue
                for entry in os.scandir(folder):
                    if entry.is_file(follow_symlinks=False):
                        found[f"{prefix}{entry.name}"] = entry.stat(follow_symlinks=False).st_size
        return found

    def has(self, name: str, file: StoredFile, there: Mapping[str, int]) -> bool:
        return there.get(name) == file.file_length

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        with self._failures(""):
            (self.path / INCOMING).mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"another backup writes {self.path}: wait for its end") from None
            yield
        finally:
            os.close(folder)

    def read(self, name: str, most: int) -> bytes | None:
        try:
            with self._open(name) as file:
                data = file.read(most + 1)
        except FileNotFoundError:
            return None
        return _bounded(data, most, f"{self.path}/{name}")

    def chunks(self, name: str, file: StoredFile) -> Iterator[memoryview]:
        try:
            opened = self._open(name)
        except FileNotFoundError:
            raise _absent(self.name, name) from None
        with opened, self._failures(name):
            yield from read_chunks(opened.fileno(), file.length, file.hole_end)

    @contextlib.contextmanager
    def create(self, name: str, file_length: int, hole_end: int) -> Iterator[Writer]:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with self._failures(name):
            descriptor = os.open(self.path / name, flags, FILE_MODE)
            try:
                yield FileWriter(descriptor, file_length, hole_end)
            finally:
                os.close(descriptor)

    def put(self, name: str, data: bytes, *, is_durable: bool) -> None:
        part = f"{INCOMING}/{secrets.token_hex(8)}.part"
        with self.create(part, len(data), 0) as writer:
            writer.write(memoryview(data))
        with self._failures(name):
            if is_durable:
                sync_path(self.path / part)
            self.move(part, name)
            if is_durable:
                sync_path(self.path)

    def move(self, name: str, target: str) -> None:
        with self._failures(name):
            (self.path / name).replace(self.path / target)

    def delete(self, name: str) -> None:
        with self._failures(name):
            (self.path / name).unlink(missing_ok=True)

    def sync(self, names: Sequence[str]) -> None:
        with self._failures(""), ThreadPoolExecutor(_SYNCS) as pool:
            list(pool.map(lambda name: sync_path(self.path / name), names))
            sync_path(self.path / INCOMING)

    def _open(self, name: str) -> BinaryIO:
        # Without O_NONBLOCK a pipe in the file's place would hold up whoever restores.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with self._failures(name):
            file = open(os.open(self.path / name, flags), "rb", buffering=0)  # noqa: PTH123, SIM115 - a descriptor
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                file.close()
                raise StorageError(f"{self.path}/{name} is no regular file: this is no backup of ours")
        return file

    @contextlib.contextmanager
    def _failures(self, name: str) -> Iterator[None]:
        try:
            yield
        except (StorageError, FileNotFoundError):
            raise
        except OSError as error:
            raise StorageError(
                f"backup {self.path}{name and f'/{name}'}: {error.strerror or error}; check the folder, its file system and "
                f"free space",
                code=error.errno or 0,
            ) from None


class FileWriter:
    """Writes a sparse file, whose length is given, by descriptor."""

    def __init__(self, descriptor: int, file_length: int, hole_end: int) -> None:
        self._descriptor = descriptor
        self._file_length = file_length
        self._hole_end = hole_end
        self._at = self._begun = 0

    def write(self, data: memoryview) -> None:
        """Append bytes; those behind the header of a time index go to where its hole ends."""
        while data:
            count = os.pwrite(self._descriptor, data, self._at)
            self._at = max(self._at + count, self._hole_end if self._at + count == INDEX_HEADER_BYTES else 0)
            data = data[count:]
        if self._at - self._begun >= _WRITEBACK_BYTES:
            self._begin_writeback()

    def finish(self) -> None:
        """Give it its length. What syncs it later finds most of it on disk."""
        os.ftruncate(self._descriptor, self._file_length)
        self._begin_writeback()

    def _begin_writeback(self) -> None:
        """Have the disk begin with what was written since the last time, without waiting for it."""
        os.posix_fadvise(self._descriptor, self._begun, self._at - self._begun, os.POSIX_FADV_DONTNEED)
        self._begun = self._at


def read_chunks(descriptor: int, length: int, hole_end: int) -> Iterator[memoryview]:
    """The first `length` bytes of a file, without those between its header and `hole_end`; fewer where it ends before."""
    buffer = memoryview(bytearray(_CHUNK_BYTES))
    at, stop = 0, INDEX_HEADER_BYTES if hole_end else length
    while at < length:
        count = os.preadv(descriptor, [buffer[: min(_CHUNK_BYTES, stop - at)]], at)
        if count == 0:
            return
        yield buffer[:count]
        at += count
        if at == stop:
            at, stop = max(at, hole_end), length


# -- an object store -------------------------------------------------------------------------------------------------------


class _ObjectStore:
    """A folder of one of pyarrow's filesystems."""

    def __init__(self, filesystem: filesystems.FileSystem, path: str, name: str) -> None:
        self.path = None
        self._filesystem = filesystem
        self._path = path.rstrip("/")
        self.name = name

    def list(self) -> dict[str, int]:
        found: dict[str, int] = {}
        with self._failures(""):
            chosen = filesystems.FileSelector(self._path, allow_not_found=True, recursive=True)
            for info in self._filesystem.get_file_info(chosen):
                if info.type == filesystems.FileType.File:
                    found[info.path.removeprefix(f"{self._path}/")] = info.size
        return found

    def has(self, name: str, file: StoredFile, there: Mapping[str, int]) -> bool:
        return there.get(name) == file.data_bytes

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        yield

    def read(self, name: str, most: int) -> bytes | None:
        try:
            with self._failures(name), self._filesystem.open_input_file(f"{self._path}/{name}") as source:
                data = bytes(read_range(source, 0, min(source.size(), most + 1)))
        except FileNotFoundError:
            return None
        return _bounded(data, most, f"{self.name}/{name}")

    def chunks(self, name: str, file: StoredFile) -> Iterator[memoryview]:
        at = 0
        try:
            with self._failures(name), self._filesystem.open_input_file(f"{self._path}/{name}") as source:
                while data := read_range(source, at, min(file.data_bytes - at, _OBJECT_CHUNK_BYTES)):
                    at += len(data)
                    yield data
        except FileNotFoundError:
            raise _absent(self.name, name) from None

    @contextlib.contextmanager
    def create(self, name: str, file_length: int, hole_end: int) -> Iterator[Writer]:  # noqa: ARG002 - of a file
        with self._failures(name), self._filesystem.open_output_stream(f"{self._path}/{name}") as stream:
            yield _ObjectWriter(stream)

    def put(self, name: str, data: bytes, *, is_durable: bool) -> None:
        # HDFS and Azure show a file from its opening on, empty at first. HDFS moves over a file by deleting that first.
        new = f"{INCOMING}/{name}" if is_durable else name
        with self.create(new, 0, 0) as writer:
            writer.write(memoryview(data))
        if is_durable:
            self.move(new, name)

    def move(self, name: str, target: str) -> None:
        with self._failures(name):
            self._filesystem.move(f"{self._path}/{name}", f"{self._path}/{target}")

    def delete(self, name: str) -> None:
        with self._failures(name), contextlib.suppress(FileNotFoundError):
            self._filesystem.delete_file(f"{self._path}/{name}")

    def sync(self, names: Sequence[str]) -> None:
        """An object is durable when its stream is closed."""

    @contextlib.contextmanager
    def _failures(self, name: str) -> Iterator[None]:
        try:
            yield
        except (StorageError, FileNotFoundError):
            raise
        except OSError as error:
            raise StorageError(
                f"backup {self.name}{name and f'/{name}'}: {error}; check the store's address, credentials and rights",
                code=error.errno or 0,
            ) from None


class _ObjectWriter:
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, data: memoryview) -> None:
        self._stream.write(data)

    def finish(self) -> None:
        self._stream.close()


def _bounded(data: bytes, most: int, where: str) -> bytes:
    if len(data) > most:
        raise DataLossError(f"{where} has more than {most} bytes, which no file of a backup has: use another backup")
    return data


def _absent(store: str, name: str) -> DataLossError:
    return DataLossError(
        f"{store}/{name} is missing, though the backup's manifest names it: restore from another backup"
    )
