"""Each test is a row of `docs/compatibility.md`: `make compat` runs them with every supported pyspark.

`make test` runs them with the lowest, `make test-more` with the one in .venv. What a pyspark lacks is tested, too: an error
that names the version, or what the page says happens instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aeron_spark.sbe import Encoder
from aeron_spark.spark.features import ADMISSION_CONTROL, FILTER_PUSHDOWN
from aeron_spark.spark.listener import Lag, lag, total
from tests.kit import dirs
from tests.kit.payload import payload
from tests.kit.wait import wait_until
from tests.spark import recorded

pytestmark = pytest.mark.more

SIZES = [8, 100, 1377]
STREAM, SMALL, QUOTES, ROWS = 1001, 1002, 1003, 1004
COUNT = 1500
PRICES = Path(__file__).resolve().parents[3] / "examples" / "prices.xml"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def quotes(count: int) -> pa.RecordBatch:
    """Rows of the example schema."""
    return pa.RecordBatch.from_pydict(
        {
            "time": pa.array([1_700_000_000_000_000 + n for n in range(count)], pa.timestamp("us", "UTC")),
            "symbol": [f"S{n % 3}" for n in range(count)],
            "bid": pa.array([Decimal(n) / 4 for n in range(count)], pa.decimal128(19, 4)),
            "ask": pa.array([Decimal(n + 1) / 4 for n in range(count)], pa.decimal128(19, 4)),
            "venue": [n % 2 or None for n in range(count)],
        }
    )


def arrow_stream(batch: pa.RecordBatch) -> bytes:
    """A message of `payload=arrow`."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Recordings 0 to 3: messages of the payload rule, a few of these, SBE quotes, and Arrow streams."""
    archive_dir = tmp_path_factory.mktemp("compat") / "archive"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, archive_dir) as archive:
        archive.recorded(STREAM, COUNT, SIZES)
        archive.recorded(SMALL, 30, SIZES)
        for stream_id, messages in (
            (QUOTES, Encoder(str(PRICES), "Quote").encode(quotes(200))),
            (ROWS, pa.array([arrow_stream(quotes(50))] * 2)),
        ):
            publication = archive.record(stream_id)
            publication.offer_batch(messages, timeout=20)
            archive.stop(publication, stream_id)
    return archive_dir


def expected(stream_id: int, count: int) -> list[bytes]:
    return [payload(stream_id, index, SIZES[index % len(SIZES)]) for index in range(count)]


class Batches:
    """A foreachBatch that keeps the rows of every batch. A query that stops between batch and commit runs the batch again."""

    def __init__(self) -> None:
        self.by_id: dict[int, list[bytes]] = {}
        self.again: set[int] = set()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        rows = frame.orderBy("recording_id", "position").select("value").collect()
        values = [bytes(row.value) for row in rows]
        if batch_id in self.by_id:
            self.again.add(batch_id)
            assert self.by_id[batch_id] == values, f"batch {batch_id} has other rows when it runs again"
        self.by_id[batch_id] = values

    def values(self) -> list[bytes]:
        return [value for _, values in sorted(self.by_id.items()) for value in values]


def start(spark: SparkSession, folder: Path, checkpoint: Path, batches: Batches, *, now: bool, **options: str) -> Any:
    stream = spark.readStream.format("aeron").options(**{"startingPositions": "earliest", **options}).load(str(folder))
    writer = stream.writeStream.foreachBatch(batches).option("checkpointLocation", str(checkpoint))
    return (writer.trigger(availableNow=True) if now else writer.trigger(processingTime="0 seconds")).start()


def run(spark: SparkSession, folder: Path, checkpoint: Path, batches: Batches, **options: str) -> Any:
    """An available-now run, or, where it has one micro-batch, one more: the first ends what a crash left. The last query."""
    for _ in range(1 if ADMISSION_CONTROL.is_offered else 2):
        query = start(spark, folder, checkpoint, batches, now=True, **options)
        query.awaitTermination(120)
        assert query.exception() is None
    return query


