"""Converts mantissas and exponents to numbers of one type. Spec: 10 §14.3."""

from __future__ import annotations

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
    if exponents.null_count:
        is_there = np.asarray(mantissas.is_valid()) & np.asarray(exponents.is_valid())
        exponents = exponents.fill_null(0)
    else:
        is_there = np.asarray(mantissas.is_valid())
    validity = np.packbits(is_there, bitorder="little")
    numbers = np.frombuffer(exponents.buffers()[1], np.int8)[exponents.offset :]
    at = ffi.cast("void *", mantissas.buffers()[1].address)
    shifts = ffi.cast("int8_t *", numbers.ctypes.data)
    stride = 0 if is_one else 1
    nulls = count - int(is_there.sum())
    out = np.empty(count * (8 if decimal is None else 16), np.uint8)
    if decimal is None:
        lib.as_sbe_to_double(at, shifts, stride, count, ffi.cast("double *", out.ctypes.data))
        return pa.Array.from_buffers(pa.float64(), count, [pa.py_buffer(validity), pa.py_buffer(out)], nulls), 0
    fitting = np.zeros((count + 7) // 8, np.uint8)
    lost = lib.as_sbe_rescale(
        at, shifts, stride, count, *decimal, ffi.cast("uint8_t *", validity.ctypes.data),
        ffi.cast("void *", out.ctypes.data), ffi.cast("uint8_t *", fitting.ctypes.data),
    )  # fmt: skip
    of = pa.decimal128(*decimal)
    return pa.Array.from_buffers(of, count, [pa.py_buffer(fitting), pa.py_buffer(out)], nulls + int(lost)), int(lost)
