"""Spark's Real-Time Mode with the engine in the JVM: rows once across modes, engines and restarts, while recordings grow."""

from __future__ import annotations

import json
import re
import uuid
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.java_gateway import JavaPackage
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from aeron_spark.errors import UsageError
from aeron_spark.spark import jvm
from tests.kit import dirs, require
from tests.kit.payload import payloads
from tests.kit.wait import wait_until
from tests.spark import recorded
from tests.spark.session import JAR
from tests.spark.test_choice import extending

STREAM, OTHER = 1, 2
SIZES = [8, 100, 1377, 5000]
#: No batch ends within a test by itself, or many do.
LONG, SHORT = "10 minutes", "500 milliseconds"
WAIT_S = 120


@pytest.fixture(autouse=True)
def with_real_time(spark: SparkSession) -> Iterator[None]:
    """The session has the jar, and takes short batches and any sink."""
    if not JAR:
        require.missing("the jar of Spark's JVM, which `make build` makes where there is a JDK of Java 17 or newer")
    settings = {"minBatchDuration": "100ms", "allowlistCheck": "false"}
    for name, value in settings.items():
        spark.conf.set(f"spark.sql.streaming.realTimeMode.{name}", value)
    yield
    for name in settings:
        spark.conf.unset(f"spark.sql.streaming.realTimeMode.{name}")


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[recorded.Archive]:
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, tmp_path / "archive") as servers:
        yield servers


@dataclass
class Queries:
    """A query that is started again and again: its folder, and its checkpoint.

    A row leaves a property of the JVM where it is made: sinks for tests show their rows when a batch has ended.
    """

    spark: SparkSession
    folder: Path
    work: Path
    tag: str = field(default_factory=lambda: uuid.uuid4().hex)
    query: StreamingQuery = field(init=False)

    def start(
        self,
        *,
        duration: str | None = None,
        has_default_progress: bool = False,
        shown: str = "crc32(value)",
        **options: str,
    ) -> StreamingQuery:
        """In Real-Time Mode for a duration; else what is there, in micro-batches.

        Spark 4.3 writes its progress asynchronously, and then reports an interruption where a query is stopped as a batch ends.
        """
        given = {"startingPositions": "earliest", **options}
        stream = self.spark.readStream.format("aeron").options(**given).load(str(self.folder))
        key = f"concat('{self.tag}/', recording_id, '/', position, '/', uuid())"
        rows = stream.selectExpr(f"reflect('java.lang.System', 'setProperty', {key}, string({shown}))")
        writer = rows.writeStream.format("noop").outputMode("update")
        writer = writer.option("checkpointLocation", str(self.work / "checkpoint"))
        if not has_default_progress:
            writer = writer.option("asyncProgressTrackingEnabled", "false")
        writer = writer.trigger(availableNow=True) if duration is None else jvm.real_time(writer, duration)
        self.query = writer.start()
        return self.query

    @contextmanager
    def running(self, duration: str, **chosen: Any) -> Iterator[StreamingQuery]:
        """In Real-Time Mode; it must not fail."""
        query = self.start(duration=duration, **chosen)
        try:
            yield query
        finally:
            query.stop()
        assert query.exception() is None

    def catch_up(self, engine: str) -> None:
        query = self.start(engine=engine)
        assert query.awaitTermination(WAIT_S)
        assert query.exception() is None

    def rows(self) -> list[tuple[int, int, int]]:
        """Recording, position and checksum, in order."""
        properties = str(self.spark._jvm.java.lang.System.getProperties().toString())  # type: ignore[union-attr]
        found = re.findall(rf"{self.tag}/(\d+)/(\d+)/[\w-]+=(\d+)", properties)
        return sorted((int(recording_id), int(position), int(checksum)) for recording_id, position, checksum in found)

    def _await(self, condition: Callable[[], bool], what: str, state: Callable[[], object]) -> None:
        """While the query runs: one that has failed brings no more."""
        wait_until(lambda: condition() or not self.query.isActive, WAIT_S, what, state=state)
        assert condition(), f"no {what}, as the query has ended: {self.query.exception()}"

    def await_rows(self, count: int) -> None:
        self._await(lambda: len(self.rows()) >= count, f"{count} rows", lambda: len(self.rows()))

    def committed(self) -> dict[str, Any]:
        """The offset of the last batch that is committed."""
        names = [path.name for path in (self.work / "checkpoint" / "commits").glob("[0-9]*")]
        if not names:
            return {"positions": {}}
        text = (self.work / "checkpoint" / "offsets" / max(names, key=int)).read_text()
        return json.loads(text.splitlines()[-1])  # type: ignore[no-any-return]

    def await_commit(self, recording_id: int, position: int) -> None:
        """A batch has ended behind what is published."""
        self._await(
            lambda: self.committed()["positions"].get(str(recording_id)) == position,
            f"commit of position {position}",
            self.committed,
        )


