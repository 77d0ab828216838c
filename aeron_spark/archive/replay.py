"""A recording that its archive publishes again, received as messages or batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any

import pyarrow as pa

from aeron_spark._native._lib import ffi, lib
from aeron_spark.archive.control import or_null
from aeron_spark.batch import DEFAULT_COLUMNS, Batches, schema_of
from aeron_spark.closing import Closing
from aeron_spark.errors import ClosedError
from aeron_spark.subscription import Image, Subscription
from aeron_spark.types import SessionId


class ReplayLength(IntEnum):
    """How a replay ends, other than after a number of bytes."""

    FOLLOW = -1
    """At the recording's end; for an active recording, when it is stopped."""
    CURRENT_END = -2
    """At the position recorded so far."""


class Replay(Closing):
    """A running replay: its subscription, and its messages in order. Created by `Archive.replay`."""

    def __init__(self, subscription: Subscription, replay_session_id: int) -> None:
        self.subscription = subscription
        self.replay_session_id = replay_session_id

    @property
    def session_id(self) -> SessionId:
        """Session id of the replayed stream: the low 32 bits of the replay session id, signed."""
        return SessionId((self.replay_session_id + 2**31) % 2**32 - 2**31)

    def wait_image(self, timeout: float = 10.0) -> Image:
        """Block until the replayed stream's image is available; WaitTimeoutError after `timeout` seconds."""
        return self.subscription.wait_image(timeout, self.session_id)

    def batches(self, timeout: float = 10.0, *, columns: Sequence[str] = DEFAULT_COLUMNS) -> Batches:
        """Messages as record batches until the replay ends, also as an Arrow stream (see `aeron_spark.batch.Batches`).

        `timeout` (seconds) bounds the wait for the stream. A replay that follows an active recording yields batches as
        they arrive, and ends only when the recording stops. ClosedError when it ends before: stopped by a request,
        failed (then `Archive.poll` raises the archive's text), or its stream was lost.
        """
        return Batches(schema_of(columns, is_recorded=False), self._batches(timeout, columns))

    def _batches(self, timeout: float, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self.wait_image(timeout) as image:
            while True:
                ended = image.is_ended
                try:
                    batch = image.poll_batch(0.1, columns=columns)
                except ClosedError:
                    if image.is_ended:
                        break
                    raise
                if batch.num_rows:
                    yield batch
                elif ended:
                    break
            self._check_end(image)

    def _check_end(self, image: Image) -> None:
        end = image.end_of_stream_position
        if image.is_revoked:
            reason = "the archive ended it, asked to by a request or because it failed: Archive.poll raises why"
        elif end is None or image.position < end:
            reason = "its stream was lost: see whether archive and network are well, and go on from that position"
        else:
            return
        raise ClosedError(
            f"replay {self.replay_session_id} came to position {image.position} and not to its end: {reason}"
        )

    def close(self) -> None:
        """Unsubscribe, so that the archive ends the replay; repeated calls are harmless."""
        self.subscription.close()


def replay_params(
    position: int | None, length: int | ReplayLength, limit_counter_id: int | None, file_io_max_length: int | None
) -> Any:
    """C `as_replay_params` from the arguments of a replay."""
    params = ffi.new("as_replay_params *")
    lib.as_replay_params_init(params)
    params.position = or_null(position)
    params.length = int(length)
    params.bounding_limit_counter_id = or_null(limit_counter_id)
    params.file_io_max_length = or_null(file_io_max_length)
    return params
