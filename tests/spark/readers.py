"""The readers as Spark calls them, without a session: pickled for a task, rows out."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import (
    BinaryType,
    DataType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.reading.batch import AeronBatchReader
from aeron_spark.spark.reading.rows import read_schema
from aeron_spark.spark.reading.stream import AeronStreamReader

_TYPES: dict[str, DataType] = {
    "bigint": LongType(),
    "smallint": ShortType(),
    "string": StringType(),
    "binary": BinaryType(),
    "timestamp": TimestampType(),
}


def ddl(text: str) -> StructType:
    """A schema as ``.schema(text)`` has it, without a session to parse it."""
    fields = [column.split() for column in text.split(",")]
    return StructType([StructField(name, _TYPES[kind], nullable=not rest) for name, kind, *rest in fields])


def batch(
    path: Path | str, schema: str | None = None, *, kind: type[AeronBatchReader] = AeronBatchReader, **options: str
) -> AeronBatchReader:
    """The reader that Spark would be given, for a schema of the user's or the one the options give."""
    parsed = ReadOptions.parse({"path": str(path), **options}, streaming=False)
    return kind(parsed, read_schema(parsed) if schema is None else ddl(schema))


def stream(path: Path | str, **options: str) -> AeronStreamReader:
    given = {"path": str(path), "startingPositions": "earliest", **options}
    if {"startingTimestamp", "tail"} & options.keys():
        del given["startingPositions"]
    parsed = ReadOptions.parse(given, streaming=True)
    return AeronStreamReader(parsed, read_schema(parsed))


def read(
    reader: DataSourceReader | DataSourceStreamReader, partitions: Sequence[InputPartition] | None = None
) -> list[dict[str, Any]]:
    """All rows, as the tasks give them."""
    if partitions is None:
        assert isinstance(reader, DataSourceReader)
        partitions = reader.partitions()
    found: list[dict[str, Any]] = []
    for partition in partitions:
        task, its_part = pickle.loads(pickle.dumps((reader, partition)))  # noqa: S301 - our own
        for arrow in task.read(its_part):
            found.extend(arrow.to_pylist())
    return found


class Follower:
    """A stream reader driven from batch to batch, as a query does."""

    def __init__(self, path: Path | str, **options: str) -> None:
        self.reader = stream(path, **options)
        self.offset = self.reader.initialOffset()

    def step(self) -> list[dict[str, Any]]:
        """Rows of the next batch, of all there is."""
        self.reader.planner.pace.due_at = 0.0
        end = self.reader.latestOffset(self.offset, ReadAllAvailable())
        rows = read(self.reader, self.reader.partitions(self.offset, end))
        self.offset = end
        return rows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.reader.stop()
