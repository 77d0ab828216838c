"""Publishing rows: batch and streaming writes into recordings, back-pressure, bad rows, and the driver beside the executor.

Spec: 09 §4.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from chispa import assert_df_equality
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from aeron_spark.archive.segments import Folder
from aeron_spark.client import Client
from aeron_spark.counters import Counters
from aeron_spark.errors import WaitTimeoutError
from aeron_spark.spark import launch
from aeron_spark.spark.writing.encode import KEY_LENGTH
from tests.kit import dirs, native
from tests.kit.payload import payload
from tests.kit.wait import wait_until
from tests.spark import recorded

STREAM_ID = 1001


def save(frame: DataFrame, aeron_dir: Path, **options: str) -> None:
    settings = {"channel": recorded.CHANNEL, "streamId": str(STREAM_ID), "aeronDir": str(aeron_dir), **options}
    frame.write.format("aeron").options(**settings).mode("append").save()


def numbers(spark: SparkSession, count: int, partitions: int = 2) -> DataFrame:
    return spark.range(0, count, 1, partitions).select(
        F.concat(F.lit("message "), F.col("id")).alias("value"), F.col("id").alias("reserved_value")
    )


def read_back(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.format("aeron").load(str(folder)).select(F.col("value").cast("string"), "reserved_value")


def test_batch_write_is_recorded_and_read_back(spark: SparkSession) -> None:
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir) as archive:
            archive.control.start_recording(recorded.CHANNEL, STREAM_ID)
            frame = numbers(spark, 5000)
            save(frame, aeron_dir)
            wait_until(lambda: read_back(spark, archive_dir).count() == 5000, 30, "5,000 recorded rows")
            assert read_back(spark, archive_dir).exceptAll(frame).count() == 0
            per_task = (
                spark.read.format("aeron")
                .load(str(archive_dir))
                .groupBy("recording_id")
                .agg(F.collect_list("reserved_value").alias("ids"))
            )
            for row in per_task.collect():
                for half in (0, 2500):
                    ids = [number for number in row.ids if half <= number < half + 2500]
                    assert ids == sorted(ids), "order inside a partition is kept"


def test_streaming_write_round_trip(spark: SparkSession, tmp_path: Path) -> None:
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir) as archive:
            archive.recorded(7, 400, [10, 2000])
            archive.control.start_recording(recorded.CHANNEL, STREAM_ID)
            source = spark.readStream.format("aeron").option("startingPositions", "earliest").option("streamId", "7")
            query = (
                source.option("maxMessagesPerTrigger", "150")
                .load(str(archive_dir))
                .select("value", "reserved_value")
                .writeStream.format("aeron")
                .option("channel", recorded.CHANNEL)
                .option("streamId", str(STREAM_ID))
                .option("aeronDir", str(aeron_dir))
                .option("key", "header")
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination(120)
            assert query.exception() is None

            def copied() -> DataFrame:
                both = spark.read.format("aeron").load(str(archive_dir)).select("stream_id", "value", "reserved_value")
                return both.where(F.col("stream_id") == STREAM_ID).drop("stream_id")

            wait_until(lambda: copied().count() == 400, 30, "400 copied rows")
            original = spark.read.format("aeron").option("streamId", "7").load(str(archive_dir))
            messages = copied().selectExpr(f"substr(value, {KEY_LENGTH + 1}) AS value", "reserved_value")
            assert messages.exceptAll(original.select("value", "reserved_value")).count() == 0
            keys = [bytes(row.key) for row in copied().selectExpr(f"substr(value, 1, {KEY_LENGTH}) AS key").collect()]
            assert len(set(keys)) == 400
            assert {UUID(bytes=key[24:]) for key in keys} == {UUID(query.id)}
            assert {int.from_bytes(key[8:16], "little") for key in keys} == {0, 1, 2}


def test_no_subscriber_fails_after_the_timeout(spark: SparkSession) -> None:
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with (
            recorded.archive(aeron_dir, archive_dir),
            pytest.raises(
                PySparkException,
                match=r"row 0 of partition 0 .*no subscriber; .*aeron-spark stat --dir .*publishTimeout",
            ),
        ):
            save(numbers(spark, 10, 1), aeron_dir, publishTimeout="300ms")


@pytest.mark.usefixtures("sink_engine")
def test_message_over_the_maximum_names_its_row(spark: SparkSession) -> None:
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir) as archive:
            archive.control.start_recording(recorded.CHANNEL, STREAM_ID)
            rows = spark.range(0, 100, 1, 1).select(
                F.when(F.col("id") == 42, F.repeat(F.lit("x"), 9000)).otherwise(F.lit("small")).alias("value")
            )
            with pytest.raises(PySparkException, match="row 42 of partition 0"):
                save(rows, aeron_dir)


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ("id", "need a column 'value'"),
        ("id AS value", "value is bigint"),
        ("CAST(id AS STRING) AS value, id AS key", "'key' has no place"),
        ("CAST(id AS STRING) AS value, CAST(id AS INT) AS reserved_value", "reserved_value is int"),
    ],
)
def test_columns_are_checked_before_the_query(spark: SparkSession, columns: str, names: str) -> None:
    with pytest.raises(PySparkException, match=names):
        save(spark.range(10).selectExpr(*[part.strip() for part in columns.split(",")]), dirs.SHARED_MEMORY / "absent")


@contextmanager
def launched(*folders: Path) -> Iterator[Path]:
    """A directory whose driver and archives a test lets start; ended here, as idle workers would keep them for a minute."""
    aeron_dir = dirs.make("aeron")
    yield aeron_dir
    for pid in [*(archive_pid(folder) for folder in folders), driver_pid(aeron_dir)]:
        with suppress(ProcessLookupError):  # an idle one ends by itself after 10 s
            os.kill(pid, signal.SIGTERM)
        wait_until(lambda pid=pid: not _alive(pid), 20, "driver and archives to end")
    assert not aeron_dir.exists()


def driver_pid(aeron_dir: Path) -> int:
    with Counters(aeron_dir) as counters:
        return counters.driver().pid


def archive_pid(folder: Path) -> int:
    with Folder(folder) as opened:
        return opened.info().pid


def test_record_to_starts_driver_and_archives_and_returns_when_recorded(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing runs beforehand; the write is in its folder when it returns, and in no other, on one driver and stream."""
    first, second = tmp_path / "first", tmp_path / "second"
    with launched(first, second) as aeron_dir:
        frame = numbers(spark, 3000, 3)
        save(frame, aeron_dir, recordTo=str(first))
        save(numbers(spark, 20, 1), aeron_dir, recordTo=f"file:{second}")
        empty = spark.range(0, 3, 1, 8).select(F.lit("").alias("value"), F.col("id").alias("reserved_value"))
        save(empty, aeron_dir, recordTo=str(first), aeronDir=f"{aeron_dir}/../{aeron_dir.name}")
        assert_df_equality(read_back(spark, first), frame.union(empty), ignore_row_order=True, ignore_nullable=True)
        named = spark.read.format("aeron").options(channel=recorded.CHANNEL, streamId=str(STREAM_ID)).load(str(second))
        assert named.count() == 20


