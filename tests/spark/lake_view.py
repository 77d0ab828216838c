"""The view of table and recording, taken again and again while messages come, land, are compacted and are deleted.

    python -m tests.spark.lake_view [--rounds 50]

A round notes how many messages are recorded, takes the view and reads it; meanwhile the query lands more, and retention deletes
all segments up to the bounds that the table had before the round. The view must have the messages 0 to n, each once, and no
fewer than were recorded when it was taken. Prints the figures; exit code 1 on any difference, or if nothing was deleted.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from tests.kit.wait import wait_until
from tests.spark.crash_loop import STREAM_ID, Publisher
from tests.spark.lake_kills import OPTIONS, quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.spark.recorded import Archive

RATE = 1000


class Retention(threading.Thread):
    """Deletes what lies before bounds, whenever it is given some."""

    def __init__(self, archive: Archive, recording_id: int) -> None:
        super().__init__(daemon=True)
        self._archive = archive
        self._recording_id = recording_id
        self._given = threading.Semaphore(0)
        self.bounds: int | None = 0
        self.deleted = 0

    def until(self, bounds: int | None) -> None:
        """Delete up to there, in the thread; None: end."""
        self.bounds = bounds
        self._given.release()

    def run(self) -> None:
        while self._given.acquire() and (bounds := self.bounds) is not None:
            recording = self._archive.control.recording(self._recording_id)
            if (base := recording.segment_base(bounds)) > recording.start_position:
                self.deleted += self._archive.control.purge_segments(self._recording_id, base)


def read(view: DataFrame) -> tuple[int, int, int]:
    """Rows of a view, different messages among them, and the number of the last one."""
    from pyspark.sql import functions as F

    number = F.col("bid") * 10_000 / 3
    found = view.agg(F.count("*"), F.count_distinct("bid"), F.max(number).cast("bigint")).first()
    assert found is not None
    return found[0], found[1], found[2]


def problem_of(read_: tuple[int, int, int], recorded: int) -> str | None:
    """What does not hold; each hundredth message is no row."""
    rows, different, last = read_
    expected = last + 1 - (last // 100 + 1)
    if rows != different or rows != expected or last < recorded - 2:
        return f"{rows} rows, {different} different, the last is {last}, so {expected} are expected; {recorded} were recorded"
    return None


def lake_view(spark: SparkSession, work: Path, rounds: int) -> list[str]:
    """What does not hold; empty is good."""
    from aeron_spark.spark.lake import Landing
    from tests.kit import dirs
    from tests.spark import recorded

    table, options, problems = Landing(work / "table"), {**OPTIONS, "path": str(work / "archive")}, []

    def land(rows: DataFrame, batch_id: int) -> None:
        table.land(rows, batch_id)
        if batch_id % 4 == 0:
            table.compact(spark)

    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, work / "archive") as archive:
        publication = archive.record(STREAM_ID)
        publisher = Publisher(publication, RATE, quote)
        retention = Retention(archive, archive.recording_id(STREAM_ID))
        source = (
            spark.readStream.format("aeron")
            .options(**options, startingPositions="earliest", maxBytesPerTrigger="1m")
            .load()
        )
        query = source.writeStream.foreachBatch(land).option("checkpointLocation", str(work / "checkpoint")).start()
        publisher.start()
        retention.start()
        try:
            wait_until(lambda: table.bounds() or not query.isActive, 200, "a batch to land")
            for turn in range(rounds):
                published = publisher.published
                archive.wait_recorded(STREAM_ID, publication.position)
                retention.until(table.bounds()[archive.recording_id(STREAM_ID)])
                found = read(table.view(spark, options))
                problems += filter(None, [problem_of(found, published)])
                print(
                    f"round {turn + 1} of {rounds}: {found[0]} rows, {retention.deleted} segments deleted", flush=True
                )
            if query.exception() is not None:
                problems.append(f"the query ended: {query.exception()}")
        finally:
            retention.until(None)
            publisher.end()
            retention.join()
            query.stop()
    return problems if retention.deleted else [*problems, "retention has deleted nothing"]


def main() -> int:
    from tests.spark.session import JAR, build_session

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50, help="how often the view is read (50)")
    arguments = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = build_session("lake-view", spark__python__authenticate__socketTimeout="2m", **JAR)
    with tempfile.TemporaryDirectory(prefix="aeron-spark-lake-") as work:
        problems = lake_view(spark, Path(work), arguments.rounds)
    spark.stop()
    for problem in problems:
        print(problem)
    print("FAILED" if problems else f"{arguments.rounds} rounds, each message once")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
