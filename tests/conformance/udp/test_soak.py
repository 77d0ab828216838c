"""Scenario 68: two drivers, one of them ours and the other stock, under loss both ways.

Method: our driver loses a tenth of what it sends and of what it gets, frames of every kind. Two streams run at a time, one each
way, for SOAK_S seconds (5; `make conformance` takes a minute), of messages of random lengths that are known by their number.
Every message must arrive as it was sent, no image may go before the end, and nothing may have been an invalid packet; that
something was lost in each direction is read from the counters of naks and retransmits.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest

from aeron_spark.client import Client
from aeron_spark.publication import Publication
from aeron_spark.subscription import Subscription
from tests.conformance.udp.driver import BASE_SETTINGS, INVALID_PACKETS, NAKS_SENT, PEER, RETRANSMITS_SENT, start
from tests.kit import dirs, native, stock
from tests.kit.cnc import Cnc
from tests.kit.ports import free_port

SECONDS = float(os.environ.get("SOAK_S", "5"))
SEED = 68
LOSSY = {
    **{f"aeron.udp.channel.{way}.interceptors": "loss" for way in ("incoming", "outgoing")},
    "aeron.udp.channel.transport.bindings.loss.args": f"rate=0.1|seed={SEED}|recv-msg-mask=0xffff",
}
STREAM = 68


def _messages() -> list[bytes]:
    rng = random.Random(SEED)
    return [
        rng.randbytes(rng.choice((rng.randint(0, 100), rng.randint(0, 1400), rng.randint(0, 8000)))) for _ in range(512)
    ]


MESSAGES = _messages()


class Side:
    """A driver and a client that remembers which images it lost."""

    def __init__(self, aeron_dir: Path) -> None:
        self.lost: list[int] = []
        self.client = Client(
            aeron_dir, timeout=30, on_unavailable_image=lambda image: self.lost.append(image.stream_id)
        )
        self._cnc = Cnc(aeron_dir)

    def system(self, system_id: int) -> int:
        """Value of a system counter."""
        key = system_id.to_bytes(4, "little")
        return next(one.value for one in self._cnc.counters() if one.type_id == 0 and one.key[:4] == key)


@pytest.fixture
def sides() -> Iterator[tuple[Side, Side]]:
    """Ours with loss, and a stock one."""
    with ExitStack() as opened:
        own_dir, other_dir = (opened.enter_context(dirs.fresh("soak")) for _ in range(2))
        opened.enter_context(native.driver(own_dir, {**BASE_SETTINGS, **LOSSY}))
        other = stock.driver(other_dir, threading="SHARED") if PEER == "ours" else start(other_dir, BASE_SETTINGS)
        opened.enter_context(other)
        both = Side(own_dir), Side(other_dir)
        for side in both:
            opened.enter_context(side.client)
        yield both


class Flow(threading.Thread):
    """Publishes until a time is over, and counts."""

    def __init__(self, publication: Publication) -> None:
        super().__init__(daemon=True)
        self.publication = publication
        self.sent: int | None = None
        self.failure: Exception | None = None

    def run(self) -> None:
        """Publish whole rounds of MESSAGES in pieces of 16."""
        pieces = [pa.array(MESSAGES[at : at + 16], pa.binary()) for at in range(0, len(MESSAGES), 16)]
        sent = 0
        try:
            self.publication.wait_connected(30)
            deadline = time.monotonic() + SECONDS
            while time.monotonic() < deadline or sent < len(MESSAGES):
                self.publication.offer_batch(pieces[sent // 16 % len(pieces)], timeout=30)
                sent += 16
        except Exception as failure:  # noqa: BLE001 - told by the main thread
            self.failure = failure
        self.sent = sent


def _read(subscription: Subscription, received: int) -> int:
    for message in subscription.poll_batch(0.01, columns=("value",)).column(0).to_pylist():
        assert message == MESSAGES[received % len(MESSAGES)], f"message {received} is another one"
        received += 1
    return received


@pytest.mark.interop
def test_s68_loss_both_ways(sides: tuple[Side, Side]) -> None:
    """10 % of all frames lost both ways between a stock driver and ours, in both roles: all bytes equal, no image lost."""
    ways = []
    with ExitStack() as opened:
        for publisher, subscriber in (sides, sides[::-1]):
            channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}|term-length=128k"
            subscription = opened.enter_context(subscriber.client.add_subscription(channel, STREAM))
            flow = Flow(opened.enter_context(publisher.client.add_exclusive_publication(channel, STREAM)))
            ways.append((flow, subscription))
            flow.start()
        received = [0, 0]
        quiet_since = time.monotonic()
        while any(flow.sent is None or flow.sent > got for (flow, _), got in zip(ways, received, strict=True)):
            before = list(received)
            received = [_read(subscription, got) for (_, subscription), got in zip(ways, received, strict=True)]
            if received != before:
                quiet_since = time.monotonic()
            assert time.monotonic() - quiet_since < 60, (
                f"nothing comes: {received} of {[flow.sent for flow, _ in ways]}"
            )
        assert [flow.failure for flow, _ in ways] == [None, None]
        assert received == [flow.sent for flow, _ in ways]
        assert min(received) >= len(MESSAGES)
        assert [side.lost for side in sides] == [[], []]
        assert [side.system(INVALID_PACKETS) for side in sides] == [0, 0]
        for side in sides:
            assert side.system(NAKS_SENT) > 10
            assert side.system(RETRANSMITS_SENT) > 10
        print(f"{SECONDS} s: {received} messages of ours, of theirs")
