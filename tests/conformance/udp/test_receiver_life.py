"""Scenarios 49-53, 59 and 60: how images end, and what their publishers hear of it.

Four of them wait for seconds: they run in threads while the others do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.conformance.udp import raw
from tests.conformance.udp.conftest import Drivers, Subscribe, subscribing
from tests.conformance.udp.driver import (
    ERRORS_SENT,
    IMAGES_REJECTED,
    IMAGES_REVOKED,
    PEER,
    RCV_POS,
    Driver,
)
from tests.conformance.udp.receiving import TIMEOUT_S, Source, Subscribing, naks, statuses
from tests.kit.ports import free_port
from tests.kit.wait import wait_until

# Longer than a machine mostly stands still, and shorter than the 5 s after which nothing is said to a silent source any more.
LIVENESS = 3.5
TRIES = 3


@pytest.fixture(scope="module")
def brisk(drivers: Drivers) -> Driver:
    """A driver that gives images up after 3.5 s of silence rather than 10."""
    return drivers({"aeron.image.liveness.timeout": "3500ms"})


@pytest.fixture(scope="module", autouse=True)
def meanwhile(driver: Driver, brisk: Driver) -> Iterator[dict[int, Future[None]]]:
    """The scenarios that run in threads, by number."""
    with ThreadPoolExecutor(4) as pool:
        yield {
            49: pool.submit(_silence, brisk),
            50: pool.submit(_only_setups, brisk),
            59: pool.submit(_two_ways, driver),
            60: pool.submit(_rejected, brisk),
        }


def _sending_until(
    done: Callable[[list[raw.Datagram]], bool], send: Callable[[], object], p: raw.Socket
) -> list[raw.Datagram]:
    """Send every 50 ms until something is so of what came meanwhile, which is returned."""
    came: list[raw.Datagram] = []

    def step() -> bool:
        send()
        came.extend(p.collect(0.05))
        return done(came)

    wait_until(step, TIMEOUT_S, "the end of sending")
    return came


def _has_question(came: list[raw.Datagram]) -> bool:
    return any(one.flags == raw.SEND_SETUP for one in statuses(came))


def _silence(brisk: Driver) -> None:
    told = []
    for _ in range(TRIES):
        with ExitStack() as opened:
            p, last_p = (opened.enter_context(raw.Socket()) for _ in range(2))
            ways = *subscribing(opened, brisk, p), *subscribing(opened, brisk, last_p, "|rejoin=false")
            told.append(_silence_of(p, last_p, *ways))
        if told[-1] >= 4 or PEER == "stock-java":  # Spec: 04 §23 row 6
            return
    raise AssertionError(f"EOS SMs: {told}")


def _silence_of(  # noqa: PLR0917
    p: raw.Socket,
    last_p: raw.Socket,
    subscribing: Subscribing,
    source: Source,
    last_subscribing: Subscribing,
    last: Source,
) -> int:
    """The rest of the scenario, and how many EOS SMs came: fewer where the machine stood still when they were due."""
    source.join(subscribing)
    last.join(last_subscribing)
    source.be_heard()
    sent = source.send(source.heartbeat(0))
    assert subscribing.await_gone(source.session_id) - sent >= LIVENESS
    last_subscribing.await_gone(last.session_id)
    told = [one for one in p.drain() if one.frame.flags == raw.STATUS_EOS]
    assert all(one.at - sent >= LIVENESS - 0.05 for one in told)
    assert all(source.position_of(one) == 0 for one in statuses(told))
    source.send(source.data(0, 128))
    source.status(flags=raw.SEND_SETUP)
    last_p.drain()
    deadline = time.monotonic() + 1.2
    while time.monotonic() < deadline:
        last.send(last.data(0, 128))
        last.send(last.setup())
        last_p.silence(0.1)
    assert not last_subscribing.has_image(last.session_id)
    source.join(subscribing)
    return len(told)


def test_s49_silence_ends_an_image(meanwhile: dict[int, Future[None]]) -> None:
    """A silent stream ends after the liveness time, with EOS SMs; its data elicits again, but not with `rejoin=false`."""
    meanwhile[49].result(60)


def _only_setups(brisk: Driver) -> None:
    with ExitStack() as opened:
        p = opened.enter_context(raw.Socket())
        subscription, source = subscribing(opened, brisk, p)
        begun = time.monotonic()
        source.join(subscription)
        first = subscription.image_id(source.session_id)
        assert first is not None

        def is_over(_: object) -> bool:
            return subscription.image_id(source.session_id) != first

        _sending_until(is_over, lambda: source.send(source.setup()), p)
        assert time.monotonic() - begun >= LIVENESS


def test_s50_setups_keep_nothing_alive(meanwhile: dict[int, Future[None]]) -> None:
    """An image of which nothing but SETUPs come in ends as if it were silent."""
    meanwhile[50].result(60)


def test_s51_an_ended_stream_drains(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """An EOS heartbeat at the end: EOS SMs, 5 at least, and the image stays until it is consumed, and for a second."""
    subscribing, source = subscribe(driver, p)
    source.join(subscribing)
    frames = source.run(0, 3, 512)
    source.send_each(frames)
    driver.await_stream(RCV_POS, source.session_id, 1536, stream_id=source.stream_id)
    sent = source.send(source.heartbeat(1536, raw.EOS_HEARTBEAT))
    told = [source.status(flags=raw.STATUS_EOS)[1] for _ in range(6)]
    raw.assert_period(told[1:], 0.2)
    assert subscribing.has_image(source.session_id)
    subscribing.expect(*frames, source=source)
    assert subscribing.await_gone(source.session_id) - sent >= 1.0


def test_s52_an_ended_stream_with_a_gap(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """EOS beyond a gap: NAKs go on, no EOS SM before it is filled."""
    subscribing, source = subscribe(driver, p)
    source.join(subscribing)
    source.be_heard()
    frames = source.run(0, 3, 512)
    source.send_each([frames[0], frames[2]])
    source.send(source.heartbeat(1536, raw.EOS_HEARTBEAT))
    came: list[raw.Datagram] = []
    for _ in range(3):
        assert p.expect(raw.Status, passing=came)[0].flags == 0
    assert {source.position_of(one) for one in naks(came)} == {512}
    p.drain()
    source.await_nak(512)
    source.send(frames[1])
    source.status(flags=raw.STATUS_EOS)
    subscribing.expect(*frames, source=source)
    subscribing.await_gone(source.session_id)


def test_s53_a_revoked_stream(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """EOS with REVOKED ends the image whether it was consumed or not, and nothing is asked for any more."""
    subscribing, source = subscribe(driver, p)
    source.join(subscribing)
    revoked = driver.system(IMAGES_REVOKED)
    frames = source.run(0, 3, 512)
    source.send_each([frames[0], frames[2]])
    source.await_nak(512)
    source.send(source.heartbeat(1536, raw.REVOKED_HEARTBEAT))
    driver.await_system(IMAGES_REVOKED, revoked + 1)
    p.collect(0.02)
    subscribing.await_gone(source.session_id)
    p.silence(0.2, raw.Nak)
    driver.await_system(IMAGES_REVOKED, revoked + 1)


def _two_ways(driver: Driver) -> None:
    with ExitStack() as opened:
        p1, p2 = (opened.enter_context(raw.Socket()) for _ in range(2))
        _two_ways_of(driver, p1, p2, opened)


def _two_ways_of(driver: Driver, p1: raw.Socket, p2: raw.Socket, opened: ExitStack) -> None:
    stream_id = 59
    subscribing = opened.enter_context(Subscribing(driver, "aeron:udp?control-mode=manual", stream_id))
    ways = []
    for p in (p1, p2):
        port = free_port()
        subscribing.subscription.add_destination(f"aeron:udp?endpoint=127.0.0.1:{port}")
        ways.append(Source(p, ("127.0.0.1", port), stream_id, session_id=59))
    one, two = ways
    one.join(subscribing)
    two.send(two.setup())
    two.status()
    image = subscribing.await_image(59).correlation_id
    first, second = one.run(0, 2, 512)
    one.send(first)
    two.send(second)
    subscribing.expect(first, second, source=one)
    heard = two.send(two.heartbeat(1024))
    came = _sending_until(
        lambda came: any(datagram.at - heard >= 5.4 for datagram in came),
        lambda: one.send(one.heartbeat(1024)),
        p1,
    )
    of_two = p2.drain()
    assert {type(datagram.frame) for datagram in of_two + came} == {raw.Status}
    last = max(datagram.at for datagram in of_two)
    assert last - heard < 5.4
    # Until then whatever was said to the one was said to the other.
    assert not [datagram for datagram in came if last + 0.05 < datagram.at < heard + 4.8]
    one.send(one.heartbeat(1024, raw.EOS_HEARTBEAT))
    p1.drain()
    assert {one.status(flags=None)[0].flags for _ in range(3)} == {0}
    two.send(two.heartbeat(1024, raw.EOS_HEARTBEAT))
    one.status(flags=raw.STATUS_EOS)
    two.status(flags=raw.STATUS_EOS)
    assert subscribing.await_image(59).correlation_id == image
    subscribing.await_gone(59)


def _rejected(brisk: Driver) -> None:
    with ExitStack() as opened:
        p = opened.enter_context(raw.Socket())
        _rejected_of(brisk, p, *subscribing(opened, brisk, p))


def _rejected_of(brisk: Driver, p: raw.Socket, subscribing: Subscribing, source: Source) -> None:
    status = source.join(subscribing)
    first = source.data(0, 512)
    accepted = source.send(first)
    subscribing.expect(first, source=source)
    rejected, errors = brisk.system(IMAGES_REJECTED), brisk.system(ERRORS_SENT)
    subscribing.reject(source.session_id, "no, thanks")
    brisk.await_system(IMAGES_REJECTED, rejected + 1)
    told = [p.expect(raw.Error, source.is_mine)[1]]
    source.send(source.data(512, 512))

    def is_gone(_: object) -> bool:
        return not subscribing.has_image(source.session_id)

    came = _sending_until(is_gone, lambda: source.send(source.heartbeat(512)), p)
    assert time.time() - accepted >= LIVENESS
    told += [one for one in came if isinstance(one.frame, raw.Error)]
    raw.assert_period(told, 0.2)
    for datagram in told:
        assert datagram.frame == raw.Error(  # the tag means nothing without its flag
            length=50,
            session_id=source.session_id,
            stream_id=source.stream_id,
            receiver_id=status.receiver_id,
            tag=0 if PEER == "stock-java" else -1,
            text_length=10,
            text=b"no, thanks",
        )
    assert not naks(came)
    assert brisk.system(ERRORS_SENT) - errors >= len(told)
    # The source still sends, so it is joined again where it is then.
    if not _has_question(came):
        _sending_until(_has_question, lambda: source.send(source.heartbeat(1024)), p)
    source.join(subscribing, 1024)
    assert subscribing.await_image(source.session_id).join_position == 1024


def test_s60_a_rejected_image(meanwhile: dict[int, Future[None]]) -> None:
    """A rejected image sends ERR with the reason every 200 ms instead of SMs, takes no data, and ends by the liveness time."""
    meanwhile[60].result(60)


def test_a_group_tag_goes_along_with_a_rejection(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """ERR of a tagged receiver carries the flag and the tag."""
    subscribing, source = subscribe(driver, p, "|gtag=-7")
    source.join(subscribing)
    subscribing.reject(source.session_id, "why")
    error, _ = p.expect(raw.Error, source.is_mine)
    assert (error.flags, error.tag, error.text) == (raw.ERROR_HAS_TAG, -7, b"why")


def test_a_subscription_that_goes_says_so(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """Closing the last subscription of a stream: EOS SMs at its position, data is ignored, then the endpoint is gone."""
    subscribing, source = subscribe(driver, p)
    source.join(subscribing)
    source.send(source.data(0, 512))
    subscribing.read(1)
    p.drain()
    subscribing.close()
    source.status(flags=raw.STATUS_EOS)
    source.send(source.data(1024, 512))
    assert not naks(p.collect(0.5))
    wait_until(
        lambda: not any(f":{source.to[1]}" in one.label for one in driver.counters(7)), TIMEOUT_S, "the endpoint to go"
    )


def test_s59_two_destinations(meanwhile: dict[int, Future[None]]) -> None:
    """MDS: one image of one session by two ways, SMs to both, none to one silent for 5 s; it ends when both have ended."""
    meanwhile[59].result(60)
