"""Scenarios 13 and 28-34: multi-destination cast, multicast, and the flow control of groups."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import pytest

from aeron_spark.errors import AeronError
from tests.conformance.udp import raw
from tests.conformance.udp.conftest import Drivers, Open
from tests.conformance.udp.driver import (
    FC_RECEIVERS,
    IMPATIENT,
    RETRANSMIT_OVERFLOW,
    RETRANSMITS_SENT,
    RETRANSMITTED_BYTES,
    SND_LIMIT,
    STATUS_RECEIVED,
    Driver,
    Publishing,
    await_value,
)
from tests.kit.ports import free_port
from tests.kit.wait import wait_until

# What asks any publication behind a control address for a SETUP.
WILDCARD = raw.Status(flags=raw.SEND_SETUP)


class Cast:
    """A multi-destination publication and sockets that know its control address."""

    def __init__(self, driver: Driver, opened: ExitStack, params: str = "control-mode=dynamic") -> None:
        self.driver = driver
        self._opened = opened
        self.control = ("127.0.0.1", free_port())
        self.name = f"127.0.0.1:{self.control[1]}"
        self.stream = opened.enter_context(
            Publishing(driver, f"aeron:udp?control={self.name}|term-length=64k|{params}")
        )

    def socket(self, host: str = "127.0.0.1", port: int = 0) -> raw.Socket:
        """A socket that sends to the control address."""
        return self._opened.enter_context(raw.Socket(host, port, to=self.control))

    def status(self, q: raw.Socket, position: int = 0, *, window: int = 16384, receiver: int = 1, **more: int) -> None:
        """Send an SM and wait until the driver counted it."""
        before = self.driver.system(STATUS_RECEIVED)
        q.send(self.stream.status(position, window, receiver_id=receiver, **more), to=self.control)
        self.driver.await_system(STATUS_RECEIVED, before + 1)

    @property
    def destinations(self) -> int:
        """`mdc-num-dest`."""
        return self.driver.destinations(self.name)

    def await_destinations(self, count: int) -> None:
        """Wait for `mdc-num-dest`."""
        await_value(lambda: self.destinations, count, "mdc-num-dest")


@pytest.fixture(scope="module", autouse=True)
def silent_destination(drivers: Drivers) -> Iterator[Future[float]]:
    """Scenario 28, in a thread and against another driver: 5 s that no setting shortens pass while the others run."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(_silent_destination, drivers(IMPATIENT))


def _silent_destination(driver: Driver) -> float:
    with ExitStack() as opened:
        cast = Cast(driver, opened)
        first, second = cast.socket(), cast.socket()
        first.send(WILDCARD)
        last = time.monotonic()
        second.send(replace(WILDCARD, receiver_id=2))
        cast.await_destinations(2)
        for q in (first, second):
            setup, _ = q.expect(raw.Setup)
            assert setup.flags == raw.SETUP_GROUP
            assert setup.session_id == cast.stream.session_id
        while cast.destinations == 2:
            assert time.monotonic() - last < 20
            first.send(WILDCARD)
            first.collect(0.2)
        assert cast.destinations == 1
        return time.monotonic() - last


def test_s13_resend_pool_of_groups_is_bounded(driver: Driver, opened: ExitStack) -> None:
    """With max-resend=2, of three disjoint NAKs at a time two are served, and the overflow count grows by one."""
    cast = Cast(driver, opened, "control-mode=dynamic|max-resend=2")
    q = cast.socket()
    q.send(WILDCARD)
    cast.stream.connect(q, window=32768)
    frames = cast.stream.feed(q, 10)
    for _ in range(50):
        counts = driver.system(RETRANSMITS_SENT), driver.system(RETRANSMIT_OVERFLOW)
        for index in (0, 4, 8):
            q.send(cast.stream.nak(frames[index].term_offset, raw.MTU), to=cast.control)
        await_value(
            lambda: driver.system(RETRANSMITS_SENT) + driver.system(RETRANSMIT_OVERFLOW), sum(counts) + 3, "NAKs served"
        )
        came = [one.frame for one in q.collect(0.03) if not one.frame.is_heartbeat]
        assert driver.system(RETRANSMITS_SENT) - counts[0] == len(came)
        assert driver.system(RETRANSMIT_OVERFLOW) - counts[1] == 3 - len(came)
        if came == [frames[0], frames[4]]:
            return
        assert came == [frames[0], frames[4], frames[8]]  # the third came 10 ms late
    raise AssertionError("three NAKs never came within 10 ms")


