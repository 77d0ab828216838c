"""Goal: when either side of a UDP stream is killed with -9, the other side notices, continues, and reconnects after a restart.

Method: a driver under test and one of either kind, on loopback, with short timeouts; publishers, subscribers and drivers are
killed while a stream runs and started again, with the session id that they had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.interop.test_driver_behaviour import connected, transfer
from tests.interop.test_driver_ipc import wait_event
from tests.kit import dirs, native, stock
from tests.kit.cnc import Cnc
from tests.kit.ports import free_port
from tests.kit.processes import Process
from tests.kit.subject import Subject
from tests.kit.wait import wait_until

SESSION = 4711
PUBLISHER_LIMIT, SENDER_POSITION, PUBLISHER_POSITION = 1, 2, 12  # types of counters
SETTINGS = {
    "aeron.term.buffer.length": "128k",
    "aeron.threading.mode": "SHARED",
    "aeron.timer.interval": "100ms",
    # A machine may stand still for less than what counts as a death.
    "aeron.client.liveness.timeout": "5s",
    "aeron.publication.unblock.timeout": "6s",
    "aeron.image.liveness.timeout": "5s",
    "aeron.publication.linger.timeout": "300ms",
    "aeron.publication.connection.timeout": "5s",
}

Opened = Callable[[Any], Any]


class Machine:
    """A driver that can be killed and started again in its directory, and its clients."""

    def __init__(self, kind: str, start: Callable[[Path], Process], directory: Path, peer: Any) -> None:
        self.kind = kind
        self._start, self._peer, self._clients = start, peer, ExitStack()
        self.directory = directory
        self.process = start(directory)
        self.client = self._connect()

    def _connect(self) -> Any:
        client = self._peer.client(str(self.directory))
        self._clients.callback(client.close)
        return client

    def restart(self) -> None:
        """Kill the driver, and start it again with a client of its own."""
        self.process.kill()
        self._clients.close()
        self.process = self._start(self.directory)
        self.client = self._connect()

    def close(self) -> None:
        """End all of it."""
        self._clients.close()
        self.process.stop()


@pytest.fixture(params=["subject-to-ours", "stock-to-subject"])
def machines(request: pytest.FixtureRequest, subject: Subject, peer: Any) -> Iterator[tuple[Machine, Machine]]:
    """Who publishes, who subscribes."""
    start: dict[str, Callable[[Path], Process]] = {
        "subject": lambda directory: subject.driver(directory, SETTINGS),
        "ours": lambda directory: native.driver(directory, SETTINGS),
        "stock": lambda directory: stock.driver(directory, settings=SETTINGS),
    }
    with ExitStack() as stack:
        pair = []
        for kind in request.param.split("-to-"):
            pair.append(Machine(kind, start[kind], stack.enter_context(dirs.fresh(kind)), peer))
            stack.callback(pair[-1].close)
        yield pair[0], pair[1]


@pytest.fixture
def channel() -> str:
    """An endpoint of a test's own."""
    return f"aeron:udp?endpoint=127.0.0.1:{free_port()}"


def is_pressed_back(machine: Machine, stream: int) -> bool:
    """Whether the publisher of the stream waits for its subscriber, and so is not in the midst of a message."""
    values = {c.type_id: c.value for c in Cnc(machine.directory).counters() if f" {stream} " in c.label}
    return values[PUBLISHER_POSITION] >= values[PUBLISHER_LIMIT]


def test_a_publisher_that_is_killed(
    machines: tuple[Machine, Machine], stream: int, opened: Opened, channel: str
) -> None:
    publishing, subscribing = machines
    subscription = opened(subscribing.client.subscription(channel, stream))
    again = f"{channel}|session-id={SESSION}"
    options = ["--dir", publishing.directory, "--channel", again, "--stream", stream, "--warmup", 10, "--count", 10**9]
    victim = Process("publisher", stock.peers(["ipc-pub", *options]))
    reading = opened(subscription.read(1000, None))
    assert reading.awaitEnd(30_000), victim.report()
    if publishing.kind == "stock":
        # It never frees an exclusive publication whose client died between the claim of a frame and its commit.
        wait_until(lambda: is_pressed_back(publishing, stream), 10, "the publisher to wait")
    victim.kill()
    rest = opened(subscription.read(10**9, None))  # so that the stream can come to its end
    wait_event(subscribing.client, f"unavailable-image session={SESSION} stream={stream} ", timeout=30)
    rest.close()
    wait_until(
        lambda: (
            not any(
                f" {stream} " in c.label for c in Cnc(publishing.directory).counters() if c.type_id == SENDER_POSITION
            )
        ),
        30,
        "the driver to let go of the stream",
    )
    publication = connected(opened(publishing.client.exclusivePublication(again, stream)))
    transfer(publication, [opened(subscription.read(300, None))], stream)


def test_a_subscriber_that_is_killed(
    machines: tuple[Machine, Machine], stream: int, opened: Opened, channel: str
) -> None:
    publishing, subscribing = machines
    publication = opened(publishing.client.exclusivePublication(channel, stream))
    options = ["--dir", subscribing.directory, "--channel", channel, "--stream", stream]
    victim = Process("subscriber", stock.peers(["ipc-sub", *options]))
    connected(publication)
    assert publication.publishOnce(stream, 0, 100) > 0
    victim.kill()
    wait_until(lambda: not publication.raw().isConnected(), 30, "the publication to be alone")
    subscription = opened(subscribing.client.subscription(channel, stream))
    transfer(connected(publication), [opened(subscription.read(300, None))], stream)


def test_a_publishing_driver_that_is_killed(
    machines: tuple[Machine, Machine], stream: int, opened: Opened, channel: str
) -> None:
    publishing, subscribing = machines
    subscription = opened(subscribing.client.subscription(channel, stream))
    again = f"{channel}|session-id={SESSION}"
    transfer(
        connected(publishing.client.exclusivePublication(again, stream)), [opened(subscription.read(300, None))], stream
    )
    first = subscription.image()
    publishing.restart()
    wait_event(subscribing.client, f"unavailable-image session={SESSION} stream={stream} ", timeout=30)
    publication = connected(opened(publishing.client.exclusivePublication(again, stream)))
    second = wait_until(subscription.image, 20, "the image of the same session")
    assert first.isClosed()
    assert second.sessionId() == SESSION
    transfer(publication, [opened(subscription.read(300, None))], stream)


def test_a_receiving_driver_that_is_killed(
    machines: tuple[Machine, Machine], stream: int, opened: Opened, channel: str
) -> None:
    publishing, subscribing = machines
    publication = opened(publishing.client.exclusivePublication(channel, stream))
    reading = opened(subscribing.client.subscription(channel, stream).read(300, None))
    transfer(connected(publication), [reading], stream)
    end = publication.raw().position()
    subscribing.restart()
    wait_until(lambda: not publication.raw().isConnected(), 30, "the publication to be alone")
    subscription = opened(subscribing.client.subscription(channel, stream))
    transfer(connected(publication), [opened(subscription.read(300, None))], stream)
    assert wait_until(subscription.image, 10, "the image").joinPosition() == end
