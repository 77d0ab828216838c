"""What Aeron 1.53 changes on the wire: scenarios of Spec: 11, by raw sockets instead of other drivers.

DELTA.md tells where each of D1 to D31 is tested. Stock peers of today are older: what they do otherwise is marked.

Spec: 11 §2.
"""

from __future__ import annotations

import random
import struct
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace

import pytest

from aeron_spark.counters import Counters
from tests.conformance.udp import raw
from tests.conformance.udp.conftest import Subscribe
from tests.conformance.udp.driver import (
    ERRORS_RECEIVED,
    INVALID_PACKETS,
    NAKS_RECEIVED,
    RCV_HWM,
    RCV_POS,
    SND_LIMIT,
    SND_POS,
    STATUS_RECEIVED,
    Driver,
    Publishing,
    ours,
)
from tests.conformance.udp.receiving import Subscribing
from tests.kit.ports import free_port
from tests.kit.wait import wait_until

CHANNEL = "aeron:udp?endpoint={}|term-length=64k"
OLDER = "Aeron before 1.53 takes some of these"


@pytest.fixture
def stream(driver: Driver, q: raw.Socket, opened: ExitStack) -> Publishing:
    """A publication to Q without an answer yet."""
    return opened.enter_context(Publishing(driver, CHANNEL.format(q.endpoint)))


def refused(driver: Driver, socket: raw.Socket, frames: list[raw.Frame | bytes], to: raw.Address | None = None) -> None:
    """Each of these datagrams is an invalid packet, and exactly one."""
    before = driver.system(INVALID_PACKETS)
    for count, frame in enumerate(frames, 1):
        if to is None:
            socket.send(frame)
        else:
            socket.send(frame, to)
        driver.await_system(INVALID_PACKETS, before + count, timeout=5)


