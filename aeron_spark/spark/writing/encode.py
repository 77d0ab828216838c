"""Encodes rows as messages: checks a DataFrame's columns, and turns Arrow batches into messages.

**The key.** A repeated task publishes its rows again. A subscriber can drop duplicates by the key (query, batch,
partition, row): it is the same at each attempt if the query gives the same rows in the same order. The batch is -1 in
a batch write, whose query is a random id. ``key=header`` puts 40 bytes, little-endian, in front of each message:

    0  4 bytes  "ASK1"
    4  int32    partition
    8  int64    batch
    16 int64    row in the partition, from 0
    24 16 bytes query, a UUID in the order of its text

``key=reserved`` packs what fits into the frame's reserved value, never negative: bits 40 to 62 the batch modulo 2^23 (0 in a
batch write), 28 to 39 the partition, 0 to 27 the row. The stream then identifies the query; larger numbers raise an error.
With ``payload=arrow`` the row is the first one of the message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkTypeError
from pyspark.sql.types import StructField, StructType

from aeron_spark import sbe
from aeron_spark.errors import UsageError
from aeron_spark.spark.features import to_arrow_schema
from aeron_spark.spark.writing.options import ARROW, HEADER_KEY, NO_KEY, WriteOptions, awaiting_channel

__all__ = ["BATCH_WRITE", "KEY_LENGTH", "Encoder", "Messages", "RowKey", "check_columns"]

#: The batch of a batch write.
BATCH_WRITE = -1
KEY_LENGTH = 40
_KEY = np.dtype(
    [("magic", "S4"), ("partition", "<i4"), ("batch", "<i8"), ("row", "<i8"), ("query", "V16")], align=False
)
_ROW_BITS, _PARTITION_BITS, _BATCH_BITS = 28, 12, 23
_COLUMNS = {
    "value": ("binary", "string"),
    "stream_id": ("int",),
    "channel": ("string",),
    "reserved_value": ("bigint",),
}

#: Columns that route a row.
ROUTING_COLUMNS = ("stream_id", "channel", "reserved_value")

#: Longest message of a destination: needed where a batch is to be cut into messages.
MaxLength = Callable[[str, int], int]


def check_columns(schema: StructType, payload: str, encoder: sbe.Encoder | None = None) -> None:
    """Checks the columns of a DataFrame to be published, before its query starts."""
    given = {field.name: field.dataType.simpleString() for field in schema.fields}
    if encoder is not None:
        _check_fields(schema, given, encoder)
        return
    if payload == ARROW:
        if not given:
            raise UsageError("rows to publish have no columns")
        _arrow_schema(schema.fields)
        return
    if "value" not in given:
        raise UsageError(
            f"rows to publish need a column 'value' (binary or string), there are: {', '.join(given) or 'none'}; "
            f"payload=arrow publishes whole rows"
        )
    for name, type_text in given.items():
        if name not in _COLUMNS:
            raise UsageError(
                f"column {name!r} has no place in a message, select 'value' and optionally "
                f"{', '.join(repr(other) for other in _COLUMNS if other != 'value')} first"
            )
        _check_place(name, type_text)


def _arrow_schema(fields: Sequence[StructField]) -> pa.Schema:
    """As tasks get the columns; UsageError for one of a type that Python's Arrow lacks, like intervals of months."""
    made = []
    for field in fields:
        try:
            made.append(to_arrow_schema(StructType([field])).field(0))
        except PySparkTypeError:
            raise UsageError(
                f"column {field.name} is {field.dataType.simpleString()}, which cannot be published: cast it to a number or "
                f"a string"
            ) from None
    return pa.schema(made)


def _check_place(name: str, type_text: str) -> None:
    if type_text not in _COLUMNS[name]:
        raise UsageError(f"column {name} is {type_text}, it must be {' or '.join(_COLUMNS[name])}")


