"""A stream without a gap: replayed from a recording, then live, and replayed again whenever the live stream is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import IntEnum
from typing import Unpack

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.callback import Callbacks
from aeron_spark._native.check import c_string, check, error
from aeron_spark.archive.control import ClientOf, ControlOptions, ControlSettings
from aeron_spark.archive.credentials import Supplier
from aeron_spark.channel import ChannelUri
from aeron_spark.client import Client
from aeron_spark.errors import AeronError
from aeron_spark.subscription import MessageHandler, Source
from aeron_spark.types import Position


class StartPosition(IntEnum):
    """Start of a `PersistentSubscription` other than a position."""

    FROM_START = -1
    """At the recording's start."""
    FROM_LIVE = -2
    """At the live position: only messages published from now on."""


class PersistentState(IntEnum):
    """State of a `PersistentSubscription`; the value of its counter of type 114."""

    AWAIT_ARCHIVE_CONNECTION = 0
    SEND_LIST_RECORDING_REQUEST = 1
    AWAIT_LIST_RECORDING_RESPONSE = 2
    SEND_REPLAY_REQUEST = 3
    AWAIT_REPLAY_RESPONSE = 4
    ADD_REPLAY_SUBSCRIPTION = 5
    AWAIT_REPLAY_SUBSCRIPTION = 6
    AWAIT_REPLAY_CHANNEL_ENDPOINT = 7
    ADD_REQUEST_PUBLICATION = 8
    AWAIT_REQUEST_PUBLICATION = 9
    SEND_REPLAY_TOKEN_REQUEST = 10
    AWAIT_REPLAY_TOKEN = 11
    REPLAY = 12
    ATTEMPT_SWITCH = 13
    ADD_LIVE_SUBSCRIPTION = 14
    AWAIT_LIVE = 15
    LIVE = 16
    FAILED = 17


class PersistentFailure(IntEnum):
    """Reason why a `PersistentSubscription` failed permanently."""

    GENERIC = 1
    RECORDING_NOT_FOUND = 2
    INVALID_START_POSITION = 3
    STREAM_ID_MISMATCH = 4


OnEvent = Callable[[], object]
OnPersistentError = Callable[[AeronError], object]


class PersistentSubscription(Source):
    """Every message of a recorded stream once and in order, from a position on: replayed, then live.

    It needs a driver, over `client` or a client of its own in `aeron_dir`. It waits for the archive, reconnects when
    the archive was gone, and continues live meanwhile. When the live stream is lost (its image timed out, or the reader
    was too slow for an untethered or lossy stream) it replays the gap. `replay_channel`: a fixed endpoint, port 0 for a
    free one, IPC, or `control-mode=response`. Only `poll` and `poll_batch` make progress.

    Messages are whole and carry the recording's session id. `on_error` receives failures that are retried, and the one
    that ends the subscription. Handlers run inside polls and must not call it. `timeout` (seconds) is the deadline of
    every request and wait.

    UsageError: invalid options. A poll raises the permanent failure: PeerError (unknown recording, the archive's
    texts), DataLossError (the recording does not hold the position), ClosedError (the driver is gone); `failure` is its
    kind.
    Thread rule: calls are serialised; one polling thread.
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        recording_id: int,
        live_channel: str | ChannelUri,
        live_stream_id: int,
        replay_channel: str | ChannelUri,
        replay_stream_id: int,
        start_position: int | StartPosition = StartPosition.FROM_LIVE,
        aeron_dir: str | os.PathLike[str] | None = None,
        on_live_joined: OnEvent | None = None,
        on_live_left: OnEvent | None = None,
        on_error: OnPersistentError | None = None,
        **settings: Unpack[ControlSettings],
    ) -> None:
        control = ControlOptions(**settings)
        supplier = Supplier(control.credentials)
        self._listener = Callbacks(
            on_live_joined=on_live_joined,
            on_live_left=on_live_left,
            on_stream_error=on_error and (lambda result, code, text: on_error(error(result, text=text, code=code))),
            on_challenge=supplier.on_challenge,
        )
        options = ffi.new("as_persistent_options *")
        lib.as_persistent_options_init(options)
        kept = control.fill(ffi.addressof(options, "archive"), self._listener, supplier)
        texts = [c_string(str(text)) for text in (live_channel, replay_channel)]
        options.live_channel, options.replay_channel = texts
        options.live_stream_id, options.replay_stream_id = live_stream_id, replay_stream_id
        options.recording_id, options.start_position = recording_id, int(start_position)
        options.listener.on_live_joined = lib.asp_on_live_joined
        options.listener.on_live_left = lib.asp_on_live_left
        options.listener.on_error = lib.asp_on_stream_error
        options.listener.context = self._listener.context
        self._client_of = ClientOf(client, aeron_dir=aeron_dir, name="persistent-subscription", timeout=control.timeout)
        self.client = self._client_of.client
        out = ffi.new("as_persistent_subscription **")
        try:
            with self._client_of.opening() as pointer:
                options.archive.client = pointer
                check(lib.as_persistent_subscription_open(options, out))
                super().__init__(
                    out[0],
                    lib.as_persistent_subscription_close,
                    self.client,
                    poll=lib.as_persistent_subscription_poll,
                    poll_columns=lib.as_persistent_subscription_poll_columns,
                )
            self._check = self._listener.check
        finally:
            kept.clear()

    def close(self) -> None:
        """Close the session with the archive, and the client if the subscription owns it."""
        super().close()
        self._client_of.close()

    @property
    def state(self) -> PersistentState:
        """Current state."""
        with self._use() as subscription:
            return PersistentState(lib.as_persistent_subscription_get_state(subscription))

    @property
    def is_live(self) -> bool:
        """True while messages come from the live stream."""
        return self.state == PersistentState.LIVE

    @property
    def is_replaying(self) -> bool:
        """True while messages come from the recording."""
        return self.state in {PersistentState.REPLAY, PersistentState.ATTEMPT_SWITCH}

    @property
    def failure(self) -> PersistentFailure | None:
        """Reason of the permanent failure, None without one."""
        with self._use() as subscription:
            reason = lib.as_persistent_subscription_failure(subscription)
        return PersistentFailure(reason) if reason else None

    @property
    def position(self) -> Position | StartPosition:
        """Where the next message begins; another process can resume there."""
        with self._use() as subscription:
            position = lib.as_persistent_subscription_position(subscription)
        return Position(position) if position >= 0 else StartPosition(position)

    def poll(self, handler: MessageHandler, limit: int = 256) -> int:
        """Run a step, then as `Subscription.poll`."""
        try:
            return super().poll(handler, limit)
        finally:
            self._listener.reraise()

    def __repr__(self) -> str:
        return f"<PersistentSubscription{' closed' if self._pointer is None else ''}>"
