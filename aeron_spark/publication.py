"""Publishing: one message at a time, or whole batches with the GIL released."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.check import c_string, check, error, nanoseconds, string
from aeron_spark._native.handle import Handle
from aeron_spark.channel import ChannelUri
from aeron_spark.errors import UsageError
from aeron_spark.types import CounterId, Outcome, Position, RegistrationId, SessionId, StreamId

# Each element is a message: a binary or string array of Arrow; a numpy array whose rows (first axis) are the messages'
# bytes; or bytes objects.
Messages: TypeAlias = "pa.Array | pa.ChunkedArray | np.ndarray[Any, Any] | Sequence[bytes]"

# One call into C waits no longer, so that Ctrl-C and close() are never late.
_SLICE_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationConstants:
    """What does not change while a publication is open. Lengths are bytes."""

    channel: str
    registration_id: RegistrationId
    original_registration_id: RegistrationId
    stream_id: StreamId
    session_id: SessionId
    initial_term_id: int
    term_length: int
    mtu_length: int
    max_payload_length: int
    max_message_length: int
    max_possible_position: Position
    limit_counter_id: CounterId
    is_exclusive: bool


class Publication(Handle):
    """A stream to publish on; made by `Client.add_publication`.

    Thread rule: calls are serialised, so several threads may share it.
    """

    def __init__(self, client: Handle, pointer: Any) -> None:
        super().__init__(pointer, lib.as_publication_close, client, is_gone=lib.as_publication_is_closed)
        raw = ffi.new("as_publication_constants *")
        lib.as_publication_get_constants(pointer, raw)
        self.constants = PublicationConstants(
            channel=string(raw.channel),
            registration_id=RegistrationId(raw.registration_id),
            original_registration_id=RegistrationId(raw.original_registration_id),
            stream_id=StreamId(raw.stream_id),
            session_id=SessionId(raw.session_id),
            initial_term_id=raw.initial_term_id,
            term_length=raw.term_length,
            mtu_length=raw.mtu_length,
            max_payload_length=raw.max_payload_length,
            max_message_length=raw.max_message_length,
            max_possible_position=Position(raw.max_possible_position),
            limit_counter_id=CounterId(raw.limit_counter_id),
            is_exclusive=raw.is_exclusive,
        )

    @property
    def channel(self) -> str:
        """Channel as it was given."""
        return self.constants.channel

    @property
    def stream_id(self) -> StreamId:
        """Stream id on the channel."""
        return self.constants.stream_id

    @property
    def session_id(self) -> SessionId:
        """Session id of this stream."""
        return self.constants.session_id

    @property
    def position(self) -> Position:
        """Position after the last message; ClosedError once closed."""
        with self._use() as publication:
            position = Position(lib.as_publication_position(publication))
            self._refuse_gone(publication)
            return position

    @property
    def position_limit(self) -> Position:
        """Position that flow control lets the publication reach now."""
        with self._use() as publication:
            limit = Position(lib.as_publication_position_limit(publication))
            self._refuse_gone(publication)
            return limit

    @property
    def is_connected(self) -> bool:
        """True when a subscriber is there."""
        with self._use() as publication:
            return bool(lib.as_publication_is_connected(publication))

    def wait_connected(self, timeout: float) -> None:
        """Block until a subscriber is there; WaitTimeoutError after `timeout` seconds, ClosedError once closed."""
        _wait(lambda: self.is_connected or self.position < 0, timeout, f"{self!r}: no subscriber")

    def offer(self, message: bytes | bytearray | memoryview) -> Position | Outcome:
        """Try once to publish a message: the position after it, or why not now (`Outcome`, negative).

        UsageError: longer than `max_message_length`.
        """
        with self._use() as publication:
            return self._outcome(
                lib.as_publication_offer(publication, ffi.from_buffer(message), memoryview(message).nbytes)
            )

    @contextmanager
    def try_claim(self, length: int) -> Iterator[memoryview | Outcome]:
        """Claim `length` bytes in the log buffer, for a message to fill; committed at the end of the `with` block.

        Gives a writable view of zeros, whose bytes are copied into the log then, or the `Outcome` why there is no room now.
        The view is invalid after the block, and what others do with its memory later has no effect. An exception in the
        block aborts the claim, and so does the BufferError of a buffer of Arrow that still exports the view.
        `length` is at most `max_payload_length`; finish before the driver's unblock timeout.
        """
        claim = ffi.new("as_buffer_claim *")
        with self._use() as publication:
            result = self._outcome(lib.as_publication_try_claim(publication, length, claim))
            if isinstance(result, Outcome):
                yield result
                return
            try:
                # Not the log itself: arrays of numpy keep writing where they were made.
                message = bytearray(length)
                with memoryview(message) as view:
                    yield view
                ffi.memmove(claim.data, message, length)
            except BaseException:
                lib.as_buffer_claim_abort(claim)
                raise
            lib.as_buffer_claim_commit(claim)

    def offer_batch(self, messages: Messages, *, reserved_values: Any = None, timeout: float = 10.0) -> Position:
        """Publish messages in order with the GIL released; returns the position after the last one (now, if none).

        `reserved_values`: as many int64, for the reserved field of each message's frame. `timeout` is in seconds without
        progress, while subscribers hold the publication back or none is there. The error's `accepted` is how
        many were published, and in `position` where: WaitTimeoutError, ClosedError, or UsageError for message number
        `accepted` being longer than `max_message_length`. An array with nulls is refused as a whole.
        """
        accepted, position = 0, self.position
        chunks = messages.chunks if isinstance(messages, pa.ChunkedArray) else [messages]
        reserved = _reserved(reserved_values, sum(len(chunk) for chunk in chunks))
        for chunk in chunks:
            batch = RawMessages(chunk, None if reserved is None else reserved[accepted : accepted + len(chunk)])
            position = self._offer_all(batch, timeout, accepted, position)
            accepted += batch.count
        return position

    def _offer_all(self, batch: RawMessages, timeout: float, accepted_before: int, position: Position) -> Position:
        outcome = ffi.new("as_offer_outcome *")
        done = 0
        deadline = time.monotonic() + timeout
        while done < batch.count:
            with self._use() as publication:
                wait = nanoseconds(max(0.0, min(_SLICE_S, deadline - time.monotonic())))
                result = lib.as_publication_offer_messages(publication, batch.rest(done), wait, outcome)
                failure = error(result) if result < 0 else None
            if outcome.accepted:
                done += outcome.accepted
                position = Position(outcome.position)
                deadline = time.monotonic() + timeout
            if failure is None or (result == lib.AS_E_TIMEOUT and time.monotonic() < deadline):
                continue
            text = str(failure)
            if result == lib.AS_E_TIMEOUT:
                unconnected = outcome.status == Outcome.NOT_CONNECTED
                why = "it has no subscriber" if unconnected else "its subscribers are behind by the whole window"
                text = f"{self!r} took nothing more for {timeout} s: {why}"
            elif (length := batch.length(done)) > self.constants.max_message_length:
                most = self.constants.max_message_length
                text = f"message {accepted_before + done} has {length} bytes, {self!r} takes {most} at most: raise term-length"
            failure = error(result, text=text, code=failure.code)
            failure.accepted = accepted_before + done
            failure.position = position
            raise failure
        return position

    def add_destination(self, channel: str | ChannelUri) -> None:
        """Add a send destination of a multi-destination publication; blocks for the driver's answer."""
        with self._use() as publication:
            check(lib.as_publication_add_destination(publication, c_string(str(channel))))

    def remove_destination(self, channel: str | ChannelUri) -> None:
        """Remove a send destination; blocks for the driver's answer."""
        with self._use() as publication:
            check(lib.as_publication_remove_destination(publication, c_string(str(channel))))

    def revoke(self) -> None:
        """Close and revoke the stream: subscribers do not receive what they have not read."""
        self._release = lib.as_publication_revoke
        self.close()

    def _outcome(self, result: int) -> Position | Outcome:
        if result == lib.AS_PUBLICATION_ERROR:
            raise error(lib.AS_E_USAGE)
        return Outcome(result) if result < 0 else Position(result)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.channel!r} stream {self.stream_id} session {self.session_id}>"


