"""Damaged folders and plans through the JVM's reader, with its C library under the address and undefined sanitizers.

    python -m tests.fuzz.jvm [--seconds 60] [--seed n]

Folders are damaged before or after planning: bytes overwritten in catalog, segments and time indexes, files cut, longer, gone,
or a directory, a FIFO or a link to itself in their place. Plans get other ranges and settings. A task ends in the rows or the
error of Python's reader, at once or closed early, and never with the JVM. Prints what was tried; exit code 1 on a difference,
with the seed that repeats it and the folder kept.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from aeron_spark.errors import AeronError
from aeron_spark.spark.planning.ranges import Range
from aeron_spark.spark.reading.batch import RangesPartition
from aeron_spark.spark.reading.schema import message_fields
from tests.kit import dirs, packed
from tests.kit.jvm_reader import JvmEndedError, JvmReader, PythonReader
from tests.spark import recorded

GOLDEN = Path(__file__).parents[1] / "golden" / "archive"
COLUMNS = tuple(message_fields("binary"))
OPTIONS: tuple[dict[str, str], ...] = (
    {},
    {"timestampFrom": "reserved(us)"},
    {"onCorruption": "strict"},
    {"recordChecksum": "crc-32"},
    {"startingPositions": '{"0": 65536}'},
)
NUMBERS = (-(1 << 62), -1, 0, 1, 31, 32, 1 << 16, 1 << 17, 1 << 31, 1 << 40, 1 << 62)
#: Settings of a plan that Python's reader has not got from it, so that only the JVM is tried.
JOBS: dict[str, tuple[object, ...]] = {
    "checksum": (-1, 1, 2, 3, 99),
    "rows": (-(1 << 31), -1, 0, 1, 1 << 31),
    "bytes": (-(1 << 31), -1, 0, 1, 1 << 31, 1 << 40),
    "reservedUnitNs": (-1, 0, 1, 1000, (1 << 63) - 1),
    "path": ("", "/dev/null", "/nowhere", "a\0b", "x" * 5000),
    "aeronDir": ("/dev/null", "/nowhere", "x" * 5000),
}


def overwrite(file: Path, rng: random.Random) -> None:
    whole = bytearray(file.read_bytes())
    for _ in range(rng.randint(1, 4)):
        # Headers are where messages begin, at multiples of 32; most of what can be wrong is at a file's start.
        at = 32 * rng.randrange(len(whole) // 32 + 1) + rng.randrange(32) if rng.random() < 0.6 else rng.randrange(2048)
        new = rng.choice([rng.randbytes(rng.randint(1, 8)), b"\0" * 4, b"\xff" * 4, b"\xff\xff\xff\x7f"])
        whole[at : at + len(new)] = new
    file.write_bytes(whole)


def cut(file: Path, rng: random.Random) -> None:
    os.truncate(file, rng.randrange(file.stat().st_size + 1))


def lengthen(file: Path, rng: random.Random) -> None:
    with file.open("ab") as opened:
        opened.write(rng.choice([rng.randbytes, bytes])(rng.randrange(1, 1 << 16)))


def remove(file: Path, _: random.Random) -> None:
    file.unlink()


def into_directory(file: Path, _: random.Random) -> None:
    file.unlink()
    file.mkdir()


def into_fifo(file: Path, _: random.Random) -> None:
    file.unlink()
    os.mkfifo(file)


def into_loop(file: Path, _: random.Random) -> None:
    file.unlink()
    file.symlink_to(file)


DAMAGES: tuple[Callable[[Path, random.Random], None], ...] = (
    *[overwrite] * 6,
    cut,
    cut,
    lengthen,
    remove,
    into_directory,
    into_fifo,
    into_loop,
)


def make_folders(work: Path) -> list[Path]:
    """A stopped recording over several segments, and an archive that was killed while it recorded."""
    stopped = work / "stopped"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, stopped) as archive:
        archive.recorded(1001, 300, [8, 100, 1377, 5000])
    packed.unpack(GOLDEN / "archive-crashed.tar.gz", work)
    return [stopped, work / "archive-crashed"]


class Fuzzer:
    """Tries cases on copies of folders; `tried` counts them by how they ended."""

    def __init__(self, work: Path, jvm: JvmReader) -> None:
        self.work = work
        self.folders = make_folders(work)
        self.tried: Counter[str] = Counter()
        self._jvm = jvm

    def case(self, seed: int) -> str:
        """One case; what differs, or nothing."""
        rng = random.Random(seed)
        copy = self.work / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(rng.choice(self.folders), copy)
        names = rng.sample(COLUMNS, rng.randint(1, len(COLUMNS)))
        options = {**rng.choice(OPTIONS), "columns": ",".join(names), "rowsPerBatch": rng.choice(["7", "16384"])}
        files = sorted(path for path in copy.iterdir() if path.is_file())
        is_planned_before = rng.random() < 0.4
        python = PythonReader(copy, **options)
        partitions = self._planned(python) if is_planned_before else []
        for file in rng.sample(files, 1 if rng.random() < 0.8 else min(2, len(files))):
            rng.choice(DAMAGES)(file, rng)
        if not is_planned_before:
            python = PythonReader(copy, **options)
            partitions = self._planned(python)
        for partition in partitions:
            found = self._compared(python, partition, rng)
            if found:
                return found
        return ""

    def _planned(self, python: PythonReader) -> list[RangesPartition]:
        try:
            return python.partitions()
        except AeronError:
            self.tried["not planned"] += 1
            return []

    def _compared(self, python: PythonReader, partition: RangesPartition, rng: random.Random) -> str:
        kind = rng.random()
        if kind < 0.1:
            self._closed_early(python, partition, rng)
            return ""
        if kind < 0.2:
            self._other_job(python, partition, rng)
            return ""
        if kind < 0.4:
            partition = _other_ranges(partition, rng)
        ours, pythons = self._jvm.verdict(partition, python.schema), python.verdict(partition)
        self.tried["an error" if pythons.error else "rows"] += 1
        return "" if ours == pythons else f"{partition}\n  JVM    {ours}\n  Python {pythons}"

    def _closed_early(self, python: PythonReader, partition: RangesPartition, rng: random.Random) -> None:
        self._jvm.open(partition, python.schema)
        self._jvm.read(rng.randint(0, 1))
        self._jvm.close()
        self.tried["closed early"] += 1

    def _other_job(self, python: PythonReader, partition: RangesPartition, rng: random.Random) -> None:
        job = json.loads(partition.job)
        for name in rng.sample(list(JOBS), rng.randint(1, 2)):
            job[name] = rng.choice(JOBS[name])
        self._jvm.verdict(RangesPartition(partition.ranges, json.dumps(job)), python.schema)
        self.tried["another job"] += 1


def _other_ranges(partition: RangesPartition, rng: random.Random) -> RangesPartition:
    def other(number: int) -> int:
        return rng.choice([number, number, number + rng.randint(-64, 64), rng.choice(NUMBERS)])

    ranges = [
        Range(other(part.recording_id), other(part.start), other(part.end), other(part.limit))
        for part in partition.ranges
    ]
    return RangesPartition(tuple(ranges), partition.job)


def fuzz(seconds: float, seed: int, work: Path) -> list[str]:
    """Failures with the seeds of their cases; what was tried is printed."""
    logging.disable(logging.CRITICAL)  # of doubts there are thousands
    failures: list[str] = []
    rng = random.Random(seed)
    tmp = work / "jvm"
    tmp.mkdir()
    with JvmReader(tmp, is_sanitized=True) as jvm:
        fuzzer = Fuzzer(work, jvm)
        end = time.monotonic() + seconds
        while not failures and time.monotonic() < end:
            case = rng.randrange(1 << 31)
            try:
                found = fuzzer.case(case)
            except JvmEndedError as error:
                found = str(error)
            if found:
                failures.append(f"case {case}: {found}")
        print(
            f"seed {seed}: {', '.join(f'{count} {name}' for name, count in sorted(fuzzer.tried.items()))}", flush=True
        )
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="how long (60)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31), help="repeats a run")
    arguments = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="aeron-spark-fuzz-"))
    failures = fuzz(arguments.seconds, arguments.seed, work)
    for failure in failures:
        print(f"{failure}\nthe folder is {work / 'copy'}; repeat with --seed {arguments.seed}")
    if not failures:
        shutil.rmtree(work)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
