"""Figures as narrow columns show them. Decimal units, as rates and disks have."""

from __future__ import annotations

from datetime import UTC, datetime

_UNITS = "kMGTPE"
_THOUSAND = 1000
_HUNDRED = 100
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_MS = 1000
_LAST_MS = 253402300799999  # the end of the year 9999


def amount(value: float | None) -> str:
    """At most six characters: 999, 1.2k, 35M; `-` where it is not known."""
    if value is None:
        return "-"
    if value < _THOUSAND:
        return str(int(value))
    unit = -1
    while value >= _THOUSAND and unit < len(_UNITS) - 1:
        value /= _THOUSAND
        unit += 1
    return f"{value:.1f}{_UNITS[unit]}" if value < _HUNDRED else f"{int(value)}{_UNITS[unit]}"


def span(seconds: float | None) -> str:
    """A length of time by its two largest units: 12s, 3m 05s, 2h 10m, 9d 04h."""
    if seconds is None:
        return "-"
    whole = int(seconds)
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m {whole % _MINUTE:02d}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h {whole % _HOUR // _MINUTE:02d}m"
    return f"{whole // _DAY}d {whole % _DAY // _HOUR:02d}h"


def moment(time_ms: int | None, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """UTC, to the second; what no calendar has is moved to its ends."""
    if time_ms is None:
        return "-"
    return datetime.fromtimestamp(min(max(time_ms, 0), _LAST_MS) // _MS, UTC).strftime(form)
