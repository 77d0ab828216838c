"""Recording, listing, replaying and reading a folder, through our archive."""

from __future__ import annotations

import os
import random
import signal
import stat
import time
from pathlib import Path

import pytest

from aeron_spark import (
    Archive,
    ArchiveServer,
    ArchivingMediaDriver,
    Client,
    ClosedError,
    DataLossError,
    Folder,
    MediaDriver,
    PeerError,
    RecordChecksum,
    RecordingSignal,
    ReplayLength,
    StorageError,
    UsageError,
    WaitTimeoutError,
)
from aeron_spark.archive.segments import archive_is_live
from aeron_spark.types import Signal
from tests.kit.wait import wait_until
from tests.python.conftest import SETTINGS

CHANNEL = "aeron:ipc?alias=archived"
STREAM = 1001


def record(archive: Archive, messages: list[bytes], *, stream_id: int = STREAM) -> tuple[int, int]:
    """Record messages; returns the recording and its end. The recording is stopped."""
    archive.start_recording(CHANNEL, stream_id)
    with archive.client.add_exclusive_publication(CHANNEL, stream_id) as publication:
        publication.wait_connected(10)
        recording_id = archive.wait_recording("archived", stream_id, publication.session_id)
        position = publication.offer_batch(messages, reserved_values=range(len(messages)))
        archive.wait_position(recording_id, position)
        archive.stop_recording(CHANNEL, stream_id)
    # The archive answers before its recorder has stopped.
    wait_until(lambda: archive.stop_position(recording_id) is not None, 20, "the recording to stop")
    return recording_id, position


def random_messages(rng: random.Random, count: int) -> list[bytes]:
    return [rng.randbytes(rng.choice([0, 1, 33, 1000, 1376, 1377, 7000])) for _ in range(count)]


def test_record_and_read_the_folder(archive: Archive, servers: ArchivingMediaDriver, rng: random.Random) -> None:
    messages = random_messages(rng, 200)
    recording_id, end = record(archive, messages)
    with Folder(servers.archive_dir) as folder:
        assert folder.info().is_live
        assert folder.info().archive_id == archive.archive_id
        assert folder.info().aeron_dir == servers.aeron_dir
        recording = folder.recording(recording_id)
        assert folder.recordings() == [recording]
        assert recording == archive.recording(recording_id)
        assert recording.stop_position == end
        assert recording.stream_id == STREAM
        extent = folder.extent(recording_id)
        assert (extent.start_position, extent.limit_position, extent.is_active) == (0, end, False)
        assert folder.checksum(recording_id) is RecordChecksum.NONE

        rows = [row for batch in folder.read(recording_id, row_capacity=17) for row in batch.to_pylist()]
        assert [row["value"] for row in rows] == messages
        assert [row["reserved_value"] for row in rows] == list(range(200))
        assert {row["recording_id"] for row in rows} == {recording_id}
        assert {row["session_id"] for row in rows} == {recording.session_id}
        assert rows[-1]["next_position"] == end

        starts = folder.split(recording_id, 0, end, 20_000)
        assert len(starts) > 3
        ranges = zip(starts, [*starts[1:], end], strict=True)
        parts = [
            row for low, high in ranges for batch in folder.read(recording_id, low, high) for row in batch.to_pylist()
        ]
        assert parts == rows
        assert folder.split(recording_id, 0, end, 20_000) == starts

        boundaries = {row["position"] for row in rows} | {row["next_position"] for row in rows}
        for _ in range(50):
            start = rng.choice(rows)["position"]
            reached = folder.advance(recording_id, start, end, max_messages=5)
            assert sum(start <= row["position"] < reached for row in rows) == min(
                5, sum(row["position"] >= start for row in rows)
            )
            reached = folder.advance(recording_id, start, end, max_bytes=3000)
            assert reached in boundaries
            anywhere = rng.randrange(end)
            assert folder.align(recording_id, anywhere, end) in boundaries
            assert folder.align(recording_id, anywhere, end, back=True) <= anywhere


