"""Kills tasks, Spark drivers and the archive at each step of an exactly-once query, and audits the committed rows.

    python -m tests.spark.exactly_once [--kills 12] [--seed n] [--far] [--engine jvm]

The query reads numbered messages of a stopped archive in small batches and writes them to another one, whose driver and
archive run beside it and are started again when they die; with --far over UDP, through a media driver of its own; with
--engine jvm Spark's JVM gathers the rows. A query that fails is started again by the same Spark session. A plan, a folder
of files, says who is killed at which step:

    steps    a task before, in the middle of and after publishing; the commit before it looks, before it writes the entry,
             after it has, and when it has returned but Spark does not know yet
    victims  the Python process that takes the step; the query with its JVM; the archive, after which the step goes on

The auditor compares what is read committed with the input as multisets, by a batch read and by a stream. Exit code 1 on any
difference, or if less was killed than planned.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from aeron_spark.archive.segments import Folder
from aeron_spark.spark.source import AeronDataSource
from aeron_spark.spark.writing import commit, publish
from aeron_spark.spark.writing.stream import AeronStreamWriter
from tests.kit import dirs, native
from tests.kit.ports import free_port
from tests.kit.processes import Process
from tests.kit.wait import wait_until

STREAM_ID = 1001
#: Messages of a micro-batch. In the JVM's engine a task of them, half of it, takes more than one block of rows.
PER_BATCH = {"python": 100, "jvm": 36_000}
#: Failures of the query that one Spark session bears before it ends.
MAX_FAILURES = 20
STEPS = ("task-begins", "task-half", "task-done", "commit-begins", "before-entry", "after-entry", "commit-done")
VICTIMS = ("self", "query", "archive")
SETTINGS = {"aeron.archive.segment.file.length": "131072"}
ROOT = Path(__file__).resolve().parents[2]
PLAN = "AERON_SPARK_TEST_PLAN"


def step(name: str) -> None:
    """Kills whom the plan names at this step, once; the file's removal decides which process does it."""
    plan = Path(os.environ[PLAN])
    for victim in VICTIMS:
        order = plan / f"{name}.{victim}"
        try:
            order.rename(plan / f"done.{os.getpid()}.{order.name}")
        except FileNotFoundError:
            continue
        if victim == "self":
            os.kill(os.getpid(), signal.SIGKILL)
        elif victim == "query":
            os.kill(int((plan / "query.pid").read_text("ascii")), signal.SIGKILL)
            os.killpg(int((plan / "query.pid").read_text("ascii")), signal.SIGKILL)
        else:
            with Folder(plan.parent / "archive") as folder, suppress(ProcessLookupError):
                os.kill(folder.info().pid, signal.SIGKILL)


