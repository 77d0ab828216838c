"""SQL: what can be created, selected from and inserted into; where Spark limits a Python source, the error says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from aeron_spark.errors import UsageError
from aeron_spark.spark.source import AeronDataSource
from tests.kit import dirs, require
from tests.spark import recorded
from tests.spark.readers import ddl
from tests.spark.session import JAR

NO_OPTIONS = "no options: start the session with the jar .* create a view, to SELECT from by CREATE TEMPORARY VIEW"
#: As Spark 4.3 gives them while it makes a table.
OF_TABLE = {"owner": "root", "provider": "aeron", "location": "file:/data", "path": "file:/data", "comment": "x"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A recording of 500 messages."""
    archive_dir = tmp_path_factory.mktemp("sql") / "archive"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, archive_dir) as archive:
        archive.recorded(1001, 500, [16])
    return archive_dir


def test_a_table_is_made_of_its_own_options(folder: Path) -> None:
    """Not of Spark's, nor of its properties; wrong ones are told while it is made."""
    of_table = OF_TABLE | {"location": f"file:{folder}", "path": f"file:{folder}", "my.own": "1"}
    columns = {"Option.columns": "position,value", "columns": "position,value"}
    assert AeronDataSource(of_table | columns).schema().names == ["position", "value"]
    assert (
        AeronDataSource({"Owner": "x", "PROVIDER": "aeron", "option.path": str(folder)}).schema().names[0]
        == "recording_id"
    )
    with pytest.raises(UsageError, match="did you mean tail"):
        AeronDataSource(of_table | {"option.tial": "1", "tial": "1"}).schema()
    with pytest.raises(UsageError, match=NO_OPTIONS):
        AeronDataSource({"owner": "root", "provider": "aeron"}).schema()


def test_a_table_is_refused_when_it_is_read_or_written_without_the_jar() -> None:
    """Spark gives none of the options it was made with."""
    source = AeronDataSource({})
    with pytest.raises(UsageError, match=f"name path.*{NO_OPTIONS}"):
        source.reader(ddl("value binary"))
    with pytest.raises(UsageError, match=f"streamId to write.*{NO_OPTIONS}"):
        source.writer(ddl("value binary"), overwrite=False)
    with pytest.raises(UsageError, match=NO_OPTIONS):
        source.streamWriter(ddl("value binary"), overwrite=False)
    with pytest.raises(UsageError, match=NO_OPTIONS):
        source.streamReader(ddl("value binary")).initialOffset()


@pytest.mark.parametrize(
    "options", [{"streamId": "5"}, {"streamId": "5", "recordTo": "/x"}, {"guarantee": "exactly-once"}]
)
def test_a_view_to_insert_into_without_columns(options: dict[str, str]) -> None:
    with pytest.raises(
        UsageError, match=r"A view or table to INSERT INTO names its columns: CREATE TEMPORARY VIEW <name> \(value"
    ):
        AeronDataSource(options).schema()


def test_wrong_options_of_a_read_are_told_without_that(folder: Path) -> None:
    with pytest.raises(UsageError, match="did you mean tail") as told:
        AeronDataSource({"path": str(folder), "tial": "3"}).schema()
    assert "INSERT" not in str(told.value)
    assert isinstance(AeronDataSource({"path": str(folder)}).schema(), StructType)


