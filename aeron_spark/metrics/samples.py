"""What one scrape found. Texts are cut and series are limited, as other processes write both."""

from __future__ import annotations

import os
from pathlib import Path

from aeron_spark.metrics.table import TABLE, Kind
from aeron_spark.texts import escaped

LABEL_MAX_CHARACTERS = 200
MAX_SERIES = 50_000
_MAX_PATH = 4096

_COUNTERS = frozenset(name for name, family in TABLE.items() if family.kind == Kind.COUNTER)

#: Values of a family's labels, in their order.
Labels = tuple[str, ...]


def cut(text: str) -> str:
    """A text of another process as the value of a label: short, and printable."""
    text = text[:LABEL_MAX_CHARACTERS]
    return text if text.isprintable() else "".join(one if one.isprintable() else "\ufffd" for one in text)


def directory_label(path: str | os.PathLike[str]) -> str:
    """A directory's name as the value of a label: whole, so that two are never one, printable, and without a / at its end."""
    return escaped(str(Path(path))[:_MAX_PATH])


class Samples:
    """Values by family and labels.

    Only counted: series beyond `limit`, with the labels of another one, and negative where a metric only grows.
    """

    def __init__(self, limit: int = MAX_SERIES) -> None:
        self.limit = limit
        self.count = 0
        self.left_out = 0
        self.by_family: dict[str, dict[Labels, float]] = {name: {} for name in TABLE}

    def add(self, name: str, labels: Labels, value: float) -> None:
        """One series."""
        family = self.by_family[name]
        if self.count >= self.limit or labels in family or (value < 0 and name in _COUNTERS):
            self.left_out += 1
            return
        self.count += 1
        family[labels] = value

    def take(self, other: Samples) -> None:
        """All series of another one; those are of other directories, so no labels are equal."""
        for name, family in other.by_family.items():
            self.by_family[name].update(family)
        self.count += other.count
