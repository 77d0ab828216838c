"""What `elsewhere.py` runs on other platforms, with the installed package alone: prints digests as JSON.

python there.py GOLDEN_FOLDER, where the captured archives are, unpacked: a digest of what is read of each. Then, by driver and
archive as processes: one of a stream that is published, recorded and replayed.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from aeron_spark import Archive, ArchivingMediaDriver, Client, Folder

CHANNEL, STREAM_ID, MESSAGES = "aeron:ipc?term-length=64k", 1001, 20_000
SETTINGS = {
    "aeron.threading.mode": "SHARED",
    "aeron.archive.threading.mode": "SHARED",
    "aeron.archive.segment.file.length": "128k",
    "aeron.archive.record.checksum": "CRC-32C",
    "aeron.archive.replay.checksum": "CRC-32C",
}


def digest(batches: Iterable[pa.RecordBatch]) -> str:
    """Of the values and positions, in order."""
    rows = hashlib.sha256()
    for batch in batches:
        for row in batch.select(["position", "value"]).to_pylist():
            rows.update(row["position"].to_bytes(8, "little") + row["value"])
    return rows.hexdigest()


def captured(folder: Path) -> dict[str, str]:
    """Digests of all recordings of all archives below a folder."""
    found = {}
    for catalog in sorted(folder.rglob("archive.catalog")):
        with Folder(catalog.parent) as opened:
            for recording in opened.recordings():
                name = f"{catalog.parent.relative_to(folder)}/{recording.recording_id}"
                found[name] = digest(opened.read(recording.recording_id, columns=["position", "value"]))
    return found


def streamed(folder: Path) -> str:
    """Digest of what comes back of messages of many lengths, which wrap terms and segments."""
    messages = [index.to_bytes(4, "little") * (index % 97) for index in range(MESSAGES)]
    with (
        tempfile.TemporaryDirectory(prefix="aeron-spark-there-", dir="/dev/shm") as aeron_dir,
        ArchivingMediaDriver(folder, Path(aeron_dir) / "driver", settings=SETTINGS, embedded=False),
        Client(Path(aeron_dir) / "driver") as client,
        Archive(client) as archive,
    ):
        archive.start_recording(CHANNEL, STREAM_ID)
        with client.add_exclusive_publication(CHANNEL, STREAM_ID) as publication:
            publication.wait_connected(60.0)
            recording_id = archive.wait_recording("aeron:ipc", STREAM_ID, publication.session_id)
            archive.wait_position(recording_id, publication.offer_batch(messages, timeout=120.0), timeout=120.0)
        archive.stop_recording(CHANNEL, STREAM_ID)
        with archive.replay(recording_id, CHANNEL, STREAM_ID + 1) as replay:
            replayed = digest(replay.batches(timeout=120.0, columns=["position", "value"]))
        with Folder(folder) as opened:
            read = digest(opened.read(recording_id, columns=["position", "value"]))
    if read != replayed:
        raise SystemExit(f"the replay gave {replayed}, the folder {read}")
    return replayed


def main() -> None:
    """Print all digests."""
    with tempfile.TemporaryDirectory(prefix="aeron-spark-there-") as folder:
        digests = {**captured(Path(sys.argv[1])), "streamed": streamed(Path(folder) / "archive")}
    print(json.dumps({"machine": platform.machine(), "digests": digests}))


if __name__ == "__main__":
    main()
