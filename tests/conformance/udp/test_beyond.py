"""Beyond the scenarios: destinations, slow readers, spies, responses, ports, tags, timestamps of sending, the loss report.

Each row of the spec that shows on the wire, at the client or in the directory, and that no scenario names.
"""

from __future__ import annotations

import struct
import time
from contextlib import ExitStack
from itertools import pairwise

import pytest

from aeron_spark.errors import AeronError
from tests.conformance.udp import raw
from tests.conformance.udp.conftest import Drivers, Open, Subscribe
from tests.conformance.udp.driver import (
    LOCAL_ADDRESS,
    PUB_LIMIT,
    RCV_POS,
    SND_POS,
    SUB_POS,
    Driver,
    Publishing,
    await_value,
    ours,
)
from tests.conformance.udp.receiving import TIMEOUT_S, Source, Subscribing, naks, statuses
from tests.kit.ports import free_port, free_range
from tests.kit.wait import wait_until

TIMEOUTS = "untethered-window-limit-timeout=300ms|untethered-linger-timeout=300ms|untethered-resting-timeout=600ms"
UNTETHERED = f"tether=false|{TIMEOUTS}"


# --- who reads ---------------------------------------------------------------------------------------------------------


def slow_and_fast(
    driver: Driver, p: raw.Socket, subscribe: Subscribe, opened: ExitStack, params: str = ""
) -> tuple[Subscribing, Subscribing, Source, float]:
    """An untethered reader that has read nothing, a tethered one that has read 30 kB, their source, and when it began."""
    slow, source = subscribe(driver, p, f"|{UNTETHERED}{params}")
    fast = opened.enter_context(
        Subscribing(driver, slow.subscription.channel.replace("tether=false", "tether=true"), source.stream_id)
    )
    source.join(slow)
    fast.await_image(source.session_id)
    frames = source.run(0, 30, 1024)
    begun = time.monotonic()
    source.send_each(frames)
    fast.expect(*frames, source=source)
    return slow, fast, source, begun


def test_an_untethered_reader_is_left_behind(
    driver: Driver, p: raw.Socket, subscribe: Subscribe, opened: ExitStack
) -> None:
    """A slow reader with `tether=false` loses the image, then the limit no longer waits for it, and it joins again later."""
    slow, fast, source, begun = slow_and_fast(driver, p, subscribe, opened)
    slow.await_gone(source.session_id)
    assert time.monotonic() - begun >= 0.2
    assert {source.position_of(one) for one in statuses(p.drain())} == {0}

    def feed() -> bool:
        source.send(source.heartbeat(30 * 1024))
        return any(source.position_of(one) == 30 * 1024 for one in statuses(p.collect(0.02)))

    wait_until(feed, TIMEOUT_S, "the fast reader's position to be told")
    assert time.monotonic() - begun >= 0.5
    slow_again = slow.await_image(source.session_id)
    assert time.monotonic() - begun >= 1.1
    assert slow_again.correlation_id == fast.await_image(source.session_id).correlation_id
    last = source.data(30 * 1024, 1024)
    source.send(last)
    assert fast.read(31)[-1] == (31 * 1024, last.payload)
    assert slow.read(1) == [(31 * 1024, last.payload)]


def test_an_untethered_reader_that_may_not_come_back(
    driver: Driver, p: raw.Socket, subscribe: Subscribe, opened: ExitStack
) -> None:
    """With `rejoin=false` its position counter is freed and it never has the image again."""
    slow, fast, source, _ = slow_and_fast(driver, p, subscribe, opened, "|rejoin=false")
    slow.await_gone(source.session_id)

    def positions() -> int:
        key = struct.pack("<ii", source.session_id, source.stream_id)
        source.send(source.heartbeat(30 * 1024))
        return sum(one.key[8:16] == key for one in driver.counters(SUB_POS))

    await_value(positions, 1, "positions")
    deadline = time.monotonic() + 0.9
    while time.monotonic() < deadline:
        assert not slow.has_image(source.session_id)
        source.send(source.heartbeat(30 * 1024))
        p.collect(0.05)
    assert fast.has_image(source.session_id)


