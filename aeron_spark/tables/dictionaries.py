"""Columns of text as dictionaries: a number for each row, and each value once.

DuckDB groups, compares and applies its functions by the dictionary's values. Arrow's own encoding takes four times as long.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from aeron_spark._native._lib import ffi, lib
from aeron_spark.sbe.run import pointer

__all__ = ["as_dictionary", "with_dictionary"]

#: Rows of a column for each of its values, at least; where they are fewer, a dictionary would not help.
ROWS_OF_VALUE = 16


def with_dictionary(field: pa.Field) -> pa.Field:
    """A field with a dictionary in place of text; others as they are."""
    return field.with_type(pa.dictionary(pa.int32(), pa.string())) if pa.types.is_string(field.type) else field


def as_dictionary(column: pa.Array) -> pa.Array:
    """A column of `with_dictionary`."""
    return _dictionary(column) if pa.types.is_string(column.type) else column


def _dictionary(texts: pa.Array) -> pa.Array:
    validity, offsets, content = texts.buffers()
    count, begin = len(texts), texts.offset
    if not count or content is None:
        return texts.dictionary_encode()
    numbers, first_rows = pa.allocate_buffer(4 * (begin + count)), np.empty(max(count // ROWS_OF_VALUE, 1), np.int64)
    found = lib.as_sbe_distinct(
        ffi.cast("uint8_t *", content.address),
        ffi.cast("int32_t *", offsets.address + 4 * begin),
        count,
        ffi.cast("int32_t *", numbers.address + 4 * begin),
        pointer("int64_t *", first_rows),
        len(first_rows),
    )
    # Without nulls, which share the number of empty texts.
    values = pa.Array.from_buffers(texts.type, count, [None, offsets, content], offset=begin)
    if found < 0:
        np.copyto(np.frombuffer(numbers, np.int32)[begin:], np.arange(count, dtype=np.int32))
    else:
        values = values.take(pa.array(first_rows[:found]))
    rows = pa.Array.from_buffers(pa.int32(), count, [validity, numbers], offset=begin)
    return pa.DictionaryArray.from_arrays(rows, values, safe=False)
