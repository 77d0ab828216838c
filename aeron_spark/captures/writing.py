"""Recordings that an import writes, by the C code of `as_import.h`."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.check import c_string, check
from aeron_spark._native.handle import Handle
from aeron_spark.errors import StorageError, UsageError

_CATALOG = "archive.catalog"
MOST_RECORDINGS = 65_536


class Import(Handle):
    """An archive's folder that is being imported to, made if it is absent; one at a time, and no archive runs on it."""

    def __init__(self, folder: str | Path) -> None:
        if not str(folder):
            raise UsageError("the name of the archive's folder is empty")
        self.folder = Path(folder)
        self.begun = 0
        try:
            self.folder.mkdir(mode=0o750, exist_ok=True)
            self._held = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as failure:
            raise StorageError(
                f"cannot use the folder {folder}: {failure.strerror}; its parent must exist", code=failure.errno or 0
            ) from None
        try:
            self._lock_folder()
            made = ffi.new("as_import **")
            check(lib.as_import_open(c_string(str(self.folder)), made))
        except BaseException:
            os.close(self._held)
            raise
        super().__init__(made[0], lib.as_import_close)

    def _lock_folder(self) -> None:
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"another import writes to {self.folder}; wait for it, or name another folder") from None
        if not (self.folder / _CATALOG).exists() and any(self.folder.glob("*.rec")):
            raise UsageError(
                f"{self.folder} has segment files but no {_CATALOG}: restore its catalog, or name a folder of its own"
            )

    def no_room(self) -> str:
        """Why no recording can begin; "" if one can."""
        if self.begun >= MOST_RECORDINGS:
            return f"there are {MOST_RECORDINGS:,} recordings of this capture already; choose some streams with --port"
        return ""

    def close(self) -> None:
        """Close catalog and folder; again is harmless."""
        if not self.is_closed:
            super().close()
            os.close(self._held)


class ImportedRecording(Handle):
    """A recording that is being written. Without `end` it is left as an archive that died would leave it."""

    def __init__(self, parent: Import, values: Mapping[str, int | str]) -> None:
        recording = ffi.new("as_recording *")
        texts = {name: c_string(value) for name, value in values.items() if isinstance(value, str)}
        for name, value in values.items():
            setattr(recording, name, texts.get(name, value))
        made, recording_id = ffi.new("as_import_recording **"), ffi.new("int64_t *")
        with parent._use() as pointer:
            check(lib.as_import_begin(pointer, recording, recording_id, made))
        self.recording_id = int(recording_id[0])
        parent.begun += 1
        self._last_ns = 0
        super().__init__(made[0], lib.as_import_recording_close, parent)

    @property
    def max_message_length(self) -> int:
        """Longest message that its terms hold."""
        with self._use() as pointer:
            return int(lib.as_import_max_message_length(pointer))

    def add_frames(self, content: np.ndarray, start: np.ndarray, length: np.ndarray, time_ns: np.ndarray) -> None:
        """Append datagrams of frames, which must follow the recording."""
        self._add(lib.as_import_frames, content, start, length, time_ns)

    def add_messages(self, content: np.ndarray, start: np.ndarray, length: np.ndarray, time_ns: np.ndarray) -> None:
        """Append messages, each with its time as reserved value."""
        self._add(lib.as_import_messages, content, start, length, time_ns)

    def _add(self, call: Any, content: np.ndarray, *columns: np.ndarray) -> None:
        held = [np.ascontiguousarray(column, np.int64) for column in columns]
        start, length, time_ns = (ffi.cast("int64_t *", ffi.from_buffer(column)) for column in held)
        stretches = ffi.new("as_import_stretches *")
        stretches.bytes = ffi.cast("uint8_t *", ffi.from_buffer(content)) if len(content) else ffi.NULL
        stretches.start, stretches.length, stretches.time_ns, stretches.count = start, length, time_ns, len(held[0])
        with self._use() as pointer:
            check(call(pointer, stretches))
        if len(held[2]):
            self._last_ns = int(held[2][-1])

    def end(self) -> int:
        """Stop it where its bytes end, at the time of the last; the position."""
        position = ffi.new("int64_t *")
        with self._use() as pointer:
            check(lib.as_import_end(pointer, self._last_ns // 1_000_000, position))
        self.close()
        return int(position[0])
