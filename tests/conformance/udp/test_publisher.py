"""Scenarios 1-12 and 14-16: how a stream begins, flows, is held back and is sent again.

Where a scenario says "at once" or "within", the best of a few tries must keep the bound: a busy machine can delay any one.
"""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from aeron_spark.types import Outcome
from tests.conformance.udp import raw
from tests.conformance.udp.conftest import Open
from tests.conformance.udp.driver import (
    FLOW_CONTROL_LIMITS,
    INVALID_PACKETS,
    NAKS_RECEIVED,
    RETRANSMITS_SENT,
    RETRANSMITTED_BYTES,
    SND_BPE,
    SND_LIMIT,
    SND_NAKS,
    SND_POS,
    STATUS_RECEIVED,
    STATUS_REJECTED,
    Driver,
    Publishing,
    ours,
)

CHANNEL = "aeron:udp?endpoint={}|term-length=64k"
MESSAGE = 1376  # with its header one MTU
TRIES = 5


@pytest.fixture
def stream(driver: Driver, q: raw.Socket, opened: ExitStack) -> Publishing:
    """A publication to Q without an answer yet."""
    return opened.enter_context(Publishing(driver, CHANNEL.format(q.endpoint)))


def test_s01_setup_repeats(stream: Publishing, q: raw.Socket) -> None:
    """An unanswered publication sends 40-byte SETUPs about every 100 ms, and nothing else."""
    came = q.take(7)
    raw.assert_period(came, 0.1)
    for datagram in came:
        assert datagram.frame == raw.Setup(
            length=40,
            session_id=stream.session_id,
            stream_id=stream.stream_id,
            initial_term_id=stream.initial_term_id,
            active_term_id=stream.initial_term_id,
            term_length=raw.TERM_LENGTH,
            mtu=raw.MTU,
        )


def test_s02_nothing_is_sent_to_nobody(stream: Publishing, q: raw.Socket) -> None:
    """Offers of an unanswered publication are NOT_CONNECTED and no DATA is sent."""
    q.expect(raw.Setup)
    for _ in range(3):
        assert stream.publication.offer(b"to nobody") == Outcome.NOT_CONNECTED
        came = q.collect(0.11)
        assert all(isinstance(one.frame, raw.Setup) for one in came), came


def test_s03_status_connects(driver: Driver, sockets: Open, opened: ExitStack) -> None:
    """An SM connects the client, stops SETUPs and starts heartbeats at once, then about every 100 ms."""
    delays = []
    for _ in range(TRIES):
        q = sockets()  # the stream of the try before goes on
        stream = opened.enter_context(Publishing(driver, CHANNEL.format(q.endpoint)))
        before = driver.system(STATUS_RECEIVED)
        q.expect(raw.Setup, lambda frame: frame.session_id == stream.session_id)  # noqa: B023
        sent = q.send(stream.status())
        frame, first = q.expect(raw.Data)
        stream.await_connected()
        driver.await_system(STATUS_RECEIVED, before + 1)
        assert len(first.data) == 32
        assert frame == raw.Data(
            length=0,
            flags=raw.UNFRAGMENTED,
            session_id=stream.session_id,
            stream_id=stream.stream_id,
            term_id=stream.initial_term_id,
        )
        delays.append(first.at - sent)
        if delays[-1] < 0.05:
            beats = [first, *q.take(5)]
            assert {one.data for one in beats} == {first.data}
            raw.assert_period(beats, 0.1)
            return
    raise AssertionError(f"first heartbeats came after {delays} s")


def test_s04_messages_are_packed(stream: Publishing, q: raw.Socket) -> None:
    """Two 100-byte messages committed before a send leave in one datagram, frame after frame."""
    stream.connect(q, window=0)
    stream.offer(100, 100)
    q.send(stream.status(window=32768))
    frame, datagram = q.expect(raw.Data, lambda frame: not frame.is_heartbeat)
    assert len(datagram.data) == 2 * raw.aligned(132) == 320
    first, second = datagram.frames
    assert frame == first
    for each, offset, byte in ((first, 0, 1), (second, 160, 2)):
        assert each == raw.Data(
            length=132,
            term_offset=offset,
            session_id=stream.session_id,
            stream_id=stream.stream_id,
            term_id=stream.initial_term_id,
            payload=bytes([byte]) * 100,
        )