def test_s09_resend_is_bounded_by_rrwm(driver: Driver, opened: ExitStack) -> None:
    """A resend is at most the window times rrwm: here one half of a term."""
    cast = Cast(driver, opened, "control-mode=dynamic|fc=max,rrwm:1")
    q = cast.socket()
    q.send(WILDCARD)
    cast.stream.connect(q, window=32768)
    frames = cast.stream.feed(q, 27)
    before = driver.system(RETRANSMITTED_BYTES)
    q.send(cast.stream.nak(0, raw.TERM_LENGTH), to=cast.control)
    wait_until(lambda: driver.system(RETRANSMITTED_BYTES) > before, 10, "the resend")
    came = [frame for one in q.collect(0.1) for frame in one.frames if frame.length]
    assert came == frames[: raw.TERM_LENGTH // 2 // raw.MTU]


def test_s29_host_is_no_part_of_a_destination(driver: Driver, opened: ExitStack) -> None:
    """The same receiver id and port from another address is no new destination, and nothing is sent there."""
    cast = Cast(driver, opened)
    q = cast.socket()
    q.send(WILDCARD)
    cast.await_destinations(1)
    elsewhere = cast.socket("127.0.0.2", q.port)
    before = driver.system(STATUS_RECEIVED)
    elsewhere.send(WILDCARD)
    driver.await_system(STATUS_RECEIVED, before + 1)
    q.drain()
    q.expect(raw.Setup)
    elsewhere.silence(0.15)
    assert cast.destinations == 1


def test_s30_manual_destinations_are_the_listed_ones(driver: Driver, opened: ExitStack) -> None:
    """Data reaches both listed destinations; an SM from an unlisted one adds nothing."""
    cast = Cast(driver, opened, "control-mode=manual")
    listed, unlisted = [cast.socket(), cast.socket()], cast.socket()
    for q in listed:
        cast.stream.publication.add_destination(f"aeron:udp?endpoint={q.endpoint}")
    cast.await_destinations(2)
    for q in listed:
        assert q.expect(raw.Setup)[0].flags == raw.SETUP_GROUP
    before = driver.system(STATUS_RECEIVED)
    unlisted.send(WILDCARD)
    driver.await_system(STATUS_RECEIVED, before + 1)
    cast.status(listed[0])
    cast.stream.await_connected()
    cast.stream.offer(100)
    for q in listed:
        data, _ = q.expect(raw.Data, lambda one: not one.is_heartbeat)
        assert data.payload == b"\x01" * 100
    unlisted.silence(0.0)
    assert cast.destinations == 2
    cast.stream.publication.remove_destination(f"aeron:udp?endpoint={listed[1].endpoint}")
    cast.await_destinations(1)
    listed[1].drain()
    listed[0].expect(raw.Data, lambda one: one.is_heartbeat and one.term_offset == 160)
    listed[1].silence(0.15)


def test_s31_min_follows_the_slowest(driver: Driver, opened: ExitStack) -> None:
    """With fc=min the limit is the slowest receiver's, until that one is silent for the receiver timeout (here 0.8 s)."""
    cast = Cast(driver, opened, "control-mode=dynamic|fc=min,t:800ms")
    ahead, behind = cast.socket(), cast.socket()
    session = cast.stream.session_id
    cast.status(ahead, receiver=1)
    cast.status(behind, receiver=2)
    driver.await_stream(FC_RECEIVERS, session, 2)
    silent = time.monotonic()
    cast.status(ahead, 4096, receiver=1)
    cast.stream.await_counter(SND_LIMIT, 16384)
    while cast.stream.counter(FC_RECEIVERS) == 2:
        assert time.monotonic() - silent < 20
        cast.status(ahead, 4096, receiver=1)
        ahead.collect(0.1)
    assert time.monotonic() - silent >= 0.7
    cast.status(ahead, 4096, receiver=1)  # had the machine stood still, it would have been silent as long
    driver.await_stream(SND_LIMIT, session, 4096 + 16384)


def test_s32_min_may_want_a_group(driver: Driver, opened: ExitStack) -> None:
    """With fc=min,g:/2 one receiver does not connect, two do."""
    cast = Cast(driver, opened, "control-mode=dynamic|fc=min,g:/2")
    cast.status(cast.socket(), receiver=1)
    driver.await_stream(FC_RECEIVERS, cast.stream.session_id, 1)
    assert not cast.stream.publication.is_connected
    cast.status(cast.socket(), receiver=2)
    cast.stream.await_connected()
    cast.stream.await_counter(FC_RECEIVERS, 2)


def test_s33_tagged_counts_its_own(driver: Driver, opened: ExitStack) -> None:
    """With fc=tagged,g:5/1 only a receiver of tag 5 connects."""
    cast = Cast(driver, opened, "control-mode=dynamic|fc=tagged,g:5/1")
    cast.status(cast.socket(), receiver=1)
    cast.status(cast.socket(), receiver=2, tag=6)
    assert not cast.stream.publication.is_connected
    cast.stream.await_counter(FC_RECEIVERS, 0)
    cast.status(cast.socket(), receiver=3, tag=5)
    cast.stream.await_connected()
    cast.stream.await_counter(FC_RECEIVERS, 1)


def test_s34_multicast_goes_to_odd_addresses(driver: Driver, sockets: Open, opened: ExitStack) -> None:
    """Data goes to the odd group, SMs are taken on the even one above, and not by the socket that sends."""
    port = free_port()
    q = sockets(port=port, join="224.20.30.39")
    stream = opened.enter_context(
        Publishing(driver, f"aeron:udp?endpoint=224.20.30.39:{port}|interface=127.0.0.1|term-length=64k")
    )
    setup, datagram = q.expect(raw.Setup)
    assert setup.flags == raw.SETUP_GROUP
    before = driver.system(STATUS_RECEIVED)
    q.send(stream.status(), to=datagram.source)
    q.silence(0.05, raw.Data)
    q.send(stream.status(), to=("224.20.30.40", port))
    stream.await_connected()
    q.expect(raw.Data, lambda one: one.is_heartbeat)
    driver.await_system(STATUS_RECEIVED, before + 1)
    stream.offer(100)
    assert q.expect(raw.Data, lambda one: not one.is_heartbeat)[0].payload == b"\x01" * 100
    with pytest.raises(AeronError, match=r"(?i)odd"):
        driver.client.add_publication(f"aeron:udp?endpoint=224.20.30.38:{port}|interface=127.0.0.1", 1001)


def test_s28_dynamic_destinations_come_and_go(silent_destination: Future[float]) -> None:
    """Two sockets that ask get SETUPs of the group; the one silent for more than 5 s is dropped."""
    assert silent_destination.result(60) >= 5
