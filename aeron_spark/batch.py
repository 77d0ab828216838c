"""Columns that C fills, as pyarrow record batches without a copy.

Each batch owns its buffers: it stays valid after the reader, subscription or client that made it is closed, and nothing
writes to it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import pyarrow as pa

from aeron_spark._native._lib import ffi
from aeron_spark._native.check import nanoseconds
from aeron_spark.closing import Closing
from aeron_spark.errors import ClosedError, UsageError
from aeron_spark.given import reader_of
from aeron_spark.names import check_columns

# One call into C waits no longer, so that Ctrl-C and close() are never late.
_SLICE_S = 0.1
# Every column C can build. `position` is where the first frame of a message begins, `next_position` the aligned end of its
# last frame (both bytes in the stream, term padding not included); the other fields are those of the first frame.
FIELDS: dict[str, pa.Field] = {
    name: pa.field(name, kind, nullable=False)
    for name, kind in (
        ("session_id", pa.int32()),
        ("stream_id", pa.int32()),
        ("position", pa.int64()),
        ("next_position", pa.int64()),
        ("term_id", pa.int32()),
        ("term_offset", pa.int32()),
        ("flags", pa.uint8()),
        ("reserved_value", pa.int64()),
        ("value", pa.binary()),
    )
}
RECORDING_ID = pa.field("recording_id", pa.int64(), nullable=False)

DEFAULT_COLUMNS = ("session_id", "stream_id", "position", "next_position", "reserved_value", "value")
DEFAULT_ROWS = 65_536
# Takes any message: none is longer than 16 MiB.
DEFAULT_BYTES = 16 * 1024 * 1024
#: Batches below this fraction of a batch's capacity are joined.
SMALL_PART = 8


def schema_of(columns: Sequence[str], *, is_recorded: bool) -> pa.Schema:
    """Of batches of these columns. UsageError names one that there is not; only a recording has `recording_id`."""
    check_columns(columns, [*FIELDS, *([RECORDING_ID.name] if is_recorded else [])])
    return pa.schema([FIELDS.get(name, RECORDING_ID) for name in columns])


class Batches(Iterator[pa.RecordBatch], Closing):
    """Record batches of one schema, in order: an iterator, and a stream for whatever takes Arrow data.

    for batch in folder.read(3): ...
    table = folder.read(3).read_all()
    batches = folder.read(3); duckdb.sql("SELECT count(*) FROM batches"); polars.DataFrame(folder.read(4))

    Each batch is given once: read again for another pass. What is read from is freed after the last batch, by `close`, at the
    end of a `with`, and with the last reference. Errors are raised as they are by iteration and `read_all`; other libraries
    make their own of them, with the same text. Thread rule: one thread at a time.
    """

    def __init__(
        self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], close: Callable[[], object] | None = None
    ) -> None:
        self.schema = schema
        self._batches: Iterator[pa.RecordBatch] | None = batches
        # A generator frees what it holds; other iterators have somebody who does.
        self._close = close or getattr(batches, "close", None)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._batches is None:
            raise StopIteration
        try:
            return next(self._batches)
        except BaseException:  # the end, too
            self.close()
            raise

    def read_all(self) -> pa.Table:
        """All batches that are left, as a table. ClosedError after the last, or after `close`."""
        self._check_open()
        return pa.Table.from_batches(self, self.schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The batches that are left, by Arrow's PyCapsule interface. ClosedError as for `read_all`."""
        self._check_open()
        return reader_of(self.schema, self, self.close).__arrow_c_stream__(requested_schema)

    def _check_open(self) -> None:
        # Not an empty result, which would look like a recording without messages.
        if self._batches is None:
            raise ClosedError("these batches were given or closed already, and are given once: read again")

    def close(self) -> None:
        """Free what the batches are read from; again is harmless. Batches that were given stay valid."""
        self._batches = None
        close, self._close = self._close, None
        if close is not None:
            close()

    def __del__(self) -> None:
        self.close()


def with_column(batch: pa.RecordBatch, field: pa.Field, values: pa.Array) -> pa.RecordBatch:
    """A batch with one column more. `RecordBatch.append_column` came with pyarrow 16."""
    return pa.RecordBatch.from_arrays([*batch.columns, values], schema=batch.schema.append(field))


