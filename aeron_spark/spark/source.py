"""The data source Spark finds by name: names the parts and holds no logic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aeron_spark.extras import missing
from aeron_spark.spark.planning.options import READ_COMMITTED, ReadOptions

try:
    from pyspark.sql.datasource import DataSource
except ModuleNotFoundError as error:
    raise missing(error, "spark") from None

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceArrowWriter,
        DataSourceReader,
        DataSourceStreamArrowWriter,
        DataSourceStreamReader,
    )
    from pyspark.sql.types import StructType

    from aeron_spark.spark.writing.options import WriteOptions

__all__ = ["AeronDataSource"]

#: What Spark gives a source while CREATE TABLE runs, besides the table's properties and its options.
_OF_TABLES = frozenset({"owner", "provider"})
_TABLE_OPTION = "option."
_READ_VIEW = "CREATE TEMPORARY VIEW <name> USING aeron OPTIONS (path '<folder>')"
_INSERT_VIEW = "CREATE TEMPORARY VIEW <name> (value STRING) USING aeron OPTIONS (streamId '<stream>')"


def _refuse_no_options(options: Mapping[str, str]) -> None:
    """Spark gives a source in Python no options of a table that is read or written; with the jar, its rule does."""
    from aeron_spark.errors import UsageError

    if not options:
        raise UsageError(
            "no options are given: name path or controlChannel to read, streamId to write. Of a table of CREATE TABLE ... "
            "USING aeron, Spark gives a source in Python no options: start the session with the jar of aeron_spark, which does "
            "(aeron_spark.spark.jvm.configure(builder)), or in SQL create a view, to SELECT from by "
            f"{_READ_VIEW}, to INSERT INTO by {_INSERT_VIEW}"
        )


def _options_of_table(options: Mapping[str, str]) -> Mapping[str, str]:
    """The user's among those that Spark gives while it makes a table, where it does; else all."""
    named = {name.lower(): value for name, value in options.items()}
    if not named.keys() >= _OF_TABLES:
        return options
    path = {"path": named["location"]} if "location" in named else {}
    return path | {
        name.removeprefix(_TABLE_OPTION): value for name, value in named.items() if name.startswith(_TABLE_OPTION)
    }


def _needs_columns(options: Mapping[str, str]) -> bool:
    """Whether these are options of a sink: Spark asks for the columns of a view that names none as if it were to be read."""
    from aeron_spark.spark.writing.options import WriteOptions

    given, sources = {name.lower() for name in options}, {"path", "paths", "controlchannel"}
    return not given & sources or bool(given & {name.lower() for name in {*WriteOptions.NAMES} - {*ReadOptions.NAMES}})


class AeronDataSource(DataSource):
    """``spark.read.format("aeron")``, ``readStream``, ``write`` and ``writeStream``.

    Options are checked here, before anything runs: an error raised later, while a stream reader is built, is hidden by Spark
    behind a secondary one.
    """

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "aeron"

    def schema(self) -> StructType:
        """The default columns; ``.schema(...)`` chooses others.

        Spark calls this in ``load()``, so that wrong options raise there. With a schema of the user's it does not, and they
        raise when the query is planned.
        """
        from aeron_spark.errors import UsageError
        from aeron_spark.spark.reading.rows import read_schema

        options = _options_of_table(self.options)
        _refuse_no_options(options)
        try:
            return read_schema(ReadOptions.parse(options, streaming=None))
        except UsageError as error:
            if not _needs_columns(options):
                raise
            raise UsageError(f"{error}. A view or table to INSERT INTO names its columns: {_INSERT_VIEW}") from None

    def reader(self, schema: StructType) -> DataSourceReader:
        """Batch read of an archive folder."""
        from aeron_spark.spark.planning.engine import check_engine
        from aeron_spark.spark.reading.batch import AeronBatchReader, PushdownReader, is_pushing_filters

        _refuse_no_options(self.options)
        options = ReadOptions.parse(self.options, streaming=False)
        check_engine(options)
        if options.isolation == READ_COMMITTED:
            from aeron_spark.spark.planning.committed import check_isolation

            check_isolation(options)
        # With the setting off, Spark refuses every reader that has the method. With it on, Spark 4.3 keeps what a filter left
        # with the table, and reads no more for other uses of it: only who asks for it, knows.
        is_narrowed = options.filter_pushdown and is_pushing_filters()
        return (PushdownReader if is_narrowed else AeronBatchReader)(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Micro-batches of an archive folder."""
        from aeron_spark.errors import AeronError
        from aeron_spark.spark.planning.engine import check_engine
        from aeron_spark.spark.reading.stream import AeronStreamReader, RefusedStream

        try:
            _refuse_no_options(self.options)
            options = ReadOptions.parse(self.options, streaming=True)
            check_engine(options)
            if options.isolation == READ_COMMITTED:
                from aeron_spark.spark.planning.committed import check_isolation

                check_isolation(options)
            return AeronStreamReader(options, schema)
        except AeronError as error:
            return RefusedStream(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Publishes a DataFrame's rows."""
        from aeron_spark.errors import UsageError
        from aeron_spark.spark.writing.batch import AeronBatchWriter

        if overwrite:
            raise UsageError("messages cannot be overwritten, write with mode('append')")
        return AeronBatchWriter(self._write_options(schema, streaming=False))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        """Publishes the rows of each micro-batch."""
        from aeron_spark.errors import UsageError
        from aeron_spark.spark.writing.stream import AeronStreamWriter

        if overwrite:
            raise UsageError(
                "outputMode('complete') gives the whole result anew in each micro-batch, and messages cannot be overwritten: "
                "write with outputMode('append'), or each batch as you mean it by foreachBatch"
            )
        return AeronStreamWriter(self._write_options(schema, streaming=True))

    def _write_options(self, schema: StructType, *, streaming: bool) -> WriteOptions:
        """Options and columns of a write, checked before its query starts."""
        from aeron_spark.spark.writing.encode import check_columns
        from aeron_spark.spark.writing.options import WriteOptions

        _refuse_no_options(self.options)
        options = WriteOptions.parse(self.options, schema.names, streaming=streaming)
        check_columns(schema, options.payload, options.sbe)
        return options
