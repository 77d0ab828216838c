"""Goal: what runs on a stock driver over UDP runs on the driver under test, as applications see it through the stock client.

Method: stock clients in the gateway's JVM, one driver of the file with shorter timeouts, each test on ports and streams of its
own. `--subject stock` proves that a stock driver behaves as told here. What concerns IPC alone is in test_driver_ipc.
"""

# ruff: noqa: PLR0917 - fixtures are arguments
from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.test_driver_ipc import BACK_PRESSURED, MAX_POSITION_EXCEEDED, NOT_CONNECTED, wait_event
from tests.interop.test_driver_udp import SIZES, assert_read
from tests.kit import dirs, stock
from tests.kit.cnc import Cnc
from tests.kit.ports import free_port
from tests.kit.subject import Subject
from tests.kit.wait import wait_until

TIMEOUT_MS = 20_000

SETTINGS = {
    "aeron.term.buffer.length": "64k",
    "aeron.timer.interval": "50ms",
    # What ends a stream whose other side is silent; a machine may stand still for less.
    "aeron.image.liveness.timeout": "5s",
    "aeron.publication.linger.timeout": "300ms",
    "aeron.publication.connection.timeout": "5s",
    "aeron.untethered.window.limit.timeout": "200ms",
    "aeron.untethered.linger.timeout": "200ms",
    "aeron.untethered.resting.timeout": "300ms",
    "aeron.counters.free.to.reuse.timeout": "200ms",
    "aeron.client.liveness.timeout": "5s",
}

Opened = Callable[[Any], Any]


@pytest.fixture(scope="module")
def driver_dir(subject: Subject) -> Iterator[Path]:
    with dirs.fresh("behaviour") as aeron_dir, subject.driver(aeron_dir, SETTINGS):
        yield aeron_dir


@pytest.fixture(scope="module", params=["DEDICATED", "SHARED_NETWORK", "SHARED"])
def mode_dir(request: pytest.FixtureRequest, subject: Subject) -> Iterator[Path]:
    settings = {**SETTINGS, "aeron.threading.mode": request.param}
    with dirs.fresh("mode") as aeron_dir, subject.driver(aeron_dir, settings):
        yield aeron_dir


@pytest.fixture
def endpoint() -> str:
    """An endpoint that no other test uses."""
    return f"127.0.0.1:{free_port()}"


def connected(publication: Any) -> Any:
    assert publication.awaitConnected(TIMEOUT_MS)
    return publication


def transfer(publication: Any, readings: list[Any], stream: int, count: int = 300) -> None:
    """Publish messages of all sizes and see that every reader gets each byte of them."""
    publication.publish(stream, 0, count, SIZES, TIMEOUT_MS)
    for reading in readings:
        assert_read(reading, stream, count, SIZES)


# -- kinds of channels and publications --------------------------------------------------------------------------------

KINDS = ["ipc", "unicast", "multicast", "dynamic", "manual", "receive-destinations", "spy"]


def channels(kind: str) -> tuple[str, str, list[str], list[str]]:
    """Where to publish and subscribe, and what destinations to add to either."""
    endpoint, other = (f"aeron:udp?endpoint=127.0.0.1:{free_port()}" for _ in range(2))
    control = f"127.0.0.1:{free_port()}"
    multicast = f"aeron:udp?endpoint=224.20.30.41:{free_port()}|interface=127.0.0.1"
    dynamic = f"control={control}|control-mode=dynamic"
    return {
        "ipc": ("aeron:ipc", "aeron:ipc", [], []),
        "unicast": (endpoint, endpoint, [], []),
        "multicast": (multicast, multicast, [], []),
        "dynamic": (f"aeron:udp?{dynamic}", f"{endpoint}|{dynamic}", [], []),
        "manual": ("aeron:udp?control-mode=manual", endpoint, [endpoint, other], []),
        "receive-destinations": (endpoint, "aeron:udp?control-mode=manual", [], [other, endpoint]),
        "spy": (f"{endpoint}|ssc=true", f"aeron-spy:{endpoint}", [], []),
    }[kind]


@pytest.fixture(scope="module")
def mode_client(peer: Any, mode_dir: Path) -> Iterator[Any]:
    client = peer.client(str(mode_dir))
    yield client
    client.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("add", ["publication", "exclusivePublication"])
