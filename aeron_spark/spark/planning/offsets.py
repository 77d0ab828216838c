"""The offset of a streaming query: its JSON text, which every later release reads, and its columns.

``{"archive": {"<id>": identity}, "positions": {"<id>": p}, "starts": {"<id>": s}, "version": 1}``, keys sorted, integers only,
because Spark compares offsets as text. ``positions`` are message boundaries: everything before them is read. ``starts`` are the
resolved starts of the query: a crash inside batch 0 makes Spark ask for a fresh initial offset, and "latest" would then have
moved, so the journaled end offset is what remembers where batch 0 begins. ``archive`` holds, per recording, a number made of
facts that never change (Spec: 06 §4), so that an offset is never applied to another archive's recording.

Version 2 has ``marks`` besides, ``{"<id>": m}``: the fingerprint (``archive.fingerprints``) of the frame before a position,
where there is one. It shows whether the recording still holds the bytes that were read. A text without marks is of version 1.

Planning uses NumPy arrays, because a query can have 100,000 recordings. An offset keeps the JSON beside its arrays, and
``moved`` rebuilds only the section that changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aeron_spark.errors import DataLossError, UsageError

__all__ = ["OFFSET_VERSION", "UNMARKED_VERSION", "Numbers", "Offset", "find", "integers_of", "recording_identity"]

Numbers = NDArray[np.int64]
_SECTIONS = ("positions", "starts", "archive")
_MAX_DIGITS, _MAX_BITS = 19, 63
OFFSET_VERSION = 2
UNMARKED_VERSION = 1


def recording_identity(
    *,
    recording_id: int,
    start_timestamp_ms: int,
    initial_term_id: int,
    term_length: int,
    segment_length: int,
    stream_id: int,
) -> int:
    """48 bits that distinguish a recording from another archive's recording of the same id.

    Extending, truncating, purging and updating the channel leave all of these facts alone.
    """
    facts = f"{recording_id}:{start_timestamp_ms}:{initial_term_id}:{term_length}:{segment_length}:{stream_id}"
    return int.from_bytes(hashlib.sha256(facts.encode("ascii")).digest()[:6], "big")


def find(ids: Numbers, wanted: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
    """Indexes of wanted ids among ascending ones, and a mask of those found; other indexes are meaningless."""
    if np.array_equal(ids, wanted):
        return np.arange(len(ids)), np.ones(len(ids), bool)
    if not len(ids):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return at, ids[at] == wanted


@dataclass(frozen=True, slots=True, eq=False)
class Offset:
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
    ) -> Offset:
        """From columns, in id order; makes the JSON."""
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
    def from_json_dict(cls, parsed: Mapping[str, object]) -> Offset:
        """Reads any version ever written; UsageError names what is wrong with a text that is not an offset."""
        columns = _columns(parsed)
        if columns is not None:
            return cls(*columns, _marks_of(parsed, columns[0]), dict(parsed))
        version = parsed.get("version")
        if version not in range(1, OFFSET_VERSION + 1):
            raise UsageError(
                f"the checkpoint holds an offset of version {version!r}, this release reads up to {OFFSET_VERSION}: "
                f"use a checkpoint folder of this query, or a newer aeron_spark"
            )
        positions, starts, identities = (integers_of(parsed, name) for name in ("positions", "starts", "archive"))
        if not (positions.keys() == starts.keys() == identities.keys()):
            raise UsageError(
                f"the checkpoint's offset is damaged, its recordings do not match: {str(dict(parsed))[:1000]}"
            )
        try:
            marks = _marks_of(parsed, np.array(sorted(positions), np.int64))
            return cls.of_recordings(positions=positions, starts=starts, identities=identities, marks=marks)
        except OverflowError:
            raise UsageError("the checkpoint's offset is damaged: it holds a number of more than 64 bits") from None

    @classmethod
    def of_recordings(
        cls,
        *,
        positions: Mapping[int, int],
        starts: Mapping[int, int],
        identities: Mapping[int, int],
        marks: Numbers | None = None,
    ) -> Offset:
        """From columns by recording id; all have the same keys."""
        ids = sorted(positions)
        columns = (np.array([part[key] for key in ids], np.int64) for part in (positions, starts, identities))
        reached, begun, known = columns
        return cls.of(ids=np.array(ids, np.int64), positions=reached, starts=begun, identities=known, marks=marks)

    def by_id(self, column: Numbers) -> dict[int, int]:
        """A column, by recording id."""
        return dict(zip(self.ids.tolist(), column.tolist(), strict=True))

    def moved(self, indexes: NDArray[np.int64], positions: Numbers, marks: Numbers | None = None) -> Offset:
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
        return Offset(self.ids, values, self.starts, self.identities, marked, json)

    def only(self, kept: NDArray[np.bool_]) -> Offset:
        """The offset of some recordings."""
        return Offset.of(
            ids=self.ids[kept],
            positions=self.positions[kept],
            starts=self.starts[kept],
            identities=self.identities[kept],
            marks=self.marks[kept],
        )

    def begins(self, end: Offset) -> Numbers:
        """Where the batch (self, end] begins in each recording of ``end``.

        A recording that joined in this batch begins at its start. If the starts differ, ``self`` is a fresh initial offset
        of a batch 0 that crashed, and the journaled ``end`` knows where that batch began.
        """
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

    def check_advances_to(self, end: Offset) -> None:
        """Raises DataLossError if ``end`` lies before this offset anywhere; Spark itself does not check."""
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
    """Arrays of an offset in the written form; None for any other form, which is then checked in detail."""
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


def integers_of(parsed: Mapping[str, object], key: str) -> dict[int, int]:
    """A section of an offset's JSON, by recording id; UsageError for one that is none."""
    section = parsed.get(key)
    if not isinstance(section, Mapping):
        raise UsageError(f"the checkpoint's offset has no {key!r}: it is damaged or of another source")
    numbers: dict[int, int] = {}
    for text, value in section.items():
        # Not longer than an id: Python makes no number of thousands of digits.
        is_id = str(text).isdecimal() and len(str(text)) <= _MAX_DIGITS
        if not isinstance(value, int) or isinstance(value, bool) or not is_id or value.bit_length() > _MAX_BITS:
            raise UsageError(f"the checkpoint's offset is damaged at {key}.{str(text)[:40]}: no number of 64 bits")
        numbers[int(text)] = value
    return numbers
