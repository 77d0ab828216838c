"""The receive side: a subscription of the driver under test, and the stream that a raw socket P publishes to it.

What it offers:

- `Subscribing`: a subscription with its messages. `await_image`, `await_gone`, `read(count)`.
- `Source`: a stream of P. `setup`, `data`, `pad`, `heartbeat` make frames, `send` sends one datagram of them; `join` sends
  a SETUP and waits for image and first status message. A message's bytes tell its position.
- `statuses(datagrams)`, `naks(datagrams)`: the frames of these kinds.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Sequence
from typing import Any

from aeron_spark.closing import Closing
from aeron_spark.types import Header, ImageInfo
from tests.conformance.udp import raw
from tests.conformance.udp.driver import Driver
from tests.kit.wait import wait_until

INITIAL_TERM = 7
TIMEOUT_S = 15.0

_sessions = itertools.count(70_001)
_PATTERN = bytes(range(251)) * 300


def content(position: int, length: int) -> bytes:
    """What a message at a position holds."""
    start = position // 32 % 251
    return _PATTERN[start : start + length]


def statuses(datagrams: Iterable[raw.Datagram]) -> list[raw.Status]:
    """The status messages among them."""
    return [one.frame for one in datagrams if type(one.frame) is raw.Status]


def naks(datagrams: Iterable[raw.Datagram]) -> list[raw.Nak]:
    """The NAKs among them."""
    return [one.frame for one in datagrams if type(one.frame) is raw.Nak]


class Subscribing(Closing):
    """A subscription of the driver under test and the messages that it read."""

    def __init__(self, driver: Driver, channel: str, stream_id: int) -> None:
        self.subscription = driver.client.add_subscription(channel, stream_id)
        self.messages: list[tuple[int, bytes]] = []
        self.headers: list[Header] = []

    def await_image(self, session_id: int) -> ImageInfo:
        """What the image of a session is, waited for."""
        with self.subscription.wait_image(TIMEOUT_S, session_id) as image:
            return image.info

    def image_id(self, session_id: int) -> int | None:
        """The correlation id of a session's image, None if there is none now."""
        image = self.subscription.image(session_id)
        if image is None:
            return None
        with image:
            return int(image.info.correlation_id)

    def has_image(self, session_id: int) -> bool:
        """Whether the session is there now."""
        return self.image_id(session_id) is not None

    def reject(self, session_id: int, reason: str) -> None:
        """Reject the image of a session."""
        with self.subscription.wait_image(TIMEOUT_S, session_id) as image:
            image.reject(reason)

    def await_gone(self, session_id: int, timeout: float = TIMEOUT_S) -> float:
        """Wait until the session's image is unavailable; returns when that was seen (s, the clock of datagrams)."""
        wait_until(lambda: not self.has_image(session_id), timeout, "the image to become unavailable")
        return time.time()

    def poll(self, limit: int = 256) -> int:
        """Read everything available: `messages` gets the end position and the bytes of each."""
        return self.subscription.poll(self._on_message, limit)

    def read(self, count: int) -> list[tuple[int, bytes]]:
        """Wait until `count` messages in all were read, and none more."""
        wait_until(
            lambda: self.poll(count - len(self.messages)) * 0 or len(self.messages) >= count,
            TIMEOUT_S,
            f"{count} messages",
            state=lambda: len(self.messages),
        )
        return self.messages

    def expect(self, *messages: raw.Data, source: Source) -> None:
        """Exactly these frames were read, in order, since the beginning."""
        assert self.read(len(messages)) == [
            (source.position_of(one) + raw.aligned(raw.DATA_HEADER + len(one.payload)), one.payload) for one in messages
        ]

    def _on_message(self, data: bytes, header: Header) -> None:
        self.messages.append((int(header.position), data))
        self.headers.append(header)

    def close(self) -> None:
        """Close the subscription; closed already is fine."""
        self.subscription.close()


