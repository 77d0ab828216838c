"""Streaming sink: as the batch sink, for each micro-batch. At-least-once."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from aeron_spark.spark.launch import application_identity
from aeron_spark.spark.publish import publish_batches
from aeron_spark.spark.write_options import WriteOptions

__all__ = ["AeronStreamWriter"]


class AeronStreamWriter(DataSourceStreamArrowWriter):
    """Planned anew for each micro-batch, pickled into its tasks."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._application = application_identity()
        self._write_id = uuid4()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Runs in a task."""
        return publish_batches(iterator, self._options, self._application, self._write_id)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing to do: messages are out when a task ends."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Published messages cannot be taken back; Spark runs the batch again and subscribers see doubles."""
