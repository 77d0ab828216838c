"""The rows of a read: which columns there are, their types, and a user's own choice among them.

Spark cannot prune columns of a Python data source, so a user's schema does it: the columns it names are built and sent,
in its order; a column or type we cannot honour is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import BinaryType, DataType, IntegerType, LongType, ShortType, StructField, StructType

from aeron_spark.errors import UsageError

__all__ = ["DEFAULT_COLUMNS", "arrow_schema", "column_names", "default_schema"]


@dataclass(frozen=True, slots=True)
class _Column:
    spark_type: DataType
    arrow_type: pa.DataType
    meaning: str


_COLUMNS: dict[str, _Column] = {
    "recording_id": _Column(LongType(), pa.int64(), "id of the recording in its archive"),
    "session_id": _Column(IntegerType(), pa.int32(), "session of the publication that was recorded"),
    "stream_id": _Column(IntegerType(), pa.int32(), "stream of the publication that was recorded"),
    "position": _Column(LongType(), pa.int64(), "where the first frame of the message begins"),
    "next_position": _Column(LongType(), pa.int64(), "aligned end of its last frame"),
    "reserved_value": _Column(LongType(), pa.int64(), "the application's field in the frame header"),
    "value": _Column(BinaryType(), pa.binary(), "the message, fragments joined"),
    "term_id": _Column(IntegerType(), pa.int32(), "term of the message"),
    "term_offset": _Column(IntegerType(), pa.int32(), "offset of its first frame in the term"),
    "flags": _Column(ShortType(), pa.int16(), "flags of its first frame, with END set"),
}

#: Columns of a read without a schema of the user's.
DEFAULT_COLUMNS = ("recording_id", "session_id", "stream_id", "position", "next_position", "reserved_value", "value")


def default_schema() -> StructType:
    """Schema of the default columns; none is nullable."""
    return StructType([StructField(name, _COLUMNS[name].spark_type, nullable=False) for name in DEFAULT_COLUMNS])


def column_names(schema: StructType) -> tuple[str, ...]:
    """Columns a schema asks for, in its order; UsageError for one that does not exist or has another type."""
    names: list[str] = []
    for field in schema.fields:
        column = _COLUMNS.get(field.name)
        if column is None:
            raise UsageError(f"column {field.name!r} does not exist, choose among {', '.join(_COLUMNS)}")
        if field.dataType != column.spark_type:
            raise UsageError(
                f"column {field.name} is {column.spark_type.simpleString()}, the schema says {field.dataType.simpleString()}; "
                f"read it as it is and cast afterwards"
            )
        if field.name in names:
            raise UsageError(f"column {field.name} is in the schema twice")
        names.append(field.name)
    if not names:
        raise UsageError(f"the schema has no column, choose among {', '.join(_COLUMNS)}")
    return tuple(names)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Arrow schema of the batches, nullability as declared (Spark compares it exactly)."""
    return pa.schema(
        [pa.field(field.name, _COLUMNS[field.name].arrow_type, nullable=field.nullable) for field in schema.fields]
    )