class Source:
    """A stream that a raw socket publishes to an endpoint of the driver under test."""

    def __init__(
        self,
        p: raw.Socket,
        to: raw.Address,
        stream_id: int,
        *,
        session_id: int | None = None,
        initial_term_id: int = INITIAL_TERM,
        term_length: int = raw.TERM_LENGTH,
        mtu: int = raw.MTU,
    ) -> None:
        self.socket = p
        self.to = to
        self.stream_id = stream_id
        self.session_id = next(_sessions) if session_id is None else session_id
        self.initial_term_id = initial_term_id
        self.term_length = term_length
        self.mtu = mtu

    def _where(self, position: int) -> dict[str, Any]:
        term, offset = divmod(position, self.term_length)
        return {
            "session_id": self.session_id,
            "stream_id": self.stream_id,
            "term_id": raw.wrap32(self.initial_term_id + term),
            "term_offset": offset,
        }

    def position_of(self, frame: raw.Data | raw.Nak | raw.Status) -> int:
        """The stream position of a frame."""
        return raw.position(self.initial_term_id, frame.term_id, frame.term_offset, self.term_length)

    def setup(self, position: int = 0, **fields: Any) -> raw.Setup:
        """A SETUP at a position."""
        where = self._where(position)
        where["active_term_id"] = where.pop("term_id")
        return raw.Setup(
            initial_term_id=self.initial_term_id,
            **{"term_length": self.term_length, "mtu": self.mtu, **where, **fields},
        )

    def data(self, position: int, length: int, **fields: Any) -> raw.Data:
        """A whole message whose bytes encode its position; `length` is that of the frame, with header."""
        return raw.Data(payload=content(position, length - raw.DATA_HEADER), **self._where(position), **fields)

    def run(self, position: int, count: int, length: int) -> list[raw.Data]:
        """Messages one after the other."""
        return [self.data(position + index * raw.aligned(length), length) for index in range(count)]

    def pad(self, position: int, length: int) -> raw.Pad:
        """The rest of a term."""
        return raw.Pad(length=length, **self._where(position))

    def heartbeat(self, position: int, flags: int = raw.UNFRAGMENTED) -> raw.Data:
        """A heartbeat at a position."""
        return raw.Data(length=0, flags=flags, **self._where(position))

    def send(self, *frames: raw.Frame) -> float:
        """One datagram of these frames; returns when."""
        return self.socket.send(list(frames), self.to)

    def send_each(self, frames: Sequence[raw.Frame]) -> None:
        """One datagram for each."""
        for frame in frames:
            self.send(frame)

    def be_heard(self, position: int = 0) -> None:
        """Send 64 heartbeats: a driver may limit its answers in proportion to the received bytes."""
        self.send_each([self.heartbeat(position)] * 64)

    def is_mine(self, frame: raw.Status | raw.Nak | raw.Error | raw.Rttm | raw.ResponseSetup) -> bool:
        """Whether a frame is about this stream."""
        return (frame.session_id, frame.stream_id) == (self.session_id, self.stream_id)

    def status(self, *, flags: int | None = 0, timeout: float = TIMEOUT_S) -> tuple[raw.Status, raw.Datagram]:
        """The next status message of this stream with these flags (None: with any)."""
        return self.socket.expect(
            raw.Status, lambda one: self.is_mine(one) and flags in (None, one.flags), timeout=timeout
        )

    def await_status(self, position: int, *, flags: int | None = 0) -> raw.Datagram:
        """The next status message with this position."""
        return self.socket.expect(
            raw.Status,
            lambda one: self.is_mine(one) and flags in (None, one.flags) and self.position_of(one) == position,
            timeout=TIMEOUT_S,
        )[1]

    def nak(self) -> tuple[raw.Nak, raw.Datagram]:
        """The next NAK of this stream."""
        return self.socket.expect(raw.Nak, self.is_mine, timeout=TIMEOUT_S)

    def await_nak(self, position: int) -> tuple[raw.Nak, raw.Datagram]:
        """The first NAK to come for a gap that begins there."""
        return self.socket.expect(
            raw.Nak, lambda one: self.is_mine(one) and self.position_of(one) == position, timeout=TIMEOUT_S
        )

    def join(self, subscribing: Subscribing, position: int = 0, **fields: Any) -> raw.Status:
        """Send a SETUP, wait for image and first status message."""
        self.send(self.setup(position, **fields))
        subscribing.await_image(self.session_id)
        return self.status()[0]
