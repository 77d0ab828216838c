"""Goal: a backup of a stock archive that records is consistent, and a stock archive goes on with what was restored.

Method: our client has a stock archive record while the backup is taken, and purge while it is; the stock ArchiveTool and ours
judge the restored folder; a stock archive extends a recording in it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from aeron_spark import Archive, Client, Folder
from aeron_spark.archive.backup import backup
from aeron_spark.archive.backup_store import open_backup
from aeron_spark.archive.restore import restore
from aeron_spark.cli.__main__ import main
from tests.kit import stock
from tests.kit.payload import RESERVED_FACTOR
from tests.system.crashes import CHANNEL, SEGMENT_LENGTH, STREAM, assert_recorded, channel_to_extend, message

pytestmark = pytest.mark.interop


def test_a_stock_archive_is_backed_up_and_restored(aeron_dir: Path, archive_dir: Path, tmp_path: Path) -> None:
    store, folder = tmp_path / "backup", tmp_path / "restored"
    settings = {"aeron.archive.segment.file.length": str(SEGMENT_LENGTH)}
    with stock.driver(aeron_dir), Client(aeron_dir) as client:
        with stock.archive(aeron_dir, archive_dir, settings=settings), Archive(client) as archive:
            archive.start_recording(CHANNEL, STREAM)
            with client.add_exclusive_publication(str(CHANNEL), STREAM) as publication:
                publication.wait_connected(10)
                recording_id = archive.wait_recording("aeron:ipc", STREAM, publication.session_id)
                sent = 0

                def publish(count: int) -> int:
                    nonlocal sent
                    numbers = range(sent, sent + count)
                    sent += count
                    reserved = [number * RESERVED_FACTOR for number in numbers]
                    return int(
                        publication.offer_batch([message(one) for one in numbers], reserved_values=reserved, timeout=20)
                    )

                for _ in range(2):
                    archive.wait_position(recording_id, publish(200))
                    backup(archive_dir, open_backup(str(store)), on_progress=lambda _done, _total: publish(10))
                    assert main(["archive", "verify", str(store), "--all-segments"]) == 0
        restore(open_backup(str(store)), folder)
        assert main(["archive", "verify", str(folder), "--all-segments"]) == 0
        result = stock.archive_tool(folder, "verify", "-a")
        assert (result.code, "ERR" in result.out) == (0, False), result.out
        before = assert_recorded(folder, recording_id)
        assert before > 200
        with stock.archive(aeron_dir, folder, settings=settings), Archive(client) as archive:
            recording = archive.recording(recording_id)
            assert recording is not None
            assert recording.stop_position is not None
            archive.extend_recording(recording_id, CHANNEL, STREAM)
            channel = channel_to_extend(recording, recording.stop_position)
            with client.add_exclusive_publication(str(channel), STREAM) as publication:
                publication.wait_connected(10)
                archive.wait_position(recording_id, publication.offer_batch([b"more"] * 10))
    with Folder(folder) as opened:
        assert sum(batch.num_rows for batch in opened.read(recording_id)) >= before + 10
