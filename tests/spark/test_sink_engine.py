"""The sink with rows that Spark's JVM gathers: the same messages and errors as Python's, and an end of every wait.

A task's rows are more than one block, so that they go by the socket; a subscriber that does not poll holds a task there.
Spec: 09 §4.
"""

from __future__ import annotations

import resource
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from aeron_spark.client import Client
from tests.kit import dirs, native
from tests.kit.wait import wait_until
from tests.spark import recorded
from tests.spark.session import JAR
from tests.spark.test_sink import STREAM_ID, save

#: Of a partition, in more than one block by their number, by their bytes, and with one that is longer than a block.
COUNT = 40_000
MANY, LONG, LONGEST = (
    "CAST(id AS STRING)",
    "CONCAT(id, ' ', REPEAT('x', 500))",
    "REPEAT('y', IF(id = 9, 1500000, id % 7))",
)

#: Takes the rows of a test without a subscriber that polls.
WIDE = "aeron:ipc?term-length=16m"

needs_jar = pytest.mark.usefixtures("with_jar")


def rows(spark: SparkSession, value: str, count: int = COUNT) -> DataFrame:
    return spark.range(0, count, 1, 1).selectExpr(f"{value} AS value")


@contextmanager
def held_back(channel: str = recorded.CHANNEL) -> Iterator[Path]:
    """The directory of a driver with a subscriber that takes nothing."""
    with dirs.fresh("aeron") as aeron_dir, native.driver(aeron_dir), Client(aeron_dir) as client:
        with client.add_subscription(channel, STREAM_ID):
            yield aeron_dir


@pytest.mark.parametrize("kind", ["STRING", "BINARY"])
@pytest.mark.parametrize("value", [MANY, LONG, LONGEST])
@pytest.mark.usefixtures("sink_engine")
def test_messages_are_the_rows_in_their_order(spark: SparkSession, value: str, kind: str) -> None:
    count = COUNT if value == MANY else 5000
    frame = rows(spark, f"CAST({value} AS {kind})", count)
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir, {"aeron.archive.segment.file.length": "16m"}):
            save(frame, aeron_dir, channel=WIDE, recordTo=str(archive_dir), key="reserved")
            read = (
                spark.read.format("aeron").load(str(archive_dir)).orderBy("position").select("reserved_value", "value")
            )
            published = read.collect()
    assert [row.reserved_value for row in published] == list(range(count))
    expected = [row.value if kind == "BINARY" else row.value.encode() for row in frame.collect()]
    assert [row.value for row in published] == expected


def test_stream_writes_the_same(spark: SparkSession, sink_engine: str, tmp_path: Path) -> None:
    source = tmp_path / "rows"
    rows(spark, MANY).write.parquet(str(source))
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir):
            query = (
                spark.readStream.schema("value STRING")
                .parquet(str(source))
                .writeStream.format("aeron")
                .options(channel=recorded.CHANNEL, streamId=str(STREAM_ID), aeronDir=str(aeron_dir))
                .options(recordTo=str(archive_dir), guarantee="exactly-once")
                .option("engine", "jvm" if sink_engine == "auto" and JAR else sink_engine)  # which Python would refuse
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination(120)
            assert query.exception() is None
            read = spark.read.format("aeron").option("isolation", "read_committed").load(str(archive_dir))
            assert sorted(int(row.value) for row in read.select("value").collect()) == list(range(COUNT))


@pytest.mark.usefixtures("sink_engine")
def test_a_null_far_behind_names_its_row(spark: SparkSession) -> None:
    frame = rows(spark, "IF(id = 35000, NULL, CAST(id AS STRING))")
    with held_back(WIDE) as aeron_dir:
        with pytest.raises(
            PySparkException, match="row 35000 of partition 0 has a null value, a message needs one: filter or"
        ):
            save(frame, aeron_dir, channel=WIDE, launchDriver="false")


@pytest.mark.usefixtures("sink_engine")
def test_an_error_of_the_rows_is_theirs(spark: SparkSession) -> None:
    frame = rows(spark, "IF(id = 35000, RAISE_ERROR('no such row'), CAST(id AS STRING))")
    with held_back(WIDE) as aeron_dir:
        with pytest.raises(PySparkException, match="no such row"):
            save(frame, aeron_dir, channel=WIDE, launchDriver="false")


# -- tasks that wait ---------------------------------------------------------------------------------------------------


def failure_of_held(spark: SparkSession, aeron_dir: Path, disturb: Callable[[], None]) -> str:
    """What a write says that is disturbed while its task waits in the JVM; it leaves no socket."""
    before = sockets()

    def wait_and_disturb() -> None:
        wait_until(lambda: is_sending(spark), 60, "the JVM to send")
        disturb()

    disturber = threading.Thread(target=wait_and_disturb)
    disturber.start()
    try:
        with pytest.raises((PySparkException, Py4JJavaError)) as failure:
            save(rows(spark, LONG), aeron_dir, publishTimeout="120s")
    finally:
        disturber.join()
    wait_until(lambda: not is_sending(spark) and not sockets() - before, 60, "the task and its socket to be gone")
    return str(failure.value)


def is_sending(spark: SparkSession) -> bool:
    """Whether a task waits in the JVM for its worker to read."""
    jvm: Any = spark._jvm
    stacks = jvm.java.lang.Thread.getAllStackTraces().values()
    return any("aeronspark.BlockSocket.send" in str(frame) for stack in stacks for frame in stack)


def sockets() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("aeron-rows-*"))


