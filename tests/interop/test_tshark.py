"""Wireshark's dissector of Aeron, which others wrote, finds nothing wrong on the wire between two of our drivers.

Method: two hosts with a cable between them (tests.kit.hosts), our driver on each, a capture at the receiving one. For each
kind of channel, and with loss on the way in, tshark reads the capture with sequence and stream analysis on: each datagram is
Aeron to it, none is malformed, lengths are those of their types, and each retransmission answers a NAK of the capture.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from aeron_spark import Client, Publication, Subscription
from tests.kit import dirs, hosts, native, tshark
from tests.kit.captures import Sniffer
from tests.kit.payload import Digest, expected, payloads
from tests.kit.wait import wait_until

pytestmark = pytest.mark.interop

SIZES = [100, 1376, 3000, 8, 0, 5, 8000]
COUNT = 210  # terms of 64 KiB rotate six times
SETTINGS = {
    "aeron.term.buffer.length": "64k",
    "aeron.publication.linger.timeout": "300ms",
    "aeron.timer.interval": "100ms",
    "aeron.CubicCongestionControl.measureRtt": "true",
}
LOSSY = {
    "aeron.udp.channel.incoming.interceptors": "loss",
    "aeron.udp.channel.transport.bindings.loss.args": "rate=0.1|seed=4711|recv-msg-mask=0xf",
}
#: What the dissector calls wrong about the length of a frame.
INVALID = "||".join(
    f"aeron.analysis.invalid_{kind}_length" for kind in ("pad", "data", "nak", "sm", "rtt", "err", "setup")
)
_ports = itertools.count(24_100)


class Between:
    """A client on each of two hosts, and the capture of what the second one's interface sees."""

    def __init__(self, publisher: Client, subscriber: Client, sniffer: Sniffer) -> None:
        self.publisher, self.subscriber, self.sniffer = publisher, subscriber, sniffer

    def transfer(self, publish_to: str, subscribe_to: str) -> None:
        """Messages of all sizes from host to host, with the stream's end."""
        with self.subscriber.add_subscription(subscribe_to, 10) as subscription:
            with self.publisher.add_exclusive_publication(publish_to, 10) as publication:
                publication.wait_connected(20)
                self.exchange(publication, subscription)
            wait_until(lambda: not subscription.is_connected, 20, "the end of the stream")

    def exchange(self, publication: Publication, subscription: Subscription) -> None:
        got = Digest()
        for first in range(0, COUNT, len(SIZES)):
            publication.offer_batch(list(payloads(10, len(SIZES), SIZES, first=first)))
            while got.count < first + len(SIZES):
                for message in subscription.poll_batch(timeout=20).column("value").to_pylist():
                    got.add(message)
        assert got == expected(10, COUNT, SIZES)


@pytest.fixture(scope="module")
def start() -> Iterator[Callable[[dict[str, str]], Between]]:
    """Drivers and clients on two hosts; the second driver has the settings."""
    with ExitStack() as stack:
        one, other = stack.enter_context(hosts.two())
        for host in (one, other):
            # Else the kernel shows several datagrams to the capture as one.
            host.ip("link", "set", "eth", "gso_max_segs", "1")
        near = stack.enter_context(dirs.fresh("publishes"))
        stack.enter_context(native.driver(near, SETTINGS, prefix=one.prefix))
        publisher = stack.enter_context(Client(near))
        sniffer = stack.enter_context(Sniffer(other))

        def subscriber(settings: dict[str, str]) -> Between:
            far = stack.enter_context(dirs.fresh("subscribes"))
            stack.enter_context(native.driver(far, {**SETTINGS, **settings}, prefix=other.prefix))
            sniffer.packets()
            return Between(publisher, stack.enter_context(Client(far)), sniffer)

        yield subscriber


@pytest.fixture(scope="module")
def between(start: Callable[[dict[str, str]], Between]) -> Between:
    return start({})


@pytest.fixture(scope="module")
def lossy(start: Callable[[dict[str, str]], Between]) -> Between:
    return start(LOSSY)


