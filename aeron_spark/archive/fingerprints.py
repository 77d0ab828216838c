"""Shows whether the bytes before a position are those that were read: the frame that ends there.

A recording can be truncated below a position and then extended past it, by any archive, and no catalog remembers. A checkpoint
that holds the position alone goes on behind bytes that nobody read. So it holds 48 bits of the last frame before the position,
too: the upper 32 are of the frame without its session id, the lower 16 of the session id, which is another one after an
extension unless the publisher pinned it; 0 where the archive, or `checksum` later, put a checksum in its place.

It does not detect a frame that was replaced by an equal one of the same publisher's session. What lies before that frame may
then be different, too.
"""

from __future__ import annotations

__all__ = ["same_fingerprint"]

_SESSION_BITS = 16
_SESSION_MASK = (1 << _SESSION_BITS) - 1


def same_fingerprint(one: int, other: int) -> bool:
    """Whether two fingerprints at one position can be of the same frame; 0, that none was seen, can be of any."""
    parts = (one >> _SESSION_BITS, other >> _SESSION_BITS), (one & _SESSION_MASK, other & _SESSION_MASK)
    return all(0 in part or part[0] == part[1] for part in parts)
