"""One local Spark session for all tests here, with the workers on this interpreter; it has the jar where one was built."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.streaming.readwriter import DataStreamReader

from tests.spark.session import ENGINES, JAR, build_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A bare session: the format must be found without a register call."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = build_session("aeron-spark-tests", **JAR)
    yield session
    session.stop()


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.more] if at else []) for at, name in enumerate(ENGINES)])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each engine in turn, for all reads of the format in a test: `make test` proves the first, `make test-more` the other."""

    def chosen(before: Any) -> Any:
        def of_format(reader: Any, source: str) -> Any:
            made = before(reader, source)
            return made.option("engine", request.param) if source == "aeron" else made

        return of_format

    for kind in (DataFrameReader, DataStreamReader):
        monkeypatch.setattr(kind, "format", chosen(kind.format))
    return str(request.param)
