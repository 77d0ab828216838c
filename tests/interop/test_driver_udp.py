"""Goal: over UDP, a stock driver cannot tell the driver under test from its own, in either direction.

Method: one driver of each kind, a stock client on each. Streams of every kind of channel go from the one to the other;
what arrived is compared by count, length and CRC with what Python computes. With loss, the driver under test drops a
tenth of what comes in, so that naks and retransmits of both sides are at work.
"""

# ruff: noqa: PLR0917 - fixtures are arguments
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.udp import raw
from tests.kit import dirs, native, stock, stock_c
from tests.kit.cnc import Cnc
from tests.kit.payload import expected
from tests.kit.ports import free_port
from tests.kit.wait import wait_until

TIMEOUT_MS = 20_000
SIZES = [100, 1376, 3000, 8, 0, 5, 8000]
COUNT = 3000
RECEIVER_POSITION = 5  # type of counter

SETTINGS = {
    "aeron.term.buffer.length": "128k",
    "aeron.timer.interval": "100ms",
    "aeron.publication.linger.timeout": "500ms",
    "aeron.client.liveness.timeout": "5s",
}
LOSSY = {
    "aeron.udp.channel.incoming.interceptors": "loss",
    "aeron.udp.channel.transport.bindings.loss.args": "rate=0.1|seed=4711|recv-msg-mask=0xf",
}

Opened = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A driver's directory and a stock client of it."""

    directory: Path
    client: Any


@pytest.fixture(scope="module")
def ours_dir() -> Iterator[Path]:
    with dirs.fresh("ours") as aeron_dir, native.driver(aeron_dir, SETTINGS):
        yield aeron_dir


@pytest.fixture(scope="module")
def lossy_dir() -> Iterator[Path]:
    with dirs.fresh("lossy") as aeron_dir, native.driver(aeron_dir, {**SETTINGS, **LOSSY}):
        yield aeron_dir


@pytest.fixture(scope="module")
def lossy_ahead_dir() -> Iterator[Path]:
    ahead = {"aeron.spark.driver.nak.ahead": "true"}
    with dirs.fresh("lossy-ahead") as aeron_dir, native.driver(aeron_dir, {**SETTINGS, **LOSSY, **ahead}):
        yield aeron_dir


@pytest.fixture(scope="module")
def theirs_dir() -> Iterator[Path]:
    with dirs.fresh("theirs") as aeron_dir, stock.driver(aeron_dir, threading="SHARED", settings=SETTINGS):
        yield aeron_dir


@pytest.fixture(scope="module")
def stock_c_dir() -> Iterator[Path]:
    with dirs.fresh("stock-c") as aeron_dir, stock_c.driver(aeron_dir, SETTINGS):
        yield aeron_dir


@pytest.fixture(params=["ours-to-stock", "stock-to-ours", "ours-to-stock_c", "stock_c-to-ours"])
def sides(request: pytest.FixtureRequest, peer: Any, opened: Opened) -> tuple[Side, Side]:
    """Who publishes, who subscribes."""
    publisher, subscriber = request.param.split("-to-")
    return _side(publisher, request, peer, opened), _side(subscriber, request, peer, opened)


def _side(name: str, request: pytest.FixtureRequest, peer: Any, opened: Opened) -> Side:
    directory = request.getfixturevalue({"ours": "ours_dir", "stock": "theirs_dir", "stock_c": "stock_c_dir"}[name])
    return Side(directory=directory, client=opened(peer.client(str(directory))))


def assert_read(reading: Any, stream_key: int, count: int, sizes: list[int]) -> None:
    """All of the messages arrived, in order and byte for byte."""
    assert reading.awaitEnd(TIMEOUT_MS), f"{reading.seen()} of {count} messages came"
    want = expected(stream_key, count, sizes)
    assert (reading.count(), reading.bytes(), reading.crc()) == (want.count, want.length, want.crc)


