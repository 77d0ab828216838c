"""The Spark session of the tests, one for all, and a browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit import needs, require
from tests.kit.browser import PROGRAM, Browser
from tests.spark.conftest import spark

__all__ = ["browser", "spark"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    require.beyond("a browser")
    if absent := needs.absent(PROGRAM):
        require.missing(f"install {' '.join(absent)}, to look at pages")
    with Browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened
