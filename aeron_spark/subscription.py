"""Receiving: message by message for convenience, or whole record batches with the GIL released."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.callback import Callbacks
from aeron_spark._native.check import c_string, check, error, string
from aeron_spark._native.handle import Handle
from aeron_spark.batch import DEFAULT_BYTES, DEFAULT_COLUMNS, DEFAULT_ROWS, BatchFiller
from aeron_spark.channel import ChannelUri
from aeron_spark.errors import UsageError
from aeron_spark.types import Action, CounterId, Header, ImageInfo, Position, SessionId, StreamId

# Gets each whole message and its header; may return an Action.
MessageHandler = Callable[[bytes, Header], Action | None]

# A C function as an argument: older cffi take no other form.
_ON_FRAGMENT = ffi.addressof(lib, "as_controlled_assembler_on_fragment")
# What as_image_end_of_stream_position gives while the end is unknown.
_UNKNOWN_END = 2**63 - 1
# An IPv6 address with brackets, scope and port, and its terminator.
_ENDPOINT_CAPACITY = 128


class Source(Handle):
    """What a subscription and an image have in common: polls that end in messages or in columns."""

    def __init__(
        self,
        pointer: Any,
        release: Callable[[Any], object],
        parent: Handle,
        *,
        is_gone: Callable[[Any], bool] | None = None,
        poll: Any,
        poll_columns: Any,
    ) -> None:
        super().__init__(pointer, release, parent, is_gone=is_gone)
        self._poll = poll
        self._poll_columns = poll_columns
        self._assembler: Any = None
        self._callbacks: Callbacks | None = None
        self._handler: MessageHandler | None = None
        self._batches = BatchFiller()
        self._check: Callable[[int], object] = check

    def poll(self, handler: MessageHandler, limit: int = 256) -> int:
        """Hand up to `limit` fragments, joined to whole messages, to `handler`; returns how many fragments came.

        For convenience and small rates: each message costs a Python call; `poll_batch` is the fast way. What the
        handler raises is raised here, and the message comes again at the next poll. One polling thread.
        """
        self._batches.check_given()
        with self._use() as source:
            if self._callbacks is None:
                self._callbacks = Callbacks(on_message=self._on_message)
                out = ffi.new("as_controlled_assembler **")
                check(lib.as_controlled_assembler_open(lib.asp_on_message, self._callbacks.context, out))
                self._assembler = ffi.gc(out[0], lib.as_controlled_assembler_close)
            outer, self._handler = self._handler, handler
            try:
                count = self._poll(source, _ON_FRAGMENT, self._assembler, limit)
            finally:
                self._handler = outer
            self._callbacks.reraise()
            if count < 0:
                raise error(count)
            if count == 0:
                self._refuse_gone(source)
            return int(count)

    def poll_batch(
        self,
        timeout: float = 0.0,
        *,
        columns: Sequence[str] = DEFAULT_COLUMNS,
        row_capacity: int = DEFAULT_ROWS,
        byte_capacity: int = DEFAULT_BYTES,
    ) -> pa.RecordBatch:
        """Whole messages that are there, as one record batch of the chosen columns (see `batch.FIELDS`), GIL released.

        Waits up to `timeout` seconds for a first message, and gives a batch without rows if none came. At most
        `row_capacity` rows and `byte_capacity` bytes of messages; UsageError if the next message alone is longer.
        The batch owns its memory. One polling thread; `poll` and `poll_batch` may take turns only between messages.

        Rows that a call had taken when it was interrupted (Ctrl-C, a listener that raised) come first at the next call, which
        must have the same arguments; positions that an image or a subscription tells lie behind them.
        """

        def call(raw: Any, wait_ns: int) -> None:
            with self._use() as source:
                result = self._poll_columns(source, raw, wait_ns)
                if result == lib.AS_E_CLOSED:
                    self._refuse_gone(source)
                self._check(result)

        return self._batches.poll(
            call, timeout, columns=columns, row_capacity=row_capacity, byte_capacity=byte_capacity
        )

    def _on_message(self, data: Any, length: int, raw: Any) -> Action | None:
        header = Header(
            position=Position(raw.position),
            reserved_value=raw.reserved_value,
            session_id=SessionId(raw.session_id),
            stream_id=StreamId(raw.stream_id),
            term_id=raw.term_id,
            term_offset=raw.term_offset,
            flags=raw.flags,
        )
        handler = self._handler
        action = handler(bytes(ffi.buffer(data, length)), header) if handler is not None else Action.ABORT
        if action is None or isinstance(action, Action):
            return action
        raise UsageError(f"a message handler returned {action!r} instead of None or an Action: let it return nothing")


class Subscription(Source):
    """Every publisher of a channel and stream; made by `Client.add_subscription`. One polling thread."""

    def __init__(self, client: Handle, pointer: Any) -> None:
        super().__init__(
            pointer,
            lib.as_subscription_close,
            client,
            is_gone=lib.as_subscription_is_closed,
            poll=lib.as_subscription_controlled_poll,
            poll_columns=lib.as_subscription_poll_columns,
        )
        raw = ffi.new("as_subscription_constants *")
        lib.as_subscription_get_constants(pointer, raw)
        self.channel = string(raw.channel)
        self.stream_id = StreamId(raw.stream_id)
        self.registration_id: int = raw.registration_id

    @property
    def is_connected(self) -> bool:
        """True when a publisher is there."""
        with self._use() as subscription:
            return bool(lib.as_subscription_is_connected(subscription))

    @property
    def resolved_endpoint(self) -> str:
        """Address and port it listens on, also where the channel's port is 0; "" over IPC."""
        text = ffi.new("char[]", _ENDPOINT_CAPACITY)
        with self._use() as subscription:
            check(lib.as_subscription_resolved_endpoint(subscription, text, _ENDPOINT_CAPACITY))
        return string(text)

    def images(self) -> list[Image]:
        """Streams of the publishers that are there now; close each when done."""
        found = []
        with self._use() as subscription:
            self._refuse_gone(subscription)
            index = 0
            while pointer := lib.as_subscription_image_at(subscription, index):
                found.append(Image(self, pointer))
                index += 1
        return found

    def image(self, session_id: int) -> Image | None:
        """Stream of one publisher, None if it is not there."""
        with self._use() as subscription:
            self._refuse_gone(subscription)
            pointer = lib.as_subscription_image_by_session(subscription, session_id)
            return Image(self, pointer) if pointer else None

    def _first_image(self) -> Image | None:
        with self._use() as subscription:
            self._refuse_gone(subscription)
            pointer = lib.as_subscription_image_at(subscription, 0)
            return Image(self, pointer) if pointer else None

    def wait_image(self, timeout: float, session_id: int | None = None) -> Image:
        """Block until a publisher (of that session) is there; WaitTimeoutError after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while True:
            image = self.image(session_id) if session_id is not None else self._first_image()
            if image is not None:
                return image
            if time.monotonic() >= deadline:
                which = "publisher" if session_id is None else f"publisher of session {session_id}"
                raise error(lib.AS_E_TIMEOUT, text=f"{self!r}: no {which} within {timeout} s", code=0)
            time.sleep(0.001)

    def add_destination(self, channel: str | ChannelUri) -> None:
        """Add a receive destination of a multi-destination subscription; blocks for the driver's answer."""
        with self._use() as subscription:
            check(lib.as_subscription_add_destination(subscription, c_string(str(channel))))

    def remove_destination(self, channel: str | ChannelUri) -> None:
        """Remove a receive destination; blocks for the driver's answer."""
        with self._use() as subscription:
            check(lib.as_subscription_remove_destination(subscription, c_string(str(channel))))

    def __repr__(self) -> str:
        return f"<Subscription {self.channel!r} stream {self.stream_id}>"