@pytest.mark.compat("Batch read: chosen columns, ranges, SQL views")
def test_batch_read(spark: SparkSession, folder: Path) -> None:
    whole = spark.read.format("aeron").option("streamId", STREAM).load(str(folder)).orderBy("position").collect()
    assert [bytes(row.value) for row in whole] == expected(STREAM, COUNT)
    part = spark.read.format("aeron").options(
        recordingIds="0", columns="timestamp,channel,value", startingPositions=json.dumps({"0": whole[500].position})
    )
    row = part.load(str(folder)).agg(F.count("*"), F.count("timestamp"), F.first("channel")).first()
    assert row is not None
    assert tuple(row) == (COUNT - 500, COUNT - 500, recorded.CHANNEL)
    spark.sql(f"CREATE TEMPORARY VIEW compat USING aeron OPTIONS (path '{folder}', streamId '{SMALL}')")
    try:
        assert spark.sql("SELECT count(*) FROM compat WHERE length(value) > 8").first()[0] == 20  # type: ignore[index]
    finally:
        spark.catalog.dropTempView("compat")


@pytest.mark.compat("Payloads as columns: SBE, Arrow streams, text")
def test_payloads(spark: SparkSession, folder: Path) -> None:
    names = ["time", "symbol", "bid", "venue"]
    sbe = {"payload": "sbe", "sbeSchema": str(PRICES), "sbeMessage": "Quote", "streamId": str(QUOTES)}
    wanted = [tuple(row[name] for name in names) for row in quotes(200).to_pylist()]
    read = spark.read.format("aeron")
    found = read.options(**sbe, columns=",".join(names)).load(str(folder)).toArrow().to_pylist()
    assert [tuple(row[name] for name in names) for row in found] == wanted
    arrow = spark.read.format("aeron").options(payload="arrow", streamId=str(ROWS)).load(str(folder)).select(*names)
    assert [tuple(row.values()) for row in arrow.toArrow().to_pylist()] == wanted[:50] * 2


@pytest.mark.compat("Batch write, at least once and exactly once; `isolation=read_committed`")
def test_batch_write(spark: SparkSession) -> None:
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir):
            place = {"aeronDir": str(aeron_dir), "recordTo": str(archive_dir), "channel": recorded.CHANNEL}
            rows = spark.range(0, 500, 1, 2).selectExpr("concat('row ', id) AS value", "id AS reserved_value")
            for stream_id, guarantee in ((1, "at-least-once"), (2, "exactly-once")):
                options = {**place, "streamId": str(stream_id), "guarantee": guarantee}
                rows.write.format("aeron").options(**options).mode("append").save()
            read = spark.read.format("aeron").option("isolation", "read_committed").load(str(archive_dir))
            back = read.selectExpr("stream_id", "CAST(value AS STRING)", "reserved_value").orderBy("reserved_value")
            assert [tuple(row) for row in back.collect()] == [(2, f"row {n}", n) for n in range(500)]
            assert spark.read.format("aeron").option("streamId", "1").load(str(archive_dir)).count() == 500


