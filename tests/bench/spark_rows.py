"""Rows of the Spark connector: reads beside prebuilt batches, micro-batches beside an empty source."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from tests.bench.pairs import ROOT, Row, measure
from tests.bench.prebuilt import PrebuiltSource
from tests.kit import dirs
from tests.spark import recorded
from tests.spark.session import build_session

RECORDED_BYTES = 1 << 30
ROWS_PER_BATCH = 16_384
STREAM_ID = 1001


def record(folder: Path, payload: int, total_bytes: int) -> int:
    """A recording of messages of `payload` bytes, `total_bytes` of frames in all; returns the number of messages."""
    frame = -(-(payload + 32) // 32) * 32
    count = total_bytes // frame
    batch = min(count, 65_536)
    offsets = pa.py_buffer(np.arange(batch + 1, dtype=np.int32) * payload)
    data = pa.py_buffer(np.random.default_rng(7).integers(0, 255, batch * payload, dtype=np.uint8))
    bodies = pa.Array.from_buffers(pa.binary(), batch, [None, offsets, data])
    settings = {"aeron.archive.segment.file.length": "128m", "aeron.ipc.term.buffer.length": "16m"}
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, folder, settings) as archive:
        publication = archive.record(STREAM_ID, "aeron:ipc")
        left = count
        while left:
            publication.offer_batch(bodies.slice(0, min(left, batch)), timeout=60)
            left -= min(left, batch)
        archive.stop(publication, STREAM_ID, "aeron:ipc")
    return count


def read_row(spark: SparkSession, name: str, folder: Path, *, payload: int, rows: int, partitions: int) -> Row:
    """Reads the recording whole into noop, on so many partitions."""
    slots = {"minPartitions": str(partitions), "rowsPerBatch": str(ROWS_PER_BATCH), "maxBytesPerPartition": "4g"}

    def rate(source: object) -> float:
        started = time.monotonic()
        source.write.format("noop").mode("overwrite").save()  # type: ignore[attr-defined]
        return rows / (time.monotonic() - started)

    def ours() -> float:
        return rate(spark.read.format("aeron").options(**slots).load(str(folder)))

    def peer() -> float:
        options = {"rows": rows, "payload": payload, "batch": batch, "partitions": partitions}
        return rate(spark.read.format("prebuilt").options(**options).load())

    batch = min(ROWS_PER_BATCH, (16 << 20) // payload)
    return measure(
        name,
        "rows/s",
        ours,
        peer,
        peer_name="prebuilt Arrow batches",
        target=0.5,
        ours_config={"access": "segments", "recorded_bytes": RECORDED_BYTES, **slots},
        peer_config={"batch_rows": batch},
        details={"partitions": partitions, "payload": payload, "rows": rows},
    )


@contextmanager
def trickle(folder: Path) -> Iterator[None]:
    """A live recording that always has a next message."""
    import threading

    ending = threading.Event()
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, folder) as archive:
        publication = archive.record(STREAM_ID, "aeron:ipc?term-length=1m")

        def run() -> None:
            body = pa.array([b"x" * 64], type=pa.binary())
            while not ending.wait(0.002):
                publication.offer_batch(body, timeout=30)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()
            publication.close()


def trigger_ms(query: StreamingQuery, batches: int) -> float:
    """Median duration of the query's newest micro-batches with rows."""
    seen: dict[int, float] = {}
    while len(seen) < batches:
        progress = query.lastProgress
        if progress is not None and progress["numInputRows"] > 0 and progress["batchId"] > 2:
            seen[progress["batchId"]] = float(progress["durationMs"]["triggerExecution"])
        failure = query.exception()
        if failure is not None:
            raise failure
        time.sleep(0.02)
    return statistics.median(seen.values())


def floor_row(spark: SparkSession, work: Path) -> Row:
    """Micro-batches with next to nothing in them."""
    folder = work / "trickle"

    def run(source: str, *path: str, **options: str) -> float:
        checkpoint = tempfile.mkdtemp(dir=work)
        stream = spark.readStream.format(source).options(**options).load(*path)
        query = stream.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
        try:
            return trigger_ms(query, 12)
        finally:
            query.stop()

    with trickle(folder):
        return measure(
            "micro_batch_floor",
            "ms",
            lambda: run("aeron", str(folder), startingPositions="latest"),
            lambda: run("prebuilt"),
            peer_name="empty Python source",
            target=None,
            higher_is_better=False,
            ours_config={"recordings": 1, "live": True},
            peer_config={"rows": 1},
        )


def run() -> list[Row]:
    """All Spark rows."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    work = Path(tempfile.mkdtemp(prefix="aeron-spark-bench-"))
    spark = build_session("aeron-spark-bench", spark__driver__memory="4g")
    spark.dataSource.register(PrebuiltSource)
    rows = []
    try:
        for name, payload in (("spark_read_1k", 1024), ("spark_read_64", 64)):
            folder = work / name
            count = record(folder, payload, RECORDED_BYTES)
            rows.extend(
                read_row(spark, name, folder, payload=payload, rows=count, partitions=partitions)
                for partitions in (1, 2)
            )
            shutil.rmtree(folder)
        rows.append(floor_row(spark, work))
    finally:
        spark.stop()
        shutil.rmtree(work, ignore_errors=True)
    return rows