def exchange(
    sides: tuple[Side, Side], stream: int, opened: Opened, publish_to: str, subscribe_to: str, count: int = COUNT
) -> None:
    publisher, subscriber = sides
    reading = opened(opened(subscriber.client.subscription(subscribe_to, stream)).read(count, None))
    publication = opened(publisher.client.exclusivePublication(publish_to, stream))
    assert publication.awaitConnected(TIMEOUT_MS)
    publication.publish(stream, 0, count, SIZES, TIMEOUT_MS)
    assert_read(reading, stream, count, SIZES)


@pytest.mark.parametrize("params", ["", "|term-length=64k|mtu=8k|so-sndbuf=64k", "|linger=0s|eos=false"])
def test_unicast(sides: tuple[Side, Side], stream: int, opened: Opened, params: str) -> None:
    endpoint = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    exchange(sides, stream, opened, endpoint + params, endpoint)


@pytest.mark.parametrize("options", ["cc=cubic", "rcv-wnd=16k", "reliable=true|tether=false", "gtag=7"])
def test_options_of_subscriptions(sides: tuple[Side, Side], stream: int, opened: Opened, options: str) -> None:
    endpoint = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    exchange(sides, stream, opened, endpoint, f"{endpoint}|{options}")


def test_ipv6(sides: tuple[Side, Side], stream: int, opened: Opened) -> None:
    endpoint = f"aeron:udp?endpoint=[::1]:{free_port()}"
    exchange(sides, stream, opened, endpoint, endpoint)


@pytest.mark.parametrize("flow", ["", "|fc=min", "|fc=max", "|fc=tagged,g:7/1"])
def test_multicast(sides: tuple[Side, Side], stream: int, opened: Opened, flow: str) -> None:
    channel = f"aeron:udp?endpoint=224.20.30.39:{free_port()}|interface=127.0.0.1"
    exchange(sides, stream, opened, channel + flow, channel + "|gtag=7")


@pytest.mark.parametrize("flow", ["", "|fc=min,g:/1"])
def test_dynamic_destinations(sides: tuple[Side, Side], stream: int, opened: Opened, flow: str) -> None:
    control = f"control=127.0.0.1:{free_port()}|control-mode=dynamic"
    exchange(
        sides,
        stream,
        opened,
        f"aeron:udp?{control}{flow}",
        f"aeron:udp?endpoint=127.0.0.1:{free_port()}|{control}",
    )


def test_manual_destinations(sides: tuple[Side, Side], stream: int, opened: Opened) -> None:
    publisher, subscriber = sides
    endpoints = [f"aeron:udp?endpoint=127.0.0.1:{free_port()}" for _ in range(2)]
    readings = [opened(opened(subscriber.client.subscription(one, stream)).read(COUNT, None)) for one in endpoints]
    publication = opened(publisher.client.exclusivePublication("aeron:udp?control-mode=manual|fc=min,g:/2", stream))
    for one in endpoints:
        publication.raw().addDestination(one)
    assert publication.awaitConnected(TIMEOUT_MS)
    publication.publish(stream, 0, COUNT, SIZES, TIMEOUT_MS)
    for reading in readings:
        assert_read(reading, stream, COUNT, SIZES)


def test_multi_destination_subscription(sides: tuple[Side, Side], stream: int, opened: Opened) -> None:
    publisher, subscriber = sides
    endpoint = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    subscription = opened(subscriber.client.subscription("aeron:udp?control-mode=manual", stream))
    subscription.raw().addDestination(endpoint)
    reading = opened(subscription.read(COUNT, None))
    publication = opened(publisher.client.exclusivePublication(endpoint, stream))
    assert publication.awaitConnected(TIMEOUT_MS)
    publication.publish(stream, 0, COUNT, SIZES, TIMEOUT_MS)
    assert_read(reading, stream, COUNT, SIZES)


