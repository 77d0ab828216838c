"""Batch sink: each task publishes its rows, in order, through an exclusive publication.

At-least-once: Spark repeats a failed task's whole partition, and what the failed attempt published stays published.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from aeron_spark.spark.launch import application_identity
from aeron_spark.spark.publish import publish_batches
from aeron_spark.spark.write_options import WriteOptions

__all__ = ["AeronBatchWriter"]


class AeronBatchWriter(DataSourceArrowWriter):
    """Made while the write is planned, then pickled into every task."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._application = application_identity()
        self._write_id = uuid4()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Runs in a task."""
        return publish_batches(iterator, self._options, self._application, self._write_id)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing to do: messages are out when a task ends."""

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Published messages cannot be taken back; subscribers may see a failed write's rows."""
