"""Found by Spark (a top-level ``pyspark_*`` module with a ``DefaultSource``): ``format("aeron")`` without a register call.

Every Spark application in an environment where aeron_spark is installed imports this, whatever it reads. So nothing is
imported here that Spark has not loaded, and nothing can fail, until somebody uses the format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """Stands for ``aeron_spark.spark.source.AeronDataSource``."""

    @classmethod
    def name(cls) -> str:
        """Name of the format."""
        return "aeron"

    def _source(self) -> DataSource:
        from aeron_spark.spark.source import AeronDataSource  # noqa: PLC0415 - see the module's docstring

        return AeronDataSource(self.options)

    def schema(self) -> StructType | str:
        """Columns of a read."""
        return self._source().schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Batch read."""
        return self._source().reader(schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Streaming read."""
        return self._source().streamReader(schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Batch write."""
        return self._source().writer(schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        """Streaming write."""
        return self._source().streamWriter(schema, overwrite)
