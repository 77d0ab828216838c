"""Goal: `aeron-spark archive replicate`, `update-channel`, `migrate-segments` and the credentials options keep their word.

Method: an archive that copies its own recordings, and one with a credentials file.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from aeron_spark import Archive, ArchivingMediaDriver, Folder, MediaDriver
from aeron_spark.archive.server import ArchiveServer
from aeron_spark.archive.users import user_line
from aeron_spark.cli import archive_copy
from aeron_spark.cli.progress import Work
from tests.python.conftest import Run
from tests.python.test_archive import record

MESSAGES = [b"one", b"two" * 2000, b"three", *([b"4" * 8000] * 30)]
AT = ("--source", "aeron:ipc", "--replication-channel", "aeron:udp?endpoint=127.0.0.1:0")


@pytest.fixture
def run(run: Run, aeron_dir: Path) -> Run:
    return lambda *arguments: run(*arguments, "--dir", aeron_dir)


def values(folder: Path, recording_id: int) -> list[bytes]:
    with Folder(folder) as opened:
        return [value for batch in opened.read(recording_id) for value in batch["value"].to_pylist()]


def test_replicate_in_two_parts(servers: ArchivingMediaDriver, archive: Archive, run: Run) -> None:
    source, _ = record(archive, MESSAGES)
    stop = archive.stop_position(source)
    code, out = run("replicate", source, *AT, "--to", 64, "--json")
    row = json.loads(out)
    assert (code, row["from_position"], row["to_position"], row["bytes"]) == (0, 0, 64, 64)
    copy = row["recording_id"]
    assert copy != source
    code, out = run("replicate", source, *AT, "--recording", copy, "--source-response", "aeron:ipc")
    assert code == 0
    assert f"recording {copy}: {stop - 64:,} bytes, from 64 to {stop}, whole" in out
    assert values(servers.archive_dir, copy) == MESSAGES
    # There is nothing more to copy.
    code, out = run("replicate", source, *AT, "--recording", copy)
    assert code == 0, out
    code, out = run("replicate", 987_654, *AT)
    assert code == 1
    assert "unknown src recording id 987654" in out
    code, out = run("replicate", source, "--source", "nonsense")
    assert (code, "nonsense" in out) in {(1, True), (2, True)}


def test_update_channel(archive: Archive, run: Run) -> None:
    recording_id, _ = record(archive, MESSAGES)
    code, out = run("update-channel", recording_id, "aeron:udp?endpoint=localhost:24999|alias=prices", "--json")
    assert code == 0, out
    assert json.loads(out)["before"].startswith("aeron:ipc")
    recording = archive.recording(recording_id)
    assert recording is not None
    assert recording.original_channel == "aeron:udp?endpoint=localhost:24999|alias=prices"
    assert run("update-channel", recording_id, "nonsense")[0] in {1, 2}
    code, out = run("update-channel", 987_654, "aeron:ipc")
    assert (code, "unknown recording id: 987654" in out) == (2, True)


def test_migrate_segments_asks_first(archive: Archive, run: Run) -> None:
    one, _ = record(archive, MESSAGES)
    other, _ = record(archive, MESSAGES, stream_id=502)
    before = [archive.stop_position(one), archive.stop_position(other)]
    code, out = run("migrate-segments", one, other)
    assert code == 0
    assert f"would move all of recording {one} (0 to {before[0]}) to recording {other}" in out
    # Recordings that do not meet are refused, and nothing has changed.
    code, out = run("migrate-segments", one, other, "--yes")
    assert code == 1, out
    assert [archive.stop_position(one), archive.stop_position(other)] == before
    assert run("migrate-segments", one, 987_654)[0] == 2


def test_credentials_by_reference(
    driver: MediaDriver, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = tmp_path / "users"
    users.touch(0o600)
    users.write_text(user_line("alice", "open sesame", ["all"], iterations=1000) + "\n")
    settings = {
        "aeron.archive.control.channel.enabled": "false",
        "aeron.spark.archive.credentials.file": str(users),
    }
    whole, password = tmp_path / "whole", tmp_path / "password"
    whole.write_text("alice:open sesame\n")
    password.write_text("open sesame\n")
    monkeypatch.setenv("ARCHIVE_SECRET", "alice:open sesame")
    monkeypatch.setenv("ARCHIVE_PASSWORD", "wrong")
    start = ("start", "--channel", "aeron:ipc", "--stream")
    with ArchiveServer(tmp_path / "archive", driver.aeron_dir, settings=settings):
        code, out = run(*start, 1)
        assert (code, "authentication rejected" in out.lower()) == (1, True), out
        assert run(*start, 2, "--credentials-file", whole)[0] == 0
        assert run(*start, 3, "--credentials-env", "ARCHIVE_SECRET")[0] == 0
        assert run(*start, 4, "--user", "alice", "--credentials-file", password)[0] == 0
        code, out = run(*start, 5, "--user", "alice", "--credentials-env", "ARCHIVE_PASSWORD")
        assert code == 1
        assert "wrong" not in out
        for arguments, text in (
            (("--user", "alice"), "--user needs the password"),
            (("--credentials-file", whole, "--credentials-env", "ARCHIVE_SECRET"), "not both"),
            (("--credentials-file", tmp_path / "none"), "No such file"),
            (("--credentials-env", "NOT_THERE"), "no such variable"),
        ):
            code, out = run(*start, 6, *arguments)
            assert (code, text in out) == (2, True), out


def test_progress_tells_what_is_known() -> None:
    known, unknown = Work("copied", 20_000_000), Work("copied", 0)
    for work in (known, unknown):
        work.bytes = 5_000_000
    assert "5.0 MB of 20.0 MB" in known.line(known._started + 1)
    assert known.line(known._started + 1).endswith("0:00:03 left")
    assert unknown.line(unknown._started + 1) == "copied: 5.0 MB, 5.0 MB a second"


@pytest.mark.parametrize(("end", "synced", "code"), [(64, False, 1), (128, False, 0), (64, True, 0)])
def test_a_copy_that_broke_off_is_no_success(
    end: int, synced: bool, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """An archive ends it without an error where the source's replay ends early."""

    class Here:
        @staticmethod
        def max_recorded_position(_: int) -> int:
            return end

    copy = archive_copy._Copy()
    copy.recording_id, copy.start, copy.is_ended, copy.is_synced = 3, 0, True, synced
    options = argparse.Namespace(json=False)
    assert archive_copy._print_copy(Here(), copy, options, 128) == code  # type: ignore[arg-type]
    assert ("ended before 128" in capsys.readouterr().out) == bool(code)