def test_read_chosen_columns_and_range(archive: Archive, servers: ArchivingMediaDriver) -> None:
    recording_id, _ = record(archive, [b"a", b"b", b"c"])
    with Folder(servers.archive_dir) as folder:
        (batch,) = folder.read(recording_id, 64, 128, columns=["value", "position"])
        assert batch.to_pylist() == [{"value": b"b", "position": 64}]
        assert list(folder.read(recording_id, 64, 64)) == []
        with pytest.raises(UsageError):
            folder.read(recording_id, 0, 1 << 40, limit=1 << 40)
        with pytest.raises(UsageError, match=str(recording_id)):
            folder.recording(recording_id + 100)
        with pytest.raises(UsageError, match=r"'positon' does not exist, there are .*; did you mean position"):
            folder.read(recording_id, columns=["positon"])


def test_active_recording_is_read_up_to_its_recorded_position(archive: Archive, servers: ArchivingMediaDriver) -> None:
    archive.start_recording(CHANNEL, STREAM)
    with (
        archive.client.add_exclusive_publication(CHANNEL, STREAM) as publication,
        Folder(servers.archive_dir) as folder,
    ):
        publication.wait_connected(10)
        recording_id = archive.wait_recording("archived", STREAM, publication.session_id)
        folder.refresh()
        for count in (10, 20, 30):
            position = publication.offer_batch([b"x" * 100] * 10)
            wait_until(lambda: folder.extent(recording_id).limit_position == position, 10, "the recording")  # noqa: B023
            assert folder.extent(recording_id).is_active
            assert sum(batch.num_rows for batch in folder.read(recording_id)) == count


def test_listing(archive: Archive) -> None:
    first, _ = record(archive, [b"1"])
    second, end = record(archive, [b"2"], stream_id=STREAM + 1)
    assert [recording.recording_id for recording in archive.recordings()] == [first, second]
    (found,) = archive.recordings(channel_fragment="archived", stream_id=STREAM + 1)
    assert found.recording_id == second
    assert archive.recordings(channel_fragment="absent", stream_id=STREAM) == []
    assert archive.recording(99) is None
    assert archive.find_last_matching_recording("archived", STREAM + 1, found.session_id) == second
    assert archive.find_last_matching_recording("archived", STREAM + 1, found.session_id + 1) is None
    assert archive.start_position(second) == 0
    assert archive.stop_position(second) == end
    assert archive.max_recorded_position(second) == end
    assert archive.recording_position(second) is None
    with pytest.raises(UsageError):
        archive.recordings(stream_id=1)
    with pytest.raises(PeerError, match="99"):
        archive.start_position(99)


def test_recording_subscriptions(archive: Archive) -> None:
    subscription_id = archive.start_recording(CHANNEL, STREAM)
    (found,) = archive.recording_subscriptions(channel_fragment="ipc", stream_id=STREAM)
    assert found.subscription_id == subscription_id
    archive.stop_recording_subscription(subscription_id)
    assert archive.recording_subscriptions() == []
    with pytest.raises(PeerError):
        archive.stop_recording_subscription(subscription_id)


def test_signals(servers: ArchivingMediaDriver) -> None:
    signals: list[Signal] = []
    with Archive(aeron_dir=servers.aeron_dir, on_signal=signals.append) as archive:
        recording_id, end = record(archive, [b"x"])
        wait_until(lambda: archive.poll() >= 0 and len(signals) >= 2, 10, "the signals")
    assert [(told.signal, told.recording_id) for told in signals[:2]] == [
        (RecordingSignal.START, recording_id),
        (RecordingSignal.STOP, recording_id),
    ]
    assert signals[1].position == end


def test_replay(archive: Archive, rng: random.Random) -> None:
    messages = random_messages(rng, 100)
    recording_id, end = record(archive, messages)
    with archive.replay(recording_id, length=ReplayLength.CURRENT_END) as replay:
        rows = [row for batch in replay.batches() for row in batch.to_pylist()]
    assert [row["value"] for row in rows] == messages
    assert rows[-1]["next_position"] == end
    middle = rows[50]["position"]
    with archive.replay(recording_id, position=middle, length=end - middle) as replay:
        assert [row for batch in replay.batches() for row in batch.to_pylist()] == [
            {**row, "session_id": replay.session_id, "stream_id": 100} for row in rows[50:]
        ]
    with pytest.raises(PeerError):
        archive.replay(recording_id, position=end + 64)


