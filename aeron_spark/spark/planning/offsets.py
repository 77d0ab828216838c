"""The offset of a streaming query: its JSON text, for ever, and comparison.

``{"archive": {"<id>": identity}, "positions": {"<id>": p}, "starts": {"<id>": s}, "version": 1}``, keys sorted, integers only,
because Spark compares offsets as text. ``positions`` are message boundaries: everything before them is read. ``starts`` are the
resolved starts of the query: a crash inside batch 0 makes Spark ask for a fresh initial offset, and "latest" would then have
moved, so the journaled end offset is what remembers where batch 0 begins. ``archive`` holds, per recording, a number made of
facts that never change (spec 06 section 4), so that an offset is never applied to another archive's recording.

Version 2 has ``marks`` besides, ``{"<id>": m}``: the fingerprint (``archive.fingerprints``) of the frame before a position,
where there is one. It shows whether the recording still holds the bytes that were read. A text without marks is of version 1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from aeron_spark.errors import DataLossError, UsageError

__all__ = ["OFFSET_VERSION", "UNMARKED_VERSION", "Offset", "integers_of", "recording_identity"]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """Positions reached, positions started from and identities, by recording id. The three have the same keys."""

    positions: Mapping[int, int]
    starts: Mapping[int, int]
    identities: Mapping[int, int]

    def to_json_dict(self) -> dict[str, object]:
        """What Spark serialises: nested dicts with keys already in sorted order."""
        return {
            "archive": _texts(self.identities),
            "positions": _texts(self.positions),
            "starts": _texts(self.starts),
            "version": UNMARKED_VERSION,
        }

    @classmethod
    def from_json_dict(cls, parsed: Mapping[str, object]) -> Offset:
        """Reads any version ever written; UsageError names what is wrong with a text that is none of ours."""
        version = parsed.get("version")
        if version not in range(1, OFFSET_VERSION + 1):
            raise UsageError(
                f"the checkpoint holds an offset of version {version!r}, this release reads up to {OFFSET_VERSION}: "
                f"use a checkpoint folder of this query, or a newer aeron_spark"
            )
        offset = cls(
            positions=integers_of(parsed, "positions"),
            starts=integers_of(parsed, "starts"),
            identities=integers_of(parsed, "archive"),
        )
        if not (offset.positions.keys() == offset.starts.keys() == offset.identities.keys()):
            raise UsageError(
                f"the checkpoint's offset is damaged, its recordings do not match: {str(dict(parsed))[:1000]}"
            )
        return offset

    def begin_of(self, recording_id: int, end: Offset) -> int:
        """Where the batch (self, end] begins in a recording of ``end``.

        A recording that joined in this batch begins at its start. If the starts differ, ``self`` is a fresh initial offset
        of a batch 0 that crashed, and the journaled ``end`` knows where that batch began.
        """
        if recording_id not in self.positions or self.starts[recording_id] != end.starts[recording_id]:
            return end.starts[recording_id]
        return self.positions[recording_id]

    def check_advances_to(self, end: Offset) -> None:
        """Raises DataLossError if ``end`` lies before this offset anywhere; Spark itself does not check."""
        for recording_id in end.positions:
            begin = self.begin_of(recording_id, end)
            if end.positions[recording_id] < begin:
                raise DataLossError(
                    f"recording {recording_id}: the batch would end at {end.positions[recording_id]}, before its begin "
                    f"{begin}; the checkpoint belongs to another state of the archive"
                )


def _texts(numbers: Mapping[int, int]) -> dict[str, int]:
    return dict(sorted((str(key), value) for key, value in numbers.items()))


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
