"""Kills a query that lands SBE messages in a table of a lake, repeatedly with -9, and compares table and recording.

    python -m tests.spark.lake_kills [--into parquet|delta|iceberg] [--kills 200] [--seed n]

A driver, an archive and a publisher run throughout; each hundredth message is no SBE. The query lands micro-batches by
`aeron_spark.spark.lake`, and compacts the table after every second; or by what the documentation shows for Delta and Iceberg
(lake_tables.py). Each run is killed with its JVM at a moment that the seed chooses:

    starting     up to five seconds after its start
    planned      a batch stands in the offset log and not in the commit log
    writing      a batch is being written
    landed       a batch is in the table, and not in the commit log
    compacting   folders are being put together (Parquet)
    committed    a batch has been committed, up to 0.3 s ago

A last run lands what is left. Table and recording then have one digest, as have dead letters and what the recording has of
them, and together they hold every published message. Prints the figures; exit code 1 on any difference.
"""

from __future__ import annotations

import argparse
import collections
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
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.kit.wait import wait_until
from tests.spark.crash_loop import ROOT, Loop, Publisher, published
from tests.spark.lake_tables import KINDS, OF_ERRORS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA = ROOT / "examples" / "prices.xml"
RATE = 2000
OPTIONS = {
    "payload": "sbe",
    "sbeSchema": str(SCHEMA),
    "sbeMessage": "Quote",
    "sbeOthers": "error",
    "onSbeError": "null",
    "columns": "recording_id,position,next_position,timestamp,time,symbol,bid,ask,venue,sbe_error,sbe_error_at,sbe_raw",
}
_HEADER, _QUOTE = struct.Struct("<HHHH"), struct.Struct("<Q8sqqH")


def quote(index: int) -> bytes:
    """A quote that depends on its number; each hundredth is cut off."""
    body = _QUOTE.pack(index, b"S%07d" % (index % 1000), index * 3, index * 5, index % 60_000)
    return (_HEADER.pack(_QUOTE.size, 1, 100, 1) + body)[: 11 if index % 100 == 0 else None]


def digest(rows: DataFrame) -> list[object]:
    """Number of rows, and hashes over all columns in the order of their names."""
    from pyspark.sql import functions as F

    of_row = F.xxhash64(*sorted(rows.columns))
    found = rows.agg(F.count("*"), F.bit_xor(of_row), F.sum(of_row.cast("decimal(38,0)")).cast("string")).first()
    return list(found or ())


def run_query(work: Path, into: str, *, is_last: bool) -> None:
    """The child: lands until it is killed; the last one lands the rest and writes the digests."""
    from pyspark.sql import functions as F

    from tests.spark.session import JAR, build_session

    # A worker that starts slowly on a busy machine is no death.
    spark = build_session("lake-kills", spark__python__authenticate__socketTimeout="2m", **JAR)
    os.chdir(work)
    table = KINDS[into](work)
    options = {**OPTIONS, "path": str(work / "archive")}
    # What is left after 200 kills is a GB where the machine was busy.
    limits = {"startingPositions": "earliest", "maxBytesPerTrigger": "128m" if is_last else "4m", "minPartitions": "2"}
    source = spark.readStream.format("aeron").options(**options, **limits).load()
    writer = source.writeStream.foreachBatch(table.lander(spark)).option("checkpointLocation", str(work / "checkpoint"))
    query = writer.trigger(availableNow=True) if is_last else writer.trigger(processingTime="0 seconds")
    query.start().awaitTermination()
    recorded = spark.read.format("aeron").options(**options).load()
    is_dead, (landed, dead) = F.col("sbe_error").isNotNull(), table.read(spark)
    found = {
        "rows": [digest(landed), digest(recorded.where(~is_dead).drop(*OF_ERRORS))],
        "dead letters": [digest(dead), digest(recorded.where(is_dead).select(*dead.columns))],
    }
    (work / "found").write_text(json.dumps(found), encoding="ascii")


