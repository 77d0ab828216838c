"""One local Spark session for all tests here, with the workers on this interpreter."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.spark.session import build_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A bare session: the format must be found without a register call."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = build_session("aeron-spark-tests")
    yield session
    session.stop()
