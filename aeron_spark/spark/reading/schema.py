"""The rows of a read: which columns a message has, their types, and a user's own choice among them.

Spark cannot prune columns of a Python data source, so a user's schema does it: the columns it names are built and sent,
in its order; a column or type we cannot honour is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from aeron_spark.errors import UsageError
from aeron_spark.spark.features import to_arrow_schema

__all__ = [
    "DEFAULT_COLUMNS",
    "NATIVE",
    "arrow_schema",
    "check_schema",
    "default_schema",
    "message_fields",
    "spark_schema",
]

#: Columns of a message as Spark takes them.
_FIELDS = {
    field.name: field
    for field in (
        pa.field("recording_id", pa.int64(), nullable=False),
        pa.field("session_id", pa.int32(), nullable=False),
        pa.field("stream_id", pa.int32(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("next_position", pa.int64(), nullable=False),
        pa.field("reserved_value", pa.int64(), nullable=False),
        pa.field("value", pa.binary(), nullable=False),
        pa.field("term_id", pa.int32(), nullable=False),
        pa.field("term_offset", pa.int32(), nullable=False),
        pa.field("flags", pa.int16(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", "UTC")),
        pa.field("timestamp_ns", pa.int64()),
        pa.field("channel", pa.string(), nullable=False),
        pa.field("source_identity", pa.string(), nullable=False),
    )
}

#: Those that C fills; the others are made of them.
NATIVE = frozenset(_FIELDS) - {"timestamp", "timestamp_ns", "channel", "source_identity"}

#: Columns of a read without a schema of the user's.
DEFAULT_COLUMNS = ("recording_id", "session_id", "stream_id", "position", "next_position", "reserved_value", "value")


def message_fields(value: str) -> dict[str, pa.Field]:
    """Columns of a message by name; ``value`` is binary or string."""
    return {**_FIELDS, "value": pa.field("value", pa.string() if value == "string" else pa.binary(), nullable=False)}


def spark_schema(fields: Iterable[pa.Field]) -> StructType:
    """Spark's schema of columns."""
    return from_arrow_schema(pa.schema(list(fields)))


def default_schema() -> StructType:
    """Schema of the default columns; none is nullable."""
    return spark_schema(_FIELDS[name] for name in DEFAULT_COLUMNS)


def check_schema(schema: StructType, known: Mapping[str, pa.Field]) -> None:
    """UsageError for a column that does not exist, is named twice, or has another type or nulls that the schema excludes."""
    if not schema.fields:
        raise UsageError(f"the schema has no column, choose among {', '.join(known)}")
    seen = set()
    for field in schema.fields:
        column = known.get(field.name)
        if column is None:
            raise UsageError(f"column {field.name!r} does not exist, choose among {', '.join(known)}")
        is_as = spark_schema([column]).fields[0]
        if field.dataType != is_as.dataType:
            raise UsageError(
                f"column {field.name} is {is_as.dataType.simpleString()}, the schema says {field.dataType.simpleString()}; "
                f"read it as it is and cast afterwards"
            )
        if column.nullable and not field.nullable:
            raise UsageError(f"column {field.name} can be null, the schema says NOT NULL; leave that out and filter")
        if field.name in seen:
            raise UsageError(f"column {field.name} is in the schema twice")
        seen.add(field.name)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Arrow schema of the batches, nullability as declared (Spark compares it exactly)."""
    return to_arrow_schema(schema)
