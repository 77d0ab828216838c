"""Goal: a stock client cannot tell the driver under test from its own, for all that concerns IPC streams.

Method: stock clients in the gateway's JVM publish and read by the payload rule; what arrived is compared by count,
length and CRC with what Python computes. One driver serves all tests of the file, each on a stream of its own.
"""

# ruff: noqa: PLR0917 - fixtures are arguments
from __future__ import annotations

import csv
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.kit import stock
from tests.kit.cnc import Cnc
from tests.kit.payload import RESERVED_FACTOR, expected
from tests.kit.wait import wait_until

IPC = "aeron:ipc"
FRAGMENTED = [100, 1408, 3000, 8, 0, 5, 8000]
WHOLE = [0, 1, 31, 32, 33, 100, 1000, 1376]
TIMEOUT_MS = 10_000

NOT_CONNECTED = -1
BACK_PRESSURED = -2
CLOSED = -4
MAX_POSITION_EXCEEDED = -5

PUB_LIMIT, SUB_POSITION, PUB_POSITION = 1, 4, 12

Opened = Callable[[Any], Any]


def events(client: Any, beginning: str) -> list[str]:
    """The events of a client that begin so."""
    return [event for event in client.events() if event.startswith(beginning)]


def wait_event(client: Any, beginning: str, *, timeout: float = 10) -> str:
    """The first event that begins so, awaited."""
    return wait_until(
        lambda: next(iter(events(client, beginning)), None),
        timeout,
        f"the event {beginning!r}",
        state=lambda: list(client.events()),
    )


def assert_read(reading: Any, stream_key: int, count: int, sizes: list[int]) -> None:
    """All of the messages arrived, in order and byte for byte."""
    assert reading.awaitEnd(TIMEOUT_MS), f"{reading.seen()} of {count} messages came"
    want = expected(stream_key, count, sizes)
    assert (reading.count(), reading.bytes(), reading.crc()) == (want.count, want.length, want.crc)


@pytest.mark.parametrize("add", ["publication", "exclusivePublication"])
@pytest.mark.parametrize(("method", "sizes"), [("publish", FRAGMENTED), ("claim", WHOLE)])
def test_every_byte_arrives_over_many_terms(
    client: Any, stream: int, opened: Opened, add: str, method: str, sizes: list[int]
) -> None:
    reading = opened(opened(client.subscription(IPC, stream)).read(2000, None))
    publication = opened(getattr(client, add)(IPC, stream))
    assert publication.awaitConnected(TIMEOUT_MS)
    getattr(publication, method)(stream, 0, 2000, sizes, TIMEOUT_MS)
    assert_read(reading, stream, 2000, sizes)
    assert reading.position() == publication.raw().position()
    assert publication.raw().position() > 4 * publication.raw().termBufferLength()


def test_positions_lengths_and_reserved_values_of_each_message(
    client: Any, stream: int, opened: Opened, tmp_path: Path
) -> None:
    table = tmp_path / "messages.csv"
    reading = opened(opened(client.subscription(IPC, stream)).read(100, str(table)))
    publication = opened(client.exclusivePublication(IPC, stream))
    assert publication.awaitConnected(TIMEOUT_MS)
    publication.publish(stream, 0, 100, FRAGMENTED, TIMEOUT_MS)
    assert_read(reading, stream, 100, FRAGMENTED)
    rows = list(csv.DictReader(table.read_text().splitlines()))
    positions = [int(row["end_position"]) for row in rows]
    assert all(position % 32 == 0 for position in positions)
    assert positions == sorted(set(positions))
    for index, row in enumerate(rows):
        assert int(row["length"]) == FRAGMENTED[index % len(FRAGMENTED)]
        assert int(row["reserved_value"]) == index * RESERVED_FACTOR
        assert int(row["session_id"]) == publication.raw().sessionId()


