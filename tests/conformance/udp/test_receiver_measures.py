"""Scenarios 62, 63 and 65: round trips, congestion control, response channels, timestamps. Spec: 04 §18."""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack

import pytest

from tests.conformance.udp import raw
from tests.conformance.udp.conftest import Drivers, Subscribe
from tests.conformance.udp.driver import Driver, ours
from tests.conformance.udp.receiving import Source
from tests.kit.ports import free_port

CUBIC = {"aeron.CubicCongestionControl.measureRtt": "true"}


def _rttm(source: Source, receiver_id: int, flags: int = raw.RTTM_REQUEST) -> raw.Rttm:
    return raw.Rttm(
        flags=flags, session_id=source.session_id, stream_id=source.stream_id, echo=4711, receiver_id=receiver_id
    )


def test_s62_round_trip_requests_are_answered(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """RTTM for another receiver is ignored; for this one or for all (0) it is answered with the same echo."""
    subscribing, source = subscribe(driver, p)
    receiver_id = source.join(subscribing).receiver_id
    source.send(_rttm(source, receiver_id + 1))
    p.silence(0.1, raw.Rttm)
    for asked in (0, receiver_id):
        source.send(_rttm(source, asked))
        reply, _ = p.expect(raw.Rttm, source.is_mine)
        assert (reply.length, reply.flags, reply.echo, reply.delta) == (40, 0, 4711, 0)
        assert reply.receiver_id == receiver_id


def test_s62_cubic_measures_round_trips(drivers: Drivers, p: raw.Socket, subscribe: Subscribe) -> None:
    """With `cc=cubic` and measureRtt RTTM requests go out, one per 400 us on average while unanswered."""
    driver = drivers(CUBIC)
    subscribing, source = subscribe(driver, p, "|cc=cubic")
    receiver_id = source.join(subscribing).receiver_id
    source.be_heard()
    asked = [*(p.expect(raw.Rttm)[1] for _ in range(3)), *p.collect(0.2)]
    asked = [one for one in asked if isinstance(one.frame, raw.Rttm)]
    for one in asked:
        assert (one.frame.flags, one.frame.delta, one.frame.receiver_id) == (raw.RTTM_REQUEST, 0, receiver_id)
    assert statistics.mean(raw.intervals([one.at for one in asked])) >= 380e-6
    source.be_heard()
    # An answer that is 50 ms old makes the pause four times as long.
    source.send(
        raw.Rttm(
            session_id=source.session_id,
            stream_id=source.stream_id,
            echo=asked[-1].frame.echo - 50_000_000,
            receiver_id=receiver_id,
        )
    )
    p.collect(0.05)
    later = [p.expect(raw.Rttm)[1].at for _ in range(4)]
    assert statistics.mean(raw.intervals(later)) >= 0.19


def test_s62_cubic_cuts_the_window(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """With `cc=cubic` a loss cuts the window by a fifth, which is reported at once."""
    subscribing, source = subscribe(driver, p, "|cc=cubic")
    source.join(subscribing)
    source.be_heard()
    largest = source.term_length // 2 // raw.MTU * raw.MTU
    source.socket.expect(raw.Status, lambda one: one.window == largest)
    first, second = source.run(0, 2, 256)
    source.send(second)
    cut, _ = source.socket.expect(raw.Status, lambda one: one.window < largest)
    cwnd = largest // raw.MTU
    assert cut.window in {int(cwnd * 0.8) * raw.MTU, (cwnd - int(cwnd * 0.2)) * raw.MTU}
    source.send(first)
    subscribing.expect(first, second, source=source)
    source.socket.expect(raw.Status, lambda one: one.window > cut.window)


def test_s62_cubic_keeps_one_mtu(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """The window of cubic is never below one MTU, however much is lost."""
    subscribing, source = subscribe(driver, p, "|cc=cubic|rcv-wnd=2816")
    windows = {source.join(subscribing).window}
    frames = source.run(0, 40, 64)
    source.send_each(frames[1::2])
    for frame in frames[::2]:
        source.await_nak(source.position_of(frame))
        source.send(frame)
    subscribing.expect(*frames, source=source)
    windows |= {one.frame.window for one in p.collect(0.25) if isinstance(one.frame, raw.Status)}
    assert windows <= {raw.MTU, 2 * raw.MTU}


def test_s63_response_setup(driver: Driver, p: raw.Socket, subscribe: Subscribe, opened: ExitStack) -> None:
    """A response publication to an image that asked for it: RSP_SETUP every 200 ms until the response is received."""
    subscribing, source = subscribe(driver, p)
    source.join(subscribing, flags=raw.SETUP_SEND_RESPONSE)
    source.be_heard()
    image = subscribing.await_image(source.session_id).correlation_id
    control = free_port()
    response = opened.enter_context(
        driver.client.add_exclusive_publication(
            f"aeron:udp?control=127.0.0.1:{control}|control-mode=response|response-correlation-id={image}", 63
        )
    )
    told = [p.expect(raw.ResponseSetup, source.is_mine)[1] for _ in range(4)]
    raw.assert_period(told, 0.2)
    for one in told:
        assert one.frame == raw.ResponseSetup(
            length=20,
            session_id=source.session_id,
            stream_id=source.stream_id,
            response_session_id=int(response.session_id),
        )
    # P takes the response: asks for its SETUP, which comes to where the question came from, and acknowledges.
    to = ("127.0.0.1", control)
    p.send(raw.Status(flags=raw.SEND_SETUP, session_id=int(response.session_id), stream_id=63), to)
    setup, datagram = p.expect(raw.Setup, lambda one: one.stream_id == 63)
    assert datagram.source == to
    assert setup.session_id == response.session_id
    p.send(raw.Status(session_id=setup.session_id, stream_id=63, term_id=setup.initial_term_id, window=16384), to)
    response.wait_connected(10)
    p.collect(0.25)
    p.silence(0.5, raw.ResponseSetup)
    assert response.offer(b"answer") > 0
    data, _ = p.expect(raw.Data, lambda one: one.stream_id == 63 and not one.is_heartbeat)
    assert data.payload == b"answer"


def _assert_stamped(driver: Driver, p: raw.Socket, subscribe: Subscribe, param: str, offset: int | None) -> None:
    subscribing, source = subscribe(driver, p, f"|{param}={'reserved' if offset is None else offset}")
    source.join(subscribing)
    before = time.time_ns()
    first, packed, middle, tiny = source.run(0, 4, 64)
    middle = source.data(128, 64, flags=0x40)
    tiny = source.data(192, 36)
    source.send(first, packed)
    source.send(middle)
    source.send(tiny)
    subscribing.read(2)
    after = time.time_ns()
    slack = 1_000_000  # the driver's clock of the epoch may be one of milliseconds
    stamps = [
        header.reserved_value if offset is None else int.from_bytes(message[offset : offset + 8], "little")
        for header, (_, message) in zip(subscribing.headers, subscribing.messages, strict=True)
    ]
    assert before - slack <= stamps[0] <= after + slack
    for (_, message), sent in zip(subscribing.messages, (first, packed), strict=True):
        at = len(sent.payload) if offset is None else offset
        assert message[:at] == sent.payload[:at]
        assert message[at + 8 :] == sent.payload[at + 8 :]


@pytest.mark.parametrize("offset", [None, 8])
def test_s65_channel_timestamps(driver: Driver, p: raw.Socket, subscribe: Subscribe, offset: int | None) -> None:
    """`channel-rcv-ts-offset` puts the time into the first message of a datagram, and nothing else into any."""
    _assert_stamped(driver, p, subscribe, "channel-rcv-ts-offset", offset)


@ours("the Java driver has no media timestamps", but=("stock-c",))
@pytest.mark.parametrize("offset", [None, 8])
def test_s65_media_timestamps(driver: Driver, p: raw.Socket, subscribe: Subscribe, offset: int | None) -> None:
    """`media-rcv-ts-offset` does the same with the time at which the kernel took the datagram in."""
    _assert_stamped(driver, p, subscribe, "media-rcv-ts-offset", offset)


@ours("Spec: 11 D13; Aeron before 1.53 stamps the first message of a datagram alone")
def test_s65_each_message_of_a_datagram_gets_the_time(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """All whole messages of a datagram get one and the same time, where they have room for it."""
    subscribing, source = subscribe(driver, p, "|channel-rcv-ts-offset=reserved")
    source.join(subscribing)
    source.send(*source.run(0, 3, 64))
    subscribing.read(3)
    assert len({header.reserved_value for header in subscribing.headers}) == 1
    assert subscribing.headers[0].reserved_value != 0
    subscribing, source = subscribe(driver, p, "|channel-rcv-ts-offset=0")
    source.join(subscribing)
    sent = [source.data(0, 40), source.data(64, 36), source.data(128, 40)]
    source.send(*sent)
    first, second, third = (message for _, message in subscribing.read(3))
    assert first == third != sent[0].payload
    assert second == sent[1].payload


@ours("the place must lie in the first message; for the Java driver in the datagram is enough", but=("stock-c",))
def test_s65_what_gets_no_time(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """A message that is too short for the place, or a fragment that begins none, is left alone."""
    subscribing, source = subscribe(driver, p, "|channel-rcv-ts-offset=8")
    source.join(subscribing)
    short = source.data(0, 32 + 15)
    source.send(short, source.data(64, 128))
    begin = source.data(192, 64, flags=0x80)
    end = source.data(256, 64, flags=0x40)
    source.send(begin)
    source.send(end)
    subscribing.read(3)
    assert subscribing.messages[0][1] == short.payload
    joined = subscribing.messages[2][1]
    assert joined[:8] == begin.payload[:8]
    assert joined[8:16] != begin.payload[8:16]
    assert joined[16:] == begin.payload[16:] + end.payload
