"""Batch reading with ``isolation=read_committed``: the ranges that the ledger names, each once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from aeron_spark.spark.ledger import first_of_each, read_entries
from aeron_spark.spark.planning.committed import check_ledger, committed_ranges, warn_without_ledger
from aeron_spark.spark.planning.options import LATEST, ReadOptions
from aeron_spark.spark.planning.selection import open_folder
from aeron_spark.spark.reading.batch import RangesPartition, partition_ranges, read_partition
from aeron_spark.spark.reading.rows import Rows

__all__ = ["CommittedBatchReader"]


class CommittedBatchReader(DataSourceReader):
    """Everything committed that the archive still holds, as it is when the query is planned."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._rows = Rows(options, schema)

    def partitions(self) -> Sequence[InputPartition]:
        """Fixes the ranges now."""
        with open_folder(self._options) as folder:
            check_ledger(folder)
            warn_without_ledger(folder, self._options)
            is_all = self._options.starting_positions.word != LATEST
            entries = [item.entry for item in first_of_each(read_entries(folder, {}), set())] if is_all else []
            folder.refresh()
            # Purged recordings, and purged heads of recordings, no longer belong to a table.
            found = list(committed_ranges(folder, entries, self._options, purged_is_loss=False))
            return partition_ranges(folder, found, self._options) or [RangesPartition(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a task."""
        return read_partition(cast("RangesPartition", partition), self._options, self._rows)
