"""Goal: a restore into a folder that has a part of its recordings gives back what was acknowledged, and never other bytes.

Method: folders of an archive as it was stopped or killed after the backup, whose recording went on, or was truncated and
extended with other bytes; segments of them are deleted. The messages tell whether the recording is as it was.
"""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from aeron_spark import Archive, ArchivingMediaDriver
from aeron_spark.archive.backup import backup, read_manifest
from aeron_spark.archive.backup_files import INDEX_HEADER_BYTES
from aeron_spark.archive.backup_snapshot import _INDEX_ENTRY_BYTES, _INDEX_HEADER
from aeron_spark.archive.backup_store import open_backup
from aeron_spark.cli import progress
from aeron_spark.cli.__main__ import main
from aeron_spark.errors import DataLossError
from tests.kit.wait import wait_until
from tests.python.test_archive_backup import FRAME, Source, assert_verified, digest, names, restored
from tests.system.crashes import CHANNEL, SEGMENT_LENGTH, STREAM, channel_to_extend

FRAMES = SEGMENT_LENGTH // FRAME


@pytest.fixture
def saved(servers: ArchivingMediaDriver, tmp_path: Path) -> Iterator[Source]:
    """The backup in `backup` has three segments and 7 frames of the recording, which goes on."""
    with Archive(aeron_dir=servers.aeron_dir) as archive:
        source = Source(servers, archive)
        source.grow(3 * FRAMES + 7)
        source.back_up(tmp_path / "backup")
        yield source
        for publication in source.opened:
            publication.close()


def extend(source: Source, position: int, frames: int) -> None:
    """Truncate the recording to the position, and record other bytes from there on."""
    source.stop()
    archive, last = source.archive, position // SEGMENT_LENGTH
    archive.truncate_recording(source.recording_id, position)
    wait_until(lambda: all(base(name) <= last for name in segments(source.folder)), 20, "the deletion")
    recording = archive.recording(source.recording_id)
    assert recording is not None
    archive.stop_recording(CHANNEL, STREAM)
    archive.extend_recording(source.recording_id, CHANNEL, STREAM)
    source.publication = source.publish(STREAM, channel_to_extend(recording, position))
    source.grow(frames, b"y" * 992)


def segments(folder: Path) -> list[str]:
    return [name for name in names(folder) if name.startswith("0-") and name.endswith(".rec")]


def base(name: str) -> int:
    """Number of a segment of recording 0."""
    return int(name[2:-4]) // SEGMENT_LENGTH


def segment(number: int) -> str:
    return f"0-{number * SEGMENT_LENGTH}.rec"


def left_by(source: Source, folder: Path) -> Path:
    """The folder as the archive leaves it when it is killed now."""
    shutil.copytree(source.folder, folder)
    (folder / "archive-mark.dat").unlink()
    return folder


def test_a_lost_segment_of_a_recording_that_was_extended(saved: Source, tmp_path: Path) -> None:
    """No byte of the backup was replaced, as the highest segment of both shows."""
    extend(saved, (3 * FRAMES + 7) * FRAME, 2 * FRAMES)
    saved.stop()
    folder = left_by(saved, tmp_path / "folder")
    whole = digest(folder)
    (folder / segment(1)).unlink()
    assert restored(tmp_path / "backup", folder).recordings == (0,)
    assert digest(folder) == whole
    assert_verified(folder)


@pytest.mark.parametrize(
    ("cut", "lost", "is_given_back"),
    [(2 * FRAMES + 2, 0, True), (FRAMES + 2, 1, False), (FRAMES + 2, 2, False), (FRAMES + 2, 0, False)],
)
def test_a_lost_segment_of_a_recording_that_was_truncated_and_extended(
    saved: Source, tmp_path: Path, *, cut: int, lost: int, is_given_back: bool
) -> None:
    extend(saved, cut * FRAME, 4 * FRAMES)
    saved.stop()
    folder = left_by(saved, tmp_path / "folder")
    whole = digest(folder)
    (folder / segment(lost)).unlink()
    if is_given_back:
        assert restored(tmp_path / "backup", folder).files == 1
        assert digest(folder) == whole
        return
    before = names(folder)
    with pytest.raises(DataLossError, match=rf"{segment(lost)} is missing in \S+, and may have other bytes"):
        restored(tmp_path / "backup", folder)
    assert names(folder) == before


