"""Scenarios 41-47, 54, 61 and 67: received data, gaps, and what is reported of them."""

from __future__ import annotations

import statistics
from contextlib import ExitStack

import pytest

from tests.conformance.udp import raw
from tests.conformance.udp.conftest import Subscribe
from tests.conformance.udp.driver import (
    GAP_FILLS,
    NAKS_SENT,
    OVER_RUNS,
    RCV_HWM,
    RCV_NAKS,
    RCV_POS,
    UNDER_RUNS,
    Driver,
    Publishing,
)
from tests.conformance.udp.receiving import Subscribing, naks, statuses
from tests.kit.wait import wait_until


def test_s41_a_gap_is_asked_for(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """The first gap is NAKed exactly, again and again but not oftener than each 100 us in the mean; filled, the next one."""
    subscribing, source = subscribe(driver, p)
    source.join(subscribing)
    sent = driver.system(NAKS_SENT)
    frames = source.run(0, 5, raw.MTU)
    source.send_each(frames[::2])
    came = [*(source.nak()[1] for _ in range(3)), *p.collect(0.1)]
    missing = raw.Nak(
        length=28,
        session_id=source.session_id,
        stream_id=source.stream_id,
        term_id=source.initial_term_id,
        term_offset=raw.MTU,
        gap=raw.MTU,
    )
    assert set(naks(came)) == {missing}
    stamps = [one.at for one in came if isinstance(one.frame, raw.Nak)]
    assert statistics.mean(raw.intervals(stamps)) >= 90e-6
    source.send(frames[1])
    second, _ = source.await_nak(3 * raw.MTU)
    assert second.gap == raw.MTU
    source.send(frames[3])
    subscribing.expect(*frames, source=source)
    p.collect(0.02)
    p.silence(0.2, raw.Nak)
    assert driver.system(NAKS_SENT) - sent >= 3
    assert driver.stream(RCV_NAKS, source.session_id, source.stream_id) >= 3


def test_s42_a_lost_tail(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """A heartbeat beyond the received data announces a lost tail, which is NAKed."""
    subscribing, source = subscribe(driver, p)
    source.join(subscribing)
    frames = source.run(0, 3, 512)
    source.send_each(frames[:2])
    subscribing.read(2)
    p.silence(0.05, raw.Nak)
    source.send(source.heartbeat(3 * 512))
    nak, _ = source.await_nak(1024)
    assert nak.gap == 512
    source.send(frames[2])
    subscribing.expect(*frames, source=source)


def test_s43_a_resend_of_more_than_was_missing(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """A datagram of the missing frame and the next one, which is there already, completes the stream."""
    subscribing, source = subscribe(driver, p)
    source.join(subscribing)
    frames = source.run(0, 4, 480)
    source.send_each([frames[0], frames[2], frames[3]])
    source.await_nak(480)
    source.send(*frames[1:3])
    subscribing.expect(*frames, source=source)
    driver.await_stream(RCV_POS, source.session_id, 4 * 480, stream_id=source.stream_id)


def test_s44_below_and_beyond(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """Data below consumption is an under-run, data more than half a term beyond the last SM an over-run: both are dropped."""
    subscribing, source = subscribe(driver, p)
    source.join(subscribing)
    frames = source.run(0, 9, 1024)
    source.send_each(frames)
    subscribing.expect(*frames, source=source)
    source.await_status(9 * 1024)
    under, over = driver.system(UNDER_RUNS), driver.system(OVER_RUNS)
    source.send(source.data(1024, 1024))
    driver.await_system(UNDER_RUNS, under + 1)
    beyond = 9 * 1024 + source.term_length // 2
    source.send(source.data(beyond - 992, 1024))
    driver.await_system(OVER_RUNS, over + 1)
    driver.await_stream(RCV_HWM, source.session_id, 9 * 1024, stream_id=source.stream_id)
    p.drain()
    p.silence(0.05, raw.Nak)
    source.send(source.data(beyond - 1024, 1024))
    assert source.nak()[0].gap == beyond - 1024 - 9 * 1024
    driver.await_system(OVER_RUNS, over + 1)
    rest = source.run(9 * 1024, 32, 1024)
    source.send_each(rest[:31])
    subscribing.expect(*frames, *rest, source=source)


def test_s45_a_quarter_window(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """Consumption of a quarter window is not reported, and SMs repeat the old position; a byte more is reported at once."""
    subscribing, source = subscribe(driver, p)
    window = source.join(subscribing).window
    quick = []
    start = 0
    for _ in range(5):
        frames = source.run(start, window // 4 // 1024 + 1, 1024)
        source.send_each(frames)
        subscribing.read(len(subscribing.messages) + len(frames) - 1)
        p.drain()
        came = [source.status()[1] for _ in range(2)]
        assert {source.position_of(one) for one in statuses(came)} == {start}
        assert came[1].at - came[0].at >= 0.15
        subscribing.read(len(subscribing.messages) + 1)
        start += len(frames) * 1024
        quick.append(source.await_status(start).at - came[1].at)
        if quick[-1] < 0.15:
            return
    raise AssertionError(f"a new position is never told before the old one's 200 ms are over: {quick}")


def test_s46_the_slowest_decides(driver: Driver, p: raw.Socket, subscribe: Subscribe, opened: ExitStack) -> None:
    """With two subscribers the SM carries the slower one's position."""
    slow, source = subscribe(driver, p)
    fast = opened.enter_context(Subscribing(driver, slow.subscription.channel, source.stream_id))
    source.join(slow)
    frames = source.run(0, 20, 1024)
    source.send_each(frames)
    fast.expect(*frames, source=source)
    assert {source.position_of(source.status()[0]) for _ in range(3)} == {0}
    slow.read(9)
    source.await_status(9 * 1024)
    slow.read(20)
    source.await_status(20 * 1024)


def test_s47_an_unreliable_gap(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """With `reliable=false` a gap is filled by padding, not asked for."""
    subscribing, source = subscribe(driver, p, "|reliable=false")
    source.join(subscribing)
    fills = driver.system(GAP_FILLS)
    frames = source.run(0, 4, 1024)
    source.send_each([frames[0], frames[3]])
    subscribing.expect(frames[0], frames[3], source=source)
    driver.await_system(GAP_FILLS, fills + 1)
    p.silence(0.1, raw.Nak)
    source.send(frames[1])
    last = source.data(4096, 1024)
    source.send(last)
    subscribing.expect(frames[0], frames[3], last, source=source)


def test_s54_several_frames_and_padding(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """Three messages in one datagram are three messages; padding of 10,016 bytes travels in 32 and leads to the next term."""
    subscribing, source = subscribe(driver, p)
    start = source.term_length - 10_016 - 3 * 256
    source.join(subscribing, start)
    frames = source.run(start, 3, 250)
    source.send(*frames)
    source.send(source.pad(start + 3 * 256, 10_016))
    beyond = source.data(source.term_length, 96)
    source.send(beyond)
    subscribing.expect(*frames, beyond, source=source)
    driver.await_stream(RCV_POS, source.session_id, source.term_length + 96, stream_id=source.stream_id)
    p.silence(0.05, raw.Nak)


def test_s54_padding_behind_data(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """Padding may share its datagram with data before it; then the end of the term is known without a heartbeat."""
    subscribing, source = subscribe(driver, p)
    start = source.term_length - 1024
    source.join(subscribing, start)
    message = source.data(start, 128)
    source.send(message, source.pad(start + 128, 896))
    beyond = source.data(source.term_length, 96)
    source.send(beyond)
    subscribing.expect(message, beyond, source=source)
    p.silence(0.05, raw.Nak)


@pytest.mark.parametrize(("params", "flags"), [("", raw.SETUP_GROUP), ("|group=true", 0)])
def test_s61_a_group_waits_before_it_asks(
    driver: Driver, p: raw.Socket, subscribe: Subscribe, params: str, flags: int
) -> None:
    """In a group NAKs wait a random time below 10 ms, most of them long; a gap that is filled meanwhile is not asked for."""
    subscribing, source = subscribe(driver, p, params)
    source.join(subscribing, flags=flags)
    delays = []
    asked = 0
    at = 0
    for _ in range(40):
        first, second = source.run(at, 2, 64)
        sent = source.send(second)
        _, nak = source.await_nak(at)
        delays.append(nak.at - sent)
        source.send(first)
        at += 128
        subscribing.read(at // 64)
    for _ in range(40):
        first, second = source.run(at, 2, 64)
        source.send(second)
        source.send(first)
        at += 128
        subscribing.read(at // 64)
        asked += len({source.position_of(one) for one in naks(p.collect(0.002)) if source.position_of(one) == at - 128})
    shown = sorted(round(one * 1000, 2) for one in delays)
    assert statistics.median(delays) >= 0.005, f"delays in ms: {shown}"
    assert max(delays) - min(delays) >= 0.002, f"delays in ms: {shown}"
    assert min(delays) < 0.01, f"delays in ms: {shown}"
    assert asked <= 20, f"{asked} of 40 gaps were asked for that were filled at once"


def test_s61_no_group(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """With `group=false` a stream whose SETUP says group is asked for at once, as unicast is."""
    subscribing, source = subscribe(driver, p, "|group=false")
    source.join(subscribing, flags=raw.SETUP_GROUP)
    delays = []
    for at in range(0, 40 * 128, 128):
        first, second = source.run(at, 2, 64)
        sent = source.send(second)
        delays.append(source.await_nak(at)[1].at - sent)
        source.send(first)
        subscribing.read(at // 64 + 2)
    assert min(delays) < 0.004, f"delays in ms: {sorted(round(one * 1000, 2) for one in delays)}"


def test_s67_term_ids_of_an_image_wrap(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """A stream whose first term id is 2147483647 continues for three terms with correct positions."""
    subscribing, source = subscribe(driver, p, initial_term_id=2**31 - 1)
    source.join(subscribing)
    for at in range(0, 3 * source.term_length, 8 * 1024):
        frames = source.run(at, 8, 1024)
        source.send_each([frames[0], *frames[2:]])
        source.await_nak(at + 1024)
        source.send(frames[1])
        assert subscribing.read(at // 1024 + 8)[-1] == (at + 8192, frames[-1].payload)
    source.send(source.heartbeat(3 * source.term_length))
    driver.await_stream(RCV_POS, source.session_id, 3 * source.term_length, stream_id=source.stream_id)
    last, _ = source.status()
    assert -(2**31) <= last.term_id <= -(2**31) + 2


def test_s67_term_ids_of_a_publication_wrap(driver: Driver, q: raw.Socket, opened: ExitStack) -> None:
    """A publication whose first term id is 2147483647 fills three terms, every position right at client and receiver."""
    start = "init-term-id=2147483647|term-id=2147483647|term-offset=0|term-length=64k"
    stream = opened.enter_context(Publishing(driver, f"aeron:udp?endpoint={q.endpoint}|{start}"))
    stream.connect(q)
    for at in range(0, 3 * raw.TERM_LENGTH, 1024):
        wait_until(lambda: stream.publication.offer(bytes(1024 - 32)) > 0, 10, "room for a message")
        data, _ = q.expect(raw.Data, lambda one: not one.is_heartbeat)
        assert data.position(2**31 - 1) == at
        assert data.term_id == raw.wrap32(2**31 - 1 + at // raw.TERM_LENGTH)
        q.send(stream.status(at + 1024))
    assert stream.publication.position == 3 * raw.TERM_LENGTH
    heartbeat, _ = q.expect(raw.Data, lambda one: one.is_heartbeat)
    assert heartbeat.position(2**31 - 1) == 3 * raw.TERM_LENGTH
