"""One recording for the page: its segments with what is on disk of each, and its rate over time by the time index."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.segments import Extent, Folder
from aeron_spark.top.amounts import amount, moment

__all__ = ["describe"]

MAX_SEGMENTS = 200
#: Pieces of equal length that a rate is of.
PIECES = 120
_BLOCK_BYTES = 512  # of st_blocks
_MS_NS = 10**6


def describe(folder_path: str, recording_id: int) -> dict[str, Any]:
    """The recording, its last segments, and its rate. AeronError: it can't be read."""
    with Folder(folder_path) as folder:
        recording, extent = folder.recording(recording_id), folder.extent(recording_id)
        segments, count = _segments(folder.path, recording, extent)
        return {
            "recording_id": str(recording_id),
            "folder": folder_path,
            "stream_id": recording.stream_id,
            "session_id": recording.session_id,
            "channel": recording.stripped_channel[:1000],
            "source": recording.source_identity[:200],
            "start": moment(recording.start_timestamp_ms),
            "stop": moment(recording.stop_timestamp_ms),
            "start_position": str(extent.start_position),
            "limit_position": str(extent.limit_position),
            "is_active": extent.is_active,
            "length": amount(extent.limit_position - extent.start_position),
            "term_length": amount(recording.term_buffer_length),
            "segment_length": amount(recording.segment_file_length),
            "segment_count": count,
            "segments": segments,
            "rates": _rates(folder, recording_id, extent),
        }


def _segments(path: Path, recording: Recording, extent: Extent) -> tuple[list[dict[str, Any]], int]:
    """The newest of them first."""
    length = recording.segment_file_length
    first = recording.segment_base(extent.start_position)
    last = recording.segment_base(max(extent.start_position, extent.limit_position - 1))
    bases = range(first, last + 1, length)
    found = []
    for base in reversed(bases[-MAX_SEGMENTS:]):
        name = recording.segment_file(max(base, extent.start_position))
        try:
            at = os.stat(path / name)  # noqa: PTH116 - blocks too
            size, disk = amount(at.st_size), amount(at.st_blocks * _BLOCK_BYTES)
        except FileNotFoundError:
            size = disk = ""
        begin, end = max(base, extent.start_position), min(base + length, extent.limit_position)
        found.append(
            {"name": name, "begin": str(begin), "end": str(end), "size": size, "disk": disk, "is_there": bool(size)}
        )
    return found, len(bases)


def _rates(folder: Folder, recording_id: int, extent: Extent) -> list[dict[str, Any]]:
    """Pieces of the recording with begin, end and bytes a second, in order; where no time is known there is none."""
    begin, length = extent.start_position, extent.limit_position - extent.start_position
    positions = sorted(
        {begin + length * number // PIECES for number in range(PIECES)} | {max(begin, begin + length - 1)}
    )
    if not length:
        return []
    known = [
        (at, when.value)
        for at, when in zip(positions, folder.index_times_at(recording_id, positions), strict=True)
        if when.is_valid
    ]
    found: list[tuple[int, int]] = []
    # Positions that were written at one time belong to the piece that begins there.
    for at, when in known:
        if found and when <= found[-1][1]:
            continue
        found.append((at, when))
    return [
        {
            "from_ms": when / _MS_NS,
            "to_ms": until / _MS_NS,
            "rate": (end - at) * 1e9 / (until - when),
            "text": f"{amount((end - at) * 1e9 / (until - when))}B/s from {moment(int(when // _MS_NS))}",
        }
        for (at, when), (end, until) in itertools.pairwise(found)
    ]