def test_every_kind_of_channel_in_every_threading_mode(
    mode_client: Any, stream: int, opened: Opened, kind: str, add: str
) -> None:
    publish_to, subscribe_to, send_to, receive_from = channels(kind)
    client = mode_client
    subscription = opened(client.subscription(subscribe_to, stream))
    for destination in receive_from:
        subscription.raw().addDestination(destination)
    reading = opened(subscription.read(300, None))
    publication = opened(getattr(client, add)(publish_to, stream))
    for destination in send_to:
        publication.raw().addDestination(destination)
    transfer(connected(publication), [reading], stream)
    session = publication.raw().sessionId()
    wait_event(client, f"available-image session={session} stream={stream} ")
    assert publication.raw().position() == reading.position()


@pytest.mark.parametrize("params", ["mtu=8k", "term-length=1m|mtu=65504|so-sndbuf=128k", "term-length=4m|mtu=1408"])
def test_the_largest_messages_and_no_larger_ones(
    client: Any, stream: int, opened: Opened, endpoint: str, params: str
) -> None:
    channel = f"aeron:udp?endpoint={endpoint}"
    reading = opened(opened(client.subscription(channel, stream)).read(6, None))
    publication = connected(opened(client.exclusivePublication(f"{channel}|{params}", stream)))
    largest, payload = publication.raw().maxMessageLength(), publication.raw().maxPayloadLength()
    assert largest == min(publication.raw().termBufferLength() // 8, 16 * 1024 * 1024)
    sizes = [largest, payload, payload + 1, 0, 1, largest - 1] if largest > payload + 1 else [largest, 0, 1, 31, 32, 33]
    publication.publish(stream, 0, 6, sizes, TIMEOUT_MS)
    assert_read(reading, stream, 6, sizes)
    with stock.raises("IllegalArgumentException", "maxMessageLength"):
        publication.offerOnce(largest + 1)


def test_several_subscribers_and_clients_share_one_image(
    peer: Any, driver_dir: Path, stream: int, opened: Opened, endpoint: str
) -> None:
    channel = f"aeron:udp?endpoint={endpoint}"
    clients = [opened(peer.client(str(driver_dir))) for _ in range(2)]
    readings = [opened(opened(one.subscription(channel, stream)).read(300, None)) for one in (*clients, *clients)]
    transfer(connected(opened(clients[0].publication(channel, stream))), readings, stream)
    labels = [c.label for c in Cnc(driver_dir).counters() if f" {stream} {channel}" in c.label]
    assert len([label for label in labels if label.startswith("rcv-pos")]) == 1
    assert len([label for label in labels if label.startswith("sub-pos")]) == 4


# -- how streams begin and end -----------------------------------------------------------------------------------------


def test_an_initial_position_and_the_end_of_all_positions(
    client: Any, stream: int, opened: Opened, endpoint: str
) -> None:
    channel = f"aeron:udp?endpoint={endpoint}"
    subscription = opened(client.subscription(channel, stream))
    last = f"{channel}|term-length=64k|init-term-id=0|term-id=2147483647|term-offset=65408"
    publication = connected(opened(client.exclusivePublication(last, stream)))
    begin = publication.raw().position()
    assert begin == 2**31 * 65536 - 128
    reading = opened(subscription.read(1, None))
    assert publication.offerOnce(64) == begin + 96
    assert reading.awaitEnd(TIMEOUT_MS)
    assert publication.offerOnce(64) == MAX_POSITION_EXCEEDED


def test_the_end_of_a_stream_is_seen_before_its_image_goes(
    client: Any, stream: int, opened: Opened, endpoint: str
) -> None:
    channel = f"aeron:udp?endpoint={endpoint}"
    subscription = opened(client.subscription(channel, stream))
    publication = connected(client.exclusivePublication(channel, stream))
    end = publication.publish(stream, 0, 10, [100], TIMEOUT_MS)
    image = wait_until(subscription.image, 10, "the image")
    publication.close()
    wait_until(lambda: image.endOfStreamPosition() == end, 20, "the end to be known")
    reading = opened(subscription.read(10, None))
    assert_read(reading, stream, 10, [100])
    wait_until(image.isEndOfStream, 20, "the end")
    assert not image.isPublicationRevoked()
    assert f"position={end} eos=true" in wait_event(client, "unavailable-image ", timeout=20)


def test_what_was_published_before_the_end_arrives_while_it_lingers(
    client: Any, stream: int, opened: Opened, endpoint: str
) -> None:
    channel = f"aeron:udp?endpoint={endpoint}|term-length=1m"
    subscription = opened(client.subscription(channel, stream))
    publication = connected(client.exclusivePublication(channel, stream))
    publication.publish(stream, 0, 60, [1000], TIMEOUT_MS)
    publication.close()
    assert_read(opened(subscription.read(60, None)), stream, 60, [1000])


def test_revoking_a_publication_ends_its_image_unread(client: Any, stream: int, opened: Opened, endpoint: str) -> None:
    channel = f"aeron:udp?endpoint={endpoint}"
    subscription = opened(client.subscription(channel, stream))
    publication = connected(client.exclusivePublication(channel, stream))
    publication.publish(stream, 0, 10, [100], TIMEOUT_MS)
    image = wait_until(subscription.image, 10, "the image")
    publication.revoke()
    wait_event(client, f"unavailable-image session={image.sessionId()} ", timeout=20)
    assert image.isPublicationRevoked()
    assert image.isClosed()


def test_a_publication_without_receivers_is_disconnected_and_comes_back(
    client: Any, stream: int, opened: Opened, endpoint: str
) -> None:
    channel = f"aeron:udp?endpoint={endpoint}"
    publication = opened(client.exclusivePublication(channel, stream))
    assert publication.offerOnce(10) == NOT_CONNECTED
    subscription = client.subscription(channel, stream)
    connected(publication)
    subscription.close()
    wait_until(lambda: not publication.raw().isConnected(), 20, "the publication to be alone")
    assert publication.offerOnce(10) == NOT_CONNECTED
    reading = opened(opened(client.subscription(channel, stream)).read(300, None))
    transfer(connected(publication), [reading], stream)


def test_a_late_subscriber_joins_where_the_stream_is(client: Any, stream: int, opened: Opened, endpoint: str) -> None:
    channel = f"aeron:udp?endpoint={endpoint}"
    first = opened(opened(client.subscription(channel, stream)).read(20, None))
    publication = connected(opened(client.exclusivePublication(channel, stream)))
    position = publication.publish(stream, 0, 10, [100], TIMEOUT_MS)
    wait_until(lambda: first.seen() == 10, 10, "the first reader")
    opened(client.counter(1000, "a round trip"))  # as in test_driver_ipc: after it the positions are up to date
    late = opened(client.subscription(channel, stream))
    image = wait_until(late.image, 10, "the late image")
    assert image.joinPosition() == position
    reading = opened(late.read(10, None))
    publication.publish(stream, 10, 10, [100], TIMEOUT_MS)
    assert reading.awaitEnd(TIMEOUT_MS)
    assert first.awaitEnd(TIMEOUT_MS)


# -- flow -----------------------------------------------------------------------------------------------------------------


def test_a_reader_that_lags_pushes_back(client: Any, stream: int, opened: Opened, endpoint: str) -> None:
    channel = f"aeron:udp?endpoint={endpoint}"
    subscription = opened(client.subscription(channel, stream))
    publication = connected(opened(client.exclusivePublication(channel, stream)))
    sent = 0

    def is_pushed_back() -> bool:
        nonlocal sent
        while (result := publication.publishOnce(stream, sent, 1000)) > 0:
            sent += 1
        return bool(result == BACK_PRESSURED)

    wait_until(is_pushed_back, 10, "back pressure")
    window = publication.raw().termBufferLength() // 2
    assert window - 1100 < publication.raw().position() <= 2 * window + 1100
    reading = opened(subscription.read(sent + 100, None))
    publication.publish(stream, sent, 100, [1000], TIMEOUT_MS)
    assert_read(reading, stream, sent + 100, [1000])


@pytest.mark.parametrize("window", ["rcv-wnd=8k", "rcv-wnd=16k"])
def test_a_receiver_window_bounds_what_is_under_way(
    client: Any, driver_dir: Path, stream: int, opened: Opened, endpoint: str, window: str
) -> None:
    channel = f"aeron:udp?endpoint={endpoint}"
    opened(client.subscription(f"{channel}|{window}", stream))
    publication = connected(opened(client.exclusivePublication(channel, stream)))
    while publication.publishOnce(stream, 0, 1000) > 0:
        pass

    def sent() -> int:
        return next(c.value for c in Cnc(driver_dir).counters() if c.type_id == 2 and f" {stream} " in c.label)

    limit = int(window.removeprefix("rcv-wnd=").removesuffix("k")) * 1024
    wait_until(lambda: sent() >= limit - 1408, 10, "the window to be full", state=sent)
    assert sent() <= limit


@pytest.mark.parametrize("flow", ["fc=min", "fc=tagged,g:-1"])
def test_the_slowest_of_a_group_sets_the_pace(client: Any, stream: int, opened: Opened, flow: str) -> None:
    channel = f"aeron:udp?endpoint=224.20.30.43:{free_port()}|interface=127.0.0.1|term-length=64k"
    slow = opened(client.subscription(f"{channel}|gtag=-1", stream))
    publication = connected(opened(client.exclusivePublication(f"{channel}|{flow}", stream)))
    wait_until(slow.image, 10, "the image")

    def is_pushed_back() -> bool:
        return bool(publication.publishOnce(stream, 0, 1000) == BACK_PRESSURED)

    wait_until(is_pushed_back, 10, "back pressure")


@pytest.mark.parametrize(
    ("flow", "receiver", "is_enough"),
    [
        ("fc=tagged,g:123/1", "gtag=123", True),
        ("fc=tagged,g:123/1", "gtag=124", False),
        ("fc=tagged,g:123/2", "gtag=123", False),
        ("fc=min,g:/1", "rejoin=true", True),
        ("fc=min,g:/2", "rejoin=true", False),
        ("fc=tagged,g:123", "gtag=124", True),
    ],
)
@pytest.mark.parametrize("is_multicast", [True, False])
def test_a_group_that_is_wanted_connects_a_publication(
    client: Any, stream: int, opened: Opened, flow: str, receiver: str, is_enough: bool, is_multicast: bool
) -> None:
    if is_multicast:
        publish_to = subscribe_to = f"aeron:udp?endpoint=224.20.30.45:{free_port()}|interface=127.0.0.1"
    else:
        publish_to = f"aeron:udp?control=127.0.0.1:{free_port()}|control-mode=dynamic"
        subscribe_to = f"{publish_to}|endpoint=127.0.0.1:{free_port()}"
    subscription = opened(client.subscription(f"{subscribe_to}|{receiver}", stream))
    publication = opened(client.exclusivePublication(f"{publish_to}|{flow}", stream))
    wait_until(subscription.image, 20, "the image")
    if is_enough:
        transfer(connected(publication), [opened(subscription.read(300, None))], stream)
        return
    # The receiver's status messages come all the while; some that came must not have connected it.
    received = status_messages(client)
    wait_until(lambda: status_messages(client) >= received + 3, 20, "status messages to have come")
    assert not publication.raw().isConnected()


def status_messages(client: Any) -> int:
    """How many status messages the driver has received."""
    return next(int(line.split("|")[2]) for line in client.counters() if line.endswith("|Status Messages received"))


def test_an_untethered_subscriber_that_lags_is_left_behind_and_comes_back(
    client: Any, stream: int, opened: Opened, endpoint: str
) -> None:
    channel = f"aeron:udp?endpoint={endpoint}"
    lagging = opened(client.subscription(f"{channel}|tether=false", stream))
    tethered = opened(opened(client.subscription(channel, stream)).read(500, None))
    publication = connected(opened(client.exclusivePublication(channel, stream)))
    first = wait_until(lagging.image, 10, "its image")
    publication.publish(stream, 0, 500, [1000], TIMEOUT_MS)
    assert_read(tethered, stream, 500, [1000])
    wait_until(first.isClosed, 20, "the image that lags to go")
    again = wait_until(lagging.image, 20, "it to come back")
    assert again.joinPosition() > 64 * 1024


# -- destinations, spies, sessions, responses --------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True])
def test_destinations_come_and_go(client: Any, stream: int, opened: Opened, is_async: bool) -> None:
    here, there = (f"aeron:udp?endpoint=127.0.0.1:{free_port()}" for _ in range(2))
    publication = opened(client.exclusivePublication("aeron:udp?control-mode=manual|fc=min", stream))
    raw = publication.raw()

    def change(what: str, destination: str) -> None:
        if is_async:
            registration = getattr(raw, f"async{what[0].upper()}{what[1:]}")(destination)
            wait_until(lambda: not client.aeron().isCommandActive(registration), 10, what)
        else:
            getattr(raw, what)(destination)

    first, second = (opened(client.subscription(one, stream)) for one in (here, there))
    change("addDestination", here)
    connected(publication)
    wait_until(first.image, 10, "the first image")
    assert second.image() is None
    change("addDestination", there)
    wait_until(second.image, 10, "the second image")
    readings = [opened(one.read(300, None)) for one in (first, second)]
    transfer(publication, readings, stream)
    change("removeDestination", here)
    wait_until(lambda: first.image() is None, 20, "the first image to go")
    assert second.image() is not None
    with stock.raises("RegistrationException", ""):
        raw.removeDestination("aeron:udp?control=127.0.0.1:0")


def test_a_destination_is_removed_by_its_id(client: Any, stream: int, opened: Opened, endpoint: str) -> None:
    channel = f"aeron:udp?endpoint={endpoint}"
    subscription = opened(client.subscription(channel, stream))
    publication = opened(client.publication("aeron:udp?control-mode=manual", stream))
    registration = publication.raw().asyncAddDestination(channel)
    connected(publication)
    wait_until(subscription.image, 10, "the image")
    publication.raw().removeDestination(registration)
    wait_until(lambda: subscription.image() is None, 20, "the image to go")


def test_receive_destinations_come_and_go(client: Any, stream: int, opened: Opened) -> None:
    here, there = (f"aeron:udp?endpoint=127.0.0.1:{free_port()}" for _ in range(2))
    session = client.aeron().nextSessionId(stream)
    subscription = opened(client.subscription("aeron:udp?control-mode=manual", stream))
    subscription.raw().addDestination(here)
    publication = connected(opened(client.exclusivePublication(f"{here}|session-id={session}", stream)))
    wait_until(subscription.image, 10, "the image")
    subscription.raw().addDestination(there)
    subscription.raw().removeDestination(here)
    wait_until(lambda: not publication.raw().isConnected(), 20, "the publication to be alone")
    wait_until(lambda: subscription.image() is None, 20, "the image to go")
    reading = opened(subscription.read(300, None))
    transfer(connected(opened(client.exclusivePublication(there, stream))), [reading], stream)


def test_a_spy_and_a_local_subscriber_as_destinations(client: Any, stream: int, opened: Opened, endpoint: str) -> None:
    ipc, spied = "aeron:ipc", f"aeron:udp?endpoint={endpoint}"
    subscription = opened(client.subscription("aeron:udp?control-mode=manual", stream))
    subscription.raw().addDestination(ipc)
    subscription.raw().addDestination(f"aeron-spy:{spied}")
    over_ipc = connected(opened(client.exclusivePublication(ipc, stream)))
    over_udp = connected(opened(client.exclusivePublication(f"{spied}|ssc=true", stream)))
    wait_until(lambda: subscription.raw().imageCount() == 2, 20, "both images")
    assert {image.sessionId() for image in subscription.raw().images()} == {
        over_ipc.raw().sessionId(),
        over_udp.raw().sessionId(),
    }


@pytest.mark.parametrize(("params", "is_connected"), [("ssc=true", True), ("ssc=false", False)])
def test_spies_count_as_a_connection_where_told_so(
    client: Any, stream: int, opened: Opened, endpoint: str, params: str, is_connected: bool
) -> None:
    channel = f"aeron:udp?endpoint={endpoint}|{params}"
    spy = opened(client.subscription(f"aeron-spy:{channel}", stream))
    publication = opened(client.exclusivePublication(channel, stream))
    wait_until(spy.image, 10, "the spy's image")
    if is_connected:
        transfer(connected(publication), [opened(spy.read(300, None))], stream)
    else:
        assert publication.offerOnce(10) == NOT_CONNECTED


def test_a_session_that_is_taken_is_refused(client: Any, stream: int, opened: Opened, endpoint: str) -> None:
    channel = f"aeron:udp?endpoint={endpoint}"
    first = opened(client.exclusivePublication(f"{channel}|session-id=4711", stream))
    assert first.raw().sessionId() == 4711
    with stock.raises("RegistrationException", "existing publication has clashing sessionId"):
        client.exclusivePublication(f"{channel}|session-id=4711", stream)
    with stock.raises("RegistrationException", "existing publication has (different|clashing)"):
        opened(client.publication(channel, stream + 500_000))
        client.publication(f"{channel}|session-id=4712", stream + 500_000)


def test_a_subscription_by_session_id_gets_that_session_only(
    client: Any, stream: int, opened: Opened, endpoint: str
) -> None:
    channel = f"aeron:udp?endpoint={endpoint}"
    subscription = opened(client.subscription(f"{channel}|session-id=1000001", stream))
    everything = opened(client.subscription(channel, stream))
    wanted = opened(client.exclusivePublication(f"{channel}|session-id=1000001", stream))
    opened(client.exclusivePublication(f"{channel}|session-id=1000002", stream))
    wait_until(lambda: everything.raw().imageCount() == 2, 20, "both images")
    wait_until(subscription.image, 20, "the image")
    assert subscription.image().sessionId() == wanted.raw().sessionId()


def test_next_session_ids_are_free(client: Any, stream: int, opened: Opened, endpoint: str) -> None:
    session = client.aeron().nextSessionId(stream)
    assert client.aeron().nextSessionId(stream) != session
    channel = f"aeron:udp?endpoint={endpoint}|session-id={session}"
    assert opened(client.publication(channel, stream)).raw().sessionId() == session


def test_a_tag_gives_one_publication_the_session_of_another(client: Any, stream: int, opened: Opened) -> None:
    one, other = (f"aeron:udp?endpoint=127.0.0.1:{free_port()}" for _ in range(2))
    first = opened(client.exclusivePublication(f"{one}|tags=70{stream},80{stream}|mtu=2048", stream))
    second = opened(client.exclusivePublication(f"{other}|session-id=tag:80{stream}", stream + 500_000))
    assert second.raw().sessionId() == first.raw().sessionId()
    assert second.raw().maxPayloadLength() == 2048 - 32


def test_a_request_is_answered_on_a_response_channel(client: Any, stream: int, opened: Opened, endpoint: str) -> None:
    control = f"control=127.0.0.1:{free_port()}|control-mode=response"
    answers = opened(client.subscription(f"aeron:udp?{control}", stream + 500_000))
    requests = opened(client.subscription(f"aeron:udp?endpoint={endpoint}", stream))
    asking = opened(
        client.exclusivePublication(
            f"aeron:udp?endpoint={endpoint}|response-correlation-id={answers.raw().registrationId()}", stream
        )
    )
    image = wait_until(requests.image, 20, "the request's image")
    answering = opened(
        client.exclusivePublication(
            f"aeron:udp?{control}|response-correlation-id={image.correlationId()}", stream + 500_000
        )
    )
    reading = opened(answers.read(300, None))
    transfer(connected(asking), [opened(requests.read(300, None))], stream)
    transfer(connected(answering), [reading], stream)


# -- timestamps -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("publish_with", "subscribe_with"),
    [("|channel-snd-ts-offset=reserved", ""), ("", "|channel-rcv-ts-offset=reserved")],
)
def test_timestamps_of_sending_and_receiving(
    client: Any, stream: int, opened: Opened, endpoint: str, tmp_path: Path, publish_with: str, subscribe_with: str
) -> None:
    channel = f"aeron:udp?endpoint={endpoint}"
    table = tmp_path / "messages.csv"
    reading = opened(opened(client.subscription(channel + subscribe_with, stream)).read(5, str(table)))
    publication = connected(opened(client.exclusivePublication(channel + publish_with, stream)))
    begin = time.time_ns()
    publication.publish(stream, 0, 5, [1376], TIMEOUT_MS)  # a datagram each: the first frame of each is stamped
    assert_read(reading, stream, 5, [1376])
    stamps = [int(row["reserved_value"]) for row in csv.DictReader(table.read_text().splitlines())]
    # Stock drivers cache the clock for a duty cycle: a stamp may lie a little before the event.
    assert all(begin - 1_000_000_000 < stamp <= time.time_ns() for stamp in stamps), (begin, stamps)


