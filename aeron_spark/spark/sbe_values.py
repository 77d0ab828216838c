"""Messages as SBE: which template each is of, and the time in a field, over whole batches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aeron_spark.errors import UsageError
from aeron_spark.sbe import Decoder, Schema, SchemaError, load
from aeron_spark.spark.options import ReadOptions

__all__ = ["SbeTimes", "fields_of", "load_schema", "template_ids", "times_of"]

#: What a decoder adds to the fields of a message.
ADDED = ("sbe_error", "sbe_error_at", "sbe_raw")

_TO_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_NANOSECONDS = pa.timestamp("ns", "UTC")


def fields_of(schema: Schema, message: str) -> Callable[[pa.Array], pa.RecordBatch]:
    """Decodes messages of one template: its fields, and why a message could not be decoded."""
    return Decoder(schema, message, on_error="null").decode


def template_ids(schema: Schema, values: pa.BinaryArray) -> pa.Array:
    """Template id of each message; null where it is shorter than its header."""
    role = schema.header.template_id
    count = len(values)
    if role.constant is not None:
        return pa.array(np.full(count, role.constant, np.int32))
    offsets = np.frombuffer(values.buffers()[1], np.int32, count + 1, values.offset * 4)
    lengths = np.diff(offsets)
    is_whole = lengths >= max(role.end, schema.header.composite.size)
    ids = np.zeros(count, np.int64)
    if is_whole.any():
        data = np.frombuffer(values.buffers()[2], np.uint8)
        at = offsets[:-1][is_whole].astype(np.int64) + role.offset
        size = role.primitive.size
        for byte in range(size):
            shift = 8 * (size - 1 - byte if schema.is_big_endian else byte)
            ids[is_whole] |= data[at + byte].astype(np.int64) << shift
    return pa.array(ids.astype(np.int32), mask=~is_whole)


class SbeTimes:
    """The time in one field of each message: of any template that has the field, null for the others."""

    def __init__(self, schema: Schema, field: str, unit: str) -> None:
        self._schema = schema
        self._field = field
        self._unit = unit
        self._templates = {
            message.id: message.name
            for message in schema.messages.values()
            if any(one.name == field for one in message.fields)
        }
        if not self._templates:
            raise UsageError(f"timestampFrom=sbe:{field}: no message of the SBE schema has a field {field!r}")
        self._decoders = {name: fields_of(schema, name) for name in self._templates.values()}
        for decode in self._decoders.values():
            self._as_ns(decode(pa.array([], pa.binary())).column(field))

    def __getstate__(self) -> dict[str, object]:
        """Plans of a decoder are of this process; a task makes its own."""
        return {key: value for key, value in self.__dict__.items() if key != "_decoders"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._decoders = {name: fields_of(self._schema, name) for name in self._templates.values()}

    def __call__(self, values: pa.BinaryArray) -> pa.Array:
        """Timestamps in ns."""
        ids = template_ids(self._schema, values)
        found = pa.nulls(len(values), pa.int64())
        for template_id, name in self._templates.items():
            mask = pc.equal(ids, template_id).fill_null(False)  # noqa: FBT003 - pyarrow takes it so
            if pc.any(mask).as_py():
                times = self._as_ns(self._decoders[name](values.filter(mask)).column(self._field))
                found = pc.replace_with_mask(found, mask, times)
        return found

    def _as_ns(self, column: pa.Array) -> pa.Array:
        """Whole nanoseconds; what does not fit in 64 bits is null."""
        if pa.types.is_timestamp(column.type):
            factor = _TO_NS[column.type.unit]
        elif pa.types.is_integer(column.type) or pa.types.is_decimal(column.type):
            if not self._unit:
                raise UsageError(
                    f"timestampFrom=sbe:{self._field}: the schema does not say the field's unit, "
                    f"write sbe:{self._field}(ns), (us), (ms) or (s)"
                )
            factor = _TO_NS[self._unit]
        else:
            raise UsageError(f"timestampFrom=sbe:{self._field}: the field is {column.type}, not a time or a number")
        if pa.types.is_decimal(column.type):
            too_large = pc.greater(column, pa.scalar((1 << 63) - 1, pa.int64()).cast(column.type))
            column = pc.if_else(too_large, pa.scalar(None, column.type), column)
        numbers = column.cast(pa.int64())
        most = ((1 << 63) - 1) // factor
        is_possible = pc.and_(pc.less_equal(numbers, most), pc.greater_equal(numbers, -most))
        return pc.multiply(pc.if_else(is_possible, numbers, pa.scalar(None, pa.int64())), factor)


def times_of(options: ReadOptions) -> SbeTimes | None:
    """What tells the times of messages, where the options name an SBE field for it."""
    source = options.timestamp_from
    if source.kind != "sbe" or options.sbe_schema is None:
        return None
    return SbeTimes(load_schema(options.sbe_schema), source.field, source.unit)


def load_schema(path: str) -> Schema:
    """The schema of an XML file; UsageError says what is wrong with it, with the line."""
    try:
        return load(path)
    except SchemaError as error:
        raise UsageError(f"option sbeSchema={path}: {error}") from None
