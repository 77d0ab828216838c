"""Converts message bytes and times to text columns, and rows to JSON lines: whole columns at a time. Pure; any thread."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aeron_spark.errors import UsageError

_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint16)
_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_PADDING = ord("=")
#: The days of years 1 to 9999, which all calendars have, and the first behind them; counted from 1970 on.
_FIRST_DAY, _END_DAY = -719_162, 2_932_897
_DAY_S = 86_400
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# JSON's short escapes; other control characters use \u00XX.
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def _parts(column: pa.Array) -> tuple[Any, Any]:
    """Offsets from 0 on, and the bytes between them."""
    offsets, data = column.buffers()[1:]
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    if data is None or len(column) == 0:
        return np.zeros(len(column) + 1, np.int64), np.zeros(0, np.uint8)
    return ends.astype(np.int64) - ends[0], np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]


def _strings(offsets: Any, text: Any) -> pa.Array:
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets, np.int64)), pa.py_buffer(np.ascontiguousarray(text))]
    return pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)


def hex_text(column: pa.Array) -> pa.Array:
    """Two lower-case hexadecimal digits for each byte."""
    offsets, data = _parts(column)
    return _strings(offsets * 2, _HEX[data].view(np.uint8))


def base64_text(column: pa.Array) -> pa.Array:
    """Base64 of each value, padded (RFC 4648)."""
    offsets, data = _parts(column)
    lengths = np.diff(offsets)
    groups = (lengths + 2) // 3
    starts = np.concatenate(([0], np.cumsum(groups)))
    # Each value is aligned to a multiple of three bytes; the filler becomes padding.
    padded = np.zeros(int(starts[-1]) * 3, np.uint8)
    padded[np.arange(len(data)) + np.repeat(starts[:-1] * 3 - offsets[:-1], lengths)] = data
    triples = padded.reshape(-1, 3).astype(np.uint32)
    words = triples[:, 0] << 16 | triples[:, 1] << 8 | triples[:, 2]
    text = np.empty((len(words), 4), np.uint8)
    for digit in range(4):
        text[:, digit] = _BASE64[words >> (18 - 6 * digit) & 63]
    lasts = starts[1:] - 1
    text[lasts[lengths % 3 == 1], 2] = _PADDING
    text[lasts[(lengths % 3 == 1) | (lengths % 3 == 2)], 3] = _PADDING  # noqa: PLR2004 - bytes left over of three
    return _strings(starts * 4, text.reshape(-1))


def utf8_text(column: pa.Array) -> pa.Array:
    """The values themselves; ArrowInvalid where one is not valid UTF-8."""
    return column.cast(pa.large_binary()).cast(pa.large_string())


def _encoder(encode: Callable[[pa.Array], pa.Array]) -> Callable[[pa.RecordBatch], pa.Array]:
    def of_batch(batch: pa.RecordBatch) -> pa.Array:
        try:
            return encode(batch.column("value"))
        except pa.ArrowInvalid:
            raise UsageError(_not_utf8(batch)) from None

    return of_batch


# Encoders of a batch's values as text, by name.
ENCODERS: dict[str, Callable[[pa.RecordBatch], pa.Array]] = {
    "base64": _encoder(base64_text),
    "hex": _encoder(hex_text),
    "utf8": _encoder(utf8_text),
}


def _not_utf8(batch: pa.RecordBatch) -> str:
    for row, value in enumerate(batch.column("value")):
        try:
            value.as_py().decode()
        except UnicodeDecodeError as failure:
            where = f"{batch.column('next_position')[row]}" if "next_position" in batch.schema.names else "unknown"
            return f"the message that ends at position {where} is no UTF-8 ({failure.reason}): take base64 or hex"
    return "a message is no UTF-8: take base64 or hex"


def with_time_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Dates and times as ISO 8601, also in structs and lists; a number with its unit where no calendar has them.

    Python's own have no nanoseconds and end with the year 9999.
    """
    if not any(_has_times(kind) for kind in batch.schema.types):
        return batch
    return pa.RecordBatch.from_arrays([time_texts(column) for column in batch.columns], batch.schema.names)