# -- refusals -------------------------------------------------------------------------------------------------------------

# Error codes of the client protocol. Spec: 03 §4.
GENERIC, INVALID_CHANNEL, UNKNOWN_SUBSCRIPTION, UNKNOWN_PUBLICATION, UNKNOWN_HOST = 0, 1, 2, 3, 9
REFUSED = [
    ("publication", "aeron:udp?endpoint=127.0.0.1", ""),
    ("publication", "aeron:udp?mtu=1408", ""),
    ("publication", "aeron:udp?endpoint=no.such.host.invalid:4000", "no.such.host.invalid"),
    ("subscription", "aeron:udp?endpoint=no.such.host.invalid:4000", "no.such.host.invalid"),
    ("publication", "aeron:udp?endpoint=127.0.0.1:{port}|mtu=100", "(?i)mtu"),
    ("publication", "aeron:udp?endpoint=127.0.0.1:{port}|mtu=65536", "(?i)mtu"),
    ("publication", "aeron:udp?endpoint=127.0.0.1:{port}|term-length=100000", "(?i)term"),
    ("publication", "aeron:udp?endpoint=127.0.0.1:{port}|term-id=7", ""),
    ("publication", "aeron:udp?endpoint=127.0.0.1:{port}|interface=10.99.98.97", ""),
    ("publication", "aeron:udp?endpoint=224.20.30.40:{port}|interface=127.0.0.1", "odd"),
    ("publication", "aeron:udp?control-mode=dynamic", "control"),
    (
        "publication",
        "aeron:udp?endpoint=127.0.0.1:{port}|fc=nonsense|control=127.0.0.1:{port}|control-mode=dynamic",
        "",
    ),
    ("subscription", "aeron:tcp?endpoint=127.0.0.1:{port}", ""),
    ("publication", "aeron:udp?endpoint=127.0.0.1:0", ""),
]


