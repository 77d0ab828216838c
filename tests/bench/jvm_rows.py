"""Rows of the engine in Spark's JVM: beside Python's, beside prebuilt vectors in the same JVM, and beside the C scan alone.

Their recordings are long, so that they measure rates; what planning takes of a short query has a row of its own.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aeron_spark import Folder
from aeron_spark._native.build_jar import spark_jars
from tests.bench.floors import copied_s
from tests.bench.pairs import ROOT, Limit, Row, measure
from tests.kit import dirs
from tests.kit.wait import wait_until
from tests.spark import recorded
from tests.spark.session import JAR

#: Of the engine in the JVM to Python's (docs/decisions/44-engine-in-the-jvm.md).
NOOP_TARGET, ONE_COLUMN_TARGET = 3.0, 8.0
#: Of prebuilt vectors of the same columns, and of the C scan of the same bytes, which no reader can pass.
CEILING_TARGET, SCAN_TARGET = 0.6, 0.7
#: Of the rows that it gathers for the sink, to those that Spark hands over (docs/decisions/51-rows-to-the-sink-by-a-socket.md).
#: By bytes of a row: with long rows, bytes cost more than the handing over.
SINK_TARGETS, SINK_BYTES = {64: 1.3, 256: 1.1}, 192 << 20
#: Or of prebuilt vectors behind the kernel's copy of the segments' bytes: at 1,024 bytes that copy takes as long as Spark does.
COPIED_SHARE = 0.8
#: Or of the C scan behind Spark's own query over no rows, which takes a quarter as long as that scan.
QUERY_SHARE = 0.9
FEW_PAIRS, TASKS = 3, 2
#: Runs of a query before those that count: by then the JVM has compiled it. The first two take half as long again.
WARM_UPS = 4
#: Of the recordings: any aggregate of Spark takes 0.1 s of its own, over ten rows, too.
BYTES = 8 << 30
ROWS_PER_BATCH = 16_384
SLOTS = {"minPartitions": str(TASKS), "rowsPerBatch": str(ROWS_PER_BATCH), "maxBytesPerPartition": "4g"}
SOURCE = Path(__file__).parent / "java" / "PrebuiltVectors.java"
BUILT = ROOT / "build" / "prebuilt-vectors.jar"


def jars() -> dict[str, str]:
    """Settings of a session with the engine and the prebuilt vectors; none where there is no JDK."""
    compiler = shutil.which("javac")
    if not JAR or compiler is None:
        return JAR
    (setting, engine), *_ = JAR.items()
    with tempfile.TemporaryDirectory() as folder:
        command = [compiler, "-proc:none", "-cp", f"{engine}:{spark_jars()}/*", "-d", folder, str(SOURCE)]
        subprocess.run(command, check=True)
        with zipfile.ZipFile(BUILT, "w") as jar:
            for path in sorted(Path(folder).rglob("*.class")):
                jar.write(path, path.relative_to(folder))
    return {setting: f"{engine},{BUILT}"}


def into_noop(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def sum_of_one(frame: DataFrame) -> None:
    frame.agg({"position": "sum"}).collect()


def scan(folder: Path) -> int:
    """What the C reader alone takes for the column, on as many threads as there are tasks; the number of rows."""

    def part(bounds: tuple[int, int]) -> int:
        with Folder(folder) as opened:
            batches = opened.read(0, *bounds, columns=("position",), row_capacity=ROWS_PER_BATCH)
            return sum(batch.num_rows for batch in batches)

    with Folder(folder) as opened:
        extent = opened.extent(0)
        half = (extent.limit_position - extent.start_position) // TASKS
        starts = opened.split(0, extent.start_position, extent.limit_position, half + 1)
    with ThreadPoolExecutor(TASKS) as pool:
        return sum(pool.map(part, zip(starts, [*starts[1:], extent.limit_position], strict=True)))


def engine_rows(spark: SparkSession, folder: Path, *, payload: int, rows: int) -> Iterator[Row]:
    """All columns into noop, and the sum of one, on two cores."""

    def rate(run: Callable[[], object]) -> float:
        started = time.monotonic()
        run()
        return rows / (time.monotonic() - started)

    def of(engine: str, how: Callable[[DataFrame], None]) -> float:
        return rate(lambda: how(spark.read.format("aeron").options(engine=engine, **SLOTS).load(str(folder))))

    ceilings, scans = [], []

    def scanned() -> float:
        scans.append(rate(lambda: scan(folder)))
        return scans[-1]

    def queried_s() -> float:
        started = time.monotonic()
        spark.range(0, TASKS, 1, TASKS).agg({"id": "sum"}).collect()
        return time.monotonic() - started

    def prebuilt() -> float:
        batch = min(ROWS_PER_BATCH, (8 << 20) // payload)
        options = {"rows": rows, "payload": payload, "batch": batch, "partitions": TASKS}
        ceilings.append(
            rate(lambda: into_noop(spark.read.format("aeronspark.PrebuiltVectors").options(**options).load()))
        )
        return ceilings[-1]

    behind_copy = Limit(
        of=lambda: rows / (rows / ceilings[-1] + copied_s(folder, TASKS)), scale=1.0, share=COPIED_SHARE
    )
    behind_query = Limit(of=lambda: rows / (rows / scans[-1] + queried_s()), scale=1.0, share=QUERY_SHARE)
    for name, how, peer_name, peer, target, limit in (
        ("noop", into_noop, "engine=python", lambda: of("python", into_noop), NOOP_TARGET, None),
        ("noop_ceiling", into_noop, "prebuilt vectors in the JVM", prebuilt, CEILING_TARGET, behind_copy),
        ("column", sum_of_one, "engine=python", lambda: of("python", sum_of_one), ONE_COLUMN_TARGET, None),
        ("column_scan", sum_of_one, "the C scan of the column", scanned, SCAN_TARGET, behind_query),
    ):
        for _ in range(WARM_UPS):
            of("jvm", how)
        yield measure(
            f"jvm_{name}_{payload}",
            "rows/s",
            lambda how=how: of("jvm", how),
            peer,
            peer_name=peer_name,
            target=target,
            ours_config={"access": "segments", "engine": "jvm", **SLOTS},
            peer_config={"tasks": TASKS},
            details={"payload": payload, "rows": rows},
            pairs=FEW_PAIRS,
            limit=limit,
        )


def sink_row(spark: SparkSession, *, payload: int) -> Row:
    """Rows that Spark has made beforehand, published and recorded in memory.

    What was recorded is purged before the next run: memory that the machine gives out for the first time takes longer than the
    rows.
    """
    count = SINK_BYTES // payload
    value = F.rpad(F.col("id").cast("string"), payload, "x").cast("binary").alias("value")
    frame = spark.range(0, count, 1, TASKS).select(value).persist()
    frame.count()
    settings = {"aeron.archive.segment.file.length": "128m"}
    with (
        dirs.fresh("aeron") as aeron_dir,
        dirs.fresh("archive") as folder,
        recorded.archive(aeron_dir, folder, settings) as archive,
    ):
        control = archive.control
        options = {"aeronDir": str(aeron_dir), "recordTo": str(folder), "channel": "aeron:ipc?term-length=64m"}

        def of(engine: str) -> float:
            wait_until(
                lambda: all(one.stop_position is not None for one in control.recordings()), 60, "the recordings' end"
            )
            for one in control.recordings():
                control.purge_recording(one.recording_id)
            started = time.monotonic()
            frame.write.format("aeron").options(engine=engine, streamId="2002", **options).mode("append").save()
            return count / (time.monotonic() - started)

        for engine in ("python", "jvm"):  # what the first write of each takes is not of the rate
            of(engine)
        row = measure(
            f"jvm_sink_{payload}",
            "rows/s",
            lambda: of("jvm"),
            lambda: of("python"),
            peer_name="engine=python",
            target=SINK_TARGETS[payload],
            ours_config={"engine": "jvm", "recorded": "in memory"},
            peer_config={"tasks": TASKS},
            details={"payload": payload, "rows": count},
            pairs=FEW_PAIRS,
        )
    frame.unpersist()
    return row


def planning_row(spark: SparkSession, folder: Path) -> Row:
    """Milliseconds of a query that reads a few messages: what Spark and the planner take."""
    few = {"endingPositions": json.dumps({"0": 320})}

    def of(engine: str) -> float:
        started = time.monotonic()
        sum_of_one(spark.read.format("aeron").options(engine=engine, **SLOTS, **few).load(str(folder)))
        return (time.monotonic() - started) * 1e3

    return measure(
        "jvm_short_query",
        "ms",
        lambda: of("jvm"),
        lambda: of("python"),
        peer_name="engine=python",
        target=1.0,
        higher_is_better=False,
        ours_config={"access": "segments", "engine": "jvm", **SLOTS, **few},
        peer_config={"engine": "python"},
    )
