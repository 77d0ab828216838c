"""Reading an archive by replays: readers disturb neither each other nor the stream, and the archive records no replay.

Method: a stream is published and recorded while replays of it are read, in turns, by one driver.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.remote import RemoteArchive
from aeron_spark.testing import Servers
from tests.kit.ports import free_port

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
