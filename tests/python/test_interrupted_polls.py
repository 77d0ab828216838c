"""Polls and reads that an exception interrupts, and what the next ones give: each row once, in memory that is nobody else's.

A signal's handler, thus Ctrl-C, raises between any two steps of Python; so do listeners, and allocations without memory.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from aeron_spark import Archive, ArchivingMediaDriver, Client, UsageError
from aeron_spark.archive import PersistentSubscription, ReplayMerge, StartPosition
from aeron_spark.archive.segments import Folder, SegmentReader
from aeron_spark.batch import ColumnBuffers
from aeron_spark.publication import Publication
from aeron_spark.subscription import Subscription
from tests.kit.ports import free_port
from tests.kit.wait import wait_until

CHANNEL = "aeron:ipc?term-length=64k"
STREAM = 1001
# Batches of these are full: their memory is handed out untrimmed.
ROWS = 64
BYTES = 64 * 60


def rows(tag: str) -> list[bytes]:
    return [f"{tag} {number:02}".encode().ljust(60, b".") for number in range(ROWS)]


def values(batch: pa.RecordBatch) -> list[bytes]:
    return batch["value"].to_pylist()  # type: ignore[no-any-return]


@pytest.fixture
def pair(client: Client) -> tuple[Publication, Subscription]:
    subscription = client.add_subscription(CHANNEL, STREAM)
    publication = client.add_exclusive_publication(CHANNEL, STREAM)
    publication.wait_connected(10)
    return publication, subscription


def interrupted(call: Callable[..., Any]) -> Callable[..., Any]:
    """That call, during which somebody presses Ctrl-C."""

    def pressed(*arguments: Any) -> Any:
        result = call(*arguments)
        signal.raise_signal(signal.SIGINT)
        return result

    return pressed


def until_interrupted(poll: Callable[[], pa.RecordBatch], got: list[bytes]) -> int:
    """Poll, where a poll may be interrupted; returns how many rows are there."""
    with suppress(KeyboardInterrupt):
        got += values(poll())
    return len(got)


def at_call(number: int, call: Callable[..., Any], error: type[BaseException]) -> Callable[..., Any]:
    """That call, behind which an error is raised once; they are counted from 0."""
    calls = itertools.count()

    def sometimes(*arguments: Any, **more: Any) -> Any:
        result = call(*arguments, **more)
        if next(calls) == number:
            raise error
        return result

    return sometimes


@pytest.mark.parametrize("failing", range(7))
def test_an_allocation_that_fails_leaves_earlier_batches_alone(
    pair: tuple[Publication, Subscription], monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    publication, subscription = pair
    publication.offer_batch(rows("first"), timeout=20)
    first = subscription.poll_batch(10, row_capacity=ROWS, byte_capacity=BYTES)
    monkeypatch.setattr(pa, "allocate_buffer", at_call(failing, pa.allocate_buffer, MemoryError))
    with pytest.raises(MemoryError):
        subscription.poll_batch(10, row_capacity=ROWS, byte_capacity=BYTES)
    publication.offer_batch(rows("second"), timeout=20)
    second = subscription.poll_batch(10, row_capacity=ROWS, byte_capacity=BYTES)
    assert (values(first), values(second)) == (rows("first"), rows("second"))


@pytest.mark.parametrize("column", range(6))
def test_a_batch_that_was_interrupted_comes_whole_and_the_next_fits(
    pair: tuple[Publication, Subscription], monkeypatch: pytest.MonkeyPatch, column: int
) -> None:
    publication, subscription = pair
    monkeypatch.setattr(ColumnBuffers, "_array", at_call(column, ColumnBuffers._array, KeyboardInterrupt))
    publication.offer(b"alone")  # its memory is trimmed
    with pytest.raises(KeyboardInterrupt):
        subscription.poll_batch(10)
    got: list[bytes] = []
    for number in range(20):
        publication.offer_batch(rows(f"{number}"), timeout=20)
        wait_until(lambda: until_interrupted(subscription.poll_batch, got) >= 1 + ROWS * (number + 1), 10, "rows")  # noqa: B023
    assert got == [b"alone", *(row for number in range(20) for row in rows(f"{number}"))]


def test_ctrl_c_while_it_polls_loses_no_row(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    subscription._poll_columns = interrupted(subscription._poll_columns)
    got: list[bytes] = []
    for number in range(5):
        publication.offer_batch(rows(f"{number}"), timeout=20)
        wait_until(lambda: until_interrupted(subscription.poll_batch, got) >= ROWS * (number + 1), 10, "rows")  # noqa: B023
    assert got == [row for number in range(5) for row in rows(f"{number}")]


def test_nothing_overtakes_rows_of_an_interrupted_poll(pair: tuple[Publication, Subscription]) -> None:
    publication, subscription = pair
    publication.offer_batch(rows("first"), timeout=20)
    poll_columns = subscription._poll_columns
    subscription._poll_columns = interrupted(poll_columns)
    with pytest.raises(KeyboardInterrupt):
        subscription.poll_batch(10, columns=["value"])
    subscription._poll_columns = poll_columns
    publication.offer_batch(rows("second"), timeout=20)
    for other in (
        lambda: subscription.poll(lambda *_: None),
        lambda: subscription.poll_batch(10, columns=["position"]),
        lambda: subscription.poll_batch(10, columns=["value"], row_capacity=5),
    ):
        with pytest.raises(UsageError, match=r"kept 64 rows.*columns=\['value'\], row_capacity=65536"):
            other()
    assert values(subscription.poll_batch(10, columns=["value"])) == rows("first")
    assert values(subscription.poll_batch(10)) == rows("second")


def test_rows_of_the_poll_in_which_a_listener_raises_come_next(servers: ArchivingMediaDriver) -> None:
    def joined() -> None:
        raise ValueError("of the application")

    with (
        Archive(aeron_dir=servers.aeron_dir) as archive,
        archive.add_recorded_publication(CHANNEL, STREAM) as publication,
        PersistentSubscription(
            archive.client,
            recording_id=archive.wait_recording("aeron:ipc", STREAM, publication.session_id),
            start_position=StartPosition.FROM_START,
            live_channel="aeron:ipc",
            live_stream_id=STREAM,
            replay_channel="aeron:ipc",
            replay_stream_id=2001,
            on_live_joined=joined,
        ) as stream,
    ):
        poll_columns = stream._poll_columns

        def joins(pointer: Any, columns: Any, wait_ns: int) -> int:
            result = poll_columns(pointer, columns, wait_ns)
            if columns.row_count:  # as C does when it joins the live stream and takes rows in one poll
                stream._listener.call("on_live_joined")
            return int(result)

        stream._poll_columns = joins
        publication.offer_batch(rows("recorded"), timeout=20)
        got: list[bytes] = []
        raised = 0

        def all_received() -> bool:
            nonlocal raised
            try:
                got.extend(values(stream.poll_batch()))
            except ValueError:
                raised += 1
            return len(got) >= ROWS

        wait_until(all_received, 20, "rows")
        assert got == rows("recorded")
        assert raised > 0


def test_rows_of_an_interrupted_merge_come_next(servers: ArchivingMediaDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    control = f"control=127.0.0.1:{free_port()}"
    publish_to = f"aeron:udp?{control}|control-mode=dynamic|term-length=64k|ssc=true"
    with (
        Archive(aeron_dir=servers.aeron_dir) as archive,
        archive.add_recorded_publication(publish_to, STREAM) as publication,
    ):
        recording_id = archive.wait_recording(control.split("=")[1], STREAM, publication.session_id)
        archive.wait_position(recording_id, publication.offer_batch(rows("recorded"), timeout=20))
        session = f"session-id={publication.session_id}"
        monkeypatch.setattr(archive._callbacks, "check", interrupted(archive._callbacks.check))
        with (
            archive.client.add_subscription(f"aeron:udp?control-mode=manual|{session}", STREAM) as subscription,
            ReplayMerge(
                archive,
                subscription,
                replay_channel=f"aeron:udp?{session}",
                replay_destination="aeron:udp?endpoint=127.0.0.1:0",
                live_destination=f"aeron:udp?endpoint=127.0.0.1:0|{control}",
                recording_id=recording_id,
            ) as merge,
        ):
            got: list[bytes] = []
            wait_until(lambda: until_interrupted(merge.poll_batch, got) >= ROWS, 20, "rows")
            assert got == rows("recorded")
        monkeypatch.undo()


def test_rows_of_an_interrupted_read_come_next(servers: ArchivingMediaDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        Archive(aeron_dir=servers.aeron_dir) as archive,
        archive.add_recorded_publication(CHANNEL, STREAM) as publication,
    ):
        recording_id = archive.wait_recording("aeron:ipc", STREAM, publication.session_id)
        end = publication.offer_batch(rows("recorded"), timeout=20)
        archive.wait_position(recording_id, end)
        with (
            Folder(servers.archive_dir) as folder,
            SegmentReader(folder, recording_id, 0, end, limit=end, row_capacity=5) as reader,
        ):
            monkeypatch.setattr(reader, "_on_doubt", print)
            fill = reader._columns.fill
            monkeypatch.setattr(reader._columns, "fill", lambda call: fill(interrupted(call)))
            got: list[bytes] = []

            def all_read() -> bool:
                try:
                    batch = reader.next_batch()
                except KeyboardInterrupt:
                    return False
                got.extend([] if batch is None else values(batch))
                return len(got) >= ROWS

            wait_until(all_read, 20, "rows")
            assert got == rows("recorded")