def test_a_replay_that_is_stopped_before_its_end_says_so(archive: Archive) -> None:
    messages = [bytes([index]) * 1000 for index in range(200)]
    recording_id, end = record(archive, messages)
    with archive.replay(recording_id, file_io_max_length=4096) as replay:
        batches = replay.batches()
        got = next(batches).num_rows
        assert got < len(messages)
        archive.stop_replay(replay.replay_session_id)
        with pytest.raises(
            ClosedError, match=f"replay {replay.replay_session_id} came to position [0-9]+ and not to its end"
        ):
            list(batches)
    with pytest.raises(PeerError, match="fileIoMaxLength=64 < mtuLength="):
        archive.replay(recording_id, file_io_max_length=64)
    with archive.replay(recording_id) as replay:
        assert [value for batch in replay.batches() for value in batch["value"].to_pylist()] == messages
    assert archive.stop_position(recording_id) == end


def test_replay_follows_a_live_recording(archive: Archive) -> None:
    archive.start_recording(CHANNEL, STREAM, auto_stop=True)
    with archive.client.add_exclusive_publication(CHANNEL, STREAM) as publication:
        publication.wait_connected(10)
        recording_id = archive.wait_recording("archived", STREAM, publication.session_id)
        publication.offer_batch([b"before"] * 10)
        with archive.replay(recording_id) as replay:
            batches = replay.batches()
            got = next(batches).num_rows
            publication.offer_batch([b"after"] * 10)
            publication.close()
            got += sum(batch.num_rows for batch in batches)
    assert got == 20


def test_extend(archive: Archive, servers: ArchivingMediaDriver) -> None:
    recording_id, end = record(archive, [b"first"])
    recording = archive.recording(recording_id)
    assert recording is not None
    channel = (
        f"{CHANNEL}|init-term-id={recording.initial_term_id}|term-id={recording.initial_term_id}"
        f"|term-offset={end}|term-length={recording.term_buffer_length}|mtu={recording.mtu_length}"
    )
    with archive.client.add_exclusive_publication(channel, STREAM) as publication:
        archive.extend_recording(recording_id, CHANNEL, STREAM)
        publication.wait_connected(10)
        position = publication.offer_batch([b"second"])
        archive.wait_position(recording_id, position)
        assert archive.stop_recording_by_identity(recording_id)
        wait_until(lambda: not archive.stop_recording_by_identity(recording_id), 20, "the recording to stop")
    with Folder(servers.archive_dir) as folder:
        (batch,) = folder.read(recording_id, columns=["value"])
        assert batch.column(0).to_pylist() == [b"first", b"second"]


@pytest.mark.parametrize("embedded", [True, False])
def test_two_archives_of_one_folder(driver: MediaDriver, archive_dir: Path, *, embedded: bool) -> None:
    with ArchiveServer(archive_dir, driver.aeron_dir, settings=SETTINGS, embedded=embedded) as first:
        assert archive_is_live(archive_dir)
        assert first.failure is None
        assert (first.pid == os.getpid()) is embedded
        assert repr(first) == f"<ArchiveServer {archive_dir}>"
        with pytest.raises(PeerError, match=str(archive_dir)):
            ArchiveServer(archive_dir, driver.aeron_dir, settings=SETTINGS, embedded=False)
        assert archive_is_live(archive_dir)
    assert not archive_is_live(archive_dir)
    assert repr(first) == f"<ArchiveServer {archive_dir} closed>"


