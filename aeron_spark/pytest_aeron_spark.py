"""Fixtures of `aeron_spark.testing`: a plugin that pytest finds by its entry point, installed as a top-level module.

Every run of pytest in an environment where aeron_spark is installed imports this. So nothing of aeron_spark is imported, nor
pyspark, until a test uses a fixture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aeron_spark.config import Settings
    from aeron_spark.testing import RecordedFolder, Servers


@pytest.fixture
def aeron_settings() -> Settings:
    """Settings of `aeron_servers`, by their stock names: override this fixture to change them."""
    return {}


@pytest.fixture
def aeron_servers(aeron_settings: Settings) -> Iterator[Servers]:
    """A driver and an archive for one test, with a client and a control session: `aeron_spark.testing.Servers`."""
    from aeron_spark.testing import Servers

    with Servers(settings=aeron_settings) as servers:
        yield servers


@pytest.fixture
def aeron_folder(aeron_servers: Servers) -> RecordedFolder:
    """The folder of the archive of `aeron_servers`, to write recordings into: `aeron_spark.testing.RecordedFolder`."""
    from aeron_spark.testing import RecordedFolder

    return RecordedFolder(aeron_servers)


@pytest.fixture(scope="session")
def aeron_spark_settings() -> Mapping[str, str]:
    """Spark settings of `aeron_spark`, by name: override this fixture, with session scope, to change them."""
    return {}


@pytest.fixture(scope="session")
def aeron_spark(aeron_spark_settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """A small Spark session with `format("aeron")`, one for all tests of a process: `aeron_spark.testing.spark_session`."""
    from aeron_spark.testing import spark_session

    with spark_session(aeron_spark_settings) as session:
        yield session
