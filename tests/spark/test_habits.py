"""What Spark does to a source besides reading it: watermarks on its times, queries side by side, workers and their Python.

Spec: 09 §2.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from tests.kit import dirs
from tests.kit.payload import payload
from tests.kit.processes import Process
from tests.spark import recorded
from tests.spark.readers import read, stream

SIZES = [8, 100, 1377]
COUNT = 600
STREAM, TIMED = 1001, 1002
ROOT = Path(__file__).resolve().parents[2]
FIRST_S = 1_700_000_000
SECOND_NS = 10**9


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Recording 0: 600 messages; 1: a message a second by its reserved value, and one at the end that is an hour late."""
    archive_dir = tmp_path_factory.mktemp("habits") / "archive"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, archive_dir) as archive:
        archive.recorded(STREAM, COUNT, SIZES)
        publication = archive.record(TIMED)
        seconds = [*range(3600, 3700), 0]
        times = pa.array([(FIRST_S + second) * SECOND_NS for second in seconds])
        publication.offer_batch(pa.array([b"%d" % second for second in seconds]), reserved_values=times, timeout=20)
        archive.stop(publication, TIMED)
    return archive_dir


def test_watermarks_on_the_reserved_value(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """What is later than the watermark is dropped and counted by Spark; windows come out once."""
    options = {"timestampFrom": "reserved(ns)", "columns": "timestamp,value", "streamId": str(TIMED)}
    frame = spark.readStream.format("aeron").options(
        **options, startingPositions="earliest", maxMessagesPerTrigger="30"
    )
    counted = (
        frame.load(str(folder)).withWatermark("timestamp", "20 seconds").groupBy(F.window("timestamp", "10 seconds"))
    )
    query = (
        counted.count()
        .writeStream.format("memory")
        .queryName("watermarks")
        .outputMode("append")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    windows = {
        int(row["window"].start.timestamp()) - FIRST_S - 3600: row["count"]
        for row in spark.table("watermarks").collect()
    }
    # Late is what lies behind the watermark of the batch before the last one. 1_700_000_000 is a multiple of ten; the last
    # windows are open until a later watermark closes them.
    assert windows == dict.fromkeys(range(0, max(windows) + 10, 10), 10)
    assert 60 <= max(windows) + 20 <= 90, "all that the watermark has passed"
    dropped = [
        operator["numRowsDroppedByWatermark"] for part in query.recentProgress for operator in part["stateOperators"]
    ]
    assert sum(dropped) == 1, "the message that is an hour late"


def test_watermarks_on_the_index(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """The archive's time is the event time: it ascends, so nothing is dropped, and the watermark follows it."""
    frame = spark.readStream.format("aeron").options(
        columns="timestamp,position", startingPositions="earliest", maxMessagesPerTrigger="250", streamId=str(STREAM)
    )
    query = (
        frame.load(str(folder))
        .withWatermark("timestamp", "0 seconds")
        .dropDuplicatesWithinWatermark(["position"])
        .writeStream.format("memory")
        .queryName("of_the_index")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = spark.table("of_the_index").agg(F.count("*"), F.max("timestamp"), F.min("timestamp")).first()
    assert found is not None
    assert found[0] == COUNT
    marks = [part["eventTime"]["watermark"] for part in query.recentProgress]
    assert marks == sorted(marks)
    assert marks[-1][:19] == found[1].isoformat()[:19], "the watermark is the last message's time"
    assert time.time() - 3600 < found[2].timestamp() <= found[1].timestamp() <= time.time()


def test_queries_side_by_side(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """Two streams and a table of the same recordings, in the same workers at the same time."""
    queries = [
        spark.readStream.format("aeron")
        .options(startingPositions="earliest", maxMessagesPerTrigger=str(100 + 50 * number), **options)
        .load(str(folder))
        .writeStream.format("memory")
        .queryName(f"side_{number}")
        .option("checkpointLocation", str(tmp_path / f"checkpoint-{number}"))
        .trigger(availableNow=True)
        .start()
        for number, options in enumerate(({"streamId": str(STREAM)}, {"columns": "recording_id,position,value"}))
    ]
    table = spark.read.format("aeron").option("minPartitions", "3").load(str(folder))
    assert table.count() == COUNT + 101
    for query in queries:
        query.awaitTermination()
    expected = [payload(STREAM, index, SIZES[index % len(SIZES)]) for index in range(COUNT)]
    for number in range(2):
        rows = spark.table(f"side_{number}").where("recording_id = 0").orderBy("position").collect()
        assert [bytes(row.value) for row in rows] == expected
    assert spark.table("side_1").count() == COUNT + 101


def test_commits_that_come_late_or_never(folder: Path) -> None:
    """A batch is committed when the next one is planned, the last one never: plans do not rest on it."""
    reader, silent = stream(folder), stream(folder)
    start = reader.initialOffset()
    assert reader.initialOffset() == start, "Spark asks twice"
    middle = reader.latestOffset(start, ReadMaxRows(100))
    first = read(reader, reader.partitions(start, middle))
    end = reader.latestOffset(middle, ReadAllAvailable())
    reader.commit(middle)
    for one in (reader, silent):
        assert read(one, one.partitions(start, middle)) == first, "a batch that was committed can be asked for again"
    assert len(first) + len(read(silent, silent.partitions(middle, end))) == COUNT + 101
    reader.commit(end)
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    for one in (reader, silent):
        one.stop()


PROGRAM = """
import os, sys
from tests.spark.session import build_session
spark = build_session("habits", spark__python__worker__reuse="false")
frame = spark.read.format("aeron").options(minPartitions="3").load(sys.argv[1])
print("rows", frame.count())
pids = {row[0] for row in frame.rdd.mapPartitions(lambda rows: [(os.getpid(), sys.executable)]).collect()}
print("workers", len(pids), spark.sparkContext.pythonExec)
spark.stop()
"""


def run_program(folder: Path, tmp_path: Path, *, path: str, python: str | None) -> Process:
    """A program of its own, with the Python that Spark finds by itself, or that is set."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM, "utf-8")
    told = ["env", "-u", "PYSPARK_PYTHON"] if python is None else ["env", f"PYSPARK_PYTHON={python}"]
    return Process(
        "program",
        [*told, sys.executable, script, folder],
        env={"PATH": path, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
    )


def test_workers_that_are_not_reused_and_found_on_the_path(folder: Path, tmp_path: Path) -> None:
    """PYSPARK_PYTHON is not set: Spark takes the first python3 of the activated environment, a new one for each task."""
    program = run_program(folder, tmp_path, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}", python=None)
    assert program.wait_end(timeout=240) == 0, program.report()
    assert f"rows {COUNT + 101}" in program.stdout(), program.report()
    workers = next(line for line in program.stdout().splitlines() if line.startswith("workers"))
    assert int(workers.split()[1]) >= 3, workers


def test_workers_of_another_python_say_what_they_lack(folder: Path, tmp_path: Path) -> None:
    """The error that docs/spark.md explains; nothing is read by a Python that lacks the package."""
    bare = tmp_path / "bare"
    bare.write_text(
        f'#!/bin/sh\nexec "{sys.base_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}" -S "$@"\n'
    )
    bare.chmod(0o755)
    program = run_program(folder, tmp_path, path=os.environ["PATH"], python=str(bare))
    assert program.wait_end(timeout=240) != 0
    assert "rows" not in program.stdout()
    assert "[DATA_SOURCE_NOT_FOUND]" in program.stderr(), program.report()