def test_s05_data_holds_heartbeats_back(stream: Publishing, q: raw.Socket) -> None:
    """No heartbeat comes between data of every 20 ms; after its end the first one comes 100 ms later, with the position."""
    stream.connect(q)
    beat = q.drain()
    came = list(beat)
    for _ in range(20):
        stream.offer(100)
        came += q.collect(0.02)
    _, last = q.expect(raw.Data, lambda frame: frame.is_heartbeat and frame.term_offset == 20 * 160, passing=came)
    # A sender that was late puts two into one datagram.
    data = [one.at for one in came for frame in one.frames if not frame.is_heartbeat] + [last.at]
    assert len(data) == 21
    between = [one for one in came if one.frame.is_heartbeat and one.at > data[0]]
    for one in [*between, last]:  # one between is legal only where this test was late with its next offer
        before = max(at for at in data if at < one.at)
        assert one.at - before >= 0.05, f"a heartbeat {one.at - before} s after data"
    assert len(between) < 5, f"{len(between)} heartbeats between data of every 20 ms"
    assert last.at - data[-2] <= 1


def test_s06_window_holds_the_sender(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """No more than the window leaves; snd-bpe and the limit counter grow once, and again only after a grant."""
    stream.connect(q, window=raw.MTU)
    before = driver.system(FLOW_CONTROL_LIMITS)
    stream.offer(*[500] * 10)
    driver.await_system(FLOW_CONTROL_LIMITS, before + 1)
    stream.await_counter(SND_POS, 2 * 544)
    sent = sum(len(one.data) for one in q.collect(0.1) if not one.frame.is_heartbeat)
    assert sent == 2 * 544
    stream.await_counter(SND_BPE, 1)
    q.send(stream.status(sent, raw.MTU))
    driver.await_system(FLOW_CONTROL_LIMITS, before + 2)
    stream.await_counter(SND_POS, 4 * 544)
    sent += sum(len(one.data) for one in q.collect(0.05) if not one.frame.is_heartbeat)
    assert sent == 4 * 544
    stream.await_counter(SND_BPE, 2)
    stream.await_counter(SND_POS, sent)
    stream.await_counter(SND_LIMIT, 2 * 544 + raw.MTU)


def two_terms(stream: Publishing, q: raw.Socket) -> list[raw.Data]:
    """Fill a term and begin the next: 46 messages, 768 bytes of padding, 2 messages."""
    stream.connect(q)
    return stream.feed(q, 48)


def test_s07_padding_is_a_header(stream: Publishing, q: raw.Socket) -> None:
    """The rest of a term is a PAD of 32 bytes with the whole length; the next frame begins the next term."""
    frames = two_terms(stream, q)
    pad = next(frame for frame in frames if isinstance(frame, raw.Pad))
    assert (pad.term_offset, pad.length, pad.term_id) == (46 * 1408, 768, stream.initial_term_id)
    after = frames[frames.index(pad) + 1]
    assert (after.term_id, after.term_offset) == (raw.wrap32(stream.initial_term_id + 1), 0)
    assert len(frames) == 49


def test_s08_nak_is_answered_once(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """A NAK brings its frame back within 5 ms, one that repeats it within 10 ms nothing, and after 11 ms the frame again."""
    stream.connect(q, window=32768)
    frames = stream.feed(q, 10)
    delays = []
    suppressed = False
    for attempt in range(TRIES * 4):
        frame = frames[attempt % 10]
        nak = stream.nak(frame.term_offset, raw.MTU)
        counts = [driver.system(RETRANSMITS_SENT), driver.system(RETRANSMITTED_BYTES), driver.system(NAKS_RECEIVED)]
        naks = stream.counter(SND_NAKS)
        sent = q.send(nak)
        again, first = q.expect(raw.Data, lambda one: not one.is_heartbeat)
        repeated = q.send(nak)
        assert again == frame
        assert len(first.data) == raw.MTU
        delays.append(first.at - sent)
        more = [one for one in q.collect(0.03) if not one.frame.is_heartbeat]
        suppressed |= not more and repeated - first.at < 0.009
        q.send(nak)
        q.expect(raw.Data, lambda one: one == frame)  # noqa: B023
        resent = 2 + len(more)
        driver.await_system(NAKS_RECEIVED, counts[2] + 3)
        driver.await_system(RETRANSMITS_SENT, counts[0] + resent)
        driver.await_system(RETRANSMITTED_BYTES, counts[1] + resent * raw.MTU)
        stream.await_counter(SND_NAKS, naks + 3)
        if suppressed and min(delays) < 0.005:
            return
        q.collect(0.02)  # until the last resend no longer holds back the next
    raise AssertionError(f"delays {delays}, a repeat {'was' if suppressed else 'was never'} passed over")


def test_s09_resend_stops_at_the_term(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """A NAK of all that is left of its term brings it, to the padding, and nothing of the next."""
    frames = two_terms(stream, q)
    before = driver.system(RETRANSMITTED_BYTES)
    offset = 30 * 1408
    q.send(stream.nak(offset, raw.TERM_LENGTH - offset))
    came: list[raw.Datagram] = []
    pad, _ = q.expect(raw.Pad, passing=came)
    again = [frame for one in came for frame in one.frames if frame.length]
    assert [*again, pad] == [frame for frame in frames[:-2] if frame.term_offset >= offset]
    assert not [one for one in q.collect(0.03) if not one.frame.is_heartbeat]
    driver.await_system(RETRANSMITTED_BYTES, before + raw.TERM_LENGTH - offset)


@ours("Spec: 11 N5; Aeron before 1.53 cuts it at the term's end and answers")
def test_s09_a_nak_beyond_its_term_is_refused(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """A NAK that reaches beyond its term is an invalid packet, and brings nothing."""
    stream.connect(q)
    stream.feed(q, 10)
    before = driver.system(INVALID_PACKETS), driver.system(NAKS_RECEIVED)
    for number, nak in enumerate([stream.nak(0, raw.TERM_LENGTH + 32), stream.nak(1408, 500_000)]):
        q.send(nak)
        driver.await_system(INVALID_PACKETS, before[0] + number + 1)
    assert not [one for one in q.collect(0.03) if not one.frame.is_heartbeat]
    assert driver.system(NAKS_RECEIVED) == before[1]


def test_s10_bad_naks_are_counted(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """NAKs of an offset outside of the term or a negative length are invalid packets; of length 0 they are nothing."""
    stream.connect(q, window=32768)
    stream.feed(q, 10)
    counts = driver.system(INVALID_PACKETS), driver.system(RETRANSMITS_SENT)
    for number, nak in enumerate([stream.nak(-32, 1408), stream.nak(65536, 1408), stream.nak(0, -1)]):
        q.send(nak)
        driver.await_system(INVALID_PACKETS, counts[0] + number + 1)
    naks = stream.counter(SND_NAKS)
    q.send(stream.nak(0, 0))
    q.send(stream.nak(0, 1408))  # only to know that the one before was looked at
    q.expect(raw.Data, lambda one: not one.is_heartbeat)
    driver.await_system(INVALID_PACKETS, counts[0] + 3)
    driver.await_system(RETRANSMITS_SENT, counts[1] + 1)
    stream.await_counter(SND_NAKS, naks + 2)


@ours("Spec: 04 §2.8 - upstream does not look at the offset's alignment")
def test_s10_misaligned_naks_are_counted(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """A NAK whose offset is no multiple of 32 is an invalid packet."""
    stream.connect(q, window=32768)
    stream.feed(q, 2)
    before = driver.system(INVALID_PACKETS)
    q.send(stream.nak(16, 1408))
    q.send(stream.nak(0, 1408))
    q.expect(raw.Data, lambda one: not one.is_heartbeat)
    driver.await_system(INVALID_PACKETS, before + 1)


def test_s11_naks_out_of_reach(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """A NAK beyond snd-pos, or of more than termLength/2 + termLength/8 behind it, brings nothing."""
    frames = two_terms(stream, q)
    end = frames[-1].term_offset + 1408
    reach = raw.TERM_LENGTH // 2 + raw.TERM_LENGTH // 8
    before = driver.system(RETRANSMITS_SENT)
    first_in_reach = next(
        frame for frame in frames if frame.position(stream.initial_term_id) >= raw.TERM_LENGTH + end - reach
    )
    for nak in (
        stream.nak(end, 1408, term=1),
        stream.nak(first_in_reach.term_offset - 1408, 1408),
        stream.nak(0, 1408, term=2),
        stream.nak(0, 1408, term=-1),
    ):
        naks = stream.counter(SND_NAKS)
        q.send(nak)
        driver.await_stream(SND_NAKS, stream.session_id, naks + 1)
        assert not [one for one in q.collect(0.02) if not one.frame.is_heartbeat]
    driver.await_system(RETRANSMITS_SENT, before)
    q.send(stream.nak(first_in_reach.term_offset, 1408))
    again, _ = q.expect(raw.Data, lambda one: not one.is_heartbeat)
    assert again == first_in_reach


def test_s12_disjoint_naks_are_both_served(stream: Publishing, q: raw.Socket) -> None:
    """Of unicast, NAKs of two gaps within 10 ms are both answered at once."""
    stream.connect(q, window=32768)
    frames = stream.feed(q, 10)
    for _ in range(TRIES):
        q.send(stream.nak(0, 1408))
        sent = q.send(stream.nak(5 * 1408, 1408))
        (one, _), (other, last) = (q.expect(raw.Data, lambda one: not one.is_heartbeat) for _ in range(2))
        assert [one, other] == [frames[0], frames[5]]
        if last.at - sent < 0.01:
            return
        q.collect(0.03)
    raise AssertionError("both were resent, but never within 10 ms")


def test_s14_far_status_messages_are_rejected(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """An SM more than half a term ahead of snd-pos is rejected, one of exactly half a term is taken."""
    stream.connect(q, window=raw.MTU)
    rejected, received = driver.system(STATUS_REJECTED), driver.system(STATUS_RECEIVED)
    half = raw.TERM_LENGTH // 2
    q.send(stream.status(half + 32, half))
    driver.await_system(STATUS_REJECTED, rejected + 1)
    driver.await_system(STATUS_RECEIVED, received + 1)
    stream.await_counter(SND_LIMIT, raw.MTU)
    q.send(stream.status(half, 4096))
    driver.await_stream(SND_LIMIT, stream.session_id, half + 4096)
    driver.await_system(STATUS_REJECTED, rejected + 1)


def test_s15_setup_can_be_asked_for(stream: Publishing, q: raw.Socket) -> None:
    """An SM with SEND_SETUP brings a connected stream's SETUP once, within 100 ms, with the current position."""
    stream.connect(q)
    stream.offer(100)
    q.expect(raw.Data, lambda one: not one.is_heartbeat)
    for _ in range(TRIES):
        q.silence(0.15, raw.Setup)  # the last SETUP is longer ago than 100 ms
        sent = q.send(stream.send_setup())
        setup, datagram = q.expect(raw.Setup)
        assert setup.position == 160
        if datagram.at - sent < 0.1:
            q.silence(0.3, raw.Setup)
            return
    raise AssertionError("SETUPs came, but none within 100 ms")


def test_s16_asking_connects_nobody(stream: Publishing, q: raw.Socket) -> None:
    """SMs that only ask for SETUPs do not connect; SETUPs go on every 100 ms."""
    _, first = q.expect(raw.Setup)
    came = [first]
    for _ in range(6):
        q.send(stream.send_setup())
        came += q.collect(0.1)
    assert all(isinstance(one.frame, raw.Setup) for one in came)
    raw.assert_period(came, 0.1)
    assert not stream.publication.is_connected
