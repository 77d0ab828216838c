"""The JVM's reader by itself: it gives back what it takes, and what fails in C is an error of the task and never the JVM's end.

Without Spark: a JVM reads planned partitions by commands (`tests/kit/jvm_reader.py`), with Python's reader as the reference.
Damaged folders in numbers, under the sanitizers, are `make fuzz-jvm`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit import dirs, small_disk
from tests.kit.jvm_reader import JvmReader, PythonReader, memory, open_files
from tests.spark import recorded

TASKS, FIRST_TASKS = 10_000, 2_000
SEGMENT, LATER = "0-0.rec", "0-131072.rec"

pytestmark = pytest.mark.interop  # a JDK


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recording 0: 200 messages over several segments."""
    archive_dir = tmp_path_factory.mktemp("recorded") / "archive"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, archive_dir) as archive:
        archive.recorded(1001, 200, [8, 100, 1377, 5000])
    return archive_dir


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JvmReader]:
    with JvmReader(tmp_path_factory.mktemp("jvm")) as started:
        yield started


def into_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def into_fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def into_loop(file: Path) -> None:
    file.unlink()
    file.symlink_to(file)


@pytest.mark.parametrize("name", ["archive.catalog", SEGMENT, LATER])
@pytest.mark.parametrize(
    "damage",
    [
        into_directory,
        into_fifo,
        into_loop,
        Path.unlink,
        lambda file: os.truncate(file, 0),
        lambda file: os.truncate(file, 100),
        lambda file: file.write_bytes(b"\xff" * file.stat().st_size),
    ],
    ids=["directory", "fifo", "loop", "gone", "empty", "cut", "ones"],
)
def test_what_stands_in_a_files_place_is_an_error_that_names_it(
    folder: Path, tmp_path: Path, jvm: JvmReader, damage: Callable[[Path], None], name: str
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    python = PythonReader(copy)
    (partition,) = python.partitions()
    damage(copy / name)
    ours = jvm.verdict(partition, python.schema)
    assert ours == python.verdict(partition)
    assert name in ours.error


@pytest.mark.parametrize("length", [0, 1000, 70_000])
def test_a_segment_that_is_cut_while_it_is_read(folder: Path, tmp_path: Path, jvm: JvmReader, length: int) -> None:
    """It is not mapped, where this would be a SIGBUS."""
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    python = PythonReader(copy, rowsPerBatch="7")
    (partition,) = python.partitions()
    jvm.open(partition, python.schema)
    assert jvm.read(1).rows == 7
    os.truncate(copy / SEGMENT, length)
    assert str(copy / SEGMENT) in jvm.read().error
    jvm.close()
    sound = PythonReader(folder)
    assert jvm.verdict(sound.partitions()[0], sound.schema).rows == 200, "the JVM reads on"


def test_tasks_free_what_they_took(folder: Path, tmp_path: Path, jvm: JvmReader) -> None:
    """Closed before a batch, after one and at the end, and failed. A kept batch would be 300 KB a task."""
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    broken = PythonReader(copy)
    (failing,) = broken.partitions()
    (copy / LATER).unlink()
    sound = PythonReader(folder, columns="position,timestamp,value,channel")
    (whole,) = sound.partitions()

    def task(number: int) -> None:
        partition, schema = (failing, broken.schema) if number % 4 == 3 else (whole, sound.schema)
        jvm.open(partition, schema)
        found = jvm.read((0, 1, 10, 10)[number % 4], has_texts=False)
        assert found.rows == (0, 200, 200, 0)[number % 4]
        assert bool(found.error) == (partition is failing)
        jvm.close()

    for number in range(FIRST_TASKS):
        task(number)
    resident, opened = memory(jvm.pid), open_files(jvm.pid)
    for number in range(TASKS):
        task(number)
    grown = memory(jvm.pid) - resident
    print(f"{TASKS} tasks: {grown >> 10} KB more resident")
    assert grown < 2 << 20
    assert open_files(jvm.pid) == opened


def test_a_task_holds_one_batch(tmp_path: Path, jvm: JvmReader) -> None:
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, tmp_path / "archive") as archive:
        archive.recorded(1001, 8000, [5000])
    python = PythonReader(tmp_path / "archive", bytesPerBatch="1m", minPartitions="1")
    (partition,) = python.partitions()
    rows, most, before = 0, 0, memory(jvm.pid)
    jvm.open(partition, python.schema)
    while (verdict := jvm.read(1, has_texts=False)).rows:
        rows += verdict.rows
        most = max(most, memory(jvm.pid) - before)
    jvm.close()
    assert rows == 8000
    assert most < 10 << 20, "of 40 MB"


def test_no_room_for_the_library_and_none_to_run_it(folder: Path, tmp_path: Path) -> None:
    """The next task reads where the folder of temporary files has been mended."""
    python = PythonReader(folder)
    (partition,) = python.partitions()
    with small_disk.mounted(tmp_path / "disk", "600k") as disk:
        with JvmReader(tmp_path, options=[f"-Djava.io.tmpdir={disk}"]) as jvm:
            for _ in range(2):
                full = jvm.verdict(partition, python.schema).error
                assert full.startswith(
                    "aeron_spark.errors.StorageError: the native library of aeron_spark cannot be written"
                )
                assert "No space left on device; make room there, or name another folder by -Djava.io.tmpdir=" in full
            (disk / "ballast").unlink()
            small_disk.remount(disk, "noexec")
            refused = jvm.verdict(partition, python.schema).error
            assert refused.startswith(
                "aeron_spark.errors.UsageError: the native library of aeron_spark cannot be loaded"
            )
            assert f"where {disk} is mounted noexec, name another folder by -Djava.io.tmpdir=" in refused
            small_disk.remount(disk, "exec")
            assert jvm.verdict(partition, python.schema) == python.verdict(partition)
            assert [path.name for path in disk.iterdir()] == [], "the library's file is gone"
