"""Publishing and receiving through our client and driver."""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from aeron_spark import Action, Client, ClosedError, MediaDriver, Outcome, PeerError, UsageError, WaitTimeoutError
from aeron_spark.publication import Publication
from aeron_spark.subscription import Subscription
from aeron_spark.types import Header, ImageInfo
from tests.kit.wait import wait_until

CHANNEL = "aeron:ipc"
STREAM = 1001


@pytest.fixture
def pair(client: Client) -> tuple[Publication, Subscription]:
    subscription = client.add_subscription(CHANNEL, STREAM)
    publication = client.add_exclusive_publication(CHANNEL, STREAM)
    publication.wait_connected(10)
    # The driver makes room a moment after it has connected them: until then an offer is refused.
    wait_until(lambda: publication.position_limit > 0, 10, "room for messages")
    return publication, subscription


def receive(subscription: Subscription, count: int) -> list[dict[str, Any]]:
    """So many rows, as dicts."""
    rows: list[dict[str, Any]] = []
    wait_until(
        lambda: rows.extend(subscription.poll_batch(0.05).to_pylist()) or len(rows) >= count, 20, f"{count} messages"
    )
    return rows


def test_offer_and_poll(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    position = publication.offer(b"hello")
    assert position == 64
    assert position == publication.position
    seen: list[tuple[bytes, Header]] = []
    wait_until(lambda: subscription.poll(lambda message, header: seen.append((message, header))), 10, "a message")
    message, header = seen[0]
    assert message == b"hello"
    assert header.position == 64
    assert header.session_id == publication.session_id
    assert header.stream_id == STREAM
    assert header.term_offset == 0


def test_fragments_come_as_one_message(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    message = bytes(range(256)) * 30
    assert len(message) > publication.constants.max_payload_length
    assert publication.offer(message) > 0
    seen: list[bytes] = []
    wait_until(lambda: subscription.poll(lambda got, _: seen.append(got)) and seen, 10, "the message")
    assert seen == [message]


def test_two_local_destinations_of_one_stream_have_one_image(client: Client) -> None:
    """A position for each, of which the client moves one, would hold the publisher for ever."""
    with (
        client.add_subscription("aeron:udp?control-mode=manual", STREAM) as subscription,
        client.add_exclusive_publication("aeron:ipc?term-length=64k", STREAM) as publication,
    ):
        subscription.add_destination("aeron:ipc")
        subscription.add_destination("aeron:ipc")
        for number in range(100):  # three terms
            publication.offer_batch([bytes([number]) * 1900], timeout=20)
            assert receive(subscription, 1)[0]["value"] == bytes([number]) * 1900
        subscription.remove_destination("aeron:ipc")
        publication.offer_batch([b"to the other"], timeout=20)
        assert receive(subscription, 1)[0]["value"] == b"to the other"


def test_what_a_handler_raises_comes_out_and_the_message_comes_again(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    publication.offer(b"once")

    def fail(_message: bytes, _header: Header) -> None:
        raise KeyError("from the handler")

    with pytest.raises(KeyError, match="from the handler"):
        wait_until(lambda: subscription.poll(fail), 10, "the failure")
    seen: list[bytes] = []
    wait_until(lambda: subscription.poll(lambda got, _: seen.append(got)), 10, "the message again")
    assert seen == [b"once"]


def test_a_handler_may_break(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    publication.offer_batch([b"a", b"b", b"c"])
    seen: list[bytes] = []

    def first_only(message: bytes, _header: Header) -> Action:
        seen.append(message)
        return Action.BREAK

    assert wait_until(lambda: subscription.poll(first_only), 10, "a message") == 1
    assert seen == [b"a"]


@pytest.mark.parametrize("result", [1, True, "text"])
def test_a_handler_that_returns_anything_else_is_refused(pair: tuple[Publication, Subscription], result: Any) -> None:
    """`lambda message, _: file.write(message)` returns how many bytes it wrote: 1 would mean, give the message again."""
    publication, subscription = pair
    publication.offer_batch([b"x"])
    with pytest.raises(UsageError, match=f"returned {result!r} instead of None or an Action"):
        wait_until(lambda: subscription.poll(lambda *_: result), 10, "the refusal")
    assert receive(subscription, 1)[0]["value"] == b"x"


def test_a_poll_in_its_own_handler_is_refused_and_no_message_comes_twice(
    pair: tuple[Publication, Subscription],
) -> None:
    publication, subscription = pair
    publication.offer_batch([b"a", b"b"])
    seen: list[bytes] = []
    with subscription.wait_image(10) as image, subscription.wait_image(10) as same:

        def within(message: bytes, _header: Header) -> None:
            seen.append(message)
            for one in (image, same, subscription):
                with pytest.raises(UsageError, match="polled by another thread or from its own handler"):
                    one.poll(within)
                with pytest.raises(UsageError, match="polled by another thread or from its own handler"):
                    one.poll_batch()

        assert image.poll(within) == 2
        assert seen == [b"a", b"b"]
        assert image.position == 128
        assert image.poll(within) == 0


def test_claim_is_published_and_an_exception_aborts_it(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    with publication.try_claim(5) as view:
        assert isinstance(view, memoryview)
        view[:] = b"claim"

    def interrupted() -> None:
        with publication.try_claim(5) as view:
            assert isinstance(view, memoryview)
            raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        interrupted()
    publication.offer(b"after")
    assert [row["value"] for row in receive(subscription, 2)] == [b"claim", b"after"]


def test_a_claim_is_unchanged_by_what_is_written_behind_its_block(pair: tuple[Publication, Subscription]) -> None:
    """An array of numpy keeps the memory that it was made over."""
    publication, subscription = pair
    with publication.try_claim(4) as view:
        assert isinstance(view, memoryview)
        array = np.frombuffer(view, np.uint8)
        array[:] = 1
    array[:] = 2
    with pytest.raises(ValueError, match="released"):
        view[:] = b"late"
    assert receive(subscription, 1)[0]["value"] == b"\1\1\1\1"


def test_a_claim_whose_view_is_still_exported_is_not_published(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    kept: list[pa.Buffer] = []

    def export() -> None:
        with publication.try_claim(4) as view:
            kept.append(pa.py_buffer(view))

    with pytest.raises(BufferError):
        export()
    publication.offer(b"after")
    assert receive(subscription, 1)[0]["value"] == b"after"


@pytest.mark.parametrize(
    "make",
    [
        lambda rows: rows,
        lambda rows: pa.array(rows, pa.binary()),
        lambda rows: pa.array(rows, pa.large_binary()),
        lambda rows: pa.array([b"left out", *rows, b"left out"], pa.binary()).slice(1, len(rows)),
        lambda rows: pa.chunked_array([rows[:3], rows[3:]], pa.binary()),
    ],
    ids=["list", "binary", "large_binary", "slice", "chunked"],
)
def test_batches_of_every_form(pair: tuple[Publication, Subscription], make: Any, rng: random.Random) -> None:
    publication, subscription = pair
    rows = [rng.randbytes(rng.choice([0, 1, 31, 32, 33, 1000, 1376, 1377, 5000])) for _ in range(10)]
    reserved = np.arange(10) * 1_000_003
    end = publication.offer_batch(make(rows), reserved_values=reserved)
    got = receive(subscription, 10)
    assert [row["value"] for row in got] == rows
    assert [row["reserved_value"] for row in got] == reserved.tolist()
    assert got[-1]["next_position"] == end == publication.position
    assert [row["position"] for row in got[1:]] == [row["next_position"] for row in got[:-1]]


def test_strings_and_fixed_size_and_numpy(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    publication.offer_batch(pa.array(["ä", "bc"]))
    publication.offer_batch(pa.array([b"1234", b"5678"], pa.binary(4)))
    publication.offer_batch(np.array([[1, 2], [3, 4]], np.uint8))
    publication.offer_batch(np.array([(7, 1.5)], np.dtype([("a", "<i4"), ("b", "<f8")])))
    values = [row["value"] for row in receive(subscription, 7)]
    assert values[:6] == ["ä".encode(), b"bc", b"1234", b"5678", b"\1\2", b"\3\4"]
    assert np.frombuffer(values[6], np.dtype([("a", "<i4"), ("b", "<f8")]))[0].item() == (7, 1.5)


@pytest.mark.parametrize("empty", [[], pa.array([], pa.binary()), np.empty((0, 8), np.uint8)])
def test_an_empty_batch_publishes_nothing(pair: tuple[Publication, Subscription], empty: Any) -> None:
    assert pair[0].offer_batch(empty) == 0


@pytest.mark.parametrize(
    ("messages", "reserved", "text"),
    [
        ([b"a", None], None, "null"),
        (pa.array([1, 2]), None, "can't be published"),
        (np.array([b"x", None], object), None, "no rows of plain bytes"),
        ([b"a"], [1, 2], "must be 1 integers"),
        ([b"a"], [1.5], "must be 1 integers"),
        ("text", None, "put it into a list"),
        ([1, 2], None, "can't be read"),
    ],
)
def test_wrong_batches_are_refused_whole(
    pair: tuple[Publication, Subscription], messages: Any, reserved: Any, text: str
) -> None:
    publication, _ = pair
    with pytest.raises(UsageError, match=text):
        publication.offer_batch(messages, reserved_values=reserved)
    assert publication.position == 0


def test_a_message_over_the_maximum_is_named(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    most = publication.constants.max_message_length
    with pytest.raises(UsageError, match=f"message 2 has {most + 1} bytes") as raised:
        publication.offer_batch([b"a", b"b", bytes(most + 1), b"c"])
    assert raised.value.accepted == 2
    assert raised.value.position == publication.position
    assert [row["value"] for row in receive(subscription, 2)] == [b"a", b"b"]


def test_back_pressure_ends_in_a_timeout_that_says_how_far(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    with pytest.raises(WaitTimeoutError, match="behind by the whole window") as raised:
        publication.offer_batch([bytes(1000)] * 1000, timeout=0.2)
    accepted = raised.value.accepted
    assert accepted is not None
    assert 0 < accepted < 1000
    assert len(receive(subscription, accepted)) == accepted


def test_a_slow_reader_is_waited_for(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    done = threading.Event()
    failure: list[BaseException] = []

    def publish() -> None:
        try:
            publication.offer_batch([bytes(1000)] * 1000, timeout=10)
        except BaseException as raised:  # noqa: BLE001 - told by the test
            failure.append(raised)
        done.set()

    thread = threading.Thread(target=publish)
    thread.start()
    rows = receive(subscription, 1000)
    thread.join()
    assert done.is_set()
    assert not failure
    assert len(rows) == 1000


def test_without_a_subscriber(client: Client) -> None:
    publication = client.add_publication(CHANNEL, 7)
    assert not publication.is_connected
    assert publication.offer(b"x") is Outcome.NOT_CONNECTED
    with publication.try_claim(1) as claimed:
        assert claimed is Outcome.NOT_CONNECTED
    with pytest.raises(WaitTimeoutError, match="no subscriber"):
        publication.wait_connected(0.05)
    with pytest.raises(WaitTimeoutError, match="no subscriber") as raised:
        publication.offer_batch([b"x"], timeout=0.05)
    assert raised.value.accepted == 0


def test_columns_are_chosen_and_checked(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    publication.offer_batch([b"abc"])
    with pytest.raises(UsageError, match="column 'colour' does not exist"):
        subscription.poll_batch(columns=["position", "colour"])
    batch = subscription.poll_batch(10.0, columns=["value", "term_id", "term_offset", "flags", "stream_id"])
    assert batch.schema.names == ["value", "term_id", "term_offset", "flags", "stream_id"]
    row = batch.to_pylist()[0]
    assert row == {
        "value": b"abc",
        "term_id": publication.constants.initial_term_id,
        "term_offset": 0,
        "flags": 0xC0,
        "stream_id": STREAM,
    }


def test_batches_outlive_everything(client: Client, pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    publication.offer_batch([b"first"] * 100)
    batch = subscription.poll_batch(10.0)
    publication.offer_batch([b"other"] * 100)
    other = subscription.poll_batch(10.0)
    client.close()
    assert set(batch.column("value").to_pylist()) == {b"first"}
    assert set(other.column("value").to_pylist()) == {b"other"}


def test_capacities(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    publication.offer_batch([bytes(100)] * 10)
    assert subscription.poll_batch(10.0, row_capacity=3).num_rows == 3
    assert subscription.poll_batch(10.0, byte_capacity=250).num_rows == 2
    with pytest.raises(UsageError):
        subscription.poll_batch(10.0, byte_capacity=50)
    assert subscription.poll_batch(10.0).num_rows == 5
    assert subscription.poll_batch(0.0).num_rows == 0


def test_images(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    with subscription.wait_image(10, publication.session_id) as image:
        assert image.info.join_position == 0
        assert image.info.term_length == 64 * 1024
        publication.offer_batch([b"x"])
        assert image.poll_batch(10.0).num_rows == 1
        assert image.position == publication.position
        assert not image.is_ended
        publication.close()
        wait_until(lambda: image.is_ended, 10, "the end of the stream")
    with pytest.raises(WaitTimeoutError, match="no publisher of session 12345"):
        subscription.wait_image(0.02, 12345)


def test_image_handlers(client: Client) -> None:
    events: list[tuple[str, ImageInfo]] = []
    with (
        Client(
            client.aeron_dir,
            on_available_image=lambda info: events.append(("available", info)),
            on_unavailable_image=lambda info: events.append(("unavailable", info)),
        ) as other,
        other.add_subscription(CHANNEL, 9),
    ):
        with client.add_publication(CHANNEL, 9) as publication:
            session_id = publication.session_id
            wait_until(lambda: len(events) == 1, 10, "the image")
        wait_until(lambda: len(events) == 2, 20, "its end")
    assert [name for name, _ in events] == ["available", "unavailable"]
    assert {info.session_id for _, info in events} == {session_id}


def test_a_handler_may_ask_whether_its_client_is_closed_and_nothing_else(client: Client) -> None:
    """The client waits for its handler, which waits for whoever uses the client in another thread, and he for the client."""
    seen: list[object] = []

    def on_image(_info: ImageInfo) -> None:
        seen.append(other.is_closed)
        for call in (lambda: other.client_id, lambda: publication.position, publication.close, other.close):
            try:
                call()
            except UsageError as failure:
                seen.append("used by a handler of its own client" in str(failure))
        seen.append(client.is_closed)  # a client that does not wait

    with (
        Client(client.aeron_dir, on_available_image=on_image) as other,
        other.add_publication(CHANNEL, 8) as publication,
        client.add_subscription(CHANNEL, 8) as reader,
        other.add_subscription(CHANNEL, 9),
    ):
        publication.wait_connected(10)
        with other._use(), client.add_publication(CHANNEL, 9):
            wait_until(lambda: len(seen) == 6, 10, "the handler", state=lambda: seen)
        assert seen == [False, True, True, True, True, False]
        publication.close()
        wait_until(lambda: not reader.is_connected, 20, "the end of the publication")
        other.close()
        assert other.is_closed


def test_is_closed_and_is_running_while_another_thread_closes(
    driver: MediaDriver, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for handle in (client, driver):
        use = handle._use

        def closes_first(handle: Any = handle, use: Any = use) -> Any:
            handle.close()
            return use()

        monkeypatch.setattr(handle, "_use", closes_first)
    assert client.is_closed
    assert not driver.is_running


def test_errors_of_the_driver(client: Client) -> None:
    with pytest.raises(PeerError) as raised:
        client.add_publication("aeron:ipc?term-length=1000", 1)
    assert raised.value.code != 0
    with pytest.raises(PeerError, match="endpoint"):
        client.add_publication("aeron:udp?linger=1s", 1)


def test_closing_the_client_closes_the_rest(client: Client, pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    client.close()
    assert client.is_closed
    for call in (lambda: publication.offer(b"x"), lambda: publication.offer_batch([b"x"]), subscription.poll_batch):
        with pytest.raises(ClosedError):
            call()


def test_close_during_a_long_poll_is_not_late(client: Client) -> None:
    subscription = client.add_subscription(CHANNEL, 3)
    raised: list[BaseException] = []

    def poll() -> None:
        try:
            subscription.poll_batch(600.0)
        except ClosedError as failure:
            raised.append(failure)

    thread = threading.Thread(target=poll)
    thread.start()
    subscription.close()
    thread.join(60)
    assert len(raised) == 1


def test_shared_publication_of_two_threads(client: Client) -> None:
    with (
        client.add_subscription(CHANNEL, 11) as subscription,
        client.add_publication(CHANNEL, 11) as first,
        client.add_publication(CHANNEL, 11) as second,
    ):
        assert first.session_id == second.session_id
        first.wait_connected(10)
        threads = [
            threading.Thread(target=publication.offer_batch, args=([name] * 500,))
            for publication, name in ((first, b"first"), (second, b"second"))
        ]
        for thread in threads:
            thread.start()
        values = [row["value"] for row in receive(subscription, 1000)]
        for thread in threads:
            thread.join()
    assert sorted(values) == [b"first"] * 500 + [b"second"] * 500


def test_counters_of_a_client(client: Client) -> None:
    with client.add_counter(1234, "my counter", key=b"\1\2\3") as counter:
        counter.value = 40
        assert counter.add(2) == 40
        assert counter.value == 42
