"""Rows beside Kafka: Spark's own connector with a real broker on this machine, the same messages, both into or out of `noop`.

Reads are of 2 partitions on 2 cores. The row of Python's engine shows the ceiling of any Python source, prebuilt Arrow batches,
as well: the target is 3 times Kafka, or where the ceiling is lower than that, nine tenths of the ceiling. The rows of latency
are from the publication of a message to its row in a micro-batch, of every message, with the same publisher's pace and sink.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.bench import kafka_broker
from tests.bench.pairs import ROOT, Row, measure
from tests.bench.prebuilt import PrebuiltSource
from tests.bench.spark_rows import ROWS_PER_BATCH, STREAM_ID, record
from tests.bench.transport_rows import Figures, Quantiles, print_histograms
from tests.kit import dirs
from tests.spark import recorded
from tests.spark.session import JAR, build_session

READ_BYTES = 256 << 20
WRITE_ROWS = 1_000_000
WRITE_PAYLOAD = 256
READS = {"64": 64, "256": 256, "1k": 1024}
#: Engines by how their rows' names begin.
ENGINES = {"kafka": "python", **({"kafka_jvm": "jvm"} if JAR else {})}
JVM_READ_TARGETS: dict[int, float | None] = {64: 10.0, 256: 10.0, 1024: None}
LATENCY_TOPIC, LATENCY_ROWS = "latency", 2000
#: Now and then Kafka's consumer waits for half a second; how often in a run decides on which side of that its median lies.
LATENCY_PAIRS = 9
#: Of a query, not counted: the first compile what the others run.
FIRST_BATCHES = 3
#: Of the session, as docs/spark.md advises for short micro-batches: through TCP each task in Python waits 40 ms for its input.
SOCKETS = {"spark.python.unix.domain.socket.enabled": "true"}
BEST_READ_TARGET, CEILING_SHARE, WRITE_TARGET = 3.0, 0.9, 2.0
PAIRS = 5


def rate(rows: int, run: Callable[[], object]) -> float:
    started = time.monotonic()
    run()
    return rows / (time.monotonic() - started)


def into_noop(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def read_rows(spark: SparkSession, label: str, payload: int, work: Path, address: str) -> Iterator[Row]:
    """The same recorded messages from segments, by either engine, and from a topic that they were copied into."""
    topic = f"read_{label}"
    folder = work / topic
    count = record(folder, payload, READ_BYTES)
    slots = {"minPartitions": "2", "rowsPerBatch": str(ROWS_PER_BATCH)}
    ours = {
        engine: spark.read.format("aeron").options(engine=engine, **slots).load(str(folder))
        for engine in ENGINES.values()
    }
    kafka = {"kafka.bootstrap.servers": address}
    copied = ours["python"].select("value", (F.spark_partition_id() % 2).alias("partition"))
    copied.write.format("kafka").options(**kafka, topic=topic).save()
    theirs = spark.read.format("kafka").options(**kafka, subscribe=topic, startingOffsets="earliest").load()
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
        for prefix, engine in ENGINES.items():
            is_jvm = engine == "jvm"
            yield measure(
                f"{prefix}_{topic}",
                "rows/s",
                lambda engine=engine: rate(count, lambda: into_noop(ours[engine])),
                (lambda: rate(count, lambda: into_noop(theirs))) if is_jvm else peer,
                peer_name="Spark's Kafka connector",
                target=JVM_READ_TARGETS[payload] if is_jvm else target,
                ours_config={"access": "segments", "engine": engine, "recorded_bytes": READ_BYTES, **slots},
                peer_config={"broker": "one process, KRaft", "partitions": 2},
                details=None if is_jvm else details,
                pairs=PAIRS,
            )
    finally:
        shutil.rmtree(folder)


# -- from the publication of a message to its row ----------------------------------------------------------------------


@contextmanager
def paced(publish: Callable[[bytes], object]) -> Iterator[None]:
    """Messages that are the time of their publication, one every 2 ms."""
    ending = threading.Event()

    def run() -> None:
        while not ending.wait(0.002):  # the pace is the point
            publish(b"%d" % time.time_ns())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def times_to_row(stream: DataFrame, work: Path) -> Figures:
    """Quantiles, and counts below powers of two, of a query that takes each micro-batch as soon as it can."""
    seen: list[int] = []
    batches = 0

    def look(frame: DataFrame, _: int) -> None:
        nonlocal batches
        published = [row[0] for row in frame.select(F.col("value").cast("string").cast("long")).collect()]
        now = time.time_ns()
        batches += 1
        if batches > FIRST_BATCHES:
            seen.extend(now - at for at in published)

    writer = stream.writeStream.foreachBatch(look).option("checkpointLocation", tempfile.mkdtemp(dir=work))
    query = writer.start()
    deadline = time.monotonic() + 120
    try:
        while len(seen) < LATENCY_ROWS and query.isActive and time.monotonic() < deadline:
            query.awaitTermination(0.2)
    finally:
        query.stop()
    if len(seen) < LATENCY_ROWS:
        raise AssertionError(f"{len(seen)} rows came in 120 s: {query.exception()}")
    ordered = sorted(seen)
    figures = {
        f"{name}_ns": float(ordered[int(len(ordered) * share)])
        for name, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("p9999", 0.9999))
    }
    for at in seen:
        below = f"below_{1 << at.bit_length()}_ns"
        figures[below] = figures.get(below, 0) + 1
    return figures


def producer(spark: SparkSession, address: str) -> Any:
    """Kafka's own, in Spark's JVM, which sends at once."""
    jvm: Any = spark.sparkContext._jvm
    settings = jvm.java.util.Properties()
    settings.put("bootstrap.servers", address)
    settings.put("linger.ms", "0")
    for name in ("key.serializer", "value.serializer"):
        settings.put(name, "org.apache.kafka.common.serialization.ByteArraySerializer")
    return jvm.org.apache.kafka.clients.producer.KafkaProducer(settings)


def latency_rows(spark: SparkSession, work: Path, address: str) -> Iterator[Row]:
    """From publication to row in a micro-batch: the middle and the slow ones, by either engine."""
    jvm: Any = spark.sparkContext._jvm
    sender = producer(spark, address)

    def send(body: bytes) -> None:
        sender.send(jvm.org.apache.kafka.clients.producer.ProducerRecord(LATENCY_TOPIC, body))

    def kafka() -> Figures:
        stream = spark.readStream.format("kafka").option("kafka.bootstrap.servers", address)
        with paced(send):
            return times_to_row(stream.options(subscribe=LATENCY_TOPIC, startingOffsets="latest").load(), work)

    folder = work / "latency"
    send(b"1")  # makes the topic
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, folder) as archive:
        publication = archive.record(STREAM_ID)

        def aeron(engine: str) -> Figures:
            stream = spark.readStream.format("aeron").options(engine=engine, startingPositions="latest")
            with paced(lambda body: publication.offer_batch([body], timeout=30)):
                return times_to_row(stream.load(str(folder)), work)

        for prefix, engine in ENGINES.items():
            ours, peer = Quantiles(lambda engine=engine: aeron(engine)), Quantiles(kafka)
            first: Row | None = None
            for quantile in ("p50", "p99"):
                row = measure(
                    f"{prefix}_latency_{quantile}",
                    "us",
                    lambda ours=ours, quantile=quantile: ours.take(quantile),
                    lambda peer=peer, quantile=quantile: peer.take(quantile),
                    peer_name="Spark's Kafka connector",
                    target=1.0,
                    higher_is_better=False,
                    ours_config={"engine": engine, "trigger": "as soon as possible", "message_every_ms": 2, **SOCKETS},
                    peer_config={"linger.ms": 0, "trigger": "as soon as possible", "message_every_ms": 2, **SOCKETS},
                    pairs=LATENCY_PAIRS,
                    runs_of=first,
                )
                first = first or row
                yield row
            print_histograms(f"{prefix}: publication to row", ours, peer, "Spark's Kafka connector")
    sender.close()


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
    jars = ",".join([kafka_broker.connector_jars(), *JAR.values()])
    settings = {"spark.driver.memory": "4g", "spark.jars": jars, **SOCKETS}
    spark = build_session("aeron-spark-bench-kafka", **settings)
    spark.dataSource.register(PrebuiltSource)
    try:
        with kafka_broker.broker(work) as address:
            reads = [row for read in READS.items() for row in read_rows(spark, *read, work, address)]
            return [*reads, write_row(spark, work, address), *latency_rows(spark, work, address)]
    finally:
        spark.stop()
        shutil.rmtree(work, ignore_errors=True)
