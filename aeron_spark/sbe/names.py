"""Names that users give, and the nearest right one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """What to append to an error about a name that is not known; nothing if none is like it."""
    folded = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.5)
    return f"; did you mean {folded[found[0]]}?" if found else ""
