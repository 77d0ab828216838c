"""Scans of what grows: recordings that are followed, images and subscriptions as tables, and how each of them ends.

Method: a thread takes the rows while a publication goes on or stops, or a recording is purged; they are compared with what
was sent.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from aeron_spark import Archive, Client, ClosedError, DataLossError, ExclusivePublication, MediaDriver, UsageError
from aeron_spark.tables import Scan, scan
from aeron_spark.testing import Servers, wait_until
from tests.kit.market import SCHEMA, START_NS, quote
from tests.python.conftest import SETTINGS


class Taker(threading.Thread):
    """Takes the batches of a pass in a thread."""

    def __init__(self, table: Scan) -> None:
        super().__init__(daemon=True)
        self.batches = table.batches()
        self.taken: list[pa.RecordBatch] = []
        self.failure: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            for batch in self.batches:
                self.taken.append(batch)
        except BaseException as failure:  # noqa: BLE001 - for the test to see
            self.failure = failure

    @property
    def values(self) -> list[bytes]:
        return [value for batch in list(self.taken) for value in batch.column("value").to_pylist()]

    def ended(self) -> None:
        self.join(20)
        assert not self.is_alive()
        assert self.failure is None


def test_a_growing_recording_is_followed_until_it_stops(aeron_servers: Servers) -> None:
    archive = aeron_servers.archive
    with archive.add_recorded_exclusive_publication("aeron:ipc?term-length=64k", 5) as publication:
        recording_id = archive.wait_recording("", 5, publication.session_id)
        messages = [bytes([number % 256]) * (1 + number * 37 % 6000) for number in range(400)]
        publication.offer_batch(messages[:100])
        taker = Taker(scan(aeron_servers.archive_dir, recording_id, follow=True, batch_rows=50, batch_seconds=0.01))
        wait_until(lambda: len(taker.values) == 100, 20, "what was there")
        publication.offer_batch(messages[100:])
        wait_until(lambda: len(taker.values) == 400, 20, "what came later")
        assert taker.is_alive()
    taker.ended()
    assert taker.values == messages
    assert max(batch.num_rows for batch in taker.taken) <= 50


def test_recordings_that_begin_later_are_followed_too(aeron_servers: Servers) -> None:
    archive, channel = aeron_servers.archive, "aeron:ipc?term-length=64k"
    with archive.add_recorded_exclusive_publication(channel, 5) as first:
        archive.wait_recording("", 5, first.session_id)
        first.offer_batch([b"a"])
        taker = Taker(scan(aeron_servers.archive_dir, follow=True, filter="stream_id in (5, 6)", batch_seconds=0.01))
        wait_until(lambda: taker.values == [b"a"], 20, "the first")
        with (
            archive.add_recorded_exclusive_publication(channel, 6) as second,
            archive.add_recorded_exclusive_publication(channel, 7) as other,
        ):
            other.offer_batch([b"not asked for"])
            second.offer_batch([b"b", b"c"])
            wait_until(lambda: len(taker.values) == 3, 20, "the second")
        first.offer_batch([b"d"])
        wait_until(lambda: len(taker.values) == 4, 20, "the first again")
    taker.ended()
    assert taker.values == [b"a", b"b", b"c", b"d"]


def test_an_image_is_a_table_until_it_ends(aeron_servers: Servers) -> None:
    with (
        Client(aeron_servers.aeron_dir) as client,
        client.add_subscription("aeron:ipc", 9) as subscription,
        client.add_exclusive_publication("aeron:ipc", 9) as publication,
    ):
        with subscription.wait_image(20) as image:
            publication.offer_batch([b"x"] * 100)
            taker = Taker(scan(image, follow=True, filter="value = x", batch_rows=30, batch_seconds=0.01))
            wait_until(lambda: len(taker.values) == 100, 20, "what was published")
            publication.close()
            taker.ended()
        assert max(batch.num_rows for batch in taker.taken) <= 30


@pytest.mark.parametrize("closed", ["publication", "subscription"])
def test_what_was_taken_from_an_image_is_given_though_it_ends(aeron_servers: Servers, closed: str) -> None:
    with (
        Client(aeron_servers.aeron_dir) as client,
        client.add_subscription("aeron:ipc", 9) as subscription,
        client.add_exclusive_publication("aeron:ipc", 9) as publication,
        subscription.wait_image(20) as image,
    ):
        taker = Taker(scan(image, batch_seconds=30.0))
        publication.offer_batch([b"x"] * 100)
        wait_until(lambda: image.position == publication.position, 20, "the messages to be taken")
        {"publication": publication, "subscription": subscription}[closed].close()
        taker.ended()
        assert taker.values == [b"x"] * 100


def test_an_image_whose_client_lost_its_driver_has_not_ended(aeron_dir: Path) -> None:
    driver = MediaDriver(aeron_dir, settings=SETTINGS)
    with (
        Client(aeron_dir, keepalive_interval=0.05, on_error=lambda _: None) as client,
        client.add_subscription("aeron:ipc", 9) as subscription,
        client.add_exclusive_publication("aeron:ipc", 9) as publication,
        subscription.wait_image(20) as image,
    ):
        taker = Taker(scan(image, batch_seconds=0.01))
        publication.offer_batch([b"x"] * 100)
        wait_until(lambda: len(taker.values) == 100, 20, "what was published")
        driver.close()
        taker.join(20)
        assert isinstance(taker.failure, ClosedError)
        assert "the media driver has been shut down" in str(taker.failure)


@pytest.mark.parametrize("into", [0, 32])
def test_following_ends_at_a_position_behind_padding(aeron_servers: Servers, into: int) -> None:
    archive = aeron_servers.archive
    with archive.add_recorded_exclusive_publication("aeron:ipc?term-length=64k", 5) as publication:
        recording_id = archive.wait_recording("", 5, publication.session_id)
        publication.offer_batch([bytes(5000)] * 20)
        archive.wait_position(recording_id, publication.position)
        rows = scan(aeron_servers.archive_dir, recording_id).to_table(columns=["next_position"])
        reached = rows["next_position"].to_pylist()[11]
        end = reached + into if into else 1 << 16
        assert reached < end <= 1 << 16
        taker = Taker(scan(aeron_servers.archive_dir, recording_id, follow=True, end=end, batch_seconds=0.01))
        taker.ended()
        assert len(taker.values) == 12


def test_following_goes_on_though_all_that_was_read_is_purged() -> None:
    with Servers(settings={"aeron.archive.segment.file.length": "64k"}) as servers:
        archive = servers.archive
        with archive.add_recorded_exclusive_publication("aeron:ipc?term-length=64k", 5) as publication:
            recording_id = archive.wait_recording("", 5, publication.session_id)
            publication.offer_batch([bytes(5000)] * 13)
            archive.wait_position(recording_id, publication.position)
            taker = Taker(scan(servers.archive_dir, recording_id, follow=True, end=1 << 17, batch_seconds=0.01))
            wait_until(lambda: len(taker.values) == 13, 20, "a term and a message")
            archive.purge_segments(recording_id, 1 << 16)
            publication.offer_batch([bytes(5000)] * 12)
            taker.ended()
            assert len(taker.values) == 24


def test_following_ends_when_it_is_closed(aeron_servers: Servers) -> None:
    archive = aeron_servers.archive
    with archive.add_recorded_exclusive_publication("aeron:ipc?term-length=64k", 5) as publication:
        recording_id = archive.wait_recording("", 5, publication.session_id)
        end = publication.offer_batch([b"a", b"b", b"c"])
        taker = Taker(scan(aeron_servers.archive_dir, recording_id, follow=True))
        wait_until(lambda: len(taker.values) == 3, 20, "three messages")
        taker.batches.close()
        taker.ended()
        part = scan(aeron_servers.archive_dir, recording_id, follow=True, end=end)
        assert part.to_table()["value"].to_pylist() == [b"a", b"b", b"c"]  # ends at a position, too


@pytest.mark.parametrize("follow", [False, True])
def test_a_recording_that_is_purged_while_it_is_read_is_data_loss(follow: bool) -> None:
    with Servers(settings={"aeron.archive.segment.file.length": "64k"}) as servers:
        archive = servers.archive
        with archive.add_recorded_exclusive_publication("aeron:ipc?term-length=64k", 5) as publication:
            recording_id = archive.wait_recording("", 5, publication.session_id)
            publication.offer_batch([bytes(8000)] * 40, timeout=20)
            archive.wait_position(recording_id, publication.position)
            options: dict[str, Any] = {"follow": follow, "batch_rows": 1, "threads": 1}
            batches = scan(servers.archive_dir, recording_id, **options).batches()
            assert next(batches).num_rows == 1
            archive.purge_segments(recording_id, 3 << 16)
            name = f"{recording_id}-65536.rec"
            wait_until(lambda: not (servers.archive_dir / name).exists(), 20, "the segment to go")
            with pytest.raises(DataLossError, match="purged"):
                list(batches)
            after = scan(servers.archive_dir, recording_id, threads=1)
            assert 0 < after.count_rows() < 40


SINCE = 1_000_000_000 * 10**9  # 2001


@pytest.mark.parametrize(("by", "interval"), [("filter", "500ms"), ("column", "500ms"), ("filter", "2500ms")])
def test_who_follows_waits_for_the_times_of_the_index(by: str, interval: str) -> None:
    """Its entries come up to an interval after the messages."""
    settings = {"aeron.spark.archive.time.index.interval": interval}
    with Servers(settings=settings) as servers:
        archive = servers.archive
        with archive.add_recorded_exclusive_publication("aeron:ipc?term-length=64k", 5) as publication:
            archive.wait_recording("", 5, publication.session_id)
            table = scan(servers.archive_dir, follow=True, columns=["timestamp", "value"], batch_seconds=0.01)
            of_time = pc.field("timestamp") >= pa.scalar(SINCE, pa.timestamp("ns", "UTC"))
            taker = Taker(table.filter(of_time) if by == "filter" else table)
            for count in (1, 2, 3):
                publication.offer_batch([b"%d" % count])
                wait_until(lambda count=count: len(taker.values) == count, 20, "the message")  # type: ignore[misc]
            publication.offer_batch([b"4"])
        taker.ended()
        assert taker.values == [b"1", b"2", b"3", b"4"]
        assert sum(batch.column("timestamp").null_count for batch in taker.taken) == 0


def test_who_follows_does_not_wait_for_an_index_that_is_not_written() -> None:
    with Servers(settings={"aeron.spark.archive.time.index": "false"}) as servers:
        archive = servers.archive
        with archive.add_recorded_exclusive_publication("aeron:ipc?term-length=64k", 5) as publication:
            archive.wait_recording("", 5, publication.session_id)
            table = scan(servers.archive_dir, follow=True, columns=["timestamp", "value"], batch_seconds=0.01)
            taker = Taker(table)
            for count in (1, 2):
                publication.offer_batch([b"a"])
                wait_until(lambda count=count: len(taker.values) == count, 20, "the message")  # type: ignore[misc]
            assert taker.taken[0].column("timestamp").null_count == 1
        taker.ended()


def extended(archive: Archive, recording_id: int, stream: int) -> ExclusivePublication:
    """A publication that the recording continues with."""
    recording = archive.recording(recording_id)
    assert recording is not None
    assert recording.stop_position is not None
    at = f"init-term-id={recording.initial_term_id}|term-id={recording.initial_term_id}|term-offset={recording.stop_position}"
    publication = archive.client.add_exclusive_publication(f"aeron:ipc?term-length=64k|{at}", stream)
    archive.extend_recording(recording_id, "aeron:ipc", stream)
    publication.wait_connected(10)
    return publication


@pytest.mark.parametrize("count", [4, 10, 30])
def test_a_recording_that_is_truncated_and_extended_while_it_is_followed_is_data_loss(
    aeron_servers: Servers, count: int
) -> None:
    """To less than was read, as much, and more; beside another recording."""
    archive, channel = aeron_servers.archive, "aeron:ipc?term-length=64k"
    with archive.add_recorded_exclusive_publication(channel, 8) as other:
        archive.wait_recording("", 8, other.session_id)
        with archive.add_recorded_exclusive_publication(channel, 7) as publication:
            recording_id = archive.wait_recording("", 7, publication.session_id)
            archive.wait_position(recording_id, publication.offer_batch([b"old %d" % number for number in range(10)]))
            batches = scan(aeron_servers.archive_dir, follow=True, batch_seconds=0.01).batches()
            assert next(batches).num_rows == 10
        wait_until(lambda: archive.stop_position(recording_id) is not None, 20, "the recording to stop")
        archive.truncate_recording(recording_id, 64)
        with extended(archive, recording_id, 7) as publication:
            archive.wait_position(
                recording_id, publication.offer_batch([b"new %d" % number for number in range(count - 1)])
            )
        wait_until(lambda: archive.stop_position(recording_id) is not None, 20, "the recording to stop")
    with pytest.raises(DataLossError, match="truncated while it was followed"):
        list(batches)


def test_a_recording_that_was_read_to_its_end_goes_while_another_is_read(aeron_servers: Servers) -> None:
    archive, channel = aeron_servers.archive, "aeron:ipc?term-length=64k"
    with archive.add_recorded_exclusive_publication(channel, 5) as keep:
        keep_id = archive.wait_recording("", 5, keep.session_id)
        archive.wait_position(keep_id, keep.offer_batch([b"a"]))
        with archive.add_recorded_exclusive_publication(channel, 6) as publication:
            recording_id = archive.wait_recording("", 6, publication.session_id)
            archive.wait_position(recording_id, publication.offer_batch([b"b"]))
        wait_until(lambda: archive.stop_position(recording_id) is not None, 20, "the recording to stop")
        batches = scan(aeron_servers.archive_dir, follow=True, batch_seconds=0.01).batches()
        assert [next(batches)["value"].to_pylist() for _ in range(2)] == [[b"a"], [b"b"]]
        archive.wait_position(keep_id, keep.offer_batch([b"c"]))
        assert next(batches)["value"].to_pylist() == [b"c"]
        archive.purge_recording(recording_id)
    assert list(batches) == []


def test_a_recording_that_goes_before_all_of_it_was_read_is_data_loss(aeron_servers: Servers) -> None:
    """One that was read to its end may go, as with retention."""
    archive, channel = aeron_servers.archive, "aeron:ipc?term-length=64k"
    publication = archive.add_recorded_exclusive_publication(channel, 6)
    recording_id = archive.wait_recording("", 6, publication.session_id)
    archive.wait_position(recording_id, publication.offer_batch([b"a"]))
    with archive.add_recorded_exclusive_publication(channel, 5) as keep:
        keep_id = archive.wait_recording("", 5, keep.session_id)
        part = scan(aeron_servers.archive_dir, follow=True, columns=["value"], batch_seconds=0.01).batches()
        assert next(part)["value"].to_pylist() == [b"a"]
        archive.wait_position(recording_id, publication.offer_batch([b"never read"]))
        publication.close()
        wait_until(lambda: archive.stop_position(recording_id) is not None, 20, "the recording to stop")
        whole = scan(aeron_servers.archive_dir, follow=True, columns=["value"], batch_seconds=0.01).batches()
        assert next(whole).num_rows == 2
        archive.wait_position(keep_id, keep.offer_batch([b"kept"]))
        assert next(whole)["value"].to_pylist() == [b"kept"]
        archive.purge_recording(recording_id)
    with pytest.raises(DataLossError, match=f"recording {recording_id} was read up to position 64, .* purged"):
        list(part)
    assert list(whole) == []


def test_a_subscription_is_a_table(aeron_servers: Servers) -> None:
    with (
        Client(aeron_servers.aeron_dir) as client,
        client.add_subscription("aeron:ipc", 9) as subscription,
        client.add_exclusive_publication("aeron:ipc", 9) as publication,
    ):
        publication.wait_connected(10)
        taker = Taker(
            scan(subscription, sbe=SCHEMA, timestamp="reserved(ns)", batch_rows=64, batch_seconds=0.05).select(
                ["position", "timestamp", "Quote", "value"]
            )
        )
        publication.offer_batch([quote(number) for number in range(200)], reserved_values=[START_NS] * 200)
        wait_until(lambda: len(taker.values) == 200, 20, "the quotes")
        assert max(batch.num_rows for batch in taker.taken) <= 64
        assert taker.taken[0].column("Quote")[0].as_py()["price"] == 100
        assert taker.taken[0].column("timestamp")[0].value == START_NS
        publication.close()
        taker.ended()
        with pytest.raises(UsageError, match="live stream"):
            scan(subscription, last=3)
        with pytest.raises(UsageError, match="only an archive's folder has a time index"):
            scan(subscription, columns=["timestamp"])
        assert scan(subscription).ranges() == []
        following = Taker(scan(subscription, follow=True))
        following.batches.close()
        following.ended()
