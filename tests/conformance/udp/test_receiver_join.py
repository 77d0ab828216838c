"""Scenarios 37-40, 48, 55-58, 64 and 66: how a subscription gets its images."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from tests.conformance.udp import raw
from tests.conformance.udp.conftest import Drivers, Open, Subscribe
from tests.conformance.udp.driver import ERRORS, INVALID_PACKETS, LOCAL_ADDRESS, Driver, ours
from tests.conformance.udp.receiving import Source, Subscribing, statuses
from tests.kit.wait import wait_until


def test_s37_data_elicits_a_setup(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """DATA of an unknown session gets one SM that asks for its SETUP, to its source; another not before 1 s is over."""
    _, source = subscribe(driver, p)
    asked: list[raw.Datagram] = []
    while len(asked) < 2:
        source.send(source.data(0, 128))
        asked += p.collect(0.05)
    for datagram in asked:
        assert datagram.source == source.to
        assert datagram.frame == raw.Status(
            length=36,
            flags=raw.SEND_SETUP,
            session_id=source.session_id,
            stream_id=source.stream_id,
            receiver_id=datagram.frame.receiver_id,
        )
    assert asked[1].at - asked[0].at >= 0.95


def test_s38_an_ended_stream_elicits_nothing(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """A heartbeat with EOS of an unknown session gets no SM."""
    _, source = subscribe(driver, p)
    other = Source(p, source.to, source.stream_id)
    source.send(source.heartbeat(0, raw.EOS_HEARTBEAT))
    p.silence(0.3, raw.Status)
    other.send(other.heartbeat(0))
    source.send(source.heartbeat(0, raw.EOS_HEARTBEAT))
    other.status(flags=raw.SEND_SETUP)
    p.silence(0.3, raw.Status)


@pytest.mark.parametrize(("term_length", "window"), [(64 * 1024, 32 * 1024), (1024 * 1024, 128 * 1024)])
def test_s39_a_setup_makes_an_image(
    driver: Driver, p: raw.Socket, subscribe: Subscribe, term_length: int, window: int
) -> None:
    """An unsolicited SETUP makes an image at its position: first SM at once, then one every 200 ms."""
    start = 3 * term_length + 1024
    subscribing, source = subscribe(driver, p, term_length=term_length)
    source.send(source.setup(start))
    _, first = source.status()
    image = subscribing.await_image(source.session_id)
    assert image.join_position == start
    assert (image.term_length, image.mtu_length) == (term_length, raw.MTU)
    assert image.source_identity == p.endpoint
    source.be_heard(start)
    came = [first, *p.take(5)]
    raw.assert_period(came, 0.2)
    for datagram in came:
        assert datagram.frame == raw.Status(
            length=36,
            session_id=source.session_id,
            stream_id=source.stream_id,
            term_id=source.initial_term_id + 3,
            term_offset=1024,
            window=window,
            receiver_id=datagram.frame.receiver_id,
        )


def _assert_refused(driver: Driver, subscribing: Subscribing, source: Source, wrong: raw.Setup) -> None:
    def refused() -> int:
        # Aeron before 1.53 makes an error of what is an invalid packet.
        return driver.system(ERRORS) + driver.system(INVALID_PACKETS)

    before = refused()
    source.send(wrong)
    wait_until(lambda: refused() > before, 10, "an error or an invalid packet")
    assert not subscribing.has_image(source.session_id)


WRONG_MTU = pytest.mark.parametrize(("params", "mtu"), [("", 1400), ("", 65536), ("|rcv-wnd=2k", 4096)])


@WRONG_MTU
def test_s40_a_setup_that_can_not_be(
    driver: Driver, p: raw.Socket, subscribe: Subscribe, params: str, mtu: int
) -> None:
    """A SETUP with an MTU that is no multiple of 32, too large or beyond the window is refused, and makes no image."""
    subscribing, source = subscribe(driver, p, params)
    _assert_refused(driver, subscribing, source, source.setup(mtu=mtu))


@ours("a later SETUP is tried again; the Java driver takes the session for being made for ever", but=("stock-c",))
@WRONG_MTU
def test_s40_a_later_setup_that_can_be(
    driver: Driver, p: raw.Socket, subscribe: Subscribe, params: str, mtu: int
) -> None:
    """After a SETUP that made an error a valid one of the same session makes an image."""
    subscribing, source = subscribe(driver, p, params)
    _assert_refused(driver, subscribing, source, source.setup(mtu=mtu))
    source.send(source.setup())
    source.status(timeout=5)
    assert subscribing.await_image(source.session_id).mtu_length == raw.MTU


@ours("looks at the term's length and the position before it makes a log of them; stock drivers trust the SETUP")
@pytest.mark.parametrize(
    "wrong", [{"term_length": 100_000}, {"term_length": 32768}, {"term_offset": 48}, {"active_term_id": 6}]
)
def test_s40_a_setup_of_no_stream(driver: Driver, p: raw.Socket, subscribe: Subscribe, wrong: dict[str, int]) -> None:
    """A SETUP with a term length that is no power of two, or a position outside, is refused; then as above."""
    subscribing, source = subscribe(driver, p)
    _assert_refused(driver, subscribing, source, source.setup(**wrong))
    source.send(source.setup())
    source.status(timeout=5)
    assert subscribing.await_image(source.session_id).term_length == raw.TERM_LENGTH


@pytest.mark.parametrize(("params", "window"), [("", 32768), ("|rcv-wnd=16k", 16384), ("|rcv-wnd=64k", 32768)])
def test_s48_the_window(driver: Driver, p: raw.Socket, subscribe: Subscribe, params: str, window: int) -> None:
    """`rcv-wnd` is the window, at most half a term."""
    subscribing, source = subscribe(driver, p, params)
    assert source.join(subscribing).window == window


def test_s55_a_group_tag_goes_along(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """With `gtag=9` status messages, those that ask for a SETUP too, are 44 bytes long and end in the tag."""
    subscribing, source = subscribe(driver, p, "|gtag=9")
    source.send(source.data(0, 128))
    asking, _ = source.status(flags=raw.SEND_SETUP)
    assert (asking.length, asking.tag) == (44, 9)
    status = source.join(subscribing)
    assert (status.length, status.tag) == (44, 9)


def test_s56_an_explicit_control_address_is_asked(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """With `control` an SM that asks for any SETUP goes there at once and every second, images or not."""
    subscribing, source = subscribe(driver, p, f"|control={p.endpoint}|control-mode=dynamic")
    asked: list[raw.Datagram] = []
    while len(asked) < 3:
        _, datagram = p.expect(raw.Status, lambda one: one.flags == raw.SEND_SETUP)
        assert datagram.source == source.to
        assert datagram.frame == raw.Status(
            length=36, flags=raw.SEND_SETUP, receiver_id=datagram.frame.receiver_id, session_id=0, stream_id=0
        )
        asked.append(datagram)
        if len(asked) == 1:
            source.join(subscribing)
    raw.assert_period(asked, 1.0)


def test_s57_a_subscription_of_one_session(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """Data and SETUPs of sessions other than the one that was asked for get no answer."""
    subscribing, source = subscribe(driver, p, "|session-id=31415", session_id=31415)
    other = Source(p, source.to, source.stream_id)
    other.send(other.data(0, 128))
    other.send(other.setup())
    p.silence(0.3)
    source.send(source.data(0, 128))
    source.status(flags=raw.SEND_SETUP)
    source.join(subscribing)
    assert not subscribing.has_image(other.session_id)


def test_s58_the_session_limit(drivers: Drivers, p: raw.Socket, subscribe: Subscribe) -> None:
    """Beyond `stream.session.limit` a SETUP is an error and makes no image, and so is one of a session that has its image."""
    driver = drivers({"aeron.driver.stream.session.limit": "2"})
    subscribing, first = subscribe(driver, p)
    second, third = (Source(p, first.to, first.stream_id) for _ in range(2))
    first.join(subscribing)
    second.join(subscribing)
    errors = driver.system(ERRORS)
    third.send(third.setup())
    driver.await_system(ERRORS, errors + 1)
    first.send(first.setup())
    driver.await_system(ERRORS, errors + 2)
    assert not subscribing.has_image(third.session_id)
    first.status()


def _bound_ports(driver: Driver, subscribing: Subscribing) -> list[int]:
    """Ports in the `rcv-local-sockaddr` counters of a subscription."""
    of = int(subscribing.subscription.registration_id)
    return [
        int(one.label.rsplit(":", 1)[1])
        for one in driver.counters(LOCAL_ADDRESS)
        if one.label.startswith("rcv-local-sockaddr") and one.registration_id == of
    ]


def test_s64_a_port_of_the_systems_choice(driver: Driver, p: raw.Socket, opened: ExitStack) -> None:
    """With port 0 `rcv-local-sockaddr` has the port, data sent to it arrives, and a second such subscription has its own."""
    ports = []
    for _ in range(2):
        subscribing = opened.enter_context(Subscribing(driver, "aeron:udp?endpoint=127.0.0.1:0", 64))
        (port,) = wait_until(lambda: _bound_ports(driver, subscribing), 10, "the bound address")  # noqa: B023
        ports.append(port)
        source = Source(p, ("127.0.0.1", port), 64)
        source.join(subscribing)
        message = source.data(0, 128)
        source.send(message)
        subscribing.expect(message, source=source)
    assert ports[0] != ports[1]
    assert 0 not in ports


def test_s66_a_second_subscription_joins_late(
    driver: Driver, p: raw.Socket, subscribe: Subscribe, opened: ExitStack
) -> None:
    """A second subscription of a stream joins its image where the slowest reader is, without asking P for anything."""
    subscribing, source = subscribe(driver, p)
    source.join(subscribing)
    source.send_each(source.run(0, 4, 1024))
    subscribing.read(3)
    late = opened.enter_context(Subscribing(driver, subscribing.subscription.channel, source.stream_id))
    assert late.await_image(source.session_id).join_position == 3072
    late.expect(source.data(3072, 1024), source=source)
    subscribing.read(4)
    later = opened.enter_context(Subscribing(driver, subscribing.subscription.channel, source.stream_id))
    assert later.await_image(source.session_id).join_position == 4096
    assert all(one.flags == 0 for one in statuses(p.drain()))


def test_images_of_two_streams_are_apart(driver: Driver, p: raw.Socket, sockets: Open, subscribe: Subscribe) -> None:
    """Two publishers of one session id on two streams of an endpoint are two images, each heard by its own publisher."""
    subscribing, source = subscribe(driver, p)
    other_p = sockets()
    with Subscribing(driver, subscribing.subscription.channel, source.stream_id + 100_000) as other_stream:
        other = Source(other_p, source.to, source.stream_id + 100_000, session_id=source.session_id)
        source.join(subscribing)
        other.join(other_stream)
        one, two = source.data(0, 128), other.data(0, 256)
        source.send(one)
        other.send(two)
        subscribing.expect(one, source=source)
        other_stream.expect(two, source=other)
