"""Rows that Spark's JVM hands over in blocks: with the jar, of writes whose rows are one column of bytes (``Blocks.java``).

A block is the one value of a row of Spark's, or comes by a socket that such a block has named; then all others come by it,
up to its end. Numbers have the machine's order of bytes:

    0   int32   rows, without a null
    4   int32   bytes of their values
    8   int32   bytes of the name of a socket; 0 without one
    12  int32   1 where a row with a null follows, which ends the block; else 0
    16  int64   number of rows before this block
    24  int32s  the offset of each value, and the end of the last one
        bytes   the values, one behind the other
        bytes   the path of the socket

Behind those of a socket another comes as a row, so that rows which it has lost are noticed: it says how many are before it.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain

import pyarrow as pa

from aeron_spark import __version__
from aeron_spark.errors import InternalError, UsageError
from aeron_spark.spark.log import LOG

__all__ = ["rows_of", "without_jar"]

#: The option by which the jar says that rows come in blocks: its version.
_OPTION = "rowsInBlocks"
_HEAD = struct.Struct("=iiiiq")


def without_jar(options: Mapping[str, str]) -> tuple[dict[str, str], bool]:
    """The user's options, and whether the jar hands over the rows; UsageError for one of another version."""
    given = {name: value for name, value in options.items() if name.lower() != _OPTION.lower()}
    if len(given) == len(options):
        return given, False
    version = next(value for name, value in options.items() if name not in given)
    if version != __version__:
        raise UsageError(
            f"the jar of aeron_spark is of version {version}, and the Python package that writes of {__version__}: take the "
            f"jar that aeron_spark.spark.jvm.jar() of the Python package names"
        )
    return given, True


def rows_of(batches: Iterator[pa.RecordBatch]) -> Generator[pa.RecordBatch, None, None]:
    """The rows of the blocks, where they are: those of a batch are valid until the next one. Close it when done."""
    count = 0
    for batch in batches:
        for value in batch.column(0):
            block = _Block(value.as_buffer())
            # At once, as the JVM waits for it: to publish the rows that are here may take long.
            with _connected(block.path) as source:
                for part in chain([block], _received(source)):
                    if part.before != count:
                        raise InternalError(
                            f"{part.before} rows were sent before the next ones, and {count} have arrived"
                        )
                    rows = part.rows()
                    count += len(rows)
                    yield pa.RecordBatch.from_arrays([rows], names=["value"])


class _Block:
    def __init__(self, block: pa.Buffer) -> None:
        self._block = block
        self._count, self._length, path_length, self._ends_in_null, self.before = _HEAD.unpack_from(block)
        self._values_at = _HEAD.size + 4 * (self._count + 1)
        self.path = block.slice(self._values_at + self._length, path_length).to_pybytes()

    def rows(self) -> pa.Array:
        offsets = self._block.slice(_HEAD.size, 4 * (self._count + 1))
        values = self._block.slice(self._values_at, self._length)
        rows = pa.Array.from_buffers(pa.binary(), self._count, [None, offsets, values])
        return pa.concat_arrays([rows, pa.nulls(1, pa.binary())]) if self._ends_in_null else rows


@contextmanager
def _connected(path: bytes) -> Iterator[socket.socket | None]:
    """To the socket that a block names; None without one, and where it cannot be reached: then the JVM sends all as rows."""
    if not path:
        yield None
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as source:
        try:
            source.connect(path)
        except OSError as error:
            LOG.warning("the socket %s of Spark's JVM cannot be reached: %s", path.decode(), error)
            yield None
            return
        yield source


def _received(source: socket.socket | None) -> Iterator[_Block]:
    """The blocks that come by it, until the JVM has closed it: what it means that they end there, the next row tells."""
    if source is None:
        return
    head, buffer = bytearray(_HEAD.size), bytearray()
    while _filled(source, memoryview(head)):
        count, length, *_ = _HEAD.unpack(head)
        size = _HEAD.size + 4 * (count + 1) + length
        if len(buffer) < size:
            buffer = bytearray(size)
        buffer[: _HEAD.size] = head
        block = memoryview(buffer)[:size]
        if not _filled(source, block[_HEAD.size :]):
            return
        yield _Block(pa.py_buffer(block))


def _filled(source: socket.socket, buffer: memoryview) -> bool:
    """False where it ends before."""
    done = 0
    while done < len(buffer):
        try:
            received = source.recv_into(buffer[done:], 0, socket.MSG_WAITALL)
        except ConnectionError:
            return False
        if received == 0:
            return False
        done += received
    return True
