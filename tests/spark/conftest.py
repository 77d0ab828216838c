"""One local Spark session for all tests here, with the workers on this interpreter; it has the jar where one was built."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from tests.kit import require
from tests.spark.session import ENGINES, JAR, build_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A bare session: the format must be found without a register call."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = build_session("aeron-spark-tests", **JAR)
    yield session
    session.stop()


@pytest.fixture
def with_jar() -> None:
    """The session has the jar."""
    if not JAR:
        require.missing("the jar of Spark's JVM, which `make build` makes where there is a JDK of Java 17 or newer")


_EACH = [pytest.param(name, marks=[pytest.mark.more] if at else []) for at, name in enumerate(ENGINES)]


@pytest.fixture(params=_EACH)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each engine in turn, for all reads of the format in a test: `make test` proves the first, `make test-more` the other."""
    return _of_all(request, monkeypatch, DataFrameReader, DataStreamReader)


@pytest.fixture(params=_EACH)
def sink_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same for all writes."""
    return _of_all(request, monkeypatch, DataFrameWriter, DataStreamWriter)


def _of_all(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, *kinds: type) -> str:
    def chosen(before: Any) -> Any:
        def of_format(reader_or_writer: Any, source: str) -> Any:
            made = before(reader_or_writer, source)
            return made.option("engine", request.param) if source == "aeron" else made

        return of_format

    for kind in kinds:
        monkeypatch.setattr(kind, "format", chosen(kind.__dict__["format"]))
    return str(request.param)
