"""A server that speaks S3 with the files of an archive's folder in a bucket, and what may stand before it."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from moto.server import ThreadedMotoServer
from pyarrow import fs

from aeron_spark.archive.objects import CATALOG

KEYS = {"access_key": "of-a-test", "secret_key": "not-to-be-seen"}


@dataclass(frozen=True, slots=True)
class Store:
    """Where the server is, and the folder in it: servers of one process share their buckets."""

    endpoint: str
    bucket: str

    @property
    def prefix(self) -> str:
        """Of the folder's files."""
        return f"{self.bucket}/day"

    @property
    def _place(self) -> dict[str, str]:
        return {"endpoint_override": self.endpoint, "scheme": "http", "region": "us-east-1"}

    @property
    def uri(self) -> str:
        """For readers with the keys in their environment."""
        return f"s3://{self.prefix}?endpoint_override={self.endpoint}&scheme=http&region=us-east-1"

    @property
    def filesystem(self) -> fs.S3FileSystem:
        """Sees all buckets."""
        return fs.S3FileSystem(**KEYS, **self._place, allow_bucket_creation=True)

    def options(self, keys: Path) -> dict[str, str]:
        """Of the Spark source, without `access`; writes the file of keys."""
        keys.write_text(json.dumps(KEYS), encoding="utf-8")
        return {
            "path": f"s3://{self.prefix}",
            "storeOptions": json.dumps(self._place),
            "storeCredentialsFile": str(keys),
        }


@contextmanager
def store(folder: Path) -> Iterator[Store]:
    """The folder's files as they are now."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        made = Store(f"{host}:{port}", f"recordings-{port}")
        made.filesystem.create_dir(made.bucket)
        for file in folder.glob("*.*"):
            if file.name == CATALOG or file.suffix == ".rec":
                fs.copy_files(str(file), f"{made.prefix}/{file.name}", destination_filesystem=made.filesystem)
        yield made
    finally:
        server.stop()


class Hindrance:
    """Stands before a store, and passes requests on and answers back.

    `answer` is asked for each request, by its head: None passes it on, bytes are the answer, and with none there never is one.
    The store's answers are passed on in pieces, each `pace` seconds late, until `relay` returns False and cuts the connection.
    """

    def __init__(self, endpoint: str) -> None:
        host, _, port = endpoint.partition(":")
        self._store = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._listener]
        self._threads: list[threading.Thread] = []
        self.endpoint = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.answer: Callable[[bytes], bytes | None] = lambda _: None
        self.relay: Callable[[bytes], bool] = lambda _: True
        self.pace = 0.0
        self._is_over = threading.Event()
        self._start(self._accept)

    def _start(self, step: Callable[..., None], *given: socket.socket) -> None:
        thread = threading.Thread(target=step, args=given, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._store)
                self._sockets += [near, far]
                self._start(self._requests, near, far)
                self._start(self._answers, near, far)

    def _requests(self, near: socket.socket, far: socket.socket) -> None:
        # A request without a body comes in one piece.
        with suppress(OSError):
            while data := near.recv(65_536):
                made = self.answer(data)
                if made is None:
                    far.sendall(data)
                else:
                    near.sendall(made)
        _end(near, far)

    def _answers(self, near: socket.socket, far: socket.socket) -> None:
        with suppress(OSError):
            while (data := far.recv(16_384)) and self.relay(data):
                self._is_over.wait(self.pace)
                near.sendall(data)
        _end(near, far)

    def close(self) -> None:
        """End all connections."""
        self._is_over.set()
        _end(*self._sockets)
        for thread in self._threads:
            thread.join()
        for each in self._sockets:
            each.close()


def shortened(content: bytes, missing: int) -> Callable[[bytes], bytes | None]:
    """For `Hindrance.answer`: ranges of an object with so many bytes fewer than were asked for, in well-formed answers."""

    def answer(head: bytes) -> bytes | None:
        asked = re.search(rb"^GET .*^range: bytes=(\d+)-(\d+)", head, re.IGNORECASE | re.MULTILINE | re.DOTALL)
        if asked is None:
            return None
        first, end = int(asked[1]), int(asked[2]) + 1 - missing
        text = "HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\nContent-Range: bytes {}-{}/{}\r\n\r\n"
        return text.format(end - first, first, end - 1, len(content)).encode() + content[first:end]

    return answer


def _end(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@contextmanager
def hindered(made: Store) -> Iterator[tuple[Hindrance, Store]]:
    """A store, and what stands before it."""
    before = Hindrance(made.endpoint)
    try:
        yield before, Store(before.endpoint, made.bucket)
    finally:
        before.close()