def _has_times(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_times(kind.field(index).type) for index in range(kind.num_fields))
    return _has_times(kind.value_type) if pa.types.is_list(kind) else bool(pa.types.is_temporal(kind))


def time_texts(column: pa.Array) -> pa.Array:
    """One column of `with_time_texts`."""
    kind = column.type
    if not _has_times(kind):
        return column
    if pa.types.is_struct(kind):
        names = [kind.field(index).name for index in range(kind.num_fields)]
        return pa.StructArray.from_arrays([time_texts(one) for one in column.flatten()], names, mask=column.is_null())
    if pa.types.is_list(kind):
        items = time_texts(column.values)
        buffers = column.buffers()[:2]
        return pa.Array.from_buffers(pa.list_(items.type), len(column), buffers, offset=column.offset, children=[items])
    unit, first, end = _calendar(kind)
    numbers = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())  # noqa: PLR2004 - bits
    fits = pc.and_(pc.greater_equal(numbers, first), pc.less(numbers, end))
    text = pc.replace_substring(pc.if_else(fits, column, pa.scalar(None, kind)).cast(pa.string()), " ", "T")
    # Arrow's own text of such a number is another time, or an error's.
    return pc.if_else(fits, text, pc.binary_join_element_wise(numbers.cast(pa.string()), unit, " "))


def _calendar(kind: pa.DataType) -> tuple[str, int, int]:
    """What a type counts, the first number that has a text, and the first behind that has none."""
    if pa.types.is_date32(kind):
        return "days since 1970", _FIRST_DAY, _END_DAY
    per_day = _DAY_S * _PER_SECOND[kind.unit]
    if pa.types.is_time(kind):
        return f"{kind.unit} since midnight", 0, per_day
    return f"{kind.unit} since 1970", max(_FIRST_DAY * per_day, -(2**63)), min(_END_DAY * per_day, 2**63 - 1)


def with_float_texts(value: Any) -> Any:
    """A value of Python whose NaN and infinities, which JSON lacks, are texts as of `sbe decode`; also in dicts and lists."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: with_float_texts(one) for name, one in value.items()}
    return [with_float_texts(one) for one in value] if isinstance(value, list) else value


def _joined(*pieces: pa.Array | str) -> pa.Array:
    """Concatenates texts and columns of texts, row by row."""
    texts = [pa.scalar(piece, pa.large_string()) if isinstance(piece, str) else piece for piece in pieces]
    return pc.binary_join_element_wise(*texts, pa.scalar("", pa.large_string()))


def _json_text(column: pa.Array) -> pa.Array:
    """A column as JSON values."""
    if pa.types.is_timestamp(column.type):
        return _joined('"', column.cast(pa.large_string()), '"')
    if not pa.types.is_large_string(column.type):
        return column.cast(pa.large_string())
    if pc.any(pc.match_substring_regex(column, r'[\\"\x00-\x1f]')).as_py():
        for raw, escaped in _ESCAPES.items():
            column = pc.replace_substring(column, raw, escaped)
        if pc.any(pc.match_substring_regex(column, r"[\x00-\x1f]")).as_py():
            for code in range(0x20):
                column = pc.replace_substring(column, chr(code), f"\\u{code:04x}")
    return _joined('"', column, '"')


def json_lines(batch: pa.RecordBatch, names: list[str], *, value: str) -> memoryview:
    """One JSON object per row of the named columns, each with a line end; `value` names that column's encoder."""
    pieces: list[Any] = []
    for number, name in enumerate(names):
        pieces.append(f'{"{" if number == 0 else ","}"{name}":')
        pieces.append(_json_text(ENCODERS[value](batch) if name == "value" else batch.column(name)))
    lines = _joined(*pieces, "}\n")
    offsets, data = lines.buffers()[1:]
    if len(lines) == 0:
        return memoryview(b"")
    ends = memoryview(offsets).cast("q")
    return memoryview(data)[ends[lines.offset] : ends[lines.offset + len(lines)]]