def test_publishers_of_a_shared_stream_interleave_without_loss(
    peer: Any, client: Any, driver_dir: Path, stream: int, opened: Opened
) -> None:
    other = opened(peer.client(str(driver_dir)))
    reading = opened(opened(client.subscription(IPC, stream)).read(3000, None))
    publications = [opened(who.publication(IPC, stream)) for who in (client, client, other)]
    assert len({publication.raw().sessionId() for publication in publications}) == 1
    assert all(publication.awaitConnected(TIMEOUT_MS) for publication in publications)
    sizes = [100, 1000, 3000]
    with ThreadPoolExecutor(3) as pool:
        running = [
            pool.submit(publication.publish, key, 0, 1000, sizes, TIMEOUT_MS)
            for key, publication in enumerate(publications, start=1)
        ]
        for one in running:
            one.result()
    assert reading.awaitEnd(TIMEOUT_MS), f"{reading.seen()} of 3000 messages came"
    for key in (1, 2, 3):
        want = expected(key, 1000, sizes)
        assert reading.ofKey(key) == f"{want.count}:{want.crc}", f"messages of publisher {key}"


def test_exclusive_publications_are_streams_of_their_own(client: Any, stream: int, opened: Opened) -> None:
    subscription = opened(client.subscription(IPC, stream))
    first = opened(client.exclusivePublication(IPC, stream))
    second = opened(client.exclusivePublication(IPC, stream))
    assert first.raw().sessionId() != second.raw().sessionId()
    wait_until(lambda: subscription.raw().imageCount() == 2, 10, "two images")
    assert {image.sessionId() for image in subscription.raw().images()} == {
        first.raw().sessionId(),
        second.raw().sessionId(),
    }


def test_a_subscription_by_session_id_gets_that_session_only(client: Any, stream: int, opened: Opened) -> None:
    wanted = opened(client.exclusivePublication(IPC, stream))
    unwanted = opened(client.exclusivePublication(IPC, stream))
    subscription = opened(client.subscription(f"{IPC}?session-id={wanted.raw().sessionId()}", stream))
    everything = opened(client.subscription(IPC, stream))
    wait_until(lambda: everything.raw().imageCount() == 2, 10, "the images of the plain subscription")
    wait_until(lambda: subscription.raw().imageCount() == 1, 10, "the image by session")
    assert subscription.image().sessionId() == wanted.raw().sessionId() != unwanted.raw().sessionId()


def test_several_subscribers_each_get_everything(client: Any, stream: int, opened: Opened) -> None:
    readings = [opened(opened(client.subscription(IPC, stream)).read(500, None)) for _ in range(3)]
    publication = opened(client.publication(IPC, stream))
    assert publication.awaitConnected(TIMEOUT_MS)
    publication.publish(stream, 0, 500, FRAGMENTED, TIMEOUT_MS)
    for reading in readings:
        assert_read(reading, stream, 500, FRAGMENTED)


def test_a_late_subscriber_joins_where_the_stream_is(client: Any, stream: int, opened: Opened) -> None:
    first = opened(opened(client.subscription(IPC, stream)).read(10, None))
    publication = opened(client.exclusivePublication(IPC, stream))
    assert publication.awaitConnected(TIMEOUT_MS)
    position = publication.publish(stream, 0, 10, [100], TIMEOUT_MS)
    assert first.awaitEnd(TIMEOUT_MS)
    # A driver takes one command in a cycle and then moves the positions: after an answer they are up to date.
    opened(client.counter(1000, "a round trip"))
    late = opened(client.subscription(IPC, stream))
    image = wait_until(late.image, 10, "the image of the late subscriber")
    assert image.joinPosition() == position


def test_an_initial_position_is_honoured(client: Any, stream: int, opened: Opened) -> None:
    channel = f"{IPC}?term-length=64k|init-term-id=7|term-id=10|term-offset=4096|mtu=1408"
    publication = opened(client.exclusivePublication(channel, stream))
    assert publication.raw().position() == 3 * 65536 + 4096
    assert publication.raw().initialTermId() == 7
    reading = opened(opened(client.subscription(IPC, stream)).read(300, None))
    assert publication.awaitConnected(TIMEOUT_MS)
    publication.publish(stream, 0, 300, FRAGMENTED, TIMEOUT_MS)
    assert_read(reading, stream, 300, FRAGMENTED)


