"""Rows beside Kafka: Spark's own connector with a real broker on this machine, the same messages, both into or out of `noop`.

Reads are of 2 partitions on 2 cores. The row shows the ceiling of any Python source, prebuilt Arrow batches, as well: the
target is 3 times Kafka, or where the ceiling is lower than that, nine tenths of the ceiling.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.bench import kafka_broker
from tests.bench.pairs import ROOT, Row, measure
from tests.bench.prebuilt import PrebuiltSource
from tests.bench.spark_rows import ROWS_PER_BATCH, STREAM_ID, record
from tests.kit import dirs
from tests.spark import recorded
from tests.spark.session import build_session

READ_BYTES = 256 << 20
WRITE_ROWS = 1_000_000
WRITE_PAYLOAD = 256
READS = {"kafka_read_64": 64, "kafka_read_256": 256, "kafka_read_1k": 1024}
BEST_READ_TARGET, CEILING_SHARE, WRITE_TARGET = 3.0, 0.9, 2.0
PAIRS = 5


def rate(rows: int, run: Callable[[], object]) -> float:
    started = time.monotonic()
    run()
    return rows / (time.monotonic() - started)


def into_noop(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def read_row(spark: SparkSession, name: str, payload: int, work: Path, address: str) -> Row:
    """The same recorded messages from segments and from a topic that they were copied into."""
    folder = work / name
    count = record(folder, payload, READ_BYTES)
    ours = spark.read.format("aeron").options(minPartitions="2", rowsPerBatch=str(ROWS_PER_BATCH)).load(str(folder))
    kafka = {"kafka.bootstrap.servers": address}
    copied = ours.select("value", (F.spark_partition_id() % 2).alias("partition"))
    copied.write.format("kafka").options(**kafka, topic=name).save()
    theirs = spark.read.format("kafka").options(**kafka, subscribe=name, startingOffsets="earliest").load()
    assert theirs.count() == count, "the topic holds every message once"
    prebuilt = {"rows": count, "payload": payload, "batch": min(ROWS_PER_BATCH, (16 << 20) // payload), "partitions": 2}
    ceiling = spark.read.format("prebuilt").options(**prebuilt).load()
    details: dict[str, object] = {"payload": payload, "rows": count}
    ceilings: list[float] = []

    def peer() -> float:
        ceilings.append(rate(count, lambda: into_noop(ceiling)))
        return rate(count, lambda: into_noop(theirs))

    def target(kafka_rate: float) -> float:
        best = statistics.median(ceilings[1:])
        details.update(prebuilt=round(best), prebuilt_to_kafka=round(best / kafka_rate, 2))
        return min(BEST_READ_TARGET, CEILING_SHARE * best / kafka_rate)

    try:
        return measure(
            name,
            "rows/s",
            lambda: rate(count, lambda: into_noop(ours)),
            peer,
            peer_name="Spark's Kafka connector",
            target=target,
            ours_config={"access": "segments", "recorded_bytes": READ_BYTES, "partitions": 2},
            peer_config={"broker": "one process, KRaft", "partitions": 2},
            details=details,
            pairs=PAIRS,
        )
    finally:
        shutil.rmtree(folder)


def write_row(spark: SparkSession, work: Path, address: str) -> Row:
    """Rows to messages that are recorded, and to a topic with the same guarantee, at least once and acknowledged.

    The rows are made beforehand and kept: making them costs more than either sink.
    """
    rows = (
        spark.range(0, WRITE_ROWS, 1, 2)
        .select(F.rpad(F.col("id").cast("string"), WRITE_PAYLOAD, "x").cast("binary").alias("value"))
        .persist()
    )
    rows.count()
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, work / "written"):
        ours = {"streamId": str(STREAM_ID), "aeronDir": str(aeron_dir), "recordTo": str(work / "written")}
        kafka = {"kafka.bootstrap.servers": address, "topic": "kafka_write_256", "kafka.acks": "all"}
        return measure(
            "kafka_write_256",
            "rows/s",
            lambda: rate(WRITE_ROWS, lambda: rows.write.format("aeron").options(**ours).mode("append").save()),
            lambda: rate(WRITE_ROWS, lambda: rows.write.format("kafka").options(**kafka).save()),
            peer_name="Spark's Kafka connector",
            target=WRITE_TARGET,
            ours_config={"recordTo": True, "partitions": 2},
            peer_config={"acks": "all", "partitions": 2},
            details={"payload": WRITE_PAYLOAD, "rows": WRITE_ROWS},
            pairs=PAIRS,
        )


def run() -> list[Row]:
    """All rows beside Kafka."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    work = Path(tempfile.mkdtemp(prefix="aeron-spark-bench-"))
    spark = build_session(
        "aeron-spark-bench-kafka", spark__driver__memory="4g", spark__jars=kafka_broker.connector_jars()
    )
    spark.dataSource.register(PrebuiltSource)
    try:
        with kafka_broker.broker(work) as address:
            rows = [read_row(spark, name, payload, work, address) for name, payload in READS.items()]
            return [*rows, write_row(spark, work, address)]
    finally:
        spark.stop()
        shutil.rmtree(work, ignore_errors=True)
