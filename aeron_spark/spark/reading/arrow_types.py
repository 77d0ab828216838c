"""Maps Arrow types that Spark refuses to the nearest supported type."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["spark_type"]

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
