"""Kills a streaming query with -9, repeatedly, while its stream is published, and audits its rows.

    python -m tests.spark.crash_loop [--kills 10] [--rate 20000]

A driver, an archive and a publisher run throughout. The query computes count and hashes of each micro-batch and appends
them to a journal. Half of the kills come when a batch stands in the offset log and in the journal, but not yet in the commit
log, so that it is run again and compared; the others come at a random instant. At the end: each run of a batch gave the same
count and hashes, batches follow each other without gap, and together they hold every published message exactly once. Prints
the figures; exit code 1 on any difference, or if no batch was repeated.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tests.kit import spark_jvm
from tests.kit.wait import wait_until

STREAM_ID = 1001
ROOT = Path(__file__).resolve().parents[2]


def message(index: int) -> bytes:
    """8 bytes of index, then 0 to 2,999 more that depend on it."""
    return struct.pack("<q", index) + bytes([index & 0xFF]) * (index * 7 % 3000 if index % 50 == 0 else index % 120)


class Publisher(threading.Thread):
    """Publishes numbered messages in batches until stopped."""

    def __init__(self, publication: object, rate: int, make: Callable[[int], bytes] = message) -> None:
        super().__init__(daemon=True)
        self._publication = publication
        self._rate = rate
        self._make = make
        self._ending = threading.Event()
        self.published = 0
        self.checksum = 0

    def run(self) -> None:
        batch = max(1, self._rate // 20)
        while not self._ending.wait(0.05):
            bodies = [self._make(index) for index in range(self.published, self.published + batch)]
            self._publication.offer_batch(pa.array(bodies, type=pa.binary()), timeout=30)  # type: ignore[attr-defined]
            self.published += batch
            self.checksum += sum(zlib.crc32(body) for body in bodies)

    def end(self) -> None:
        self._ending.set()
        self.join()


@dataclass
class Stream:
    """What the queries read, while it is published and recorded."""

    publisher: Publisher
    end: Callable[[], None]
    """Publishes no more, and ends the recording."""
    keep: Callable[[], None]
    """To be called each minute: the archive ends a session whose answers nobody reads."""


@contextmanager
def published(folder: Path, rate: int, make: Callable[[int], bytes] = message) -> Iterator[Stream]:
    """A driver, an archive and a publisher, which is being recorded in the folder."""
    from tests.kit import dirs
    from tests.spark import recorded

    settings = {"aeron.archive.segment.file.length": "16m", "aeron.ipc.term.buffer.length": "4m"}
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, folder, settings) as archive:
        publication = archive.record(STREAM_ID, "aeron:ipc")
        publisher = Publisher(publication, rate, make)
        publisher.start()

        def end() -> None:
            publisher.end()
            archive.stop(publication, STREAM_ID, "aeron:ipc")

        yield Stream(publisher, end, archive.control.keepalive)


def run_query(folder: str, checkpoint: str, journal: str, available_now: bool) -> None:
    """The child: a streaming query that journals what each batch held."""
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F

    from tests.spark.session import build_session

    spark = build_session("crash-loop")

    def audit(frame: DataFrame, batch_id: int) -> None:
        row = frame.agg(
            F.count("*").alias("count"),
            F.sum(F.crc32("value")).alias("crc"),
            F.bit_xor(F.xxhash64("recording_id", "position", "next_position", "reserved_value", "value")).alias("hash"),
            F.min("position").alias("first"),
            F.max("next_position").alias("end"),
        ).first()
        assert row is not None
        with Path(journal).open("a", encoding="ascii") as file:
            file.write(json.dumps({"batch": batch_id, **row.asDict()}) + "\n")
            file.flush()
            os.fsync(file.fileno())

    stream = spark.readStream.format("aeron").option("startingPositions", "earliest").option("maxBytesPerTrigger", "4m")
    writer = stream.load(folder).writeStream.foreachBatch(audit).option("checkpointLocation", checkpoint)
    query = (
        writer.trigger(availableNow=True).start()
        if available_now
        else writer.trigger(processingTime="0 seconds").start()
    )
    query.awaitTermination()


@dataclass
class Loop:
    folder: Path
    checkpoint: Path
    journal: Path

    def start(self, *, available_now: bool) -> subprocess.Popen[bytes]:
        mode = "now" if available_now else "follow"
        return self.run("tests.spark.crash_loop", str(self.folder), str(self.checkpoint), str(self.journal), mode)

    def run(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        """A query in a process group of its own, with its JVM."""
        command = [sys.executable, "-m", module, "--query", *arguments]
        environment = {**spark_jvm.environment(), **os.environ, "PYSPARK_PYTHON": sys.executable}
        with self.log.open("ab") as log:
            return subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True, stderr=log)

    @property
    def log(self) -> Path:
        """What the queries said on stderr."""
        return self.journal.with_suffix(".log")

    def last_words(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-2000:]

    def newest(self, log: str) -> int:
        entries = [int(path.name) for path in (self.checkpoint / log).glob("[0-9]*") if path.name.isdecimal()]
        return max(entries, default=-1)

    def in_between(self) -> bool:
        """A batch is in the offset log and not in the commit log."""
        return self.newest("offsets") > self.newest("commits")

    def batches(self) -> list[dict[str, int]]:
        if not self.journal.exists():
            return []
        lines = self.journal.read_text(encoding="ascii").splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]

    def stopped_where(self, process: subprocess.Popen[bytes], holds: Callable[[], bool]) -> bool:
        """Something holds of the files; the query is left stopped then, so that it stays so."""
        if not holds():
            return False
        os.killpg(process.pid, signal.SIGSTOP)
        if holds():
            return True
        os.killpg(process.pid, signal.SIGCONT)
        return False

    def is_before_commit(self) -> bool:
        """The newest run is journaled and not committed."""
        return self.newest_run() > self.newest("commits")

    def newest_run(self) -> int:
        """The last batch in the journal."""
        return max((run["batch"] for run in self.batches()), default=-1)

    def kill_one(self, rng: random.Random, *, between: bool) -> bool:
        """Runs the query and kills it and its JVM; true if it was between the logs."""
        process = self.start(available_now=False)
        try:
            commits = self.newest("commits")
            wait_until(
                lambda: self.newest("commits") > commits or process.poll() is not None,
                200,
                "a batch to be committed",
                state=self.last_words,
            )
            if process.poll() is not None:
                raise RuntimeError(
                    f"the query ended by itself with exit code {process.returncode}, saying {self.last_words()}"
                )
            if between:
                wait_until(
                    lambda: self.stopped_where(process, self.is_before_commit),
                    60,
                    "a batch between journal and commit log",
                )
            else:
                threading.Event().wait(rng.uniform(0, 0.5))
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return self.in_between()


def audit(loop: Loop, publisher: Publisher) -> list[str]:
    """What does not hold; empty is good."""
    problems = []
    runs: dict[int, list[dict[str, int]]] = {}
    for entry in loop.batches():
        runs.setdefault(entry["batch"], []).append(entry)
    for batch, entries in runs.items():
        if any(entry != entries[0] for entry in entries):
            problems.append(f"batch {batch} differed between its runs: {entries}")
    ordered = [entries[0] for _, entries in sorted(runs.items())]
    filled = [entry for entry in ordered if entry["count"]]
    for before, after in itertools.pairwise(filled):
        if after["first"] < before["end"]:
            problems.append(
                f"batch {after['batch']} begins at {after['first']}, before the end {before['end']} of the last"
            )
    count = sum(entry["count"] for entry in filled)
    checksum = sum(entry["crc"] for entry in filled)
    if (count, checksum) != (publisher.published, publisher.checksum):
        problems.append(
            f"read {count} messages with checksum sum {checksum}, published {publisher.published} with {publisher.checksum}"
        )
    return problems


def crash_loop(kills: int, rate: int, seed: int) -> int:
    """The parent; returns the exit code."""
    print(f"seed {seed}", flush=True)
    rng = random.Random(seed)
    work = Path(tempfile.mkdtemp(prefix="aeron-spark-crash-"))
    try:
        loop = Loop(work / "archive", work / "checkpoint", work / "journal")
        with published(loop.folder, rate) as stream:
            publisher = stream.publisher
            wanted_between = -(-kills // 2)
            between = 0
            for kill in range(kills):
                was_between = loop.kill_one(rng, between=between < wanted_between)
                between += was_between
                stream.keep()
                print(
                    f"kill {kill + 1} of {kills}: batch {loop.newest('offsets')}, "
                    f"{'between the logs' if was_between else 'at a random instant'}, {publisher.published} published",
                    flush=True,
                )
            stream.end()
            if loop.start(available_now=True).wait(300) != 0:
                print("the last run of the query failed")
                return 1
        problems = audit(loop, publisher)
        runs = loop.batches()
        repeated = len(runs) - len({entry["batch"] for entry in runs})
        print(
            f"{publisher.published} messages, {len(runs)} batch runs, {repeated} of them repeated ones that were compared, "
            f"{between} of {kills} kills between the logs: "
            f"{'every message once, repeated batches equal' if not problems and repeated else 'FAILED'}"
        )
        for problem in problems:
            print(problem)
        return 1 if problems or between < wanted_between or repeated == 0 else 0
    finally:
        shutil.rmtree(work, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10, help="how often the query is killed (10)")
    parser.add_argument("--rate", type=int, default=20_000, help="messages a second (20000)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31), help="repeats a run's random instants")
    parser.add_argument("--query", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.query is not None:
        folder, checkpoint, journal, mode = arguments.query
        run_query(folder, checkpoint, journal, mode == "now")
        return 0
    return crash_loop(arguments.kills, arguments.rate, arguments.seed)


if __name__ == "__main__":
    sys.exit(main())