@pytest.fixture
def tables(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with the jar, whose catalog is empty again afterwards."""
    if not JAR:
        require.missing("the jar of Spark's JVM, which `make build` makes where there is a JDK of Java 17 or newer")
    yield spark
    for table in spark.catalog.listTables():
        spark.sql(f"DROP TABLE IF EXISTS {table.name}")


def test_tables_in_spark(tables: SparkSession, folder: Path) -> None:
    """Of columns that the source names, by options and by location; of columns that the statement names."""
    tables.sql(f"CREATE TABLE messages USING aeron OPTIONS (path '{folder}', columns 'position,value')")
    tables.sql(f"CREATE TABLE placed USING aeron LOCATION '{folder}' COMMENT 'of ours' TBLPROPERTIES ('my.own' = '1')")
    tables.sql(f"CREATE TABLE some (position BIGINT) USING aeron OPTIONS (PATH '{folder}', tail '3', engine 'python')")
    assert [row.col_name for row in tables.sql("DESCRIBE messages").collect()] == ["position", "value"]
    assert tables.sql("SELECT count(*), max(position) FROM messages").first() == (500, 499 * 64)
    assert tables.sql("SELECT count(*) FROM placed WHERE position < 640").first() == (10,)
    assert [row.position for row in tables.table("some").orderBy("position").collect()] == [
        497 * 64,
        498 * 64,
        499 * 64,
    ]
    assert tables.sql("SELECT * FROM some WITH (Tail = '1')").collect() == [(499 * 64,)]
    with pytest.raises(PySparkException, match="did you mean tail"):
        tables.sql(f"CREATE TABLE wrong USING aeron OPTIONS (path '{folder}', tial '3')")
    assert not tables.catalog.tableExists("wrong")
    tables.sql("DROP TABLE placed")
    assert tables.sql("SELECT count(*) FROM messages").first() == (500,), "DROP TABLE took the recordings"


def test_a_table_is_streamed_from(tables: SparkSession, folder: Path, tmp_path: Path) -> None:
    tables.sql(f"CREATE TABLE messages USING aeron OPTIONS (path '{folder}', startingPositions 'earliest')")
    query = (
        tables.readStream.table("messages")
        .writeStream.format("parquet")
        .option("checkpointLocation", f"{tmp_path}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{tmp_path}/rows")
    )
    query.awaitTermination()
    assert tables.read.parquet(f"{tmp_path}/rows").count() == 500


def test_tables_that_are_inserted_into(tables: SparkSession, tmp_path: Path) -> None:
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, tmp_path / "archive") as archive:
        archive.recorded(1001, 20, [16])
        sink = f"channel '{recorded.CHANNEL}', recordTo '{tmp_path}/archive'"
        tables.sql(f"CREATE TABLE recorded USING aeron LOCATION '{tmp_path}/archive'")
        tables.sql(
            f"CREATE TABLE notes (value STRING, reserved_value BIGINT) USING aeron OPTIONS (streamId '2001', {sink})"
        )
        tables.sql("INSERT INTO notes SELECT 'at ' || position, position FROM recorded WHERE position < 640")
        tables.sql("INSERT INTO notes (reserved_value, value) VALUES (7, 'last')")
        written = tables.sql("SELECT CAST(value AS STRING), reserved_value FROM recorded WHERE stream_id = 2001")
        assert sorted(map(tuple, written.collect())) == sorted(
            [(f"at {at}", at) for at in range(0, 640, 64)] + [("last", 7)]
        )
        tables.sql(f"CREATE TABLE made USING aeron OPTIONS (streamId '2002', {sink}) AS SELECT 'x' AS value")
        assert tables.sql("SELECT CAST(value AS STRING) FROM recorded WHERE stream_id = 2002").collect() == [("x",)]
        with pytest.raises(PySparkException, match="cannot be overwritten"):
            tables.sql("INSERT OVERWRITE notes VALUES ('x', 1)")


def test_views_in_spark(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """One to read and one to insert into; both with columns that were named."""
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, tmp_path / "archive"):
        options = f"streamId '2001', channel '{recorded.CHANNEL}', recordTo '{tmp_path}/archive'"
        spark.sql(f"CREATE TEMPORARY VIEW recorded (position BIGINT) USING aeron OPTIONS (path '{folder}')")
        spark.sql(f"CREATE TEMPORARY VIEW notes (value STRING, reserved_value BIGINT) USING aeron OPTIONS ({options})")
        try:
            assert [row.col_name for row in spark.sql("DESCRIBE notes").collect()] == ["value", "reserved_value"]
            spark.sql("INSERT INTO notes SELECT 'at ' || position, position FROM recorded WHERE position < 640")
            spark.sql("INSERT INTO notes (reserved_value, value) VALUES (7, 'last')")
            written = (
                spark.read.format("aeron")
                .load(f"{tmp_path}/archive")
                .selectExpr("CAST(value AS STRING)", "reserved_value")
            )
            expected = [(f"at {position}", position) for position in range(0, 640, 64)]
            assert sorted(map(tuple, written.collect())) == sorted([*expected, ("last", 7)])
            with pytest.raises(PySparkException, match="cannot be overwritten"):
                spark.sql("INSERT OVERWRITE notes VALUES ('x', 1)")
            with pytest.raises(PySparkException, match="path"):
                spark.sql("INSERT INTO recorded VALUES (1)")
        finally:
            spark.sql("DROP VIEW notes")
            spark.sql("DROP VIEW recorded")