@pytest.fixture
def queries(spark: SparkSession, archive: recorded.Archive, tmp_path: Path) -> Queries:
    return Queries(spark, archive.archive_dir, tmp_path)


def sent(stream_id: int, count: int) -> list[int]:
    """Checksums of what is published."""
    return [zlib.crc32(body) for body in payloads(stream_id, count, SIZES)]


def test_rows_wait_for_their_times_of_the_index(spark: SparkSession, tmp_path: Path) -> None:
    """Its entries come up to an interval after the messages; 2 s here."""
    settings = {"aeron.spark.archive.time.index.interval": "2s"}
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, tmp_path / "archive", settings) as archive:
        queries = Queries(spark, archive.archive_dir, tmp_path)
        with archive.record(STREAM) as publication:
            columns = "recording_id,position,timestamp"
            with queries.running(LONG, shown="int(timestamp is not null)", columns=columns):
                for count in (10, 20):
                    recorded.publish(publication, STREAM, 10, SIZES, first=count - 10)
                    queries.await_rows(count)
            assert [row[-1] for row in queries.rows()] == [1] * 20


def test_rows_arrive_before_their_batch_ends(queries: Queries, archive: recorded.Archive) -> None:
    """And are given again where it never ends: its offset is what is committed."""
    with archive.record(STREAM) as publication:
        with queries.running(LONG, has_default_progress=True) as query:
            for count in (10, 20):
                recorded.publish(publication, STREAM, 10, SIZES, first=count - 10)
                queries.await_rows(count)
            assert query.lastProgress is None, "no batch has ended"
        assert [row[-1] for row in queries.rows()] == sent(STREAM, 20)
        queries.catch_up("auto")
        assert set(Counter(queries.rows()).values()) == {2}


def test_modes_and_engines_share_a_checkpoint(queries: Queries, archive: recorded.Archive) -> None:
    total = 0
    with archive.record(STREAM) as publication:
        recording_id = archive.recording_id(STREAM)
        for turn in range(4):
            recorded.publish(publication, STREAM, 40, SIZES, first=total)
            total += 40
            archive.wait_recorded(STREAM, publication.position)
            if turn % 2 == 0:
                with queries.running(SHORT):
                    queries.await_commit(recording_id, publication.position)
                # What the mode has committed is what a micro-batch would: there is nothing to read.
                before = queries.committed()
                for engine in ("python", "jvm"):
                    queries.catch_up(engine)
                    assert queries.committed() == before
            else:
                queries.catch_up("python" if turn == 1 else "jvm")
    assert [row[-1] for row in queries.rows()] == sent(STREAM, total)
    assert "marks" in queries.committed()


@pytest.mark.parametrize("engine", ["python", "jvm"])
def test_a_query_of_micro_batches_goes_over_to_the_mode(
    spark: SparkSession, queries: Queries, archive: recorded.Archive, engine: str
) -> None:
    """Spark 4.3 takes its checkpoint if state had the newer format when it was begun; the query need not have any."""
    state_format = "spark.sql.streaming.stateStore.checkpointFormatVersion"
    spark.conf.set(state_format, "2")
    try:
        with archive.record(STREAM) as publication:
            recorded.publish(publication, STREAM, 40, SIZES)
            archive.wait_recorded(STREAM, publication.position)
            queries.catch_up(engine)
            assert len(queries.rows()) == 40
            with queries.running(LONG):
                recorded.publish(publication, STREAM, 40, SIZES, first=40)
                queries.await_rows(80)
    finally:
        spark.conf.unset(state_format)
    assert [row[-1] for row in queries.rows()] == sent(STREAM, 80)


def test_without_that_setting_the_checkpoint_of_micro_batches_is_refused(
    queries: Queries, archive: recorded.Archive
) -> None:
    """By Spark 4.3, as the page says; nothing is read."""
    with archive.record(STREAM) as publication:
        recorded.publish(publication, STREAM, 10, SIZES)
        archive.wait_recorded(STREAM, publication.position)
        queries.catch_up("jvm")
        query = queries.start(duration=LONG)
        wait_until(lambda: query.exception() is not None, WAIT_S, "the refusal")
    assert "CHECKPOINT_FORMAT_V1_NOT_SUPPORTED" in str(query.exception())
    assert len(queries.rows()) == 10


def test_batches_end_between_any_two_rows(queries: Queries, archive: recorded.Archive) -> None:
    """While messages come without a pause: each once, those of several frames too."""
    with archive.record(STREAM) as publication:
        recording_id = archive.recording_id(STREAM)
        total = 0
        with queries.running(SHORT) as query:

            def four_have_ended() -> bool:
                nonlocal total
                recorded.publish(publication, STREAM, 200, SIZES, first=total)
                total += 200
                return len(query.recentProgress) >= 4

            wait_until(four_have_ended, WAIT_S, "the end of four batches")
            queries.await_commit(recording_id, publication.position)
    assert [row[-1] for row in queries.rows()] == sent(STREAM, total)