@pytest.mark.parametrize(("add", "channel", "text"), REFUSED)
def test_a_channel_that_cannot_be_is_refused(client: Any, stream: int, add: str, channel: str, text: str) -> None:
    with stock.raises("RegistrationException|IllegalArgumentException", text):
        getattr(client, add)(channel.replace("{port}", str(free_port())), stream)


@pytest.mark.parametrize("params", ["mtu=2048", "term-length=128k", "session-id=99"])
def test_a_parameter_that_differs_from_the_shared_publication_is_refused(
    client: Any, stream: int, opened: Opened, endpoint: str, params: str
) -> None:
    opened(client.publication(f"aeron:udp?endpoint={endpoint}", stream))
    with stock.raises("RegistrationException", ""):
        client.publication(f"aeron:udp?endpoint={endpoint}|{params}", stream)


def test_subscriptions_that_contradict_each_other_are_refused(
    client: Any, stream: int, opened: Opened, endpoint: str
) -> None:
    opened(client.subscription(f"aeron:udp?endpoint={endpoint}|reliable=true", stream))
    with stock.raises("RegistrationException", "(?i)reliable"):
        client.subscription(f"aeron:udp?endpoint={endpoint}|reliable=false", stream)
    with stock.raises("RegistrationException", "(?i)rejoin"):
        client.subscription(f"aeron:udp?endpoint={endpoint}|rejoin=false", stream)


