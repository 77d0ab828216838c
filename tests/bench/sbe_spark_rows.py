"""SBE end to end: from a recording's segments to typed columns in Spark.

Python's engine stands beside prebuilt batches of the same columns, the JVM's beside Spark's own reader of the same rows in
Parquet files.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from aeron_spark.spark.source import AeronDataSource
from tests.bench.jvm_rows import SLOTS, TASKS, into_noop
from tests.bench.pairs import ROOT, Row, measure
from tests.bench.prebuilt import PrebuiltFileSource
from tests.bench.sbe_rows import GOLDEN, SCHEMAS, best_bids_and_asks
from tests.kit import dirs
from tests.spark import recorded
from tests.spark.session import JAR, build_session

#: All columns; and a group by two of them, of which Parquet reads only those.
PARQUET_TARGET, PARQUET_GROUP_TARGET = 0.7, 0.4
ROWS = 2 << 20
STREAM_ID = 1001


def _record(folder: Path) -> None:
    messages = pa.array(best_bids_and_asks(), pa.binary())
    settings = {"aeron.archive.segment.file.length": "128m", "aeron.ipc.term.buffer.length": "16m"}
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, folder, settings) as archive:
        publication = archive.record(STREAM_ID, "aeron:ipc")
        for _ in range(ROWS // len(messages)):
            publication.offer_batch(messages, timeout=60)
        archive.stop(publication, STREAM_ID, "aeron:ipc")


def _first_batch(options: dict[str, str]) -> pa.RecordBatch:
    source = AeronDataSource(options)
    reader = source.reader(source.schema())
    return next(iter(reader.read(reader.partitions()[0])))


def _group(frame: DataFrame) -> None:
    frame.groupBy("symbol").agg({"bidPrice": "avg"}).collect()


def run() -> list[Row]:
    """Best bids and asks: one task of Python's engine, two of the JVM's."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    schema, message = SCHEMAS["bbo"]
    chosen = {"payload": "sbe", "sbeSchema": str(GOLDEN / f"{schema}.xml"), "sbeMessage": message}
    options = {**chosen, "minPartitions": "1", "maxBytesPerPartition": "4g", "engine": "python"}
    work = Path(tempfile.mkdtemp(prefix="aeron-spark-bench-"))
    spark = build_session("aeron-spark-bench", spark__driver__memory="4g", **JAR)
    spark.dataSource.register(PrebuiltFileSource)

    def rate(frame: DataFrame, how: Callable[[DataFrame], None] = into_noop) -> float:
        started = time.monotonic()
        how(frame)
        return ROWS / (time.monotonic() - started)

    def rows() -> Iterator[Row]:
        batch = _first_batch({**options, "path": str(work / "recorded")})
        file = work / "batch.arrow"
        with pa.ipc.new_file(file, batch.schema) as to:
            to.write_batch(batch)
        ours = spark.read.format("aeron").options(**options).load(str(work / "recorded"))
        peer = spark.read.format("prebuilt_file").options(path=str(file), rows=str(ROWS)).load()
        assert [one.name for one in ours.schema] == [one.name for one in peer.schema]
        details = {"rows": ROWS, "columns": batch.schema.names}
        yield measure(
            "sbe_spark",
            "rows/s",
            lambda: rate(ours),
            lambda: rate(peer),
            peer_name="prebuilt Arrow batches",
            target=0.8,
            ours_config={"access": "segments", **options},
            peer_config={"batch_rows": batch.num_rows},
            details=details,
        )
        in_jvm = {**chosen, **SLOTS, "engine": "jvm"}
        recorded = spark.read.format("aeron").options(**in_jvm).load(str(work / "recorded"))
        recorded.write.parquet(str(work / "parquet"))
        parquet = spark.read.parquet(str(work / "parquet"))
        for name, how, target in (("noop", into_noop, PARQUET_TARGET), ("group", _group, PARQUET_GROUP_TARGET)):
            yield measure(
                f"jvm_sbe_{name}",
                "rows/s",
                lambda how=how: rate(recorded, how),
                lambda how=how: rate(parquet, how),
                peer_name="Spark's scan of Parquet",
                target=target,
                ours_config={"access": "segments", **in_jvm},
                peer_config={"files": TASKS},
                details=details,
            )

    try:
        _record(work / "recorded")
        return list(rows())
    finally:
        spark.stop()
        shutil.rmtree(work, ignore_errors=True)
