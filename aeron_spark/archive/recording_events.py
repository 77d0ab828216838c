"""Published state of an archive's recordings: the recording events stream, and the recorded position counters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.callback import Callbacks
from aeron_spark._native.check import check, error, string
from aeron_spark._native.handle import Handle
from aeron_spark.client import Client
from aeron_spark.subscription import Subscription
from aeron_spark.types import NULL_VALUE, CounterId, Position, RecordingId, SessionId, StreamId

# A source identity in a counter's key is shorter than this.
_SOURCE_CAPACITY = 113


class RecordingEventKind(IntEnum):
    """Kinds of `RecordingEvent`."""

    STARTED = 101
    PROGRESS = 102
    STOPPED = 103


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingEvent:
    """An event of the recording events stream. Only STARTED has the last four fields; else they are None and ""."""

    kind: RecordingEventKind
    recording_id: RecordingId
    start_position: Position
    position: Position
    session_id: SessionId | None
    stream_id: StreamId | None
    channel: str
    source_identity: str


class RecordingEvents(Handle):
    """Reader of an archive's recording events; sent if `aeron.archive.recording.events.enabled` is true.

    `subscription` is of the archive's events channel and stream (30); no other reader may poll it. One polling thread.
    """

    def __init__(self, subscription: Subscription, on_event: Callable[[RecordingEvent], object]) -> None:
        self._callbacks = Callbacks(on_recording_event=lambda raw: on_event(_event(raw)))
        out = ffi.new("as_recording_events **")
        with subscription._use() as pointer:
            check(lib.as_recording_events_open(pointer, lib.asp_on_recording_event, self._callbacks.context, out))
            super().__init__(out[0], lib.as_recording_events_close, subscription)

    def poll(self, limit: int = 10) -> int:
        """Pass pending events to the handler; returns the number of fragments. Raises an exception of the handler."""
        with self._use() as events:
            count = int(lib.as_recording_events_poll(events, limit))
            self._callbacks.check(min(count, 0))
        return count


@dataclass(frozen=True, slots=True)
class RecordingPosition:
    """The counter of an active recording: its recorded position, read from shared memory without a request."""

    client: Client
    counter_id: CounterId
    recording_id: RecordingId
    source_identity: str

    @property
    def is_active(self) -> bool:
        """False once the recording has ended."""
        with self.client._use() as client:
            return bool(lib.as_recording_position_is_active(client, self.counter_id, self.recording_id))

    @property
    def position(self) -> Position | None:
        """Recorded position now, None once the recording has ended."""
        row = ffi.new("as_counter_row *")
        with self.client._use() as client:
            if lib.as_client_counter(client, self.counter_id, row) != lib.AS_OK or not self.is_active:
                return None
        return Position(row.value)


def find_recording_position(
    client: Client,
    *,
    recording_id: int | None = None,
    session_id: int | None = None,
    archive_id: int | None = None,
) -> RecordingPosition | None:
    """Position counter of the active recording with that id, or of that session; None if there is none.

    `archive_id`: of that archive only, if several archives use the driver.
    """
    archive = NULL_VALUE if archive_id is None else archive_id
    if (recording_id is None) == (session_id is None):
        raise error(lib.AS_E_USAGE, text="give either recording_id or session_id", code=0)
    with client._use() as pointer:
        counter = NULL_VALUE
        if recording_id is not None:
            counter = lib.as_recording_position_find(pointer, recording_id, archive)
        elif session_id is not None:
            counter = lib.as_recording_position_find_by_session(pointer, session_id, archive)
        if counter == NULL_VALUE:
            return None
        found = lib.as_recording_position_recording_id(pointer, counter)
        source = ffi.new("char[]", _SOURCE_CAPACITY)
        lib.as_recording_position_source_identity(pointer, counter, source, _SOURCE_CAPACITY)
        return RecordingPosition(client, CounterId(counter), RecordingId(found), string(source))


def _event(raw: Any) -> RecordingEvent:
    kind = RecordingEventKind(raw.kind)
    is_start = kind == RecordingEventKind.STARTED
    return RecordingEvent(
        kind=kind,
        recording_id=RecordingId(raw.recording_id),
        start_position=Position(raw.start_position),
        position=Position(raw.position),
        session_id=SessionId(raw.session_id) if is_start else None,
        stream_id=StreamId(raw.stream_id) if is_start else None,
        channel=string(raw.channel),
        source_identity=string(raw.source_identity),
    )
