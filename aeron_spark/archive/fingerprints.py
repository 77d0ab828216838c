"""Detects whether the bytes before a position have changed, by a fingerprint of the frame that ends there.

Any archive can truncate a recording below a position and then extend it past that position, and no catalog records
this. A checkpoint with the position alone would continue after bytes that were never read. So a checkpoint also holds
48 bits of the last frame before the position. The upper 32 bits cover the frame without its session id. The lower 16
bits cover the session id, which changes with an extension unless the publisher pinned it; they are 0 where the archive,
or `checksum` later, put a checksum in its place.

It does not detect a frame that was replaced by an equal one of the same publisher's session. The bytes before that
frame may then differ, too.
"""

from __future__ import annotations

__all__ = ["same_fingerprint"]

_SESSION_BITS = 16
_SESSION_MASK = (1 << _SESSION_BITS) - 1


def same_fingerprint(one: int, other: int) -> bool:
    """Whether two fingerprints at one position may be of the same frame; 0, no frame was read, matches any."""
    parts = (one >> _SESSION_BITS, other >> _SESSION_BITS), (one & _SESSION_MASK, other & _SESSION_MASK)
    return all(0 in part or part[0] == part[1] for part in parts)
