"""Streaming sink: as the batch sink, for each micro-batch."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from aeron_spark.spark.features import StreamArrowWriter
from aeron_spark.spark.launch import application_identity
from aeron_spark.spark.writing.commit import commit_batch
from aeron_spark.spark.writing.options import EXACTLY_ONCE, WriteOptions
from aeron_spark.spark.writing.publish import publish_batches

__all__ = ["AeronStreamWriter"]


class AeronStreamWriter(StreamArrowWriter):
    """Planned anew for each micro-batch, pickled into its tasks; their messages bring query and batch to the commit."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._application = application_identity()
        self._write_id = uuid4()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Runs in a task."""
        return publish_batches(iterator, self._options, self._application, self._write_id, in_query=True)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """With exactly-once, the batch's entry unless it has one; otherwise messages are out when a task ends."""
        if self._options.guarantee == EXACTLY_ONCE:
            commit_batch(messages, self._options, self._application)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """What is published cannot be taken back, and an entry must not be: Spark calls this when ``commit`` raised, too."""
