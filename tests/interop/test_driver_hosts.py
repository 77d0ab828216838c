"""Goal: streams between two hosts go on, or end and come back, as those of a stock driver do when the network changes.

Method: two network namespaces with a cable between them (tests.kit.hosts), a driver under test on the one and a driver of
either kind on the other, stock clients of both. The cable is cut and mended, addresses change, datagrams are longer than
what the cable takes. Needs root and iproute2.
"""

# ruff: noqa: PLR0917 - fixtures are arguments
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.interop.test_driver_behaviour import connected
from tests.interop.test_driver_udp import SIZES, assert_read
from tests.kit import dirs, hosts, native, stock
from tests.kit.cnc import Cnc
from tests.kit.hosts import Host
from tests.kit.subject import Subject
from tests.kit.wait import wait_until

TIMEOUT_MS = 20_000
_ports = itertools.count(24_000)

SETTINGS = {
    "aeron.term.buffer.length": "128k",
    "aeron.timer.interval": "100ms",
    # A machine may stand still for less.
    "aeron.image.liveness.timeout": "5s",
    "aeron.publication.linger.timeout": "300ms",
    "aeron.publication.connection.timeout": "5s",
    "aeron.driver.reresolution.check.interval": "200ms",
    "aeron.client.liveness.timeout": "5s",
    "aeron.threading.mode": "SHARED",
}
Opened = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A host, the directory of the driver on it, and a stock client of that."""

    host: Host
    directory: Path
    client: Any


@pytest.fixture(scope="module", params=["subject-to-stock", "stock-to-subject"])
def sides(request: pytest.FixtureRequest, subject: Subject, peer: Any) -> Iterator[tuple[Side, Side]]:
    """The publishing and the receiving host."""

    def start(kind: str, host: Host) -> Side:
        directory = stack.enter_context(dirs.fresh(kind))
        launch = subject.driver if kind == "subject" else None
        stack.enter_context(
            stock.driver(directory, settings=SETTINGS, prefix=host.prefix)
            if launch is None
            else launch(directory, SETTINGS, prefix=host.prefix)
        )
        client = peer.client(str(directory))
        stack.callback(client.close)
        return Side(host=host, directory=directory, client=client)

    publisher, subscriber = request.param.split("-to-")
    with hosts.two() as (one, other), ExitStack() as stack:
        yield start(publisher, one), start(subscriber, other)


@pytest.fixture
def unicast() -> str:
    """A channel to the receiving host that no other test uses: a port is taken for as long as an image of it lingers."""
    return f"aeron:udp?endpoint=10.77.0.2:{next(_ports)}"


@pytest.fixture
def multicast() -> str:
    """A channel to a group that both hosts can join."""
    return f"aeron:udp?endpoint=224.20.30.49:{next(_ports)}|interface=10.77.0.0/24|ttl=2"


def transfer(sides: tuple[Side, Side], stream: int, opened: Opened, publish_to: str, subscribe_to: str) -> None:
    publisher, subscriber = sides
    reading = opened(opened(subscriber.client.subscription(subscribe_to, stream)).read(1000, None))
    publication = connected(opened(publisher.client.exclusivePublication(publish_to, stream)))
    publication.publish(stream, 0, 1000, SIZES, TIMEOUT_MS)
    assert_read(reading, stream, 1000, SIZES)


@pytest.mark.parametrize("more", ["", "|fc=min,g:/1", "|fc=max"])
def test_multicast_between_hosts(
    sides: tuple[Side, Side], stream: int, opened: Opened, multicast: str, more: str
) -> None:
    transfer(sides, stream, opened, multicast + more, multicast)


@pytest.mark.parametrize("mtu", ["1408", "1472", "8k", "65504|so-sndbuf=128k|term-length=1m"])
def test_datagrams_longer_than_the_cable_takes(
    sides: tuple[Side, Side], stream: int, opened: Opened, unicast: str, mtu: str
) -> None:
    """IP takes them apart: segmentation by the kernel is not for those, so the driver must send them one by one."""
    transfer(sides, stream, opened, f"{unicast}|mtu={mtu}", unicast)


def test_dynamic_destinations_between_hosts(
    sides: tuple[Side, Side], stream: int, opened: Opened, unicast: str
) -> None:
    control = f"control=10.77.0.1:{next(_ports)}|control-mode=dynamic"
    transfer(sides, stream, opened, f"aeron:udp?{control}", f"{unicast}|{control}")


@pytest.mark.parametrize(("kind", "cut_at"), [("unicast", "subscriber"), ("multicast", "publisher")])
def test_a_cable_that_is_cut_and_mended(
    sides: tuple[Side, Side], stream: int, opened: Opened, request: pytest.FixtureRequest, kind: str, cut_at: str
) -> None:
    publisher, subscriber = sides
    channel = request.getfixturevalue(kind)
    host = publisher.host if cut_at == "publisher" else subscriber.host
    subscription = opened(subscriber.client.subscription(channel, stream))
    publication = connected(opened(publisher.client.exclusivePublication(channel, stream)))
    first = wait_until(subscription.image, 10, "the image")
    reading = opened(subscription.read(10, None))
    publication.publish(stream, 0, 10, SIZES, TIMEOUT_MS)
    assert_read(reading, stream, 10, SIZES)
    host.cut_cable()
    try:
        wait_until(lambda: not publication.raw().isConnected(), 20, "the publication to be alone")
        wait_until(first.isClosed, 20, "the image to go")
    finally:
        host.mend_cable()
    again = wait_until(subscription.image, 20, "the image to come back")
    assert again.sessionId() == first.sessionId()
    assert again.joinPosition() == publication.raw().position()
    rest = opened(subscription.read(100, None))
    publication.publish(stream, 0, 100, SIZES, TIMEOUT_MS)
    assert_read(rest, stream, 100, SIZES)


def test_a_cut_that_is_mended_in_time_loses_nothing(
    subject: Subject, peer: Any, stream: int, opened: Opened, unicast: str
) -> None:
    """With the timeouts that drivers have by default: 10 s are in time."""
    settings = {"aeron.term.buffer.length": "128k", "aeron.threading.mode": "SHARED"}
    with (
        hosts.two() as (one, other),
        dirs.fresh("one") as here_dir,
        dirs.fresh("other") as there_dir,
        subject.driver(here_dir, settings, prefix=one.prefix),
        native.driver(there_dir, settings, prefix=other.prefix),
    ):
        here, there = (opened(peer.client(str(directory))) for directory in (here_dir, there_dir))
        subscription = opened(there.subscription(unicast, stream))
        reading = opened(subscription.read(1000, None))
        publication = connected(opened(here.exclusivePublication(unicast, stream)))
        publication.publish(stream, 0, 500, [100], TIMEOUT_MS)
        wait_until(lambda: reading.seen() == 500, 20, "what was published before")
        for host in (one, other):
            first = 500 if host is one else 510
            host.cut_cable()
            for index in range(first, first + 10):
                assert publication.publishOnce(stream, index, 100) > 0
            host.mend_cable()
            wait_until(
                lambda first=first: reading.seen() == first + 10, 20, "them to come after all", state=reading.seen
            )  # type: ignore[misc]
        publication.publish(stream, 520, 480, [100], TIMEOUT_MS)
        assert_read(reading, stream, 1000, [100])


def test_a_host_that_changes_its_address_is_found_by_its_name(
    subject: Subject, peer: Any, stream: int, opened: Opened
) -> None:
    if subject.is_java:
        return  # A JVM keeps the addresses of names for 30 s.
    with (
        hosts.two() as (one, other),
        dirs.fresh("one") as here_dir,
        dirs.fresh("other") as there_dir,
        subject.driver(here_dir, SETTINGS, prefix=one.prefix),
        native.driver(there_dir, SETTINGS, prefix=other.prefix),
    ):
        port = next(_ports)
        one.name_host("there.test", other.address)
        here, there = (opened(peer.client(str(directory))) for directory in (here_dir, there_dir))
        subscription = opened(there.subscription(f"aeron:udp?endpoint=0.0.0.0:{port}", stream))
        publication = connected(opened(here.exclusivePublication(f"aeron:udp?endpoint=there.test:{port}", stream)))
        other.change_address("10.77.0.3")
        wait_until(lambda: not publication.raw().isConnected(), 20, "the publication to be alone")
        one.name_host("there.test", "10.77.0.3")
        connected(publication)
        wait_until(subscription.image, 20, "the image to come back")
        reading = opened(subscription.read(100, None))
        publication.publish(stream, 0, 100, SIZES, TIMEOUT_MS)
        assert_read(reading, stream, 100, SIZES)
        wait_until(lambda: Cnc(here_dir).value_of("Resolution changes") == 1, 10, "the change to be counted")
