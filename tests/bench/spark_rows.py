"""Rows of the Spark connector: reads beside prebuilt batches, micro-batches beside an empty source, planning, memory."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from aeron_spark import Folder
from aeron_spark.archive.objects import CATALOG, catalog_of
from aeron_spark.archive.recordings import Recording
from aeron_spark.spark.schema import default_schema
from aeron_spark.spark.source import AeronDataSource
from aeron_spark.spark.stream_reader import MAX_REFRESH_INTERVAL_SECONDS
from aeron_spark.types import Position, RecordingId, SessionId, StreamId
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
        target=0.9,
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
            "stream_floor",
            "ms",
            lambda: run("aeron", str(folder), startingPositions="latest"),
            lambda: run("prebuilt"),
            peer_name="empty Python source",
            target=0.9,
            higher_is_better=False,
            ours_config={"recordings": 1, "live": True},
            peer_config={"rows": 1},
        )


def scan_row(folder: Path, rows: int) -> Row:
    """The C scan alone, into memory of the reader, beside copying as many bytes."""
    chunk = np.ones(16 << 20, dtype=np.uint8)
    target = np.empty_like(chunk)

    def ours() -> float:
        started = time.monotonic()
        with Folder(folder) as opened:
            seen = sum(
                batch.num_rows for batch in opened.read(0, columns=("position", "value"), row_capacity=ROWS_PER_BATCH)
            )
        assert seen == rows
        return RECORDED_BYTES / (time.monotonic() - started) / 1e6

    def peer() -> float:
        started = time.monotonic()
        for _ in range(RECORDED_BYTES // chunk.nbytes):
            np.copyto(target, chunk)
        return RECORDED_BYTES / (time.monotonic() - started) / 1e6

    return measure(
        "scan_1k",
        "MB/s",
        ours,
        peer,
        peer_name="memcpy",
        target=None,
        ours_config={"columns": "position, value"},
        peer_config={"chunk_bytes": chunk.nbytes},
        details={"rows": rows},
    )


def publish_to_row_row(spark: SparkSession, work: Path) -> Row:
    """Time from a message's publication to its row in a micro-batch, of each batch's newest message."""
    folder = work / "latency"

    def ours() -> float:
        seen: list[float] = []

        def look(frame: DataFrame, _: int) -> None:
            newest = frame.agg({"reserved_value": "max"}).first()
            if newest is not None and newest[0]:
                seen.append((time.time_ns() - newest[0]) / 1e6)

        stream = spark.readStream.format("aeron").options(startingPositions="latest").load(str(folder))
        checkpoint = tempfile.mkdtemp(dir=work)
        query = stream.writeStream.foreachBatch(look).option("checkpointLocation", checkpoint).start()
        try:
            trigger_ms(query, 12)
        finally:
            query.stop()
        return statistics.median(seen[3:])

    def peer() -> float:
        stream = spark.readStream.format("prebuilt").load()
        checkpoint = tempfile.mkdtemp(dir=work)
        query = stream.writeStream.foreachBatch(lambda frame, _: frame.count()).option("checkpointLocation", checkpoint)
        running = query.start()
        try:
            return trigger_ms(running, 12)
        finally:
            running.stop()

    with trickle(folder):
        return measure(
            "publish_to_row",
            "ms",
            ours,
            peer,
            peer_name="a micro-batch of an empty Python source",
            target=None,
            higher_is_better=False,
            ours_config={"recordings": 1, "live": True},
            peer_config={"rows": 1},
            pairs=3,
        )


def planning_folder(folder: Path, recordings: int, segments: int) -> Path:
    """A folder of so many recordings; the last one has the segments, each a term of padding, the others are empty."""
    folder.mkdir()
    term = 64 << 10
    record = Recording(
        recording_id=RecordingId(0),
        start_timestamp_ms=1,
        stop_timestamp_ms=2,
        start_position=Position(0),
        stop_position=Position(0),
        initial_term_id=0,
        segment_file_length=term,
        term_buffer_length=term,
        mtu_length=1408,
        session_id=SessionId(1),
        stream_id=StreamId(STREAM_ID),
        stripped_channel="aeron:ipc",
        original_channel="aeron:ipc",
        source_identity="aeron:ipc",
    )
    listed = [replace(record, recording_id=RecordingId(number)) for number in range(recordings)]
    listed[-1] = replace(listed[-1], stop_position=Position(term * segments))
    (folder / CATALOG).write_bytes(catalog_of(listed))
    for number in range(segments):
        with (folder / f"{recordings - 1}-{number * term}.rec").open("wb") as file:
            file.write(struct.pack("<iBBHiiiiq", term, 0, 0xC0, 0, 0, 1, STREAM_ID, number, 0))
            file.truncate(term)
    return folder


def latest_offset_ms(folder: Path) -> float:
    """Median of a call that has to look at the archive again."""
    reader = AeronDataSource({"path": str(folder), "startingPositions": "earliest"}).streamReader(default_schema())
    start = reader.initialOffset()
    limit = reader.getDefaultReadLimit()  # type: ignore[attr-defined]
    seen = []
    for _ in range(3):
        time.sleep(MAX_REFRESH_INTERVAL_SECONDS)  # until it looks anew
        started = time.monotonic()
        reader.latestOffset(start, limit)  # type: ignore[call-arg]
        seen.append((time.monotonic() - started) * 1e3)
    reader.stop()
    return statistics.median(seen)


def latest_offset_row(work: Path, name: str, recordings: int, *, segments: int, few_segments: int) -> Row:
    """Planning over many segments beside planning over few: the number of files must not count."""
    many = planning_folder(work / f"{name}-many", recordings, segments)
    few = planning_folder(work / f"{name}-few", recordings, few_segments)
    return measure(
        name,
        "ms",
        lambda: latest_offset_ms(many),
        lambda: latest_offset_ms(few),
        peer_name=f"the same with {few_segments} segments",
        target=0.7 if segments > few_segments else None,
        higher_is_better=False,
        ours_config={"recordings": recordings, "segments": segments},
        peer_config={"recordings": recordings, "segments": few_segments},
        pairs=2,
        warm=False,
    )


_TASK = """
import sys
from pathlib import Path
from aeron_spark.spark.schema import default_schema
from aeron_spark.spark.source import AeronDataSource
options = {"path": sys.argv[1], "minPartitions": "1", "maxBytesPerPartition": "8g", "endingPositions": sys.argv[2]}
reader = AeronDataSource(options).reader(default_schema())
rows = sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part))
status = Path("/proc/self/status").read_text()
print(int(status.partition("VmHWM:")[2].split()[0]) / 1024)
"""


def task_memory_row(folder: Path) -> Row:
    """Peak of a task's process, for the whole recording and for a small part of it: the size must not count."""

    def peak(ending: str) -> float:
        command = [sys.executable, "-c", _TASK, str(folder), ending]
        return float(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout)

    return measure(
        "task_memory",
        "MB",
        lambda: peak("latest"),
        lambda: peak(json.dumps({"0": RECORDED_BYTES // 16})),
        peer_name="a sixteenth of the recording",
        target=0.8,
        higher_is_better=False,
        ours_config={"bytesPerBatch": "8m", "recorded_bytes": RECORDED_BYTES},
        peer_config={"bytesPerBatch": "8m", "recorded_bytes": RECORDED_BYTES // 16},
        pairs=3,
        warm=False,
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
        for name, payload in (("read_1k", 1024), ("read_256", 256), ("read_64", 64)):
            folder = work / name
            count = record(folder, payload, RECORDED_BYTES)
            rows.extend(
                read_row(
                    spark,
                    name if partitions == 1 else f"{name}_on_{partitions}",
                    folder,
                    payload=payload,
                    rows=count,
                    partitions=partitions,
                )
                for partitions in (1, 2)
            )
            if payload == 1024:
                rows += [scan_row(folder, count), task_memory_row(folder)]
            shutil.rmtree(folder)
        rows += [floor_row(spark, work), publish_to_row_row(spark, work)]
        rows += [
            latest_offset_row(work, f"latest_offset_{recordings}", recordings, segments=1, few_segments=1)
            for recordings in (1, 10, 1000)
        ]
        rows.append(latest_offset_row(work, "latest_offset_100k", 100_000, segments=10_000, few_segments=10))
    finally:
        spark.stop()
        shutil.rmtree(work, ignore_errors=True)
    return rows
