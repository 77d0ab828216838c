"""Rows of the Spark connector: reads beside prebuilt batches, micro-batches beside an empty source, planning, memory."""

from __future__ import annotations

import itertools
import json
import os
import queue
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)
from pyspark.sql.streaming.query import StreamingQuery

from aeron_spark import Folder
from aeron_spark.archive.objects import CATALOG
from aeron_spark.archive.recordings import Recording
from aeron_spark.spark.reading.schema import default_schema
from aeron_spark.spark.source import AeronDataSource
from aeron_spark.types import Position, RecordingId, SessionId, StreamId
from tests.bench import jvm_rows
from tests.bench.floors import copied_s
from tests.bench.pairs import PAIRS, ROOT, Limit, Row, measure
from tests.bench.prebuilt import PrebuiltSource
from tests.kit import dirs
from tests.kit.catalogs import catalog_of
from tests.spark import recorded
from tests.spark.session import JAR, build_session

RECORDED_BYTES = 1 << 30
ROWS_PER_BATCH = 16_384
STREAM_ID = 1001
#: Of rows that are only shown.
FEW_PAIRS = 3
#: Of reads: how long one takes depends on what the JVM does meanwhile, by a third from run to run.
READ_PAIRS = 9
TRIGGER_TIMEOUT_SECONDS = 120.0


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
        return rate(spark.read.format("aeron").options(engine="python", **slots).load(str(folder)))

    def peer() -> float:
        options = {"rows": rows, "payload": payload, "batch": batch, "partitions": partitions}
        ceilings.append(rate(spark.read.format("prebuilt").options(**options).load()))
        return ceilings[-1]

    ceilings: list[float] = []
    batch = min(ROWS_PER_BATCH, (16 << 20) // payload)
    return measure(
        name,
        "rows/s",
        ours,
        peer,
        peer_name="prebuilt Arrow batches",
        target=0.9,
        ours_config={"access": "segments", "engine": "python", "recorded_bytes": RECORDED_BYTES, **slots},
        peer_config={"batch_rows": batch},
        details={"partitions": partitions, "payload": payload, "rows": rows},
        pairs=READ_PAIRS,
        # Prebuilt batches behind the kernel's copy of the segments, which they go without.
        limit=Limit(of=lambda: rows / (rows / ceilings[-1] + copied_s(folder, partitions)), scale=1.0, share=0.9),
    )


@contextmanager
def trickle(folder: Path, recordings: int, clock: Callable[[], int] = time.time_ns) -> Iterator[Path]:
    """Live recordings that take turns in having a next message, which bears the time of its publication."""
    ending = threading.Event()
    settings = {"aeron.archive.max.concurrent.recordings": str(recordings + 1)}
    channel = "aeron:ipc?term-length=64k"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, folder, settings) as archive:
        publications = [archive.record(STREAM_ID + number, channel) for number in range(recordings)]

        def run() -> None:
            body = pa.array([b"x" * 64], type=pa.binary())
            # The pace is the point: a message every 2 ms.
            for publication in itertools.cycle(publications):
                if ending.wait(0.002):
                    return
                publication.offer_batch(body, reserved_values=np.array([clock()]), timeout=30)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield folder
        finally:
            ending.set()
            thread.join()


class Triggers(StreamingQueryListener):
    """Progress of queries as Spark reports it."""

    def __init__(self) -> None:
        self._seen: queue.SimpleQueue[StreamingQueryProgress | None] = queue.SimpleQueue()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Says nothing of triggers."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self._seen.put(event.progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Says nothing of triggers."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self._seen.put(None)

    def median_ms(self, query: StreamingQuery, batches: int = 12) -> float:
        """Median duration of micro-batches with rows, from the query's fourth batch on; stops the query."""
        durations: list[float] = []
        try:
            while len(durations) < batches:
                progress = self._seen.get(timeout=TRIGGER_TIMEOUT_SECONDS)
                if progress is None:
                    raise query.exception() or AssertionError("the query ended")
                if str(progress.runId) == str(query.runId) and progress.numInputRows > 0 and progress.batchId > 2:
                    durations.append(float(progress.durationMs["triggerExecution"]))
        finally:
            query.stop()
        while self._seen.get(timeout=TRIGGER_TIMEOUT_SECONDS) is not None:
            """What the query still said."""
        return statistics.median(durations)


