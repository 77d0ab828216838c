"""The data source that ``artifact.add_to`` registers. Sent by value: this module is not on Spark's machines.

Nothing is used here but what Python and pyspark bring, and nothing of the package before ``_source`` has found its zip.
"""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource

__all__ = ["SessionSource"]


def _find_package(zip_name: str) -> None:
    """Puts the zip on the path where Spark did not.

    Spark gives a session's files to planning processes and tasks. What belongs to a stream gets a folder beside theirs. The
    name has the zip's hash, so that of another session is as good.
    """
    try:
        import aeron_spark  # noqa: F401
    except ModuleNotFoundError:
        from pyspark.core.files import SparkFiles

        root = Path(SparkFiles.getRootDirectory())
        found = [str(path) for folder in (root, root.parent) for path in folder.glob(f"*/{zip_name}")]
        sys.path += found[:1]


def _sent(made: Any, zip_name: str) -> Any:
    """A reader or writer that finds the zip where it is unpickled."""
    kind = type(made)

    class Sent(kind):  # type: ignore[misc,valid-type]
        def __reduce__(self) -> Any:
            return _received, (zip_name, kind.__module__, kind.__name__, pickle.dumps(self.__getstate__()))

    made.__class__ = Sent
    return made


def _received(zip_name: str, module: str, name: str, state: bytes) -> Any:
    _find_package(zip_name)
    kind = getattr(importlib.import_module(module), name)
    made = kind.__new__(kind)
    made.__dict__.update(pickle.loads(state))  # noqa: S301 - made by ``_sent``
    return made


class SessionSource(DataSource):
    """Stands for ``aeron_spark.spark.source.AeronDataSource``."""

    #: File name of the zip; set by ``add_to``.
    zip_name = ""

    @classmethod
    def name(cls) -> str:
        """Name of the format."""
        return "aeron"

    def _source(self) -> Any:
        _find_package(self.zip_name)
        from aeron_spark.spark.source import AeronDataSource

        return AeronDataSource(self.options)

    def schema(self) -> Any:
        """Columns of a read."""
        return self._source().schema()

    def reader(self, schema: Any) -> Any:
        """Batch read."""
        return self._source().reader(schema)

    def streamReader(self, schema: Any) -> Any:
        """Streaming read."""
        return _sent(self._source().streamReader(schema), self.zip_name)

    def writer(self, schema: Any, overwrite: bool) -> Any:
        """Batch write."""
        return self._source().writer(schema, overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        """Streaming write."""
        return _sent(self._source().streamWriter(schema, overwrite), self.zip_name)