@pytest.mark.parametrize("add", ["publication", "exclusivePublication"])
def test_offer_without_a_subscriber_is_not_connected(client: Any, stream: int, opened: Opened, add: str) -> None:
    publication = opened(getattr(client, add)(IPC, stream))
    assert not publication.raw().isConnected()
    assert publication.offerOnce(100) == NOT_CONNECTED
    subscription = client.subscription(IPC, stream)
    assert publication.awaitConnected(TIMEOUT_MS)
    assert publication.offerOnce(100) > 0
    subscription.close()
    wait_until(lambda: publication.offerOnce(100) == NOT_CONNECTED, 10, "the publication to notice")


@pytest.mark.parametrize("add", ["publication", "exclusivePublication"])
def test_a_reader_that_lags_pushes_back_and_loses_nothing(client: Any, stream: int, opened: Opened, add: str) -> None:
    subscription = opened(client.subscription(IPC, stream))
    publication = opened(getattr(client, add)(IPC, stream))
    assert publication.awaitConnected(TIMEOUT_MS)
    accepted = 0

    def pushed_back() -> bool:
        nonlocal accepted
        while (result := publication.offerOnce(1000)) > 0:
            accepted += 1
        return int(result) == BACK_PRESSURED

    wait_until(pushed_back, 10, "back pressure")
    window = publication.raw().termBufferLength() // 2
    assert publication.raw().position() >= window
    reading = opened(subscription.read(accepted, None))
    assert reading.awaitEnd(TIMEOUT_MS)
    assert reading.bytes() == accepted * 1000
    wait_until(lambda: publication.offerOnce(1000) > 0, 10, "room after the reader caught up")


def test_the_maximum_position_ends_a_stream(client: Any, stream: int, opened: Opened) -> None:
    channel = f"{IPC}?term-length=64k|init-term-id=0|term-id=2147483647|term-offset=65504"
    publication = opened(client.exclusivePublication(channel, stream))
    subscription = opened(client.subscription(IPC, stream))
    assert publication.awaitConnected(TIMEOUT_MS)
    opened(subscription.read(1, None))
    wait_until(lambda: publication.offerOnce(100) == MAX_POSITION_EXCEEDED, 10, "the end of all positions")


def test_closing_a_publication_ends_its_image(client: Any, stream: int, opened: Opened) -> None:
    subscription = opened(client.subscription(IPC, stream))
    publication = client.exclusivePublication(IPC, stream)
    session = publication.raw().sessionId()
    assert publication.awaitConnected(TIMEOUT_MS)
    publication.publish(stream, 0, 20, [100], TIMEOUT_MS)
    publication.close()
    assert publication.offerOnce(100) == CLOSED
    # Drained first: what was published before the close is still read.
    assert_read(opened(subscription.read(20, None)), stream, 20, [100])
    seen = wait_event(client, f"unavailable-image session={session} ")
    assert "eos=true" in seen
    assert f"position={20 * 160}" in seen
    wait_until(lambda: subscription.raw().imageCount() == 0, 10, "the image to go")


def test_revoking_a_publication_ends_its_image_unread(client: Any, stream: int, opened: Opened) -> None:
    opened(client.subscription(IPC, stream))
    publication = client.exclusivePublication(IPC, stream)
    session = publication.raw().sessionId()
    assert publication.awaitConnected(TIMEOUT_MS)
    publication.publish(stream, 0, 20, [100], TIMEOUT_MS)
    publication.revoke()
    wait_event(client, f"unavailable-image session={session} ")


