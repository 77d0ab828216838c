"""A file system that fills while the archive records: reported data stays; it keeps running, and starts on the full disk."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aeron_spark import Archive, ArchiveServer, Client, Folder, MediaDriver, PeerError
from tests.conformance.archive.folder import mark_errors
from tests.kit import mark
from tests.kit import small_disk as small_disk_at
from tests.kit.cnc import Cnc
from tests.kit.wait import wait_until
from tests.system.crashes import CHANNEL, SETTINGS, STREAM, Publisher, assert_recorded, channel_to_extend

CAPACITY = "4m"
STORAGE_SPACE = 11
FULL_SETTINGS = {**SETTINGS, "aeron.archive.low.storage.space.threshold": 0, "aeron.archive.catalog.capacity": 65536}

pytestmark = pytest.mark.interop


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of a few megabytes with a file in it that can be deleted to make room."""
    with small_disk_at.mounted(tmp_path / "disk", CAPACITY) as folder:
        yield folder


def failure_of(archive: Archive) -> PeerError | None:
    """What the archive reports without being asked."""
    try:
        archive.poll()
    except PeerError as failure:
        return failure
    return None


def test_a_disk_that_fills_costs_nothing_that_was_told(aeron_dir: Path, small_disk: Path) -> None:
    archive_dir = small_disk / "archive"
    with MediaDriver(aeron_dir, settings=SETTINGS) as _, Client(aeron_dir) as client:
        server = ArchiveServer(archive_dir, aeron_dir, settings=FULL_SETTINGS, embedded=False)
        archive = Archive(client)
        archive.start_recording(CHANNEL, STREAM)
        publication = client.add_exclusive_publication(CHANNEL, STREAM)
        publication.wait_connected(10)
        recording_id = archive.wait_recording("aeron:ipc", STREAM, publication.session_id)
        publisher = Publisher(publication)
        publisher.start()

        failure = wait_until(lambda: failure_of(archive), 60, "the disk to be full")
        assert failure.code == STORAGE_SPACE
        assert f"recording {recording_id} at position" in str(failure)
        told = archive.stop_position(recording_id)
        assert told is not None
        assert told > 0
        publisher.end()
        # It lives on: queries are answered, and what it says is what is on the disk.
        assert archive.max_recorded_position(recording_id) == told
        count = assert_recorded(archive_dir, recording_id)
        assert count > 0

        os.kill(server.pid, signal.SIGKILL)
        wait_until(lambda: server.failure is not None, 10, "the archive to be dead")
        server.close()
        archive.close()
        wait_until(
            lambda: Cnc(aeron_dir).value_of("Client liveness timeouts") == 1, 30, "the dead archive to be reaped"
        )
        mark.age(archive_dir)

        # Again on the full disk.
        with ArchiveServer(archive_dir, aeron_dir, settings=FULL_SETTINGS, embedded=False), Archive(client) as archive:
            assert archive.stop_position(recording_id) == told
            assert assert_recorded(archive_dir, recording_id) == count

        (small_disk / "ballast").unlink()
        with ArchiveServer(archive_dir, aeron_dir, settings=FULL_SETTINGS, embedded=False), Archive(client) as archive:
            recording = archive.recording(recording_id)
            assert recording is not None
            archive.extend_recording(recording_id, CHANNEL, STREAM)
            with client.add_exclusive_publication(channel_to_extend(recording, told), STREAM) as publication:
                publication.wait_connected(10)
                publisher = Publisher(publication, count)
                publisher.start()
                archive.wait_position(recording_id, told + 100_000, timeout=20)
                publisher.end()
    with Folder(archive_dir) as folder:
        assert folder.extent(recording_id).limit_position >= told + 100_000
    assert assert_recorded(archive_dir, recording_id) > count


def test_a_disk_that_fills_is_told_before_it_is_full(aeron_dir: Path, small_disk: Path) -> None:
    """A warning, refusals, then normal service once there is space again; active recordings continue."""
    archive_dir = small_disk / "archive"
    settings = {
        **FULL_SETTINGS,
        "aeron.spark.archive.low.storage.warning": 2 << 20,
        "aeron.archive.low.storage.space.threshold": 1 << 20,
    }

    def told(text: str) -> bool:
        return any(text in error for error in mark_errors(archive_dir))

    with (
        MediaDriver(aeron_dir, settings=SETTINGS),
        Client(aeron_dir) as client,
        ArchiveServer(archive_dir, aeron_dir, settings=settings),
        Archive(client) as archive,
    ):
        archive.start_recording(CHANNEL, STREAM)
        publication = client.add_exclusive_publication(CHANNEL, STREAM)
        publication.wait_connected(10)
        recording_id = archive.wait_recording("aeron:ipc", STREAM, publication.session_id)
        assert not told("low storage")
        filler = small_disk / "filler"
        filler.write_bytes(bytes(shutil.disk_usage(small_disk).free - (3 << 19)))
        wait_until(lambda: told("recordings will be refused"), 10, "the warning")
        assert told(f"of {archive_dir}, aeron.spark.archive.low.storage.warning=2097152")
        archive.start_recording(CHANNEL, STREAM + 1)
        with filler.open("ab") as file:
            file.write(bytes(1 << 20))
        wait_until(lambda: told("recordings are refused"), 10, "the second warning")
        with pytest.raises(PeerError, match=f"low storage threshold={1 << 20} <= usableSpace=") as refused:
            archive.start_recording(CHANNEL, STREAM + 2)
        assert refused.value.code == STORAGE_SPACE
        publisher = Publisher(publication)
        publisher.start()
        archive.wait_position(recording_id, 50_000, timeout=20)
        publisher.end()
        filler.unlink()
        archive.start_recording(CHANNEL, STREAM + 2)
    assert assert_recorded(archive_dir, recording_id) > 0


TOUCHING = """
import sys
from aeron_spark import Client
with Client(sys.argv[1]) as client:
    publication = client.add_publication("aeron:ipc?term-length=64m|sparse=true", 1001)
    subscription = client.add_subscription("aeron:ipc", 1001)
    publication.wait_connected(10)
    print(publication.offer(b"fits"))
"""


def test_a_client_that_touches_its_logs_outlives_a_full_disk(tmp_path: Path) -> None:
    """Pages for which there is no room are no reason to end: the client was asked for speed."""
    environment = {**os.environ, "AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY": "true"}
    settings = {**SETTINGS, "aeron.perform.storage.checks": "false"}
    with (
        small_disk_at.mounted(tmp_path / "disk", "80m") as disk,
        MediaDriver(disk / "aeron", settings=settings),
    ):
        done = subprocess.run(
            [sys.executable, "-c", TOUCHING, disk / "aeron"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stdout) == (0, "64\n"), done.stderr
