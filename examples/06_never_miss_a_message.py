"""A stream that is never missed: from the recording's start, then live, and through a time in which the reader was too slow.

python examples/06_never_miss_a_message.py
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pyarrow as pa

from aeron_spark import Archive, ArchivingMediaDriver
from aeron_spark.archive import PersistentSubscription, StartPosition

CHANNEL = "aeron:ipc?term-length=64k"
STREAM_ID = 1001
# A reader that is behind by more than the window for this long is given up by the driver, and the publisher goes on.
SETTINGS = {
    "aeron.untethered.window.limit.timeout": "200ms",
    "aeron.untethered.resting.timeout": "200ms",
    "aeron.timer.interval": "50ms",
}


def main() -> None:
    """Record, join, fall behind, catch up."""
    with tempfile.TemporaryDirectory() as folder:
        archive_dir, aeron_dir = Path(folder) / "archive", Path(folder) / "aeron"
        with (
            ArchivingMediaDriver(archive_dir, aeron_dir, settings=SETTINGS) as servers,
            Archive(aeron_dir=servers.aeron_dir) as archive,
            archive.add_recorded_publication(CHANNEL, STREAM_ID) as publication,
        ):
            recording_id = archive.wait_recording("aeron:ipc", STREAM_ID, publication.session_id)
            publication.offer_batch([f"early-{number}" for number in range(1_000)])
            with PersistentSubscription(
                archive.client,
                recording_id=recording_id,
                start_position=StartPosition.FROM_START,
                live_channel="aeron:ipc?tether=false",
                live_stream_id=STREAM_ID,
                replay_channel="aeron:ipc",
                replay_stream_id=2001,
                on_live_joined=lambda: print("live"),
                on_live_left=lambda: print("left behind: what is missing comes from the recording"),
            ) as stream:
                read = wait_for(stream, 1_000)
                publication.offer_batch([f"much-{number}" for number in range(20_000)])
                read += wait_for(stream, 20_000)
            print(f"read {read} messages up to position {publication.position:,}")


def wait_for(stream: PersistentSubscription, count: int) -> int:
    """Read until so many messages have come and the stream is live."""
    read, deadline = 0, time.monotonic() + 30
    while read < count or not stream.is_live:
        batch: pa.RecordBatch = stream.poll_batch(timeout=0.1)
        read += batch.num_rows
        if time.monotonic() > deadline:
            raise TimeoutError(f"{read} of {count} messages came, state {stream.state.name}")
    return read


if __name__ == "__main__":
    main()