class ExclusivePublication(Publication):
    """A publication with a session of its own; made by `Client.add_exclusive_publication`. One publishing thread."""


class RawMessages:
    """Messages as C takes them; keeps alive what the pointers point to."""

    def __init__(self, messages: Any, reserved: np.ndarray[Any, Any] | None) -> None:
        self._raw = ffi.new("as_messages *")
        array = messages if isinstance(messages, pa.Array) else _arrow(messages)
        if array.null_count:
            row = int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0])
            raise UsageError(f"message {row} is null; drop or fill null messages before publishing")
        if pa.types.is_fixed_size_binary(array.type):
            array = array.cast(pa.large_binary())
        if pa.types.is_binary(array.type) or pa.types.is_string(array.type):
            self._member, offset_type = "offsets32", "int32_t *"
        elif pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type):
            self._member, offset_type = "offsets64", "int64_t *"
        else:
            raise UsageError(f"messages of type {array.type} can't be published: give a binary or string array")
        self.count = len(array)
        _, offsets, data = array.buffers()
        self._keep = (array, reserved)
        if self.count:
            self._offsets = ffi.cast(offset_type, offsets.address) + array.offset
            self._reserved = None if reserved is None else ffi.cast("int64_t *", reserved.ctypes.data)
            self._raw.data = ffi.cast("uint8_t *", data.address) if data is not None else ffi.NULL

    def length(self, index: int) -> int:
        """Bytes of one message."""
        return int(self._offsets[index + 1] - self._offsets[index])

    def bytes_between(self, start: int, end: int) -> int:
        """Bytes of the messages [start, end)."""
        return int(self._offsets[end] - self._offsets[start]) if self.count else 0

    def rest(self, done: int) -> Any:
        """The messages from number `done` on."""
        self._raw.count = self.count - done
        setattr(self._raw, self._member, self._offsets + done)
        if self._reserved is not None:
            self._raw.reserved_values = self._reserved + done
        return self._raw


