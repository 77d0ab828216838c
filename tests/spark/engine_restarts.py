"""Restarts a streaming query by Python's engine and the JVM's in turn on one checkpoint, each time killed with -9.

    python -m tests.spark.engine_restarts [--restarts 200] [--seed n]

A driver, an archive and a publisher run throughout. The query writes files, which Spark does exactly once if its source gives a
batch the same rows at each run. Each restart is killed with its JVM at a moment that the seed chooses:

    starting    up to three seconds after its start
    planned     a batch stands in the offset log and not in the commit log: the other engine runs it again
    written     a task has written a file, which no batch has committed yet or has just
    committed   a batch has been committed

A last restart reads what is left. At the end the files hold each published message once. Prints the figures; exit code 1 on
any difference, or if one of the engines has committed no rows or continued no batch of the other.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.kit.wait import wait_until
from tests.spark.crash_loop import Loop, Publisher, published

ENGINES = ("jvm", "python")
MOMENTS = ("planned", "committed", "written", "starting")
RATE = 2000


def run_query(work: Path, engine: str, *, is_last: bool) -> None:
    """The child: writes files until it is killed; the last one writes the rest and then what the files hold."""
    from pyspark.sql import functions as F

    from tests.spark.session import JAR, build_session

    spark = build_session("engine-restarts", **JAR)
    options = {"engine": engine, "startingPositions": "earliest", "maxBytesPerTrigger": "4m", "minPartitions": "2"}
    rows = spark.readStream.format("aeron").options(**options, columns="position,value").load(str(work / "archive"))
    writer = rows.withColumn("engine", F.lit(engine)).writeStream.format("parquet")
    writer = writer.option("path", str(work / "files")).option("checkpointLocation", str(work / "checkpoint"))
    query = writer.trigger(availableNow=True) if is_last else writer.trigger(processingTime="0 seconds")
    query.start().awaitTermination()
    written = spark.read.parquet(str(work / "files"))
    found = written.agg(F.count("*"), F.count_distinct("position"), F.sum(F.crc32("value"))).first()
    engines = {row.engine: row["count"] for row in written.groupBy("engine").count().collect()}
    (work / "found").write_text(json.dumps([list(found or ()), engines]), encoding="ascii")


class Restarts(Loop):
    """The query's runs, and what they leave in the logs."""

    def __init__(self, work: Path) -> None:
        super().__init__(work / "archive", work / "checkpoint", work / "journal")
        self.work = work

    def start_with(self, engine: str, *, is_last: bool = False) -> subprocess.Popen[bytes]:
        return self.run("tests.spark.engine_restarts", str(self.work), engine, "last" if is_last else "")

    def files(self) -> int:
        return sum(1 for _ in (self.work / "files").glob("part-*.parquet"))

    def kill_one(self, engine: str, moment: str, rng: random.Random) -> None:  # type: ignore[override]
        """Restarts the query and kills it and its JVM at the moment, or, where that says no more, up to 0.3 s later."""
        commits, files = self.newest("commits"), self.files()
        delay = rng.uniform(0, 3.0 if moment == "starting" else 0.3)
        process = self.start_with(engine)
        moments: dict[str, Callable[[], bool]] = {
            "starting": lambda: True,
            # What a run before it has left in between is not of this one.
            "planned": lambda: self.newest("offsets") > commits + 1 and self.stopped_where(process, self.in_between),
            "written": lambda: self.files() > files,
            "committed": lambda: self.newest("commits") > commits,
        }
        try:
            reached = moments[moment]
            wait_until(lambda: reached() or process.poll() is not None, 300, moment, state=self.last_words)
            if moment != "planned":
                threading.Event().wait(delay)
            if process.poll() is not None:
                raise RuntimeError(f"the query ended by itself with {process.returncode}, saying {self.last_words()}")
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _moments(rng: random.Random) -> Iterator[str]:
    """For each restart. Each engine in turn leaves a batch that the next one certainly commits; every third is any moment."""
    while True:
        yield from ("planned", "committed", rng.choice(MOMENTS))


def audit(work: Path, publisher: Publisher, continued: dict[str, int]) -> list[str]:
    """What does not hold; empty is good."""
    (count, distinct, checksum), engines = json.loads((work / "found").read_text("ascii"))
    problems = []
    if (count, distinct, checksum) != (publisher.published, publisher.published, publisher.checksum):
        problems.append(
            f"the files hold {count} messages of {distinct} positions with checksum sum {checksum}, published were "
            f"{publisher.published} with {publisher.checksum}"
        )
    problems += [f"engine={engine} has committed no rows" for engine in ENGINES if not engines.get(engine)]
    problems += [f"engine={engine} has continued no batch" for engine in ENGINES if not continued[engine]]
    print(f"rows by engine: {engines}; batches begun by the other engine and run again: {continued}")
    return problems


def engine_restarts(restarts: int, seed: int) -> int:
    """The parent; returns the exit code."""
    print(f"seed {seed}", flush=True)
    rng = random.Random(seed)
    work = Path(tempfile.mkdtemp(prefix="aeron-spark-restarts-"))
    try:
        loop = Restarts(work)
        continued = dict.fromkeys(ENGINES, 0)
        begun_by = ""
        with published(loop.folder, RATE) as stream:
            publisher = stream.publisher
            engines = rng.sample(ENGINES, len(ENGINES))
            turns = itertools.islice(zip(itertools.cycle(engines), _moments(rng), strict=False), restarts)
            for turn, (engine, moment) in enumerate(turns, 1):
                pending = loop.newest("offsets") if loop.in_between() else -1
                planned = loop.newest("offsets")
                loop.kill_one(engine, moment, rng)
                stream.keep()
                continued[engine] += begun_by not in ("", engine) and 0 <= pending <= loop.newest("commits")
                begun_by = engine if loop.newest("offsets") > planned else begun_by
                print(
                    f"restart {turn} of {restarts}: engine={engine} killed at {moment}; batch {loop.newest('offsets')} "
                    f"planned, {loop.newest('commits')} committed, {publisher.published} published",
                    flush=True,
                )
            stream.end()
            if loop.start_with(engines[restarts % len(engines)], is_last=True).wait(600) != 0:
                print(f"the last run of the query failed, saying {loop.last_words()}")
                return 1
        problems = audit(work, publisher, continued)
        print(f"{publisher.published} messages, {restarts} kills: {'FAILED' if problems else 'each message once'}")
        for problem in problems:
            print(problem)
        return 1 if problems else 0
    finally:
        shutil.rmtree(work, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--restarts", type=int, default=200, help="how often the query is killed and started again (200)"
    )
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31), help="repeats a run's moments")
    parser.add_argument("--query", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.query is not None:
        work, engine, last = arguments.query
        run_query(Path(work), engine, is_last=bool(last))
        return 0
    return engine_restarts(arguments.restarts, arguments.seed)


if __name__ == "__main__":
    sys.exit(main())
