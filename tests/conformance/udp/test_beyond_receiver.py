"""Beyond the scenarios, receive side: where answers go and when, dropped frames, groups, IPv6, several kinds of interest."""

from __future__ import annotations

import statistics
import struct
from contextlib import ExitStack

import pytest

from aeron_spark.errors import AeronError
from tests.conformance.udp import raw
from tests.conformance.udp.conftest import Open, Subscribe
from tests.conformance.udp.driver import (
    GAP_FILLS,
    HEARTBEATS_RECEIVED,
    INVALID_PACKETS,
    LOCAL_ADDRESS,
    NAKS_SENT,
    OVER_RUNS,
    PEER,
    RCV_HWM,
    RCV_POS,
    UNDER_RUNS,
    Driver,
    ours,
)
from tests.conformance.udp.receiving import Source, Subscribing, naks, statuses
from tests.kit.ports import free_port
from tests.kit.wait import wait_until

GROUP = "224.20.30.51"
CONTROL_GROUP = "224.20.30.52"


# --- to whom ---------------------------------------------------------------------------------------------------------------


def test_the_first_address_stays(driver: Driver, p: raw.Socket, sockets: Open, subscribe: Subscribe) -> None:
    """Frames of a session are taken from everywhere, but SMs go on to where the first came from."""
    subscribing, source = subscribe(driver, p)
    source.join(subscribing)
    elsewhere = Source(sockets(), source.to, source.stream_id, session_id=source.session_id)
    message = elsewhere.data(0, 128)
    elsewhere.send(elsewhere.setup())
    elsewhere.send(message)
    subscribing.expect(message, source=source)
    elsewhere.send(elsewhere.heartbeat(128))
    source.await_status(0)
    p.drain()
    for _ in range(2):
        source.status()
    elsewhere.socket.silence(0)


@ours("Spec: 04 §23 row 8 - the Java driver answers a SETUP's source, whatever the control address", but=("stock-c",))
def test_an_explicit_control_address_hears(driver: Driver, p: raw.Socket, sockets: Open, subscribe: Subscribe) -> None:
    """With `control` SMs and NAKs of an image go there although data comes from elsewhere."""
    subscribing, heard = subscribe(driver, p, f"|control={p.endpoint}|control-mode=dynamic")
    source = Source(sockets(), heard.to, heard.stream_id, session_id=heard.session_id)
    source.send(source.setup())
    subscribing.await_image(source.session_id)
    heard.status(timeout=5)
    source.send(source.data(128, 128))
    assert heard.nak()[0].gap == 128
    source.socket.silence(0)


def test_a_source_is_asked_where_it_is(driver: Driver, p: raw.Socket, sockets: Open, subscribe: Subscribe) -> None:
    """For its SETUP, and by replies to its RTTM, the source of a datagram is answered, even with `control`."""
    _, heard = subscribe(driver, p, f"|control={p.endpoint}|control-mode=dynamic")
    source = Source(sockets(), heard.to, heard.stream_id, session_id=heard.session_id)
    source.send(source.data(0, 128))
    source.status(flags=raw.SEND_SETUP)
    heard.send(heard.setup())
    heard.status()
    source.send(
        raw.Rttm(
            flags=raw.RTTM_REQUEST,
            session_id=source.session_id,
            stream_id=source.stream_id,
            echo=4711,
            receiver_id=0,
        )
    )
    assert source.socket.expect(raw.Rttm, source.is_mine)[0].echo == 4711


def test_a_control_address_alone(driver: Driver, p: raw.Socket, opened: ExitStack) -> None:
    """Without `endpoint` a subscription has a port of the system's choice, from which it asks."""
    subscribing = opened.enter_context(Subscribing(driver, f"aeron:udp?control={p.endpoint}|control-mode=dynamic", 81))
    _, datagram = p.expect(raw.Status, lambda one: one.flags == raw.SEND_SETUP)
    labels = [one.label for one in driver.counters(LOCAL_ADDRESS)]
    assert any(label.endswith(f":{datagram.source[1]}") for label in labels)
    source = Source(p, datagram.source, 81)
    source.join(subscribing)
    message = source.data(0, 128)
    source.send(message)
    subscribing.expect(message, source=source)


