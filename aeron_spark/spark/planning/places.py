"""An offset as arrays: what a stream plans with, as it may have 100,000 recordings.

The JSON that Spark gets is kept beside the arrays, and only what moved is built anew: see ``offsets`` for its text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aeron_spark.errors import DataLossError, UsageError
from aeron_spark.spark.planning.offsets import OFFSET_VERSION, UNMARKED_VERSION, Offset, integers_of

__all__ = ["Numbers", "Places", "find"]

Numbers = NDArray[np.int64]
_SECTIONS = ("positions", "starts", "archive")


def find(ids: Numbers, wanted: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
    """Indexes of wanted ids among ascending ones, and which of them are there; of one that is not, the index means nothing."""
    if np.array_equal(ids, wanted):
        return np.arange(len(ids)), np.ones(len(ids), bool)
    if not len(ids):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return at, ids[at] == wanted


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Positions reached, positions started from, identities and marks of recordings, in the order of their ids.

    A mark of 0 is none.
    """

    ids: Numbers
    positions: Numbers
    starts: Numbers
    identities: Numbers
    marks: Numbers
    json: dict[str, object]

    @classmethod
    def of(
        cls, *, ids: Numbers, positions: Numbers, starts: Numbers, identities: Numbers, marks: Numbers | None = None
    ) -> Places:
        """With the JSON of it all."""
        marks = np.zeros(len(ids), np.int64) if marks is None else marks
        texts = [str(number) for number in ids.tolist()]
        order = sorted(range(len(texts)), key=texts.__getitem__)
        keys = [texts[index] for index in order]
        json: dict[str, object] = {
            name: dict(zip(keys, values[order].tolist(), strict=True))
            for name, values in (("archive", identities), ("positions", positions), ("starts", starts))
        }
        return cls(ids, positions, starts, identities, marks, _marked(json, ids, marks))

    @classmethod
    def from_json_dict(cls, parsed: Mapping[str, object]) -> Places:
        """Reads any version ever written; raises as ``Offset.from_json_dict``."""
        columns = _columns(parsed)
        if columns is not None:
            return cls(*columns, _marks_of(parsed, columns[0]), dict(parsed))
        offset = Offset.from_json_dict(parsed)
        ids = sorted(offset.positions)
        sections = (offset.positions, offset.starts, offset.identities)
        try:
            positions, starts, identities = (np.array([part[key] for key in ids], np.int64) for part in sections)
            numbers = np.array(ids, np.int64)
            marks = _marks_of(parsed, numbers)
            return cls.of(ids=numbers, positions=positions, starts=starts, identities=identities, marks=marks)
        except OverflowError:
            raise UsageError("the checkpoint's offset is damaged: it holds a number of more than 64 bits") from None

    def moved(self, indexes: NDArray[np.int64], positions: Numbers, marks: Numbers | None = None) -> Places:
        """The same with other positions, and their marks, at some indexes; itself if no position differs."""
        differs = self.positions[indexes] != positions
        if not differs.any():
            return self
        indexes, positions = indexes[differs], positions[differs]
        values, marked = self.positions.copy(), self.marks.copy()
        values[indexes] = positions
        marked[indexes] = 0 if marks is None else marks[differs]
        section: dict[str, int] = dict(self.json["positions"])  # type: ignore[call-overload]
        section.update(zip(map(str, self.ids[indexes].tolist()), positions.tolist(), strict=True))
        json = _marked({**self.json, "positions": section}, self.ids, marked)
        return Places(self.ids, values, self.starts, self.identities, marked, json)

    def only(self, kept: NDArray[np.bool_]) -> Places:
        """The offset of some recordings."""
        return Places.of(
            ids=self.ids[kept],
            positions=self.positions[kept],
            starts=self.starts[kept],
            identities=self.identities[kept],
            marks=self.marks[kept],
        )

    def begins(self, end: Places) -> Numbers:
        """Where the batch (self, end] begins in each recording of ``end``; see ``Offset.begin_of``."""
        at, there = find(self.ids, end.ids)
        begins = end.starts.copy()
        there[there] = self.starts[at[there]] == end.starts[there]
        begins[there] = self.positions[at[there]]
        return begins

    def marks_at(self, ids: Numbers, positions: Numbers) -> Numbers:
        """The marks of recordings where this offset stands at those positions, else 0."""
        at, there = find(self.ids, ids)
        marks = np.zeros(len(ids), np.int64)
        there[there] = self.positions[at[there]] == positions[there]
        marks[there] = self.marks[at[there]]
        return marks

    def check_advances_to(self, end: Places) -> None:
        """Raises DataLossError if ``end`` lies before this offset anywhere; Spark itself does not look."""
        begins = self.begins(end)
        for index in np.flatnonzero(end.positions < begins)[:1].tolist():
            raise DataLossError(
                f"recording {end.ids[index]}: the batch would end at {end.positions[index]}, before its begin "
                f"{begins[index]}; the checkpoint belongs to another state of the archive"
            )


def _marked(json: dict[str, object], ids: Numbers, marks: Numbers) -> dict[str, object]:
    """The JSON with these marks, in the order of its keys as text."""
    at = np.flatnonzero(marks)
    section = dict(sorted(zip(map(str, ids[at].tolist()), marks[at].tolist(), strict=True)))
    head = {"archive": json["archive"], "marks": section} if section else {"archive": json["archive"]}
    version = OFFSET_VERSION if section else UNMARKED_VERSION
    return {**head, "positions": json["positions"], "starts": json["starts"], "version": version}


def _marks_of(parsed: Mapping[str, object], ids: Numbers) -> Numbers:
    marks = np.zeros(len(ids), np.int64)
    if "marks" in parsed:
        found = integers_of(parsed, "marks")
        try:
            at, there = find(ids, np.array(sorted(found), np.int64))
            marks[at[there]] = np.array([found[key] for key in sorted(found)], np.int64)[there]
        except OverflowError:
            raise UsageError("the checkpoint's offset is damaged: it holds a number of more than 64 bits") from None
    return marks


def _columns(parsed: Mapping[str, Any]) -> tuple[Numbers, Numbers, Numbers, Numbers] | None:
    """Arrays of an offset as it is written; None where something is different, which may be wrong or not."""
    sections = [parsed.get(name) for name in _SECTIONS]
    if parsed.get("version") not in {UNMARKED_VERSION, OFFSET_VERSION} or not all(
        type(section) is dict for section in sections
    ):
        return None
    keys, *others = (list(section) for section in sections)  # type: ignore[arg-type]
    try:
        numbers = [int(key) for key in keys]
        if min(numbers, default=0) < 0 or keys != sorted(map(str, numbers)) or any(other != keys for other in others):
            return None
        ids = np.array(numbers, np.int64)
        values = [list(section.values()) for section in sections]  # type: ignore[union-attr]
        if any(set(map(type, column)) - {int} for column in values):
            return None
        columns = [np.array(column, np.int64) for column in values]
    except (ValueError, TypeError, OverflowError):
        return None
    order = np.argsort(ids)
    positions, starts, identities = (column[order] for column in columns)
    return ids[order], positions, starts, identities
