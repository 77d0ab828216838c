"""Goal: a stream at its maximum position, after 2^31 terms, goes on and ends as any other, between our driver and stock's.

Method: one driver of each kind, our client on each; the stream begins in its last term and is filled up. Images live for a
second without heartbeats, and heartbeats of several seconds follow. Each driver's counters say what it made of them.
"""

# ruff: noqa: PLR0917 - fixtures are arguments
from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import aeron_spark
from aeron_spark.types import Outcome
from tests.kit import dirs, native, stock_c
from tests.kit.cnc import Cnc
from tests.kit.payload import payloads
from tests.kit.ports import free_port
from tests.kit.wait import wait_until

TERM = 64 * 1024
MAX_POSITION = TERM << 31
LAST_TERM = "init-term-id=7|term-id=-2147483642|term-offset=0|term-length=64k"
HEARTBEATS = 30  # ten a second
SENDER_POSITION, RECEIVER_POSITION = 2, 5  # types of counters
SETTINGS = {
    "aeron.timer.interval": "100ms",
    "aeron.image.liveness.timeout": "1s",
    "aeron.publication.linger.timeout": "2s",
}
FAULTS = (
    "Errors: ",
    "Invalid packets",
    "Status Messages rejected",
    "Flow control under runs",
    "Flow control over runs",
)

Opened = Callable[[Any], Any]


@pytest.fixture(scope="module")
def drivers() -> Iterator[dict[str, Path]]:
    with (
        dirs.fresh("ours") as ours,
        dirs.fresh("stock-c") as theirs,
        native.driver(ours, SETTINGS),
        stock_c.driver(theirs, SETTINGS),
    ):
        yield {"ours": ours, "stock_c": theirs}


def counters_of(directory: Path, type_id: int, stream: int) -> set[int]:
    """Registration ids of a stream's counters of one type."""
    found = Cnc(directory).counters()
    return {c.registration_id for c in found if c.type_id == type_id and f" {stream} " in c.label}


@pytest.mark.parametrize("add", ["add_publication", "add_exclusive_publication"])
@pytest.mark.parametrize(("publisher", "subscriber"), [("ours", "stock_c"), ("stock_c", "ours")])
def test_a_stream_stays_and_ends_at_its_maximum_position(
    drivers: dict[str, Path], stream: int, opened: Opened, publisher: str, subscriber: str, add: str
) -> None:
    sending, receiving = Cnc(drivers[publisher]), Cnc(drivers[subscriber])
    before = [cnc.value_of(fault) for cnc in (sending, receiving) for fault in FAULTS]
    here, there = (opened(aeron_spark.Client(drivers[side])) for side in (publisher, subscriber))
    endpoint = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    subscription = opened(there.add_subscription(endpoint, stream))
    publication = opened(getattr(here, add)(f"{endpoint}|{LAST_TERM}", stream))
    publication.wait_connected(10)
    image = opened(subscription.wait_image(10))
    bodies = payloads(stream, 1000, [1000])
    sent: list[bytes] = []
    read: list[bytes] = []

    def poll() -> None:
        read.extend(value.as_py() for value in subscription.poll_batch(0.0).column("value"))

    def fill() -> bool:
        poll()
        body = bytes(next(bodies))
        while isinstance(outcome := publication.offer(body), Outcome) and outcome is not Outcome.MAX_POSITION_EXCEEDED:
            poll()
        sent.extend([body] if not isinstance(outcome, Outcome) else [])
        return isinstance(outcome, Outcome)

    wait_until(fill, 20, "the publication to reach its maximum position")

    def is_read() -> bool:
        poll()
        return bool(image.position == MAX_POSITION)

    wait_until(is_read, 20, "the rest", state=lambda: image.position)
    assert read == sent
    images = counters_of(drivers[subscriber], RECEIVER_POSITION, stream)
    assert len(images) == 1

    def hear(count: int) -> bool:
        images.update(counters_of(drivers[subscriber], RECEIVER_POSITION, stream))
        return (sending.value_of("Heartbeats sent") or 0) >= count

    heartbeats = (sending.value_of("Heartbeats sent") or 0) + HEARTBEATS
    wait_until(lambda: hear(heartbeats), 20, "heartbeats")
    connected = publication.is_connected
    publication.close()

    def ended() -> bool:
        images.update(counters_of(drivers[subscriber], RECEIVER_POSITION, stream))
        return not counters_of(drivers[publisher], SENDER_POSITION, stream)

    wait_until(ended, 20, "the publisher's driver to let go of the stream")
    after = [cnc.value_of(fault) for cnc in (sending, receiving) for fault in FAULTS]
    assert (connected, len(images), after) == (True, 1, before)
    wait_until(lambda: not counters_of(drivers[subscriber], RECEIVER_POSITION, stream), 20, "the image to go")
