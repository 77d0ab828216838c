"""Serves metrics over HTTP: /metrics and an index, nothing else, to few clients at a time.

Where there are enough, a further one takes the place of the oldest that has not asked yet, or does not read, however often that
sends a byte: a stranger who holds all connections shuts nobody out.

On a loopback address it answers only requests that name a loopback host, so that no page in a browser reads them by a name of
its own (DNS rebinding).
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import aeron_spark
from aeron_spark.errors import StorageError
from aeron_spark.listening import host_of, is_loopback, parse_address, url_of
from aeron_spark.metrics.exposition import Exposition
from aeron_spark.metrics.samples import Samples

_INDEX = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>aeron-spark metrics</title>
<p><a href="/metrics">/metrics</a>, for Prometheus</p></html>
"""
_TIMEOUT_S = 10.0
_MAX_CLIENTS = 16
_END_S = 1.0
_EXAMPLE = "127.0.0.1:9464"


class MetricsServer(ThreadingHTTPServer):
    """Serves what `scrape` returns. `serve_forever` blocks; `shutdown` from another thread ends it, `server_close` closes."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64  # with the 5 of the base class a burst of connections has others wait for seconds

    def __init__(self, listen: str, scrape: Callable[[], Samples]) -> None:
        host, port = parse_address(listen, _EXAMPLE)
        self._scrape, self._exposition = scrape, Exposition()
        self._one_at_a_time = threading.Lock()
        self._clients = threading.BoundedSemaphore(_MAX_CLIENTS)
        self._lock = threading.Lock()
        self._waiting: dict[socket.socket, None] = {}  # for their clients, oldest first
        try:
            family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            self.address_family = family
            super().__init__(address[:2], _Handler)  # type: ignore[arg-type]
        except OSError as error:
            raise StorageError(f"cannot listen on {listen}: {error.strerror or error}", code=error.errno or 0) from None
        self.only_loopback = is_loopback(str(self.server_address[0]))

    @property
    def url(self) -> str:
        """Where Prometheus finds it."""
        host, port = self.server_address[:2]
        return url_of(str(host), int(port), "/metrics")

    def metrics(self, accept: str) -> tuple[bytes, str]:
        """One scrape: its text and content type."""
        with self._one_at_a_time:
            return self._exposition.text(self._scrape(), accept)

    @contextmanager
    def working(self, request: socket.socket) -> Iterator[bool]:
        """While it works for a connection, no other takes its place. False: one has."""
        with self._lock:
            is_kept = request in self._waiting
            self._waiting.pop(request, None)
        yield is_kept
        if is_kept:
            with self._lock:
                self._waiting[request] = None

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for it, if there are not too many at work."""
        if not self._clients.acquire(blocking=False) and not (
            self._end_oldest() and self._clients.acquire(timeout=_END_S)
        ):
            self.shutdown_request(request)
            return
        with self._lock:
            self._waiting[request] = None
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._clients.release()
            raise

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, which then no other ends: its number may be another's."""
        with self._lock:
            self._waiting.pop(request, None)
        super().shutdown_request(request)

    def _end_oldest(self) -> bool:
        with self._lock:
            oldest = next(iter(self._waiting), None)
            if oldest is None:
                return False
            del self._waiting[oldest]
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)  # its thread wakes up, and closes it
            return True

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, in a thread of the request's own."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._clients.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left, or was too slow: its own matter."""

    def server_bind(self) -> None:
        """Bind, without the look-up of the machine's name that the base class makes."""
        socket.socket.bind(self.socket, self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    server: MetricsServer
    protocol_version = "HTTP/1.1"
    timeout = _TIMEOUT_S
    # Headers and body are two packets: without, the second waits 40 ms for the delayed acknowledgement of the first.
    disable_nagle_algorithm = True
    server_version = f"aeron-spark/{aeron_spark.__version__}"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer /metrics and the index."""
        path = self.path.partition("?")[0]
        if self.server.only_loopback and not is_loopback(host_of(self.headers.get("Host", ""))):
            self._answer(HTTPStatus.FORBIDDEN, b"this address answers to the names of this machine only\n")
        elif path == "/metrics":
            self._metrics()
        elif path == "/":
            self._answer(HTTPStatus.OK, _INDEX, "text/html; charset=utf-8")
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"there is only /metrics\n")

    def _metrics(self) -> None:
        with self.server.working(self.connection) as is_kept:
            if not is_kept:  # the end cut its request, which only looks whole
                self.close_connection = True
                return
            text, kind = self.server.metrics(self.headers.get("Accept", ""))
        self._answer(HTTPStatus.OK, text, kind)

    def do_HEAD(self) -> None:
        """The same without a body."""
        self.do_GET()

    def _answer(self, status: HTTPStatus, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Requests are not printed."""
