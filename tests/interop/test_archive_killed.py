"""Goal: the folder of an archive of ours that was killed is any other folder to the stock archive and its ArchiveTool.

While ours runs, 8 unused bytes of the catalog's header say who writes it (`archive/src/store/catalog.h`); a kill leaves them
there. Method: ours is killed while it records; the stock tool judges copies of the folder, the stock archive goes on with it,
is killed in turn, and ours goes on again. Nothing is being written in those moments: what half a block leaves, which the
stock archive refuses, is another matter (`tests/conformance/archive/test_recovery.py`).
"""

from __future__ import annotations

import os
import re
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from aeron_spark import Archive, ArchiveServer, Client, MediaDriver
from tests.kit import mark, stock
from tests.kit.wait import wait_until
from tests.system.crashes import (
    CHANNEL,
    SEGMENT_LENGTH,
    SETTINGS,
    STREAM,
    Publisher,
    assert_recorded,
    channel_to_extend,
    end_of_frames,
)

WRITER = slice(20, 28)
# Nobody waits for a death here, so that a machine that stands still is not taken for one.
PATIENT = {**SETTINGS, "aeron.client.liveness.timeout": "10s", "aeron.publication.unblock.timeout": "15s"}
LEFT = {**PATIENT, "aeron.driver.timeout": 10_000, "aeron.archive.record.checksum": "CRC-32"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """What a killed archive left: a stopped recording, and one that was active with `count` messages up to `end`."""

    folder: Path
    stopped_id: int
    stop_position: int
    active_id: int
    end: int
    count: int


def writer(folder: Path) -> bytes:
    return (folder / "archive.catalog").read_bytes()[WRITER]


def record_some(archive: Archive, client: Client, folder: Path, stream: int) -> tuple[int, Publisher]:
    """A live recording of more than a segment."""
    archive.start_recording(CHANNEL, stream)
    publication = client.add_exclusive_publication(CHANNEL, stream)
    publication.wait_connected(10)
    recording_id = archive.wait_recording("aeron:ipc", stream, publication.session_id)
    publisher = Publisher(publication)
    publisher.start()
    archive.wait_position(recording_id, 200_000, timeout=20)
    return recording_id, publisher


@pytest.fixture
def killed(aeron_dir: Path, tmp_path: Path) -> Killed:
    folder = tmp_path / "archive"
    with MediaDriver(aeron_dir, settings=PATIENT), Client(aeron_dir) as client:
        server = ArchiveServer(folder, aeron_dir, settings=LEFT, embedded=False)
        archive = Archive(client)
        stopped_id, publisher = record_some(archive, client, folder, STREAM)
        archive.stop_recording(CHANNEL, STREAM)
        stop = wait_until(lambda: archive.stop_position(stopped_id), 10, "the recording to stop")
        publisher.end()
        active_id, publisher = record_some(archive, client, folder, STREAM)
        end = publisher.pause()
        archive.wait_position(active_id, end, timeout=20)
        os.kill(server.pid, signal.SIGKILL)
        wait_until(lambda: server.failure is not None, 10, "the archive to be dead")
        publisher.end()
        server.close()
        archive.close()
    mark.age(folder)
    assert any(writer(folder))
    assert end_of_frames(folder, active_id) == end
    return Killed(
        folder=folder,
        stopped_id=stopped_id,
        stop_position=stop,
        active_id=active_id,
        end=end,
        count=assert_recorded(folder, active_id),
    )


# Arguments of the stock tool, the answer to its question, what it prints, and whether the writer's bytes are left.
TOOLS = (
    (("describe-all",), "", r"recordingId=0\|.*\|VALID\n.*recordingId=1\|.*\|VALID", True),
    (("count-entries",), "", r"^2$", True),
    (("verify", "-a", "-checksum", "CRC-32"), "y\n", r"\(recordingId=0\) OK\n\(recordingId=1\) OK", True),
    (("checksum", "CRC-32", "-a"), "", r"^$", True),
    (("migrate",), "y\n", r"Catalog version=196864", True),
    (("delete-orphaned-segments",), "y\n", r"", True),
    (("compact",), "y\n", r"deleted 0 records and reclaimed 0 bytes", False),
)


def test_the_stock_tool_takes_it(killed: Killed, tmp_path: Path) -> None:
    for arguments, answers, expected, is_left in TOOLS:
        copy = Path(shutil.copytree(killed.folder, tmp_path / f"copy-{arguments[0]}"))
        result = stock.archive_tool(copy, *arguments, answers=answers)
        assert result.code == 0, (arguments, result.out)
        assert re.search(expected, result.out.strip()), (arguments, result.out)
        assert writer(copy) == (writer(killed.folder) if is_left else bytes(8)), arguments
        assert_recorded(copy, killed.stopped_id)
        assert assert_recorded(copy, killed.active_id) == killed.count


def go_on(archive: Archive, client: Client, killed: Killed, position: int, count: int) -> tuple[Publisher, int]:
    """Extend the recording that was active when an archive died; returns its publisher, which pauses, and where it ends."""
    recording = archive.recording(killed.active_id)
    assert recording is not None
    assert recording.stop_position == position
    archive.extend_recording(killed.active_id, CHANNEL, STREAM)
    publication = client.add_exclusive_publication(channel_to_extend(recording, position), STREAM)
    publication.wait_connected(10)
    publisher = Publisher(publication, count)
    publisher.start()
    archive.wait_position(killed.active_id, position + 200_000, timeout=20)
    end = publisher.pause()
    archive.wait_position(killed.active_id, end, timeout=20)
    return publisher, end


@pytest.mark.parametrize("is_empty", [False, True])
def test_the_stock_archive_goes_on_and_ours_after_it(killed: Killed, aeron_dir: Path, is_empty: bool) -> None:
    """Also with an empty last segment, which the stock archive leaves if it dies between making a file and its length."""
    note = writer(killed.folder)
    settings = {
        "aeron.archive.segment.file.length": str(SETTINGS["aeron.archive.segment.file.length"]),
        "aeron.archive.record.checksum": "org.agrona.checksum.Crc32",
    }
    with stock.archive(aeron_dir, killed.folder, with_driver=True, settings=settings) as process:
        with Client(aeron_dir) as client, Archive(client) as archive:
            assert archive.stop_position(killed.stopped_id) == killed.stop_position
            publisher, end = go_on(archive, client, killed, killed.end, killed.count)
            process.kill()
            publisher.end()
    assert writer(killed.folder) == note  # stale: the mark file says that another wrote since
    mark.age(killed.folder)
    assert end_of_frames(killed.folder, killed.active_id) == end
    if is_empty:
        end -= end % SEGMENT_LENGTH
        os.truncate(killed.folder / f"{killed.active_id}-{end}.rec", 0)
    count = assert_recorded(killed.folder, killed.active_id)
    with (
        MediaDriver(aeron_dir, settings={**PATIENT, "aeron.dir.delete.on.start": "true"}),
        ArchiveServer(killed.folder, aeron_dir, settings=LEFT),
        Client(aeron_dir) as client,
        Archive(client) as archive,
    ):
        assert writer(killed.folder) not in {note, bytes(8)}
        publisher, _ = go_on(archive, client, killed, end, count)
        publisher.end()
    assert writer(killed.folder) == bytes(8)
    assert assert_recorded(killed.folder, killed.active_id) > count
    result = stock.archive_tool(killed.folder, "verify", "-a", "-checksum", "CRC-32")
    assert (result.code, "ERR" in result.out) == (0, False), result.out