def judge(capture: Path) -> None:
    """What holds of every capture."""
    assert tshark.table(capture, "frame.number", where="udp && !aeron && !icmp") == []
    assert tshark.table(capture, "frame.number", where=f"_ws.malformed||{INVALID}") == []
    assert unexplained(capture) == []


FRAME = ("term_id", "term_offset", "frame_length")


def unexplained(capture: Path) -> list[tuple[str, int, int]]:
    """Number, term and offset of frames that are there again although no NAK before them asks for them.

    By the dissector's fields and not by its flag of retransmissions: once a retransmission was seen in a term that ends, it
    takes all of the next term for retransmissions (Wireshark 4.0).
    """
    fields = [f"aeron.{kind}.{name}" for kind in ("data", "pad") for name in FRAME]
    rows = tshark.table(
        capture, "frame.number", "aeron.nak.term_id", "aeron.nak.term_offset", "aeron.nak.length", *fields,
        where="aeron.nak || aeron.data || aeron.pad",
    )  # fmt: skip
    seen: set[tuple[int, int]] = set()
    asked: list[tuple[int, int, int]] = []
    found = []
    for number, nak_term, nak_offset, nak_length, *columns in rows:
        if nak_term:
            asked.append((int(nak_term), int(nak_offset), int(nak_offset) + int(nak_length)))
        for kind in (columns[:3], columns[3:]):
            for term, offset, length in zip(*(map(int, filter(None, text.split(","))) for text in kind), strict=True):
                if not length:
                    continue  # a heartbeat
                is_asked = any(term == of and first < offset + length and offset < end for of, first, end in asked)
                if (term, offset) in seen and not is_asked:
                    found.append((number, term, offset))
                seen.add((term, offset))
    return found


KINDS = ("pad", "data", "heartbeat", "nak", "sm", "setup", "rtt")


def kinds(capture: Path) -> set[str]:
    """Kinds of frames that there are."""
    rows = tshark.table(capture, *(f"aeron.{kind}" for kind in KINDS), where="aeron")
    return {kind for row in rows for kind, found in zip(KINDS, row, strict=True) if found}


def channels(kind: str) -> tuple[str, str]:
    """Where to publish to, and what to subscribe to."""
    port = next(_ports)
    unicast = f"aeron:udp?endpoint=10.77.0.2:{port}"
    group = f"aeron:udp?endpoint=224.20.30.49:{port}|interface=10.77.0.0/24|ttl=2"
    control = f"control=10.77.0.1:{next(_ports)}|control-mode=dynamic"
    return {
        "unicast": (unicast, unicast),
        "short datagrams": (f"{unicast}|mtu=256", unicast),
        "multicast": (group, group),
        "minimum of a group": (f"{group}|fc=min,g:/1", f"{group}|gtag=7"),
        "dynamic destinations": (f"aeron:udp?{control}", f"{unicast}|{control}"),
        "congestion control": (unicast, f"{unicast}|cc=cubic"),
    }[kind]


@pytest.mark.parametrize(
    "kind",
    ["unicast", "short datagrams", "multicast", "minimum of a group", "dynamic destinations", "congestion control"],
)
def test_nothing_on_the_wire_is_wrong(between: Between, kind: str, tmp_path: Path) -> None:
    between.sniffer.packets()
    between.transfer(*channels(kind))
    capture = between.sniffer.save(tmp_path / "capture.pcap")
    judge(capture)
    found = kinds(capture)
    assert {"pad", "data", "heartbeat", "sm", "setup"} <= found
    assert ("rtt" in found) == (kind == "congestion control")


def test_each_retransmission_answers_a_nak(lossy: Between, tmp_path: Path) -> None:
    lossy.sniffer.packets()
    lossy.transfer(*channels("unicast"))
    capture = lossy.sniffer.save(tmp_path / "capture.pcap")
    judge(capture)
    assert "nak" in kinds(capture)
    assert tshark.table(capture, "frame.number", where="aeron.analysis.rx")