def test_recordings_begin_and_stop_while_it_runs(queries: Queries, archive: recorded.Archive) -> None:
    """A batch ends for a new recording, long before its time."""
    with queries.running(LONG) as query:
        for stream_id in (STREAM, OTHER):
            with archive.record(stream_id) as publication:
                recorded.publish(publication, stream_id, 10, SIZES)
                queries.await_rows(10 * stream_id)
                recorded.publish(publication, stream_id, 10, SIZES, first=10)
                archive.stop(publication, stream_id)
        archive.recorded(OTHER + 1, 20, SIZES)  # has stopped before a task may see it
        queries.await_rows(60)
        assert query.exception() is None
    found = Counter(queries.rows())
    assert set(found.values()) == {1}
    for recording_id, stream_id in enumerate((STREAM, OTHER, OTHER + 1)):
        assert [row[-1] for row in sorted(found) if row[0] == recording_id] == sent(stream_id, 20)


def test_a_recording_goes_on_while_it_runs(queries: Queries, archive: recorded.Archive) -> None:
    """Its tasks do not follow what had stopped: the batch ends, and the next one has it."""
    archive.recorded(1001, 10, SIZES)
    with archive.record(OTHER) as publication:
        with queries.running(SHORT):
            queries.await_commit(0, archive.control.stop_position(0) or 0)
        with queries.running(LONG):
            recorded.publish(publication, OTHER, 10, SIZES)
            queries.await_rows(20)
            with extending(archive) as again:
                recorded.publish(again, 1001, 10, SIZES, first=10)
                queries.await_rows(30)
    assert [row[-1] for row in queries.rows()] == sent(1001, 20) + sent(OTHER, 10)


def test_a_directory_that_is_elsewhere_than_the_mark_file_says(queries: Queries, archive: recorded.Archive) -> None:
    away = archive.aeron_dir.with_name(f"{archive.aeron_dir.name}-away")
    with archive.record(STREAM) as publication:
        recorded.publish(publication, STREAM, 10, SIZES)
        archive.wait_recorded(STREAM, publication.position)
        archive.aeron_dir.rename(away)
        try:
            with queries.running(LONG, aeronDir=str(away)):
                queries.await_rows(10)
        finally:
            away.rename(archive.aeron_dir)


def told(query: StreamingQuery) -> str:
    """The error that a query ends with."""
    wait_until(lambda: not query.isActive, WAIT_S, "the query to fail")
    error = query.exception()
    assert error is not None
    return str(error)


def test_the_error_of_a_reader_ends_the_query(queries: Queries, archive: recorded.Archive) -> None:
    with archive.record(STREAM) as publication:
        recorded.publish(publication, STREAM, 10, SIZES)
        query = queries.start(duration=LONG)
        queries.await_rows(10)
        position = publication.position
        archive.stop(publication, STREAM)
        archive.control.truncate_recording(archive.recording_id(STREAM), 0)
    text = told(query)
    assert "aeron_spark.errors.DataLossError: recording 0: position " in text
    assert f"{position} is wanted, but now [0, 0) is there: it was purged or truncated meanwhile" in text


def test_python_cannot_and_says_who_can(queries: Queries) -> None:
    refused = "aeron_spark.errors.UsageError: Spark's Real-Time Mode cannot read with "
    for name, value in (("engine", "python"), ("payload", "string")):
        text = told(queries.start(duration=LONG, **{name: value}))
        assert f"{refused}{name}={value}" in text
        assert "leave out that option" in text


class Java:
    """A session's JVM with or without the jar, and with or without the mode, as py4j shows it."""

    def __init__(self, *, has_jar: bool) -> None:
        self.aeronspark = SimpleNamespace(Extensions=object() if has_jar else JavaPackage("aeronspark", None))
        self.org = self.apache = self.spark = self.sql = self.streaming = self.Trigger = self

    def RealTime(self, _duration: str) -> None:
        raise Py4JError("org.apache.spark.sql.streaming.Trigger.RealTime does not exist in the JVM")


@pytest.mark.parametrize(
    ("has_jar", "text"),
    [
        (False, r"without the jar of aeron_spark: make it by aeron_spark\.spark\.jvm\.configure"),
        (True, r"Spark has Real-Time Mode from 4\.1 on, and this is "),
    ],
)
def test_a_session_without_the_mode_is_told_what_to_take(has_jar: bool, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        jvm.real_time(SimpleNamespace(_spark=SimpleNamespace(_jvm=Java(has_jar=has_jar))))  # type: ignore[arg-type]


def test_a_duration_that_is_none_is_an_error_of_spark(spark: SparkSession) -> None:
    writer = spark.readStream.format("rate").load().writeStream
    with pytest.raises(Exception, match=r"(?i)interval"):
        jvm.real_time(writer, "soon")
    assert jvm.real_time(writer, "1 minute") is writer
