"""Goal: a backup in a store that shows a file from its opening on, and moves over a file by deleting it first, is never lost.

Method: a filesystem of pyarrow with HDFS's semantics over a local folder, each step of which fails once, and all later ones:
as if the process had died there. What is there then is restored, and the next backup finishes. At last a store as it is,
by the commands.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

from aeron_spark import Archive, ArchivingMediaDriver
from aeron_spark.archive import backup as backup_module
from aeron_spark.archive import backup_store
from aeron_spark.archive.backup_files import MANIFEST, NEW_MANIFEST, StoredFile
from aeron_spark.archive.backup_store import Store, open_backup
from aeron_spark.archive.restore import restore
from aeron_spark.cli.__main__ import main
from aeron_spark.errors import StorageError, UsageError
from tests.kit import s3
from tests.python.test_archive_backup import FRAME, Source, assert_verified, digest
from tests.system.crashes import SEGMENT_LENGTH

FOREVER = 1 << 30


class _Stream:
    """A file whose bytes arrive in two steps."""

    closed = False

    def __init__(self, hadoop: _Hadoop, path: Path) -> None:
        self._hadoop = hadoop
        self._file = path.open("wb", buffering=0)

    def write(self, data: Any) -> int:
        """Half of it, then the rest."""
        view = memoryview(data)
        for part in (view[: len(view) // 2], view[len(view) // 2 :]):
            self._hadoop.step()
            self._file.write(part)
        return len(view)

    def flush(self) -> None:
        """Nothing is buffered."""

    def tell(self) -> int:
        """How much was written."""
        return self._file.tell()

    def close(self) -> None:
        """Also after a death."""
        self.closed = True
        self._file.close()


class _Hadoop(fs.FileSystemHandler):  # type: ignore[misc]
    """As pyarrow works on HDFS (`hdfs.cc`), over a local folder; steps after the first `left` fail."""

    def __init__(self, left: int) -> None:
        self.left = left
        self._local = fs.LocalFileSystem()

    def step(self) -> None:
        """One change of the store."""
        self.left -= 1
        if self.left < 0:
            raise OSError("died here")

    def get_type_name(self) -> str:
        return "hdfs"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> Any:
        return self._local.get_file_info(paths)

    def get_file_info_selector(self, selector: Any) -> Any:
        return self._local.get_file_info(selector)

    def open_input_stream(self, path: str) -> Any:
        return self._local.open_input_stream(path)

    def open_input_file(self, path: str) -> Any:
        return self._local.open_input_file(path)

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        self.step()
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        return pa.PythonFile(_Stream(self, Path(path)), mode="wb")

    def move(self, source: str, target: str) -> None:
        if Path(target).exists():
            self.step()
            Path(target).unlink()
        self.step()
        Path(source).rename(target)

    def delete_file(self, path: str) -> None:
        self.step()
        Path(path).unlink()

    def _unused(self, *_arguments: object) -> None:
        raise NotImplementedError

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = copy_file = open_append_stream = _unused


@pytest.fixture
def source(servers: ArchivingMediaDriver) -> Iterator[Source]:
    with Archive(aeron_dir=servers.aeron_dir) as archive:
        source = Source(servers, archive)
        yield source
        source.publication.close()


def opened(monkeypatch: pytest.MonkeyPatch, folder: Path, left: int = FOREVER) -> tuple[Store, _Hadoop]:
    """The store in that folder."""
    hadoop = _Hadoop(left)
    monkeypatch.setattr(
        backup_store, "open_filesystem", lambda _uri, _arguments: (fs.PyFileSystem(hadoop), str(folder))
    )
    return open_backup("hdfs://cluster/backup"), hadoop


@pytest.mark.parametrize("is_first", [True, False], ids=["the first", "a later one"])
def test_a_backup_that_dies_at_any_step_leaves_one_whole(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_first: bool
) -> None:
    monkeypatch.setattr(backup_module, "WORKERS", 1)
    old = None
    source.grow(5)
    (tmp_path / "before").mkdir()
    if not is_first:
        source.back_up(opened(monkeypatch, tmp_path / "before")[0])
        old = 5 * FRAME
        source.grow(SEGMENT_LENGTH // FRAME)
    new = old + SEGMENT_LENGTH if old else 5 * FRAME
    seen = set()
    for number in range(200):
        folder, out = tmp_path / f"store-{number}", tmp_path / "restored"
        shutil.copytree(tmp_path / "before", folder)
        store, hadoop = opened(monkeypatch, folder, number)
        with contextlib.suppress(StorageError):
            source.back_up(store)
        store = opened(monkeypatch, folder)[0]
        end = None
        with contextlib.suppress(UsageError) if is_first else contextlib.nullcontext():
            restore(store, out)
            assert_verified(out)
            end = digest(out)[1]
            shutil.rmtree(out)
        assert end in (old, new)
        seen.add(((folder / MANIFEST).exists(), (folder / NEW_MANIFEST).exists(), end))
        source.back_up(store)
        restore(store, out)
        assert digest(out)[1] == new
        shutil.rmtree(out)
        shutil.rmtree(folder)
        if hadoop.left >= 0:
            break
    assert hadoop.left >= 0
    assert {end for _, _, end in seen} == {old, new}
    assert (
        is_first or (False, True, new) in seen
    )  # the moment in which HDFS has deleted the one, and not renamed the other


def test_a_rate_bounds_all_bytes_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause is no credit for what comes behind it."""
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(backup_module, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
    limiter = backup_module.Limiter(100)
    for _ in range(10):
        limiter.take(50)
    assert now == 5.0
    now += 100
    limiter.take(50)
    assert now == 105.5


def test_answers_of_fewer_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever restores reads nothing that the store did not answer."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.KEYS["access_key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.KEYS["secret_key"])
    content = bytes(range(256)) * 10
    facts = {"hole_end": 0, "sha256": "", "mtime_ns": 0, "ctime_ns": 0, "run": ""}
    file = StoredFile(name=MANIFEST, length=len(content), file_length=len(content), **facts)
    with s3.store(tmp_path / "nothing") as store, s3.hindered(store) as (hindrance, before):
        with store.filesystem.open_output_stream(f"{store.prefix}/{MANIFEST}") as stream:
            stream.write(content)
        backup = open_backup(before.uri)
        assert backup.read(MANIFEST, len(content)) == b"".join(backup.chunks(MANIFEST, file)) == content
        hindrance.answer = s3.shortened(content, 3)
        for ask in (lambda: backup.read(MANIFEST, len(content)), lambda: list(backup.chunks(MANIFEST, file))):
            with pytest.raises(
                StorageError, match=rf"day.*/{MANIFEST}: fewer bytes were answered than the 2560 at offset 0"
            ):
                ask()


def test_an_object_store(
    servers: ArchivingMediaDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.KEYS["access_key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.KEYS["secret_key"])
    with Archive(aeron_dir=servers.aeron_dir) as archive, s3.store(tmp_path / "nothing") as store:
        source = Source(servers, archive)
        source.grow(SEGMENT_LENGTH // FRAME + 3)
        uri = store.uri.replace("/day?", "/backup?")
        options = ["--dir", str(source.aeron_dir)]
        for _ in range(2):
            assert main(["archive", "backup", str(source.folder), uri, *options]) == 0
            end = source.grow(SEGMENT_LENGTH // FRAME)
        assert main(["archive", "restore", uri, str(tmp_path / "restored"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["recordings"] == [0]
    assert_verified(tmp_path / "restored")
    assert digest(tmp_path / "restored")[1] == end - SEGMENT_LENGTH