@pytest.mark.parametrize("left", [0, 1, 3])
def test_an_archive_that_died_gets_back_the_end_of_its_recording(saved: Source, tmp_path: Path, left: int) -> None:
    """Its catalog has no stop position, so the highest segment that is there decides where the recording ends."""
    folder = left_by(saved, tmp_path / "folder")
    for name in segments(folder):
        if base(name) >= left:
            (folder / name).unlink()
    assert restored(tmp_path / "backup", folder).recordings == (0,)
    assert main(["archive", "verify", str(folder), "--repair"]) == 0
    assert digest(folder) == digest(tmp_path / "backup")
    assert_verified(folder)


def test_an_archive_that_died_with_a_segment_without_its_bytes(saved: Source, tmp_path: Path) -> None:
    folder = left_by(saved, tmp_path / "folder")
    for number in (2, 3):
        (folder / segment(number)).unlink()
    (folder / segment(1)).write_bytes(bytes(SEGMENT_LENGTH))
    with pytest.raises(DataLossError, match=rf"{segment(2)} is missing .* {segment(1)} has \(move it away"):
        restored(tmp_path / "backup", folder)
    (folder / segment(1)).unlink()
    restored(tmp_path / "backup", folder)
    assert main(["archive", "verify", str(folder), "--repair"]) == 0
    assert digest(folder) == digest(tmp_path / "backup")


def test_an_archive_that_died_after_a_truncation(saved: Source, tmp_path: Path) -> None:
    """What the recording lost by it does not come back."""
    extend(saved, 2 * FRAME, FRAMES)
    folder = left_by(saved, tmp_path / "short")
    assert restored(tmp_path / "backup", folder).files == 0


def test_an_archive_that_died_after_an_extension_whose_begin_is_lost(saved: Source, tmp_path: Path) -> None:
    """Whether the first segment that is lost had been truncated nothing shows."""
    extend(saved, FRAMES * FRAME, FRAMES + 3)
    folder = left_by(saved, tmp_path / "folder")
    for name in segments(folder):
        if base(name) >= 1:
            (folder / name).unlink()
    with pytest.raises(DataLossError, match="because its recording was extended after the backup"):
        restored(tmp_path / "backup", folder)
    assert segments(folder) == [segment(0)]


def test_progress_ends_with_all_bytes(
    saved: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It shows a line, is asked again within the second, and has no other line until the work is done."""
    saved.stop()
    for verb, places, options, what in (
        ("backup", [saved.folder, tmp_path / "other"], ["--dir", str(saved.aeron_dir)], "checked and copied"),
        ("restore", [tmp_path / "other", tmp_path / "restored"], [], "restored"),
    ):
        times = itertools.chain([0.0, 2.0], itertools.repeat(2.5))
        monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=times.__next__))
        assert main(["archive", verb, *map(str, places), *options, "--progress"]) == 0
        lines = [
            re.fullmatch(rf"{what}: (.+) of (.+), .+ a second, .+ left", line)
            for line in capsys.readouterr().err.splitlines()
        ]
        first, last = (line.groups() for line in lines if line is not None)
        assert first[0] != first[1] == last[0] == last[1]


def test_a_time_index_with_a_hole(saved: Source, tmp_path: Path) -> None:
    """As an extension leaves it whose entries do not follow the last one: what lies before its first entry is not copied."""
    saved.stop()
    folder, store = left_by(saved, tmp_path / "folder"), open_backup(str(tmp_path / "other"))
    index = folder / "0.time-index"
    data = index.read_bytes()
    *extension, first = _INDEX_HEADER.unpack_from(data)
    header = _INDEX_HEADER.pack(*extension, first + 1000) + data[_INDEX_HEADER.size : INDEX_HEADER_BYTES]
    index.write_bytes(header + b"x" * (1000 * _INDEX_ENTRY_BYTES) + data[INDEX_HEADER_BYTES:])
    assert not backup(folder, store).missing
    manifest = read_manifest(store)
    assert manifest is not None
    assert manifest.by_name()[index.name].data_bytes == len(data)
    restore_to = tmp_path / "restored"
    restored(tmp_path / "other", restore_to)
    for there in (tmp_path / "other", restore_to):
        assert (there / index.name).read_bytes() == index.read_bytes().replace(
            b"x" * _INDEX_ENTRY_BYTES, bytes(_INDEX_ENTRY_BYTES)
        )
