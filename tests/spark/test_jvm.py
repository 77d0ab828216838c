"""The engine in Spark's JVM against Python's: same rows, columns, errors, offsets and checkpoints; who reads what, and memory.

Python's engine is the reference. Both read one archive, planned by the same code. Without a JDK there is no jar, and only the
tests of the last part run; where the tests need a JDK anyway, and in CI, the jar must be there.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from aeron_spark.errors import AeronError, UsageError
from aeron_spark.spark import jvm
from aeron_spark.spark.listener import lag, total
from aeron_spark.spark.planning.engine import jvm_job
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.reading.batch import AeronBatchReader, RangesPartition
from aeron_spark.spark.reading.rows import read_schema
from aeron_spark.spark.reading.schema import message_fields
from tests.kit import dirs
from tests.kit.payload import payload
from tests.kit.wait import wait_until
from tests.spark import recorded
from tests.spark.test_ledger import Sink, close_pool

TERM, SEGMENT = 64 * 1024, 128 * 1024
SIZES = [8, 100, 1377, 5000]
FIRST_NS, STEP_NS = 1_700_000_000_000_000_123, 1_000_001
COLUMNS = tuple(message_fields("binary"))
WITH_JAR = pytest.mark.usefixtures("with_jar")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Recording 0: 600 messages over several segments, most with a time as reserved value; then what a sink has committed."""
    archive_dir = tmp_path_factory.mktemp("jvm") / "archive"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, archive_dir) as archive:
        publication = archive.record(1001)
        bodies = [payload(1001, index, SIZES[index % len(SIZES)]) for index in range(600)]
        far = {3: 0, 4: 2**62, 5: -5, 6: -(2**62)}
        times = [far.get(index % 7, FIRST_NS + index * STEP_NS) for index in range(600)]
        publication.offer_batch(pa.array(bodies, pa.binary()), reserved_values=pa.array(times), timeout=20)
        archive.stop(publication, 1001)
        sink = Sink(archive)
        sink.task(b"lost attempt", batch=0)
        sink.commit(sink.task(b"a row", b"another", batch=0))
        sink.commit(sink.task(b"a third", batch=1))
        close_pool()
    return archive_dir


def load(spark: SparkSession, folder: Path, engine: str, **options: str) -> DataFrame:
    return spark.read.format("aeron").options(engine=engine, **options).load(str(folder))


def reader(folder: Path, **options: str) -> AeronBatchReader:
    """As Spark has it, without a session."""
    parsed = ReadOptions.parse({"path": str(folder), **options}, streaming=False)
    return AeronBatchReader(parsed, read_schema(parsed))


def rows_of(frame: DataFrame) -> list[Any]:
    order = [name for name in ("recording_id", "position") if name in frame.columns]
    return frame.orderBy(*order).collect() if order else sorted(frame.collect())


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


# -- rows ----------------------------------------------------------------------------------------------------------


@WITH_JAR
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"timestampFrom": "reserved(ns)"},
        {"timestampFrom": "reserved(us)", "rowsPerBatch": "7"},
        {"maxBytesPerPartition": "70k", "bytesPerBatch": "6k"},
        {"isolation": "read_committed"},
        {"startingPositions": '{"0": 65536}', "recordChecksum": "none"},
        {"tail": "10"},
    ],
    ids=str,
)
def test_every_column_is_as_in_python(spark: SparkSession, folder: Path, options: dict[str, str]) -> None:
    chosen = {"columns": ",".join(COLUMNS), **options}
    ours, pythons = (load(spark, folder, engine, **chosen) for engine in ("jvm", "python"))
    assert ours.schema == pythons.schema
    assert rows_of(ours) == rows_of(pythons)
    assert ours.count() == pythons.count() > 0


