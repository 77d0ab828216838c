"""What the stock archive does on a disk that fills, beside ours (tests/system/test_full_disk.py); docs/operate.md describes it.

With its mark file on another disk it does as ours: the recording ends with error 11 at a position up to which all is there, and
it starts again on the full disk. By default the mark file lies with the recordings, its error log has no blocks yet, and the
first error that is written there kills the conductor. Ours allocates the log when it makes the mark file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aeron_spark import Archive, Client, ClosedError, MediaDriver
from tests.kit import mark, small_disk, stock
from tests.kit.processes import Process, archive_ready
from tests.kit.wait import wait_until
from tests.system.crashes import CHANNEL, SETTINGS, STREAM, Publisher, assert_recorded
from tests.system.test_full_disk import CAPACITY, STORAGE_SPACE, failure_of

STOCK_SETTINGS = {
    **stock.ARCHIVE_SETTINGS,
    "aeron.archive.segment.file.length": str(SETTINGS["aeron.archive.segment.file.length"]),
    "aeron.archive.low.storage.space.threshold": "0",
    "aeron.archive.catalog.capacity": "65536",
}

#: A JVM that has just started, on cores that other tests use, was not done within the usual 10 s once.
ANSWER_S = 60.0


def launch(aeron_dir: Path, archive_dir: Path, mark_dir: Path) -> Process:
    """A stock archive with its mark file in a folder of its own, or in the archive's."""
    settings = {**STOCK_SETTINGS, "aeron.archive.mark.file.dir": str(mark_dir)}
    command = stock.peers(
        ["archive", "--dir", aeron_dir, "--archive-dir", archive_dir],
        options=[*stock.QUICK_START, *(f"-D{name}={value}" for name, value in settings.items())],
    )
    process = Process("stock archive", command)
    return process.wait_ready(archive_ready(process, mark_dir))


@contextmanager
def filling(client: Client) -> Iterator[tuple[Archive, int]]:
    """A recording that is published to until its disk is full."""
    archive = Archive(client)
    archive.start_recording(CHANNEL, STREAM)
    publication = client.add_exclusive_publication(CHANNEL, STREAM)
    publication.wait_connected(10)
    publisher = Publisher(publication)
    publisher.start()
    try:
        yield archive, archive.wait_recording("aeron:ipc", STREAM, publication.session_id)
    finally:
        publisher.end()
        archive.close()


# A stock archive that a full disk stopped may leave a block behind the stop position.
@pytest.mark.filterwarnings("ignore:.*frames of the recording go on behind its stopPosition")
def test_with_the_mark_file_elsewhere_it_does_as_ours(aeron_dir: Path, tmp_path: Path) -> None:
    with (
        small_disk.mounted(tmp_path / "disk", CAPACITY) as disk,
        MediaDriver(aeron_dir, settings=SETTINGS),
        Client(aeron_dir) as client,
    ):
        archive_dir, mark_dir = disk / "archive", tmp_path / "mark"
        process = launch(aeron_dir, archive_dir, mark_dir)
        with filling(client) as (archive, recording_id):
            failure = wait_until(lambda: failure_of(archive), 60, "the disk to be full")
            assert failure.code == STORAGE_SPACE
            assert "No space left on device" in str(failure)
            told = archive.stop_position(recording_id)
        process.kill()
        mark.age(mark_dir)
        count = assert_recorded(archive_dir, recording_id)
        with launch(aeron_dir, archive_dir, mark_dir), Archive(client, timeout=ANSWER_S) as archive:
            assert archive.stop_position(recording_id) == told
        assert assert_recorded(archive_dir, recording_id) == count > 0


def test_with_the_mark_file_on_it_its_conductor_dies(aeron_dir: Path, tmp_path: Path) -> None:
    with (
        small_disk.mounted(tmp_path / "disk", CAPACITY) as disk,
        MediaDriver(aeron_dir, settings=SETTINGS),
        Client(aeron_dir) as client,
    ):
        archive_dir = disk / "archive"
        process = launch(aeron_dir, archive_dir, archive_dir)
        with filling(client) as (archive, recording_id):
            # Nobody is told anything; the session ends, the process stays.
            with pytest.raises(ClosedError):
                wait_until(lambda: failure_of(archive), 60, "the session to end")
        wait_until(lambda: "InternalError" in process.stderr(), 10, "the fault to be told", state=process.report)
        assert process.returncode is None
        process.kill()
        mark.age(archive_dir)
        # No start on the full disk, and none with space again: the start that failed counts as alive for ever.
        with pytest.raises(Exception, match="InternalError"):
            launch(aeron_dir, archive_dir, archive_dir)
        (disk / "ballast").unlink()
        mark.age(archive_dir)
        with pytest.raises(Exception, match="active mark file detected"):
            launch(aeron_dir, archive_dir, archive_dir)
        (archive_dir / "archive-mark.dat").unlink()
        stock.archive_tool(archive_dir, "verify", answers="y\n")  # cuts the frame that the full disk tore
        with launch(aeron_dir, archive_dir, archive_dir), Archive(client, timeout=ANSWER_S) as archive:
            assert (archive.stop_position(recording_id) or 0) > 0
        assert assert_recorded(archive_dir, recording_id) > 0
