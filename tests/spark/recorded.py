"""A driver, an archive and recordings of ours for Spark tests, by the product's own Python API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from aeron_spark.archive import client as archive_client
from aeron_spark.archive.server import ArchivingMediaDriver
from aeron_spark.client import Client
from aeron_spark.publication import ExclusivePublication
from tests.kit.payload import RESERVED_FACTOR, payloads
from tests.kit.wait import wait_until

TERM_LENGTH = 64 * 1024
CHANNEL = f"aeron:ipc?term-length={TERM_LENGTH // 1024}k"


@dataclass
class Archive:
    """What a test works with; everything is closed at the end of the `with` block."""

    aeron_dir: Path
    archive_dir: Path
    client: Client
    control: archive_client.Archive

    def record(self, stream_id: int, channel: str = CHANNEL) -> ExclusivePublication:
        """A publication that is being recorded; close it to end the recording."""
        publication = self.client.add_exclusive_publication(channel, stream_id)
        self.control.start_recording(channel, stream_id)
        publication.wait_connected(10)
        # The archive may not have made the recording yet.
        self.control.wait_recording("", stream_id, publication.session_id, timeout=10)
        return publication

    def recording_id(self, stream_id: int) -> int:
        """Newest recording of a stream."""
        return self.control.recordings(channel_fragment="aeron:", stream_id=stream_id)[-1].recording_id

    def wait_recorded(self, stream_id: int, position: int) -> None:
        """Waits until the recording of a stream has reached a position."""
        self.control.wait_position(self.recording_id(stream_id), position, timeout=20)

    def stop(self, publication: ExclusivePublication, stream_id: int, channel: str = CHANNEL) -> int:
        """Ends a recording behind the published data; returns its id."""
        self.wait_recorded(stream_id, publication.position)
        recording_id = self.recording_id(stream_id)
        publication.close()
        self.control.stop_recording(channel, stream_id)
        wait_until(lambda: self.control.stop_position(recording_id) is not None, 10, "the recording to stop")
        return recording_id

    def recorded(self, stream_id: int, count: int, sizes: Sequence[int]) -> int:
        """A stopped recording of `count` messages of the payload rule."""
        publication = self.record(stream_id)
        publish(publication, stream_id, count, sizes)
        return self.stop(publication, stream_id)


def publish(
    publication: ExclusivePublication, stream_id: int, count: int, sizes: Sequence[int], *, first: int = 0
) -> None:
    """Messages first .. first + count - 1 of the payload rule."""
    bodies = pa.array(payloads(stream_id, count, sizes, first=first), type=pa.binary())
    reserved = pa.array([index * RESERVED_FACTOR for index in range(first, first + count)], type=pa.int64())
    publication.offer_batch(bodies, reserved_values=reserved, timeout=20)


@contextmanager
def archive(aeron_dir: Path, archive_dir: Path, settings: dict[str, str] | None = None) -> Iterator[Archive]:
    """Driver and archive in a child process each, and a client on them; an error of the body tells if the archive is dead."""
    chosen = {
        "aeron.threading.mode": "SHARED",
        "aeron.archive.threading.mode": "SHARED",
        "aeron.archive.segment.file.length": "128k",
        "aeron.dir.delete.on.shutdown": "true",
        **(settings or {}),
    }
    with (
        ArchivingMediaDriver(archive_dir, aeron_dir, settings=chosen, embedded=False) as server,
        Client(aeron_dir) as client,
        archive_client.Archive(client) as control,
    ):
        try:
            yield Archive(aeron_dir, archive_dir, client, control)
        except BaseException as error:
            if server.archive.failure is not None:
                error.add_note(f"the archive had ended: {server.archive.failure}")
            raise
