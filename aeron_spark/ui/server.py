"""Serves the page over HTTP with waitress: few threads, bounded connections, headers and bodies.

Waitress accepts nobody while there are enough connections, and each byte keeps one open: a stranger with a byte now and then
would lock all others out. So a further connection takes the place of the oldest that has no question waiting; the rest
of its answer may be cut.
"""

from __future__ import annotations

import logging
import secrets
import socket
import threading
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aeron_spark.closing import Closing
from aeron_spark.errors import StorageError, UsageError
from aeron_spark.extras import missing
from aeron_spark.listening import is_loopback, parse_address, url_of
from aeron_spark.ui import LISTEN
from aeron_spark.ui.app import MAX_BODY_BYTES, App
from aeron_spark.ui.guard import Guard
from aeron_spark.ui.watch import Watch

try:
    from waitress import create_server
    from waitress.channel import HTTPChannel
except ModuleNotFoundError as error:
    raise missing(error, "ui") from None

__all__ = ["UiServer", "read_token"]

_THREADS = 4
_MAX_CONNECTIONS = 64
_OWN_SOCKETS = 8  # more than the server's own, which waitress counts, and one that was just accepted
_IDLE_S = 30
_MAX_HEADER_BYTES = 16 << 10
_LEAST_TOKEN = 16
_MAX_TOKEN = 200


def read_token(file: str) -> str:
    """The token in a file. StorageError: it can't be read; UsageError: no token is in it."""
    try:
        text = Path(file).read_text("ascii", "replace")[: _MAX_TOKEN + 2].strip()
    except OSError as error:
        raise StorageError(f"cannot read {file}: {error.strerror}", code=error.errno or 0) from None
    if not (_LEAST_TOKEN <= len(text) <= _MAX_TOKEN and text.isascii() and text.isprintable() and " " not in text):
        raise UsageError(f"{file} holds no token: one line of {_LEAST_TOKEN} to {_MAX_TOKEN} letters and digits")
    return text


class _Channel(HTTPChannel):  # type: ignore[misc] # waitress has no types
    """A connection, which may take the place of the oldest. Made and closed by the thread in `UiServer.run`."""

    def __init__(self, server: Any, *arguments: Any, **named: Any) -> None:
        super().__init__(server, *arguments, **named)
        channels = server.active_channels.values()
        if len(channels) > _MAX_CONNECTIONS:
            idle = [channel for channel in channels if not channel.requests and channel is not self]
            if idle:
                min(idle, key=lambda channel: channel.creation_time).handle_close()


class UiServer(Closing):
    """The page's server, which listens once it is made. A token is made up where others than this machine reach it."""

    def __init__(self, listen: str, watch: Watch, token: str | None = None) -> None:
        host, port = parse_address(listen, LISTEN)
        if token is None and not is_loopback(host):
            token = secrets.token_urlsafe(24)
        logging.getLogger("waitress").setLevel(logging.ERROR)
        try:
            family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            bound = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            raise StorageError(f"cannot listen on {listen}: {error.strerror or error}", code=error.errno or 0) from None
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address[:2])
        except OSError as error:
            bound.close()
            raise StorageError(f"cannot listen on {listen}: {error.strerror or error}", code=error.errno or 0) from None
        self._sockets: dict[int, Any] = {}
        self._is_ended = False
        self._serving = threading.Lock()
        self._server = create_server(
            App(watch, Guard(host=host, token=token)),
            sockets=[bound],
            map=self._sockets,
            threads=_THREADS,
            connection_limit=_MAX_CONNECTIONS + _OWN_SOCKETS,
            channel_timeout=_IDLE_S,
            cleanup_interval=_IDLE_S // 3,
            max_request_header_size=_MAX_HEADER_BYTES,
            max_request_body_size=MAX_BODY_BYTES,
            clear_untrusted_proxy_headers=True,
            ident=None,
        )
        self._server.channel_class = _Channel
        self.port: int = bound.getsockname()[1]
        fragment = "" if token is None else f"#token={quote(token, safe='')}"
        self.url = url_of(host, self.port, f"/{fragment}")

    def run(self) -> None:
        """Serve until another thread calls `close`, or an exception ends it: KeyboardInterrupt, SystemExit."""
        with self._serving:
            while not self._is_ended:
                self._server.asyncore.loop(timeout=1.0, map=self._sockets, count=1)

    def close(self) -> None:
        """Stop listening, when what is being answered is; `run` returns."""
        if self._is_ended:
            return
        self._is_ended = True
        self._server.pull_trigger()
        with self._serving:
            self._server.task_dispatcher.shutdown()  # first, as its threads use what is closed next
            self._server.asyncore.close_all(self._sockets)