def floor_row(spark: SparkSession, triggers: Triggers, work: Path, recordings: int) -> Row:
    """Micro-batches with next to nothing in them."""
    name = "stream_floor" if recordings == 1 else f"stream_floor_{recordings}"

    def run(source: str, *path: str, **options: str) -> float:
        checkpoint = tempfile.mkdtemp(dir=work)
        stream = spark.readStream.format(source).options(**options).load(*path)
        return triggers.median_ms(stream.writeStream.format("noop").option("checkpointLocation", checkpoint).start())

    with trickle(work / name, recordings) as folder:
        return measure(
            name,
            "ms",
            lambda: run("aeron", str(folder), startingPositions="latest"),
            lambda: run("prebuilt"),
            peer_name="empty Python source",
            target=0.9,
            higher_is_better=False,
            ours_config={"recordings": recordings, "live": True},
            peer_config={"rows": 1},
            pairs=PAIRS if recordings == 1 else FEW_PAIRS,
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


def publish_to_row_row(spark: SparkSession, triggers: Triggers, work: Path, recordings: int) -> Row:
    """Time from a message's publication to its row in a micro-batch, of each batch's newest message."""
    name = "publish_to_row" if recordings == 1 else f"publish_to_row_{recordings}"
    folder = work / name

    def ours() -> float:
        seen: list[float] = []

        def look(frame: DataFrame, _: int) -> None:
            newest = frame.agg({"reserved_value": "max"}).first()
            if newest is not None and newest[0]:
                seen.append((time.time_ns() - newest[0]) / 1e6)

        stream = spark.readStream.format("aeron").options(startingPositions="latest").load(str(folder))
        checkpoint = tempfile.mkdtemp(dir=work)
        triggers.median_ms(stream.writeStream.foreachBatch(look).option("checkpointLocation", checkpoint).start())
        return statistics.median(seen[3:])

    def count(frame: DataFrame, _: int) -> None:
        frame.count()

    def peer() -> float:
        stream = spark.readStream.format("prebuilt").load()
        checkpoint = tempfile.mkdtemp(dir=work)
        query = stream.writeStream.foreachBatch(count).option("checkpointLocation", checkpoint)
        return triggers.median_ms(query.start())

    with trickle(folder, recordings):
        return measure(
            name,
            "ms",
            ours,
            peer,
            peer_name="a micro-batch of an empty Python source",
            target=None,
            higher_is_better=False,
            ours_config={"recordings": recordings, "live": True},
            peer_config={"rows": 1},
            pairs=FEW_PAIRS,
        )


def planning_folder(folder: Path, recordings: int, segments: int) -> Path:
    """A folder of so many recordings; the last one has the segments, each a message and padding, the others are empty."""
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
            for offset, length, kind in ((0, 64, 1), (64, term - 64, 0)):  # data, padding
                header = struct.pack("<iBBHiiiiq", length, 0, 0xC0, kind, offset, 1, STREAM_ID, number, 0)
                file.write(header.ljust(64, b"x"))
            file.truncate(term)
    return folder


def latest_offset_ms(folder: Path) -> float:
    """Median of a call that must read the archive again, with its offset from JSON, as Spark passes it."""
    reader = AeronDataSource({"path": str(folder), "startingPositions": "earliest"}).streamReader(default_schema())
    text = json.dumps(reader.initialOffset())
    limit = reader.getDefaultReadLimit()
    seen = []
    for _ in range(5):
        start = json.loads(text)
        reader.planner.pace.due_at = 0.0
        started = time.monotonic()
        reader.latestOffset(start, limit)
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
from aeron_spark.spark.reading.schema import default_schema
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
    spark = build_session("aeron-spark-bench", spark__driver__memory="4g", **jvm_rows.jars())
    spark.dataSource.register(PrebuiltSource)
    triggers = Triggers()
    spark.streams.addListener(triggers)
    rows: list[Row] = []
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
            if JAR:
                count = record(folder, payload, jvm_rows.BYTES)
                rows += jvm_rows.engine_rows(spark, folder, payload=payload, rows=count)
                rows += (
                    [jvm_rows.planning_row(spark, folder)]
                    if payload == 1024
                    else [jvm_rows.sink_row(spark, payload=payload)]
                )
                shutil.rmtree(folder)
        for recordings in (1, 10, 1000):
            rows += [row(spark, triggers, work, recordings) for row in (floor_row, publish_to_row_row)]
            rows.append(latest_offset_row(work, f"latest_offset_{recordings}", recordings, segments=1, few_segments=1))
        rows.append(latest_offset_row(work, "latest_offset_100k", 100_000, segments=10_000, few_segments=10))
    finally:
        spark.stop()
        shutil.rmtree(work, ignore_errors=True)
    return rows