def joined(batches: Iterable[pa.RecordBatch], *, max_rows: int, max_bytes: int) -> Iterator[pa.RecordBatch]:
    """The same rows, with small neighbouring batches joined: each batch has a fixed cost for whoever takes it."""
    small: list[pa.RecordBatch] = []
    room, bytes_left = max_rows, max_bytes
    for batch in batches:
        is_small = batch.num_rows <= max_rows // SMALL_PART and batch.nbytes <= max_bytes // SMALL_PART
        if small and (not is_small or batch.num_rows > room or batch.nbytes > bytes_left):
            yield from _as_few(small)
            small, room, bytes_left = [], max_rows, max_bytes
        if is_small:
            small.append(batch)
            room, bytes_left = room - batch.num_rows, bytes_left - batch.nbytes
        else:
            yield batch
    if small:
        yield from _as_few(small)


def _as_few(batches: Sequence[pa.RecordBatch]) -> Sequence[pa.RecordBatch]:
    """The same rows in one batch; in more where a column of one would have more than 2 GiB, which Arrow does not combine."""
    return batches if len(batches) == 1 else pa.Table.from_batches(batches).combine_chunks().to_batches()


class ColumnMemory:
    """Memory of columns that nobody keeps: they are right until the next batch is made.

    It serves many readers, one after the other, so that pages are touched only once. One thread at a time.
    """

    def __init__(self, names: Iterable[str], buffers: dict[str, pa.Buffer]) -> None:
        """`buffers`: what there is already, and what is added stays there."""
        self._names = frozenset(names)
        self._buffers = buffers

    def has(self, name: str) -> bool:
        """It is for this column."""
        return name in self._names

    def take(self, member: str, size: int) -> pa.Buffer:
        """At least so many bytes."""
        found = self._buffers.get(member)
        if found is None or found.size < size:
            found = self._buffers[member] = pa.allocate_buffer(size)
        return found


#: Memory between passes: of no more threads, and none that is larger.
MAX_IDLE = 4
MAX_IDLE_BYTES = DEFAULT_BYTES + DEFAULT_BYTES // 2
_idle: list[dict[str, pa.Buffer]] = []


@contextmanager
def column_memory(names: Iterable[str]) -> Iterator[ColumnMemory]:
    """Memory for columns of these names, and others' afterwards: the kernel clears fresh pages, which takes as long as a copy.

    A process keeps it from one pass to the next.
    """
    try:
        buffers = _idle.pop()
    except IndexError:
        buffers = {}
    try:
        yield ColumnMemory(names, buffers)
    finally:
        if len(_idle) < MAX_IDLE and sum(one.size for one in buffers.values()) <= MAX_IDLE_BYTES:
            _idle.append(buffers)


