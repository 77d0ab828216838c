"""What a task of the sink publishes by its options: destinations, keys, Arrow messages, subscribers awaited, the pool.

A task is a call here, without Spark: test_sink.py has Spark around it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, DataType, StringType, StructType, YearMonthIntervalType

from aeron_spark.archive.segments import Folder
from aeron_spark.client import Client
from aeron_spark.counters import Counters
from aeron_spark.errors import AeronError, ClosedError, UsageError, WaitTimeoutError
from aeron_spark.spark.source import AeronDataSource
from aeron_spark.spark.writing import encode
from aeron_spark.spark.writing import publications as pool
from aeron_spark.spark.writing.options import WriteOptions
from aeron_spark.spark.writing.publish import Published, publish_batches
from aeron_spark.streams import StreamCounter, streams
from aeron_spark.subscription import Subscription
from tests.kit import native
from tests.kit.ports import free_port
from tests.kit.wait import wait_until
from tests.spark import recorded

WRITE = UUID("00112233-4455-6677-8899-aabbccddeeff")
STREAM_ID = 1001
CONTROL_SESSIONS = 102  # a counter's type


def close_pool(aeron_dir: Path) -> None:
    for publications in pool._idle.values():
        while publications:
            publications.pop().close()
    pool.client_of(str(aeron_dir)).close()


@pytest.fixture
def client(aeron_dir: Path) -> Iterator[Client]:
    """A subscriber's client of a driver."""
    with native.driver(aeron_dir), Client(aeron_dir) as client:
        yield client
        close_pool(aeron_dir)


def publish(client: Client, batches: list[pa.RecordBatch], **options: str) -> Published:
    given = {"channel": recorded.CHANNEL, "streamId": str(STREAM_ID), "aeronDir": str(client.aeron_dir), **options}
    chosen = WriteOptions.parse({key: value for key, value in given.items() if value}, batches[0].schema.names)
    return publish_batches(iter(batches), chosen, "test", WRITE)


def received(client: Client, batches: list[pa.RecordBatch], stream_id: int = STREAM_ID, **options: str) -> pa.Table:
    """What a subscriber gets of a task's rows."""
    with client.add_subscription(recorded.CHANNEL, stream_id) as subscription:
        publish(client, batches, **options)
        # All is published; only the image may come a moment later.
        parts = [subscription.poll_batch(timeout=20)]
        while (batch := subscription.poll_batch(timeout=0.2)).num_rows:
            parts.append(batch)
        return pa.Table.from_batches(parts)


def test_rows_go_to_the_streams_that_they_name_in_their_order(client: Client) -> None:
    count = 600
    batch = pa.record_batch(
        {
            "value": pa.array([b"%d" % index for index in range(count)]),
            "stream_id": pa.array([(None, 7, 8)[index % 3] for index in range(count)], pa.int32()),
            "channel": pa.array([(None, "aeron:ipc?alias=other")[index % 2] for index in range(count)]),
        }
    )
    with (
        client.add_subscription(recorded.CHANNEL, 7) as seven,
        client.add_subscription(recorded.CHANNEL, 8) as eight,
        client.add_subscription(recorded.CHANNEL, STREAM_ID) as default,
    ):
        publish(client, [batch, batch], linger="0s")
        for subscription, rest in ((default, 0), (seven, 1), (eight, 2)):
            by_session: dict[int, list[int]] = {}

            def has_all(subscription: Subscription, by_session: dict[int, list[int]]) -> bool:
                part = subscription.poll_batch()
                for session, value in zip(part["session_id"].to_pylist(), part["value"].to_pylist(), strict=True):
                    by_session.setdefault(session, []).append(int(value))
                return sum(map(len, by_session.values())) >= 2 * count // 3

            wait_until(partial(has_all, subscription, by_session), 20, "all rows of a stream")
            assert subscription.poll_batch().num_rows == 0
            once = [[index for index in range(rest, count, 3) if index % 2 == half] for half in (0, 1)]
            assert sorted(by_session.values()) == sorted(part + part for part in once), (
                "a session per channel, in order"
            )


def test_header_key_is_there_and_the_same_at_a_second_attempt(client: Client) -> None:
    batches = [
        pa.record_batch({"value": pa.array(["a", "", "ccc"])}),
        pa.record_batch({"value": pa.array(["dd"])}),
    ]
    first, second = (received(client, batches, key="header")["value"].to_pylist() for _ in range(2))
    assert first == second
    keys = np.frombuffer(b"".join(message[: encode.KEY_LENGTH] for message in first), encode._KEY)
    assert [message[encode.KEY_LENGTH :] for message in first] == [b"a", b"", b"ccc", b"dd"]
    assert keys["row"].tolist() == [0, 1, 2, 3]
    assert set(keys["magic"].tolist()) == {b"ASK1"}
    assert set(keys["batch"].tolist()) == {encode.BATCH_WRITE}
    assert {UUID(bytes=key.tobytes()) for key in keys["query"]} == {WRITE}


