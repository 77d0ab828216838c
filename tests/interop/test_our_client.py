"""Goal: our client and our archive client work with stock servers, and beside stock clients on one stream.

Method: a stock driver and a stock archive in processes of their own; our side is the Python package, the other end is
a stock client in the gateway's JVM or the package again. Every byte is compared with the payload rule.
"""

# ruff: noqa: PLR0917 - fixtures are arguments
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.interop.archiving import SIZES, TIMEOUT_MS, Opened, assert_messages, extend_channel_of
from tests.kit import dirs, require, stock
from tests.kit.cnc import Cnc
from tests.kit.payload import RESERVED_FACTOR, Digest, expected, payloads
from tests.kit.wait import wait_until

if TYPE_CHECKING:
    import aeron_spark

IPC = "aeron:ipc?term-length=64k"
TIMEOUT_S = 10.0


@pytest.fixture(scope="module")
def product() -> Any:
    """The package; where its extension is not built, the tests are skipped aloud."""
    try:
        import aeron_spark
    except ImportError as error:
        require.missing(f"the package aeron_spark does not import ({error}); build it")
    return aeron_spark


@pytest.fixture(scope="module")
def servers() -> Iterator[Path]:
    """A stock driver and a stock archive; gives the Aeron directory."""
    with (
        dirs.fresh("stock") as aeron_dir,
        dirs.fresh("archive") as archive_dir,
        stock.archive(aeron_dir, archive_dir, with_driver=True),
    ):
        yield aeron_dir


@pytest.fixture
def ours(product: Any, servers: Path, opened: Opened) -> aeron_spark.Client:
    """Our client on the stock driver."""
    client: aeron_spark.Client = opened(product.Client(servers))
    return client


@pytest.fixture
def theirs(peer: Any, servers: Path, opened: Opened) -> Any:
    """A stock client on the same driver."""
    return opened(peer.client(str(servers)))


def read_all(poll_batch: Callable[[float], Any], count: int) -> Digest:
    """Poll batches until `count` messages came; the digest of their values."""
    digest = Digest()

    def enough() -> bool:
        for value in poll_batch(0.05).column("value"):
            digest.add(value.as_py())
        return digest.count >= count

    wait_until(enough, TIMEOUT_S, f"{count} messages", state=lambda: digest.count)
    return digest


@pytest.mark.parametrize("add", ["add_publication", "add_exclusive_publication"])
def test_a_stock_subscriber_reads_what_we_publish(
    ours: aeron_spark.Client, theirs: Any, stream: int, opened: Opened, add: str, tmp_path: Path
) -> None:
    table = tmp_path / "messages.csv"
    reading = opened(opened(theirs.subscription(IPC, stream)).read(2000, str(table)))
    publication = opened(getattr(ours, add)(IPC, stream))
    publication.wait_connected(TIMEOUT_S)
    position = publication.offer_batch(
        list(payloads(stream, 2000, SIZES)), reserved_values=[i * RESERVED_FACTOR for i in range(2000)]
    )
    assert_messages(reading, stream, 2000)
    assert reading.position() == position == publication.position
    rows = [line.split(",") for line in table.read_text().splitlines()[1:]]
    assert [int(row[4]) for row in rows] == [i * RESERVED_FACTOR for i in range(2000)]


def test_single_offers_and_claims_reach_a_stock_subscriber(
    ours: aeron_spark.Client, theirs: Any, stream: int, opened: Opened
) -> None:
    sizes = [100, 0, 8, 1000]
    reading = opened(opened(theirs.subscription(IPC, stream)).read(40, None))
    publication = opened(ours.add_exclusive_publication(IPC, stream))
    publication.wait_connected(TIMEOUT_S)
    for index, body in enumerate(payloads(stream, 40, sizes)):
        if index % 2 == 0:
            assert publication.offer(body) > 0
            continue
        with publication.try_claim(len(body)) as view:
            assert isinstance(view, memoryview)
            view[:] = body
    assert_messages(reading, stream, 40, sizes=sizes)


@pytest.mark.parametrize("add", ["publication", "exclusivePublication"])
def test_we_read_what_a_stock_publisher_sends(
    ours: aeron_spark.Client, theirs: Any, stream: int, opened: Opened, add: str
) -> None:
    subscription = opened(ours.add_subscription(IPC, stream))
    publication = opened(getattr(theirs, add)(IPC, stream))
    assert publication.awaitConnected(TIMEOUT_MS)
    # In parts that fit the window: what does not would wait for a reader, and that is this very thread.
    for first in range(0, 500, 5):
        publication.publish(stream, first, 5, SIZES, TIMEOUT_MS)
        assert read_all(subscription.poll_batch, 5) == expected(stream, 5, SIZES, first=first)
    with subscription.wait_image(TIMEOUT_S) as image:
        assert image.position == publication.raw().position()