@WITH_JAR
def test_a_column_alone_is_as_beside_the_others(spark: SparkSession, folder: Path) -> None:
    frame = load(spark, folder, "jvm", columns=",".join(COLUMNS))
    whole = rows_of(frame)
    for name in COLUMNS:
        alone = frame.select(name)
        assert f"engine=jvm struct<{name}:" in plan_of(alone), "the others are not built"
        assert sorted(row[0] for row in alone.collect() if row[0] is not None) == sorted(
            row[name] for row in whole if row[name] is not None
        )
    assert "engine=jvm struct<>" in plan_of(frame.groupBy().count())
    assert frame.count() == len(whole)
    narrow = frame.where((F.col("position") >= TERM) & (F.col("flags") > 0)).agg(F.max("reserved_value")).first()
    assert narrow is not None
    assert narrow[0] == max(row.reserved_value for row in whole if row.position >= TERM)


@WITH_JAR
def test_a_join_of_a_frame_with_itself_and_a_limit(spark: SparkSession, folder: Path) -> None:
    frame = load(spark, folder, "jvm", recordingIds="0")
    both = frame.alias("a").join(frame.alias("b"), "position").select("a.value", "b.value").collect()
    assert len(both) == 600
    assert all(one == other for one, other in both)
    assert len(frame.limit(3).collect()) == 3
    assert frame.union(load(spark, folder, "python", recordingIds="0")).count() == 1200
    assert spark.sql("SELECT count(DISTINCT value) FROM {frame}", frame=frame).first() == (600,)


@WITH_JAR
def test_filters_that_python_gets_narrow_what_the_jvm_reads(spark: SparkSession, folder: Path) -> None:
    name = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(name, "true")
    try:
        frame = load(spark, folder, "jvm", filterPushdown="true").where(F.col("position") < TERM)
        found = rows_of(frame)
        pythons = rows_of(load(spark, folder, "python").where(F.col("position") < TERM))
        assert "engine=jvm" in plan_of(frame)
        messages = metrics_of(frame)["aeronMessages"]
    finally:
        spark.conf.unset(name)
    assert found == pythons
    assert messages < load(spark, folder, "python").count()


# -- who reads -----------------------------------------------------------------------------------------------------

BEYOND = {"access": "object store"}


@WITH_JAR
def test_auto_takes_the_jvm_for_all_that_it_can_read(spark: SparkSession, folder: Path) -> None:
    assert "aeron engine=jvm" in plan_of(load(spark, folder, "auto"))
    assert "aeron engine=jvm" in plan_of(spark.read.format("aeron").load(str(folder)))
    assert "engine=jvm" not in plan_of(load(spark, folder, "python"))
    frame = load(spark, folder, "auto", **BEYOND)
    assert "engine=jvm" not in plan_of(frame)
    assert rows_of(frame) == rows_of(load(spark, folder, "jvm"))


def metrics_of(frame: DataFrame) -> dict[str, int]:
    """What the scan of a frame has counted, which is run for it."""
    execution = frame._jdf.queryExecution()
    execution.executedPlan().executeCollect()
    plan = execution.executedPlan()
    while plan.children().size():
        plan = plan.children().head()
    names = ("aeronMessages", "aeronBytes", "aeronHandedOver")
    return {name: plan.metrics().apply(name).value() for name in names}


@WITH_JAR
def test_metrics_count_bytes_and_messages(spark: SparkSession, folder: Path) -> None:
    frame = load(spark, folder, "jvm", recordingIds="0", maxBytesPerPartition="70k")
    length = frame.agg(F.max("next_position")).first()
    assert length is not None
    found = metrics_of(frame.select("position"))
    assert found == {"aeronMessages": 600, "aeronBytes": length[0], "aeronHandedOver": 0}


@WITH_JAR
def test_the_user_interface_shows_metrics_as_it_does_those_of_spark(spark: SparkSession, folder: Path) -> None:
    frame = load(spark, folder, "jvm", recordingIds="0")
    length = frame.agg(F.max("next_position")).first()
    assert length is not None
    frame.write.format("noop").mode("overwrite").save()
    store = spark._jsparkSession.sharedState().statusStore()
    last = store.executionsList().last()
    wait_until(
        lambda: store.execution(last.executionId()).get().metricValues() is not None, 30, "the metrics of a query"
    )
    texts = store.executionMetrics(last.executionId())
    metrics = [last.metrics().apply(at) for at in range(last.metrics().size())]
    shown = {metric.name(): texts.get(metric.accumulatorId()) for metric in metrics}
    assert shown["messages read"].get() == "600"
    assert shown["bytes of recordings read"].get() == f"{length[0] / (1 << 20):.1f} MiB"
    assert shown["bytes of recordings left to Python"].get() == "0 B"


