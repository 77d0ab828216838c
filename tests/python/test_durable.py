"""Goal: what got its final name was on the disk before, and who says that all is written has made the names durable, too.

Method: the calls that sync, rename and link are watched, in their order, with the paths that the system knows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aeron_spark import Folder
from aeron_spark.archive import backup as backup_module
from aeron_spark.archive.backup import backup
from aeron_spark.archive.backup_files import CATALOG, INCOMING, MANIFEST, PROGRESS, Manifest
from aeron_spark.archive.backup_store import open_backup
from aeron_spark.archive.export import export
from aeron_spark.archive.ranges import Range
from aeron_spark.archive.restore import restore
from aeron_spark.small_files import sync_path
from aeron_spark.spark.lake import Landing
from aeron_spark.testing import RecordedFolder, Servers


class Watched:
    """What the disk was asked, in order: "sync" and a path, or "name", a path and its new one."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, ...]] = []
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, self._sync(getattr(os, name)))
        for name in ("rename", "replace", "link"):
            patch.setattr(os, name, self._name(getattr(os, name)))

    def _sync(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def sync(descriptor: int) -> None:
            real(descriptor)
            self.calls.append(("sync", str(Path(f"/proc/self/fd/{descriptor}").readlink())))

        return sync

    def _name(self, real: Callable[..., None]) -> Callable[..., None]:
        def name(source: Any, target: Any, **choice: Any) -> None:
            self.calls.append(("name", os.path.realpath(source), os.path.realpath(target)))
            real(source, target, **choice)

        return name

    def assert_synced(self, path: Path, *, before: int | None = None) -> None:
        """In the calls before that one."""
        assert ("sync", str(path)) in self.calls[:before], f"{path} is not on the disk"

    def assert_names_synced(self, folder: Path) -> list[Path]:
        """Each file of a folder was synced before it got its name, and the names were, after the last of them."""
        named = [(at, *map(Path, call[1:])) for at, call in enumerate(self.calls) if call[0] == "name"]
        named = [one for one in named if one[2].parent == folder]
        for at, source, _ in named:
            self.assert_synced(source, before=at)
        assert ("sync", str(folder)) in self.calls[max(at for at, *_ in named) :], "the names are not on the disk"
        return [target for *_, target in named]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Two recordings, of four segments each."""
    with Servers(settings={"aeron.archive.segment.file.length": "64k"}) as servers:
        recorded = RecordedFolder(servers)
        for _ in range(2):
            recorded.write([bytes(1000)] * 200, channel="aeron:ipc?term-length=64k")
        yield recorded.path


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def test_a_manifest_names_what_is_on_the_disk(folder: Path, tmp_path: Path, watched: Watched) -> None:
    """Until it has its name, the backup before counts."""
    target = (tmp_path / "backup").resolve()
    backup(folder, open_backup(str(target)))
    (at,) = (at for at, call in enumerate(watched.calls) if call[0] == "name" and call[2] == str(target / MANIFEST))
    manifest = Manifest.parse_untrusted((target / MANIFEST).read_bytes(), MANIFEST)
    assert len(manifest.files) > 8
    for file in manifest.files:
        watched.assert_synced(target / file.incoming, before=at)
    watched.assert_synced(target / INCOMING, before=at)
    watched.assert_synced(Path(watched.calls[at][1]), before=at)
    # Files have one of two names, so that which of them is durable does not matter.
    assert ("sync", str(target)) in watched.calls[at:]


def test_progress_names_what_is_on_the_disk(
    folder: Path, tmp_path: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that goes on takes over what is listed. The list is written after each file here."""
    monkeypatch.setattr(backup_module, "PROGRESS_S", 0)
    target = (tmp_path / "backup").resolve()
    backup(folder, open_backup(str(target)))
    lists = [at for at, call in enumerate(watched.calls) if call[0] == "name" and call[2] == str(target / PROGRESS)]
    assert len(lists) > 8
    for count, at in enumerate(lists, 1):
        synced = {call[1] for call in watched.calls[:at] if call[0] == "sync" and call[1].endswith((".rec", "-index"))}
        assert len(synced) >= count


@pytest.mark.parametrize("already", [[], [1]], ids=["alone", "beside another"])
def test_what_is_restored_is_on_the_disk(folder: Path, tmp_path: Path, watched: Watched, already: list[int]) -> None:
    store, to = open_backup(str(tmp_path / "backup")), (tmp_path / "restored").resolve()
    backup(folder, store)
    if already:
        restore(store, to, already)
    watched.calls.clear()
    report = restore(store, to, [0])
    named = watched.assert_names_synced(to)
    assert len(named) == report.files + 1 > 4
    assert named[-1] == to / CATALOG


def test_an_export_is_on_the_disk_before_it_has_its_name(folder: Path, tmp_path: Path, watched: Watched) -> None:
    with Folder(folder) as opened:
        extent = opened.extent(0)
        export(
            opened, [Range(0, extent.start_position, extent.limit_position, extent.limit_position)], tmp_path / "x.csv"
        )
    assert watched.assert_names_synced(tmp_path.resolve()) == [tmp_path.resolve() / "x.csv"]


def test_a_batch_has_its_name_when_all_of_it_is_on_the_disk(tmp_path: Path, watched: Watched) -> None:
    table = tmp_path.resolve()
    Landing(table)._write(None, "_landing-", 0, 0, {})
    (at,) = (at for at, call in enumerate(watched.calls) if call[0] == "name")
    making = Path(watched.calls[at][1])
    watched.assert_synced(making / "_bounds.json", before=at)
    watched.assert_names_synced(table)


def test_a_sync_keeps_no_descriptor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor one that fails."""

    def fails(_descriptor: int) -> None:
        raise OSError(5, "injected")

    sync_path(tmp_path)
    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="injected"):
        sync_path(tmp_path)
    opened = [os.path.realpath(descriptor) for descriptor in Path("/proc/self/fd").iterdir()]
    assert str(tmp_path.resolve()) not in opened


def test_a_backup_may_be_reached_through_a_link(folder: Path, tmp_path: Path) -> None:
    """As /backup of a disk that is mounted elsewhere."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    backup(folder, open_backup(str(tmp_path / "link")))
    assert restore(open_backup(str(tmp_path / "disk")), tmp_path / "restored").recordings == (0, 1)
