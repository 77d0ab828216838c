"""Join a running UDP stream from its first message: replayed from the recording, then merged into live, once and in order.

python examples/13_replay_merge.py

`06_never_miss_a_message.py` does so for ever; a ReplayMerge does it once and then is out of the way.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from aeron_spark import Archive, ArchivingMediaDriver
from aeron_spark.archive import ReplayMerge

CONTROL = "127.0.0.1:20123"
STREAM_ID = 1001
EARLY, LATE = 5_000, 1_000


def main() -> None:
    """A publisher that was there before; a subscriber that comes late and misses nothing."""
    with tempfile.TemporaryDirectory() as folder:
        live = f"aeron:udp?control={CONTROL}|control-mode=dynamic|ssc=true|term-length=1m"
        with (
            ArchivingMediaDriver(Path(folder, "archive"), Path(folder, "aeron")) as servers,
            Archive(aeron_dir=servers.aeron_dir) as archive,
            archive.add_recorded_publication(live, STREAM_ID) as publication,
        ):
            recording_id = archive.wait_recording(CONTROL, STREAM_ID, publication.session_id)
            publication.offer_batch([b"%d" % number for number in range(EARLY)])

            # One subscription without a destination yet: the merge gives it the replay's, then the live one.
            session = f"session-id={publication.session_id}"
            with (
                archive.client.add_subscription(f"aeron:udp?control-mode=manual|{session}", STREAM_ID) as subscription,
                ReplayMerge(
                    archive,
                    subscription,
                    replay_channel=f"aeron:udp?{session}",
                    replay_destination="aeron:udp?endpoint=127.0.0.1:0",
                    live_destination=f"aeron:udp?endpoint=127.0.0.1:0|control={CONTROL}",
                    recording_id=recording_id,
                ) as merge,
            ):
                numbers: list[int] = []
                published, deadline = EARLY, time.monotonic() + 30
                while not merge.is_merged or len(numbers) < published:
                    batch = merge.poll_batch(timeout=0.1)
                    numbers += map(int, batch.column("value").to_pylist())
                    if len(numbers) == published and published < EARLY + LATE:
                        publication.offer_batch([b"%d" % number for number in range(published, published + 100)])
                        published += 100
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"{len(numbers)} of {published} messages came, state {merge.state.name}")
                print(f"merged: {merge.state.name}, the live stream alone is left")
            in_order = numbers == list(range(published))
            print(f"{len(numbers)} messages, {'none twice, none missing' if in_order else 'not those published'}")


if __name__ == "__main__":
    main()
