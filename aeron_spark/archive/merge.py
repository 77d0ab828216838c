"""Replays a recording into a subscription, then switches the subscription to the live stream."""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import pyarrow as pa

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.check import c_string, check, error, nanoseconds
from aeron_spark._native.handle import Handle
from aeron_spark.archive.client import Archive
from aeron_spark.batch import DEFAULT_BYTES, DEFAULT_COLUMNS, DEFAULT_ROWS, BatchFiller
from aeron_spark.channel import ChannelUri
from aeron_spark.subscription import Image, MessageHandler, Subscription


class MergeState(IntEnum):
    """State of a `ReplayMerge`."""

    RESOLVE_REPLAY_PORT = 0
    GET_RECORDING_POSITION = 1
    REPLAY = 2
    CATCHUP = 3
    ATTEMPT_LIVE_JOIN = 4
    MERGED = 5
    FAILED = 6
    CLOSED = 7


class ReplayMerge(Handle):
    """One image that begins in a recording and continues live, without a repeated or missing message.

    `subscription`: UDP with `control-mode=manual` and no destination yet, preferably with the recorded session's
    `session-id`. `replay_channel`: where the archive replays to, without endpoint, with the recorded session's
    `session-id`. `replay_destination`: the endpoint for it, `aeron:udp?endpoint=host:0` for a free port.
    `live_destination`: that of the live stream. Poll it until `is_merged`; then keep polling it, or poll the `image`
    alone. `progress_timeout` is in seconds.

    Every poll raises once the merge failed: WaitTimeoutError without progress, ClosedError when archive or image are
    gone, PeerError with the archive's text. Thread rule: one thread, which may use the archive client in between.
    """

    def __init__(
        self,
        archive: Archive,
        subscription: Subscription,
        *,
        replay_channel: str | ChannelUri,
        replay_destination: str | ChannelUri,
        live_destination: str | ChannelUri,
        recording_id: int,
        start_position: int = 0,
        progress_timeout: float = 5.0,
    ) -> None:
        self._archive = archive
        self._subscription = subscription
        self._image: Image | None = None
        self._batches = BatchFiller()
        options = ffi.new("as_replay_merge_options *")
        lib.as_replay_merge_options_init(options)
        texts = [c_string(str(text)) for text in (replay_channel, replay_destination, live_destination)]
        options.replay_channel, options.replay_destination, options.live_destination = texts
        options.recording_id, options.start_position = recording_id, start_position
        options.progress_timeout_ns = nanoseconds(progress_timeout)
        out = ffi.new("as_replay_merge **")
        with archive._use() as archive_pointer, subscription._use() as subscription_pointer:
            options.archive, options.subscription = archive_pointer, subscription_pointer
            check(lib.as_replay_merge_open(options, out))
            super().__init__(out[0], lib.as_replay_merge_close, archive)
        # Closing either of the two closes this merge first.
        subscription._children[self._number] = self

    @property
    def state(self) -> MergeState:
        """Current state."""
        with self._use() as merge:
            return MergeState(lib.as_replay_merge_get_state(merge))

    @property
    def is_merged(self) -> bool:
        """True once only the live stream is received."""
        return self.state == MergeState.MERGED

    @property
    def has_failed(self) -> bool:
        """True once it failed permanently."""
        return self.state == MergeState.FAILED

    @property
    def is_live_added(self) -> bool:
        """True once the live stream is received too."""
        with self._use() as merge:
            return bool(lib.as_replay_merge_is_live_added(merge))

    @property
    def image(self) -> Image | None:
        """The merged stream, None until the replay's image is available; it stays open when the merge is closed."""
        if self._image is None:
            with self._use() as merge:
                pointer = lib.as_replay_merge_image(merge)
                if pointer:
                    self._image = Image(self._subscription, lib.as_image_retain(pointer))
                    self._image._batches = self._batches  # it gives what a poll of this kept back
        return self._image

    def do_work(self) -> int:
        """Run one step towards the merge; 0 when there was no work. Polls call this too."""
        count = ffi.new("int32_t *")
        self._call(lib.as_replay_merge_do_work, count)
        return int(count[0])

    def poll(self, handler: MessageHandler, limit: int = 256) -> int:
        """Run a step, then as `Image.poll`."""
        self.do_work()
        image = self.image
        return 0 if image is None else image.poll(handler, limit)

    def poll_batch(
        self,
        timeout: float = 0.0,
        *,
        columns: Sequence[str] = DEFAULT_COLUMNS,
        row_capacity: int = DEFAULT_ROWS,
        byte_capacity: int = DEFAULT_BYTES,
    ) -> pa.RecordBatch:
        """Run steps, then return whole messages as one record batch, GIL released: as `Image.poll_batch`."""
        return self._batches.poll(
            lambda raw, wait_ns: self._call(lib.as_replay_merge_poll_columns, raw, wait_ns),
            timeout,
            columns=columns,
            row_capacity=row_capacity,
            byte_capacity=byte_capacity,
        )

    def wait_merged(self, handler: MessageHandler, timeout: float) -> None:
        """Poll into `handler` until merged; WaitTimeoutError after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while not self.is_merged:
            count = self.poll(handler)
            if time.monotonic() >= deadline and not self.is_merged:
                text = f"{self!r} has not merged within {timeout} s: {self.state.name}"
                raise error(lib.AS_E_TIMEOUT, text=text, code=0)
            if count == 0:
                time.sleep(0.001)

    def _call(self, function: Any, *arguments: Any) -> None:
        with self._archive._use(), self._use() as merge:
            self._archive._callbacks.check(function(merge, *arguments))
