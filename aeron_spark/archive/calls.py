"""Non-blocking requests to an archive."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.callback import Callbacks
from aeron_spark._native.check import c_string, check, error
from aeron_spark._native.handle import Handle
from aeron_spark.archive.control import or_null, position_or_none
from aeron_spark.archive.recordings import Recording, recording_from
from aeron_spark.archive.replay import ReplayLength
from aeron_spark.channel import ChannelUri
from aeron_spark.types import NULL_VALUE, Position, RecordingId, SourceLocation

T = TypeVar("T")
_IDLE_S = 0.0005


class Call(Generic[T]):
    """A request in flight, and its answer once it has arrived. Created by the methods of `Archive.calls`.

    Answers arrive in any order, also while other calls of the same archive wait or poll. An answer that arrived before
    the archive client was closed can still be read. Thread rule: as its archive.
    """

    def __init__(
        self, calls: Calls, pointer: Any, convert: Callable[[int], T], callbacks: Callbacks | None = None
    ) -> None:
        self._calls = calls
        self._pointer = pointer
        self._convert = convert
        self._callbacks = callbacks
        self._value = ffi.new("int64_t *")
        self.correlation_id: int = lib.as_archive_call_correlation_id(pointer)
        """Id of the request; signals and errors of the operation it started carry it."""

    def done(self) -> bool:
        """Process the archive's pending messages; True if `result` would return or raise at once."""
        with self._calls._archive._lock:
            return self._poll() != lib.AS_AGAIN

    def result(self, timeout: float | None = None) -> T:
        """Value of the answer; waits for it up to `timeout` seconds, by default the archive client's own timeout.

        PeerError with the archive's text when the answer is an error; WaitTimeoutError, ClosedError. Repeated calls
        return the same.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            with self._calls._archive._lock:
                result = self._poll()
                if result != lib.AS_AGAIN:
                    check(result)
                    return self._convert(int(self._value[0]))
            if deadline is not None and time.monotonic() >= deadline:
                raise error(lib.AS_E_TIMEOUT, text=f"no answer of the archive within {timeout} s", code=0)
            time.sleep(_IDLE_S)

    def close(self) -> None:
        """Abandon the request; repeated calls are harmless. Without it this happens some time after the last use."""
        with self._calls._archive._lock:
            pointer, self._pointer = self._pointer, None
            if pointer is not None:
                lib.as_archive_call_close(pointer)

    def __del__(self) -> None:
        pointer = getattr(self, "_pointer", None)
        if pointer is not None:
            # The garbage collector may run inside a callback of this very call, so the call is closed later.
            self._calls._garbage.append((pointer, self._callbacks))

    def _poll(self) -> int:
        if self._pointer is None:
            raise error(lib.AS_E_CLOSED, text="the call is closed", code=0)
        if self._calls._archive._pid != os.getpid():
            raise error(lib.AS_E_USAGE, text="a call to an archive belongs to the process that made it", code=0)
        result = int(lib.as_archive_call_poll(self._pointer, self._value))
        if self._callbacks is not None:
            self._callbacks.reraise()
        self._calls._callbacks.reraise()
        return result


class Calls:
    """Requests of an archive client that return at once; `Archive.calls`. Each returns a `Call`."""

    def __init__(self, archive: Handle, callbacks: Callbacks, timeout: float) -> None:
        self._archive = archive
        self._callbacks = callbacks
        self._timeout = timeout
        self._garbage: deque[tuple[Any, Callbacks | None]] = deque()

    def _sweep(self) -> None:
        """Close unreferenced calls; not inside callbacks."""
        while self._garbage:
            pointer, _ = self._garbage.popleft()
            lib.as_archive_call_close(pointer)

    def start_recording(
        self,
        channel: str | ChannelUri,
        stream_id: int,
        *,
        source: SourceLocation = SourceLocation.LOCAL,
        auto_stop: bool = False,
    ) -> Call[int]:
        """As `Archive.start_recording`."""
        return self._send(
            lib.AS_OP_START_RECORDING,
            int,
            channel=str(channel),
            stream_id=stream_id,
            source_location=int(source),
            auto_stop=auto_stop,
        )

    def extend_recording(
        self,
        recording_id: int,
        channel: str | ChannelUri,
        stream_id: int,
        *,
        source: SourceLocation = SourceLocation.LOCAL,
        auto_stop: bool = False,
    ) -> Call[int]:
        """As `Archive.extend_recording`."""
        return self._send(
            lib.AS_OP_EXTEND_RECORDING,
            int,
            recording_id=recording_id,
            channel=str(channel),
            stream_id=stream_id,
            source_location=int(source),
            auto_stop=auto_stop,
        )

    def stop_recording(self, channel: str | ChannelUri, stream_id: int) -> Call[None]:
        """As `Archive.stop_recording`."""
        return self._send(lib.AS_OP_STOP_RECORDING, _nothing, channel=str(channel), stream_id=stream_id)

    def stop_recording_subscription(self, subscription_id: int) -> Call[None]:
        """As `Archive.stop_recording_subscription`."""
        return self._send(lib.AS_OP_STOP_RECORDING_SUBSCRIPTION, _nothing, subscription_id=subscription_id)

    def stop_recording_by_identity(self, recording_id: int) -> Call[bool]:
        """As `Archive.stop_recording_by_identity`."""
        return self._send(lib.AS_OP_STOP_RECORDING_BY_IDENTITY, bool, recording_id=recording_id)

    def start_replay(
        self,
        recording_id: int,
        channel: str | ChannelUri,
        stream_id: int,
        *,
        position: int | None = None,
        length: int | ReplayLength = ReplayLength.FOLLOW,
        limit_counter_id: int | None = None,
        file_io_max_length: int | None = None,
    ) -> Call[int]:
        """As `Archive.start_replay`."""
        return self._send(
            lib.AS_OP_REPLAY if limit_counter_id is None else lib.AS_OP_BOUNDED_REPLAY,
            int,
            recording_id=recording_id,
            channel=str(channel),
            stream_id=stream_id,
            position=or_null(position),
            length=int(length),
            limit_counter_id=or_null(limit_counter_id),
            file_io_max_length=or_null(file_io_max_length),
        )

    def stop_replay(self, replay_session_id: int) -> Call[None]:
        """As `Archive.stop_replay`."""
        return self._send(lib.AS_OP_STOP_REPLAY, _nothing, replay_session_id=replay_session_id)

    def stop_all_replays(self, recording_id: int) -> Call[None]:
        """As `Archive.stop_all_replays`."""
        return self._send(lib.AS_OP_STOP_ALL_REPLAYS, _nothing, recording_id=recording_id)

    def recordings(self, from_recording_id: int = 0, count: int = 1000) -> Call[list[Recording]]:
        """At most `count` recordings by id."""
        return self._list(lib.AS_OP_LIST_RECORDINGS, recording_id=from_recording_id, count=count)

    def recording(self, recording_id: int) -> Call[list[Recording]]:
        """A recording by its id; an empty list for an unknown one."""
        return self._list(lib.AS_OP_LIST_RECORDING, recording_id=recording_id)

    def find_last_matching_recording(
        self, channel_fragment: str, stream_id: int, session_id: int, *, min_recording_id: int = 0
    ) -> Call[RecordingId | None]:
        """As `Archive.find_last_matching_recording`."""
        return self._send(
            lib.AS_OP_FIND_LAST_MATCHING_RECORDING,
            lambda value: None if value == NULL_VALUE else RecordingId(value),
            recording_id=min_recording_id,
            channel=channel_fragment,
            stream_id=stream_id,
            session_id=session_id,
        )

    def start_position(self, recording_id: int) -> Call[Position]:
        """As `Archive.start_position`."""
        return self._send(lib.AS_OP_START_POSITION, Position, recording_id=recording_id)

    def recording_position(self, recording_id: int) -> Call[Position | None]:
        """As `Archive.recording_position`."""
        return self._send(lib.AS_OP_RECORDING_POSITION, position_or_none, recording_id=recording_id)

    def stop_position(self, recording_id: int) -> Call[Position | None]:
        """As `Archive.stop_position`."""
        return self._send(lib.AS_OP_STOP_POSITION, position_or_none, recording_id=recording_id)

    def max_recorded_position(self, recording_id: int) -> Call[Position]:
        """As `Archive.max_recorded_position`."""
        return self._send(lib.AS_OP_MAX_RECORDED_POSITION, Position, recording_id=recording_id)

    def truncate_recording(self, recording_id: int, position: int) -> Call[int]:
        """Cut a stopped recording at a position; the answer is the number of segment files that are deleted."""
        return self._send(lib.AS_OP_TRUNCATE_RECORDING, int, recording_id=recording_id, position=position)

    def purge_recording(self, recording_id: int) -> Call[int]:
        """Delete a stopped recording; the answer is the number of segment files that are deleted."""
        return self._send(lib.AS_OP_PURGE_RECORDING, int, recording_id=recording_id)

    def purge_segments(self, recording_id: int, new_start_position: int) -> Call[int]:
        """Delete the segments below a segment's begin; the answer is the number of files that are deleted."""
        return self._send(lib.AS_OP_PURGE_SEGMENTS, int, recording_id=recording_id, position=new_start_position)

    def _list(self, operation: int, **fields: Any) -> Call[list[Recording]]:
        found: list[Recording] = []
        callbacks = Callbacks(on_recording=lambda raw: found.append(recording_from(raw)))
        return self._send(
            operation,
            lambda _count: found,
            callbacks,
            on_recording=lib.asp_on_recording,
            context=callbacks.context,
            **fields,
        )

    def _send(
        self, operation: int, convert: Callable[[int], T], callbacks: Callbacks | None = None, **fields: Any
    ) -> Call[T]:
        request = ffi.new("as_archive_request *")
        lib.as_archive_request_init(request, operation)
        channel = c_string(fields.pop("channel", ""))
        request.channel = channel
        for name, value in fields.items():
            setattr(request, name, value)
        out = ffi.new("as_archive_call **")
        deadline = time.monotonic() + self._timeout
        while True:
            with self._archive._use() as archive:
                self._sweep()
                if check(lib.as_archive_client_send(archive, request, out)):
                    return Call(self, out[0], convert, callbacks)
            if time.monotonic() >= deadline:
                text = f"the archive took no request within {self._timeout} s: it does not read its control stream"
                raise error(lib.AS_E_TIMEOUT, text=text, code=0)
            time.sleep(_IDLE_S)


def _nothing(_value: int) -> None:
    return None