def test_a_rejected_image_goes_and_its_publisher_is_told_why(client: Any, stream: int, opened: Opened) -> None:
    subscription = opened(client.subscription(IPC, stream))
    publication = opened(client.exclusivePublication(IPC, stream))
    session = publication.raw().sessionId()
    wait_until(subscription.image, 10, "the image")
    subscription.reject("unwanted")
    error = wait_event(client, f"publication-error code=13 session={session} ")
    assert error.endswith("message=unwanted")
    wait_event(client, f"unavailable-image session={session} ")
    wait_until(lambda: not publication.raw().isConnected(), 10, "the publication to be disconnected")


def test_next_session_id_is_free_and_can_be_asked_for(client: Any, stream: int, opened: Opened) -> None:
    first = client.aeron().nextSessionId(stream)
    second = client.aeron().nextSessionId(stream)
    assert first != second
    publication = opened(client.exclusivePublication(f"{IPC}?session-id={second}", stream))
    assert publication.raw().sessionId() == second
    with stock.raises("RegistrationException", "clashing sessionId"):
        client.exclusivePublication(f"{IPC}?session-id={second}", stream)


@pytest.mark.parametrize(
    ("channel", "text"),
    [
        ("aeron:ipc?mtu=100", "mtu|MTU"),
        ("aeron:ipc?term-length=100", "term|Term|TERM"),
        ("aeron:ipc?init-term-id=1", "init-term-id|term-id"),
        ("aeron:ipc?term-length=64k|init-term-id=1|term-id=2|term-offset=33", "term-offset|FRAME_ALIGNMENT"),
    ],
)
def test_a_bad_channel_is_refused_with_the_parameter_named(client: Any, stream: int, channel: str, text: str) -> None:
    with stock.raises("RegistrationException", text):
        client.exclusivePublication(channel, stream)


def test_a_parameter_that_differs_from_the_shared_publication_is_refused(
    client: Any, stream: int, opened: Opened
) -> None:
    opened(client.publication(f"{IPC}?term-length=64k", stream))
    with stock.raises("RegistrationException", "term-length"):
        client.publication(f"{IPC}?term-length=128k", stream)


def test_counters_of_a_stream(client: Any, driver_dir: Path, stream: int, opened: Opened) -> None:
    subscription = opened(client.subscription(IPC, stream))
    reading = opened(subscription.read(50, None))
    publication = opened(client.exclusivePublication(IPC, stream))
    assert publication.awaitConnected(TIMEOUT_MS)
    position = publication.publish(stream, 0, 50, [1000], TIMEOUT_MS)
    assert reading.awaitEnd(TIMEOUT_MS)
    raw = publication.raw()
    labels = f"{raw.registrationId()} {raw.sessionId()} {stream} {IPC}"

    def by_type() -> dict[int, Any]:
        found = {
            counter.type_id: counter
            for counter in Cnc(driver_dir).counters()
            if f" {stream} {IPC}" in counter.label and counter.type_id in (PUB_LIMIT, SUB_POSITION, PUB_POSITION)
        }
        return found if found.get(PUB_POSITION) and found[PUB_POSITION].value == position else {}

    counters = wait_until(by_type, 10, "the publisher position to be published")
    assert counters[PUB_LIMIT].label == f"pub-lmt: {labels}"
    assert counters[PUB_POSITION].label == f"pub-pos (exclusive): {labels}"
    assert counters[PUB_POSITION].registration_id == raw.registrationId()
    assert counters[PUB_POSITION].owner_id == client.aeron().clientId()
    assert counters[SUB_POSITION].value == position
    assert counters[SUB_POSITION].registration_id == subscription.raw().registrationId()
    assert counters[SUB_POSITION].reference_id == raw.registrationId()
    assert counters[SUB_POSITION].label == (
        f"sub-pos: {subscription.raw().registrationId()} {raw.sessionId()} {stream} {IPC} @0"
    )