def test_multicast(driver: Driver, p: raw.Socket, sockets: Open, opened: ExitStack) -> None:
    """Data arrives on the odd address; answers go to the even one, NAKs with the delay of groups."""
    port = free_port()
    heard = sockets(port=port, join=CONTROL_GROUP)
    subscribing = opened.enter_context(
        Subscribing(driver, f"aeron:udp?endpoint={GROUP}:{port}|interface=127.0.0.1", 82)
    )
    sender = sockets(join=GROUP)  # for the interface that it sends by
    source = Source(sender, (GROUP, port), 82)
    answers = Source(heard, (GROUP, port), 82, session_id=source.session_id)
    source.send(source.data(0, 128))
    answers.status(flags=raw.SEND_SETUP)
    source.send(source.setup(flags=raw.SETUP_GROUP))
    subscribing.await_image(source.session_id)
    answers.status()
    delays = []
    for at in range(0, 30 * 128, 128):
        first, second = source.run(at, 2, 64)
        sent = source.send(second)
        delays.append(answers.await_nak(at)[1].at - sent)
        source.send(first)
        subscribing.read(at // 64 + 2)
    assert statistics.median(delays) >= 0.005, f"delays in ms: {sorted(round(one * 1000, 2) for one in delays)}"


def test_ipv6(driver: Driver, sockets: Open, opened: ExitStack) -> None:
    """The same over IPv6; the source identity has brackets."""
    p = sockets("::1")
    port = free_port("::1")
    subscribing = opened.enter_context(Subscribing(driver, f"aeron:udp?endpoint=[::1]:{port}", 83))
    source = Source(p, ("::1", port), 83)
    source.send(source.data(0, 128))
    source.status(flags=raw.SEND_SETUP)
    source.join(subscribing)
    identity = f"0:0:0:0:0:0:0:1:{p.port}" if PEER == "stock-java" else p.endpoint
    assert subscribing.await_image(source.session_id).source_identity == identity
    frames = source.run(0, 3, 512)
    source.send_each([frames[0], frames[2]])
    source.await_nak(512)
    source.send(frames[1])
    subscribing.expect(*frames, source=source)


# --- when --------------------------------------------------------------------------------------------------------------------


def test_a_delay_of_naks(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """`nak-delay` is waited for before the first NAK, and a hundred times as long before the next."""
    subscribing, source = subscribe(driver, p, "|nak-delay=150ms")
    source.join(subscribing)
    frames = source.run(0, 3, 512)
    sent = source.send(frames[2])
    nak, datagram = source.nak()
    assert (source.position_of(nak), nak.gap) == (0, 1024)
    assert datagram.at - sent >= 0.15
    p.silence(0.5, raw.Nak)
    sent = source.send(frames[0])  # a smaller gap is a new one
    nak, datagram = source.nak()
    assert (source.position_of(nak), nak.gap) == (512, 512)
    assert datagram.at - sent >= 0.15
    source.send(frames[1])
    subscribing.expect(*frames, source=source)


def test_a_delay_that_loss_ends(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """What comes late but within `nak-delay` is not asked for."""
    subscribing, source = subscribe(driver, p, "|nak-delay=2s")
    source.join(subscribing)
    sent = driver.system(NAKS_SENT)
    frames = source.run(0, 16, 512)
    source.send_each(frames[::-1])
    subscribing.expect(*frames, source=source)
    assert not naks(p.collect(0.1))
    driver.await_system(NAKS_SENT, sent)


# --- what is dropped ---------------------------------------------------------------------------------------------------------


def test_heartbeats_out_of_reach(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """A heartbeat may lag a term behind the last SM, not more, and be half a term ahead, not more."""
    subscribing, source = subscribe(driver, p)
    start = 4 * source.term_length
    source.join(subscribing, start)
    under, over, taken = (driver.system(one) for one in (UNDER_RUNS, OVER_RUNS, HEARTBEATS_RECEIVED))
    source.send(source.heartbeat(start - source.term_length))
    driver.await_system(HEARTBEATS_RECEIVED, taken + 1)
    source.send(source.heartbeat(start - source.term_length - 32))
    driver.await_system(UNDER_RUNS, under + 1)
    source.send(source.heartbeat(start + source.term_length // 2 + 32, raw.EOS_HEARTBEAT))
    driver.await_system(OVER_RUNS, over + 1)
    driver.await_system(HEARTBEATS_RECEIVED, taken + 1)
    driver.await_stream(RCV_HWM, source.session_id, start, stream_id=source.stream_id)
    source.send(source.heartbeat(start + source.term_length // 2))
    driver.await_system(HEARTBEATS_RECEIVED, taken + 2)
    driver.await_stream(RCV_HWM, source.session_id, start + source.term_length // 2, stream_id=source.stream_id)
    assert source.nak()[0].gap == source.term_length // 2


@ours("Spec: 11 N2; Aeron before 1.53 counts 32 bytes for it")
def test_padding_counts_whole(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """A PAD raises rcv-hwm and rcv-pos by its whole length."""
    subscribing, source = subscribe(driver, p)
    start = source.term_length - 4096
    source.join(subscribing, start)
    source.send(source.pad(start, 4096))
    driver.await_stream(RCV_POS, source.session_id, source.term_length, stream_id=source.stream_id)
    driver.await_stream(RCV_HWM, source.session_id, source.term_length, stream_id=source.stream_id)


@ours("Spec: 04 §2.2 - the Java driver checks no lengths", but=("stock-c",))
def test_short_frames_are_counted(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """DATA, SETUP and RTTM that are shorter than their headers are invalid packets."""
    subscribing, source = subscribe(driver, p)
    source.join(subscribing)
    invalid = driver.system(INVALID_PACKETS)
    for count, frame in enumerate(
        (
            source.data(0, 64).encode()[:28],
            source.setup().encode()[:36],
            raw.Rttm(session_id=source.session_id, stream_id=source.stream_id, echo=1).encode()[:36],
        ),
        1,
    ):
        p.send(frame, source.to)
        driver.await_system(INVALID_PACKETS, invalid + count, timeout=5)


@ours(
    "Spec: 04 §2.5 - nothing is written before offset, term and lengths are known to fit; stock drivers trust the sender"
)
@pytest.mark.parametrize(
    "name",
    [
        "misaligned",
        "beyond the term",
        "over its end",
        "before the first term",
        "odd length",
        "inner length",
        "negative",
    ],
)
def test_frames_that_do_not_fit_are_counted(driver: Driver, p: raw.Socket, subscribe: Subscribe, name: str) -> None:
    """A data frame with an impossible place or length is an invalid packet; the stream continues."""
    subscribing, source = subscribe(driver, p)
    source.join(subscribing)
    frame = source.data(0, 128)
    wrong = {
        "misaligned": source.data(0, 128).encode()[:8] + struct.pack("<i", 16) + frame.encode()[12:],
        "beyond the term": frame.encode()[:8] + struct.pack("<i", 65536) + frame.encode()[12:],
        "over its end": frame.encode()[:8] + struct.pack("<i", 65536 - 64) + frame.encode()[12:],
        "before the first term": source.data(0, 128).encode()[:20] + struct.pack("<i", 6) + frame.encode()[24:],
        "odd length": frame.encode()[:-5],
        "inner length": frame.encode() + struct.pack("<i", 4096) + frame.encode()[4:],
        "negative": struct.pack("<i", -64) + frame.encode()[4:],
    }[name]
    invalid = driver.system(INVALID_PACKETS)
    p.send(wrong, source.to)
    driver.await_system(INVALID_PACKETS, invalid + 1, timeout=3)
    source.send(frame)
    subscribing.expect(frame, source=source)


# --- for whom ----------------------------------------------------------------------------------------------------------------


def test_all_sessions_and_one(driver: Driver, p: raw.Socket, subscribe: Subscribe, opened: ExitStack) -> None:
    """When the subscription of all sessions closes, sessions without another subscription end; others continue."""
    everything, one = subscribe(driver, p)
    other = Source(p, one.to, one.stream_id)
    channel = f"{everything.subscription.channel}|session-id={one.session_id}"
    just_one = opened.enter_context(Subscribing(driver, channel, one.stream_id))
    one.join(everything)
    just_one.await_image(one.session_id)
    other.join(everything)
    assert not just_one.has_image(other.session_id)
    everything.close()
    other.status(flags=raw.STATUS_EOS)
    message = one.data(0, 128)
    one.send(message)
    just_one.expect(message, source=one)
    other.send(other.data(0, 128))
    one.be_heard(128)
    assert {one.status(flags=None)[0].flags for _ in range(3)} == {0}
    other.send(other.data(0, 128))
    other.send(other.setup())
    wait_until(lambda: driver.find(RCV_POS, other.session_id, other.stream_id) is None, 10, "the other image to go")
    p.collect(0.1)
    p.drain()
    other.send(other.data(0, 128))
    assert not [status for status in statuses(p.collect(0.3)) if other.is_mine(status)]


@pytest.mark.parametrize("param", ["reliable=false", "rejoin=false", "channel-rcv-ts-offset=8"])
def test_subscriptions_that_clash(driver: Driver, p: raw.Socket, subscribe: Subscribe, param: str) -> None:
    """What shapes the image of a stream must be the same for all its subscriptions."""
    subscribing, _ = subscribe(driver, p)
    with pytest.raises(AeronError, match="conflicts"):
        driver.client.add_subscription(
            f"{subscribing.subscription.channel}|{param}", subscribing.subscription.stream_id
        )


def test_unreliable_losses_are_reported(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """The loss report also has the losses of an unreliable stream."""
    subscribing, source = subscribe(driver, p, "|reliable=false")
    source.join(subscribing)
    fills = driver.system(GAP_FILLS)
    frames = source.run(0, 3, 512)
    source.send_each([frames[0], frames[2]])
    subscribing.expect(frames[0], frames[2], source=source)
    driver.await_system(GAP_FILLS, fills + 1)
    key = struct.pack("<ii", source.session_id, source.stream_id)
    report = (driver.aeron_dir / "loss-report.dat").read_bytes()
    at = report.index(key)
    assert struct.unpack_from("<qq", report, at - 32) == (1, 512)
