"""Archive folders of storage versions 0, 1 and 2, made of a folder of today by undoing the migrations of Spec: 06 §13."""

from __future__ import annotations

import struct
from pathlib import Path

MAJOR = 1 << 16
HEADER = 32
OLD_ALIGNMENT = 1024


def downgrade(folder: Path, major: int) -> None:
    """Make the folder one of version `major`.0.0: catalog with records of 1024 bytes, names of segments, versions."""
    catalog = folder / "archive.catalog"
    new = catalog.read_bytes()
    old = bytearray(struct.pack("<ii", _version(major), OLD_ALIGNMENT).ljust(OLD_ALIGNMENT, b"\0"))
    for frame in _frames(new):
        length = struct.unpack_from("<i", frame)[0]
        body = frame[HEADER : HEADER + length].rstrip(b"\0")
        old += (struct.pack("<i", len(body)) + frame[4:HEADER] + body).ljust(OLD_ALIGNMENT, b"\0")
        _rename_segments(folder, frame, major)
    catalog.write_bytes(bytes(old).ljust(1 << 16, b"\0"))
    _downgrade_mark(folder / "archive-mark.dat", major)


def _version(major: int) -> int:
    """Of major 0 the patch counts: a mark file with version 0 is one that is not ready."""
    return major * MAJOR or 1


def _frames(catalog: bytes) -> list[bytes]:
    frames = []
    at = HEADER
    while at + 4 <= len(catalog) and (length := struct.unpack_from("<i", catalog, at)[0]) > 0:
        frames.append(catalog[at : at + HEADER + length])
        at += HEADER + length
    return frames


def _rename_segments(folder: Path, frame: bytes, major: int) -> None:
    recording_id, _, _, start = struct.unpack_from("<4q", frame, HEADER + 16)
    segment_length, term_length = struct.unpack_from("<2i", frame, HEADER + 60)
    term_base = start - start % term_length
    for path in folder.glob(f"{recording_id}-*.rec"):
        position = int(path.stem.split("-")[1])
        is_relative = major < 2 and term_base != 0 and term_length != segment_length
        if is_relative:
            position -= term_base
        if major < 1:
            floored = 0 if is_relative else start // segment_length * segment_length
            position = (position - floored) // segment_length
        path.rename(folder / f"{recording_id}-{position}.rec.renamed")
    for path in folder.glob(f"{recording_id}-*.rec.renamed"):
        path.rename(path.with_suffix(""))


def _downgrade_mark(path: Path, major: int) -> None:
    mark = path.read_bytes()
    block = bytearray(mark[8:8192])
    struct.pack_into("<i", block, 0, _version(major))
    path.write_bytes(bytes(block).ljust(8192, b"\0") + mark[8192:])