def test_settings_of_child_processes_are_not_for_other_users(aeron_dir: Path, archive_dir: Path) -> None:
    argument = "of a plug-in"
    settings = {**SETTINGS, "aeron.spark.archive.auth.argument": argument}
    with ArchivingMediaDriver(archive_dir, aeron_dir, settings=settings, embedded=False) as servers:
        for pid in (servers.driver.pid, servers.archive.pid):
            command = Path(f"/proc/{pid}/cmdline").read_text()
            assert argument not in command
            assert str(aeron_dir) in command, "by which ps tells servers apart"
            environment = Path(f"/proc/{pid}/environ")
            assert stat.S_IMODE(environment.stat().st_mode) == 0o400
            has_it = f"AERON_SPARK_ARCHIVE_AUTH_ARGUMENT={argument}\0" in environment.read_text()
            assert has_it is (pid == servers.archive.pid), "the driver has no use for it"
        with Client(aeron_dir) as client, Archive(client) as archive:
            recording_id, _ = record(archive, [b"first"])
        with Folder(archive_dir) as folder:
            assert folder.recording(recording_id).segment_file_length == 128 << 10, "and they have their effect"


def test_a_killed_archive_is_read_to_its_last_frame_and_recovers(driver: MediaDriver, archive_dir: Path) -> None:
    server = ArchiveServer(archive_dir, driver.aeron_dir, settings=SETTINGS, embedded=False)
    with Client(driver.aeron_dir) as client, Archive(client) as archive:
        archive.start_recording(CHANNEL, STREAM)
        with client.add_exclusive_publication(CHANNEL, STREAM) as publication:
            publication.wait_connected(10)
            recording_id = archive.wait_recording("archived", STREAM, publication.session_id)
            position = publication.offer_batch([b"x" * 1000] * 300)
            archive.wait_position(recording_id, position)
            os.kill(server.pid, signal.SIGKILL)
            wait_until(lambda: server.failure is not None, 10, "the end of the archive")
        with pytest.raises((PeerError, WaitTimeoutError)):
            Archive(client, timeout=0.5)
    server.close()
    with Folder(archive_dir) as folder:
        wait_until(lambda: folder.refresh() or not folder.info().is_live, 30, "the mark file to age")
        extent = folder.extent(recording_id)
        assert (extent.limit_position, extent.is_active) == (position, False)
        assert sum(batch.num_rows for batch in folder.read(recording_id)) == 300
        assert folder.recording(recording_id).stop_position is None
    with (
        ArchiveServer(archive_dir, driver.aeron_dir, settings=SETTINGS),
        Archive(aeron_dir=driver.aeron_dir) as archive,
    ):
        assert archive.stop_position(recording_id) == position


def test_large_columns_end_before_they_are_full(archive: Archive, servers: ArchivingMediaDriver) -> None:
    """Behind the 248 messages of the first 256 KiB of frames 14,144 bytes are free. The ninth term's eight fit into them."""
    recording_id, _ = record(archive, [b"x" * 1000] * 504)
    with Folder(servers.archive_dir) as folder:
        given = [batch.num_rows for batch in folder.read(recording_id, byte_capacity=256 * 1024)]
    assert given == [248, 256]


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises((StorageError, DataLossError), match=str(tmp_path)):
        Folder(tmp_path)
    (tmp_path / "archive.catalog").write_bytes(b"no catalog" * 10)
    with pytest.raises(DataLossError, match=str(tmp_path)):
        Folder(tmp_path)
    assert not archive_is_live(tmp_path)


def test_a_missing_segment_is_an_error_and_not_fewer_rows(archive: Archive, servers: ArchivingMediaDriver) -> None:
    recording_id, _ = record(archive, [b"x" * 1000] * 500)
    (servers.archive_dir / f"{recording_id}-{128 * 1024}.rec").unlink()
    with Folder(servers.archive_dir) as folder, pytest.raises(DataLossError, match=f"{recording_id}-131072.rec"):
        for _ in folder.read(recording_id):
            pass


def test_no_archive_on_the_control_channel(client: Client) -> None:
    begun = time.monotonic()
    with pytest.raises((WaitTimeoutError, PeerError)):
        Archive(client, timeout=0.3)
    assert time.monotonic() - begun < 10
