"""The JVM's reader by itself: it gives back what it takes, and what fails in C is an error of the task and never the JVM's end.

Without Spark: a JVM reads planned partitions by commands (`tests/kit/jvm_reader.py`), with Python's reader as the reference.
Damaged folders in numbers, under the sanitizers, are `make fuzz-jvm`.
"""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit import dirs, small_disk
from tests.kit.jvm_reader import JvmReader, PythonReader, Verdict, memory, open_files
from tests.sbe.test_options import BODY, TYPES, m
from tests.sbe.test_schema import schema
from tests.spark import recorded

TASKS, FIRST_TASKS = 10_000, 2_000
ENDED = "java.io.IOException: the task has ended, and its reader gives no more rows"
#: Of the C library: bytes of memory that is freed do not stay as they were.
FREED_BYTES_CHANGE = {"MALLOC_PERTURB_": "85"}
OF_SBE = {"payload": "sbe", "sbeMessage": "M", "sbeFraming": "lengthPrefix=u16be", "columns": "position,side,note"}
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
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 MB."""
    archive_dir = tmp_path_factory.mktemp("large") / "archive"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, archive_dir) as archive:
        archive.recorded(1001, 8000, [5000])
    return archive_dir


@pytest.fixture(scope="module")
def of_sbe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 messages, two in a payload."""
    archive_dir = tmp_path_factory.mktemp("sbe") / "archive"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, archive_dir) as archive:
        publication = archive.record(1001)
        messages = [m(note=b"note %d" % index) for index in range(200)]
        framed = [struct.pack(">H", len(message) + 2) + message for message in messages]
        publication.offer_batch([b"".join(framed[at : at + 2]) for at in range(0, 200, 2)], timeout=20)
        archive.stop(publication, 1001)
    (archive_dir / "schema.xml").write_text(schema(TYPES, BODY), encoding="utf-8")
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


@pytest.mark.parametrize("damage", [Path.unlink, into_directory, into_loop, lambda file: os.truncate(file, 100)])
def test_times_where_the_index_is_gone_or_damaged(
    folder: Path, tmp_path: Path, jvm: JvmReader, damage: Callable[[Path], None]
) -> None:
    """No time is made up, and an error is one."""
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    damage(copy / "0.time-index")
    python = PythonReader(copy, columns="position,timestamp,timestamp_ns")
    (partition,) = python.partitions()
    assert jvm.verdict(partition, python.schema) == python.verdict(partition)


def test_a_checksum_that_is_asked_for_is_checked(folder: Path, jvm: JvmReader) -> None:
    """Nothing was recorded with one."""
    python = PythonReader(folder, recordChecksum="crc-32")
    (partition,) = python.partitions()
    ours = jvm.verdict(partition, python.schema)
    assert ours == python.verdict(partition)
    assert "checksum" in ours.error


def test_names_beyond_ascii_in_a_jvm_of_the_posix_locale(folder: Path, tmp_path: Path) -> None:
    """Java has no bytes for such a name there; C has those that were planned."""
    copy = tmp_path / "größe"
    with JvmReader(tmp_path, env={"LC_ALL": "POSIX"}) as jvm:
        for damage in (Path.touch, Path.unlink, lambda file: file.write_bytes(b"\xff" * 4096)):
            shutil.copytree(folder, copy)
            python = PythonReader(copy)
            (partition,) = python.partitions()
            damage(copy / LATER)
            assert jvm.verdict(partition, python.schema) == python.verdict(partition)
            shutil.rmtree(copy)
        shutil.copytree(folder, copy)
        (partition,) = PythonReader(copy).partitions()
        (beyond,) = partition.ranges
        end = beyond.end + 2 * recorded.TERM_LENGTH
        beyond = replace(beyond, start=beyond.end + recorded.TERM_LENGTH, end=end, limit=end)
        purged = replace(partition, ranges=(beyond,))
        ours = jvm.verdict(purged, python.schema)
        assert ours == python.verdict(purged)
        assert f"{copy}/0-" in ours.error
    with JvmReader(tmp_path, options=[f"-Djava.io.tmpdir={copy}"], env={"LC_ALL": "POSIX"}) as jvm:
        unnamed = jvm.verdict(partition, python.schema).error
        assert unnamed.startswith(
            "aeron_spark.errors.StorageError: the native library of aeron_spark cannot be written into"
        )


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
        if number % 4 == 1:  # its batch stays until the next one is asked for
            assert jvm.read().error == ENDED

    for number in range(FIRST_TASKS):
        task(number)
    resident, opened = memory(jvm.pid), open_files(jvm.pid)
    for number in range(TASKS):
        task(number)
    grown = memory(jvm.pid) - resident
    print(f"{TASKS} tasks: {grown >> 10} KB more resident")
    assert grown < 2 << 20
    assert open_files(jvm.pid) == opened