@pytest.mark.usefixtures("sink_engine")
def test_rows_that_nobody_takes_name_the_first_one(spark: SparkSession) -> None:
    with held_back() as aeron_dir:
        with pytest.raises(
            PySparkException, match=r"row \d+ of partition 0 was not published .* are behind by the whole window"
        ):
            save(rows(spark, LONG), aeron_dir, publishTimeout="1s")


@needs_jar
def test_a_killed_worker_ends_the_task_that_sends_to_it(spark: SparkSession) -> None:
    jvm: Any = spark._jvm

    def kill() -> None:
        own = jvm.java.lang.ProcessHandle.current()
        for process in own.descendants().toList():
            if process.parent().get().pid() != own.pid():
                process.destroyForcibly()

    with held_back() as aeron_dir:
        assert "Python worker exited unexpectedly" in failure_of_held(spark, aeron_dir, kill)


@needs_jar
def test_a_cancelled_task_ends(spark: SparkSession) -> None:
    with held_back() as aeron_dir:
        assert "cancel" in failure_of_held(spark, aeron_dir, spark.sparkContext.cancelAllJobs)


def socket_given_up(spark: SparkSession) -> Any:
    """The field of Java that says whether blocks go through Spark for good."""
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    given_up = jvm.java.lang.Class.forName("aeronspark.BlockSocket", True, loader).getDeclaredField("isGivenUp")  # noqa: FBT003 - Java's
    given_up.setAccessible(True)
    return given_up


def calls_of_socket(spark: SparkSession) -> Callable[..., Any]:
    """Calls a method of a task's socket without arguments, by its name."""
    java: Any = spark._jvm
    methods = {method.getName(): method for method in socket_given_up(spark).getDeclaringClass().getDeclaredMethods()}
    none = spark.sparkContext._gateway.new_array(java.java.lang.Object, 0)  # type: ignore[union-attr]

    def call(name: str, socket: Any = None) -> Any:
        methods[name].setAccessible(True)
        return methods[name].invoke(socket, none)

    return call


@needs_jar
def test_what_spark_compresses_for_python_goes_by_the_socket(spark: SparkSession) -> None:
    """Compressed, the row that names the socket would be too short for Spark to send it before the next one."""
    spark.conf.set("spark.sql.execution.arrow.compression.codec", "zstd")
    try:
        test_messages_are_the_rows_in_their_order(spark, LONG, "STRING")
    finally:
        spark.conf.unset("spark.sql.execution.arrow.compression.codec")
    assert not socket_given_up(spark).getBoolean(None)


