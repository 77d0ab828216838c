"""Converts message bytes to text columns, and rows to JSON lines: whole columns at a time. Pure; any thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aeron_spark.errors import UsageError

_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint16)
_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_PADDING = ord("=")
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