def test_write_goes_on_after_driver_and_archive_were_killed(spark: SparkSession, tmp_path: Path) -> None:
    """For 10 s they seem alive, and the worker still has its client; nothing is lost or written twice."""
    folder = tmp_path / "archive"
    with launched(folder) as aeron_dir:
        save(numbers(spark, 10, 1), aeron_dir, recordTo=str(folder))
        for pid in (archive_pid(folder), driver_pid(aeron_dir)):
            os.kill(pid, signal.SIGKILL)
        save(numbers(spark, 30, 1), aeron_dir, recordTo=str(folder))
        assert read_back(spark, folder).count() == 40


def test_an_archive_that_died_after_its_driver_is_not_taken_for_alive(
    aeron_dir: Path, archive_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last heartbeat may be a second younger than the driver's."""
    with recorded.archive(aeron_dir, archive_dir):
        assert launch.live_archive(str(archive_dir)) is not None
        with Folder(archive_dir) as folder:
            alive = folder.info()
        heartbeats = iter([alive, alive, replace(alive, is_live=False)])
        monkeypatch.setattr(Folder, "info", lambda _: next(heartbeats))
        monkeypatch.setattr(launch, "is_driver_active", lambda _: False)
        assert launch.live_archive(str(archive_dir)) is None
        # One that lives on without its driver is waited for no longer than a dead one seems alive.
        monkeypatch.setattr(Folder, "info", lambda _: alive)
        monkeypatch.setattr(launch, "ORPHAN_TIMEOUT_SECONDS", 0.05)
        assert launch.live_archive(str(archive_dir)) is alive


def test_folder_that_cannot_be_recorded_to(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with launched() as aeron_dir, pytest.raises(PySparkException, match=f"archive on {file} .*not a directory"):
        save(numbers(spark, 10, 1), aeron_dir, recordTo=str(file))


def test_a_lock_that_is_never_given_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(launch, "LOCK_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(launch, "SHARED_MEMORY", tmp_path)
    handle = os.open(launch.own_folder(), os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with dirs.fresh("aeron") as aeron_dir, pytest.raises(WaitTimeoutError, match="held the lock"):
            launch.ensure_driver(str(aeron_dir), application="test", may_launch=True)
    finally:
        os.close(handle)


def test_idle_archive_ends_by_itself(aeron_dir: Path, archive_dir: Path) -> None:
    """Started as the sink starts it, with a shorter timeout."""
    with native.driver(aeron_dir):
        process = native.archive(aeron_dir, archive_dir, {"aeron.spark.archive.exit.when.idle": "1s"})
        assert process.wait_end(timeout=20) == 0


@pytest.mark.usefixtures("sink_engine")
def test_null_value_names_its_row(spark: SparkSession) -> None:
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir):
            rows = spark.range(0, 10, 1, 1).selectExpr("IF(id = 3, NULL, 'x') AS value")
            with pytest.raises(PySparkException, match="row 3 of partition 0 has a null value"):
                save(rows, aeron_dir)


def test_overwrite_is_refused(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="append"):
        numbers(spark, 1).write.format("aeron").option("streamId", "1").mode("overwrite").save()


def test_no_driver_and_none_may_be_started(spark: SparkSession) -> None:
    with dirs.fresh("aeron") as aeron_dir, pytest.raises(PySparkException, match="aeron-spark driver"):
        save(numbers(spark, 10), aeron_dir, launchDriver="false")


def test_racing_tasks_start_one_driver(spark: SparkSession) -> None:
    """Four tasks find no driver; a subscriber of ours comes as soon as one is there."""
    aeron_dir = dirs.make("aeron")
    received: list[int] = []
    pids: set[int] = set()

    def subscribe() -> None:
        wait_until((aeron_dir / "cnc.dat").exists, 60, "the launched driver")
        with Client(aeron_dir) as client, client.add_subscription(recorded.CHANNEL, STREAM_ID) as subscription:
            with Counters(aeron_dir) as counters:
                pids.add(counters.driver().pid)

            def poll() -> bool:
                received.append(subscription.poll_batch(timeout=0.1).num_rows)
                return sum(received) >= 4000

            wait_until(poll, 60, "4,000 messages")

    subscriber = threading.Thread(target=subscribe)
    subscriber.start()
    try:
        save(numbers(spark, 4000, 4), aeron_dir)
    finally:
        subscriber.join()
    assert sum(received) == 4000
    (pid,) = pids
    with Counters(aeron_dir) as counters:
        assert counters.driver().pid == pid
    os.kill(pid, signal.SIGTERM)  # idle workers would keep it for a minute
    wait_until(lambda: not _alive(pid), 20, "the driver to end")
    assert not aeron_dir.exists()


def test_driver_ends_by_itself_after_its_client_was_killed() -> None:
    """A client process is killed with -9, as an executor would be; the driver goes once its liveness has run out."""
    aeron_dir = dirs.make("aeron")
    script = (
        "import sys, signal\n"
        "from aeron_spark.spark import launch\n"
        "from aeron_spark.client import Client\n"
        "launch.IDLE_EXIT = '5s'\n"  # no pause of a busy machine before the client comes
        "client = Client(launch.ensure_driver(sys.argv[1], application='test', may_launch=True))\n"
        "publication = client.add_exclusive_publication('aeron:ipc', 1)\n"
        "print('ready', flush=True)\n"
        "signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(aeron_dir)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        with Counters(aeron_dir) as counters:
            pid = counters.driver().pid
        process.kill()
    wait_until(lambda: not _alive(pid), 120, "the driver to end by itself")
    assert not aeron_dir.exists()


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.usefixtures("sink_engine")
def test_writes_of_foreach_batch_are_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    """Two exactly-once writes and two keyed ones in each micro-batch; one micro-batch is repeated."""
    failures = ["in the middle of the second micro-batch"]

    def write(frame: DataFrame, batch_id: int) -> None:
        frame = frame.select("value").coalesce(1)
        exactly_once = {"guarantee": "exactly-once", "recordTo": str(archive_dir)}
        save(frame, aeron_dir, streamId="101", writeId="first", **exactly_once)
        if batch_id == 1 and failures:
            raise RuntimeError(failures.pop())
        save(frame, aeron_dir, streamId="102", writeId="second", **exactly_once)
        for _ in range(2):
            save(frame, aeron_dir, streamId="103", key="header", recordTo=str(archive_dir))

    def run(checkpoint: str = "checkpoint") -> StreamingQuery:
        stream = (
            spark.readStream.format("aeron").option("maxMessagesPerTrigger", 10).option("startingPositions", "earliest")
        )
        return (
            stream.load(str(source_dir))
            .writeStream.foreachBatch(write)
            .option("checkpointLocation", str(tmp_path / checkpoint))
            .trigger(availableNow=True)
            .start()
        )

    def committed(stream_id: int, isolation: str = "read_committed") -> list[bytes]:
        reader = spark.read.format("aeron").option("isolation", isolation).option("streamId", stream_id)
        return [row.value for row in reader.load(str(archive_dir)).collect()]

    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir, dirs.fresh("archive") as source_dir:
        with dirs.fresh("aeron") as source_driver, recorded.archive(source_driver, source_dir) as archive:
            archive.recorded(STREAM_ID, 20, [100])
        with recorded.archive(aeron_dir, archive_dir):
            with pytest.raises(StreamingQueryException, match="second micro-batch"):
                run().awaitTermination(120)
            run().awaitTermination(120)
            expected = sorted(payload(STREAM_ID, index, 100) for index in range(20))
            assert sorted(committed(101)) == expected
            assert sorted(committed(102)) == expected
            assert len(committed(101, "read_uncommitted")) == 30
            keyed = committed(103, "read_uncommitted")
            assert len({message[:KEY_LENGTH] for message in keyed}) == len(keyed) == 40
            run("another checkpoint").awaitTermination(120)
            assert sorted(committed(101)) == sorted(expected * 2)
            unnamed = spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS value").writeStream
            query = unnamed.foreachBatch(
                lambda frame, _: save(frame, aeron_dir, guarantee="exactly-once", recordTo=str(archive_dir))
            )
            with pytest.raises(StreamingQueryException, match="needs option writeId"):
                query.trigger(processingTime="0 seconds").start().awaitTermination(120)
