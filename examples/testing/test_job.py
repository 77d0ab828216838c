"""The test of `job.py`: run `python -m pytest` in this folder. Fixtures and more: docs/testing.md."""

from __future__ import annotations

import json

from job import last_prices
from pyspark.sql import SparkSession

from aeron_spark.testing import RecordedFolder, assert_equal


def test_the_last_price_counts(aeron_folder: RecordedFolder, aeron_spark: SparkSession) -> None:
    """A later message of a stream replaces an earlier one."""
    trades = [("ABC", 101), ("XYZ", 7), ("ABC", 102)]
    aeron_folder.write([json.dumps({"symbol": symbol, "price": price}) for symbol, price in trades])
    assert_equal(last_prices(aeron_spark, str(aeron_folder)), {"symbol": ["ABC", "XYZ"], "price": [102, 7]})