def test_batches_of_messages_are_freed_before_the_next(of_sbe: Path, jvm: JvmReader) -> None:
    python = PythonReader(of_sbe, sbeSchema=f"{of_sbe}/schema.xml", rowsPerBatch="10", **OF_SBE)
    (partition,) = python.partitions()

    def tasks(count: int) -> None:
        for _ in range(count):
            jvm.open(partition, python.schema)
            assert jvm.read(has_texts=False).rows == 200
            jvm.close()

    tasks(200)
    before = memory(jvm.pid)
    tasks(500)
    assert memory(jvm.pid) - before < 2 << 20


@pytest.mark.parametrize("plan", [{}, OF_SBE], ids=["messages", "sbe"])
def test_a_thread_that_still_reads_where_the_task_has_ended(
    folder: Path, of_sbe: Path, tmp_path: Path, plan: dict[str, str]
) -> None:
    """Spark feeds a script by a thread of its own, and closes the reader when it has the rows that it wants of it."""
    python = PythonReader(of_sbe, **{**plan, "sbeSchema": f"{of_sbe}/schema.xml"}) if plan else PythonReader(folder)
    (partition,) = python.partitions()
    with JvmReader(tmp_path, env=FREED_BYTES_CHANGE) as jvm:
        assert jvm.verdict(partition, python.schema).rows == 200
        opened = open_files(jvm.pid)
        jvm.open(partition, python.schema)
        given = jvm.read(1)
        assert given.rows == 200
        assert jvm.close() == Verdict()
        assert open_files(jvm.pid) == opened, "files are closed at once"
        assert jvm.read_again() == given
        assert jvm.read().error == ENDED
        assert jvm.close() == Verdict()


def test_batches_that_are_left_behind_have_a_bound(large: Path, jvm: JvmReader) -> None:
    """Java's collector is asked to run for each 256 MiB of them. All of them are 1.4 GB."""
    python = PythonReader(large, bytesPerBatch="32m", minPartitions="1")
    (partition,) = python.partitions()
    most, before = 0, memory(jvm.pid)
    for _ in range(40):
        jvm.open(partition, python.schema)
        assert jvm.read(1, has_texts=False).rows > 0
        jvm.close()
        most = max(most, memory(jvm.pid) - before)
    assert most < 640 << 20


def test_a_task_holds_one_batch(large: Path, jvm: JvmReader) -> None:
    python = PythonReader(large, minPartitions="1")
    (partition,) = python.partitions()
    jvm.verdict(partition, python.schema)  # what the JVM takes for itself
    batches, most, before = [], 0, memory(jvm.pid)
    jvm.open(partition, python.schema)
    while (verdict := jvm.read(1, has_texts=False)).rows:
        batches.append(verdict.rows)
        most = max(most, memory(jvm.pid) - before)
    jvm.close()
    assert sum(batches) == 8000
    assert max(batches) <= (1 << 20) // 5000, "by default a batch is 1 MiB"
    assert most < 10 << 20, "of 40 MB"


def test_a_batch_has_room_for_a_message_that_is_longer(tmp_path: Path, jvm: JvmReader) -> None:
    """From the first longer one on, batches have the 8 KiB of the longest message that the recording can hold."""
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, tmp_path / "archive") as archive:
        archive.recorded(1001, 181, [100] * 80 + [5000] + [100] * 100)
    python = PythonReader(tmp_path / "archive", bytesPerBatch="4k", minPartitions="1")
    (partition,) = python.partitions()
    jvm.open(partition, python.schema)
    batches = []
    while (verdict := jvm.read(1, has_texts=False)).rows:
        batches.append(verdict.rows)
    jvm.close()
    assert batches == [40, 40, 1 + 31, 69]


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