# -- errors --------------------------------------------------------------------------------------------------------


def break_frame(folder: Path) -> None:
    """An impossible length in the third term."""
    with (folder / "0-131072.rec").open("r+b") as file:
        file.write(b"\x05\x00\x00\x00")


def change_header(folder: Path) -> None:
    """Another term id."""
    with (folder / "0-0.rec").open("r+b") as file:
        file.seek(20)
        file.write(b"\x07\x07\x07\x07")


def told(frame: DataFrame) -> str:
    """The error of ours that a read ends with, without what Spark says around it."""
    with pytest.raises(PySparkException) as failed:
        frame.collect()
    return first_of(str(failed.value))


def first_of(text: str) -> str:
    """Python puts its stack before it, Spark its code behind."""
    return text[text.index("aeron_spark.errors.") :].splitlines()[0].removesuffix(" SQLSTATE: 38000")


@WITH_JAR
@pytest.mark.parametrize(
    "damage",
    [
        break_frame,
        change_header,
        lambda folder: (folder / "0-131072.rec").unlink(),
        lambda folder: os.truncate(folder / "0-0.rec", 1000),
        lambda folder: os.truncate(folder / "0-131072.rec", 0),
        lambda folder: (folder / "archive.catalog").unlink(),
        lambda folder: (folder / "archive.catalog").write_bytes(b"\x01" * 4096),
    ],
)
def test_errors_are_those_of_python(
    spark: SparkSession, folder: Path, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    damage(copy)
    ours, pythons = (told(load(spark, copy, engine, recordingIds="0")) for engine in ("jvm", "python"))
    assert ours == pythons
    assert str(copy) in ours


def by_python(folder: Path, **options: str) -> list[Any] | str:
    """Rows, or the error, of a read without Spark."""
    try:
        python = reader(folder, columns="position,value", **options)
        batches = (batch for part in python.partitions() for batch in python.read(part))
        return [(row["position"], row["value"]) for batch in batches for row in batch.to_pylist()]
    except AeronError as error:
        return f"aeron_spark.errors.{type(error).__name__}: {error}".splitlines()[0]


def by_jvm(frame: DataFrame) -> list[Any] | str:
    try:
        return [(row.position, bytes(row.value)) for row in frame.collect()]
    except PySparkException as error:
        return first_of(str(error))


@WITH_JAR
def test_damaged_bytes_end_as_in_python(spark: SparkSession, folder: Path, tmp_path: Path, rng: random.Random) -> None:
    """In rows, or in the same error; never with the JVM."""
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    files = [copy / "archive.catalog", *sorted(copy.glob("0-*.rec"))]
    kinds = set()
    for _ in range(15):
        file = rng.choice(files)
        whole = file.read_bytes()
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(0, len(whole), 32) + rng.randrange(32) if rng.random() < 0.5 else rng.randrange(2048)
            damaged[at : at + 4] = rng.randbytes(4)
        file.write_bytes(damaged[: rng.choice([len(whole), len(whole), rng.randrange(len(whole))])])
        expected = by_python(copy, recordingIds="0")
        found = by_jvm(load(spark, copy, "jvm", recordingIds="0", columns="position,value"))
        assert found == expected, file.name
        kinds.add(type(expected))
        file.write_bytes(whole)
    assert str in kinds


@WITH_JAR
def test_what_is_purged_between_planning_and_reading(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    texts = []
    for engine in ("jvm", "python"):
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        frame = load(spark, copy, engine, recordingIds="0")
        execution = frame._jdf.queryExecution()
        execution.executedPlan().execute().getNumPartitions()  # the plan is kept
        with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, copy) as archive:
            archive.control.purge_segments(0, 2 * SEGMENT)
        with pytest.raises(PySparkException) as failed:
            execution.executedPlan().executeCollect()
        texts.append(first_of(str(failed.value)))
        shutil.rmtree(copy)
    assert texts[0] == texts[1]
    assert "is there: it was purged or truncated meanwhile (a plan" in texts[0]


@WITH_JAR
def test_doubts_are_logged_and_strict_ones_fail(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    with (copy / "0-0.rec").open("r+b") as file:
        file.seek(4)
        file.write(b"\x09")  # a version that no publication writes; the frame counts as data
    assert load(spark, copy, "jvm").count() == load(spark, folder, "python").count()
    ours, pythons = (told(load(spark, copy, engine, onCorruption="strict")) for engine in ("jvm", "python"))
    assert ours == pythons
    assert "onCorruption=fail goes on with a warning" in ours


class Held:
    """A read whose plan is made and kept."""

    def __init__(self, frame: DataFrame) -> None:
        self._plan = frame._jdf.queryExecution().executedPlan()
        self._plan.execute().getNumPartitions()

    def told(self) -> str:
        with pytest.raises(PySparkException) as failed:
            self._plan.executeCollect()
        return first_of(str(failed.value))


@WITH_JAR
@pytest.mark.parametrize("length", [0, 31, 4096, 70_000])
def test_a_segment_that_is_truncated_between_planning_and_reading(
    spark: SparkSession, folder: Path, tmp_path: Path, length: int
) -> None:
    """No length of a file ends the JVM: segments are read, and not mapped."""
    texts = []
    for engine in ("jvm", "python"):
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        held = Held(load(spark, copy, engine, recordingIds="0"))
        os.truncate(copy / "0-131072.rec", length)
        texts.append(held.told())
        shutil.rmtree(copy)
    assert texts[0] == texts[1]
    assert "0-131072.rec" in texts[0]


@WITH_JAR
def test_a_segment_that_is_truncated_while_it_is_read(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """By the consumer of its rows, again and again: the rest is an error, and the JVM lives."""
    whole = rows_of(load(spark, folder, "jvm", recordingIds="0"))
    for count in (1, 60, 200):
        copy = tmp_path / f"copy{count}"
        shutil.copytree(folder, copy)
        frame = load(spark, copy, "jvm", recordingIds="0", rowsPerBatch="10", minPartitions="1")
        rows = frame.toLocalIterator()
        found = [next(rows) for _ in range(count)]
        for file in sorted(copy.glob("0-*.rec")):
            os.truncate(file, 0)
        with pytest.raises(PySparkException, match="it is truncated"):
            rows_of(frame)
        assert [row.position for row in found] == [row.position for row in whole[:count]]
    assert load(spark, folder, "jvm").count() > 0


@WITH_JAR
def test_what_is_read_while_it_is_recorded_maps_nothing_of_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    """A `cnc.dat` that is cut under a task does not end the JVM: it does not use it."""
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, tmp_path / "archive") as archive:
        publication = archive.record(1001)
        recorded.publish(publication, 1001, 200, SIZES)
        archive.wait_recorded(1001, publication.position)
        frame = load(spark, tmp_path / "archive", "jvm")
        held = frame._jdf.queryExecution().executedPlan()
        held.execute().getNumPartitions()
        away = aeron_dir / "cnc.away"
        (aeron_dir / "cnc.dat").rename(away)
        (aeron_dir / "cnc.dat").write_bytes(away.read_bytes()[:4096])
        assert len(held.executeCollect()) == 200
        away.rename(aeron_dir / "cnc.dat")
        assert frame.count() == 200
        publication.close()


@WITH_JAR
def test_a_limit_ends_the_reading_of_each_task(spark: SparkSession, folder: Path) -> None:
    frame = load(spark, folder, "jvm", recordingIds="0", minPartitions="1", maxBytesPerPartition="1g")
    limited = frame.select("position").limit(7)
    assert "limit=7" in plan_of(limited)
    assert [row.position for row in limited.collect()] == [row.position for row in rows_of(frame)[:7]]
    assert metrics_of(frame.select("position").limit(7))["aeronMessages"] == 7
    assert len(frame.where("session_id <> 0").limit(601).collect()) == 600


@WITH_JAR
def test_a_jar_of_another_version_is_refused(spark: SparkSession, folder: Path) -> None:
    (partition,) = reader(folder, recordingIds="0").partitions()
    assert isinstance(partition, RangesPartition)
    changed = RangesPartition(partition.ranges, json.dumps({**json.loads(partition.job), "version": "9.9.9"}))
    java = spark.sparkContext._jvm
    gateway = spark.sparkContext._gateway
    assert java is not None
    assert gateway is not None
    of_spark = java.org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition
    partitions = gateway.new_array(java.org.apache.spark.sql.connector.read.InputPartition, 1)
    for planned, is_refused in ((partition, False), (changed, True)):
        partitions[0] = of_spark(0, pickle.dumps(planned))
        of_jar = java.java.lang.Thread.currentThread().getContextClassLoader().loadClass("aeronspark.Planned")
        method = {one.getName(): one for one in of_jar.getDeclaredMethods()}
        for name in ("of", "areForJvm"):
            method[name].setAccessible(True)
        arguments = gateway.new_array(java.java.lang.Object, 1)
        arguments[0] = partitions
        ours = method["of"].invoke(None, arguments)
        both = gateway.new_array(java.java.lang.Object, 2)
        both[0], both[1] = ours, java.org.apache.spark.sql.types.StructType()
        if not is_refused:
            assert method["areForJvm"].invoke(None, both)
            continue
        with pytest.raises(Exception, match="jar of aeron_spark is of version") as failed:
            method["areForJvm"].invoke(None, both)
        assert "plans of 9.9.9: take the jar that aeron_spark.spark.jvm.jar() of the Python package names" in str(
            failed.value
        )


# -- what may be skipped -------------------------------------------------------------------------------------------


def remove_segment(folder: Path) -> None:
    (folder / "0-131072.rec").unlink()


def cut_segment(folder: Path) -> None:
    os.truncate(folder / "0-131072.rec", 100_000)


SKIP, LOSE = {"onCorruption": "skip"}, {"failOnDataLoss": "false"}


@WITH_JAR
@pytest.mark.parametrize("columns", [",".join(COLUMNS), "position"])
@pytest.mark.parametrize(
    "case",
    [
        (break_frame, SKIP),
        (remove_segment, LOSE),
        (cut_segment, {**SKIP, **LOSE}),
        (break_frame, {**SKIP, "maxBytesPerPartition": "70k", "rowsPerBatch": "7"}),
    ],
    ids=["broken", "missing", "cut", "small batches"],
)
def test_what_may_be_left_out_is_what_python_leaves_out(
    spark: SparkSession,
    folder: Path,
    tmp_path: Path,
    case: tuple[Callable[[Path], object], dict[str, str]],
    columns: str,
) -> None:
    """Python's reader takes over where bytes are missing or damaged; the scan stays the JVM's."""
    damage, options = case
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    damage(copy)
    frame = load(spark, copy, "jvm", columns=columns, **options)
    assert "engine=jvm" in plan_of(frame)
    found = rows_of(frame)
    assert found == rows_of(load(spark, copy, "python", columns=columns, **options))
    assert 0 < len(found) < load(spark, folder, "jvm").count()
    assert metrics_of(frame)["aeronHandedOver"] > 0
    assert metrics_of(load(spark, folder, "jvm", columns=columns, **options))["aeronHandedOver"] == 0
    other = LOSE if SKIP.items() <= options.items() else SKIP
    ours, pythons = (told(load(spark, copy, engine, recordingIds="0", **other)) for engine in ("jvm", "python"))
    assert ours == pythons


@WITH_JAR
def test_a_part_of_a_column_is_selected_from_what_python_reads(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    break_frame(copy)
    ours, pythons = (load(spark, copy, engine, columns=",".join(COLUMNS), **SKIP) for engine in ("jvm", "python"))
    for names in (["value", "position"], ["flags"], ["source_identity", "timestamp_ns"]):
        assert sorted(ours.select(names).collect()) == sorted(pythons.select(names).collect())
    assert ours.count() == pythons.count()


# -- streams -------------------------------------------------------------------------------------------------------


def batches_of(
    spark: SparkSession, folder: Path, checkpoint: Path, engine: str, **options: str
) -> dict[int, list[Any]]:
    """Rows by micro-batch of a run that reads what is there."""
    taken: dict[int, list[Any]] = {}

    def keep(frame: DataFrame, batch_id: int) -> None:
        taken[batch_id] = rows_of(frame)

    stream = spark.readStream.format("aeron").options(engine=engine, startingPositions="earliest", **options)
    writer = stream.load(str(folder)).writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination(120)
    assert query.exception() is None
    return taken


def offsets_in(checkpoint: Path) -> dict[str, str]:
    """The last line of each entry of the log, which is ours."""
    logged = (path for path in (checkpoint / "offsets").iterdir() if path.name.isdigit())
    return {path.name: path.read_text().splitlines()[-1] for path in logged}


@WITH_JAR
def test_restarts_alternate_engines_on_one_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    """Rows, batches and the bytes of the offsets are those of a query that Python alone has run."""
    mixed: dict[int, list[Any]] = {}
    alone: dict[int, list[Any]] = {}
    columns = {"columns": ",".join(COLUMNS), "timestampFrom": "reserved(ns)", "maxBytesPerTrigger": "100k"}
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir) as archive:
            publication = archive.record(1001)
            for turn, engine in enumerate(("jvm", "python", "auto", "python", "jvm")):
                recorded.publish(publication, 1001, 60, SIZES, first=60 * turn)
                archive.wait_recorded(1001, publication.position)
                mixed |= batches_of(spark, archive_dir, tmp_path / "mixed", engine, **columns)
                alone |= batches_of(spark, archive_dir, tmp_path / "alone", "python", **columns)
            publication.close()
    assert mixed == alone
    assert len(mixed) >= 5
    assert [row.value for batch in sorted(mixed) for row in mixed[batch]] == [
        payload(1001, index, SIZES[index % len(SIZES)]) for index in range(300)
    ]
    assert offsets_in(tmp_path / "mixed") == offsets_in(tmp_path / "alone")


@WITH_JAR
@pytest.mark.parametrize("options", [{}, {"isolation": "read_committed"}], ids=str)
def test_progress_has_the_lag_as_metrics(
    spark: SparkSession, folder: Path, tmp_path: Path, options: dict[str, str]
) -> None:
    """The same numbers as the listener's, batch by batch, whoever reads; none in the batch that a restart runs again."""
    limits = {"recordingIds": "1", "maxMessagesPerTrigger": "1"} if options else {"maxBytesPerTrigger": "400k"}

    def run(engine: str) -> list[Any]:
        stream = spark.readStream.format("aeron").options(
            engine=engine, startingPositions="earliest", **limits, **options
        )
        writer = (
            stream.load(str(folder)).writeStream.format("noop").option("checkpointLocation", str(tmp_path / engine))
        )
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        return list(query.recentProgress)

    for engine in ("jvm", "python"):
        progress = run(engine)
        behind = []
        for batch in progress:
            lags = lag(batch)
            behind.append(total(lags).bytes or 0)
            assert batch["sources"][0].metrics == {
                "recordings": str(len(lags)),
                "bytesBehindLatest": str(behind[-1]),
                "maxBytesBehindLatest": str(max(one.bytes or 0 for one in lags.values())),
            }
        assert behind == sorted(behind, reverse=True)
        assert behind[-1] == 0
        assert behind[0] > 0
        for name in ("{}", ".{}.crc"):
            (tmp_path / engine / "commits" / name.format(progress[-1].batchId)).unlink()
        (again, *_) = run(engine)
        assert again.batchId == progress[-1].batchId
        assert again.sources[0].metrics == {}


@WITH_JAR
def test_times_of_the_index_while_it_is_recorded(spark: SparkSession) -> None:
    """The JVM maps no counters, which tell how far an active recording goes: what was planned has been recorded."""
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir) as archive:
            publication = archive.record(1001)
            recorded.publish(publication, 1001, 300, SIZES)
            archive.wait_recorded(1001, publication.position)
            columns = {"columns": "position,timestamp_ns", "endingPositions": f'{{"0": {publication.position}}}'}
            by_jvm, by_python = (
                spark.read.format("aeron").options(engine=engine, **columns).load(str(archive_dir)).collect()
                for engine in ("jvm", "python")
            )
    assert by_jvm == by_python
    assert len(by_jvm) == 300
    assert all(row.timestamp_ns for row in by_jvm)


@WITH_JAR
def test_a_stream_that_the_jvm_cannot_read_is_read_by_python(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    by_python = batches_of(spark, folder, tmp_path / "one", "auto", **BEYOND)
    assert by_python == batches_of(spark, folder, tmp_path / "other", "jvm")


# -- memory --------------------------------------------------------------------------------------------------------


@WITH_JAR
def test_tasks_free_what_they_read_into(spark: SparkSession, tmp_path: Path) -> None:
    """Tasks that end early, too. Kept, the columns of the later runs were 320 MB."""
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, tmp_path / "archive") as archive:
        archive.recorded(1001, 4000, [5000])
    pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]

    def resident() -> int:
        status = Path(f"/proc/{pid}/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0]) << 10

    def runs(count: int) -> None:
        for _ in range(count):
            frame = load(spark, tmp_path / "archive", "jvm", bytesPerBatch="64m", minPartitions="1")
            assert frame.agg(F.max("position")).count() == 1
            assert len(frame.limit(1).collect()) == 1
            assert frame.agg(F.max(F.length("value"))).collect() == [(5000,)]

    runs(4)
    before = resident()
    runs(8)
    assert resident() - before < 150 << 20


# -- without the jar, and what is refused ----------------------------------------------------------------------------


@pytest.mark.interop  # which needs a JDK
def test_the_jar_is_there_where_a_jdk_is() -> None:
    assert jvm.jar().is_file()


def test_the_engine_says_what_it_cannot_read(spark: SparkSession, folder: Path) -> None:
    with pytest.raises(PySparkException, match=r"engine=jvm cannot read with access=object store.*: leave engine out"):
        load(spark, folder, "jvm", **BEYOND).collect()


def test_python_does_not_read_for_the_engine_of_the_jvm(folder: Path) -> None:
    """A task gets there only if the JVM has no jar."""
    python = reader(folder, engine="jvm")
    with pytest.raises(UsageError, match=r"engine=jvm: .* without the jar.*configure\(builder\).*leave\s+engine out"):
        next(python.read(python.partitions()[0]))


def test_engines_are_three(folder: Path) -> None:
    with pytest.raises(UsageError, match="option engine='java' is unknown, choose one of auto, python, jvm"):
        reader(folder, engine="java")


def test_what_is_planned_is_text_for_both(folder: Path) -> None:
    """`Planned.java` reads these names."""
    (partition,) = reader(folder, recordingIds="0", recordChecksum="crc-32").partitions()
    function, (text,) = partition.__reduce__()
    assert (function.__module__, function.__name__) == ("aeron_spark.spark.reading.batch", "partition_of")
    assert function(text) == partition
    job = json.loads(text)["job"]
    assert job["path"] == str(folder)
    assert (job["checksum"], job["rows"], job["bytes"], job["reservedUnitNs"]) == (2, 16_384, 1 << 20, 0)
    assert (json.loads(text)["job"]["payload"], json.loads(text)["job"]["handsOver"]) == ("binary", False)
    for options in ({"payload": "string"}, {"onCorruption": "skip"}, {"failOnDataLoss": "false"}):
        (partition,) = reader(folder, recordingIds="0", **options).partitions()
        assert json.loads(partition.__reduce__()[1][0])["job"]["handsOver"], options
    parsed = ReadOptions.parse({"path": str(folder), "payload": "arrow"}, streaming=False)
    assert jvm_job(parsed, None) == {"lack": "payload=arrow", "isJvmAlone": False}


def test_configure_gives_a_session_the_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeron_spark.__path__", [str(tmp_path)])
    with pytest.raises(UsageError, match=r"has no aeron-spark\.jar.*install a wheel .* or a JDK"):
        jvm.jar()
    (tmp_path / "spark").mkdir()
    (tmp_path / "spark" / jvm.NAME).write_bytes(b"")
    builder = jvm.configure(SparkSession.Builder(), "other.jar")
    assert builder._options["spark.jars"] == f"{tmp_path}/spark/{jvm.NAME},other.jar"
