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
from tests.kit import dirs
from tests.spark import recorded
from tests.spark.readers import ddl

VIEW = "create a view, to SELECT from by CREATE TEMPORARY VIEW <name> USING aeron"
#: As Spark 4.3 gives them while it makes a table.
OF_TABLE = {"owner": "root", "provider": "aeron", "location": "file:/data", "path": "file:/data", "comment": "x"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A recording of 500 messages."""
    archive_dir = tmp_path_factory.mktemp("sql") / "archive"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, archive_dir) as archive:
        archive.recorded(1001, 500, [16])
    return archive_dir


@pytest.mark.parametrize(
    "options",
    [OF_TABLE, {"Owner": "root", "PROVIDER": "aeron", "option.streamId": "1", "streamId": "1", "my.own": "1"}],
)
def test_a_table_is_refused_while_it_is_made(options: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=VIEW):
        AeronDataSource(options).schema()


def test_a_table_is_refused_when_it_is_read_or_written() -> None:
    """Spark gives none of the options it was made with."""
    source = AeronDataSource({})
    with pytest.raises(UsageError, match=f"no options are given: name path.*{VIEW}"):
        source.reader(ddl("value binary"))
    with pytest.raises(UsageError, match=f"no options are given.*streamId to write.*{VIEW}"):
        source.writer(ddl("value binary"), overwrite=False)
    with pytest.raises(UsageError, match=VIEW):
        source.streamWriter(ddl("value binary"), overwrite=False)
    with pytest.raises(UsageError, match=VIEW):
        source.streamReader(ddl("value binary")).initialOffset()


@pytest.mark.parametrize(
    "options", [{"streamId": "5"}, {"streamId": "5", "recordTo": "/x"}, {"guarantee": "exactly-once"}]
)
def test_a_view_to_insert_into_without_columns(options: dict[str, str]) -> None:
    with pytest.raises(
        UsageError, match=r"A view to INSERT INTO names its columns: CREATE TEMPORARY VIEW <name> \(value"
    ):
        AeronDataSource(options).schema()


def test_wrong_options_of_a_read_are_told_without_that(folder: Path) -> None:
    with pytest.raises(UsageError, match="did you mean tail") as told:
        AeronDataSource({"path": str(folder), "tial": "3"}).schema()
    assert "INSERT" not in str(told.value)
    assert isinstance(AeronDataSource({"path": str(folder)}).schema(), StructType)


def test_tables_in_spark(spark: SparkSession, folder: Path) -> None:
    for text in (
        f"CREATE TABLE messages USING aeron OPTIONS (path '{folder}', streamId '1001')",
        f"CREATE TABLE messages USING aeron LOCATION '{folder}' COMMENT 'of ours' TBLPROPERTIES ('my.own' = '1')",
        "CREATE TABLE messages USING aeron OPTIONS (streamId '5', recordTo '/x') AS SELECT 'x' AS value",
    ):
        with pytest.raises(PySparkException, match=VIEW):
            spark.sql(text)
        assert not spark.catalog.tableExists("messages")
    spark.sql(f"CREATE TABLE messages (value BINARY) USING aeron OPTIONS (path '{folder}')")
    try:
        assert [row.col_name for row in spark.sql("DESCRIBE messages").collect()] == ["value"]
        for text in ("SELECT * FROM messages", "INSERT INTO messages VALUES (X'00')"):
            with pytest.raises(PySparkException, match=VIEW):
                spark.sql(text).collect()
    finally:
        spark.sql("DROP TABLE messages")


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
