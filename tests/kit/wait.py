"""`wait_until` of `aeron_spark.testing`: the only way in which a test here passes time."""

from aeron_spark.testing.waiting import DeadlineError, wait_until

__all__ = ["DeadlineError", "wait_until"]
