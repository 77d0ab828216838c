"""Segment files of an archive's folder by name: lists them and finds those that no recording uses."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aeron_spark.archive.recordings import Recording, RecordingState

if TYPE_CHECKING:
    from aeron_spark.archive.tools import CatalogEntry

_NAME = re.compile(r"(\d{1,19})-(.*?)\.(rec|rec\.del|del)", re.ASCII)
_TIME_INDEX = re.compile(r"(\d{1,19})\.time-index", re.ASCII)
_POSITION = re.compile(r"\d{1,19}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFile:
    """A file named <recording>-<position>.rec; `position` is None where the name has none.

    `is_leftover`: renamed for deletion (.del) by an older archive. `is_time_index`: the recording's
    <recording>.time-index.
    """

    path: Path
    recording_id: int
    position: int | None
    is_leftover: bool
    is_time_index: bool
    size: int
    modified_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A segment file that no recording uses, and why.

    `is_deletable` is False if the catalog does not know the recording: the file is only reported.
    """

    file: SegmentFile
    reason: str
    is_deletable: bool = True


def segment_files(folder: str | os.PathLike[str]) -> list[SegmentFile]:
    """Every segment file of a folder, and the time indexes, by recording and position."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            index = _TIME_INDEX.fullmatch(entry.name)
            name = index or _NAME.fullmatch(entry.name)
            if name is None or not entry.is_file(follow_symlinks=False):
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # a live archive purges
                continue
            position = int(name[2]) if index is None and _POSITION.fullmatch(name[2]) else None
            found.append(
                SegmentFile(
                    path=Path(entry.path),
                    recording_id=int(name[1]),
                    position=position if position is None or position < 2**63 else None,
                    is_leftover=index is None and name[3] != "rec",
                    is_time_index=index is not None,
                    size=status.st_size,
                    modified_s=status.st_mtime,
                )
            )
    return sorted(found, key=lambda file: (file.recording_id, -1 if file.position is None else file.position))


def interrupted_move(folder: str | os.PathLike[str]) -> Path | None:
    """The mark of an archive that died while it renamed segments to move them to another recording; None: there is none."""
    return next(Path(folder).glob("segments-*-to-*.moving"), None)


def segment_base(recording: Recording, position: int) -> int:
    """Position of the first byte of the segment that holds `position`; segments count from the term of the start."""
    first = recording.start_position - recording.start_position % recording.term_buffer_length
    return first + (position - first) // recording.segment_file_length * recording.segment_file_length


def orphans(entries: Iterable[CatalogEntry], files: Iterable[SegmentFile]) -> list[Orphan]:
    """Files before the first or after the last segment of their recording, of deleted recordings, and leftovers.

    A recording that was active when its archive died has no last segment yet. Files of ids that the catalog does not
    know are reported but not deletable: after a catalog was restored from an old copy, they may be the only data left.
    """
    known: dict[int, CatalogEntry] = {entry.recording.recording_id: entry for entry in entries}
    found = []
    for file in files:
        entry = known.get(file.recording_id)
        if file.is_time_index:
            if entry is None or entry.state == RecordingState.DELETED:
                found.append(Orphan(file=file, reason="time index of a recording that is gone"))
        elif file.is_leftover:
            found.append(Orphan(file=file, reason="left over from a deletion by an older archive"))
        elif entry is None:
            found.append(Orphan(file=file, reason="the catalog has no such recording", is_deletable=False))
        elif reason := _reason(entry, file.position):
            found.append(Orphan(file=file, reason=reason))
    return found


def _reason(entry: CatalogEntry, position: int | None) -> str:
    recording = entry.recording
    if entry.state == RecordingState.DELETED:
        return "the recording is deleted"
    if position is None:
        return "its name has no position"
    if recording.term_buffer_length <= 0 or recording.segment_file_length <= 0:
        return ""  # a damaged record does not describe its files
    if position < segment_base(recording, recording.start_position):
        return f"before the start position {recording.start_position}"
    if recording.stop_position is not None and position > segment_base(recording, recording.stop_position):
        return f"behind the stop position {recording.stop_position}"
    return ""