def test_reserved_key_packs_batch_partition_and_row() -> None:
    options = WriteOptions.parse({"streamId": "1", "key": "reserved"})
    batch = pa.record_batch({"value": pa.array([b"x", b"y"])})

    def reserved(number: int, partition: int) -> list[int]:
        key = encode.RowKey(query=uuid4(), batch=number, partition=partition)
        (messages,) = encode.Encoder(options, key, lambda *_: 0).encode(batch)
        assert messages.reserved is not None
        values: list[int] = messages.reserved.to_pylist()
        return values

    assert reserved(5, 3) == [5 << 40 | 3 << 28, 5 << 40 | 3 << 28 | 1]
    assert reserved((1 << 23) + 1, 4095) == [1 << 40 | 4095 << 28, 1 << 40 | 4095 << 28 | 1]
    assert reserved(encode.BATCH_WRITE, 0) == [0, 1]
    with pytest.raises(UsageError, match=r"partition 4096 does not fit .*key=header"):
        reserved(0, 4096)


def test_arrow_batches_are_messages_cut_to_fit(client: Client) -> None:
    """64 KiB terms take messages of 8 KiB; 701 rows are more, and can't be halved."""
    rows = pa.table({"id": pa.array(range(701), pa.int64()), "name": pa.array(f"name {i}" for i in range(701))})
    table = received(client, rows.to_batches(max_chunksize=601), payload="arrow", key="reserved")
    assert table.num_rows > 2
    parts = [pa.ipc.open_stream(message).read_all() for message in table["value"].to_pylist()]
    assert pa.concat_tables(parts).equals(rows)
    firsts = np.cumsum([0, *(part.num_rows for part in parts[:-1])])
    assert table["reserved_value"].to_pylist() == firsts.tolist(), "the row that a message begins with"


def test_row_too_long_for_an_arrow_message_is_named(client: Client) -> None:
    batch = pa.record_batch({"text": pa.array(["short", "x" * 9000])})
    with (
        client.add_subscription(recorded.CHANNEL, STREAM_ID),
        pytest.raises(UsageError, match=r"row 1 of partition 0 takes .* term-length"),
    ):
        publish(client, [batch], payload="arrow")


def test_subscribers_are_awaited(client: Client) -> None:
    batch = pa.record_batch({"value": pa.array([b"x"])})
    with client.add_subscription(recorded.CHANNEL, STREAM_ID) as first:
        with pytest.raises(WaitTimeoutError, match=r"has 1 of 2 subscribers .*awaitSubscribers"):
            publish(client, [batch], awaitSubscribers="2", publishTimeout="100ms")
        task = threading.Thread(target=publish, args=(client, [batch]), kwargs={"awaitSubscribers": "2"})
        task.start()
        wait_until(lambda: publications(client), 10, "the task's publication")
        with client.add_subscription(recorded.CHANNEL, STREAM_ID) as second:
            task.join()
            assert [sub.poll_batch(timeout=5)["value"].to_pylist() for sub in (first, second)] == [[b"x"], [b"x"]]


def publications(client: Client) -> list[int]:
    """Sessions that are published on the stream."""
    with Counters(client.aeron_dir) as counters:
        return [
            row.session_id
            for row in streams(counters.rows())
            if row.type_id == StreamCounter.PUBLISHER_POSITION and row.stream_id == STREAM_ID
        ]


def test_timeout_names_who_is_slow(client: Client) -> None:
    batch = pa.record_batch({"value": pa.array([bytes(1000)] * 200)})
    with client.add_subscription(recorded.CHANNEL, STREAM_ID) as slow:
        with pytest.raises(
            WaitTimeoutError,
            match=rf"row \d+ of partition 0 .*publisher \d+ at \d+, 0 bytes of window left; "
            rf"subscriber {slow.registration_id} at 0, \d+ bytes behind; .*publishTimeout",
        ):
            publish(client, [batch], publishTimeout="200ms")
        assert not any(pool._idle.values()), "what a failed task used is closed"


