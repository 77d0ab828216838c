"""What the crash tests share: settings that notice a death soon, a publisher of numbered messages, an auditor of a folder."""

from __future__ import annotations

import struct
import threading
from pathlib import Path

import pyarrow as pa

from aeron_spark import AeronError, ChannelUri, Folder, Publication, Recording
from tests.kit.payload import RESERVED_FACTOR, payload

TERM_LENGTH = 64 * 1024
SEGMENT_LENGTH = 128 * 1024
CHANNEL = ChannelUri.ipc(term_length=TERM_LENGTH)
STREAM = 1001
# Empty ones, single frames, and messages of up to six fragments.
SIZES = [0, 8, 100, 1376, 1377, 7000]
# The dead are noticed a little sooner than after ten seconds, and the pause of a busy machine does not pass for a death.
SETTINGS = {
    "aeron.threading.mode": "SHARED",
    "aeron.archive.threading.mode": "SHARED",
    "aeron.archive.segment.file.length": SEGMENT_LENGTH,
    "aeron.driver.timeout": 8000,
    "aeron.timer.interval": "100ms",
    "aeron.client.liveness.timeout": "5s",
    "aeron.publication.unblock.timeout": "8s",
    "aeron.untethered.window.limit.timeout": "1s",
    "aeron.untethered.resting.timeout": "1s",
}


def message(index: int) -> bytes:
    """Message of that number."""
    return payload(STREAM, index, SIZES[index % len(SIZES)])


class Publisher(threading.Thread):
    """Publishes messages first, first + 1, ... as fast as its subscribers take them, until it is stopped or fails."""

    def __init__(self, publication: Publication, first: int = 0) -> None:
        super().__init__(daemon=True)
        self._publication = publication
        self._next = first
        self._ending = threading.Event()
        self.failure: AeronError | None = None

    def run(self) -> None:
        """A batch at a time."""
        while not self._ending.is_set():
            numbers = range(self._next, self._next + 50)
            bodies = pa.array([message(number) for number in numbers], type=pa.binary())
            reserved = [number * RESERVED_FACTOR for number in numbers]
            try:
                self._publication.offer_batch(bodies, reserved_values=reserved, timeout=20)
            except AeronError as failure:
                self.failure = failure
                return
            self._next = numbers.stop

    def pause(self) -> int:
        """Publish no more, and leave the publication open; returns its position."""
        self._ending.set()
        self.join()
        return self._publication.position

    def end(self) -> None:
        """Close the publication, which ends a batch without a reader."""
        self._ending.set()
        self._publication.close()
        self.join()


def channel_to_extend(recording: Recording, position: int) -> ChannelUri:
    """A publication on this channel begins where the recording ended."""
    return CHANNEL.with_params(
        init_term_id=recording.initial_term_id,
        term_id=recording.initial_term_id + position // recording.term_buffer_length,
        term_offset=position % recording.term_buffer_length,
        mtu=recording.mtu_length,
    )


def end_of_frames(archive_dir: Path, recording_id: int) -> int:
    """Position after the last whole frame in the segment files, of which the last one is not full.

    Ours gives a file its name when it has its length, whenever it is killed.
    """
    position = 0
    while True:
        base = position - position % SEGMENT_LENGTH
        path = archive_dir / f"{recording_id}-{base}.rec"
        if not path.exists():
            return position
        data = path.read_bytes()
        assert len(data) == SEGMENT_LENGTH, path
        while position < base + SEGMENT_LENGTH:
            (length,) = struct.unpack_from("<i", data, position - base)
            if length <= 0:
                return position
            position += (length + 31) // 32 * 32


def assert_recorded(archive_dir: Path, recording_id: int) -> int:
    """Each message once, whole and in order, from number 0 to the end of the recording; returns how many."""
    count = 0
    with Folder(archive_dir) as folder:
        for batch in folder.read(recording_id, columns=["value", "reserved_value"]):
            for body, reserved in zip(batch.column("value"), batch.column("reserved_value"), strict=True):
                assert reserved.as_py() == count * RESERVED_FACTOR
                assert body.as_py() == message(count)
                count += 1
    return count