def _arrow(messages: Any) -> pa.Array:
    """Arrow array over bytes objects, or over the rows of a numpy array without a copy."""
    if isinstance(messages, (str, bytes, bytearray, memoryview)):
        raise UsageError("one message was given where a sequence of messages belongs: put it into a list")
    if not isinstance(messages, np.ndarray):
        try:
            return pa.array(messages, pa.large_binary())
        except (pa.ArrowException, TypeError) as failure:
            raise UsageError(f"messages can't be read as a sequence of bytes: {failure}") from None
    if messages.ndim == 0 or messages.dtype.hasobject:
        raise UsageError(
            f"a numpy array of shape {messages.shape} and type {messages.dtype} has no rows of plain bytes"
        )
    rows = np.ascontiguousarray(messages)
    length = rows.nbytes // len(rows) if len(rows) else 0
    offsets = np.arange(0, rows.nbytes + 1, length or 1, dtype=np.int64)[: len(rows) + 1]
    if length == 0:
        offsets = np.zeros(len(rows) + 1, np.int64)
    data = pa.py_buffer(rows.reshape(-1).view(np.uint8))
    return pa.Array.from_buffers(pa.large_binary(), len(rows), [None, pa.py_buffer(offsets), data])


def _reserved(values: Any, count: int) -> np.ndarray[Any, Any] | None:
    if values is None:
        return None
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        if values.null_count:
            raise UsageError("reserved_values hold nulls; fill them before publishing")
        values = values.to_numpy() if isinstance(values, pa.ChunkedArray) else values.to_numpy(zero_copy_only=False)
    array = np.ascontiguousarray(values)
    if array.shape != (count,) or array.dtype.kind not in "iu":
        raise UsageError(f"reserved_values must be {count} integers, not {array.dtype} of shape {array.shape}")
    return array.astype(np.int64, copy=False)


def _wait(condition: Callable[[], bool], timeout: float, what: str) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() >= deadline:
            raise error(lib.AS_E_TIMEOUT, text=f"{what} within {timeout} s", code=0)
        time.sleep(0.001)
