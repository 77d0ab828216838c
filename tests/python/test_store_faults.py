"""A store that answers slowly, wrongly or not at all: all rows or a clear error, never fewer or other rows.

Method: something stands between reader and store, and holds up, changes or cuts what passes. Times that pyarrow waits are
short, as `storeOptions` may set them.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs

from aeron_spark import DataLossError, Folder, StorageError
from aeron_spark.archive import objects
from aeron_spark.archive.objects import ObjectFolder
from aeron_spark.tables import scan
from aeron_spark.testing import RecordedFolder, Servers
from tests.kit import s3

#: Pyarrow asks three times.
IMPATIENT = {"request_timeout": 0.5, "connect_timeout": 0.5}
COUNT = 20_000


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with Servers(settings={"aeron.archive.segment.file.length": "1m"}) as servers:
        recorded = RecordedFolder(servers)
        recorded.write([b"message %d" % number for number in range(COUNT)], channel="aeron:ipc?term-length=256k")
        yield recorded.path


@pytest.fixture(scope="module")
def behind(folder: Path) -> Iterator[s3.Store]:
    with s3.store(folder) as made:
        yield made


@pytest.fixture
def before(behind: s3.Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[s3.Hindrance, ObjectFolder]]:
    monkeypatch.setattr(objects, "WINDOW_BYTES", 256 << 10)
    with s3.hindered(behind) as (hindrance, made):
        place = {"endpoint_override": made.endpoint, "scheme": "http", "region": "us-east-1"}
        yield hindrance, ObjectFolder(fs.S3FileSystem(**s3.KEYS, **place, **IMPATIENT), made.prefix)


def table(source: Folder | ObjectFolder) -> pa.Table:
    return source.read(0).read_all()


def failed(status: str) -> bytes:
    body = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Please reduce your rate</Message></Error>"
    return b"HTTP/1.1 %b\r\nContent-Type: application/xml\r\nContent-Length: %d\r\n\r\n%b" % (
        status.encode(),
        len(body),
        body,
    )


def test_slow_answers_give_all_rows(folder: Path, before: tuple[s3.Hindrance, ObjectFolder]) -> None:
    hindrance, far = before

    hindrance.pace = 0.005
    with Folder(folder) as near:
        assert table(far).equals(table(near))
    # What is asked for ahead ends with the pass, too.
    with scan(far, 0).batches() as batches:
        assert next(batches).num_rows > 0


@pytest.mark.parametrize("method", [b"HEAD", b"GET"])
def test_no_answer_is_an_error_and_the_next_read_goes_on(
    folder: Path, before: tuple[s3.Hindrance, ObjectFolder], method: bytes
) -> None:
    hindrance, far = before
    asks = {b"HEAD": [far.refresh], b"GET": [lambda: table(far), lambda: far.begins_message(0, 320)]}
    for ask in asks[method]:
        hindrance.answer = lambda head: b"" if head.startswith(method) else None
        with pytest.raises(StorageError, match=r"object store, .*/day/\S+: .*[Tt]imeout.*; see that it answers"):
            ask()
        hindrance.answer = lambda _: None
        with Folder(folder) as near:
            assert table(far).equals(table(near))


def test_an_overloaded_store_is_asked_again(folder: Path, before: tuple[s3.Hindrance, ObjectFolder]) -> None:
    hindrance, far = before
    refused = iter([True] * 2)

    hindrance.answer = lambda _: failed("503 Slow Down") if next(refused, False) else None
    with Folder(folder) as near:
        assert table(far).equals(table(near))
    hindrance.answer = lambda head: failed("503 Slow Down") if head.startswith(b"GET") else None
    with pytest.raises(StorageError, match=r"object store, .*/day/0-0\.rec: .*GetObject.*; see that it answers"):
        table(far)


def test_answers_that_are_cut(folder: Path, before: tuple[s3.Hindrance, ObjectFolder]) -> None:
    hindrance, far = before
    cuts = iter([False, True] * 2)
    hindrance.relay = lambda data: len(data) < 4096 or not next(cuts, False)
    with Folder(folder) as near:
        assert table(far).equals(table(near))
    hindrance.relay = lambda data: len(data) < 4096
    with pytest.raises(StorageError, match="object store, "):
        table(far)


@pytest.mark.parametrize("filler", [b"<html>sign in</html>", b"\0", b"\xff"])
def test_answers_of_other_bytes(before: tuple[s3.Hindrance, ObjectFolder], filler: bytes) -> None:
    """As a proxy's page, or zeros: the length is right."""
    hindrance, far = before

    def other(head: bytes) -> bytes | None:
        if not head.startswith(b"GET") or b"range: bytes=" not in head.lower():
            return None
        first, _, last = head.lower().partition(b"range: bytes=")[2].partition(b"\r\n")[0].partition(b"-")
        length = int(last) - int(first) + 1
        body = (filler * (length // len(filler) + 1))[:length]
        return b"HTTP/1.1 206 Partial Content\r\nContent-Length: %d\r\nContent-Range: bytes %b-%b/1048576\r\n\r\n%b" % (
            length,
            first,
            last,
            body,
        )

    hindrance.answer = other
    with pytest.raises(DataLossError, match=r"0-0\.rec|position"):
        table(far)
    with pytest.raises(DataLossError, match=r"archive\.catalog"):
        far.refresh()


@pytest.mark.parametrize("is_whole", [False, True])
def test_answers_of_more_bytes(folder: Path, before: tuple[s3.Hindrance, ObjectFolder], *, is_whole: bool) -> None:
    """As of a store that takes no ranges: 200, and all of the object."""
    hindrance, far = before

    def other(head: bytes) -> bytes | None:
        if not head.startswith(b"GET") or b"range: bytes=" not in head.lower():
            return None
        first, _, last = head.lower().partition(b"range: bytes=")[2].partition(b"\r\n")[0].partition(b"-")
        body = (folder / head.decode().partition("?")[0].partition(" HTTP")[0].rpartition("/")[2]).read_bytes()
        if is_whole:
            return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        body = body[int(first) : int(last) + 1] + b"\0"
        head = b"HTTP/1.1 206 Partial Content\r\nContent-Length: %d\r\nContent-Range: bytes %b-%b/1048576\r\n\r\n%b"
        return head % (len(body), first, last, body)

    hindrance.answer = other
    with pytest.raises(StorageError, match=r"object store, .*0-0\.rec"):
        table(far)


@pytest.mark.parametrize("missing", [1, 8, 31])
def test_answers_of_fewer_bytes(folder: Path, before: tuple[s3.Hindrance, ObjectFolder], missing: int) -> None:
    """Well-formed ones, as of a proxy that cuts them: pyarrow counts the bytes that it asked for."""
    hindrance, far = before
    whole = table(far)
    for name, ask in (("0-0.rec", lambda: table(far)), (objects.CATALOG, far.refresh)):
        hindrance.answer = s3.shortened((folder / name).read_bytes(), missing)
        with pytest.raises(
            StorageError,
            match=rf"object store, .*/{name}: fewer bytes were answered than the \d+ at offset \d+: read without",
        ):
            ask()
    hindrance.answer = lambda _: None
    assert table(far).equals(whole)


def test_a_disk_without_room_for_a_window_is_told_as_such(behind: s3.Store) -> None:
    far = ObjectFolder(behind.filesystem, behind.prefix)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(StorageError, match=r"temporary file in .*: .*make some, or name another folder by TMPDIR"):
            table(far)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
