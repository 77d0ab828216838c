"""Files made to be expensive: the memory and time that they cost a process have a bound.

Each test hung, or took memory by the gigabyte, before there was one.
"""

from __future__ import annotations

import os
import resource
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pyarrow import fs

from aeron_spark.archive.objects import ObjectFolder
from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.segments import Folder
from aeron_spark.errors import DataLossError, UsageError
from aeron_spark.sbe import SchemaError, load
from aeron_spark.small_files import MAX_BYTES, read_small
from aeron_spark.spark.planning.offsets import integers_of
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.types import Position
from tests.kit.catalogs import catalog_of
from tests.kit.packed import unpack

GOLDEN = Path(__file__).parents[1] / "golden" / "archive"
TERM = SEGMENT = 1 << 16
FAR = 1 << 45
"""Below the last position of such a term length."""
DEEP = "[" * 200_000


def limited(megabytes: int, program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A program in a process with so much memory beyond that of its imports."""
    head = (
        "import resource, sys\nfrom aeron_spark.archive.segments import Folder\n"
        "from aeron_spark.archive.tools import Catalog\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        f"resource.setrlimit(resource.RLIMIT_AS, (used + {megabytes << 20},) * 2)\n"
    )
    return subprocess.run(
        [sys.executable, "-c", head + program, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def a_recording(folder: Path, **changes: int) -> Recording:
    """A recording of the golden folder with small terms, changed."""
    unpack(GOLDEN / "archive.tar.gz", folder)
    with Folder(folder / "archive") as opened:
        return replace(opened.recording(1), segment_file_length=SEGMENT, term_buffer_length=TERM, **changes)


def test_a_catalog_whose_records_promise_gigabytes(tmp_path: Path) -> None:
    """A chain of records of 64 MiB each, of which one page is there; and one record of a GiB."""
    unpack(GOLDEN / "archive.tar.gz", tmp_path)
    good = (tmp_path / "archive" / "archive.catalog").read_bytes()[:512]
    for length in (64 << 20, 1 << 30):
        with (tmp_path / "archive" / "archive.catalog").open("r+b") as file:
            file.truncate(0)
            file.truncate((1 << 31) - 64)
            os.pwrite(file.fileno(), good[:32], 0)
            for offset in range(32, (1 << 31) - length, length):
                os.pwrite(file.fileno(), struct.pack("<i", length - 32) + good[36:300], offset)
                for page in range(offset, offset + length, 1 << 20):
                    os.pwrite(file.fileno(), b"x", page + 4096)
        for program in ("Folder(sys.argv[1])", "print(Catalog(sys.argv[1]).info().damage)"):
            ended = limited(256, program, tmp_path / "archive")
            assert "none has more than" in ended.stdout + ended.stderr, ended


def test_a_store_whose_last_segment_is_far_away(tmp_path: Path) -> None:
    recording = a_recording(tmp_path / "golden", start_position=Position(0), stop_position=None)
    (tmp_path / "archive.catalog").write_bytes(catalog_of([replace(recording, stop_position=Position(FAR + SEGMENT))]))
    for position in (0, FAR):
        with (tmp_path / f"1-{position}.rec").open("wb") as file:
            file.truncate(SEGMENT)
    with ObjectFolder(fs.LocalFileSystem(), str(tmp_path)) as store:
        pieces = store.segments_between(1, 0, FAR + SEGMENT)
        assert [(start, stop, is_there) for start, stop, _, is_there in pieces] == [
            (0, SEGMENT, True),
            (SEGMENT, FAR, False),
            (FAR, FAR + SEGMENT, True),
        ]
        with pytest.raises(DataLossError, match=f"1-{SEGMENT}.rec is missing"):
            store.read(1, SEGMENT, FAR, limit=FAR).read_all()


def test_a_time_in_a_recording_that_promises_billions_of_segments(tmp_path: Path) -> None:
    recording = a_recording(tmp_path / "golden", start_position=Position(0), stop_position=Position(FAR))
    (tmp_path / "archive.catalog").write_bytes(catalog_of([recording]))
    for position in (0, FAR - SEGMENT):
        (tmp_path / f"1-{position}.rec").write_bytes(bytes(SEGMENT))
    with Folder(tmp_path) as folder:
        assert folder.position_at(1, 0).position == 0
        folder.rebuild_time_index(1)


@pytest.mark.parametrize("name", ["startingPositions", "storeOptions"])
def test_deep_json_in_options(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        ReadOptions.parse({"path": "s3://bucket/folder", name: DEEP}, streaming=False)


def test_offsets_of_too_many_digits() -> None:
    for section in ({"9" * 5000: 1}, {"1": 1 << 70}, {"1": True}, {"x": 1}, {"9" * 20: 1}):
        with pytest.raises(UsageError, match="damaged at positions") as raised:
            integers_of({"positions": section}, "positions")
        assert len(str(raised.value)) < 200
    assert integers_of({"positions": {"9223372036854775807": 1}}, "positions") == {(1 << 63) - 1: 1}


def test_small_files_are_small(tmp_path: Path) -> None:
    (tmp_path / "exact").write_bytes(bytes(MAX_BYTES))
    assert len(read_small(tmp_path / "exact")) == MAX_BYTES
    with (tmp_path / "endless").open("wb") as file:
        file.truncate(1 << 40)
    for path in ("/dev/zero", tmp_path / "endless"):
        with pytest.raises(OSError, match=r"regular file|holds more than"):
            read_small(path)
    reading, writing = os.pipe()
    os.write(writing, b"secret")
    os.close(writing)
    assert read_small(f"/dev/fd/{reading}") == b"secret"
    os.close(reading)


def test_schemas_that_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", Path("/dev/zero"), tmp_path):
        with pytest.raises(SchemaError):
            load(path)


def test_a_schema_of_millions_of_types(tmp_path: Path) -> None:
    """60 MB of the shortest elements, as a file may have: a number of them is refused before they fill the memory."""
    schema = tmp_path / "schema.xml"
    schema.write_text("<messageSchema><types>" + "<a/>" * 15_000_000 + "</types></messageSchema>")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(SchemaError, match="more than 500000 elements"):
        load(schema)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB
