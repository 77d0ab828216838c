"""Goal: a backup of a folder is consistent whatever happens meanwhile, and what was backed up comes back, byte for byte.

Method: a live archive that records during the backup; purges, truncations and extensions put at fixed moments of it; a store
whose every call fails once; a process that is killed. `archive verify` on the backup, the messages of restored recordings and
their bytes in the archive's folder tell whether it is right. Hostile backups are made by hand.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aeron_spark import Archive, ArchivingMediaDriver, Folder, Publication
from aeron_spark.archive import backup as backup_module
from aeron_spark.archive import backup_snapshot
from aeron_spark.archive.backup import BackupReport, backup
from aeron_spark.archive.backup_files import MANIFEST, PROGRESS, Manifest
from aeron_spark.archive.backup_store import Store, open_backup
from aeron_spark.archive.restore import RestoreReport, restore
from aeron_spark.archive.tools import Catalog, VerifyOutcome
from aeron_spark.cli.__main__ import main
from aeron_spark.errors import AeronError, DataLossError, StorageError, UsageError
from aeron_spark.types import RecordChecksum
from tests.kit.payload import RESERVED_FACTOR
from tests.kit.processes import Process
from tests.kit.wait import wait_until
from tests.system.crashes import CHANNEL, SEGMENT_LENGTH, STREAM, assert_recorded, channel_to_extend, message

BODY = b"x" * 992  # a frame of 1,024 bytes: segments are full without padding
FRAME = 1024


class Source:
    """An archive that runs, with one recording that grows when it is told to."""

    def __init__(self, servers: ArchivingMediaDriver, archive: Archive) -> None:
        self.folder = servers.archive_dir
        self.aeron_dir = servers.aeron_dir
        self.archive = archive
        self.opened: list[Publication] = []
        self.recording_id, self.publication = self.begin(STREAM)

    def begin(self, stream: int, channel: object = CHANNEL) -> tuple[int, Publication]:
        self.archive.start_recording(str(channel), stream)
        publication = self.publish(stream, channel)
        return self.archive.wait_recording("aeron:ipc", stream, publication.session_id), publication

    def publish(self, stream: int, channel: object) -> Publication:
        publication = self.archive.client.add_exclusive_publication(str(channel), stream)
        self.opened.append(publication)
        publication.wait_connected(10)
        return publication

    def grow(self, frames: int, body: bytes = BODY) -> int:
        position = self.publication.offer_batch([body] * frames)
        self.archive.wait_position(self.recording_id, position)
        return int(position)

    def stop(self) -> None:
        self.publication.close()
        wait_until(lambda: self.archive.stop_position(self.recording_id) is not None, 20, "the recording to stop")

    def back_up(self, store: Store | Path, **choice: Any) -> BackupReport:
        store = open_backup(str(store)) if isinstance(store, Path) else store
        return backup(self.folder, store, aeron_dir=str(self.aeron_dir), **choice)


@pytest.fixture
def source(servers: ArchivingMediaDriver) -> Iterator[Source]:
    with Archive(aeron_dir=servers.aeron_dir) as archive:
        source = Source(servers, archive)
        yield source
        for publication in source.opened:
            publication.close()


def assert_verified(folder: Path, checksum: RecordChecksum = RecordChecksum.AUTO) -> None:
    """As `archive verify --all-segments` passes."""
    with Catalog(folder) as catalog:
        assert catalog.info().damage == ""
        for entry in catalog.entries():
            report = catalog.verify(entry, all_segments=True, checksum=checksum)
            assert report.outcome in {VerifyOutcome.OK, VerifyOutcome.SKIPPED}, report
            assert "died" not in report.text


def digest(folder: Path, recording_id: int = 0) -> tuple[int, int, str]:
    """Start, end, and the SHA-256 of the messages between."""
    values = hashlib.sha256()
    with Folder(folder) as opened:
        extent = opened.extent(recording_id)
        for batch in opened.read(recording_id, columns=["position", "value"]):
            values.update(repr(batch.to_pylist()).encode())
    return extent.start_position, extent.limit_position, values.hexdigest()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def restored(store: Path, to: Path, *recordings: int, **choice: Any) -> RestoreReport:
    return restore(open_backup(str(store)), to, recordings, **choice)


# -- backing up a live folder ----------------------------------------------------------------------------------------------


def test_backups_under_load_are_consistent(source: Source, tmp_path: Path) -> None:
    """At each step of the copying the archive records more."""
    store = tmp_path / "backup"
    numbers = itertools.count()

    def publish(count: int) -> int:
        chosen = list(itertools.islice(numbers, count))
        bodies, reserved = [message(one) for one in chosen], [one * RESERVED_FACTOR for one in chosen]
        return int(source.publication.offer_batch(bodies, reserved_values=reserved, timeout=30))

    ends = []
    for number in range(4):
        source.archive.wait_position(source.recording_id, publish(200))
        report = source.back_up(store, on_progress=lambda _done, _total: publish(20))
        assert not report.missing
        assert_verified(store)
        folder = tmp_path / f"restored-{number}"
        restored(store, folder)
        assert_verified(folder)
        assert assert_recorded(folder, source.recording_id) > 0
        with Folder(folder) as opened:
            ends.append(opened.extent(source.recording_id).limit_position)
            assert opened.time_index(source.recording_id).is_believed
            assert not opened.info().has_mark_file
    assert ends == sorted(set(ends))
    # What was restored are the archive's own bytes.
    for name in names(folder):
        if name.endswith(".rec"):
            base = int(name[2:-4])
            used = min(max(ends[-1] - base, 0), SEGMENT_LENGTH)
            assert (folder / name).read_bytes()[:used] == (source.folder / name).read_bytes()[:used]
            assert not any((folder / name).read_bytes()[used:])


def test_a_second_backup_copies_what_has_changed(source: Source, tmp_path: Path) -> None:
    source.grow(8 * SEGMENT_LENGTH // FRAME)
    for name in names(source.folder):
        if name.endswith(".rec"):  # as if they had been written a while ago
            os.utime(source.folder / name, ns=(10**18, 10**18))
    first = source.back_up(tmp_path / "backup")
    assert first.copied_bytes > 8 * SEGMENT_LENGTH
    known = {path.name: path.stat() for path in (tmp_path / "backup").glob("*.rec")}
    source.grow(10)
    second = source.back_up(tmp_path / "backup")
    assert second.copied_bytes < SEGMENT_LENGTH / 4
    assert second.bytes > first.bytes
    changed = [path.name for path in (tmp_path / "backup").glob("*.rec") if path.stat() != known.get(path.name)]
    assert changed == [f"0-{8 * SEGMENT_LENGTH}.rec"]
    assert_verified(tmp_path / "backup")


def test_a_change_within_one_tick_of_the_clock_is_seen(source: Source, tmp_path: Path) -> None:
    """A file whose times are as before, but which had just changed when it was copied, is compared by its bytes."""
    source.grow(SEGMENT_LENGTH // FRAME + 5)
    source.stop()
    source.back_up(tmp_path / "backup")
    (entry,) = [one for one in manifest_of(tmp_path / "backup")["files"] if one["name"] == "0-0.rec"]
    assert entry["ctime_ns"] == 0
    report = source.back_up(tmp_path / "backup")
    assert report.copied_files == 1  # the catalog
    assert digest(tmp_path / "backup") == digest(source.folder)


class At:
    """Does something once, when a backup has looked at what it copies: before the copying, in its first round."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
        self._change: Callable[[], object] | None = change
        original = backup_snapshot.Snapshot.segments

        def segments(snapshot: Any, folder: Path) -> Any:
            change, self._change = self._change, None
            if change is not None:
                change()
            return original(snapshot, folder)

        monkeypatch.setattr(backup_snapshot.Snapshot, "segments", segments)