def test_a_subscription_that_comes_back_at_once(
    driver: Driver, p: raw.Socket, subscribe: Subscribe, opened: ExitStack
) -> None:
    """Closed and opened again while its image drains: a new image of the same session, and SMs of the new one alone."""
    subscribing, source = subscribe(driver, p)
    source.join(subscribing)
    source.send_each(source.run(0, 4, 512))
    subscribing.read(4)
    old = subscribing.await_image(source.session_id).correlation_id
    subscribing.close()
    source.status(flags=raw.STATUS_EOS)
    again = opened.enter_context(Subscribing(driver, subscribing.subscription.channel, source.stream_id))
    source.send(source.data(2048, 512))
    source.status(flags=raw.SEND_SETUP)
    source.join(again, 2048)
    assert again.await_image(source.session_id).correlation_id != old
    source.be_heard(2048)
    p.collect(0.3)
    came = [source.status(flags=None)[0] for _ in range(5)]
    assert {(one.flags, source.position_of(one)) for one in came} == {(0, 2048)}


# --- destinations of a subscription --------------------------------------------------------------------------------------


def _bound(driver: Driver, ports: list[int]) -> int:
    """How many sockets of subscriptions are bound to these ports."""
    labels = [one.label for one in driver.counters(LOCAL_ADDRESS) if one.label.startswith("rcv-local-sockaddr")]
    return sum(label.endswith(f" 127.0.0.1:{port}") for label in labels for port in ports)


def test_destinations_come_and_go(driver: Driver, sockets: Open, opened: ExitStack) -> None:
    """A removed destination closes its socket and receives no more; the image continues through the other."""
    p1, p2 = sockets(), sockets()
    subscribing = opened.enter_context(Subscribing(driver, "aeron:udp?control-mode=manual", 71))
    ports = [free_port(), free_port()]
    ways = [Source(p, ("127.0.0.1", port), 71, session_id=710) for p, port in zip((p1, p2), ports, strict=True)]
    channels = [f"aeron:udp?endpoint=127.0.0.1:{port}" for port in ports]
    for channel in channels:
        subscribing.subscription.add_destination(channel)
    one, two = ways
    one.join(subscribing)
    two.send(two.heartbeat(0))
    two.status()
    assert _bound(driver, ports) == 2
    subscribing.subscription.remove_destination(channels[0])
    await_value(lambda: _bound(driver, ports), 1, "bound addresses")
    frames = two.run(0, 3, 512)
    two.send_each([frames[0], frames[2]])
    nak, _ = two.await_nak(512)
    assert nak.gap == 512
    two.send(frames[1])
    subscribing.expect(*frames, source=two)
    p1.drain()
    p1.silence(0.3)
    two.send(two.heartbeat(1536, raw.EOS_HEARTBEAT))
    two.status(flags=raw.STATUS_EOS)
    subscribing.await_gone(710)


def test_a_destination_with_a_control_address_is_asked(driver: Driver, p: raw.Socket, opened: ExitStack) -> None:
    """A receive destination with `control` asks there at once and again, and SMs of its images go there."""
    subscribing = opened.enter_context(Subscribing(driver, "aeron:udp?control-mode=manual", 72))
    port = free_port()
    subscribing.subscription.add_destination(
        f"aeron:udp?endpoint=127.0.0.1:{port}|control={p.endpoint}|control-mode=dynamic"
    )
    source = Source(p, ("127.0.0.1", port), 72)
    asking, datagram = p.expect(raw.Status, lambda one: one.flags == raw.SEND_SETUP)
    assert (asking.session_id, asking.stream_id, datagram.source) == (0, 0, source.to)
    source.join(subscribing)