@pytest.mark.compat("Stream: goes on after restarts, follows recordings that grow and appear")
def test_stream(spark: SparkSession, tmp_path: Path) -> None:
    """From "latest", which only the checkpoint knows after the first run."""
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir) as archive:
            publication, sent = archive.record(STREAM), 0

            def publish(count: int) -> None:
                nonlocal sent
                recorded.publish(publication, STREAM, count, SIZES, first=sent)
                sent += count
                archive.wait_recorded(STREAM, publication.position)

            publish(100)
            batches, checkpoint = Batches(), tmp_path / "checkpoint"
            query = start(spark, archive_dir, checkpoint, batches, now=False, startingPositions="latest")
            wait_until(lambda: query.lastProgress is not None or query.exception(), 60, "the query to be running")
            for _ in range(3):
                publish(50)
            wait_until(lambda: len(batches.values()) == 150 or query.exception(), 60, "150 messages")
            query.stop()
            publish(20)
            late = archive.record(SMALL)
            recorded.publish(late, SMALL, 10, SIZES)
            archive.wait_recorded(SMALL, late.position)
            run(spark, archive_dir, checkpoint, batches, startingPositions="latest")
            assert batches.values() == expected(STREAM, sent)[100:] + expected(SMALL, 10)
            last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
            last.unlink()  # as after a crash between the offset log and the commit log
            (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
            publish(5)
            run(spark, archive_dir, checkpoint, batches, startingPositions="latest")
            assert int(last.name) in batches.again
            assert sorted(batches.values()) == sorted(expected(STREAM, sent)[100:] + expected(SMALL, 10))
            publication.close()
            late.close()


@pytest.mark.compat('Stream: a crash inside of the first batch does not move where "latest" was')
def test_crash_in_batch_0(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir) as archive:
            publication = archive.record(STREAM)
            recorded.publish(publication, STREAM, 100, SIZES)
            archive.wait_recorded(STREAM, publication.position)
            batches = Batches()
            query = start(spark, archive_dir, checkpoint, batches, now=False, startingPositions="latest")
            wait_until(lambda: query.lastProgress is not None or query.exception(), 60, "the query to be running")
            recorded.publish(publication, STREAM, 50, SIZES, first=100)
            wait_until(lambda: batches.values() == expected(STREAM, 150)[100:] or query.exception(), 60, "50 messages")
            query.stop()
            for log, kept in (("commits", -1), ("offsets", 0)):
                for path in (checkpoint / log).glob("*"):
                    if path.name.strip(".").removesuffix(".crc") != str(kept):
                        path.unlink()
            batches.by_id = {0: batches.by_id[0]}
            recorded.publish(publication, STREAM, 10, SIZES, first=150)
            archive.wait_recorded(STREAM, publication.position)
            run(spark, archive_dir, checkpoint, batches, startingPositions="latest")
            assert 0 in batches.again
            assert batches.values() == expected(STREAM, 160)[100:]
            publication.close()


@pytest.mark.compat(
    "Stream: `Trigger.AvailableNow`",
    feature=ADMISSION_CONTROL,
    instead="one micro-batch a run, of all there is or the unfinished one",
)
def test_available_now(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    options = {"maxMessagesPerTrigger": "600"} if ADMISSION_CONTROL.is_offered else {}
    batches = Batches()
    run(spark, folder, tmp_path / "checkpoint", batches, streamId=str(STREAM), **options)
    assert batches.values() == expected(STREAM, COUNT)
    counts = [len(values) for values in batches.by_id.values()]
    assert counts == ([600, 600, 300] if ADMISSION_CONTROL.is_offered else [COUNT])


@pytest.mark.compat(
    "Stream: `maxBytesPerTrigger`, `maxMessagesPerTrigger`, `minBytesPerTrigger`, `maxTriggerDelay`",
    feature=ADMISSION_CONTROL,
    instead="an error; a micro-batch takes all there is",
)
def test_limits(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    for number, options in enumerate(
        (
            {"maxBytesPerTrigger": "1"},
            {"maxMessagesPerTrigger": "1"},
            {"minBytesPerTrigger": "1", "maxTriggerDelay": "1s", "maxMessagesPerTrigger": "1"},
        )
    ):
        checkpoint, batches = tmp_path / f"{number}", Batches()
        if ADMISSION_CONTROL.is_offered:
            query = start(spark, folder, checkpoint, batches, now=False, recordingIds="1", **options)
            wait_until(lambda: len(batches.by_id) >= 2 or query.exception(), 60, "two batches")  # noqa: B023
            query.stop()
            assert batches.values()[:2] == expected(SMALL, 2)
        else:
            with pytest.raises(StreamingQueryException, match=r"PerTrigger cannot be given: .* from 4\.2 on"):
                start(spark, folder, checkpoint, batches, now=True, **options).awaitTermination(60)


@pytest.mark.compat("Stream: lag in the progress, `LagListener`", feature=ADMISSION_CONTROL, instead="unknown (`None`)")
def test_lag(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    query = start(spark, folder, tmp_path / "checkpoint", Batches(), now=True, streamId=str(STREAM))
    query.awaitTermination(120)
    assert total(lag(query.lastProgress)) == Lag(bytes=0 if ADMISSION_CONTROL.is_offered else None)


@pytest.mark.compat("Streaming sink, at least once and exactly once")
def test_stream_write(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir):
            place = {"aeronDir": str(aeron_dir), "recordTo": str(archive_dir), "channel": recorded.CHANNEL}
            for stream_id, guarantee in ((1, "at-least-once"), (2, "exactly-once")):
                source = spark.readStream.format("aeron").options(startingPositions="earliest", streamId=str(STREAM))
                rows = source.load(str(folder)).select("value", "reserved_value")
                writer = rows.writeStream.format("aeron").options(**place, streamId=str(stream_id), guarantee=guarantee)
                writer = writer.option("checkpointLocation", str(tmp_path / guarantee))
                query = writer.trigger(availableNow=True).start()
                query.awaitTermination(120)
                assert query.exception() is None
                isolation = "read_committed" if stream_id == 2 else "read_uncommitted"
                options = {"isolation": isolation, "streamId": str(stream_id)}
                copied = spark.read.format("aeron").options(**options).load(str(archive_dir)).orderBy("reserved_value")
                assert [bytes(row.value) for row in copied.collect()] == expected(STREAM, COUNT)


@pytest.mark.compat("SBE messages from rows, batch and stream")
def test_sbe_write(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    sbe = {"payload": "sbe", "sbeSchema": str(PRICES), "sbeMessage": "Quote"}
    names = ["time", "symbol", "bid", "ask", "venue"]
    of_quotes = {**sbe, "streamId": str(QUOTES), "columns": ",".join(names)}
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir):
            place = {"aeronDir": str(aeron_dir), "recordTo": str(archive_dir), "channel": recorded.CHANNEL}
            table = spark.read.format("aeron").options(**of_quotes).load(str(folder))
            table.write.format("aeron").options(**place, **sbe, streamId="1").mode("append").save()
            stream = (
                spark.readStream.format("aeron").options(**of_quotes, startingPositions="earliest").load(str(folder))
            )
            writer = stream.writeStream.format("aeron").options(**place, **sbe, streamId="2")
            query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
            query.awaitTermination(120)
            assert query.exception() is None
            original = [row["value"] for row in _values(spark, folder, QUOTES)]
            for stream_id in (1, 2):
                assert [row["value"] for row in _values(spark, archive_dir, stream_id)] == original


def _values(spark: SparkSession, folder: Path, stream_id: int) -> list[Any]:
    read = spark.read.format("aeron").option("streamId", stream_id).load(str(folder))
    return read.orderBy("recording_id", "position").select("value").collect()


@pytest.mark.compat("`filterPushdown=true`", feature=FILTER_PUSHDOWN, instead="an error; Spark filters all the same")
def test_filter_pushdown(spark: SparkSession, folder: Path) -> None:
    spark.conf.set(PUSHDOWN, "true")
    try:
        plain = spark.read.format("aeron").load(str(folder)).where("recording_id = 1")
        assert plain.count() == 30
        options = {"filterPushdown": "true", "minPartitions": "4"}
        if FILTER_PUSHDOWN.is_offered:
            partitions = [
                spark.read.format("aeron").options(**options).load(str(folder)).where(which).rdd.getNumPartitions()
                for which in ("recording_id >= 0", "recording_id < 0")
            ]
            assert partitions[0] > partitions[1] == 1, "nothing is read of recordings that the filter excludes"
        else:
            with pytest.raises(PySparkException, match=r"filterPushdown cannot be given: .* from 4\.1 on"):
                spark.read.format("aeron").options(**options).load(str(folder))
    finally:
        spark.conf.unset(PUSHDOWN)
