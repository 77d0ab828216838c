"""What tells whether the bytes before a position are those that were read: the frame that ends there.

A recording can be truncated below a position and then extended past it, by any archive, and no catalog remembers. A checkpoint
that holds the position alone goes on behind bytes that nobody read. So it holds 48 bits of the last frame before the position,
too: the upper 32 are of the frame without its session id, the lower 16 of the session id, which is another one after an
extension unless the publisher pinned it; 0 where the archive, or `checksum` later, put a checksum in its place.

What it can't tell: a frame that was replaced by an equal one, of the same publisher's session. What lies before that frame may
then be different, too.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np

from aeron_spark.archive.recordings import Recording

__all__ = ["fingerprint_of", "same_fingerprint"]

_ALIGNMENT = 32
_FIRST_LOOK = 4096
_SESSION_BITS = 16
_SESSION_MASK = (1 << _SESSION_BITS) - 1


def fingerprint_of(folder: Path, recording: Recording, position: int, *, is_checked: bool) -> int:
    """See `Folder.fingerprint`; `is_checked`: frames carry a checksum in place of the session id."""
    if position <= recording.start_position:
        return 0
    last_byte = position - 1
    term = last_byte - last_byte % recording.term_buffer_length
    first_base = recording.start_position - recording.start_position % recording.term_buffer_length
    base = last_byte - (last_byte - first_base) % recording.segment_file_length
    try:
        with (folder / f"{recording.recording_id}-{base}.rec").open("rb", buffering=0) as file:
            frame = _last_frame(file.fileno(), base, term, position)
    except OSError:  # purged meanwhile
        return 0
    if frame is None:
        return 0
    of_frame = int.from_bytes(hashlib.sha256(frame[:12] + frame[16:]).digest()[:4], "big") or 1
    of_session = int.from_bytes(hashlib.sha256(frame[12:16]).digest()[:2], "big") or 1
    return of_frame << _SESSION_BITS | (0 if is_checked else of_session)


def same_fingerprint(one: int, other: int) -> bool:
    """Whether two fingerprints at one position can be of the same frame; 0, that none was seen, can be of any."""
    parts = (one >> _SESSION_BITS, other >> _SESSION_BITS), (one & _SESSION_MASK, other & _SESSION_MASK)
    return all(0 in part or part[0] == part[1] for part in parts)


def _last_frame(file: int, base: int, term: int, end: int) -> bytes | None:
    """The frame that ends at a position: looked for backwards, as frames name their length and their place in the term."""
    length = _FIRST_LOOK
    while True:
        begin = max(term, end - length)
        raw = os.pread(file, end - begin, begin - base)
        if len(raw) < end - begin:
            return None
        words = np.frombuffer(raw, "<i4").reshape(-1, _ALIGNMENT // 4)
        places = np.arange(begin, end, _ALIGNMENT)
        ends = places + (words[:, 0].astype(np.int64) + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
        found = np.flatnonzero((words[:, 2] == places - term) & (ends == end))
        if len(found):
            return raw[int(places[found[-1]]) - begin :]
        if begin == term:
            return None
        length *= 4
