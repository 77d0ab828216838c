"""The nearest right name of one that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from aeron_spark.errors import UsageError


def check_columns(columns: Sequence[str], known: Sequence[str]) -> None:
    """UsageError for no column, one that is not known, or one that is named twice."""
    for name in columns:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            meant = f", did you mean {near[0]}?" if near else "."
            raise UsageError(f"column {name!r} does not exist{meant} Columns: {', '.join(known)}")
    if not columns or len(set(columns)) != len(columns):
        raise UsageError(f"columns {', '.join(columns)} must be different ones of {', '.join(known)}")