@ours(f"Spec: 11 D1; {OLDER}")
def test_d01_first_frames_that_can_not_be(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """Lengths and types that no frame has: one invalid packet each, no status message, no image."""
    subscribing, source = subscribe(driver, p)
    data = source.data(0, 64).encode()
    rttm = raw.Rttm(session_id=source.session_id, stream_id=source.stream_id, echo=1)
    unknown = data[:6] + struct.pack("<H", 0x0F) + data[8:32]
    frames: list[raw.Frame | bytes] = [
        data[:39],
        struct.pack("<i", -1) + data[4:32],
        replace(source.setup(), length=400),
        rttm.encode()[:36],
        unknown,
    ]
    refused(driver, p, frames, source.to)
    p.silence(0.05, raw.Status)
    assert not subscribing.has_image(source.session_id)


@ours(f"Spec: 11 D2; {OLDER}", but=("stock-c",))
def test_d02_control_frames_that_can_not_be(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """A status message shorter than its frame length and a short RSP_SETUP are invalid; an RTTM is answered as before."""
    stream.connect(q)
    response = raw.ResponseSetup(session_id=stream.session_id, stream_id=stream.stream_id, response_session_id=1)
    refused(driver, q, [replace(stream.status(), length=44), response.encode()[:16]])
    q.send(raw.Rttm(session_id=stream.session_id, stream_id=stream.stream_id, echo=5, flags=raw.RTTM_REQUEST))
    assert q.expect(raw.Rttm)[0].echo == 5


@ours(f"Spec: 11 D3; {OLDER}")
def test_d03_a_bent_frame_costs_its_datagram(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """Of three frames the middle one can't be: nothing is delivered, rcv-hwm stays; the right datagram is taken whole."""
    subscribing, source = subscribe(driver, p)
    source.join(subscribing)
    good = source.run(0, 3, 64)
    first, middle, last = (one.encode() for one in good)
    bent = [
        middle[:8] + struct.pack("<i", 96) + middle[12:],
        middle[:6] + struct.pack("<H", 2) + middle[8:],
        struct.pack("<i", 0) + middle[4:],
        struct.pack("<i", 4096) + middle[4:],
    ]
    refused(driver, p, [first + one + last for one in bent], source.to)
    assert driver.stream(RCV_HWM, source.session_id, stream_id=source.stream_id) == 0
    source.send(*good)
    subscribing.expect(*good, source=source)


@ours(f"Spec: 11 D4; {OLDER}")
def test_d04_what_reaches_beyond_its_place(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """Trailing zeros, a frame past its term, heartbeats outside it or misaligned: invalid, the stream continues."""
    subscribing, source = subscribe(driver, p)
    source.join(subscribing)
    data, beat = source.data(0, 64).encode(), source.heartbeat(0).encode()
    frames: list[raw.Frame | bytes] = [
        data + bytes(32),
        data[:8] + struct.pack("<i", 65_504) + data[12:],
        beat[:8] + struct.pack("<i", 65_536) + beat[12:],
        beat[:8] + struct.pack("<i", 40) + beat[12:],
    ]
    refused(driver, p, frames, source.to)
    assert driver.stream(RCV_HWM, source.session_id, stream_id=source.stream_id) == 0
    source.send(source.data(0, 64))
    subscribing.expect(source.data(0, 64), source=source)


@ours("Spec: 11 D5; Aeron before 1.53 counts 32 bytes for the padding")
def test_d05_padding_travels_without_its_body(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """DATA and the header of a PAD in one datagram move rcv-hwm and rcv-pos by the whole length of both."""
    subscribing, source = subscribe(driver, p)
    start = source.term_length - 1088
    source.join(subscribing, start)
    source.send(source.data(start, 64), source.pad(start + 64, 1024))
    driver.await_stream(RCV_HWM, source.session_id, source.term_length, stream_id=source.stream_id)
    driver.await_stream(RCV_POS, source.session_id, source.term_length, stream_id=source.stream_id)


@ours(f"Spec: 11 D6; {OLDER}, and logs each")
def test_d06_setups_of_no_stream(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """Terms, offsets and MTUs that no stream has: invalid, and no entry in the error log; a good SETUP makes the image."""
    subscribing, source = subscribe(driver, p)
    wrong = [
        *({"term_length": length} for length in (65_537, 32_768, -(2**31))),
        *({"term_offset": offset} for offset in (65_536, 31, -32)),
        *({"mtu": mtu} for mtu in (0, 1_409, 65_536)),
    ]
    with Counters(driver.aeron_dir) as counters:
        logged = [(one.text, one.count) for one in counters.errors()]
        refused(driver, p, [source.setup(**fields) for fields in wrong], source.to)
        assert [(one.text, one.count) for one in counters.errors()] == logged
    assert not subscribing.has_image(source.session_id)
    source.join(subscribing)


@ours(f"Spec: 11 D7; {OLDER}")
def test_d07_status_messages_of_no_receiver(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """Windows and offsets that no receiver has neither connect nor count; half a term is the largest window."""
    q.expect(raw.Setup)
    received, limit = driver.system(STATUS_RECEIVED), stream.counter(SND_LIMIT)
    wrong = [
        stream.status(window=-1),
        stream.status(window=32_769),
        replace(stream.status(), term_offset=4),
        replace(stream.status(), term_offset=65_536),
    ]
    refused(driver, q, wrong)
    assert driver.system(STATUS_RECEIVED) == received
    assert stream.counter(SND_LIMIT) == limit
    assert not stream.publication.is_connected
    q.send(stream.status(window=32_768))
    stream.await_connected()


@ours("Spec: 11 D8; Aeron before 1.53 makes a destination of it")
def test_d08_what_makes_no_destination(driver: Driver, opened: ExitStack) -> None:
    """A status message that can't be makes no destination, one for no stream that asks for a SETUP does."""
    control = f"127.0.0.1:{free_port()}"
    opened.enter_context(Publishing(driver, f"aeron:udp?control={control}|control-mode=dynamic|term-length=64k"))
    host, _, port = control.partition(":")
    stranger = opened.enter_context(raw.Socket())
    ask = raw.Status(session_id=1, stream_id=1, term_id=0, term_offset=8, flags=raw.SEND_SETUP)
    refused(driver, stranger, [ask], (host, int(port)))
    assert driver.destinations(control) == 0
    stranger.send(replace(ask, term_offset=0), (host, int(port)))
    wait_until(lambda: driver.destinations(control) == 1, 10, "the destination")


@ours("Spec: 11 D9; Aeron before 1.53 cuts such a NAK and answers it")
def test_d09_naks_within_a_term(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """NAKs off the grid or beyond the term bring nothing; one of another stream changes no counter."""
    stream.connect(q)
    stream.offer(*[992] * 8)
    stream.await_counter(SND_POS, 8 * 1024)
    q.drain()
    naks = driver.system(NAKS_RECEIVED)
    refused(driver, q, [stream.nak(0, 65_568), stream.nak(16, 64), stream.nak(65_536, 0), stream.nak(0, -1)])
    assert not [one for one in q.collect(0.05) if type(one.frame) is raw.Data and not one.frame.is_heartbeat]
    q.send(replace(stream.nak(0, 1024), session_id=stream.session_id + 1))
    q.send(stream.nak(0, 1024))
    assert q.expect(raw.Data, lambda frame: not frame.is_heartbeat)[0].term_offset == 0
    driver.await_system(NAKS_RECEIVED, naks + 1)


@ours("Spec: 11 D10; Aeron before 1.53 cuts the text")
def test_d10_errors_that_tell_more_than_they_hold(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """An ERR with an impossible text length neither counts nor ends the receiver; a valid one is reported once."""
    stream.connect(q)
    received, told = driver.system(ERRORS_RECEIVED), len(driver.publication_errors)
    error = raw.Error(session_id=stream.session_id, stream_id=stream.stream_id)
    long = replace(error, text=b"x" * 1024, text_length=1024)
    refused(driver, q, [long, replace(error, text_length=-1), replace(error, text_length=5)])
    assert driver.system(ERRORS_RECEIVED) == received
    assert stream.publication.is_connected
    q.send(replace(error, text=b"enough"))
    wait_until(lambda: len(driver.publication_errors) == told + 1, 10, "the error at the client")
    driver.await_system(ERRORS_RECEIVED, received + 1)


@ours("Spec: 11 D11; Aeron before 1.53 waits until the next status message is due")
def test_d11_a_response_is_set_up_at_once(
    driver: Driver, p: raw.Socket, subscribe: Subscribe, opened: ExitStack, rng: random.Random
) -> None:
    """Whenever a response publication comes, RSP_SETUP goes out within 20 ms; of 20 a busy machine may delay a few."""
    late = []
    for _ in range(20):
        subscribing, source = subscribe(driver, p)
        source.join(subscribing, flags=raw.SETUP_SEND_RESPONSE)
        image = subscribing.await_image(source.session_id).correlation_id
        source.be_heard()  # on a busy machine status messages alone may take what a silent source is sent
        p.collect(rng.uniform(0, 0.2))
        channel = f"aeron:udp?control=127.0.0.1:{free_port()}|control-mode=response|response-correlation-id={image}"
        response = opened.enter_context(driver.client.add_exclusive_publication(channel, source.stream_id))
        there = time.time()
        told = p.expect(raw.ResponseSetup, source.is_mine)[1]
        assert told.frame.response_session_id == response.session_id
        late.append(round(1000 * (told.at - there)))
        response.close()
        subscribing.close()
    assert sorted(late)[14] <= 20, f"ms after the publication: {late}"


@ours("Spec: 11 D12; Aeron in C before 1.53 takes what another socket joined", but=("stock-java",))
def test_d12_a_group_is_its_own(driver: Driver, opened: ExitStack) -> None:
    """Two groups at one port and interface: each subscription has the image of its own group's publisher, and no other."""
    port = free_port()
    channels = [f"aeron:udp?endpoint={group}:{port}|interface=127.0.0.1" for group in ("224.20.30.61", "224.20.30.63")]
    subscribing = [opened.enter_context(Subscribing(driver, channel, 12)) for channel in channels]
    sessions = [1201, 1202]
    for channel, session in zip(channels, sessions, strict=True):
        publishing = opened.enter_context(Publishing(driver, f"{channel}|session-id={session}", 12))
        publishing.await_connected()
        publishing.offer(100)
    for session, one in zip(sessions, subscribing, strict=True):
        one.read(1)
        with ExitStack() as images:
            there = [images.enter_context(image) for image in one.subscription.images()]
            assert [int(image.session_id) for image in there] == [session]
        assert [int(header.session_id) for header in one.headers] == [session]
    # Images of the driver's own publications send it status messages for a second more, and later tests count those.
    opened.close()
    wait_until(lambda: not driver.counters(RCV_POS), 10, "the images to be gone")


@pytest.mark.parametrize("window", ["64k", "128k"])
def test_d15_no_window_is_above_half_a_term(driver: Driver, p: raw.Socket, subscribe: Subscribe, window: str) -> None:
    """Whatever `rcv-wnd` wants, status messages tell at most half a term: who tells more is mute to a sender of 1.53."""
    subscribing, source = subscribe(driver, p, f"|rcv-wnd={window}")
    assert source.join(subscribing).window == source.term_length // 2


def test_d20_each_image_has_its_turn(driver: Driver, opened: ExitStack) -> None:
    """Of two images that have endless data, a client of ours that polls for one fragment takes from each by turns."""
    sessions = [2001, 2002]
    subscription = opened.enter_context(driver.client.add_subscription("aeron:ipc", 20))
    for session in sessions:
        publication = opened.enter_context(
            driver.client.add_exclusive_publication(f"aeron:ipc?term-length=128k|session-id={session}", 20)
        )
        publication.wait_connected(10)
        for _ in range(700):
            assert publication.offer(b"") > 0
    taken: Counter[int] = Counter()
    for _ in range(1000):
        assert subscription.poll(lambda _, header: taken.update([int(header.session_id)]), 1) == 1
    assert all(499 <= taken[session] <= 501 for session in sessions), taken
