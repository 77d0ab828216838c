"""A client of a media driver, ours or a stock one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from aeron_spark._native import callback  # noqa: F401 - defines the Python ends of C callbacks
from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.callback import Callbacks
from aeron_spark._native.check import c_path, c_string, check, error, nanoseconds, string
from aeron_spark._native.handle import Handle
from aeron_spark.channel import ChannelUri
from aeron_spark.config import default_aeron_dir
from aeron_spark.counters import Counter
from aeron_spark.errors import AeronError
from aeron_spark.publication import ExclusivePublication, Publication
from aeron_spark.subscription import Subscription, image_info
from aeron_spark.types import ImageInfo, RegistrationId, SessionId, StreamId

OnError = Callable[[AeronError], object]
OnImage = Callable[[ImageInfo], object]
# Registration id, session id, stream id, code, text.
OnPublicationError = Callable[[RegistrationId, SessionId, StreamId, int, str], object]


class Client(Handle):
    """Connection to the driver of a directory, with a conductor thread of its own.

    `aeron_dir`: default is `AERON_DIR`, else `/dev/shm/aeron-<user>`. `timeout` (seconds, 10) bounds connecting, each answer
    of the driver, and the age of its heartbeat, which may be 2 s in any case; mappings of what was closed go after
    `resource_linger` (seconds, 3). What is not given comes from the stock client's variables where they are set
    (`AERON_DRIVER_TIMEOUT` in ms, `AERON_CLIENT_NAME`, ...).

    Handlers run on the conductor's thread, which waits for them: in one, `is_closed` can be asked, and any other call of the
    client, or of what was made from it, also `close`, raises UsageError. `on_error` gets what fails outside of any call, by
    default it is printed to stderr; after a fatal one (driver gone) `is_closed` is True, also of what was made from the
    client, whose calls raise ClosedError (`offer` gives `Outcome.CLOSED`, `is_connected` is False, an image keeps its
    `position`). All of it is still to be closed, behind the handler.

    WaitTimeoutError: no live driver there; DataLossError: another version of the directory's files.
    Thread rule: any thread.
    """

    def __init__(
        self,
        aeron_dir: str | os.PathLike[str] | None = None,
        *,
        name: str | None = None,
        timeout: float | None = None,
        keepalive_interval: float = 0.5,
        resource_linger: float | None = None,
        on_error: OnError | None = None,
        on_available_image: OnImage | None = None,
        on_unavailable_image: OnImage | None = None,
        on_publication_error: OnPublicationError | None = None,
    ) -> None:
        self.aeron_dir = Path(aeron_dir) if aeron_dir is not None else default_aeron_dir()
        report = on_error or _print_error
        self._callbacks = Callbacks(
            on_error=lambda result, code, text: report(error(result, text=string(text), code=code)),
            on_available_image=on_available_image and (lambda image: on_available_image(image_info(image))),
            on_unavailable_image=on_unavailable_image and (lambda image: on_unavailable_image(image_info(image))),
            on_publication_error=on_publication_error
            and (
                lambda registration, session, stream, code, text: on_publication_error(
                    registration, session, stream, code, string(text)
                )
            ),
        )
        options = ffi.new("as_client_options *")
        lib.as_client_options_init(options)
        check(lib.as_client_options_load_environment(options))
        directory, client_name = c_path(self.aeron_dir), c_string(name or "")
        options.aeron_dir = directory
        if name is not None:
            options.client_name = client_name if name else ffi.NULL
        if timeout is not None:
            options.driver_timeout_ns = nanoseconds(timeout)
        options.keepalive_interval_ns = nanoseconds(keepalive_interval)
        if resource_linger is not None:
            options.resource_linger_ns = nanoseconds(resource_linger)
        options.on_error = lib.asp_on_error
        options.context = self._callbacks.context
        if on_available_image:
            options.on_available_image = lib.asp_on_available_image
        if on_unavailable_image:
            options.on_unavailable_image = lib.asp_on_unavailable_image
        if on_publication_error:
            options.on_publication_error = lib.asp_on_publication_error
        out = ffi.new("as_client **")
        check(lib.as_client_open(options, out))
        super().__init__(out[0], lib.as_client_close, callbacks=self._callbacks, is_gone=lib.as_client_is_closed)

    @property
    def client_id(self) -> int:
        """Id of this client at its driver."""
        with self._use() as client:
            return int(lib.as_client_id(client))

    def add_publication(self, channel: str | ChannelUri, stream_id: int) -> Publication:
        """Publication that several threads may use, shared with equal ones of this client.

        Blocks for the driver's answer: WaitTimeoutError, or PeerError with the driver's text.
        """
        out = ffi.new("as_publication **")
        with self._use() as client:
            check(lib.as_client_add_publication(client, c_string(str(channel)), stream_id, out))
            return Publication(self, out[0])

    def add_exclusive_publication(self, channel: str | ChannelUri, stream_id: int) -> ExclusivePublication:
        """Publication with a session of its own, for one thread; faster. Blocks like `add_publication`."""
        out = ffi.new("as_publication **")
        with self._use() as client:
            check(lib.as_client_add_exclusive_publication(client, c_string(str(channel)), stream_id, out))
            return ExclusivePublication(self, out[0])

    def add_subscription(self, channel: str | ChannelUri, stream_id: int) -> Subscription:
        """Subscription to every publisher of a channel and stream. Blocks like `add_publication`."""
        out = ffi.new("as_subscription **")
        with self._use() as client:
            check(lib.as_client_add_subscription(client, c_string(str(channel)), stream_id, out))
            return Subscription(self, out[0])

    def add_counter(self, type_id: int, label: str, *, key: bytes = b"") -> Counter:
        """Counter in the driver's directory: `key` at most 112 bytes, `label` at most 380."""
        out = ffi.new("as_counter **")
        with self._use() as client:
            check(lib.as_client_add_counter(client, type_id, key, len(key), c_string(label), out))
            return Counter(self, out[0])

    def next_session_id(self, stream_id: int) -> SessionId:
        """Session id that no publication of the driver has on that stream."""
        out = ffi.new("int32_t *")
        with self._use() as client:
            check(lib.as_client_next_session_id(client, stream_id, out))
        return SessionId(out[0])


def _print_error(failure: AeronError) -> None:
    print(f"aeron_spark client: {failure}", file=sys.stderr)  # noqa: T201 - nobody else would report it