def _mixed(driver: Driver, q: raw.Socket, opened: ExitStack, stream_id: int) -> tuple[Subscribing, Publishing, str]:
    """A publication to Q, and a subscription of destinations that spies on it."""
    stream = opened.enter_context(Publishing(driver, f"aeron:udp?endpoint={q.endpoint}", stream_id))
    subscribing = opened.enter_context(Subscribing(driver, "aeron:udp?control-mode=manual", stream_id))
    spy = f"aeron-spy:aeron:udp?endpoint={q.endpoint}"
    subscribing.subscription.add_destination(spy)
    subscribing.await_image(stream.session_id)
    stream.connect(q)
    return subscribing, stream, spy


def test_a_spy_and_ipc_as_destinations(driver: Driver, q: raw.Socket, opened: ExitStack) -> None:
    """A subscription of destinations may have a spy and IPC among them."""
    subscribing, stream, _ = _mixed(driver, q, opened, 73)
    local = opened.enter_context(driver.client.add_exclusive_publication("aeron:ipc?term-length=64k", 73))
    subscribing.subscription.add_destination("aeron:ipc")
    subscribing.await_image(int(local.session_id))
    local.wait_connected(10)
    assert stream.publication.offer(b"from the network") > 0
    assert local.offer(b"from here") > 0
    assert {message for _, message in subscribing.read(2)} == {b"from the network", b"from here"}
    subscribing.subscription.remove_destination("aeron:ipc")
    subscribing.await_gone(int(local.session_id))


@ours(
    "Spec: 03 §6.7 - the image of a spy that is removed goes; the C driver does not tell its client",
    but=("stock-java",),
)
def test_a_spy_that_was_a_destination(driver: Driver, q: raw.Socket, opened: ExitStack) -> None:
    """When a spy is removed from the destinations its image is unavailable."""
    subscribing, stream, spy = _mixed(driver, q, opened, 70)
    subscribing.subscription.remove_destination(spy)
    subscribing.await_gone(stream.session_id, 5)


# --- spies ------------------------------------------------------------------------------------------------------------------


def test_a_spy_needs_a_receiver(driver: Driver, q: raw.Socket, opened: ExitStack) -> None:
    """A spy alone does not connect; with a receiver it reads the sent data, and limits the publisher when it stalls."""
    stream = opened.enter_context(Publishing(driver, f"aeron:udp?endpoint={q.endpoint}|term-length=64k", 74))
    spy = opened.enter_context(Subscribing(driver, f"aeron-spy:aeron:udp?endpoint={q.endpoint}", 74))
    assert spy.await_image(stream.session_id).source_identity == "aeron:ipc"
    q.expect(raw.Setup)
    q.collect(0.25)
    assert not stream.publication.is_connected
    stream.connect(q)
    stream.offer(1000, 1000)
    assert spy.read(2)[0][1] == b"\x01" * 1000
    stream.feed(q, 15, 992)
    driver.await_stream(SND_POS, stream.session_id, 2 * 1056 + 15 * 1024, stream_id=74)
    limit = driver.stream(PUB_LIMIT, stream.session_id, 74)
    assert limit <= 2 * 1056 + raw.TERM_LENGTH // 2
    spy.read(17)
    await_value(
        lambda: driver.stream(PUB_LIMIT, stream.session_id, 74),
        2 * 1056 + 15 * 1024 + raw.TERM_LENGTH // 2,
        "the limit that was held by the spy",
    )


