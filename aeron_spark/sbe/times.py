"""Combines times of several members into one value. Spec: 10 §14.6."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_FACTORS = np.zeros(256, np.int64)
_FACTORS[[0, 3, 6, 9]] = 10**9, 10**6, 10**3, 1
"""Nanoseconds by unit; 0: no such unit."""


def nanoseconds(times: pa.Array, units: pa.Array) -> tuple[pa.Array, int]:
    """Times by the units beside them; and how many are null because of an unknown unit or an overflow of 64 bits."""
    factors = _FACTORS[np.asarray(units.fill_null(255)).astype(np.int64) & 0xFF]
    numbers = np.asarray(times.fill_null(0))
    is_there = np.asarray(times.is_valid()) & np.asarray(units.is_valid())
    most = np.iinfo(np.int64).max // np.maximum(factors, 1)
    fits = (factors > 0) & (numbers <= most) & (numbers >= -most)
    made = pa.array(np.where(fits, numbers, 0) * factors, pa.int64(), mask=~(is_there & fits))
    return made, int((is_there & ~fits).sum())


def microseconds(times: pa.Array) -> pa.Array:
    """Nanoseconds rounded down, also before 1970."""
    numbers = np.floor_divide(np.asarray(times.fill_null(0)), 1000)
    return pa.array(numbers, pa.int64(), mask=~np.asarray(times.is_valid()))


def month_years(parts: dict[str, pa.Array]) -> tuple[pa.Array, int]:
    """FIX text: YYYYMM, YYYYMMDD or YYYYMMwN; and how many years have no month, which makes them null."""
    year, month, day, week = (parts[name] for name in ("year", "month", "day", "week"))
    text = pc.binary_join_element_wise(_digits(year, 4), _digits(month, 2), "")
    with_day = pc.binary_join_element_wise(text, _digits(day, 2), "")
    with_week = pc.binary_join_element_wise(text, pc.cast(week, pa.string()), "w")
    made = pc.coalesce(with_day, with_week, text)
    return made, pc.sum(pc.and_(pc.is_valid(year), pc.is_null(month))).as_py() or 0


def _digits(numbers: pa.Array, width: int) -> pa.Array:
    return pc.utf8_lpad(pc.cast(numbers, pa.string()), width, padding="0")