def test_a_row_that_is_not_published_is_named(client: Client) -> None:
    """In the first batch of a task and in a later one, by its number in the partition."""
    good, bad = (pa.record_batch({"value": pa.array([b"a", b"b", last])}) for last in (b"c", bytes(9000)))
    with client.add_subscription(recorded.CHANNEL, STREAM_ID):
        for batches, row in (([bad], 2), ([good, bad], 5)):
            with pytest.raises(AeronError, match=f"^row {row} of partition 0 was not published to aeron:ipc"):
                publish(client, batches)


def test_what_a_failed_task_used_is_closed(client: Client) -> None:
    """That publication holds its data: the next task must not continue behind it."""
    good = pa.record_batch({"value": pa.array([b"a"])})
    bad = pa.record_batch({"value": pa.array([None], pa.binary())})
    with client.add_subscription(recorded.CHANNEL, STREAM_ID) as subscription:

        def is_gone() -> bool:
            subscription.poll_batch()
            return not publications(client)

        with pytest.raises(UsageError, match="row 1 of partition 0 has a null value"):
            publish(client, [good, bad])
        assert not any(pool._idle.values())
        wait_until(is_gone, 10, "the publication of the failed task to be closed")


def test_a_publication_that_cannot_be_closed_ends_its_session_with_the_archive() -> None:
    ended: list[str] = []

    def fails() -> None:
        raise ClosedError("the driver is gone")

    fakes: dict[str, Any] = {
        "publication": SimpleNamespace(close=fails),
        "archive": SimpleNamespace(close=lambda: ended.append("session")),
    }
    with pytest.raises(ClosedError, match="the driver is gone"):
        pool.PooledPublication(key=(), aeron_dir="", archive_id=None, recording=None, **fakes).close()
    assert ended == ["session"]


def test_a_stream_has_a_publication_of_its_own(client: Client) -> None:
    """One task after the other in a worker, each to another stream."""
    batch = pa.record_batch({"value": pa.array([b"x"])})
    for stream_id in (7, 8):
        with client.add_subscription(recorded.CHANNEL, stream_id) as subscription:
            publish(client, [batch], streamId=str(stream_id))
            assert subscription.poll_batch(timeout=5)["stream_id"].to_pylist() == [stream_id]


def test_tasks_of_a_worker_share_a_publication_until_it_is_idle(client: Client) -> None:
    batch = pa.record_batch({"value": pa.array([b"x"])})
    with client.add_subscription(recorded.CHANNEL, STREAM_ID) as subscription:

        def is_gone() -> bool:
            subscription.poll_batch()
            return not publications(client)

        publish(client, [batch])
        (session,) = publications(client)
        publish(client, [batch], linger="100ms")
        assert publications(client) == [session]
        wait_until(is_gone, 10, "the idle publication to be closed")
        publish(client, [batch], linger="0s")
        wait_until(is_gone, 10, "the publication to be closed")


def test_a_recording_that_was_stopped_is_not_published_to_again(aeron_dir: Path, archive_dir: Path) -> None:
    batch = pa.record_batch({"value": pa.array([b"x"])})
    with recorded.archive(aeron_dir, archive_dir) as archive:
        results = []
        for stopped in (False, True, False):
            results.append(publish(archive.client, [batch], recordTo=str(archive_dir)))
            if stopped:
                recording_id = results[-1].ranges[0].recording_id
                archive.control.stop_recording_by_identity(recording_id)
                wait_until(
                    lambda: archive.control.stop_position(recording_id) is not None,  # noqa: B023
                    20,
                    "the recording to stop",
                )
        ranges = [result.ranges[0] for result in results]
        assert ranges[0].recording_id == ranges[1].recording_id != ranges[2].recording_id
        assert (ranges[0].begin, ranges[0].end) == (0, ranges[1].begin)
        assert {result.archive_id for result in results} == {archive.control.archive_id}
        close_pool(aeron_dir)
    with Folder(archive_dir) as folder:
        assert sum(part.num_rows for entry in folder.recordings() for part in folder.read(entry.recording_id)) == 3


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"payload": "json"}, "payload='json' is unknown, choose one of value, arrow"),
        ({"key": "both"}, "key='both'"),
        ({"key": "reserved", "columns": "value reserved_value"}, "key=reserved writes the reserved value"),
        ({"streamid": "", "columns": "value stream"}, "is empty"),
        ({"awaitsubscribers": "0"}, "out of range"),
        ({"awaitsubscribers": "2", "channel": "aeron:udp?endpoint=10.0.0.1:4000"}, "neither multicast nor MDC"),
        ({"awaitsubscribers": "2", "channel": "aeron:udp?endpoint=224.0.1.1:4000|fc=max"}, "flow control"),
        ({"channel": "aeron-spy:aeron:ipc"}, "spy"),
        ({"linger": "-1s"}, "linger"),
        ({"awaitSubscriber": "2"}, "did you mean awaitSubscribers"),
    ],
)
def test_options_refused(options: dict[str, str], names: str) -> None:
    columns = options.pop("columns", "value").split()
    with pytest.raises(UsageError, match=names):
        WriteOptions.parse({"streamid": "1", **options}, columns)


