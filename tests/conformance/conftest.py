"""The session of Spark that tests share."""

from tests.spark.conftest import spark

__all__ = ["spark"]
