"""A recording published again by its archive, received as messages or batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from aeron_spark._native._lib import ffi, lib
from aeron_spark.batch import DEFAULT_COLUMNS
from aeron_spark.errors import ClosedError
from aeron_spark.subscription import Image, Subscription
from aeron_spark.types import NULL_VALUE, SessionId


class ReplayLength(IntEnum):
    """How a replay ends, where it is not a number of bytes."""

    FOLLOW = -1
    """At the recording's end; with an active recording, when that is stopped."""
    CURRENT_END = -2
    """Where the recording is now."""


class Replay:
    """A running replay: its subscription, and its messages in order. Made by `Archive.replay`."""

    def __init__(self, subscription: Subscription, replay_session_id: int) -> None:
        self.subscription = subscription
        self.replay_session_id = replay_session_id

    @property
    def session_id(self) -> SessionId:
        """Session id of the replayed stream: the low 32 bits of the replay session id, signed."""
        return SessionId((self.replay_session_id + 2**31) % 2**32 - 2**31)

    def wait_image(self, timeout: float = 10.0) -> Image:
        """Block until the replayed stream is there; WaitTimeoutError after `timeout` seconds."""
        return self.subscription.wait_image(timeout, self.session_id)

    def batches(self, timeout: float = 10.0, *, columns: Sequence[str] = DEFAULT_COLUMNS) -> Iterator[pa.RecordBatch]:
        """Messages as record batches until the replay ends.

        `timeout` (seconds) is how long to wait for the stream to appear. A replay that follows an active recording gives
        batches as they come, and has no end until the recording stops.
        """
        with self.wait_image(timeout) as image:
            while True:
                ended = image.is_ended
                try:
                    batch = image.poll_batch(0.1, columns=columns)
                except ClosedError:
                    return
                if batch.num_rows:
                    yield batch
                elif ended:
                    return

    def close(self) -> None:
        """Unsubscribe, which lets the archive end the replay; again is harmless."""
        self.subscription.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def replay_params(position: int | None, length: int | ReplayLength, limit_counter_id: int | None) -> Any:
    """C `as_replay_params` of the arguments of a replay."""
    params = ffi.new("as_replay_params *")
    lib.as_replay_params_init(params)
    params.position = NULL_VALUE if position is None else position
    params.length = int(length)
    params.bounding_limit_counter_id = NULL_VALUE if limit_counter_id is None else limit_counter_id
    return params