def test_segments_that_are_purged_meanwhile(source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source.grow(4 * SEGMENT_LENGTH // FRAME)
    source.back_up(tmp_path / "backup")
    before = digest(tmp_path / "backup")
    source.grow(2 * SEGMENT_LENGTH // FRAME + 3)

    def purge() -> None:
        source.archive.purge_segments(source.recording_id, 3 * SEGMENT_LENGTH)
        wait_until(lambda: not (source.folder / "0-0.rec").exists(), 20, "the deletion")

    At(monkeypatch, purge)
    report = source.back_up(tmp_path / "backup")
    assert (report.rounds, report.missing, report.kept) == (2, (), ())
    assert_verified(tmp_path / "backup")
    assert digest(tmp_path / "backup")[:2] == (3 * SEGMENT_LENGTH, 6 * SEGMENT_LENGTH + 3 * FRAME)
    assert before[:2] == (0, 4 * SEGMENT_LENGTH)
    assert not (tmp_path / "backup" / "0-0.rec").exists()


def begin_another(source: Source) -> None:
    """A second recording, of five frames, which goes on."""
    other, publication = source.begin(STREAM + 1)
    source.archive.wait_position(other, publication.offer_batch([BODY] * 5))


def test_a_recording_that_is_purged_meanwhile(source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source.grow(10)
    source.stop()
    begin_another(source)
    At(monkeypatch, lambda: source.archive.purge_recording(source.recording_id))
    report = source.back_up(tmp_path / "backup")
    assert (report.recordings, report.missing) == (1, ())
    assert_verified(tmp_path / "backup")


def test_a_recording_that_is_purged_while_the_time_indexes_are_listed(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.grow(10)
    source.stop()
    begin_another(source)
    index, original = source.folder / f"{source.recording_id}.time-index", backup_module.recording_of

    def purge_first(name: str) -> int | None:
        if name == index.name and index.exists():
            source.archive.purge_recording(source.recording_id)
            wait_until(lambda: not index.exists(), 20, "the deletion")
        return original(name)

    monkeypatch.setattr(backup_module, "recording_of", purge_first)
    report = source.back_up(tmp_path / "backup")
    assert (report.recordings, report.missing) == (1, ())
    assert_verified(tmp_path / "backup")


@pytest.mark.parametrize("is_extended", [False, True], ids=["truncated", "and extended"])
def test_a_recording_that_is_truncated_meanwhile(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_extended: bool
) -> None:
    """When its first segment is copied already, it loses nearly all of it, and gets other bytes."""
    end = source.grow(2 * SEGMENT_LENGTH // FRAME + 40)
    source.stop()
    monkeypatch.setattr(backup_module, "WORKERS", 1)
    changes = iter([None])

    def truncate(done: int, _total: int) -> None:
        if done < SEGMENT_LENGTH + FRAME or next(changes, "changed") is not None:
            return
        archive = source.archive
        archive.truncate_recording(source.recording_id, 2 * FRAME)
        wait_until(lambda: not (source.folder / f"0-{SEGMENT_LENGTH}.rec").exists(), 20, "the deletion")
        if is_extended:  # by other bytes, further than before
            recording = archive.recording(source.recording_id)
            assert recording is not None
            archive.stop_recording(CHANNEL, STREAM)
            archive.extend_recording(source.recording_id, CHANNEL, STREAM)
            source.publication = source.publish(STREAM, channel_to_extend(recording, 2 * FRAME))
            assert source.grow(3 * SEGMENT_LENGTH // FRAME, b"y" * 992) > end

    report = source.back_up(tmp_path / "backup", on_progress=truncate)
    assert next(changes, "changed") == "changed"
    assert report.rounds > 1
    assert report.missing == ()
    assert_verified(tmp_path / "backup")
    restored(tmp_path / "backup", tmp_path / "restored")
    start, stop, values = digest(tmp_path / "restored")
    with Folder(source.folder, aeron_dir=source.aeron_dir) as folder:
        rows = folder.read(0, start, stop, limit=stop, columns=["position", "value"])
        assert hashlib.sha256(b"".join(repr(batch.to_pylist()).encode() for batch in rows)).hexdigest() == values
    assert stop == (3 * SEGMENT_LENGTH + 2 * FRAME if is_extended else 2 * FRAME)


def test_the_ledger_never_names_what_the_backup_lacks(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry and the rows that it names, both written while the positions are taken."""
    channel = "aeron:ipc?alias=aeron-spark-ledger"
    stream = 1_396_788_556
    monkeypatch.setattr(backup_snapshot, "is_ledger", lambda recording: recording.stream_id == stream)
    archive = source.archive
    archive.start_recording(channel, stream)
    ledger = source.publish(stream, channel)
    ledger_id = archive.wait_recording("aeron-spark-ledger", stream, ledger.session_id)

    def commit() -> None:
        end = source.grow(3)
        archive.wait_position(ledger_id, ledger.offer_batch([end.to_bytes(8, "little")]))

    commit()
    folder_type = backup_snapshot.Folder
    extents, extent = folder_type.extents, folder_type.extent
    # Between any two reads of positions.
    monkeypatch.setattr(folder_type, "extents", lambda *of: (commit(), extents(*of), commit())[1])
    monkeypatch.setattr(folder_type, "extent", lambda *of: (commit(), extent(*of), commit())[1])
    source.back_up(tmp_path / "backup")
    monkeypatch.undo()
    end = digest(tmp_path / "backup")[1]
    with Folder(tmp_path / "backup") as folder:
        values = [value.as_py() for batch in folder.read(ledger_id) for value in batch.column("value")]
    named = [int.from_bytes(value, "little") for value in values]
    assert named
    assert max(named) <= end


def copied(source: Source, to: Path) -> Path:
    """The folder as it is when nobody runs on it, its archive having died."""
    shutil.copytree(source.folder, to)
    (to / "archive-mark.dat").unlink()
    return to


def test_an_archive_that_died(source: Source, tmp_path: Path) -> None:
    """As the folder is after kill -9: the recording is open, and its mark file is not."""
    source.grow(SEGMENT_LENGTH // FRAME + 7)
    copy = copied(source, tmp_path / "died")
    with Catalog(copy, writable=True) as catalog:  # the entry's checksum is that of its new values in the backup
        catalog.checksum(catalog.entries()[0], RecordChecksum.CRC_32C, all_segments=True, dry=False)
    backup(copy, open_backup(str(tmp_path / "backup")))
    assert_verified(tmp_path / "backup", RecordChecksum.CRC_32C)
    assert digest(tmp_path / "backup")[1] == SEGMENT_LENGTH + 7 * FRAME


# -- interruptions ---------------------------------------------------------------------------------------------------------


class _Failing:
    """A store whose call `number` fails, and all later ones: as if the process had died there."""

    def __init__(self, store: Store, number: int) -> None:
        self._store = store
        self.left = number

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in {"create", "put", "move", "delete", "sync"}:
            return found

        def call(*arguments: Any, **choice: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise StorageError("died here")
            return found(*arguments, **choice)

        return call


def test_a_backup_that_is_interrupted_anywhere_leaves_one_whole(source: Source, tmp_path: Path) -> None:
    source.grow(SEGMENT_LENGTH // FRAME + 5)
    source.back_up(tmp_path / "first")
    old = digest(tmp_path / "first")
    source.grow(SEGMENT_LENGTH // FRAME)
    source.archive.purge_segments(source.recording_id, SEGMENT_LENGTH)
    wait_until(lambda: not (source.folder / "0-0.rec").exists(), 20, "the deletion")
    new = (SEGMENT_LENGTH, 2 * SEGMENT_LENGTH + 5 * FRAME)
    seen = set()
    for number in range(100):
        store = tmp_path / f"store-{number}"
        shutil.copytree(tmp_path / "first", store)
        failing = _Failing(open_backup(str(store)), number)
        with contextlib.suppress(StorageError):
            source.back_up(failing)  # type: ignore[arg-type]
        restored(store, tmp_path / "restored")
        assert_verified(tmp_path / "restored")
        found = digest(tmp_path / "restored")
        assert found == old or found[:2] == new
        seen.add(found[:2])
        shutil.rmtree(tmp_path / "restored")
        source.back_up(store)
        assert_verified(store)
        assert digest(store)[:2] == new
        assert names(store / "incoming") == []
        shutil.rmtree(store)
        if failing.left >= 0:
            break
    assert seen == {old[:2], new}
    assert number > 8


def test_a_killed_backup_goes_on(source: Source, tmp_path: Path) -> None:
    source.grow(32 * SEGMENT_LENGTH // FRAME)
    store = tmp_path / "backup"
    arguments = ["archive", "backup", source.folder, store, "--dir", source.aeron_dir, "--rate", "400k"]
    with Process("backup", [sys.executable, "-m", "aeron_spark", *arguments]) as process:
        wait_until((store / PROGRESS).exists, 60, "files that are copied")
        process.kill()
    copied = len(json.loads((store / PROGRESS).read_bytes())["files"])
    assert 0 < copied < 32
    report = source.back_up(store)
    assert report.copied_files <= report.files - copied + 1  # the tail may have changed
    assert_verified(store)
    assert not list((store / "incoming").iterdir())


def test_what_a_backup_copied_that_gave_up_stays(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder changes in each round: the next run copies no segment once more."""
    source.grow(4 * SEGMENT_LENGTH // FRAME)
    source.stop()
    monkeypatch.setattr(backup_module, "ROUNDS", 1)
    monkeypatch.setattr(backup_snapshot.Snapshot, "why_broken", lambda *_: "recording 7 was purged")
    with pytest.raises(DataLossError, match=r"recording 7 was purged.*stays for the next try"):
        source.back_up(tmp_path / "backup")
    monkeypatch.undo()
    assert source.back_up(tmp_path / "backup").copied_files == 1  # the catalog
    assert_verified(tmp_path / "backup")


def test_two_backups_at_a_time(source: Source, tmp_path: Path) -> None:
    source.grow(1)
    store = open_backup(str(tmp_path / "backup"))
    with store.lock(), pytest.raises(UsageError, match="another backup writes"):
        source.back_up(tmp_path / "backup")


# -- refusals and losses ---------------------------------------------------------------------------------------------------


def test_places_that_are_refused(source: Source, tmp_path: Path) -> None:
    source.grow(1)
    copy = tmp_path / "copy"
    shutil.copytree(source.folder, copy)
    with pytest.raises(UsageError, match=r"holds 0\S+, but no backup\.json"):
        source.back_up(copy)
    for place in (source.folder, source.folder / "within"):
        with pytest.raises(UsageError, match="lie in each other"):
            source.back_up(place)
    with pytest.raises(DataLossError, match="is no archive folder"):
        backup(tmp_path, open_backup(str(tmp_path / "backup")))
    with pytest.raises(UsageError, match=r"is no backup: there is no backup\.json"):
        restored(tmp_path / "nothing", tmp_path / "restored")


def test_an_archive_that_began_anew_does_not_replace_the_backup(
    source: Source, tmp_path: Path, aeron_dir: Path
) -> None:
    source.grow(3)
    source.back_up(tmp_path / "backup")
    before = digest(tmp_path / "backup")
    empty = tmp_path / "anew"
    empty.mkdir()
    header = (source.folder / "archive.catalog").read_bytes()[:32]
    (empty / "archive.catalog").write_bytes(header[:8] + bytes(8) + header[16:] + bytes(4064))
    with pytest.raises(UsageError, match="is the backup of another archive") as refused:
        backup(empty, open_backup(str(tmp_path / "backup")))
    assert f"aeron-spark archive restore {tmp_path / 'backup'} {empty}" in str(refused.value)
    assert digest(tmp_path / "backup") == before


def test_a_segment_that_the_folder_lost(source: Source, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source.grow(3 * SEGMENT_LENGTH // FRAME + 2)
    source.stop()
    folder, store = copied(source, tmp_path / "folder"), tmp_path / "backup"
    backup(folder, open_backup(str(store)))
    whole = digest(folder)
    lost = f"0-{SEGMENT_LENGTH}.rec"
    (folder / lost).unlink()
    assert main(["archive", "backup", str(folder), str(store)]) == 1
    told = capsys.readouterr()
    assert f"ERR: {lost} is missing in {folder}; the backup keeps the one that it had" in told.err
    assert f"aeron-spark archive restore {store} {folder}" in told.err
    assert digest(store) == whole
    assert main(["archive", "restore", str(store), str(folder)]) == 0
    assert digest(folder) == whole
    assert_verified(folder)
    # One that no backup has.
    (folder / lost).unlink()
    assert main(["archive", "backup", str(folder), str(tmp_path / "late"), "--json"]) == 1
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["missing"] == [lost]
    assert restored(tmp_path / "late", tmp_path / "half").missing == (lost,)


# -- restoring -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(source: Source, tmp_path: Path) -> Path:
    """A backup of two recordings, 0 of 2 segments and 12 frames, 1 of 5 frames; the archive goes on."""
    source.grow(2 * SEGMENT_LENGTH // FRAME + 12)
    begin_another(source)
    source.back_up(tmp_path / "backup")
    return tmp_path / "backup"


def manifest_of(store: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((store / MANIFEST).read_bytes())
    return found


def test_one_recording_and_then_the_other(saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "restored"
    assert restored(saved, folder, 1).recordings == (1,)
    assert_verified(folder)
    assert digest(folder, 1) == digest(saved, 1)
    with Catalog(folder) as catalog:
        assert catalog.info().next_recording_id == 2
    # Who wrote the folder last, and how: after a crash the next start asks it.
    own = folder / "archive.catalog"
    own.write_bytes(own.read_bytes()[:20] + b"last writer!" + own.read_bytes()[32:])
    assert restored(saved, folder).recordings == (0,)
    assert own.read_bytes()[20:32] == b"last writer!"
    assert_verified(folder)
    assert digest(folder) == digest(saved)
    assert restored(saved, folder).files == 0
    assert (folder / "0-0.rec").stat().st_mode & 0o777 == 0o640
    assert (folder / "0-0.rec").stat().st_mtime_ns == next(
        file["mtime_ns"] for file in manifest_of(saved)["files"] if file["name"] == "0-0.rec"
    )
    with pytest.raises(UsageError, match="has no recording 7; it has 0, 1"):
        restored(saved, folder, 7)


def test_an_archive_goes_on_with_what_was_restored(saved: Path, tmp_path: Path, source: Source) -> None:
    folder = tmp_path / "restored"
    restored(saved, folder)
    settings = {"aeron.threading.mode": "SHARED", "aeron.archive.segment.file.length": SEGMENT_LENGTH}
    other_dir = Path(f"{source.aeron_dir}-again")
    try:
        with ArchivingMediaDriver(folder, other_dir, settings=settings), Archive(aeron_dir=other_dir) as archive:
            recording = archive.recording(0)
            assert recording is not None
            assert recording.stop_position is not None
            archive.extend_recording(0, CHANNEL, STREAM)
            with archive.client.add_exclusive_publication(
                channel_to_extend(recording, recording.stop_position), STREAM
            ) as publication:
                publication.wait_connected(10)
                archive.wait_position(0, publication.offer_batch([BODY] * 200))
            with pytest.raises(UsageError, match="active mark file detected"):
                restored(saved, folder)
    finally:
        shutil.rmtree(other_dir, ignore_errors=True)
    assert_verified(folder)


def test_a_lost_catalog(source: Source, saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The segments have more than the backup: what was recorded after it is found, not given up."""
    end = source.grow(SEGMENT_LENGTH // FRAME)
    later, publication = source.begin(STREAM + 2)
    source.archive.wait_position(later, publication.offer_batch([BODY]))
    folder = copied(source, tmp_path / "folder")
    (folder / "archive.catalog").write_bytes(b"\0" * 4096)
    with pytest.raises(AeronError):
        restored(saved, folder)
    (folder / "archive.catalog").unlink()
    report = restored(saved, folder)
    assert (report.reopened, report.unknown, report.files) == ((0,), (later,), 0)
    assert main(["archive", "verify", str(folder), "--repair"]) == 0
    assert digest(folder)[1] == end
    assert_verified(folder)
    with Catalog(folder) as catalog:
        assert catalog.info().next_recording_id == later + 1


def test_other_bytes_are_not_overwritten(saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "restored"
    folder.mkdir()
    (folder / "0-0.rec").write_bytes(b"mine" + bytes(SEGMENT_LENGTH - 4))
    with pytest.raises(UsageError, match=r"0-0\.rec has other bytes than the backup, and is not overwritten"):
        restored(saved, folder)
    assert names(folder) == ["0-0.rec"]
    link = tmp_path / "link"
    link.symlink_to(folder)
    with pytest.raises(UsageError, match="is a symbolic link"):
        restored(saved, link)


def _changed(of: str, **fields: object) -> Callable[[dict[str, Any]], object]:
    def change(manifest: dict[str, Any]) -> None:
        next(file for file in manifest["files"] if file["name"] == of).update(fields)

    return change


NAMES = [
    "../0-0.rec",
    "/etc/0-0.rec",
    "archive-mark.dat",
    "00-0.rec",
    "0-0.rec\n",
    "",
    "0-0.rec.del",
    "incoming/0-0.rec",
]
HOSTILE: dict[str, Callable[[dict[str, Any]], object]] = {
    "twice": lambda manifest: manifest["files"].append(manifest["files"][0]),
    "negative": _changed("0-0.rec", length=-1),
    "longer than its file": _changed("0-0.rec", length=SEGMENT_LENGTH + 1),
    "huge": _changed("0-0.rec", file_length=1 << 40),
    "no number": _changed("0-0.rec", length=True),
    "fraction": _changed("0-0.rec", length=1.5),
    "hole of a segment": _changed("0-0.rec", hole_end=4096),
    "run": _changed("0-0.rec", run="../../../../x/y"),
    "digest": _changed("0-0.rec", sha256="0" * 63),
    "more fields": _changed("0-0.rec", mode=0o777),
    "shorter than the catalog says": _changed("0-0.rec", length=64),
    "missing by another name": lambda manifest: manifest["missing"].append("../x"),
    "without a segment": lambda manifest: manifest["files"].remove(
        next(file for file in manifest["files"] if file["name"] == "0-0.rec")
    ),
    "without catalog": lambda manifest: manifest["files"].remove(
        next(file for file in manifest["files"] if file["name"] == "archive.catalog")
    ),
    "version": lambda manifest: manifest.update(version=2),
    "format": lambda manifest: manifest.update(format="tar"),
    "files": lambda manifest: manifest.update(files={}),
}


def test_hostile_manifests(saved: Path, tmp_path: Path) -> None:
    before = names(tmp_path)
    for about, change in HOSTILE.items():
        manifest = manifest_of(tmp_path / "backup")
        change(manifest)
        kept = (saved / MANIFEST).read_bytes()
        (saved / MANIFEST).write_text(json.dumps(manifest))
        with pytest.raises(DataLossError):
            pytest.fail(f"{about}: {restored(saved, tmp_path / 'restored')}")
        assert names(tmp_path) == before, about
        (saved / MANIFEST).write_bytes(kept)
    for name in NAMES:
        manifest = manifest_of(saved)
        _changed("0-0.rec", name=name)(manifest)
        with pytest.raises(DataLossError, match="is no file of an archive's folder"):
            Manifest.parse_untrusted(json.dumps(manifest).encode(), "here")
    for text in ("", "[" * 100_000, "{}", "1" * 10_000, '"' + "x" * 100, "null", "\ud800"):
        (saved / MANIFEST).write_bytes(text.encode("utf-8", "surrogatepass"))
        with pytest.raises(DataLossError, match="is no manifest of a backup"):
            restored(saved, tmp_path / "restored")


def _with_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _with_link(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (_with_pipe, "is no regular file"),
        (_with_link, "Too many levels of symbolic links"),
        (Path.unlink, "is missing, though the backup's manifest names it"),
        (lambda path: path.write_bytes(bytes(SEGMENT_LENGTH)), "has other bytes than its manifest says"),
        (lambda path: path.write_bytes(b""), "has other bytes than its manifest says"),
    ],
    ids=["pipe", "link", "gone", "other bytes", "empty"],
)
def test_hostile_files(saved: Path, tmp_path: Path, change: Callable[[Path], object], text: str) -> None:
    change(saved / f"0-{SEGMENT_LENGTH}.rec")
    with pytest.raises(AeronError, match=text):
        restored(saved, tmp_path / "restored")
    assert not (tmp_path / "restored" / "archive.catalog").exists()
    assert not [name for name in names(tmp_path / "restored") if name.startswith(".")]
    # The other recording is not concerned.
    assert restored(saved, tmp_path / "restored", 1).recordings == (1,)


def test_a_disk_that_is_too_small_is_told_before_anything_is_written(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=1000))
    with pytest.raises(StorageError, match="1,000 are free"):
        restored(saved, tmp_path / "restored")
    assert not (tmp_path / "restored").exists()