def test_the_end_of_a_stream(sides: tuple[Side, Side], stream: int, opened: Opened) -> None:
    publisher, subscriber = sides
    endpoint = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    subscription = opened(subscriber.client.subscription(endpoint, stream))
    reading = opened(subscription.read(10, None))
    publication = publisher.client.exclusivePublication(endpoint, stream)
    assert publication.awaitConnected(TIMEOUT_MS)
    publication.publish(stream, 0, 10, SIZES, TIMEOUT_MS)
    assert_read(reading, stream, 10, SIZES)
    session = publication.raw().sessionId()
    publication.close()
    wait_until(lambda: subscription.raw().imageBySessionId(session) is None, 20, "the image to go")
    wait_until(
        lambda: (
            not any(c.type_id == 2 and f" {session} {stream} " in c.label for c in Cnc(publisher.directory).counters())
        ),
        20,
        "the publisher's driver to let go of the stream",
    )


def test_spies_read_what_is_sent(sides: tuple[Side, Side], stream: int, opened: Opened) -> None:
    endpoint = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    here, there = (side.client for side in sides)
    spy = opened(opened(here.subscription(f"aeron-spy:{endpoint}", stream)).read(COUNT, None))
    remote = opened(opened(there.subscription(endpoint, stream)).read(COUNT, None))
    publication = opened(here.exclusivePublication(endpoint, stream))
    assert publication.awaitConnected(TIMEOUT_MS)
    wait_until(lambda: spy.seen() >= 0, 10, "the spy")
    publication.publish(stream, 0, COUNT, SIZES, TIMEOUT_MS)
    assert_read(remote, stream, COUNT, SIZES)
    assert_read(spy, stream, COUNT, SIZES)


@pytest.mark.parametrize(
    ("ours", "is_publisher"), [("lossy_dir", True), ("lossy_dir", False), ("lossy_ahead_dir", False)]
)
@pytest.mark.parametrize(
    ("other", "kind"),
    [("theirs_dir", "unicast"), ("stock_c_dir", "unicast"), ("stock_c_dir", "multicast"), ("theirs_dir", "dynamic")],
)
def test_loss_is_made_good(
    request: pytest.FixtureRequest,
    peer: Any,
    stream: int,
    opened: Opened,
    ours: str,
    is_publisher: bool,
    other: str,
    kind: str,
) -> None:
    lossy, theirs = (
        Side(directory=directory, client=opened(peer.client(str(directory))))
        for directory in (request.getfixturevalue(ours), request.getfixturevalue(other))
    )
    endpoint = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    group = f"aeron:udp?endpoint=224.20.30.51:{free_port()}|interface=127.0.0.1"
    control = f"control=127.0.0.1:{free_port()}|control-mode=dynamic"
    publish_to, subscribe_to = {
        "unicast": (endpoint, endpoint),
        "multicast": (group, group),
        "dynamic": (f"aeron:udp?{control}", f"{endpoint}|{control}"),
    }[kind]
    count = COUNT if kind == "unicast" else COUNT // 4  # members of a group ask late, so that one may do for all
    exchange((lossy, theirs) if is_publisher else (theirs, lossy), stream, opened, publish_to, subscribe_to, count)


