"""A reader of an archive's mark file, written from the specification alone. Spec: 06 §10."""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass
from pathlib import Path

CLEAN_END = -1

_VERSION_OFFSET = 8
_TIMES_OFFSET = 16
_HEADER_LENGTH = 136


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Who runs, or ran, an archive on the folder; times in epoch ms, the activity -1 after a clean end."""

    activity_ms: int
    start_ms: int
    pid: int

    def is_live(self, *, within_ms: int = 10_000) -> bool:
        """Whether the last sign of life is younger than `within_ms`."""
        return self.activity_ms > 0 and time.time() * 1000 - self.activity_ms < within_ms


def read(archive_dir: Path) -> Mark | None:
    """The mark file of a folder, or None while no archive has signalled ready in it."""
    try:
        with (archive_dir / "archive-mark.dat").open("rb") as file:
            raw = file.read(_HEADER_LENGTH)
    except FileNotFoundError:
        return None
    if len(raw) < _HEADER_LENGTH or struct.unpack_from("<i", raw, _VERSION_OFFSET)[0] == 0:
        return None
    activity, start, pid = struct.unpack_from("<qqq", raw, _TIMES_OFFSET)
    return Mark(activity_ms=activity, start_ms=start, pid=pid)


def is_live(archive_dir: Path) -> bool:
    """Whether an archive is running on the folder."""
    seen = read(archive_dir)
    return seen is not None and seen.is_live()


def age(archive_dir: Path) -> None:
    """Make the last sign of life a minute older: an archive that was killed counts as alive for ten seconds."""
    with (archive_dir / "archive-mark.dat").open("r+b") as file:
        file.seek(_TIMES_OFFSET)
        before = int.from_bytes(file.read(8), "little")
        file.seek(_TIMES_OFFSET)
        file.write((before - 60_000).to_bytes(8, "little"))