def test_message_by_message_with_headers(ours: aeron_spark.Client, theirs: Any, stream: int, opened: Opened) -> None:
    subscription = opened(ours.add_subscription(IPC, stream))
    publication = opened(theirs.exclusivePublication(IPC, stream))
    assert publication.awaitConnected(TIMEOUT_MS)
    publication.publish(stream, 0, 10, SIZES, TIMEOUT_MS)
    seen: list[tuple[bytes, int, int]] = []

    def on_message(body: bytes, header: Any) -> None:
        seen.append((body, header.session_id, header.reserved_value))

    def all_there() -> bool:
        subscription.poll(on_message)
        return len(seen) == 10

    wait_until(all_there, TIMEOUT_S, "ten messages", state=lambda: len(seen))
    session = publication.raw().sessionId()
    assert seen == [(body, session, index * RESERVED_FACTOR) for index, body in enumerate(payloads(stream, 10, SIZES))]


def test_images_come_and_go(ours: aeron_spark.Client, theirs: Any, stream: int, opened: Opened) -> None:
    subscription = opened(ours.add_subscription(IPC, stream))
    publication = theirs.exclusivePublication(IPC, stream)
    with subscription.wait_image(TIMEOUT_S) as image:
        assert image.info.session_id == publication.raw().sessionId()
        assert image.info.source_identity == "aeron:ipc"
        assert image.info.initial_term_id == publication.raw().initialTermId()
        publication.close()
        wait_until(lambda: image.is_ended, TIMEOUT_S, "the end of the stream")
    wait_until(lambda: not subscription.is_connected, TIMEOUT_S, "the image to go")


def test_a_stock_subscriber_that_rejects_us_is_heard(
    product: Any, servers: Path, theirs: Any, stream: int, opened: Opened
) -> None:
    told: list[tuple[int, int, str]] = []
    client = opened(
        product.Client(
            servers, on_publication_error=lambda _id, session, _stream, code, text: told.append((session, code, text))
        )
    )
    publication = opened(client.add_exclusive_publication(IPC, stream))
    subscription = opened(theirs.subscription(IPC, stream))
    wait_until(subscription.image, TIMEOUT_S, "the image")
    subscription.reject("unwanted")
    wait_until(lambda: told == [(publication.session_id, 13, "unwanted")], TIMEOUT_S, "the error", state=lambda: told)


def test_our_counters_are_seen_by_stock_clients(ours: aeron_spark.Client, theirs: Any) -> None:
    with ours.add_counter(1237, "a counter of ours", key=b"key") as counter:
        counter.value = 42
        line = wait_until(
            lambda: next((line for line in theirs.counters() if "a counter of ours" in line), None),
            TIMEOUT_S,
            "the counter",
        )
        assert line.split("|")[:3] == [str(counter.counter_id), "1237", "42"]
    wait_until(
        lambda: not any("a counter of ours" in line for line in theirs.counters()), TIMEOUT_S, "the counter to go"
    )


def test_our_client_keeps_itself_alive_and_names_itself(product: Any, servers: Path, opened: Opened) -> None:
    client = opened(product.Client(servers, name="named"))
    opened(client.add_publication(IPC, 999))
    wait_until(
        lambda: any(
            counter.type_id == 11 and counter.registration_id == client.client_id and " name=named " in counter.label
            for counter in Cnc(servers).counters()
        ),
        TIMEOUT_S,
        "the name on the heartbeat counter",
        state=lambda: [c.label for c in Cnc(servers).counters() if c.type_id == 11],
    )


def test_a_refusal_of_the_stock_driver_is_told_in_its_words(
    product: Any, ours: aeron_spark.Client, stream: int
) -> None:
    with pytest.raises(product.PeerError, match=r"(?i)mtu"):
        ours.add_publication("aeron:ipc?mtu=100", stream)


def test_no_driver_is_a_timeout_that_names_the_directory(product: Any, aeron_dir: Path) -> None:
    with pytest.raises(product.AeronError, match=re.escape(str(aeron_dir))):
        product.Client(aeron_dir, timeout=0.5)


