"""The Spark session of the tests, one for all."""

from tests.spark.conftest import spark

__all__ = ["spark"]