def _check_fields(schema: StructType, given: dict[str, str], encoder: sbe.Encoder) -> None:
    """A column for each field, group and data of the message, and the routing columns."""
    routing = [name for name in ROUTING_COLUMNS if name in given and name not in encoder.message.names]
    for name in routing:
        _check_place(name, given[name])
    arrow = _arrow_schema([field for field in schema.fields if field.name not in routing])
    try:
        encoder.check_columns(arrow)
    except UsageError as error:
        raise UsageError(f"payload=sbe, sbeMessage={encoder.message.name}: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowKey:
    """What names the rows of one task's partition."""

    query: UUID
    batch: int
    partition: int

    def into(
        self, form: str, values: pa.Array, reserved: pa.Array | None, rows: np.ndarray
    ) -> tuple[pa.Array, pa.Array | None]:
        """Messages and reserved values of these rows with their keys, in the form of the option ``key``."""
        if form == NO_KEY:
            return values, reserved
        if form == HEADER_KEY:
            large = pa.types.is_large_binary(values.type) or pa.types.is_large_string(values.type)
            kind = pa.large_binary() if large else pa.binary()
            joined = pc.binary_join_element_wise(
                self._headers(rows).cast(kind), values.cast(kind), pa.scalar(b"", kind), null_handling="emit_null"
            )
            return joined, reserved
        partition, batch = self.partition, max(0, self.batch)
        if partition >> _PARTITION_BITS or int(rows[-1]) >> _ROW_BITS:
            raise UsageError(
                f"key=reserved: row {rows[-1]} of partition {partition} does not fit into the reserved value, which takes "
                f"{1 << _PARTITION_BITS} partitions of {1 << _ROW_BITS} rows: take key=header, or repartition"
            )
        base = (batch & ((1 << _BATCH_BITS) - 1)) << (_PARTITION_BITS + _ROW_BITS) | partition << _ROW_BITS
        return values, pa.array(rows + base, pa.int64())

    def _headers(self, rows: np.ndarray) -> pa.Array:
        headers = np.zeros(len(rows), _KEY)
        headers["magic"] = b"ASK1"
        headers["partition"] = self.partition
        headers["batch"] = self.batch
        headers["row"] = rows
        headers["query"] = np.void(self.query.bytes)
        return pa.Array.from_buffers(pa.binary(KEY_LENGTH), len(rows), [None, pa.py_buffer(headers.tobytes())])


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """Messages for one destination, in order; ``rows[i]`` is the row in the partition that message i begins with."""

    channel: str
    stream_id: int
    values: pa.Array
    reserved: pa.Array | None
    rows: np.ndarray


class Encoder:
    """Turns the batches of one task into messages; counts the rows."""

    def __init__(self, options: WriteOptions, key: RowKey, max_length: MaxLength) -> None:
        self._options = options
        self._key = key
        self._max_length = max_length
        self._channels: dict[str, str] = {}
        self.rows = 0

    def encode(self, batch: pa.RecordBatch) -> Iterator[Messages]:
        """Messages of the next batch, destination by destination; UsageError names a row that cannot be one."""
        first, self.rows = self.rows, self.rows + batch.num_rows
        if batch.num_rows == 0:
            return
        if self._options.payload == ARROW:
            yield from self._whole(batch, first)
            return
        if self._options.sbe is not None:
            batch = self._as_sbe(batch, first)
        for name in ("value", "reserved_value"):
            self._refuse_nulls(batch, name, first)
        for channel, stream_id, indexes in self._destinations(batch, first):
            part = batch if len(indexes) == batch.num_rows else batch.take(pa.array(indexes))
            reserved = part.column("reserved_value") if "reserved_value" in part.schema.names else None
            rows = indexes + first
            values, reserved = self._key.into(self._options.key, part.column("value"), reserved, rows)
            yield Messages(
                channel=channel,
                stream_id=stream_id,
                values=values,
                reserved=reserved,
                rows=rows,
            )

    def _as_sbe(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """The fields of each row as one message, beside the routing columns."""
        encoder = self._options.sbe
        assert encoder is not None  # noqa: S101 - asked for with an encoder only
        routing = [name for name in ROUTING_COLUMNS if name in batch.schema.names and name not in encoder.message.names]
        fields = batch.select([name for name in batch.schema.names if name not in routing])
        try:
            values = encoder.encode(fields)
        except UsageError:
            index = _first_refused(encoder, fields)
            try:
                encoder.encode(fields.slice(index, 1))
            except UsageError as error:
                raise UsageError(
                    f"row {first + index} of partition {self._key.partition} is no message {encoder.message.name}: {error}"
                ) from None
            # No row is to blame: together they are more than a batch holds.
            raise
        return pa.RecordBatch.from_arrays(
            [values, *(batch.column(name) for name in routing)], names=["value", *routing]
        )

    def _refuse_nulls(self, batch: pa.RecordBatch, name: str, first: int, remedy: str = "filter or fill it") -> None:
        if name in batch.schema.names and batch.column(name).null_count:
            row = first + pc.index(pc.is_null(batch.column(name)), True).as_py()
            raise UsageError(
                f"row {row} of partition {self._key.partition} has a null {name}, a message needs one: {remedy}"
            )

    # -- where a row goes --------------------------------------------------------------------------------------------

    def _destinations(self, batch: pa.RecordBatch, first: int) -> Iterator[tuple[str, int, np.ndarray]]:
        """Channel, stream id and the indexes of their rows, in the order of their first rows."""
        every = np.arange(batch.num_rows)
        by_channel = [(self._options.channel, every)]
        if "channel" in batch.schema.names:
            column = batch.column("channel")
            by_channel = [
                (self._options.channel if text is None else self._channel(text, first + int(rows[0])), rows)
                for text, rows in _groups(column, every)
            ]
        for channel, rows in by_channel:
            if "stream_id" not in batch.schema.names:
                yield channel, self._stream_id(), rows
                continue
            if self._options.stream_id is None:
                self._refuse_nulls(batch, "stream_id", first, "fill it, or give the option streamId for such rows")
            for stream_id, members in _groups(batch.column("stream_id").take(pa.array(rows)), rows):
                yield channel, self._stream_id() if stream_id is None else stream_id, members

    def _stream_id(self) -> int:
        if self._options.stream_id is None:
            raise UsageError("option streamId is missing: give the stream to publish to")
        return self._options.stream_id

    def _channel(self, text: str, row: int) -> str:
        if text not in self._channels:
            try:
                self._channels[text] = awaiting_channel(
                    text, self._options.await_subscribers, is_spied=self._options.is_spied
                )
            except UsageError as error:
                raise UsageError(f"row {row} of partition {self._key.partition}: {error}") from None
        return self._channels[text]

    # -- payload=arrow -----------------------------------------------------------------------------------------------

    def _whole(self, batch: pa.RecordBatch, first: int) -> Iterator[Messages]:
        """Each message an IPC stream of its own: schema, one batch, end; cut until it fits."""
        stream_id = self._stream_id()
        room = self._max_length(self._options.channel, stream_id)
        if self._options.key == HEADER_KEY:
            room -= KEY_LENGTH
        pieces, starts = self._cut(batch, first, room)
        rows = np.array(starts, np.int64)
        values, reserved = self._key.into(self._options.key, pa.array(pieces, pa.large_binary()), None, rows)
        yield Messages(
            channel=self._options.channel,
            stream_id=stream_id,
            values=values,
            reserved=reserved,
            rows=rows,
        )

    def _cut(self, batch: pa.RecordBatch, first: int, room: int) -> tuple[list[bytes], list[int]]:
        pieces: list[bytes] = []
        starts: list[int] = []
        waiting = [(0, batch.num_rows)]
        while waiting:
            start, count = waiting.pop()
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch.slice(start, count))
            message = sink.getvalue()
            if message.size <= room:
                pieces.append(message.to_pybytes())
                starts.append(first + start)
            elif count > 1:
                waiting += [(start + count // 2, count - count // 2), (start, count // 2)]
            else:
                raise UsageError(
                    f"row {first + start} of partition {self._key.partition} takes {message.size} bytes as an Arrow stream, "
                    f"the publication takes {room} at most: raise term-length in the channel"
                )
        return pieces, starts


def _first_refused(encoder: sbe.Encoder, batch: pa.RecordBatch) -> int:
    """Index of the first row that cannot be encoded."""
    low, high = 0, batch.num_rows
    while high - low > 1:
        middle = (low + high) // 2
        try:
            encoder.encode(batch.slice(low, middle - low))
            low = middle
        except UsageError:
            high = middle
    return low


def _groups(column: pa.Array, rows: np.ndarray) -> Iterator[tuple[Any, np.ndarray]]:
    """Distinct values and the rows that hold them, in order; a column of one value is the usual case."""
    encoded = column.dictionary_encode(null_encoding="encode")
    if len(encoded.dictionary) == 1:
        yield encoded.dictionary[0].as_py(), rows
        return
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    for code, value in enumerate(encoded.dictionary.to_pylist()):
        yield value, rows[codes == code]