class ColumnBuffers:
    """Makes record batches of the chosen columns, in their order.

    With `recording_id`, the column of that name is the constant. With `memory`, its columns are in it. One thread at a time.
    """

    def __init__(
        self,
        columns: Sequence[str] = DEFAULT_COLUMNS,
        *,
        row_capacity: int = DEFAULT_ROWS,
        byte_capacity: int = DEFAULT_BYTES,
        recording_id: int | None = None,
        memory: ColumnMemory | None = None,
    ) -> None:
        self.schema = schema_of(columns, is_recorded=recording_id is not None)
        if not 0 < row_capacity < 2**31 or not 0 < byte_capacity < 2**31:
            raise UsageError(f"capacities of {row_capacity} rows and {byte_capacity} bytes must be in 1..2147483647")
        self._row_capacity = row_capacity
        self._byte_capacity = byte_capacity
        self._recording_id = recording_id
        self._constant = pa.array([], pa.int64())
        self._columns = ffi.new("as_columns *")
        self._columns.row_capacity = row_capacity
        self._columns.byte_capacity = byte_capacity if "value" in columns else 0
        self._buffers: dict[str, Any] = {}
        self._memory = memory

    @property
    def waiting(self) -> int:
        """Rows that a call took before an exception (Ctrl-C, a listener's) came; the next `fill` gives them."""
        return int(self._columns.row_count)

    def fill(self, call: Callable[[Any], object]) -> pa.RecordBatch | None:
        """Let `call` fill an `as_columns *` and return the rows; None when there were none."""
        columns = self._columns
        if columns.row_count == 0:
            self._allocate()
            columns.byte_count = 0
            call(columns)
        rows = columns.row_count
        if rows == 0:
            return None
        batch = pa.RecordBatch.from_arrays([self._array(field, rows) for field in self.schema], schema=self.schema)
        # Nothing is called from here to the caller's caller, so no signal's handler raises: the rows are given once.
        self._buffers = {}
        columns.row_count = 0
        return batch

    def _allocate(self) -> None:
        """Buffers for the next batch, all or none; those of a batch without rows serve again."""
        if self._buffers:
            return
        buffers: dict[str, Any] = {}
        for field in self.schema:
            if field.name == "value":
                buffers["value_offset"] = self._buffer(field.name, "value_offset", (self._row_capacity + 1) * 4)
                buffers["value"] = self._buffer(field.name, "value", self._byte_capacity)
            elif field.name != RECORDING_ID.name:
                size = self._row_capacity * field.type.bit_width // 8
                buffers[field.name] = self._buffer(field.name, field.name, size)
        for member, buffer in buffers.items():
            setattr(self._columns, member, ffi.cast(ffi.typeof(getattr(self._columns, member)), buffer.address))
        self._buffers = buffers

    def _buffer(self, column: str, member: str, size: int) -> pa.Buffer:
        if self._memory is not None and self._memory.has(column):
            return self._memory.take(member, size)
        return pa.allocate_buffer(size, resizable=True)

    def _array(self, field: pa.Field, rows: int) -> pa.Array:
        if field.name == RECORDING_ID.name and self._recording_id is not None:
            if len(self._constant) < rows:  # batches hold far fewer rows than they could
                self._constant = pa.array(np.full(rows, self._recording_id, np.int64))
            return self._constant.slice(0, rows)
        if field.name == "value":
            offsets = self._trimmed("value_offset", (rows + 1) * 4)
            return pa.Array.from_buffers(
                field.type, rows, [None, offsets, self._trimmed("value", self._columns.byte_count)]
            )
        size = rows * field.type.bit_width // 8
        return pa.Array.from_buffers(field.type, rows, [None, self._trimmed(field.name, size)])

    def _trimmed(self, member: str, size: int) -> pa.Buffer:
        """Buffer without its unused end where that is most of it: a batch of few rows must not hold megabytes."""
        buffer = self._buffers[member]
        if size < buffer.size // 2 and isinstance(buffer, pa.ResizableBuffer):
            buffer.resize(size, shrink_to_fit=True)
        return buffer


class BatchFiller:
    """Record batches from a C function that fills columns, each with memory of its own; the columns are kept between calls."""

    def __init__(self) -> None:
        self._buffers: ColumnBuffers | None = None
        self._key: tuple[Any, ...] = ()

    def check_given(self) -> None:
        """UsageError while rows of an interrupted poll wait: others would come before them."""
        if self._buffers is not None and self._buffers.waiting:
            columns, row_capacity, byte_capacity = self._key
            raise UsageError(
                f"an exception kept {self._buffers.waiting} rows of a poll_batch back: first get them, by poll_batch with the "
                f"same columns={list(columns)}, row_capacity={row_capacity}, byte_capacity={byte_capacity}"
            )

    def poll(
        self,
        call: Callable[[Any, int], object],
        timeout: float,
        *,
        columns: Sequence[str],
        row_capacity: int,
        byte_capacity: int,
    ) -> pa.RecordBatch:
        """What `call` fills within `timeout` seconds; a batch without rows if it fills nothing.

        `call` gets an `as_columns *` and how many ns to wait at most, and raises what goes wrong. Rows that it took before
        come first.
        """
        key = (tuple(columns), row_capacity, byte_capacity)
        if self._buffers is None or key != self._key:
            self.check_given()
            made = ColumnBuffers(columns, row_capacity=row_capacity, byte_capacity=byte_capacity)
            self._buffers, self._key = made, key
        deadline = time.monotonic() + timeout
        while True:
            wait = nanoseconds(max(0.0, min(_SLICE_S, deadline - time.monotonic())))
            batch = self._buffers.fill(lambda raw: call(raw, wait))  # noqa: B023
            if batch is not None:
                return batch
            if time.monotonic() >= deadline:
                return _empty(self._buffers.schema)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
