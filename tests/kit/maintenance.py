"""Every maintenance call of our archive client in one sequence, sent to our archive or a stock one."""

from __future__ import annotations

from pathlib import Path

import pytest

from aeron_spark import Archive, PeerError, Recording, RecordingSignal, ReplayLength, UsageError
from aeron_spark.types import Signal
from tests.kit.cnc import Cnc
from tests.kit.wait import wait_until

SEGMENT = 131_072
CHANNEL = "aeron:ipc?term-length=64k|mtu=1408|init-term-id=7|term-id={}|term-offset=0"
# A frame of 1,024 bytes: segments are full without padding.
BODY, FRAME = 992, 1024
PER_SEGMENT = SEGMENT // FRAME
UNKNOWN_RECORDING, INVALID_POSITION = 5, 16


def body(index: int) -> bytes:
    """Message `index` of a stream."""
    return index.to_bytes(8, "little") * (BODY // 8)


class Story:
    """An archive client with the signals that it received."""

    def __init__(self, aeron_dir: Path, archive_dir: Path, stream: int) -> None:
        self.aeron_dir = aeron_dir
        self.archive_dir = archive_dir
        self.stream = stream
        self.signals: list[Signal] = []
        self.archive = Archive(aeron_dir=aeron_dir, on_signal=self.signals.append)

    def tell(self) -> None:
        """Make two recordings; detach, attach, purge, truncate, migrate and rename them; read the remaining data; purge it."""
        with self.archive:
            first = self._record(0, 4 * PER_SEGMENT + 3)
            self._segments(first)
            self._truncate(first)
            second = self._record(4 * PER_SEGMENT, 5)
            self._migrate(first, second)
            self._purge(second)

    def _segments(self, recording_id: int) -> None:
        archive, found = self.archive, self._described(recording_id)
        assert list(found.detachable()) == [n * SEGMENT for n in (1, 2, 3, 4)]
        assert found.segment_file(2 * SEGMENT + 5 * FRAME) == f"{recording_id}-{2 * SEGMENT}.rec"
        assert (found.term_id(SEGMENT + 32), found.term_offset(SEGMENT + 32)) == (9, 32)
        archive.detach_segments(recording_id, 2 * SEGMENT)
        assert archive.start_position(recording_id) == 2 * SEGMENT
        assert archive.attach_segments(recording_id) == 2
        archive.detach_segments(recording_id, SEGMENT)
        assert archive.delete_detached_segments(recording_id) == 1
        self._await_deleted(recording_id)
        assert archive.attach_segments(recording_id) == 0
        assert archive.purge_segments(recording_id, 2 * SEGMENT) == 1
        self._await_deleted(recording_id)
        assert self._files(recording_id) == {f"{recording_id}-{n * SEGMENT}.rec" for n in (2, 3, 4)}
        with pytest.raises(PeerError, match="invalid detach"):
            archive.detach_segments(recording_id, 2 * SEGMENT)

    def _truncate(self, recording_id: int) -> None:
        with pytest.raises(PeerError, match="invalid position 33") as failed:
            self.archive.truncate_recording(recording_id, 33)
        assert failed.value.code == INVALID_POSITION
        assert self.archive.truncate_recording(recording_id, 4 * SEGMENT) == 1
        self._await_deleted(recording_id)
        assert self.archive.stop_position(recording_id) == 4 * SEGMENT

    def _migrate(self, first: int, second: int) -> None:
        archive = self.archive
        assert archive.migrate_segments(first, second) == 2
        self._await_deleted(first)
        assert (archive.start_position(first), archive.stop_position(first)) == (2 * SEGMENT, 2 * SEGMENT)
        archive.update_channel(second, "aeron:udp?endpoint=localhost:24567|alias=moved")
        with pytest.raises(UsageError):
            archive.update_channel(second, "no channel")
        joined = self._described(second)
        assert (joined.start_position, joined.stop_position) == (2 * SEGMENT, 4 * SEGMENT + 5 * FRAME)
        assert joined.original_channel == "aeron:udp?endpoint=localhost:24567|alias=moved"
        with archive.replay(second, length=ReplayLength.CURRENT_END) as replay:
            values = [value for batch in replay.batches() for value in batch.column("value").to_pylist()]
        assert values == [body(index) for index in range(2 * PER_SEGMENT, 4 * PER_SEGMENT + 5)]

    def _purge(self, recording_id: int) -> None:
        await_no_replay(self.aeron_dir)
        assert self.archive.purge_recording(recording_id) == 3
        self._await_deleted(recording_id)
        assert self.archive.recording(recording_id) is None
        assert self._files(recording_id) == set()
        with pytest.raises(PeerError) as unknown:
            self.archive.purge_recording(recording_id)
        assert unknown.value.code == UNKNOWN_RECORDING

    def _await_deleted(self, recording_id: int) -> None:
        def is_told() -> bool:
            self.archive.poll()
            return any((it.signal, it.recording_id) == (RecordingSignal.DELETE, recording_id) for it in self.signals)

        wait_until(is_told, 10, f"recording {recording_id}'s files to be gone", state=lambda: self.signals)
        self.signals.clear()

    def _files(self, recording_id: int) -> set[str]:
        return {path.name for path in self.archive_dir.glob(f"{recording_id}-*.rec")}

    def _described(self, recording_id: int) -> Recording:
        found = self.archive.recording(recording_id)
        assert found is not None
        return found

    def _record(self, first: int, count: int) -> int:
        """A stopped recording of messages `first` and on, at their positions in a stream that began with message 0."""
        archive, channel = self.archive, CHANNEL.format(7 + first * FRAME // 65_536)
        subscription_id = archive.start_recording(channel, self.stream)
        with archive.client.add_exclusive_publication(channel, self.stream) as publication:
            publication.wait_connected(10)
            recording_id = archive.wait_recording("aeron:ipc", self.stream, publication.session_id)
            end = publication.offer_batch([body(index) for index in range(first, first + count)], timeout=20)
            archive.wait_position(recording_id, end)
        archive.stop_recording_subscription(subscription_id)
        wait_until(lambda: archive.stop_position(recording_id) == end, 10, "the recording to stop")
        return recording_id


def await_no_replay(aeron_dir: Path) -> None:
    """Wait until the archive has seen that its replays were left."""
    cnc = Cnc(aeron_dir)
    wait_until(lambda: cnc.value_of("Archive Replay Sessions") == 0, 10, "the replays to end")
