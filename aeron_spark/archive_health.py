"""What `aeron-spark doctor` looks at of an archive: its folder, its mark file, its credentials file. Nothing is written."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aeron_spark.archive.segments import Folder
from aeron_spark.archive.tools import Catalog, MarkFile, RecordingState
from aeron_spark.errors import AeronError, DataLossError

DEFAULT_DIR = "aeron-archive"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveFacts:
    """An archive's folder as it is, or as it would be made."""

    folder: Path
    exists: bool
    owner: str
    """Of the folder, or of its nearest parent, where it does not exist."""
    is_readable: bool
    is_writable: bool
    """Or its nearest parent, where it does not exist."""
    is_open_to_all: bool
    """Others than user and group may read or write it."""
    free_bytes: int
    mark: MarkFile | None
    invalid: tuple[int, ...]
    """Recordings that are marked INVALID: no archive and no reader lists them."""
    trouble: str
    """Why catalog or mark file can't be read, or a recording's entry can't be; empty where all is well, or nothing is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialsFacts:
    """The file that `aeron.spark.archive.credentials.file` names."""

    path: Path
    trouble: str
    """Why an archive would refuse it; empty where it would not."""
    remedy: str


def owner(path: Path) -> str:
    """Name of the user who owns a file, as C names it: the uid where it has no name."""
    try:
        return path.owner()
    except (KeyError, OSError):
        return str(path.lstat().st_uid)


def may_hold(folder: Path, name: str) -> bool:
    """Whether a folder has a file; also True where that is unknown because the folder may not be searched."""
    try:
        (folder / name).stat()
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except PermissionError:  # of a folder above it
        return False


def archive_facts(settings: Mapping[str, str]) -> ArchiveFacts | None:
    """The archive of the settings; None where none is set and there is none in the working directory."""
    named = settings.get("aeron.archive.dir", "")
    folder = Path(named or DEFAULT_DIR)
    if not named and not _is_folder(folder):
        return None
    nearest = next(path for path in (folder, *folder.absolute().parents) if os.access(path, os.F_OK))
    mark, trouble = None, ""
    invalid: tuple[int, ...] = ()
    if may_hold(folder, "archive.catalog"):
        try:
            with Catalog(str(folder)) as catalog:
                mark = catalog.mark()
                states = ((entry.recording.recording_id, entry.state) for entry in catalog.entries())
                invalid = tuple(recording_id for recording_id, state in states if state == RecordingState.INVALID)
            trouble = _damage(folder)
        except AeronError as error:
            trouble = str(error)
    return ArchiveFacts(
        folder=folder,
        exists=_is_folder(folder),
        owner=owner(nearest),
        is_readable=os.access(nearest, os.R_OK | os.X_OK),
        is_writable=nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK),
        is_open_to_all=_is_folder(folder) and bool(folder.stat().st_mode & 0o007),
        free_bytes=shutil.disk_usage(nearest).free,
        mark=mark,
        invalid=invalid,
        trouble=trouble,
    )


def _damage(path: Path) -> str:
    """What is wrong with the first recording whose entry in the catalog can't be."""
    with Folder(path) as folder:
        for recording in folder.recordings():
            try:
                folder.recording(recording.recording_id)
            except DataLossError as error:
                return str(error)
    return ""


def credentials_facts(settings: Mapping[str, str]) -> CredentialsFacts | None:
    """None where no file is set."""
    named = settings.get("aeron.spark.archive.credentials.file", "")
    if not named:
        return None
    path = Path(named)
    trouble, remedy = "", ""
    try:
        found = path.stat()
    except OSError as error:
        trouble, remedy = (
            error.strerror or str(error),
            f"aeron-spark archive user NAME --allow all > {shlex.quote(named)}",
        )
    else:
        if not path.is_file():
            trouble, remedy = "is no regular file", "name a file in aeron.spark.archive.credentials.file"
        elif found.st_uid not in {0, os.geteuid()}:
            trouble, remedy = f"belongs to uid {found.st_uid}", f"chown {os.geteuid()} {shlex.quote(named)}"
        elif found.st_mode & 0o077:
            trouble, remedy = (
                f"is open to others (mode {found.st_mode & 0o7777:04o})",
                f"chmod 600 {shlex.quote(named)}",
            )
    return CredentialsFacts(path=path, trouble=trouble, remedy=remedy)