def test_counters_as_a_stock_client_reads_them_equal_the_file(client: Any, driver_dir: Path) -> None:
    def as_read() -> dict[int, tuple[int, str]]:
        ours = {counter.id: (counter.type_id, counter.label) for counter in Cnc(driver_dir).counters()}
        theirs = {}
        for line in client.counters():
            counter_id, type_id, _value, _registration, _owner, _reference, label = line.split("|", 6)
            theirs[int(counter_id)] = (int(type_id), label)
        return theirs if theirs == ours else {}

    # The driver may still be freeing what the test before has closed.
    theirs = wait_until(as_read, 10, "both to read the same counters")
    assert theirs[0] == (0, "Bytes sent")
    assert theirs[24][1] == "Client liveness timeouts"
    assert theirs[43] == (0, "Control protocol version")


def test_a_counter_of_a_client(peer: Any, client: Any, driver_dir: Path, opened: Opened) -> None:
    other = opened(peer.client(str(driver_dir)))
    counter = client.counter(1234, "a counter of a test")
    counter.set(42)
    line = wait_until(
        lambda: next((line for line in other.counters() if "a counter of a test" in line), None),
        10,
        "the counter to be seen by another client",
    )
    assert line.split("|")[:5] == [
        str(counter.id()),
        "1234",
        "42",
        str(counter.registrationId()),
        str(client.aeron().clientId()),
    ]
    name = f"id={counter.id()} registration={counter.registrationId()}"
    wait_event(other, f"available-counter {name}")
    counter.close()
    wait_event(other, f"unavailable-counter {name}")


def test_a_static_counter_outlives_its_client_and_is_shared(
    peer: Any, client: Any, driver_dir: Path, opened: Opened
) -> None:
    maker = peer.client(str(driver_dir))
    made = maker.staticCounter(1235, "a static counter", 4711)
    counter_id = made.id()
    assert client.staticCounter(1235, "another label", 4711).id() == counter_id
    maker.close()
    found = opened(peer.client(str(driver_dir))).staticCounter(1235, "a third label", 4711)
    assert found.id() == counter_id
    counter = next(counter for counter in Cnc(driver_dir).counters() if counter.id == counter_id)
    assert (counter.label, counter.owner_id, counter.registration_id) == ("a static counter", -1, 4711)


def test_a_static_counter_where_another_kind_exists_is_refused(client: Any, opened: Opened) -> None:
    plain = opened(client.counter(1236, "not static"))
    with stock.raises("RegistrationException", "cannot add static counter"):
        client.staticCounter(1236, "static", plain.registrationId())


def test_a_client_that_closes_takes_its_resources_with_it(
    peer: Any, client: Any, driver_dir: Path, stream: int, opened: Opened
) -> None:
    subscription = opened(client.subscription(IPC, stream))
    leaver = peer.client(str(driver_dir))
    publication = leaver.exclusivePublication(IPC, stream)
    session = publication.raw().sessionId()
    client_id = leaver.aeron().clientId()
    wait_until(subscription.image, 10, "the image")
    before = Cnc(driver_dir).value_of("Client liveness timeouts")
    leaver.close()
    wait_event(client, f"unavailable-image session={session} ")
    wait_until(
        lambda: not any(counter.owner_id == client_id for counter in Cnc(driver_dir).counters()),
        10,
        "the counters of the client to go",
    )
    assert Cnc(driver_dir).value_of("Client liveness timeouts") == before, "an orderly end is no timeout"


@pytest.mark.parametrize("channel", [f"{IPC}?term-length=16m", f"{IPC}?term-length=16m|mtu=65504"])
def test_the_largest_messages(client: Any, stream: int, opened: Opened, channel: str) -> None:
    sizes = [2 * 1024 * 1024, 100, 2 * 1024 * 1024 - 1, 65536]
    reading = opened(opened(client.subscription(channel, stream)).read(12, None))
    publication = opened(client.exclusivePublication(channel, stream))
    assert publication.raw().maxMessageLength() == sizes[0]
    assert publication.awaitConnected(TIMEOUT_MS)
    publication.publish(stream, 0, 12, sizes, TIMEOUT_MS)
    assert_read(reading, stream, 12, sizes)