def test_we_record_and_replay_through_the_stock_archive(
    product: Any, ours: aeron_spark.Client, stream: int, opened: Opened
) -> None:
    signals: list[Any] = []
    archive = opened(product.Archive(ours, on_signal=signals.append))
    assert archive.archive_id is not None
    subscription_id = archive.start_recording(IPC, stream)
    publication = opened(ours.add_exclusive_publication(IPC, stream))
    publication.wait_connected(TIMEOUT_S)
    bodies = list(payloads(stream, 500, SIZES))
    position = publication.offer_batch(bodies, reserved_values=[i * RESERVED_FACTOR for i in range(500)])
    recording_id = archive.wait_recording("aeron:ipc", stream, publication.session_id)
    archive.wait_position(recording_id, position)
    assert archive.recording_position(recording_id) == position
    assert archive.stop_position(recording_id) is None
    archive.stop_recording_subscription(subscription_id)
    wait_until(lambda: archive.stop_position(recording_id) == position, TIMEOUT_S, "the stop position")

    with archive.replay(recording_id) as replay:
        batches = list(replay.batches())
    values = [value.as_py() for batch in batches for value in batch.column("value")]
    assert values == bodies
    reserved = [value.as_py() for batch in batches for value in batch.column("reserved_value")]
    assert reserved == [i * RESERVED_FACTOR for i in range(500)]
    ends = [value.as_py() for batch in batches for value in batch.column("next_position")]
    assert ends == sorted(set(ends))
    assert ends[-1] == position

    found = archive.recording(recording_id)
    assert found is not None
    assert (found.start_position, found.stop_position) == (0, position)
    assert (found.stream_id, found.session_id) == (stream, publication.session_id)
    assert archive.recording(999_999) is None
    assert found in archive.recordings()
    assert archive.recordings(channel_fragment="aeron:ipc", stream_id=stream) == [found]
    archive.poll()
    assert [(s.recording_id, s.signal.name, s.position) for s in signals] == [
        (recording_id, "START", 0),
        (recording_id, "STOP", position),
    ]


def test_we_replay_a_part_and_within_a_bound(
    product: Any, ours: aeron_spark.Client, stream: int, opened: Opened
) -> None:
    archive = opened(product.Archive(ours))
    archive.start_recording(IPC, stream)
    publication = opened(ours.add_exclusive_publication(IPC, stream))
    publication.wait_connected(TIMEOUT_S)
    ends = [publication.offer_batch(list(payloads(stream, 50, SIZES, first=50 * part))) for part in range(3)]
    recording_id = archive.wait_recording("aeron:ipc", stream, publication.session_id)
    archive.wait_position(recording_id, ends[2])

    with archive.replay(recording_id, position=ends[0], length=ends[1] - ends[0]) as replay:
        values = [value.as_py() for batch in replay.batches() for value in batch.column("value")]
    assert values == list(payloads(stream, 50, SIZES, first=50))

    limit = opened(ours.add_counter(2346, "a bound"))
    limit.value = ends[0]
    with archive.replay(recording_id, stream_id=101, limit_counter_id=limit.counter_id) as replay:
        image = opened(replay.wait_image(TIMEOUT_S))
        assert read_all(image.poll_batch, 50) == expected(stream, 50, SIZES)
        assert image.position == ends[0]
        limit.value = ends[1]
        assert read_all(image.poll_batch, 50) == expected(stream, 50, SIZES, first=50)
    archive.stop_recording(IPC, stream)


def test_we_extend_a_recording_of_the_stock_archive(
    product: Any, ours: aeron_spark.Client, stream: int, opened: Opened
) -> None:
    archive = opened(product.Archive(ours))
    first = archive.start_recording(IPC, stream)
    with ours.add_exclusive_publication(IPC, stream) as publication:
        publication.wait_connected(TIMEOUT_S)
        position = publication.offer_batch(list(payloads(stream, 100, SIZES)))
        recording_id = archive.wait_recording("aeron:ipc", stream, publication.session_id)
        archive.wait_position(recording_id, position)
    archive.stop_recording_subscription(first)
    wait_until(lambda: archive.stop_position(recording_id) == position, TIMEOUT_S, "the stop position")
    found = archive.recording(recording_id)
    assert found is not None
    channel = extend_channel_of(found.initial_term_id, found.term_buffer_length, found.mtu_length, position)
    second = archive.extend_recording(recording_id, channel, stream)
    with ours.add_exclusive_publication(channel, stream) as publication:
        assert publication.position == position
        publication.wait_connected(TIMEOUT_S)
        end = publication.offer_batch(list(payloads(stream, 100, SIZES, first=100)))
        archive.wait_position(recording_id, end)
    archive.stop_recording_subscription(second)
    wait_until(lambda: archive.stop_position(recording_id) == end, TIMEOUT_S, "the new stop position")
    with archive.replay(recording_id) as replay:
        values = [value.as_py() for batch in replay.batches() for value in batch.column("value")]
    assert values == list(payloads(stream, 200, SIZES))


def test_refusals_of_the_stock_archive_are_told_in_its_words(
    product: Any, ours: aeron_spark.Client, opened: Opened
) -> None:
    archive = opened(product.Archive(ours))
    with pytest.raises(product.PeerError, match=r"unknown recording id: 999999") as error:
        archive.start_position(999_999)
    assert error.value.code == 5
    with pytest.raises(product.PeerError, match="no recording found for streamId=5555"):
        archive.stop_recording("aeron:ipc?alias=nobody", 5555)
