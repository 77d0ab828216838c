"""Batch sink: each task publishes its rows, in order, through exclusive publications.

At-least-once: Spark repeats a failed task's whole partition, and what the failed attempt published stays published. With
``guarantee=exactly-once`` the ledger's entry makes a write count, as a whole and once (see ``ledger``).
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from aeron_spark.spark.launch import application_identity
from aeron_spark.spark.writing.commit import commit_batch
from aeron_spark.spark.writing.options import EXACTLY_ONCE, WriteOptions
from aeron_spark.spark.writing.publish import publish_batches

__all__ = ["AeronBatchWriter"]


class AeronBatchWriter(DataSourceArrowWriter):
    """Made while the write is planned, then pickled into every task and into the commit."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._application = application_identity()
        self._write_id = options.write_id or uuid4()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Runs in a task."""
        return publish_batches(iterator, self._options, self._application, self._write_id)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """With exactly-once, the write's entry; otherwise messages are out when a task ends."""
        if self._options.guarantee == EXACTLY_ONCE:
            commit_batch(messages, self._options, self._application)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """What is published cannot be taken back, and an entry must not be: Spark calls this when ``commit`` raised, too."""
