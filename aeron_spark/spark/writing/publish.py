"""What a task of the sink does: rows of Arrow batches to messages of exclusive publications.

Used by the batch and the stream writer. Each destination (channel and stream) of the rows has a publication of the
worker's pool.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from uuid import UUID, uuid5

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from aeron_spark.counters import Counters
from aeron_spark.errors import AeronError, UsageError, WaitTimeoutError
from aeron_spark.spark.ledger import PublishedRange
from aeron_spark.spark.planning.selection import identity_of
from aeron_spark.spark.writing.blocks import rows_of
from aeron_spark.spark.writing.encode import BATCH_WRITE, Encoder, Messages, RowKey
from aeron_spark.spark.writing.options import EXACTLY_ONCE, WriteOptions
from aeron_spark.spark.writing.publications import PooledPublication, give_back, take
from aeron_spark.streams import BacklogRow, backlog

__all__ = ["Published", "publish_batches"]


@dataclass(frozen=True)
class Published(WriterCommitMessage):
    """A task's result. ``ranges`` and ``archive_id`` are there where an archive records."""

    query: UUID
    batch: int
    rows: int
    archive_id: int | None
    ranges: tuple[PublishedRange, ...]


def publish_batches(
    batches: Iterator[pa.RecordBatch],
    options: WriteOptions,
    application: str,
    write_id: UUID,
    *,
    in_query: bool = False,
) -> Published:
    """Publishes every row in order; an error names the first row that was not published.

    Waits up to ``publish_timeout`` without progress for subscribers or through back-pressure, then raises. With an
    archive, returns when that has recorded everything. ``write_id`` stands for the query unless the rows are a streaming
    query's own (``in_query``).
    """
    task = _Task(options, application, _row_key(options, write_id, in_query=in_query))
    try:
        # Closed here: the JVM reads the error of a task only when it no longer waits to send rows.
        with closing(rows_of(batches)) if options.in_blocks else nullcontext(batches) as rows:
            for batch in rows:
                for messages in task.encoder.encode(batch):
                    task.publish(messages)
        published = task.finish()
    except BaseException:
        task.close()
        raise
    task.give_back()
    return published


def _row_key(options: WriteOptions, write_id: UUID, *, in_query: bool) -> RowKey:
    context = TaskContext.get()
    if context is None:
        return RowKey(query=write_id, batch=BATCH_WRITE, partition=0)
    partition = context.partitionId()
    # Set for what foreachBatch writes, too: there it may write more than once.
    query, batch = (context.getLocalProperty(name) for name in ("sql.streaming.queryId", "streaming.sql.batchId"))
    if in_query and query and batch:
        return RowKey(query=UUID(query), batch=int(batch), partition=partition)
    if in_query or not (query and batch) or options.guarantee != EXACTLY_ONCE:
        return RowKey(query=write_id, batch=BATCH_WRITE, partition=partition)
    if options.write_id is None:
        raise UsageError(
            "an exactly-once write inside of foreachBatch needs option writeId, another one for each write of the function: "
            "Spark repeats a micro-batch after a failure, and knows the write again by its writeId and the batch's number"
        )
    # Another query, or the same with a new checkpoint, counts its batches from 0 again.
    return RowKey(query=uuid5(write_id, query), batch=int(batch), partition=partition)


class _Task:
    """The publications that a task has taken from the pool, and the position at which it began in each."""

    def __init__(self, options: WriteOptions, application: str, key: RowKey) -> None:
        self._options = options
        self._application = application
        self._key = key
        self._taken: dict[tuple[str, int], tuple[PooledPublication, int]] = {}
        self._messages: dict[tuple[str, int], int] = {}
        self.encoder = Encoder(options, key, self._max_length)

    def publish(self, messages: Messages) -> None:
        destination = (messages.channel, messages.stream_id)
        publication = self._publication(*destination).publication
        try:
            publication.offer_batch(
                messages.values, reserved_values=messages.reserved, timeout=self._options.publish_timeout
            )
        except AeronError as error:
            remedy = f"; {self._who_is_slow(*destination)}" if isinstance(error, WaitTimeoutError) else ""
            raise type(error)(
                f"row {messages.rows[error.accepted or 0]} of partition {self._key.partition} was not published to "
                f"{messages.channel} stream {messages.stream_id}: {error}{remedy}",
                code=error.code,
            ) from error
        self._messages[destination] = self._messages.get(destination, 0) + len(messages.rows)

    def finish(self) -> Published:
        """Waits until everything is recorded, where it is to be."""
        ranges = []
        archive_id = None
        for destination, (pooled, begin) in self._taken.items():
            end = pooled.publication.position
            if pooled.archive is None or pooled.recording is None:
                continue
            archive_id = pooled.archive_id
            recording = pooled.recording
            pooled.wait_recorded(end, self._options, self._application)
            ranges.append(
                PublishedRange(
                    recording_id=recording.recording_id,
                    identity=identity_of(recording),
                    begin=begin,
                    end=end,
                    messages=self._messages.get(destination, 0),
                    stream_id=recording.stream_id,
                    session_id=recording.session_id,
                )
            )
        return Published(self._key.query, self._key.batch, self.encoder.rows, archive_id, tuple(ranges))

    def give_back(self) -> None:
        for pooled, _ in self._taken.values():
            give_back(pooled, self._options.linger)

    def close(self) -> None:
        for pooled, _ in self._taken.values():
            pooled.close()

    def _publication(self, channel: str, stream_id: int) -> PooledPublication:
        if (channel, stream_id) not in self._taken:
            pooled = take(self._options, channel, stream_id, self._application)
            self._taken[channel, stream_id] = (pooled, pooled.publication.position)
        return self._taken[channel, stream_id][0]

    def _max_length(self, channel: str, stream_id: int) -> int:
        return self._publication(channel, stream_id).publication.constants.max_message_length

    def _who_is_slow(self, channel: str, stream_id: int) -> str:
        options = self._options
        pooled = self._publication(channel, stream_id)
        where = f" (the archive on {options.archive} is one)" if options.archive is not None else ""
        directory = f" --dir {shlex.quote(str(options.aeron_dir))}" if options.aeron_dir is not None else ""
        return (
            f"{_parties(pooled.aeron_dir, pooled.publication.session_id, stream_id)}start a subscriber of that channel and "
            f"stream, or see by 'aeron-spark stat{directory}' which one is behind{where}, or raise publishTimeout"
        )


def _parties(aeron_dir: str, session_id: int, stream_id: int) -> str:
    """Positions of the publisher, sender, receivers and subscribers of the session, from their counters."""
    try:
        with Counters(aeron_dir) as counters:
            found = [
                row for row in backlog(counters.rows()) if (row.session_id, row.stream_id) == (session_id, stream_id)
            ]
    except AeronError:
        return ""
    return "".join(f"{_party(row)}; " for row in found)


def _party(row: BacklogRow) -> str:
    behind = "" if row.behind is None else f", {row.behind} bytes behind"
    window = "" if row.window is None else f", {row.window} bytes of window left"
    return f"{row.role} {row.registration_id} at {row.position}{behind}{window}"
