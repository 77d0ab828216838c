"""What a task of the sink does: rows of Arrow batches to messages of one exclusive publication.

Used by the batch and the stream writer. The client of a directory is kept for the life of the Python worker, because
connecting costs more than a small partition; the publication is opened and closed by each task, so that its end position
is what the task published.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from aeron_spark.archive.client import Archive
from aeron_spark.channel import ChannelUri
from aeron_spark.client import Client
from aeron_spark.errors import AeronError, ClosedError, PeerError, UsageError, WaitTimeoutError
from aeron_spark.publication import ExclusivePublication
from aeron_spark.spark.launch import ensure_archive, ensure_driver, live_archive
from aeron_spark.spark.options import WriteOptions

__all__ = ["Published", "publish_batches"]

_clients: dict[str, Client] = {}


@dataclass(frozen=True)
class Published(WriterCommitMessage):
    """What one task published: [start_position, end_position) of one session, message boundaries.

    ``recording_id`` is the recording that holds it, None without the option recordTo.
    """

    session_id: int
    stream_id: int
    start_position: int
    end_position: int
    rows: int
    recording_id: int | None


def publish_batches(batches: Iterator[pa.RecordBatch], options: WriteOptions, application: str) -> Published:
    """Publishes every row in order; an error names the first row that was not published.

    Waits up to ``publish_timeout`` without progress for a subscriber or through back-pressure, then raises. With the option
    recordTo, returns when the archive has recorded everything.
    """
    with ExitStack() as stack:
        publication, archive = _open(options, application, stack)
        start_position = publication.position
        rows = _publish_rows(batches, publication, options)
        end_position = publication.position
        recording_id = None
        if archive is not None and end_position > start_position:
            recording_id = archive.wait_recording(
                "", options.stream_id, publication.session_id, timeout=options.publish_timeout
            )
            archive.wait_position(recording_id, end_position, timeout=options.publish_timeout)
        return Published(
            session_id=publication.session_id,
            stream_id=options.stream_id,
            start_position=start_position,
            end_position=end_position,
            rows=rows,
            recording_id=recording_id,
        )


def _open(options: WriteOptions, application: str, stack: ExitStack) -> tuple[ExclusivePublication, Archive | None]:
    """Publication and, with recordTo, archive. A second try: what looks alive may have ended within the last 10 s."""
    try:
        return _open_once(options, application, stack)
    except (ClosedError, WaitTimeoutError):
        stack.close()
        return _open_once(options, application, stack)


def _open_once(
    options: WriteOptions, application: str, stack: ExitStack
) -> tuple[ExclusivePublication, Archive | None]:
    aeron_dir = _driver(options, application)
    client = _client(aeron_dir)
    if options.record_to is None:
        return stack.enter_context(client.add_exclusive_publication(options.channel, options.stream_id)), None
    info = ensure_archive(options.record_to, aeron_dir)
    archive = stack.enter_context(Archive(client, control_stream_id=info.local_control_stream_id))
    if archive.archive_id is not None and archive.archive_id != info.archive_id:
        raise PeerError(
            f"archive {archive.archive_id} answers on the driver in {aeron_dir}, but archive {info.archive_id} owns "
            f"{options.record_to}: two archives share a driver and a control stream, give one another driver (aeronDir) or "
            f"another aeron.archive.local.control.stream.id"
        )
    publication = stack.enter_context(client.add_exclusive_publication(options.channel, options.stream_id))
    # Nobody else's messages, and no other folder's: the recording is of this session, and ends with it.
    channel = ChannelUri.parse(options.channel).with_params(session_id=publication.session_id)
    archive.start_recording(channel, options.stream_id, auto_stop=True)
    return publication, archive


def _driver(options: WriteOptions, application: str) -> str:
    """Directory of the driver to publish on: an archive that is alive decides it, as it records from its own driver."""
    alive = live_archive(options.record_to) if options.record_to is not None else None
    if alive is None:
        return ensure_driver(options.aeron_dir, application=application, may_launch=options.launch_driver)
    if options.aeron_dir is not None and os.path.realpath(options.aeron_dir) != os.path.realpath(str(alive.aeron_dir)):
        raise UsageError(
            f"the archive on {options.record_to} works with the driver of {alive.aeron_dir}, not of {options.aeron_dir}: "
            f"leave aeronDir out, or name that directory"
        )
    return str(alive.aeron_dir)


def _client(aeron_dir: str) -> Client:
    client = _clients.get(aeron_dir)
    if client is not None and client.is_closed:
        client.close()
        client = None
    if client is None:
        client = _clients[aeron_dir] = Client(aeron_dir, name="aeron-spark-sink")
    return client


def _publish_rows(batches: Iterator[pa.RecordBatch], publication: ExclusivePublication, options: WriteOptions) -> int:
    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    rows = 0
    for batch in batches:
        value, reserved = _message_columns(batch, partition, rows)
        try:
            publication.offer_batch(value, reserved_values=reserved, timeout=options.publish_timeout)
        except AeronError as error:
            remedy = f"; {_who_is_slow(options)}" if isinstance(error, WaitTimeoutError) else ""
            raise type(error)(
                f"row {rows + (error.accepted or 0)} of partition {partition} was not published to {options.channel} "
                f"stream {options.stream_id}: {error}{remedy}",
                code=error.code,
            ) from error
        rows += batch.num_rows
    return rows


def _who_is_slow(options: WriteOptions) -> str:
    where = f" (the archive on {options.record_to} is one)" if options.record_to is not None else ""
    directory = f" --dir {options.aeron_dir}" if options.aeron_dir is not None else ""
    return (
        f"start a subscriber of that channel and stream, or see by 'aeron-spark stat{directory}' which one is behind{where}, "
        f"or raise publishTimeout"
    )


def _message_columns(batch: pa.RecordBatch, partition: int, row_base: int) -> tuple[pa.Array, pa.Array | None]:
    value = batch.column("value")
    reserved = batch.column("reserved_value") if "reserved_value" in batch.schema.names else None
    for name, column in (("value", value), ("reserved_value", reserved)):
        if column is not None and column.null_count > 0:
            row = row_base + pc.index(pc.is_null(column), True).as_py()
            raise UsageError(
                f"row {row} of partition {partition} has a null {name}, a message needs one: filter or fill it"
            )
    return value, reserved
