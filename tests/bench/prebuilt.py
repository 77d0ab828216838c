"""The ceiling of any Python source: prebuilt Arrow batches, and the floor of a micro-batch: a source with nothing to do.

Columns and types are those of format aeron, or of a file, so that Spark's own work is the same on both sides of a pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from aeron_spark.spark.reading.schema import arrow_schema, default_schema


@dataclass(frozen=True)
class Share(InputPartition):
    """How many rows a task yields."""

    rows: int


class PrebuiltSource(DataSource):
    """Options: rows, payload (bytes), batch (rows of a batch), partitions."""

    @classmethod
    def name(cls) -> str:
        return "prebuilt"

    def schema(self) -> StructType:
        return default_schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        return PrebuiltReader({name: int(value) for name, value in self.options.items()})

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return EmptyStreamReader()


def build_batch(rows: int, payload: int) -> pa.RecordBatch:
    """A batch of `rows` messages of `payload` bytes."""
    longs = pa.array(np.arange(rows, dtype=np.int64))
    ints = pa.array(np.zeros(rows, dtype=np.int32))
    offsets = pa.py_buffer(np.arange(rows + 1, dtype=np.int32) * payload)
    data = pa.py_buffer(np.random.default_rng(1).integers(0, 255, rows * payload, dtype=np.uint8))
    value = pa.Array.from_buffers(pa.binary(), rows, [None, offsets, data])
    return pa.RecordBatch.from_arrays(
        [longs, ints, ints, longs, longs, longs, value], schema=arrow_schema(default_schema())
    )


class PrebuiltReader(DataSourceReader):
    """Yields the same batch again and again."""

    def __init__(self, options: dict[str, int]) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        count = self._options["partitions"]
        return [Share(self._options["rows"] // count)] * count

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        batch = build_batch(self._options["batch"], self._options["payload"])
        left = partition.rows
        while left > 0:
            yield batch if left >= batch.num_rows else batch.slice(0, left)
            left -= batch.num_rows


class PrebuiltFileSource(DataSource):
    """Any columns: the batch of an Arrow file. Options: path, rows."""

    @classmethod
    def name(cls) -> str:
        return "prebuilt_file"

    def schema(self) -> StructType:
        return cast("StructType", from_arrow_schema(_batch_of(self.options["path"]).schema))

    def reader(self, schema: StructType) -> DataSourceReader:
        return PrebuiltFileReader(self.options["path"], int(self.options["rows"]))


def _batch_of(path: str) -> pa.RecordBatch:
    with pa.ipc.open_file(path) as file:
        return file.get_batch(0)


class PrebuiltFileReader(DataSourceReader):
    """One task, the same batch again and again."""

    def __init__(self, path: str, rows: int) -> None:
        self._path, self._rows = path, rows

    def partitions(self) -> Sequence[InputPartition]:
        return [Share(self._rows)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        batch, left = _batch_of(self._path), self._rows
        while left > 0:
            yield batch if left >= batch.num_rows else batch.slice(0, left)
            left -= batch.num_rows


class EmptyStreamReader(DataSourceStreamReader):
    """Advances by one row of nothing at each batch, so that Spark goes through all motions of a micro-batch."""

    def __init__(self) -> None:
        self._batch = build_batch(1, 64)

    def initialOffset(self) -> dict[str, int]:  # type: ignore[override]
        return {"batch": 0}

    def latestOffset(self, start: dict[str, int], limit: object) -> dict[str, int]:  # type: ignore[override]
        return {"batch": start["batch"] + 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:  # type: ignore[override]
        return [Share(1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield self._batch