class CrashingWriter(AeronStreamWriter):
    """The sink with a step named before and after whatever it does."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        step("task-begins")
        # With rows in blocks, half a block: the JVM sends the others meanwhile.
        rows_of = publish.rows_of
        publish.rows_of = lambda blocks: _halved(rows_of(blocks))
        try:
            message = super().write(iterator if self._options.in_blocks else _halved(iterator))
        finally:
            publish.rows_of = rows_of
        step("task-done")
        return message

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        step("commit-begins")
        publish_entry = commit.publish_entry

        def publish_with_steps(*arguments: object) -> None:
            step("before-entry")
            publish_entry(*arguments)  # type: ignore[arg-type]
            step("after-entry")

        commit.publish_entry = publish_with_steps
        try:
            super().commit(messages, batchId)
        finally:
            commit.publish_entry = publish_entry
        step("commit-done")


def _halved(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        half = batch.num_rows // 2
        yield batch.slice(0, half)
        step("task-half")
        yield batch.slice(half)


class CrashingSource(AeronDataSource):
    """Registered in place of the real one, as the jar knows its name only."""

    def streamWriter(self, schema: StructType, overwrite: bool) -> CrashingWriter:
        return CrashingWriter(self._write_options(schema, streaming=True))


def run_query(work: Path) -> None:
    """The child: runs until everything is written, it is killed, or it fails repeatedly."""
    from pyspark.errors import StreamingQueryException

    from tests.spark.session import JAR, build_session

    (work / "plan" / "query.pid").write_text(str(os.getpid()), "ascii")
    options = json.loads((work / "plan" / "query.options").read_text("utf-8"))
    spark = build_session("exactly-once", master="local[2,4]", **(JAR if options["engine"] == "jvm" else {}))
    spark.dataSource.register(CrashingSource)
    stream = spark.readStream.format("aeron").option("startingPositions", "earliest").option("minPartitions", "2")
    stream = stream.option("engine", "python")
    writer = (
        stream.option("maxMessagesPerTrigger", options.pop("perBatch"))
        .load(str(work / "input"))
        .select("value")
        .writeStream.format("aeron")
        .options(**options)
        .option("streamId", str(STREAM_ID))
        .option("guarantee", "exactly-once")
        .option("publishTimeout", "15s")
        .option("checkpointLocation", str(work / "checkpoint"))
        .trigger(availableNow=True)
    )
    for _ in range(MAX_FAILURES):
        try:
            writer.start().awaitTermination()
            break
        except StreamingQueryException as failure:
            print(f"the query failed: {str(failure)[:2000]}", flush=True)
    else:
        sys.exit(1)
    spark.stop()


class Servers(threading.Thread):
    """A driver, and an archive that is started again whenever it has died."""

    def __init__(self, aeron_dir: Path, archive_dir: Path, settings: dict[str, str]) -> None:
        super().__init__(daemon=True)
        self._ending = threading.Event()
        self._aeron_dir, self._archive_dir = aeron_dir, archive_dir
        self._settings = SETTINGS | settings
        self.failure: BaseException | None = None
        self._driver = native.driver(aeron_dir)
        self._archive = self._start()

    def _start(self) -> Process:
        # For 10 s a killed archive counts as alive, and another is refused.
        return native.archive(self._aeron_dir, self._archive_dir, self._settings)

    def run(self) -> None:
        while not self._ending.wait(0.05):
            if self._archive.returncode is not None:
                try:
                    wait_until(self._is_free, 30, "the killed archive's mark to be old")
                    self._archive = self._start()
                except BaseException as failure:  # noqa: BLE001 - told at the end
                    self.failure = failure
                    return

    def _is_free(self) -> bool:
        with Folder(self._archive_dir) as folder:
            return not folder.info().is_live

    def end(self) -> None:
        self._ending.set()
        self.join()
        self._archive.stop()
        self._driver.stop()
        if self.failure is not None:
            raise self.failure


def record_input(folder: Path, count: int) -> Counter[bytes]:
    """Numbered messages, some of them equal, in a stopped archive."""
    from tests.spark import recorded

    bodies = [b"%d" % (number - number % 10 % 2) for number in range(count)]
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, folder) as archive:
        publication = archive.record(1)
        publication.offer_batch(bodies, timeout=20)
        archive.stop(publication, 1)
    return Counter(bodies)


def committed(archive_dir: Path) -> tuple[Counter[bytes], Counter[bytes]]:
    """What is read committed, by a batch and entry by entry by a stream."""
    from pyspark.sql.streaming.datasource import ReadMaxRows

    from aeron_spark.spark.planning.options import ReadOptions
    from aeron_spark.spark.reading.batch import AeronBatchReader
    from aeron_spark.spark.reading.stream import AeronStreamReader
    from tests.spark.test_ledger import VALUE

    given = {"path": str(archive_dir), "isolation": "read_committed"}
    batch_reader = AeronBatchReader(ReadOptions.parse(given, streaming=False), VALUE)
    by_batch = Counter(
        value
        for part in batch_reader.partitions()
        for batch in batch_reader.read(part)
        for value in batch.column("value").to_pylist()
    )
    given["startingPositions"] = "earliest"
    reader = AeronStreamReader(ReadOptions.parse(given, streaming=True), VALUE)
    by_stream: Counter[bytes] = Counter()
    start = reader.initialOffset()
    while (end := reader.latestOffset(start, ReadMaxRows(1))) != start:
        for part in reader.partitions(start, end):
            for batch in reader.read(part):
                by_stream.update(batch.column("value").to_pylist())
        start = end
    reader.stop()
    return by_batch, by_stream


@contextmanager
def placed(work: Path, *, far: bool) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """Options of the query and settings of the archive: both on one driver, or with a network between."""
    if not far:
        yield {"recordTo": str(work / "archive"), "channel": "aeron:ipc?term-length=64k"}, {}
        return
    control, rows = (f"aeron:udp?endpoint=127.0.0.1:{free_port()}" for _ in range(2))
    with dirs.fresh("query") as aeron_dir:
        driver = native.driver(aeron_dir)
        yield (
            {"controlChannel": control, "channel": f"{rows}|term-length=64k", "aeronDir": str(aeron_dir)},
            {
                "aeron.archive.control.channel": control,
                "aeron.archive.control.channel.enabled": "true",
                "aeron.archive.replication.channel": "aeron:udp?endpoint=127.0.0.1:0",
            },
        )
        driver.stop()


def exactly_once(orders: list[tuple[str, str]], *, far: bool = False, engine: str = "python") -> int:
    """The parent: gives the orders one after the other, as each has been carried out; returns the exit code."""
    per_batch = PER_BATCH[engine]
    work = Path(tempfile.mkdtemp(prefix="aeron-spark-once-"))
    plan, log = work / "plan", work / "log"
    plan.mkdir()
    runs = 0
    try:
        # A batch for each, and some that nobody disturbs.
        expected = record_input(work / "input", (len(orders) + 2) * per_batch)
        with dirs.fresh("aeron") as aeron_dir, placed(work, far=far) as (options, settings):
            given = {**options, "engine": engine, "perBatch": str(per_batch)}
            (plan / "query.options").write_text(json.dumps(given), "utf-8")
            servers = Servers(aeron_dir, work / "archive", settings)
            servers.start()
            pending = [f"{name}.{victim}" for name, victim in orders]
            query: subprocess.Popen[bytes] | None = None
            while True:
                if pending and not any(not path.name.startswith(("done.", "query")) for path in plan.iterdir()):
                    (plan / pending.pop(0)).touch()
                if query is None:
                    runs += 1
                    query = _start(work, log)
                try:
                    code = query.wait(0.02)
                except subprocess.TimeoutExpired:
                    continue
                with suppress(ProcessLookupError):
                    os.killpg(query.pid, signal.SIGKILL)
                query = None
                if code == 0:
                    break
                if runs > 3 * len(orders) + 3:
                    print(f"the query does not end; it said {log.read_text('utf-8', 'replace')[-3000:]}")
                    return 1
            servers.end()
        carried_out = len(list(plan.glob("done.*")))
        published = _published(work / "archive")
        by_batch, by_stream = committed(work / "archive")
        is_right = by_batch == by_stream == expected
        print(
            f"{carried_out} of {len(orders)} kills{' over UDP' if far else ''}, {runs} runs of Spark, {published} messages "
            f"published, "
            f"{by_batch.total()} committed of {expected.total()}: {'equal as multisets' if is_right else 'DIFFERENT'}"
        )
        if carried_out < len(orders):
            print(f"not carried out: {pending}; the query said {log.read_text('utf-8', 'replace')[-3000:]}")
        return 0 if is_right and carried_out == len(orders) else 1
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _start(work: Path, log: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, PLAN: str(work / "plan")}
    with log.open("ab") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.spark.exactly_once", "--query", str(work)],
            cwd=ROOT,
            env=environment,
            start_new_session=True,
            stderr=file,
            stdout=file,
        )


def _published(archive_dir: Path) -> int:
    with Folder(archive_dir) as folder:
        return sum(
            batch.num_rows
            for recording in folder.recordings()
            if recording.stream_id == STREAM_ID
            for batch in folder.read(recording.recording_id, columns=["position"])
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=12, help="how many, each at a random step (12)")
    parser.add_argument("--every", action="store_true", help="each victim at each step instead")
    parser.add_argument("--far", action="store_true", help="the archive is reached over UDP only")
    parser.add_argument("--engine", choices=PER_BATCH, default="python", help="who gathers the rows (python)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31), help="repeats a run's choice of steps")
    parser.add_argument("--query", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.query is not None:
        run_query(arguments.query)
        return 0
    print(f"seed {arguments.seed}", flush=True)
    every = [(name, victim) for victim in VICTIMS for name in STEPS]
    rng = random.Random(arguments.seed)
    rng.shuffle(every)
    return exactly_once(
        every if arguments.every else rng.choices(every, k=arguments.kills), far=arguments.far, engine=arguments.engine
    )


if __name__ == "__main__":
    sys.exit(main())
