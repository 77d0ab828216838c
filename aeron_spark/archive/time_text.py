"""Times as users write them: an instant, and what a message's time is taken from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Literal

from aeron_spark.archive.times import UNITS_NS, time_ns
from aeron_spark.errors import UsageError

__all__ = ["TimeSource", "parse_time_ns", "parse_time_source"]

_UNITS = {"s": 10**9, **UNITS_NS}
#: Digits behind microseconds, of the time and not of its zone: 14:30:00.123456789 or 143000.123456789.
_FRACTION = re.compile(r"(?:(?<=[^+\d-]\d\d:\d\d:\d\d)|(?<=[^+\d-]\d{6}))[.,](\d{7,9})(?!\d)")
_FINER = re.compile(r"[.,]\d{7}")


@dataclass(frozen=True, slots=True)
class TimeSource:
    """Source of a message's time: the archive's time index, its reserved value, or a field of its SBE messages.

    ``unit`` of the reserved value or the field; "" where the SBE schema names it.
    """

    kind: Literal["index", "reserved", "sbe"] = "index"
    unit: str = ""
    field: str = ""


def parse_time_ns(name: str, text: str, *, zone: tzinfo | None = UTC, unit: str = "ms") -> int:
    """Nanoseconds since 1970-01-01 UTC, of ISO 8601 text or a number with a unit.

    `zone` and `unit` are those of a text that names none; None is the local zone.
    """
    stripped = text.strip()
    number = re.fullmatch(r"(\d+)\s*(s|ms|us|ns)?", stripped)
    # Python takes microseconds and cuts the digits behind them; they are added.
    fraction = _FRACTION.search(stripped)
    rest = int(fraction[1][6:].ljust(3, "0")) if fraction else 0
    in_microseconds = _FRACTION.sub(lambda found: "." + found[1][:6], stripped)
    if _FINER.search(in_microseconds):
        raise UsageError(
            f"{name}={text!r} has a fraction finer than nanoseconds: give at most 9 digits, and none in the zone"
        )
    if re.fullmatch(r"\d{8}", stripped):
        date = f"{stripped[:4]}-{stripped[4:6]}-{stripped[6:]}"
        raise UsageError(f"{name}={text!r} is a date or a number of {unit}: write {date}, or {stripped}{unit}")
    try:
        if number is not None:
            return time_ns(int(number[1]) * _UNITS[number[2] or unit])
        when = datetime.fromisoformat(in_microseconds)
        return time_ns(when if when.tzinfo else when.replace(tzinfo=zone)) + rest
    except UsageError as error:
        raise UsageError(f"{name}={text!r}: {error}; a number without unit is in {unit}") from None
    except ValueError:
        raise UsageError(
            f"{name}={text!r} is no time, write it like 2026-01-31T14:30:00Z or 1769869800000ms (s, ms, us, ns)"
        ) from None


def parse_time_source(text: str, name: str) -> TimeSource:
    """``index``, ``reserved(ns)`` or ``sbe:<field>``, the latter perhaps with a unit as well."""
    stripped = text.strip()
    if stripped.lower() == "index":
        return TimeSource()
    match = re.fullmatch(r"(?:(?i:reserved)|(?i:sbe):(\w+))(?:\((?i:(s|ms|us|ns))\))?", stripped)
    unit = "" if match is None else (match[2] or "").lower()
    if match is None or (match[1] is None and unit not in UNITS_NS):
        raise UsageError(
            f"{name}={text!r} is unknown, choose index, reserved(ns), reserved(us), reserved(ms), or "
            f"sbe:<field>, with (ns), (us), (ms) or (s) behind it where the schema does not name the field's unit"
        )
    if match[1] is None:
        return TimeSource("reserved", unit)
    return TimeSource("sbe", unit, match[1])
