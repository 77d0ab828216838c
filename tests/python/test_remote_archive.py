"""Reading an archive by replays: readers disturb neither each other nor the stream, and the archive records no replay.

Method: a stream is published and recorded while replays of it are read, in turns, by one driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest

from aeron_spark import Archive, Client, ClosedError
from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.remote import RemoteArchive
from aeron_spark.archive.replay import ReplayLength
from aeron_spark.testing import RecordedFolder, Servers
from tests.kit import native
from tests.kit.ports import free_port
from tests.kit.wait import wait_until

CHANNEL, STREAM_ID, COUNT = "aeron:ipc?term-length=64k", 1001, 300
COLUMNS = ("recording_id", "stream_id", "session_id", "position", "value")


@pytest.mark.parametrize(
    "replays", ["aeron:ipc", "aeron:udp?endpoint=127.0.0.1:{port}", "aeron:udp?endpoint=127.0.0.1:0"]
)
def test_readers_hold_up_nobody(aeron_servers: Servers, replays: str) -> None:
    archive = aeron_servers.archive
    archive.start_recording(CHANNEL, STREAM_ID)
    with archive.client.add_exclusive_publication(CHANNEL, STREAM_ID) as publication:
        publication.wait_connected(20)
        recording_id = archive.wait_recording(CHANNEL, STREAM_ID, publication.session_id)
        messages = [number.to_bytes(2, "big") * 500 for number in range(COUNT)]
        publication.offer_batch(messages, timeout=20)
        archive.wait_position(recording_id, publication.position)
        (recording,) = archive.recordings()
        with RemoteArchive(archive, replays.format(port=free_port())) as remote:
            readers = [remote.read(recording_id, columns=COLUMNS, row_capacity=20) for _ in range(2)]
            taken: list[list[pa.RecordBatch]] = [[next(iter(reader))] for reader in readers]
            # More than the windows of both replays and of the stream hold.
            publication.offer_batch(messages, timeout=20)
            for _ in _turns(readers, taken):
                pass
        publication.offer_batch(messages[:1], timeout=20)
        archive.wait_position(recording_id, publication.position)
        assert [one.recording_id for one in archive.recordings()] == [recording_id]
    for batches in taken:
        check(pa.Table.from_batches(batches), recording, messages)


@pytest.mark.parametrize("by", ["replay", "source"])
def test_the_death_of_the_own_driver_is_no_end_of_a_replay(aeron_dir: Path, archive_dir: Path, by: str) -> None:
    with (
        native.driver(aeron_dir) as driver,
        native.archive(aeron_dir, archive_dir),
        Client(aeron_dir, keepalive_interval=0.05, on_error=lambda _: None) as client,
        Archive(client=client) as archive,
    ):
        archive.start_recording(CHANNEL, STREAM_ID)
        publication = client.add_exclusive_publication(CHANNEL, STREAM_ID)
        recording_id = archive.wait_recording(CHANNEL, STREAM_ID, publication.session_id)
        archive.wait_position(recording_id, publication.offer_batch([b"x" * 1000] * COUNT, timeout=20))
        with ExitStack() as opened, ThreadPoolExecutor() as pool:
            if by == "replay":
                replay = opened.enter_context(archive.replay(recording_id, length=ReplayLength.FOLLOW))
                batches, count = replay.batches(20), COUNT
            else:
                remote = opened.enter_context(RemoteArchive(archive, "aeron:ipc"))
                batches, count = remote.read(recording_id, row_capacity=20), 20
            while count > 0:
                count -= next(batches).num_rows
            taken = pool.submit(list, batches) if by == "replay" else None  # it waits for more
            driver.stop()
            wait_until(lambda: client.is_closed, 20, "the client to notice")
            with pytest.raises(ClosedError, match="the media driver has been shut down"):
                taken.result(20) if taken else list(batches)


def _turns(readers: list[Iterator[pa.RecordBatch]], taken: list[list[pa.RecordBatch]]) -> Iterator[None]:
    """A batch of each in turn, until all have ended."""
    going = list(zip(readers, taken, strict=True))
    while going:
        for reader, batches in list(going):
            batch = next(reader, None)
            if batch is None:
                going.remove((reader, batches))
            else:
                batches.append(batch)
        yield


def check(rows: pa.Table, recording: Recording, messages: list[bytes]) -> None:
    assert rows["value"].to_pylist() == messages
    for name in ("recording_id", "stream_id", "session_id"):
        assert rows[name].unique().to_pylist() == [getattr(recording, name)]


def test_an_empty_range_needs_no_replay(aeron_servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive has few of them, and refuses those of no length."""
    written = RecordedFolder(aeron_servers).write([b"a", b"b"])
    with RemoteArchive(aeron_servers.archive, "aeron:ipc") as remote:
        extent = remote.extent(written.recording_id)
        monkeypatch.setattr(Archive, "start_replay", None)
        for position in (extent.start_position, extent.limit_position):
            assert remote.read(written.recording_id, position, position).read_all().num_rows == 0
