"""Names that users give, and the nearest right one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aeron_spark.errors import UsageError


def nearest(name: str, known: Iterable[str]) -> str:
    """What to append to an error about a name that is not known; nothing if none is like it."""
    import difflib  # noqa: PLC0415 - only who errs needs it

    folded = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.5)
    return f"; did you mean {folded[found[0]]}?" if found else ""


def pairs(option: str, text: str, example: str) -> dict[str, str]:
    """`a:b,c:d` of an option. UsageError for another form."""
    found: dict[str, str] = {}
    for part in text.split(",") if text.strip() else ():
        key, colon, value = (one.strip() for one in part.partition(":"))
        if not (key and colon and value) or key in found:
            raise UsageError(f"{option}={text!r} is no list of different names, write it like {example}")
        found[key] = value
    return found


def check_columns(columns: Sequence[str], known: Sequence[str]) -> None:
    """UsageError for no column, one that is not known, or one that is named twice."""
    for name in columns:
        if name not in known:
            raise UsageError(f"column {name!r} does not exist, there are {', '.join(known)}{nearest(name, known)}")
    if not columns or len(set(columns)) != len(columns):
        raise UsageError(f"columns {', '.join(columns)} must be different ones of {', '.join(known)}")