# -- what a driver gives back ----------------------------------------------------------------------------------------------


def test_everything_goes_with_its_client(peer: Any, driver_dir: Path, stream: int, endpoint: str) -> None:
    channel = f"aeron:udp?endpoint={endpoint}"
    client = peer.client(str(driver_dir))
    client.subscription(channel, stream)
    connected(client.exclusivePublication(channel, stream))
    assert any(f" {stream} {channel}" in counter.label for counter in Cnc(driver_dir).counters())
    client.close()
    wait_until(
        lambda: not any(endpoint in counter.label for counter in Cnc(driver_dir).counters()),
        30,
        "its counters to go",
        state=lambda: [counter.label for counter in Cnc(driver_dir).counters() if endpoint in counter.label],
    )


def test_ports_are_free_again(client: Any, stream: int, endpoint: str) -> None:
    channel = f"aeron:udp?endpoint={endpoint}"
    for turn in range(3):
        with_subscription = client.subscription(channel, stream + turn * 100_000)
        publication = connected(client.publication(channel, stream + turn * 100_000))
        publication.close()
        with_subscription.close()


def test_the_ports_that_the_system_chose_are_told(client: Any, stream: int, opened: Opened) -> None:
    subscription = opened(client.subscription("aeron:udp?endpoint=127.0.0.1:0", stream))
    resolved = wait_until(subscription.raw().tryResolveChannelEndpointPort, 10, "the port")
    assert not resolved.endswith(":0")
    assert list(subscription.raw().localSocketAddresses()) == [subscription.raw().resolvedEndpoint()]
    reading = opened(subscription.read(300, None))
    transfer(connected(opened(client.exclusivePublication(resolved, stream))), [reading], stream)