@pytest.mark.parametrize("is_exclusive", [True, False])
def test_a_spy_that_stands_for_a_connection(
    driver: Driver, q: raw.Socket, opened: ExitStack, is_exclusive: bool
) -> None:
    """With `ssc=true` a spy connects the publisher; on the wire there is nothing but SETUPs, at the position of the spy."""
    channel = f"aeron:udp?endpoint={q.endpoint}|term-length=64k|ssc=true|linger=500ms"
    stream = opened.enter_context(Publishing(driver, channel, 75, exclusive=is_exclusive))
    assert not stream.publication.is_connected
    spy = opened.enter_context(Subscribing(driver, f"aeron-spy:aeron:udp?endpoint={q.endpoint}", 75))
    stream.await_connected()
    for count in range(1, 80):
        wait_until(lambda: stream.publication.offer(bytes(992)) > 0, 10, "room")
        spy.read(count)
    driver.await_stream(SND_POS, stream.session_id, 79 * 1024, stream_id=75)
    q.drain()
    came = q.take(6)
    raw.assert_period(came, 0.1)
    assert {type(one.frame) for one in came} == {raw.Setup}
    assert {one.frame.position for one in came} == {79 * 1024}
    stream.publication.offer(b"unread at the close")
    stream.close()
    closed = q.take(4)
    assert {type(one.frame) for one in closed} == {raw.Setup}
    assert spy.has_image(stream.session_id)
    assert spy.read(80)[-1][1] == b"unread at the close"
    spy.await_gone(stream.session_id)
    stream.await_gone()