def test_only_appending_is_possible() -> None:
    source = AeronDataSource({"streamid": "1"})
    schema = StructType().add("value", "string")
    source.streamWriter(schema, overwrite=False)
    with pytest.raises(UsageError, match=r"outputMode\('complete'\) .*foreachBatch"):
        source.streamWriter(schema, overwrite=True)
    with pytest.raises(UsageError, match=r"write with mode\('append'\)"):
        source.writer(schema, overwrite=True)


def test_awaited_receivers_are_the_flow_controls_business_over_udp() -> None:
    for channel in ("aeron:udp?endpoint=224.0.1.1:4000", "aeron:udp?control=10.0.0.1:4001|control-mode=dynamic"):
        options = WriteOptions.parse({"streamId": "1", "channel": channel, "awaitSubscribers": "3"})
        assert options.channel == f"{channel}|fc=min,g:/3"


def test_a_recorded_udp_stream_needs_no_other_subscriber(aeron_dir: Path, archive_dir: Path) -> None:
    channel, other = (f"aeron:udp?endpoint=127.0.0.1:{port}" for port in (free_port(), free_port()))
    batch = pa.record_batch({"value": pa.array(["a", "b"]), "channel": pa.array([None, other])})
    with recorded.archive(aeron_dir, archive_dir) as archive:
        given = {"channel": channel, "streamId": str(STREAM_ID), "recordTo": str(archive_dir), "publishTimeout": "20s"}
        options = WriteOptions.parse(given, batch.schema.names)
        done = publish_batches(iter([batch]), options, "test", WRITE)
        assert (done.rows, [part.messages for part in done.ranges]) == (2, [1, 1])
        assert all("ssc=true" in one.original_channel for one in archive.control.recordings())
        close_pool(aeron_dir)
    spies_do_not_count: dict[str, str] = {**given, "channel": f"{channel}|ssc=false"}
    assert WriteOptions.parse(spies_do_not_count).channel.endswith("|ssc=false")


def test_a_task_may_write_for_longer_than_its_session_lasts(aeron_dir: Path, archive_dir: Path) -> None:
    """The archive ends a session that asks nothing for minutes; here its pings come a thousand times as often."""
    often = {"aeron.archive.session.liveness.check.interval": "1ms", "aeron.archive.connect.timeout": "3s"}
    batch = pa.record_batch({"value": pa.array(["a", "b"])})
    with recorded.archive(aeron_dir, archive_dir, often), Counters(aeron_dir) as counters:

        def sessions() -> int:
            return sum(row.value for row in counters.rows() if row.type_id == CONTROL_SESSIONS)

        def batches() -> Iterator[pa.RecordBatch]:
            yield batch
            wait_until(lambda: sessions() == 0, 60, "all sessions to end")
            yield batch

        given = {"channel": recorded.CHANNEL, "streamId": str(STREAM_ID), "recordTo": str(archive_dir)}
        options = WriteOptions.parse({**given, "publishTimeout": "20s"}, batch.schema.names)
        done = publish_batches(batches(), options, "test", WRITE)
        assert [part.messages for part in done.ranges] == [4]
        close_pool(aeron_dir)
        with Folder(archive_dir) as folder:
            rows = [row for found in folder.read(done.ranges[0].recording_id) for row in found["value"].to_pylist()]
        assert rows == [b"a", b"b", b"a", b"b"]


def test_columns_of_arrow_messages_are_free() -> None:
    schema = StructType().add("id", "long").add("tags", ArrayType(StringType()))
    encode.check_columns(schema, "arrow")
    with pytest.raises(UsageError, match="payload=arrow"):
        encode.check_columns(schema, "value")


@pytest.mark.parametrize("kind", [YearMonthIntervalType(), ArrayType(YearMonthIntervalType())])
def test_a_type_that_python_has_not_is_refused_before_the_query(kind: DataType) -> None:
    with pytest.raises(UsageError, match=r"column n is .*interval.* cast it to a number"):
        encode.check_columns(StructType().add("n", kind), "arrow")
