"""Blocks of rows as a task in Python gets them: by value, by a socket, and by one that fails. A thread is the JVM here."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from aeron_spark import __version__
from aeron_spark.errors import InternalError, UsageError
from aeron_spark.spark.writing.blocks import rows_of
from aeron_spark.spark.writing.options import WriteOptions

Values = Sequence[bytes | None]


def block(values: Values, before: int, path: bytes = b"") -> bytes:
    """As Blocks.java makes it; a null ends it."""
    given = [value for value in values if value is not None]
    offsets = [sum(map(len, given[:index])) for index in range(len(given) + 1)]
    head = struct.pack("=iiiiq", len(given), offsets[-1], len(path), len(given) < len(values), before)
    return head + struct.pack(f"={len(offsets)}i", *offsets) + b"".join(given) + path


def rows(*blocks: bytes, type: pa.DataType | None = None) -> Iterator[pa.RecordBatch]:  # noqa: A002 - pyarrow's name
    for one in blocks:
        yield pa.record_batch({"value": pa.array([one], type or pa.binary())})


def values_of(batches: Iterator[pa.RecordBatch]) -> list[bytes | None]:
    return [value for batch in rows_of(batches) for value in batch.column("value").to_pylist()]


class Jvm:
    """Listens as the JVM does, and sends these bytes to the one who comes."""

    def __init__(self, folder: Path, sent: bytes) -> None:
        self._server = socket.socket(socket.AF_UNIX)
        self.path = bytes(folder / "rows")
        self._server.bind(self.path)
        self._server.listen(1)
        self._sent = sent
        self.failure: OSError | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        worker, _ = self._server.accept()
        with self._server, worker:
            try:
                worker.sendall(self._sent)
            except OSError as failure:
                self.failure = failure

    def join(self) -> None:
        self._thread.join(20)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
def test_blocks_by_value(kind: pa.DataType) -> None:
    given = rows(block([b"a", b"", b"bcd"], 0), block([], 3), block([b"x" * 70000], 3), type=kind)
    assert values_of(given) == [b"a", b"", b"bcd", b"x" * 70000]


def test_a_null_comes_behind_the_rows_before_it() -> None:
    assert values_of(rows(block([b"a", None], 0), block([b"b"], 2))) == [b"a", None, b"b"]


def test_blocks_by_a_socket_lie_between_its_row_and_the_next(tmp_path: Path) -> None:
    jvm = Jvm(tmp_path, block([b"b" * 5], 1) + block([b"c" * 300000, b""], 2) + block([b"d"], 4))
    assert values_of(rows(block([b"a"], 0, jvm.path), block([], 5))) == [b"a", b"b" * 5, b"c" * 300000, b"", b"d"]
    jvm.join()


def test_a_socket_that_is_gone_leaves_all_to_rows(tmp_path: Path) -> None:
    given = rows(block([b"a"], 0, bytes(tmp_path / "rows")), block([b"b"], 1))
    assert values_of(given) == [b"a", b"b"]


def test_a_socket_whose_jvm_did_not_wait_leaves_all_to_rows(tmp_path: Path) -> None:
    jvm = Jvm(tmp_path, b"")
    assert values_of(rows(block([b"a"], 0, jvm.path), block([b"b"], 1))) == [b"a", b"b"]
    jvm.join()


@pytest.mark.parametrize("cut", [1, 24, 30])
def test_rows_that_are_lost_are_noticed(tmp_path: Path, cut: int) -> None:
    """The socket ends within or behind a block, and the next row says that more were sent."""
    whole = block([b"b" * 5], 1)
    jvm = Jvm(tmp_path, whole + block([b"c"], 2)[:cut])
    with pytest.raises(InternalError, match="3 rows were sent before the next ones, and 2 have arrived"):
        values_of(rows(block([b"a"], 0, jvm.path), block([], 3)))
    jvm.join()


def test_who_stops_frees_the_one_who_sends(tmp_path: Path) -> None:
    """Spark's JVM reads why a task has failed only when it no longer waits to send."""
    jvm = Jvm(tmp_path, b"".join(block([b"b" * 100000], 1 + index) for index in range(100)))
    with closing(rows_of(rows(block([b"a"], 0, jvm.path)))) as batches:
        next(batches)
        next(batches)
    jvm.join()
    assert isinstance(jvm.failure, ConnectionError)


def test_a_jar_of_another_version_is_refused() -> None:
    assert WriteOptions.parse({"streamId": "1", "rowsinblocks": __version__}).in_blocks
    with pytest.raises(
        UsageError, match=r"the jar of aeron_spark is of version 0\.0\.7, and the Python package .*jar\(\)"
    ):
        WriteOptions.parse({"streamId": "1", "rowsInBlocks": "0.0.7"})


def test_the_engine_in_the_jvm_needs_the_jar() -> None:
    assert not WriteOptions.parse({"streamId": "1", "engine": "auto"}).in_blocks
    with pytest.raises(UsageError, match=r"engine=jvm: Spark's JVM was started without the jar .*leave engine out"):
        WriteOptions.parse({"streamId": "1", "engine": "jvm"})