def test_a_slow_untethered_spy_is_left_behind(driver: Driver, q: raw.Socket, opened: ExitStack) -> None:
    """A spy with `tether=false` that lags loses the image, later frees the limit, and joins again at the sent position."""
    channel = f"aeron:udp?endpoint={q.endpoint}|term-length=64k|{TIMEOUTS}"
    stream = opened.enter_context(Publishing(driver, channel, 76))
    spy = opened.enter_context(Subscribing(driver, f"aeron-spy:aeron:udp?endpoint={q.endpoint}|tether=false", 76))
    spy.await_image(stream.session_id)
    stream.connect(q)
    stream.feed(q, 30, 992)
    spy.await_gone(stream.session_id)
    driver.await_stream(PUB_LIMIT, stream.session_id, raw.TERM_LENGTH // 2, stream_id=76)
    await_value(
        lambda: driver.stream(PUB_LIMIT, stream.session_id, 76),
        30 * 1024 + raw.TERM_LENGTH // 2,
        "the limit",
        timeout=TIMEOUT_S,
    )
    assert spy.await_image(stream.session_id)
    stream.offer(100)
    assert spy.read(1) == [(30 * 1024 + 160, b"\x01" * 100)]


# --- responses ----------------------------------------------------------------------------------------------------------------


def test_a_requester(driver: Driver, q: raw.Socket, opened: ExitStack) -> None:
    """A publication with a response subscription: its SETUPs say so; RSP_SETUP makes the subscription one of that session."""
    control = free_port()
    responder = opened.enter_context(raw.Socket(port=control))
    responses = opened.enter_context(
        Subscribing(driver, f"aeron:udp?control-mode=response|control=127.0.0.1:{control}", 78)
    )
    asking, datagram = responder.expect(raw.Status, lambda one: one.flags == raw.SEND_SETUP)
    assert (asking.session_id, asking.stream_id) == (0, 0)
    stray = Source(responder, datagram.source, 78)
    stray.send(stray.setup())
    registration = int(responses.subscription.registration_id)
    stream = opened.enter_context(
        Publishing(driver, f"aeron:udp?endpoint={q.endpoint}|response-correlation-id={registration}", 77)
    )
    setup, _ = q.expect(raw.Setup)
    assert setup.flags == raw.SETUP_SEND_RESPONSE
    q.send(raw.ResponseSetup(session_id=stream.session_id, stream_id=77, response_session_id=4242))
    asking, _ = responder.expect(raw.Status, lambda one: one.session_id == 4242)
    assert (asking.flags, asking.stream_id) == (raw.SEND_SETUP, 78)
    response = Source(responder, datagram.source, 78, session_id=4242)
    response.join(responses)
    message = response.data(0, 128)
    response.send(message)
    responses.expect(message, source=response)
    assert not responses.has_image(stray.session_id)
    q.send(raw.ResponseSetup(session_id=stream.session_id, stream_id=77, response_session_id=4242))
    responder.expect(raw.Status, lambda one: one.session_id == 4242 and one.flags == raw.SEND_SETUP)


# --- settings -----------------------------------------------------------------------------------------------------------------


def test_wildcard_ports_of_a_range(drivers: Drivers, opened: ExitStack) -> None:
    """Port 0 gives the ports of the range, and an error when they are all taken; a port that is given back serves again."""
    first = free_range(4)
    receiving, sending = {str(first), str(first + 1)}, {str(first + 2), str(first + 3)}
    driver = drivers(
        {
            "aeron.receiver.wildcard.port.range": f"{first} {first + 1}",
            "aeron.sender.wildcard.port.range": f"{first + 2} {first + 3}",
        }
    )
    taken = [Subscribing(driver, "aeron:udp?endpoint=127.0.0.1:0", 79) for _ in range(2)]
    labels = [one.label for one in driver.counters(LOCAL_ADDRESS)]
    assert sorted(label.rsplit(":", 1)[1] for label in labels) == sorted(receiving)
    with pytest.raises(AeronError):
        driver.client.add_subscription("aeron:udp?endpoint=127.0.0.1:0", 79)
    for one in taken:
        one.close()
    wait_until(lambda: not driver.counters(LOCAL_ADDRESS), TIMEOUT_S, "the ports to be given back")
    opened.enter_context(Subscribing(driver, "aeron:udp?endpoint=127.0.0.1:0", 79))
    opened.enter_context(driver.client.add_publication("aeron:udp?control=127.0.0.1:0|control-mode=dynamic", 79))
    labels = [one.label for one in driver.counters(LOCAL_ADDRESS)]
    assert {label.rsplit(":", 1)[1] for label in labels} & receiving
    assert {label.rsplit(":", 1)[1] for label in labels} & sending


def test_the_settings_group_tag(drivers: Drivers, p: raw.Socket, subscribe: Subscribe) -> None:
    """`aeron.receiver.group.tag` is the tag of channels that have none of their own."""
    driver = drivers({"aeron.receiver.group.tag": "77"})
    subscribing, source = subscribe(driver, p)
    assert source.join(subscribing).tag == 77
    other, source = subscribe(driver, p, "|gtag=5")
    assert source.join(other).tag == 5


# --- what is written down -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "at"), [("reserved", 24), ("8", 40)])
def test_the_time_of_sending(driver: Driver, q: raw.Socket, opened: ExitStack, value: str, at: int) -> None:
    """`channel-snd-ts-offset` puts the time into a datagram's first frame that begins a message, anew when resent."""
    channel = f"aeron:udp?endpoint={q.endpoint}|term-length=64k|channel-snd-ts-offset={value}"
    stream = opened.enter_context(Publishing(driver, channel, 80))
    stream.connect(q)
    before = time.time_ns()
    stream.offer(1344)
    stream.offer(2000)
    stamps = []
    for expected in (True, True, False):
        _, datagram = q.expect(raw.Data, lambda one: not one.is_heartbeat)
        (stamp,) = struct.unpack_from("<q", datagram.data, at)
        assert (before - 2_000_000 <= stamp <= time.time_ns() + 2_000_000) == expected
        stamps.append(stamp)
    q.send(stream.nak(0, 1376))
    _, datagram = q.expect(raw.Data, lambda one: not one.is_heartbeat)
    assert struct.unpack_from("<q", datagram.data, at)[0] > stamps[0]
    heartbeat, _ = q.expect(raw.Data, lambda one: one.is_heartbeat)
    assert heartbeat.reserved == 0


def _loss_entries(driver: Driver) -> list[tuple[int, int, int, int, int, int, str, str]]:
    """Spec: 04 §19."""
    data = (driver.aeron_dir / "loss-report.dat").read_bytes()
    entries = []
    at = 0
    while at + 64 <= len(data):
        count, lost, first, last, session, stream, length = struct.unpack_from("<qqqqiii", data, at)
        if count <= 0:
            break
        channel = data[at + 44 : at + 44 + length].decode()
        source_at = at + 44 + (length + 3) // 4 * 4
        (source_length,) = struct.unpack_from("<i", data, source_at)
        source = data[source_at + 4 : source_at + 4 + source_length].decode()
        entries.append((count, lost, first, last, session, stream, channel, source))
        at += (source_at - at + 4 + source_length + 63) // 64 * 64
    return entries


def test_the_loss_report(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """One entry for an image: count, bytes, first and last time, and the stream; a gap that is reported again adds nothing."""
    subscribing, source = subscribe(driver, p)
    source.join(subscribing)
    begun = int(time.time() * 1000)

    def entry() -> tuple[int, int, int, int, int, int, str, str] | None:
        mine = [one for one in _loss_entries(driver) if one[4:6] == (source.session_id, source.stream_id)]
        assert len(mine) <= 1
        return mine[0] if mine else None

    frames = source.run(0, 8, 512)
    source.send_each([frames[0], frames[2]])
    source.await_nak(512)
    p.collect(0.05)
    count, lost, first, last, *_, channel, origin = wait_until(entry, 10, "an entry")
    assert (count, lost) == (1, 512)
    assert begun - 10 <= first <= last <= time.time() * 1000 + 10
    assert channel == subscribing.subscription.channel
    assert origin == p.endpoint
    source.send(frames[1])
    subscribing.read(3)
    source.send(frames[6])
    source.await_nak(3 * 512)
    await_value(lambda: (entry() or ())[:2], (2, 512 + 3 * 512), "count and bytes")
    source.send(frames[3])  # the gap shrinks: nothing new is lost
    source.await_nak(4 * 512)
    p.collect(0.05)
    assert (entry() or ())[:2] == (2, 512 + 3 * 512)
    source.send_each(frames[4:6])
    source.send(source.heartbeat(8 * 512))
    source.await_nak(7 * 512)
    await_value(lambda: (entry() or ())[:2], (3, 512 + 4 * 512), "count and bytes")
    source.send(frames[7])
    subscribing.expect(*frames, source=source)


def test_cubic_grows_by_the_clock(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """Without loss the window of `cc=cubic` grows from 19 to 23 MTU in a second, each step reported at once. Spec: 04 §10.3."""
    subscribing, source = subscribe(driver, p, "|cc=cubic")
    sent = time.time()
    first = source.join(subscribing).window
    source.be_heard()
    heard = [(first // raw.MTU, time.time())]
    while heard[-1][0] < 23:
        status, datagram = source.status()
        heard.append((status.window // raw.MTU, datagram.at))
    assert heard[0][0] in (10, 19, 20, 21)
    for (before, at), (after, later) in pairwise(heard):
        # Where no status message comes for longer than 200 ms the machine stood still, but not its clock.
        assert after - before in (0, 1, 2, 9, 10, 11) or later - at > 0.3, heard
    assert heard[-1][1] - sent >= 0.85


def test_two_gaps_in_two_terms(driver: Driver, p: raw.Socket, subscribe: Subscribe) -> None:
    """A gap that lasts over the end of a term is asked for term by term."""
    subscribing, source = subscribe(driver, p)
    start = raw.TERM_LENGTH - 4096
    source.join(subscribing, start)
    frames = [*source.run(start, 4, 1024), *source.run(raw.TERM_LENGTH, 4, 1024)]
    source.send_each([frames[0], frames[7]])
    nak, _ = source.nak()
    assert (source.position_of(nak), nak.gap) == (start + 1024, 3 * 1024)
    source.send_each(frames[1:4])
    nak, _ = source.await_nak(raw.TERM_LENGTH)
    assert nak.gap == 3 * 1024
    source.send_each(frames[4:7])
    subscribing.expect(*frames, source=source)
    driver.await_stream(RCV_POS, source.session_id, raw.TERM_LENGTH + 4096, stream_id=source.stream_id)
    p.collect(0.02)
    assert not naks(p.collect(0.05))
