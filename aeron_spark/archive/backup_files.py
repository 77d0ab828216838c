"""The files of a backup and the manifest that lists them, `backup.json`.

A backup is a folder as an archive has it, plus the manifest. For each file the manifest has the number of bytes that hold data
(`length`; the rest of a segment is zeros), their SHA-256, and the times of the source's file when it was copied. So the next
backup knows what has not changed. The manifest is written last and replaced atomically: it decides which files count.

A file that replaces one of the backup before lies under `incoming/<run>-<name>` until the new manifest is there, and takes its
name then. So a backup that is interrupted at any point leaves the one before whole, and one that is interrupted after the
manifest is finished by the next. `incoming/progress.json` has the form of the manifest and lists what an unfinished run has
copied.

Whoever restores a backup may not trust it: `Manifest.parse_untrusted` takes only names of an archive's files, and bounds every
number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from aeron_spark.errors import DataLossError

__all__ = [
    "CATALOG",
    "INCOMING",
    "MANIFEST",
    "NEW_MANIFEST",
    "PROGRESS",
    "Manifest",
    "StoredFile",
    "is_file_name",
    "recording_of",
]

CATALOG = "archive.catalog"
MANIFEST = "backup.json"
INCOMING = "incoming"
#: Where an object store has the manifest until it is whole, and takes its place.
NEW_MANIFEST = f"{INCOMING}/{MANIFEST}"
PROGRESS = f"{INCOMING}/progress.json"
#: Version of the manifest's form.
VERSION = 1
#: Larger than the manifest of a million files.
MAX_MANIFEST_BYTES = 512 << 20
#: Of the header of a time index, which comes before the part that its archive has freed.
INDEX_HEADER_BYTES = 64

_SEGMENT = re.compile(r"(0|[1-9]\d{0,18})-(?:0|[1-9]\d{0,18})\.rec", re.ASCII)
_INDEX = re.compile(r"(0|[1-9]\d{0,18})\.time-index", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_RUN = re.compile(r"[0-9a-f]{16}", re.ASCII)
MAX_SEGMENT_BYTES = 1 << 30
_MAX_CATALOG_BYTES = (1 << 31) - 1
_MAX_BYTES = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file of a backup: its first `length` bytes are data with this digest, zeros follow up to `file_length`.

    `hole_end` is 0, or where a time index goes on behind its header: the bytes between are neither stored nor hashed.
    `mtime_ns` and `ctime_ns` are the source's; a `ctime_ns` of 0 says that the file had just changed, so that only its bytes
    can tell whether it is still the same. `run` names the copy.
    """

    name: str
    length: int
    file_length: int
    hole_end: int
    sha256: str
    mtime_ns: int
    ctime_ns: int
    run: str

    @property
    def incoming(self) -> str:
        """Where it lies until the manifest that names it is written."""
        return f"{INCOMING}/{self.run}-{self.name}"

    @property
    def data_bytes(self) -> int:
        """Bytes that are stored."""
        return self.length - max(self.hole_end - INDEX_HEADER_BYTES, 0)


_FIELDS = tuple(field.name for field in fields(StoredFile))


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a backup holds: when its positions were taken, of which folder, and the files that were missing there."""

    taken_ms: int
    source: str
    files: tuple[StoredFile, ...]
    missing: tuple[str, ...] = ()

    def by_name(self) -> dict[str, StoredFile]:
        """The files by their names in an archive's folder."""
        return {file.name: file for file in self.files}

    def encoded(self) -> bytes:
        """The form that is stored."""
        head = {"format": "aeron_spark backup", "version": VERSION, "taken_ms": self.taken_ms, "source": self.source}
        lines = ",\n".join(json.dumps({name: getattr(file, name) for name in _FIELDS}) for file in self.files)
        return f'{json.dumps(head)[:-1]}, "missing": {json.dumps(self.missing)}, "files": [\n{lines}\n]}}\n'.encode()

    @classmethod
    def parse_untrusted(cls, data: bytes, where: str) -> Manifest:
        """DataLossError: it is no manifest, one of another version, or names what no backup holds."""
        try:
            read = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise _damaged(where, f"it is no JSON: {error}") from None
        if not isinstance(read, dict) or read.get("format") != "aeron_spark backup":
            raise _damaged(where, "it is another program's file")
        if read.get("version") != VERSION:
            raise DataLossError(
                f"{where} has version {read.get('version')!r} of the form, this release knows {VERSION}: use the release that "
                f"made the backup"
            )
        taken_ms, source, listed, missing = (read.get(name) for name in ("taken_ms", "source", "files", "missing"))
        if not (
            _is_count(taken_ms) and isinstance(source, str) and isinstance(listed, list) and isinstance(missing, list)
        ):
            raise _damaged(where, "a field is missing or of another type")
        files = tuple(_file(row, where) for row in listed)
        names = {file.name for file in files}
        if len(names) != len(files):
            raise _damaged(where, "it names a file twice")
        if not all(isinstance(name, str) and _SEGMENT.fullmatch(name) for name in missing):
            raise _damaged(where, "its list of missing segments has other names")
        return cls(taken_ms=int(str(taken_ms)), source=source, files=files, missing=tuple(missing))


def is_file_name(name: str) -> bool:
    """Whether it is a name of a file that a backup copies."""
    return name == CATALOG or recording_of(name) is not None


def recording_of(name: str) -> int | None:
    """The recording that a segment or time index belongs to; None of another file."""
    found = _SEGMENT.fullmatch(name) or _INDEX.fullmatch(name)
    return None if found is None else int(found[1])


def total(files: Iterable[StoredFile]) -> int:
    """Bytes of the files that are stored."""
    return sum(file.data_bytes for file in files)


def _file(row: Any, where: str) -> StoredFile:
    if not isinstance(row, dict) or row.keys() != set(_FIELDS):
        raise _damaged(where, "a file's entry has other fields")
    name = row["name"]
    if not isinstance(name, str) or not is_file_name(name):
        raise _damaged(where, f"{name!r} is no file of an archive's folder")
    most = _MAX_CATALOG_BYTES if name == CATALOG else MAX_SEGMENT_BYTES if name.endswith(".rec") else _MAX_BYTES
    numbers = [row[number] for number in ("length", "file_length", "hole_end", "mtime_ns", "ctime_ns")]
    if not all(map(_is_count, numbers)) or not row["length"] <= row["file_length"] <= most:
        raise _damaged(where, f"the sizes or times of {name} cannot be")
    hole = row["hole_end"]
    if hole and not (name.endswith(".time-index") and INDEX_HEADER_BYTES < hole <= row["length"]):
        raise _damaged(where, f"the hole of {name} cannot be")
    texts = [row[text] for text in ("sha256", "run")]
    if not all(
        isinstance(text, str) and form.fullmatch(text) for text, form in zip(texts, (_DIGEST, _RUN), strict=True)
    ):
        raise _damaged(where, f"the digest or run of {name} cannot be")
    return StoredFile(**row)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_BYTES


def _damaged(where: str, reason: str) -> DataLossError:
    return DataLossError(
        f"{where} is no manifest of a backup, or a damaged one: {reason}; restore from another backup, or take a new one"
    )