class Image(Source):
    """One publisher's stream at a subscription. One polling thread, the subscription's."""

    def __init__(self, subscription: Subscription, pointer: Any) -> None:
        super().__init__(
            pointer,
            lib.as_image_release,
            subscription,
            is_gone=lib.as_image_is_closed,
            poll=lib.as_image_controlled_poll,
            poll_columns=lib.as_image_poll_columns,
        )
        self.info = image_info(pointer)

    @property
    def session_id(self) -> SessionId:
        """Session id of the publisher."""
        return self.info.session_id

    @property
    def position(self) -> Position:
        """Position up to which messages were taken."""
        with self._use() as image:
            return Position(lib.as_image_position(image))

    @property
    def flow_position(self) -> Position:
        """Position beyond which the publisher has to wait: inside a message of which `poll_batch` lacks the end.

        For watching progress; who reads on later begins at `position`.
        """
        with self._use() as image:
            return Position(lib.as_image_flow_position(image))

    @property
    def is_ended(self) -> bool:
        """True when the publisher has ended and everything it sent was taken, or the driver gave the stream up.

        ClosedError when the client has lost its driver before: the publisher may go on.
        """
        with self._use() as image:
            if lib.as_image_is_end_of_stream(image):
                return True
            self._refuse_gone(image)
            return bool(lib.as_image_is_closed(image))

    @property
    def is_revoked(self) -> bool:
        """True when the publisher revoked the stream: what had not been read is gone."""
        with self._use() as image:
            return bool(lib.as_image_is_publication_revoked(image))

    @property
    def end_of_stream_position(self) -> Position | None:
        """Where the publisher ended the stream, None while it goes on."""
        with self._use() as image:
            position = lib.as_image_end_of_stream_position(image)
        return None if position == _UNKNOWN_END else Position(position)

    def reject(self, reason: str) -> None:
        """Stop this stream for every subscriber and give the publisher a reason; at most 1023 bytes."""
        with self._use() as image:
            self._refuse_gone(image)
            check(lib.as_image_reject(image, c_string(reason)))

    def __repr__(self) -> str:
        return f"<Image session {self.info.session_id} stream {self.info.stream_id} from {self.info.source_identity!r}>"


def image_info(pointer: Any) -> ImageInfo:
    """Copy the constants of a C image."""
    raw = ffi.new("as_image_constants *")
    lib.as_image_get_constants(pointer, raw)
    return ImageInfo(
        source_identity=string(raw.source_identity),
        correlation_id=raw.correlation_id,
        join_position=Position(raw.join_position),
        session_id=SessionId(raw.session_id),
        stream_id=StreamId(raw.stream_id),
        initial_term_id=raw.initial_term_id,
        term_length=raw.term_length,
        mtu_length=raw.mtu_length,
        subscriber_position_id=CounterId(raw.subscriber_position_id),
    )
