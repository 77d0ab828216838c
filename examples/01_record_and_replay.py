"""Record a stream, then get it back in two ways: replayed by the archive, and read from the recording's files.

python examples/01_record_and_replay.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa

from aeron_spark import Archive, ArchivingMediaDriver, ChannelUri, Folder, ReplayLength

CHANNEL = ChannelUri.ipc(term_length="1m", alias="prices")
STREAM_ID = 1001


def main() -> None:
    """Servers, recording, replay, files."""
    prices = pa.array([f"ticker-{number % 10},{100 + number % 7}" for number in range(50_000)])
    with tempfile.TemporaryDirectory() as folder:
        archive_dir, aeron_dir = Path(folder) / "archive", Path(folder) / "aeron"
        with ArchivingMediaDriver(archive_dir, aeron_dir) as servers, Archive(aeron_dir=servers.aeron_dir) as archive:
            archive.start_recording(CHANNEL, STREAM_ID)
            with archive.client.add_exclusive_publication(CHANNEL, STREAM_ID) as publication:
                publication.wait_connected(10)
                recording_id = archive.wait_recording("alias=prices", STREAM_ID, publication.session_id)
                end = publication.offer_batch(prices, reserved_values=range(len(prices)))
                archive.wait_position(recording_id, end)
            print(f"recorded {len(prices)} messages, {end} bytes of stream, as recording {recording_id}")

            with archive.replay(recording_id, length=ReplayLength.CURRENT_END) as replay:
                print("replayed:", sum(batch.num_rows for batch in replay.batches()), "messages")

        with Folder(archive_dir) as recordings:
            middle = recordings.align(recording_id, end // 2, end)
            rows = sum(batch.num_rows for batch in recordings.read(recording_id, start=middle))
            print(f"read from position {middle} on: {rows} messages")


if __name__ == "__main__":
    main()
