"""Beyond the scenarios, publisher side: resends, groups, errors, and which channels are refused by which code.

Found by watching stock drivers, which pass as ours does.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace

import pytest

from aeron_spark.counters import Counters
from aeron_spark.errors import PeerError
from tests.conformance.udp import raw
from tests.conformance.udp.conftest import Drivers
from tests.conformance.udp.driver import (
    ERRORS,
    ERRORS_RECEIVED,
    FC_RECEIVERS,
    IMPATIENT,
    INVALID_PACKETS,
    LOCAL_ADDRESS,
    NAKS_RECEIVED,
    PEER,
    PUB_LIMIT,
    RETRANSMITS_SENT,
    RETRANSMITTED_BYTES,
    SND_CHANNEL,
    SND_LIMIT,
    SND_POS,
    STATUS_RECEIVED,
    Driver,
    Publishing,
    ours,
)
from tests.conformance.udp.test_publisher import TRIES
from tests.conformance.udp.test_publisher_cast import WILDCARD, Cast
from tests.kit.ports import free_port
from tests.kit.wait import wait_until

CHANNEL = "aeron:udp?endpoint={}|term-length=64k"
LINGER = "|linger=300ms"
INVALID_CHANNEL, GENERIC = 1, 11


@pytest.fixture
def stream(driver: Driver, q: raw.Socket, opened: ExitStack) -> Publishing:
    """A publication to Q without an answer yet."""
    return opened.enter_context(Publishing(driver, CHANNEL.format(q.endpoint) + LINGER))


def data(came: list[raw.Datagram]) -> list[list[tuple[int, int | None]]]:
    """Offset and length of the data frames, by datagram."""
    return [
        [(frame.term_offset, frame.length) for frame in one.frames if isinstance(frame, raw.Data)]
        for one in came
        if isinstance(one.frame, raw.Data) and one.frame.length
    ]


def test_resends_are_whole_frames(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """A resend consists of whole frames, up to the end of the NAK."""
    stream.connect(q, window=32768)
    stream.feed(q, 5)
    for offset, length, resent in (
        (0, 100, 0),  # shorter than the frame
        (0, 1407, 0),
        (0, 1408 + 700, 1),  # what is left over is no frame
        (1408, 3 * 1408, 3),
        (32, 1408, 0),  # inside of a frame, where no frame begins
        (raw.TERM_LENGTH - 32, 32, 0),
    ):
        before = driver.system(RETRANSMITS_SENT)
        naks = driver.system(NAKS_RECEIVED)
        q.send(stream.nak(offset, length))
        driver.await_system(NAKS_RECEIVED, naks + 1)
        driver.await_system(RETRANSMITS_SENT, before + (resent > 0))
        assert data(q.collect(0.02)) == [[(offset + index * 1408, 1408)] for index in range(resent)]
        driver.await_system(RETRANSMITS_SENT, before + (resent > 0))


def test_resends_are_packed_anew(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """What went out in full datagrams is packed from where the NAK begins when it is sent again."""
    stream.connect(q, window=0)
    stream.offer(*[100] * 20)
    q.send(stream.status(window=32768))
    full = [(offset * 160, 132) for offset in range(20)]
    stream.await_counter(SND_POS, 20 * 160)
    assert data(q.drain()) == [full[:8], full[8:16], full[16:]]
    before = driver.system(RETRANSMITTED_BYTES)
    q.send(stream.nak(160, 160 * 11))
    driver.await_system(RETRANSMITTED_BYTES, before + 160 * 11)
    assert data(q.collect(0.05)) == [full[1:9], full[9:12]]


def test_group_hears_resends_and_replies(driver: Driver, opened: ExitStack) -> None:
    """A resend goes to all destinations, an RTTM reply to the requesting one only (stock: to all)."""
    cast = Cast(driver, opened)
    sockets = [cast.socket(), cast.socket()]
    for number, q in enumerate(sockets):
        cast.status(q, receiver=number + 1)
    cast.stream.await_connected()
    cast.stream.offer(100)
    for q in sockets:
        q.expect(raw.Data, lambda one: not one.is_heartbeat)
    sockets[0].send(cast.stream.nak(0, 160), to=cast.control)
    for q in sockets:
        q.expect(raw.Data, lambda one: not one.is_heartbeat)
    for number, q in enumerate(sockets):
        request = raw.Rttm(
            session_id=cast.stream.session_id, stream_id=1001, echo=5, receiver_id=number + 1, flags=raw.RTTM_REQUEST
        )
        q.send(request, to=cast.control)
        q.expect(raw.Rttm, lambda one, asked=number + 1: one.receiver_id == asked)


def test_the_window_may_be_any_part_of_a_frame(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """A window that is no multiple of the MTU lets whole frames out."""
    stream.connect(q, window=0)
    stream.offer(*[1376] * 5)
    invalid = driver.system(INVALID_PACKETS)
    position = 0
    for window, frames in ((100, 0), (1407, 0), (1408, 1), (3000, 2), (32768, 2)):
        before = driver.system(STATUS_RECEIVED)
        q.send(stream.status(position, window))
        driver.await_system(STATUS_RECEIVED, before + 1)
        position += frames * 1408
        stream.await_counter(SND_POS, position)
        assert sum(len(one) for one in data(q.collect(0.03))) == frames, window
    driver.await_system(INVALID_PACKETS, invalid)


def test_disconnected_the_publisher_is_held(drivers: Drivers, q: raw.Socket, opened: ExitStack) -> None:
    """Without receivers pub-lmt falls to snd-pos and the window stays; asked, SETUPs go on until an SM comes back."""
    driver = drivers(IMPATIENT)
    stream = opened.enter_context(Publishing(driver, CHANNEL.format(q.endpoint) + LINGER))
    stream.connect(q)
    stream.offer(100, 100)
    driver.await_stream(PUB_LIMIT, stream.session_id, 320 + raw.TERM_LENGTH // 2)
    stream.await_disconnected()
    driver.await_stream(PUB_LIMIT, stream.session_id, 320)
    stream.await_counter(SND_LIMIT, 32768)
    q.drain()
    q.send(stream.send_setup())
    setups = [q.expect(raw.Setup)[0] for _ in range(3)]
    assert {one.position for one in setups} == {320}
    q.send(stream.status(0, 1000))
    stream.await_connected()
    driver.await_stream(PUB_LIMIT, stream.session_id, 320 + raw.TERM_LENGTH // 2)
    stream.await_counter(SND_LIMIT, 32768)
    q.collect(0.12)
    q.silence(0.25, raw.Setup)


def test_nobody_ever_came(driver: Driver, q: raw.Socket, opened: ExitStack) -> None:
    """A publication that was never connected sends SETUPs until its linger is over."""
    lasted = []
    for _ in range(TRIES):
        stream = opened.enter_context(Publishing(driver, CHANNEL.format(q.endpoint) + LINGER))
        q.expect(raw.Setup)
        closed = time.time()
        stream.close()
        stream.await_gone()
        came = q.drain()
        assert all(isinstance(one.frame, raw.Setup) for one in came)
        q.silence(0.2)
        lasted.append(came[-1].at - closed if came else 0.0)
        if lasted[-1] >= 0.3 - 0.15:
            return
    raise AssertionError(f"the last SETUPs came {lasted} s after the close")


def test_a_stalled_dead_receiver_gets_no_eos(drivers: Drivers, q: raw.Socket, opened: ExitStack) -> None:
    """Closed with unsent data, and the receiver goes: heartbeats never carry EOS, and the stream goes after its linger."""
    driver = drivers(IMPATIENT)
    stream = opened.enter_context(Publishing(driver, CHANNEL.format(q.endpoint) + LINGER))
    stream.connect(q, window=0)
    stream.offer(100)
    stream.close()
    stream.await_gone()
    assert {one.frame.flags for one in q.drain()} == {raw.UNFRAGMENTED}


@pytest.mark.parametrize("window", [32768, 0])
def test_revoked_whatever_is_unsent(stream: Publishing, q: raw.Socket, window: int) -> None:
    """A revoked stream's heartbeats carry the sender's position; unsent data stays unsent."""
    stream.connect(q, window=window)
    stream.offer(100)
    q.collect(0.02)
    stream.publication.revoke()
    beat, _ = q.expect(raw.Data, lambda one: one.flags == raw.REVOKED_HEARTBEAT)
    assert beat.term_offset == (160 if window else 0)
    stream.await_gone()
    assert {(one.frame.flags, one.frame.term_offset) for one in q.drain()} <= {(beat.flags, beat.term_offset)}


def test_streams_of_a_channel_share_a_socket(driver: Driver, q: raw.Socket, opened: ExitStack) -> None:
    """Two streams of a channel come from one socket, counted once; each has its own connection."""
    streams = [opened.enter_context(Publishing(driver, CHANNEL.format(q.endpoint), 1001 + more)) for more in range(2)]
    sources = {q.expect(raw.Setup, lambda one: one.stream_id == 1001 + more)[1].source for more in range(2)}  # noqa: B023
    assert len(sources) == 1
    channels = [one for one in driver.counters(SND_CHANNEL) if q.endpoint in one.label]
    address = ":".join(str(part) for part in sources.pop())
    assert [one.label.split()[-1] for one in channels] == [address]
    assert [one.value for one in channels] == [1]
    assert len([one for one in driver.counters(LOCAL_ADDRESS) if one.label.endswith(f" {address}")]) == 1
    q.send(streams[0].status())
    streams[0].await_connected()
    assert not streams[1].publication.is_connected


def test_min_takes_what_it_gave_back(driver: Driver, opened: ExitStack) -> None:
    """With fc=min the limit follows the slowest, down too; an EOS SM or an ERR takes a receiver out at once."""
    cast = Cast(driver, opened, "control-mode=dynamic|fc=min")
    session = cast.stream.session_id
    first, second = cast.socket(), cast.socket()
    cast.status(first, window=4096, receiver=1)
    cast.status(second, window=2048, receiver=2)
    driver.await_stream(FC_RECEIVERS, session, 2)
    driver.await_stream(SND_LIMIT, session, 2048)
    cast.status(second, window=1024, receiver=2)
    driver.await_stream(SND_LIMIT, session, 1024)
    cast.status(second, window=1024, receiver=2, flags=raw.STATUS_EOS)
    driver.await_stream(FC_RECEIVERS, session, 1)
    driver.await_stream(SND_LIMIT, session, 4096)
    cast.status(second, window=8192, receiver=3)
    cast.status(first, window=16384, receiver=1)
    driver.await_stream(SND_LIMIT, session, 8192)
    second.send(raw.Error(session_id=session, stream_id=1001, receiver_id=3, text=b"no more"), to=cast.control)
    driver.await_stream(FC_RECEIVERS, session, 1)
    driver.await_stream(SND_LIMIT, session, 16384)


def test_a_joining_receiver_holds_the_limit(driver: Driver, opened: ExitStack) -> None:
    """With fc=min a receiver that asks for a SETUP holds the limit where it is until it has joined."""
    cast = Cast(driver, opened, "control-mode=dynamic|fc=min")
    session = cast.stream.session_id
    there, joining = cast.socket(), cast.socket()
    cast.status(there, window=4096, receiver=1)
    driver.await_stream(SND_LIMIT, session, 4096)
    joining.send(cast.stream.send_setup(receiver_id=2))
    joining.expect(raw.Setup)
    cast.status(there, window=8192, receiver=1)
    there.collect(0.05)
    cast.stream.await_counter(SND_LIMIT, 4096)
    cast.status(joining, window=8192, receiver=2)
    driver.await_stream(SND_LIMIT, session, 8192)


def test_destinations_are_of_whoever_asks(driver: Driver, opened: ExitStack) -> None:
    """An SM of an unknown session makes a destination; one that is rejected for its position makes none."""
    cast = Cast(driver, opened)
    cast.status(cast.socket(), raw.TERM_LENGTH)
    assert cast.destinations == 0
    stranger = cast.socket()
    stranger.send(replace(cast.stream.status(), session_id=cast.stream.session_id + 1))
    cast.await_destinations(1)
    stranger.expect(raw.Setup)


def test_a_destination_given_twice_is_two(driver: Driver, opened: ExitStack) -> None:
    """A manual destination that is added twice gets everything twice, and one removal takes one of them."""
    cast = Cast(driver, opened, "control-mode=manual")
    q = cast.socket()
    for count in (1, 2):
        cast.stream.publication.add_destination(f"aeron:udp?endpoint={q.endpoint}")
        cast.await_destinations(count)
    q.send(WILDCARD)
    q.drain()
    came = q.take(8)
    assert any(
        after - before < 0.05 for before, after in zip([x.at for x in came], [x.at for x in came][1:], strict=False)
    )
    cast.stream.publication.remove_destination(f"aeron:udp?endpoint={q.endpoint}")
    cast.await_destinations(1)


def test_errors_stand_in_the_log(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """A receiver's ERR is one distinct error of the driver's log, in these words; of an unknown receiver it is none."""
    stream.connect(q, receiver_id=4711)
    counts = driver.system(ERRORS), driver.system(ERRORS_RECEIVED)
    error = raw.Error(session_id=stream.session_id, stream_id=1001, receiver_id=4712, code=13, text=b"of no use")
    q.send(error)
    driver.await_system(ERRORS_RECEIVED, counts[1] + 1)
    q.send(replace(error, receiver_id=4711))
    driver.await_system(ERRORS, counts[0] + 1)
    with Counters(driver.aeron_dir) as counters:
        found = [one.text for one in counters.errors() if "of no use" in one.text]
    registration = stream.publication.constants.registration_id
    text = (
        f"onPublicationError: registrationId={registration}, destinationRegistrationId=-1, "
        f"sessionId={stream.session_id}, streamId=1001, receiverId=4711, groupId=-1, errorCode=13, errorMessage=of no use"
    )
    prefix = "io.aeron.exceptions.AeronEvent: WARN - " if PEER == "stock-java" else ""
    assert [one.strip() for one in found] == [prefix + text]


def test_texts_of_errors(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """The text reaches the client up to the 1023 bytes that a frame may have."""
    stream.connect(q)
    for text in (b"", b"of 1023 bytes" + b"y" * 1010):
        q.send(stream.status())
        stream.await_connected()
        expected = (stream.session_id, stream.stream_id, raw.IMAGE_REJECTED, text.decode())
        q.send(raw.Error(session_id=stream.session_id, stream_id=stream.stream_id, text=text))
        wait_until(lambda: expected in [one[1:] for one in driver.publication_errors], 10, "the error at the client")  # noqa: B023
        stream.await_disconnected()


@ours("Spec: 04 §2.7 - stock drivers trust the length that the frame tells")
@ours("Spec: 11 N4; Aeron before 1.53 believes it")
def test_a_window_that_no_receiver_has(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """A window that is negative or above half a term is an invalid packet, and lets nothing out."""
    stream.connect(q, window=0)
    stream.offer(*[1376] * 5)
    invalid, received = driver.system(INVALID_PACKETS), driver.system(STATUS_RECEIVED)
    for number, window in enumerate((-5, 32769, 65536, 2**31 - 1)):
        q.send(stream.status(0, window))
        driver.await_system(INVALID_PACKETS, invalid + number + 1)
    assert not data(q.collect(0.03))
    assert driver.system(STATUS_RECEIVED) == received


@ours("Spec: 11 N6; Aeron before 1.53 cuts the text at the datagram's end")
def test_an_error_that_claims_too_much(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """An error whose text would reach beyond its frame is an invalid packet; the publication stays connected."""
    stream.connect(q)
    invalid, told = driver.system(INVALID_PACKETS), len(driver.publication_errors)
    q.send(raw.Error(session_id=stream.session_id, stream_id=stream.stream_id, text_length=900, text=b"abc"))
    driver.await_system(INVALID_PACKETS, invalid + 1)
    assert stream.publication.is_connected
    assert len(driver.publication_errors) == told


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ("mtu=4096", GENERIC),
        ("session-id=4711", GENERIC),
        ("ssc=true", GENERIC),
        ("init-term-id=1|term-id=1|term-offset=0", GENERIC),
        ("linger=1s|eos=false|sparse=true|pub-wnd=16k|max-resend=4|ttl=3|alias=a|tags=5,6", None),
    ],
)
def test_shared_publications_agree(
    driver: Driver, q: raw.Socket, opened: ExitStack, params: str, code: int | None
) -> None:
    """What a second shared publication may say otherwise, and what not; an exclusive one is free."""
    channel = CHANNEL.format(q.endpoint)
    first = opened.enter_context(Publishing(driver, channel, exclusive=False))
    if code is None:
        second = opened.enter_context(Publishing(driver, f"{channel}|{params}", exclusive=False))
        assert second.session_id == first.session_id
        return
    with pytest.raises(PeerError) as raised:
        Publishing(driver, f"{channel}|{params}", exclusive=False)
    assert raised.value.code == code
    opened.enter_context(Publishing(driver, f"{channel}|linger=0s|{params}"))


def test_a_session_id_is_taken_once(driver: Driver, q: raw.Socket, opened: ExitStack) -> None:
    """A session id in use on a channel and stream, by a stream that lingers too, is an invalid channel."""
    channel = CHANNEL.format(q.endpoint) + "|session-id=77"
    first = opened.enter_context(Publishing(driver, channel + "|linger=5s"))
    first.connect(q)
    for _ in range(2):
        for exclusive in (True, False):
            with pytest.raises(PeerError, match="clashing") as raised:
                Publishing(driver, channel, exclusive=exclusive)
            assert raised.value.code == INVALID_CHANNEL
        first.close()
    q.send(first.status(flags=raw.STATUS_EOS))
    first.await_gone()
    opened.enter_context(Publishing(driver, channel + "|linger=0s"))


# Where the two stock drivers refuse by different codes, ours has the C driver's: the second.
REFUSED = [
    ("aeron:udp", (1, 1)),
    ("aeron:udp?endpoint=localhost", (1, 11)),
    ("aeron:udp?endpoint=localhost:99999", (1, 11)),
    ("aeron:udp?endpoint=no host:4000", (1, 9)),
    ("aeron:udp?endpoint=127.0.0.1:0", (11, 11)),
    ("aeron:udp?endpoint=127.0.0.1:24326|mtu=100", (11, 11)),
    ("aeron:udp?endpoint=127.0.0.1:24326|mtu=65536", (11, 11)),
    ("aeron:udp?endpoint=127.0.0.1:24326|term-length=100", (11, 11)),
    ("aeron:udp?endpoint=127.0.0.1:24326|session-id=abc", (1, 11)),
    ("aeron:udp?endpoint=127.0.0.1:24326|init-term-id=1", (1, 11)),
    ("aeron:udp?endpoint=127.0.0.1:24326|pub-wnd=100", (1, 11)),
    ("aeron:udp?endpoint=127.0.0.1:24326|max-resend=257", (1, 11)),
    ("aeron:udp?endpoint=127.0.0.1:24326|interface=no host", (1, 9)),
    ("aeron:udp?endpoint=127.0.0.1:24326|interface=127.0.0.1:x", (1, 11)),
    ("aeron:udp?endpoint=127.0.0.1:24326|response-correlation-id=77", (11, 11)),
    ("aeron:udp?tags=-1", (1, 1)),
    ("aeron:udp?tags=555", (1, 11)),
    ("aeron:udp?control=127.0.0.1:24326", (11, 11)),
    ("aeron:udp?control-mode=dynamic", (1, 1)),
    ("aeron:udp?control=127.0.0.1:24326|control-mode=response", (11, 11)),
    ("aeron:udp?endpoint=224.20.30.39:{}|interface=127.0.0.1|fc=bogus", (11, 11)),
    ("aeron:udp?endpoint=224.20.30.39:{}|interface=127.0.0.1|fc=max,rrwm:0", (11, 11)),
    ("aeron:udp?endpoint=224.20.30.39:{}|interface=1.2.3.4", (1, 11)),
]


@pytest.mark.parametrize(("channel", "codes"), REFUSED)
def test_what_is_refused(driver: Driver, channel: str, codes: tuple[int, int]) -> None:
    """A channel that can't be is refused by the stock code."""
    with pytest.raises(PeerError) as raised:
        driver.client.add_publication(channel.format(free_port()), 1001)
    assert raised.value.code == codes[PEER != "stock-java"]


@pytest.mark.parametrize("params", ["interface=localhost", "fc=min,", "interface=localhost/8"])
def test_what_is_not_refused(driver: Driver, params: str) -> None:
    """Names of interface addresses are resolved, and a comma at the end of `fc` has no meaning."""
    port = free_port()
    driver.client.add_publication(f"aeron:udp?endpoint=224.20.30.39:{port}|linger=0s|{params}", 1001).close()
