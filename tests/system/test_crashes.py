"""Driver and archive killed with -9 in mid-stream: which peer notices, the state on disk, and the restart."""

from __future__ import annotations

import os
import random
import signal
import threading
from pathlib import Path

import pytest

from aeron_spark import (
    AeronError,
    Archive,
    ArchiveServer,
    Client,
    ClosedError,
    Folder,
    MediaDriver,
    Outcome,
    PeerError,
    WaitTimeoutError,
)
from tests.kit import mark
from tests.kit.cnc import Cnc
from tests.kit.wait import wait_until
from tests.system.crashes import (
    CHANNEL,
    SETTINGS,
    STREAM,
    Publisher,
    assert_recorded,
    channel_to_extend,
    end_of_frames,
)

KILLS = 10


def test_a_killed_driver_is_told_by_everything_and_its_recordings_go_on(aeron_dir: Path, archive_dir: Path) -> None:
    told: list[AeronError] = []
    driver = MediaDriver(aeron_dir, settings=SETTINGS, embedded=False)
    server = ArchiveServer(archive_dir, aeron_dir, settings=SETTINGS, embedded=False)
    client = Client(aeron_dir, timeout=8, on_error=told.append)
    archive = Archive(client, timeout=8)
    archive.start_recording(CHANNEL, STREAM)
    publication = client.add_exclusive_publication(CHANNEL, STREAM)
    shared = client.add_publication(CHANNEL, STREAM + 1)
    subscription = client.add_subscription(CHANNEL, STREAM + 1)
    publication.wait_connected(10)
    recording_id = archive.wait_recording("aeron:ipc", STREAM, publication.session_id)
    publisher = Publisher(publication)
    publisher.start()
    wait_until(lambda: archive.max_recorded_position(recording_id) > 300_000, 20, "the recording to have grown")
    os.kill(driver.pid, signal.SIGKILL)
    seen = Cnc(aeron_dir).value_of(f"rec-pos: {recording_id} ") or 0

    publisher.join(30)
    assert not publisher.is_alive(), "a publisher without driver must not hang"
    assert isinstance(publisher.failure, ClosedError)
    gone = f"client of {aeron_dir} is closed: the media driver's last heartbeat is"
    assert gone in str(publisher.failure)
    # Publishers see the end of the client a moment before its thread has told it.
    assert wait_until(lambda: [gone in str(failure) for failure in told], 10, "the client to tell") == [True]
    assert shared.offer(b"x") is Outcome.CLOSED
    for call in (
        lambda: shared.offer_batch([b"x"]),
        lambda: shared.wait_connected(5),
        lambda: subscription.poll_batch(5),
        lambda: client.add_publication(CHANNEL, 1),
    ):
        with pytest.raises(ClosedError, match=gone):
            call()
    with pytest.raises(ClosedError):
        archive.recordings()
    with pytest.raises(WaitTimeoutError, match=f"no live driver in {aeron_dir}"):
        Client(aeron_dir, timeout=0.2)
    wait_until(lambda: server.failure is not None, 40, "the archive to notice")
    assert str(aeron_dir) in str(server.failure)
    for part in (archive, client, server, driver):
        part.close()

    with Folder(archive_dir) as folder:
        extent = folder.extent(recording_id)
        assert (extent.start_position, extent.is_active) == (0, False)
    end = end_of_frames(archive_dir, recording_id)
    assert extent.limit_position == end >= seen > 0
    count = assert_recorded(archive_dir, recording_id)
    with (
        MediaDriver(aeron_dir, settings=SETTINGS, embedded=False),
        ArchiveServer(archive_dir, aeron_dir, settings=SETTINGS, embedded=False),
        Archive(aeron_dir=aeron_dir) as archive,
    ):
        assert archive.stop_position(recording_id) == end
        recording = archive.recording(recording_id)
        assert recording is not None
        with archive.client.add_exclusive_publication(channel_to_extend(recording, end), STREAM) as publication:
            archive.extend_recording(recording_id, CHANNEL, STREAM)
            publication.wait_connected(10)
            publisher = Publisher(publication, count)
            publisher.start()
            wait_until(
                lambda: archive.max_recorded_position(recording_id) > end + 100_000, 20, "the recording to go on"
            )
            publisher.end()
    assert assert_recorded(archive_dir, recording_id) > count


def test_an_archive_killed_at_random_instants_keeps_what_it_had_told_and_goes_on(
    aeron_dir: Path, archive_dir: Path, rng: random.Random
) -> None:
    """One recording, killed and extended ten times; the driver and its publishers live on."""
    recording_id, end, count = 0, 0, 0
    with MediaDriver(aeron_dir, settings=SETTINGS), Client(aeron_dir) as client:
        for kill in range(KILLS):
            server = ArchiveServer(archive_dir, aeron_dir, settings=SETTINGS, embedded=False)
            archive = Archive(client)
            channel = CHANNEL
            if kill:
                assert archive.stop_position(recording_id) == end
                recording = archive.recording(recording_id)
                assert recording is not None
                channel = channel_to_extend(recording, end)
                archive.extend_recording(recording_id, CHANNEL, STREAM)
            else:
                archive.start_recording(CHANNEL, STREAM)
            publication = client.add_exclusive_publication(channel, STREAM)
            publication.wait_connected(10)
            if kill == 0:
                recording_id = archive.wait_recording("aeron:ipc", STREAM, publication.session_id)
            publisher = Publisher(publication, count)
            publisher.start()
            wait_until(lambda: archive.max_recorded_position(recording_id) > end, 20, "the recording to advance")  # noqa: B023
            threading.Event().wait(rng.uniform(0, 0.05))  # the random instant; nothing is awaited
            os.kill(server.pid, signal.SIGKILL)
            wait_until(lambda: server.failure is not None, 10, "the archive to be dead")  # noqa: B023
            seen = Cnc(aeron_dir).value_of(f"rec-pos: {recording_id} ") or 0
            publisher.end()
            server.close()
            with pytest.raises((ClosedError, PeerError, WaitTimeoutError)):
                archive.recordings()
            archive.close()
            # Until it is reaped, the dead archive's control subscription holds back every request.
            wait_until(
                lambda: Cnc(aeron_dir).value_of("Client liveness timeouts") == kill + 1,  # noqa: B023
                30,
                "the dead archive to be reaped",
            )
            mark.age(archive_dir)
            with Folder(archive_dir) as folder:
                before, end = end, folder.extent(recording_id).limit_position
            assert end == end_of_frames(archive_dir, recording_id)
            assert end >= seen > before, "what it had told is there"
            recorded = assert_recorded(archive_dir, recording_id)
            print(f"kill {kill + 1}: told {seen}, recovered {end}, {recorded} messages")
            assert recorded > count
            count = recorded


def test_a_second_archive_is_refused_and_names_the_first(aeron_dir: Path, archive_dir: Path) -> None:
    with (
        MediaDriver(aeron_dir, settings=SETTINGS),
        ArchiveServer(archive_dir, aeron_dir, settings=SETTINGS, embedded=False) as first,
    ):
        for embedded in (False, True):
            with pytest.raises(AeronError) as refused:
                ArchiveServer(archive_dir, aeron_dir, settings=SETTINGS, embedded=embedded)
            assert str(archive_dir) in str(refused.value)
            assert f"process {first.pid}" in str(refused.value)
        with Archive(aeron_dir=aeron_dir) as archive:
            assert archive.recordings() == []
