"""Control session with an archive, of this project or stock Aeron."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Unpack

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.callback import Callbacks
from aeron_spark._native.check import c_string, check, error, string
from aeron_spark._native.handle import Handle
from aeron_spark.archive.calls import Calls
from aeron_spark.archive.control import ClientOf, ControlOptions, ControlSettings, or_null, position_or_none
from aeron_spark.archive.credentials import Supplier
from aeron_spark.archive.recordings import Recording, recording_from
from aeron_spark.archive.replay import Replay, ReplayLength, replay_params
from aeron_spark.channel import ChannelUri
from aeron_spark.client import Client
from aeron_spark.errors import AeronError
from aeron_spark.publication import ExclusivePublication, Publication
from aeron_spark.subscription import Subscription
from aeron_spark.types import (
    NULL_VALUE,
    Position,
    RecordingId,
    RecordingSignal,
    Signal,
    SourceLocation,
    StreamId,
)

OnSignal = Callable[[Signal], object]
# Arguments: the error, and the correlation id of its request.
OnArchiveError = Callable[[AeronError, int], object]
DEFAULT_CHANNEL = "aeron:ipc"
# Descriptors requested per listing request.
_PAGE = 1000


class ArchiveState(IntEnum):
    """State of a control session."""

    CONNECTED = 0
    DISCONNECTED = 1
    CLOSED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingSubscription:
    """A subscription that an archive records from."""

    subscription_id: int
    stream_id: StreamId
    stripped_channel: str


class Archive(Handle):
    """Control session with the archive that listens on a control channel; blocking calls.

    Uses `client`, which may be shared and stays open; without one, a client of its own in `aeron_dir`. `timeout`
    (seconds, 10) bounds the connection and each answer. Channels default to IPC, streams to 10 and 20; a response
    channel on UDP may have port 0, or `control-mode=response`. An argument that is not given is read from the stock
    client's variable where that is set (`AERON_ARCHIVE_CONTROL_CHANNEL`, `AERON_ARCHIVE_MESSAGE_TIMEOUT`, ...).

    `credentials`: bytes, the path of a file that holds them, or a function that receives None, or the archive's
    challenge, and returns bytes. `on_signal` receives recording signals. `on_error` receives errors that no call
    awaits, with the correlation id of their request. Both run during calls and `poll`; without `on_error`, `poll`
    raises these errors. `calls` are non-blocking requests.

    Every request raises PeerError with the archive's text when its answer is an error, WaitTimeoutError without an
    answer, ClosedError when the session is gone.
    Thread rule: calls are serialised.
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        aeron_dir: str | os.PathLike[str] | None = None,
        on_signal: OnSignal | None = None,
        on_error: OnArchiveError | None = None,
        **settings: Unpack[ControlSettings],
    ) -> None:
        control = ControlOptions(**settings)
        supplier = Supplier(control.credentials)
        self._callbacks = Callbacks(
            on_signal=on_signal and (lambda raw: on_signal(_signal(raw))),
            on_archive_error=on_error
            and (lambda result, code, request, text: on_error(error(result, text=text, code=code), request)),
            on_challenge=supplier.on_challenge,
        )
        options = ffi.new("as_archive_client_options *")
        kept = control.fill(options, self._callbacks, supplier)
        self._client_of = ClientOf(client, aeron_dir=aeron_dir, name="archive-client", timeout=control.timeout)
        self.client = self._client_of.client
        if on_signal is not None:
            options.on_signal = lib.asp_on_signal
            options.on_signal_context = self._callbacks.context
        if on_error is not None:
            options.on_error = lib.asp_on_archive_error
            options.on_error_context = self._callbacks.context
        self.timeout: float = options.message_timeout_ns / 1e9
        self.calls = Calls(self, self._callbacks, self.timeout)
        out = ffi.new("as_archive_client **")
        try:
            with self._client_of.opening() as pointer:
                options.client = pointer
                self._callbacks.check(lib.as_archive_client_open(options, out))
                super().__init__(out[0], lib.as_archive_client_close, self.client)
        finally:
            kept.clear()

    def close(self) -> None:
        """Close the session, and the client if the session owns it."""
        super().close()
        self.calls._sweep()
        self._client_of.close()

    @property
    def control_session_id(self) -> int:
        """Id of this session at the archive."""
        with self._use() as archive:
            return int(lib.as_archive_client_control_session_id(archive))

    @property
    def archive_id(self) -> int | None:
        """Identity of the archive, None if it reported none."""
        with self._use() as archive:
            archive_id = int(lib.as_archive_client_archive_id(archive))
        return None if archive_id == NULL_VALUE else archive_id

    @property
    def state(self) -> ArchiveState:
        """State of the session; a call that finds the archive gone sets it to CLOSED."""
        with self._use() as archive:
            return ArchiveState(lib.as_archive_client_get_state(archive))

    def poll(self) -> int:
        """Process pending signals; returns the number of messages handled. Raises when the session is gone."""
        out = ffi.new("int32_t *")
        self._request(lib.as_archive_client_poll, out)
        return int(out[0])

    def poll_for_error(self) -> str | None:
        """Process pending messages; returns the text of an error that no call awaits, "not connected", or None."""
        out = ffi.new("char **")
        self._request(lib.as_archive_client_poll_for_error, out)
        return string(out[0]) if out[0] else None

    def poll_for_signals(self) -> int:
        """As `poll`; 1 if `on_signal` was called, else 0."""
        out = ffi.new("int32_t *")
        self._request(lib.as_archive_client_poll_for_signals, out)
        return int(out[0])

    def add_recorded_publication(self, channel: str | ChannelUri, stream_id: int) -> Publication:
        """Add a publication of this client and record its session alone, from its first message.

        UsageError if the client has one already.
        """
        out = ffi.new("as_publication **")
        self._request(lib.as_archive_client_add_recorded_publication, c_string(str(channel)), stream_id, out)
        return Publication(self.client, out[0])

    def add_recorded_exclusive_publication(self, channel: str | ChannelUri, stream_id: int) -> ExclusivePublication:
        """As `add_recorded_publication`, exclusive."""
        out = ffi.new("as_publication **")
        self._request(lib.as_archive_client_add_recorded_exclusive_publication, c_string(str(channel)), stream_id, out)
        return ExclusivePublication(self.client, out[0])

    def keepalive(self) -> None:
        """Keep the session alive while no other request is made.

        The archive ends a session whose client neither asks, nor polls, nor calls this for some minutes (8 by default).
        """
        self._request(lib.as_archive_client_keepalive)

    def start_recording(
        self,
        channel: str | ChannelUri,
        stream_id: int,
        *,
        source: SourceLocation = SourceLocation.LOCAL,
        auto_stop: bool = False,
    ) -> int:
        """Record every current and future publisher of a channel and stream; returns the subscription id.

        `auto_stop`: end the subscription when the first recording ends.
        """
        out = ffi.new("int64_t *")
        self._request(
            lib.as_archive_client_start_recording, c_string(str(channel)), stream_id, int(source), auto_stop, out
        )
        return int(out[0])

    def extend_recording(
        self,
        recording_id: int,
        channel: str | ChannelUri,
        stream_id: int,
        *,
        source: SourceLocation = SourceLocation.LOCAL,
        auto_stop: bool = False,
    ) -> int:
        """Extend a stopped recording, from a publisher that starts where it ended; returns the subscription id."""
        out = ffi.new("int64_t *")
        self._request(
            lib.as_archive_client_extend_recording,
            recording_id,
            c_string(str(channel)),
            stream_id,
            int(source),
            auto_stop,
            out,
        )
        return int(out[0])

    def stop_recording(self, channel: str | ChannelUri, stream_id: int) -> None:
        """Stop recording a channel and stream, given as in `start_recording`."""
        self._request(lib.as_archive_client_stop_recording, c_string(str(channel)), stream_id)

    def stop_recording_subscription(self, subscription_id: int) -> None:
        """Stop a subscription that `start_recording` or `extend_recording` started."""
        self._request(lib.as_archive_client_stop_recording_subscription, subscription_id)

    def stop_recording_by_identity(self, recording_id: int) -> bool:
        """Stop one recording; False if it was not active."""
        out = ffi.new("bool *")
        self._request(lib.as_archive_client_stop_recording_by_identity, recording_id, out)
        return bool(out[0])

    def recordings(
        self, *, channel_fragment: str | None = None, stream_id: int | None = None, from_recording_id: int = 0
    ) -> list[Recording]:
        """Recordings by id: all of them, or those whose channel contains a text and whose stream id is `stream_id`.

        Pass both filters or neither, as the protocol requires; UsageError otherwise.
        """
        if (channel_fragment is None) != (stream_id is None):
            raise error(lib.AS_E_USAGE, text="give channel_fragment and stream_id together, or neither", code=0)
        found: list[Recording] = []
        while True:
            before = len(found)
            if channel_fragment is None:
                self._list(found, lib.as_archive_client_list_recordings, from_recording_id, _PAGE)
            else:
                fragment = c_string(channel_fragment)
                self._list(
                    found, lib.as_archive_client_list_recordings_for_uri, from_recording_id, _PAGE, fragment, stream_id
                )
            if len(found) - before < _PAGE:
                return found
            from_recording_id = found[-1].recording_id + 1

    def recording(self, recording_id: int) -> Recording | None:
        """One recording, None for an unknown id."""
        found: list[Recording] = []
        self._list(found, lib.as_archive_client_list_recording, recording_id)
        return found[0] if found else None

    def recording_subscriptions(
        self, *, channel_fragment: str = "", stream_id: int | None = None
    ) -> list[RecordingSubscription]:
        """Active recording subscriptions whose channel contains a text."""
        found: list[RecordingSubscription] = []

        def on_subscription(subscription_id: int, stream: int, channel: Any) -> None:
            found.append(
                RecordingSubscription(
                    subscription_id=subscription_id, stream_id=StreamId(stream), stripped_channel=string(channel)
                )
            )

        callbacks = Callbacks(on_subscription=on_subscription)
        self._request(
            lib.as_archive_client_list_recording_subscriptions,
            0,
            2**31 - 1,
            c_string(channel_fragment),
            stream_id or 0,
            stream_id is not None,
            lib.asp_on_recording_subscription,
            callbacks.context,
            ffi.new("int32_t *"),
        )
        callbacks.reraise()
        return found

    def find_last_matching_recording(
        self, channel_fragment: str, stream_id: int, session_id: int, *, min_recording_id: int = 0
    ) -> RecordingId | None:
        """Newest recording of a session, None if there is none."""
        out = ffi.new("int64_t *")
        self._request(
            lib.as_archive_client_find_last_matching,
            min_recording_id,
            c_string(channel_fragment),
            stream_id,
            session_id,
            out,
        )
        return None if out[0] == NULL_VALUE else RecordingId(out[0])

    def start_position(self, recording_id: int) -> Position:
        """Start position of a recording."""
        return Position(self._ask(lib.as_archive_client_start_position, recording_id))

    def recording_position(self, recording_id: int) -> Position | None:
        """Recorded position of an active recording, None if it is not active."""
        return position_or_none(self._ask(lib.as_archive_client_recording_position, recording_id))

    def stop_position(self, recording_id: int) -> Position | None:
        """Stop position of a stopped recording, None while it is active."""
        return position_or_none(self._ask(lib.as_archive_client_stop_position, recording_id))

    def max_recorded_position(self, recording_id: int) -> Position:
        """Recorded position of an active recording, stop position of a stopped one."""
        return Position(self._ask(lib.as_archive_client_max_recorded_position, recording_id))

    def wait_recording(
        self, channel_fragment: str, stream_id: int, session_id: int, *, timeout: float = 10.0
    ) -> RecordingId:
        """Block until a session is being recorded; return its recording. WaitTimeoutError after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while (found := self.find_last_matching_recording(channel_fragment, stream_id, session_id)) is None:
            _late(deadline, f"no recording of session {session_id}, stream {stream_id} within {timeout} s")
        return found

    def wait_position(self, recording_id: int, position: int, *, timeout: float = 10.0) -> None:
        """Block until a recording has reached `position`; WaitTimeoutError after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while (reached := self.max_recorded_position(recording_id)) < position:
            _late(deadline, f"recording {recording_id} is at {reached}, not at {position}, after {timeout} s")

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
        subscription: Subscription | None = None,
    ) -> int:
        """Publish a recording on a channel and stream again; returns the replay's session id.

        `position`: where to begin, by default at the recording's start. `length`: bytes, or how to end.
        `limit_counter_id`: a counter whose value bounds the replay's position. `file_io_max_length`: bytes that the
        archive reads at a time, by default its setting. `subscription`: the subscription that receives the replay, for
        a channel with control-mode=response.
        """
        params = replay_params(position, length, limit_counter_id, file_io_max_length)
        if subscription is not None:
            params.subscription_registration_id = subscription.registration_id
        out = ffi.new("int64_t *")
        self._request(lib.as_archive_client_start_replay, recording_id, c_string(str(channel)), stream_id, params, out)
        return int(out[0])

    def replay(
        self,
        recording_id: int,
        channel: str | ChannelUri = DEFAULT_CHANNEL,
        stream_id: int = 100,
        *,
        position: int | None = None,
        length: int | ReplayLength = ReplayLength.FOLLOW,
        limit_counter_id: int | None = None,
        file_io_max_length: int | None = None,
    ) -> Replay:
        """Start a replay and subscribe to its session only; see `start_replay`."""
        params = replay_params(position, length, limit_counter_id, file_io_max_length)
        session, subscription = ffi.new("int64_t *"), ffi.new("as_subscription **")
        with self._use() as archive:
            check(
                lib.as_archive_client_replay(
                    archive, recording_id, c_string(str(channel)), stream_id, params, session, subscription
                )
            )
            return Replay(Subscription(self.client, subscription[0]), int(session[0]))

    def stop_replay(self, replay_session_id: int) -> None:
        """End a replay; its image ends."""
        self._request(lib.as_archive_client_stop_replay, replay_session_id)

    def stop_all_replays(self, recording_id: int) -> None:
        """End every replay of a recording."""
        self._request(lib.as_archive_client_stop_all_replays, recording_id)

    def replay_token(self, recording_id: int) -> int:
        """Token for a replay request on another publication; it is valid for the archive's connect timeout.

        `start_replay` and `replay` on a channel with control-mode=response request a token automatically.
        """
        return self._ask(lib.as_archive_client_replay_token, recording_id)

    def replicate(
        self,
        source_recording_id: int,
        source_channel: str | ChannelUri,
        source_stream_id: int = 10,
        *,
        recording_id: int | None = None,
        stop_position: int | None = None,
        live_destination: str | ChannelUri | None = None,
        replication_channel: str | ChannelUri | None = None,
        response_channel: str | ChannelUri | None = None,
        credentials: bytes = b"",
        session_id: int | None = None,
        file_io_max_length: int | None = None,
        channel_tag: int | None = None,
        subscription_tag: int | None = None,
    ) -> int:
        """Make this archive copy a recording of the archive on `source_channel`; returns the replication's id.

        Returns once the replication has begun. Signals whose `correlation_id` is the replication's id report its
        progress: EXTEND, SYNC when all of a stopped source is copied, MERGE when the live stream was joined,
        REPLICATE_END in any case. `poll` raises a failure.

        `recording_id`: a stopped recording to extend, by default a new one. `stop_position`: where the copy ends, by
        default the source's end, which is followed while the source is active. `live_destination`: continue from the
        live stream there once caught up; not with `session_id`, that of the replay. `replication_channel`: where the
        source replays to, by default the archive's setting. `response_channel` and `credentials` are for the source.
        """
        params = ffi.new("as_replication_params *")
        lib.as_replication_params_init(params)
        kept = [
            _text(live_destination),
            _text(replication_channel),
            _text(response_channel),
            ffi.from_buffer(credentials),
        ]
        params.live_destination, params.replication_channel, params.src_response_channel = kept[:3]
        if credentials:
            params.credentials, params.credentials_length = ffi.cast("const uint8_t *", kept[3]), len(credentials)
        params.dst_recording_id = or_null(recording_id)
        params.stop_position = or_null(stop_position)
        params.channel_tag_id = or_null(channel_tag)
        params.subscription_tag_id = or_null(subscription_tag)
        params.file_io_max_length = or_null(file_io_max_length)
        params.session_id = or_null(session_id)
        out = ffi.new("int64_t *")
        source = c_string(str(source_channel))
        self._request(lib.as_archive_client_replicate, source_recording_id, source, source_stream_id, params, out)
        return int(out[0])

    def stop_replication(self, replication_id: int) -> None:
        """End a replication; the copy keeps its data. PeerError for a replication that has ended."""
        self._request(lib.as_archive_client_stop_replication, replication_id)

    def try_stop_replication(self, replication_id: int) -> bool:
        """End a replication; False for a replication that has ended."""
        out = ffi.new("bool *")
        self._request(lib.as_archive_client_try_stop_replication, replication_id, out)
        return bool(out[0])

    def truncate_recording(self, recording_id: int, position: int) -> int:
        """Make a stopped recording end at `position`; returns the number of segment files that are deleted.

        `position` is a message boundary, or the recording's start or end. Ends the recording's replays. The files are
        deleted after this call has returned; a DELETE signal reports the end of the deletion. The same holds for the
        other calls that delete. One of them at a time per recording.
        """
        return self._ask(lib.as_archive_client_truncate_recording, recording_id, position)

    def purge_recording(self, recording_id: int) -> int:
        """Delete a stopped recording; returns the number of segment files deleted. Refused while it is replayed."""
        return self._ask(lib.as_archive_client_purge_recording, recording_id)

    def detach_segments(self, recording_id: int, new_start_position: int) -> None:
        """Make a recording, stopped or active, start at a later segment; the files before that stay.

        `new_start_position` is one of `Recording.detachable`. Refused while a replay is before it.
        """
        self._request(lib.as_archive_client_detach_segments, recording_id, new_start_position)

    def delete_detached_segments(self, recording_id: int) -> int:
        """Delete the segment files before the recording's start; returns the number of files that are deleted."""
        return self._ask(lib.as_archive_client_delete_detached_segments, recording_id)

    def purge_segments(self, recording_id: int, new_start_position: int) -> int:
        """Detach segments and delete them; returns the number of files that are deleted. See `detach_segments`."""
        return self._ask(lib.as_archive_client_purge_segments, recording_id, new_start_position)

    def attach_segments(self, recording_id: int) -> int:
        """Attach the segment files that precede a recording's start without a gap; returns the number of files.

        They were detached, or copied into the archive's folder. A file that does not belong to the recording raises
        PeerError; files attached before it stay attached.
        """
        return self._ask(lib.as_archive_client_attach_segments, recording_id)

    def migrate_segments(self, source_recording_id: int, destination_recording_id: int) -> int:
        """Move all of a stopped recording before or behind another one; returns the number of segment files.

        The two recordings meet at a segment boundary and have the same stream id, lengths and initial term id. The
        source is empty afterwards.
        """
        return self._ask(lib.as_archive_client_migrate_segments, source_recording_id, destination_recording_id)

    def update_channel(self, recording_id: int, channel: str | ChannelUri) -> None:
        """Change the channel in a recording's descriptor, stopped or active; UsageError when it is not a channel."""
        self._request(lib.as_archive_client_update_channel, recording_id, c_string(str(channel)))

    def _request(self, function: Any, *arguments: Any) -> None:
        with self._use() as archive:
            self._callbacks.check(function(archive, *arguments))

    def _ask(self, function: Any, *arguments: int) -> int:
        out = ffi.new("int64_t *")
        self._request(function, *arguments, out)
        return int(out[0])

    def _list(self, found: list[Recording], function: Any, *arguments: Any) -> None:
        callbacks = Callbacks(on_recording=lambda raw: found.append(recording_from(raw)))
        listed = ffi.new("int32_t *")
        self._request(function, *arguments, lib.asp_on_recording, callbacks.context, listed)
        callbacks.reraise()


def _signal(raw: Any) -> Signal:
    known = raw.signal in RecordingSignal._value2member_map_
    return Signal(
        control_session_id=raw.control_session_id,
        correlation_id=raw.correlation_id,
        recording_id=RecordingId(raw.recording_id),
        subscription_id=raw.subscription_id,
        position=Position(raw.position),
        signal=RecordingSignal(raw.signal) if known else raw.signal,
    )


def _text(channel: str | ChannelUri | None) -> Any:
    return ffi.NULL if channel is None else c_string(str(channel))


def _late(deadline: float, what: str) -> None:
    if time.monotonic() >= deadline:
        raise error(lib.AS_E_TIMEOUT, text=what, code=0)
    time.sleep(0.002)