@needs_jar
def test_without_a_socket_blocks_go_through_spark(spark: SparkSession) -> None:
    """As where the folder of temporary files takes none, and after a worker that did not come."""
    given_up = socket_given_up(spark)
    assert not given_up.getBoolean(None), "a worker has not come before"
    given_up.setBoolean(None, True)  # noqa: FBT003 - Java's
    try:
        test_messages_are_the_rows_in_their_order(spark, LONG, "STRING")
    finally:
        given_up.setBoolean(None, False)  # noqa: FBT003 - Java's


@needs_jar
def test_a_folder_whose_path_is_too_long_for_a_socket_is_left_empty(spark: SparkSession, tmp_path: Path) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    jvm: Any = spark._jvm
    folder = jvm.java.lang.System.getProperty("java.io.tmpdir")
    given_up = socket_given_up(spark)
    jvm.java.lang.System.setProperty("java.io.tmpdir", str(long))
    try:
        test_messages_are_the_rows_in_their_order(spark, LONG, "STRING")
        assert given_up.getBoolean(None)
    finally:
        jvm.java.lang.System.setProperty("java.io.tmpdir", folder)
        given_up.setBoolean(None, False)  # noqa: FBT003 - Java's
    assert not list(long.glob("aeron-rows-*"))


@needs_jar
def test_a_jvm_that_may_open_no_more_files_leaves_no_folder(spark: SparkSession, tmp_path: Path) -> None:
    java: Any = spark._jvm
    given_up = socket_given_up(spark)
    call = calls_of_socket(spark)
    call("close", call("open"))  # what the first one loads is there now
    folder = java.java.lang.System.getProperty("java.io.tmpdir")
    pid = java.java.lang.ProcessHandle.current().pid()
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    java.java.lang.System.setProperty("java.io.tmpdir", str(tmp_path))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (10, limits[1]))
    try:
        assert call("open") is None
        assert given_up.getBoolean(None)
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        java.java.lang.System.setProperty("java.io.tmpdir", folder)
        given_up.setBoolean(None, False)  # noqa: FBT003 - Java's
    assert not list(tmp_path.iterdir())


@needs_jar
def test_a_task_that_is_killed_waits_for_no_worker(spark: SparkSession) -> None:
    java: Any = spark._jvm
    call = calls_of_socket(spark)
    socket = call("open")
    java.java.lang.Thread.currentThread().interrupt()
    try:
        assert call("accept", socket) is False
    finally:
        java.java.lang.Thread.interrupted()
        call("close", socket)
    assert not socket_given_up(spark).getBoolean(None), "it has waited to the end"


# -- the choice --------------------------------------------------------------------------------------------------------


@needs_jar
@pytest.mark.parametrize(
    ("columns", "options", "lack"),
    [
        ("value, CAST(1 AS BIGINT) AS reserved_value", {}, "column reserved_value"),
        ("value", {"payload": "arrow"}, "payload=arrow"),
        ("1 AS value", {}, "column value of int"),
        ("CAST(9 AS INT) AS value, CAST(value AS BINARY) AS value", {}, "2 columns value"),
        ("value COLLATE UTF8_LCASE AS value", {}, "column value of string collate UTF8_LCASE"),
    ],
)
def test_what_the_jvm_does_not_write_it_names(
    spark: SparkSession, columns: str, options: dict[str, str], lack: str
) -> None:
    frame = rows(spark, MANY, 10).selectExpr(*columns.split(", ", 1))
    with pytest.raises(PySparkException, match=f"UsageError: engine=jvm cannot write with {lack}: leave engine out"):
        save(frame, dirs.SHARED_MEMORY / "absent", engine="jvm", **options)


@needs_jar
def test_rows_without_a_column(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match=r"need a column 'value' .*there are: none"):
        save(rows(spark, MANY, 10).select(), dirs.SHARED_MEMORY / "absent")


@pytest.mark.parametrize("name", ["jmv", ""])
def test_an_engine_that_there_is_not(spark: SparkSession, name: str) -> None:
    with pytest.raises(PySparkException, match="engine"):
        save(rows(spark, MANY, 10), dirs.SHARED_MEMORY / "absent", engine=name)
