"""Maps Arrow types that Spark refuses to the nearest supported type."""

from __future__ import annotations

import pyarrow as pa

from aeron_spark.sbe.times import microseconds

__all__ = ["in_microseconds", "spark_type"]

_UNSIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}
_PLAIN = {
    **_UNSIGNED,
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.null(): pa.string(),
}
if hasattr(pa, "string_view"):  # pyarrow 15 has none
    _PLAIN |= {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def spark_type(kind: pa.DataType) -> pa.DataType:
    """The type to cast to: times of day as their number, timestamps as microseconds, dictionaries as their values."""
    nested = _nested(kind)
    if nested is not None:
        return nested
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_time(kind):
        return pa.int64()
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else _PLAIN.get(kind, kind)


def in_microseconds(array: pa.Array) -> pa.Array:
    """With the timestamps in ns that it is or holds rounded down; a cast rounds those before 1970 up."""
    kind = array.type
    if "timestamp[ns" not in str(kind):
        return array
    if pa.types.is_timestamp(kind):
        return microseconds(array.cast(pa.int64())).cast(pa.timestamp("us", kind.tz))
    if pa.types.is_dictionary(kind):
        return in_microseconds(array.dictionary_decode())
    if pa.types.is_struct(kind):
        columns = [in_microseconds(column) for column in array.flatten()]
        return pa.StructArray.from_arrays(columns, [field.name for field in kind], mask=array.is_null())
    if not pa.types.is_map(kind):
        array = array.cast(pa.list_(kind.value_type))
    values = in_microseconds(array.values)
    kind = pa.map_(*(field.type for field in values.type)) if pa.types.is_map(kind) else pa.list_(values.type)
    return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], offset=array.offset, children=[values])


def _nested(kind: pa.DataType) -> pa.DataType | None:
    if pa.types.is_dictionary(kind):
        return spark_type(kind.value_type)
    if pa.types.is_map(kind):
        return pa.map_(spark_type(kind.key_type), spark_type(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(spark_type(kind.value_type))
    if pa.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return pa.struct([pa.field(field.name, spark_type(field.type)) for field in fields])
    return None
