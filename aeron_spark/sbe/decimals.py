"""Converts mantissas and exponents to numbers of one type. Spec: 10 §14.3."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from aeron_spark._native._lib import ffi, lib

MAX_SHIFT = 127
"""Exponents have 8 bits."""


def fold(
    mantissas: pa.Array, exponents: pa.Array, decimal: tuple[int, int] | None, *, is_one: bool
) -> tuple[pa.Array, int]:
    """Doubles, or decimals of digits and scale; and how many of these are null because they would have lost digits.

    `mantissas`: decimals of at most 64 bits; `exponents`: int8, one for all if `is_one`. A result is null if either is
    null.
    """
    count = len(mantissas)
    if decimal is None and not mantissas.null_count and not exponents.null_count:
        return _doubles(mantissas, exponents, None, 0, is_one=is_one), 0
    if exponents.null_count:
        is_there = np.asarray(mantissas.is_valid()) & np.asarray(exponents.is_valid())
        exponents = exponents.fill_null(0)
    else:
        is_there = np.asarray(mantissas.is_valid())
    validity = np.packbits(is_there, bitorder="little")
    nulls = count - int(is_there.sum())
    if decimal is None:
        return _doubles(mantissas, exponents, pa.py_buffer(validity), nulls, is_one=is_one), 0
    at, shifts, stride = _places(mantissas, exponents, is_one=is_one)
    out = np.empty(count * 16, np.uint8)
    fitting = np.zeros((count + 7) // 8, np.uint8)
    lost = lib.as_sbe_rescale(
        at, shifts, stride, count, *decimal, ffi.cast("uint8_t *", validity.ctypes.data),
        ffi.cast("void *", out.ctypes.data), ffi.cast("uint8_t *", fitting.ctypes.data),
    )  # fmt: skip
    of = pa.decimal128(*decimal)
    return pa.Array.from_buffers(of, count, [pa.py_buffer(fitting), pa.py_buffer(out)], nulls + int(lost)), int(lost)


def _places(mantissas: pa.Array, exponents: pa.Array, *, is_one: bool) -> tuple[Any, Any, int]:
    """Where the kernels find both, and the stride of the exponents."""
    shifts = ffi.cast("int8_t *", exponents.buffers()[1].address) + exponents.offset
    return ffi.cast("void *", mantissas.buffers()[1].address), shifts, 0 if is_one else 1


def _doubles(
    mantissas: pa.Array, exponents: pa.Array, validity: pa.Buffer | None, nulls: int, *, is_one: bool
) -> pa.Array:
    out = pa.allocate_buffer(len(mantissas) * 8)  # Arrow's pool reuses pages
    at, shifts, stride = _places(mantissas, exponents, is_one=is_one)
    lib.as_sbe_to_double(at, shifts, stride, len(mantissas), ffi.cast("double *", out.address))
    return pa.Array.from_buffers(pa.float64(), len(mantissas), [validity, out], nulls)
