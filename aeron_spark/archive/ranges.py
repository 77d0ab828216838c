"""A range of one recording: what readers of every kind are told to read."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Range"]


@dataclass(frozen=True, slots=True)
class Range:
    """Messages of one recording that begin in [start, end); `limit` is how far bytes may be read to finish the last one."""

    recording_id: int
    start: int
    end: int
    limit: int