class Kills(Loop):
    """The query's runs, and what they leave in the table and the logs."""

    def __init__(self, work: Path, into: str) -> None:
        super().__init__(work / "archive", work / "checkpoint", work / "journal")
        self.work = work
        self.into = into
        self.table = KINDS[into](work)

    def run_landing(self, *, is_last: bool = False) -> subprocess.Popen[bytes]:
        return self.run("tests.spark.lake_kills", str(self.work), self.into, "last" if is_last else "")

    def kill_at(self, moment: str, rng: random.Random) -> None:
        """Runs the query and kills it and its JVM at the moment."""
        commits = self.newest("commits")
        before = {
            kind: self.table.unfinished(kind) for kind in {"writing", "compacting"}.intersection(self.table.moments)
        }
        delay = rng.uniform(0, {"starting": 5.0, "committed": 0.3}.get(moment, 0))
        process = self.run_landing()
        # What a run before it has left is not of this one.
        states: dict[str, Callable[[], bool]] = {
            "planned": lambda: self.newest("offsets") > commits + 1 and self.in_between(),
            "writing": lambda: bool(self.table.unfinished("writing") - before["writing"]),
            "landed": lambda: self.table.landed() > max(commits, self.newest("commits")),
            "compacting": lambda: bool(self.table.unfinished("compacting") - before["compacting"]),
        }
        try:
            if moment in states:
                reached = lambda: self.stopped_where(process, states[moment])  # noqa: E731 - a line
            else:
                reached = lambda: moment == "starting" or self.newest("commits") > commits  # noqa: E731
            wait_until(lambda: process.poll() is not None or reached(), 300, moment, state=self.last_words)
            threading.Event().wait(delay)
            if process.poll() is not None:
                raise RuntimeError(f"the query ended by itself with {process.returncode}, saying {self.last_words()}")
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def audit(work: Path, publisher: Publisher) -> list[str]:
    """What does not hold; empty is good."""
    found = json.loads((work / "found").read_text("ascii"))
    problems = [
        f"{name}: the table has {landed}, the recording {recorded}"
        for name, (landed, recorded) in found.items()
        if landed != recorded
    ]
    dead = (publisher.published + 99) // 100
    counts = [found[name][0][0] for name in ("rows", "dead letters")]
    if counts != [publisher.published - dead, dead]:
        problems.append(f"{counts} rows and dead letters, of {publisher.published} messages {dead} are no SBE")
    return problems


def lake_kills(kills: int, seed: int, into: str = "parquet") -> int:
    """The parent; returns the exit code."""
    print(f"seed {seed}", flush=True)
    rng = random.Random(seed)
    work = Path(tempfile.mkdtemp(prefix="aeron-spark-lake-"))
    try:
        loop = Kills(work, into)
        moments = loop.table.moments
        at: collections.Counter[str] = collections.Counter()
        with published(loop.folder, RATE, quote) as stream:
            publisher = stream.publisher
            for kill in range(kills):
                # The first ones are those that leave the most behind.
                moment = moments[kill] if kill < len(moments) else rng.choice(moments)
                loop.kill_at(moment, rng)
                stream.keep()
                at[moment] += 1
                print(
                    f"kill {kill + 1} of {kills}: {moment}; batch {loop.newest('offsets')} planned, "
                    f"{loop.table.landed()} landed, {loop.newest('commits')} committed, {publisher.published} published",
                    flush=True,
                )
            stream.end()
            if loop.run_landing(is_last=True).wait(600) != 0:
                print(f"the last run of the query failed, saying {loop.last_words()}")
                return 1
        problems = audit(work, publisher)
        outcome = "FAILED" if problems else "one digest"
        print(f"{into}: {publisher.published} messages, {kills} kills ({dict(at)}): {outcome}")
        for problem in problems:
            print(problem)
        return 1 if problems else 0
    finally:
        shutil.rmtree(work, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", choices=list(KINDS), default="parquet", help="the kind of table (parquet)")
    parser.add_argument("--kills", type=int, default=200, help="how often the query is killed and started again (200)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31), help="repeats a run's moments")
    parser.add_argument("--query", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.query is not None:
        work, into, last = arguments.query
        run_query(Path(work), into, is_last=bool(last))
        return 0
    return lake_kills(arguments.kills, arguments.seed, arguments.into)


if __name__ == "__main__":
    sys.exit(main())