def test_drivers_tell_each_other_their_names(peer: Any, stream: int, opened: Opened) -> None:
    ours_at, theirs_at = (f"127.0.0.1:{free_port()}" for _ in range(2))
    quick = {
        **SETTINGS,
        "aeron.driver.resolver.self.resolution.interval": "100ms",
        "aeron.driver.resolver.neighbor.resolution.interval": "200ms",
    }
    ours = {
        **quick,
        "aeron.name.resolver.supplier": "driver",
        "aeron.driver.resolver.name": "ours",
        "aeron.driver.resolver.interface": ours_at,
        "aeron.driver.resolver.bootstrap.neighbor": theirs_at,
    }
    theirs = {**quick, "aeron.driver.resolver.name": "theirs", "aeron.driver.resolver.interface": theirs_at}
    with (
        dirs.fresh("names-ours") as ours_dir,
        dirs.fresh("names-theirs") as theirs_dir,
        stock.driver(theirs_dir, threading="SHARED", settings=theirs),
        native.driver(ours_dir, ours),
    ):
        here, there = (opened(peer.client(str(directory))) for directory in (ours_dir, theirs_dir))
        for directory in (ours_dir, theirs_dir):
            wait_until(
                lambda directory=directory: any(c.type_id == 16 and c.value >= 1 for c in Cnc(directory).counters()),
                20,
                f"the driver in {directory} to hear of the other",
            )
        for publisher, subscriber, name in ((here, there, "theirs"), (there, here, "ours")):
            port = free_port()
            reading = opened(
                opened(subscriber.subscription(f"aeron:udp?endpoint=127.0.0.1:{port}", stream)).read(100, None)
            )
            publication = opened(publisher.exclusivePublication(f"aeron:udp?endpoint={name}:{port}", stream))
            assert publication.awaitConnected(TIMEOUT_MS)
            publication.publish(stream, 0, 100, SIZES, TIMEOUT_MS)
            assert_read(reading, stream, 100, SIZES)
        assert [Cnc(directory).value_of("Invalid packets") for directory in (ours_dir, theirs_dir)] == [0, 0]


def test_a_rejected_image(sides: tuple[Side, Side], stream: int, opened: Opened) -> None:
    publisher, subscriber = sides
    endpoint = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    subscription = opened(subscriber.client.subscription(endpoint, stream))
    publication = opened(publisher.client.exclusivePublication(endpoint, stream))
    assert publication.awaitConnected(TIMEOUT_MS)
    wait_until(subscription.image, 10, "the image")
    subscription.image().reject("no thanks")
    wait_until(
        lambda: any("no thanks" in event for event in publisher.client.events()),
        20,
        "the publisher to hear of it",
        state=lambda: list(publisher.client.events()),
    )


UNBEGUN = 9  # images that may wait for data, six of them of one host


@pytest.mark.parametrize("publisher", ["theirs_dir", "stock_c_dir"])
def test_a_stock_publisher_answers_the_challenge_beside_a_flood(
    request: pytest.FixtureRequest, peer: Any, stream: int, opened: Opened, publisher: str
) -> None:
    """Forged SETUPs hold what strangers may have: a source that answers an RTTM finds room, one that does not finds none."""
    settings = {
        **SETTINGS,
        "aeron.spark.driver.images.unbegun.max": str(UNBEGUN),
        "aeron.image.liveness.timeout": "60s",
    }
    port = free_port()
    endpoint = f"aeron:udp?endpoint=127.0.0.1:{port}"
    with dirs.fresh("flooded") as flooded, native.driver(flooded, settings), raw.Socket() as forger:
        subscriber = opened(peer.client(str(flooded)))
        reading = opened(opened(subscriber.subscription(endpoint, stream)).read(COUNT, None))

        def images() -> int:
            return sum(c.type_id == RECEIVER_POSITION for c in Cnc(flooded).counters())

        def flood() -> bool:
            for session in range(1, 2 * UNBEGUN):
                forger.send(
                    raw.Setup(session_id=session, stream_id=stream, initial_term_id=0, active_term_id=0),
                    to=("127.0.0.1", port),
                )
            return any(isinstance(frame, raw.Rttm) for came in forger.drain() for frame in came.frames)

        wait_until(flood, 20, "the driver to challenge who has no room")
        taken = images()
        assert taken == UNBEGUN * 2 // 3
        flood()
        publication = opened(
            opened(peer.client(str(request.getfixturevalue(publisher)))).exclusivePublication(endpoint, stream)
        )
        assert publication.awaitConnected(TIMEOUT_MS)
        publication.publish(stream, 0, COUNT, SIZES, TIMEOUT_MS)
        assert_read(reading, stream, COUNT, SIZES)
        assert images() == taken + 1
