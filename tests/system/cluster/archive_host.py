"""The archive's machine: a recording of numbered messages, and a recorder of what the cluster publishes back.

archive_host.py ADDRESS MESSAGES; prints "ready" and runs until it is ended.
"""

from __future__ import annotations

import signal
import sys

from aeron_spark import Archive, ArchivingMediaDriver, SourceLocation

STREAM, BACK_STREAM = 1001, 2001
# This machine's own.
FOLDER, AERON_DIR = "/dev/shm/archive", "/dev/shm/aeron"  # noqa: S108


def main() -> None:
    address, messages = sys.argv[1], int(sys.argv[2])
    settings = {
        "aeron.threading.mode": "SHARED",
        "aeron.archive.threading.mode": "SHARED",
        "aeron.archive.segment.file.length": "1m",
        "aeron.archive.control.channel": f"aeron:udp?endpoint={address}:8010",
        "aeron.archive.control.channel.enabled": "true",
        "aeron.archive.replication.channel": f"aeron:udp?endpoint={address}:0",
    }
    with (
        ArchivingMediaDriver(FOLDER, AERON_DIR, settings=settings) as servers,
        Archive(aeron_dir=servers.aeron_dir) as archive,
    ):
        channel = "aeron:ipc?term-length=256k"
        archive.start_recording(channel, STREAM)
        with archive.client.add_exclusive_publication(channel, STREAM) as publication:
            publication.wait_connected(10)
            recording_id = archive.wait_recording("aeron:ipc", STREAM, publication.session_id)
            end = publication.offer_batch([b"%d" % number + bytes(200) for number in range(messages)], timeout=30)
            archive.wait_position(recording_id, end)
        archive.stop_recording(channel, STREAM)
        archive.start_recording(f"aeron:udp?endpoint={address}:8020", BACK_STREAM, source=SourceLocation.REMOTE)
        print("ready", flush=True)
        signal.sigwait({signal.SIGTERM})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    main()
