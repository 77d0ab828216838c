"""Limits of a micro-batch: the one that Spark asks a stream for, and what a limit of Spark means with the options."""

from __future__ import annotations

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows

from aeron_spark.errors import UsageError
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.planning.ranges import Budget

__all__ = ["budget_of", "default_read_limit"]

#: Bytes of one micro-batch by default: about a second of work for a task slot.
DEFAULT_MAX_BYTES_PER_TRIGGER = 256 << 20


def default_read_limit(options: ReadOptions) -> ReadLimit:
    """The main limit; where both are given, ``budget_of`` adds that of messages."""
    if options.max_bytes_per_trigger is not None:
        return ReadMaxBytes(options.max_bytes_per_trigger)
    if options.max_messages_per_trigger is not None:
        return ReadMaxRows(options.max_messages_per_trigger)
    return ReadMaxBytes(DEFAULT_MAX_BYTES_PER_TRIGGER)


def budget_of(options: ReadOptions, limit: ReadLimit) -> Budget:
    """What a micro-batch may take under Spark's limit and the options' other one."""
    max_bytes = options.max_bytes_per_trigger
    max_messages = options.max_messages_per_trigger
    if isinstance(limit, ReadAllAvailable):
        return Budget(max_bytes=None, max_messages=None)
    if isinstance(limit, ReadMaxBytes):
        return Budget(max_bytes=limit.max_bytes, max_messages=max_messages)
    if isinstance(limit, ReadMaxRows):
        return Budget(max_bytes=max_bytes, max_messages=limit.max_rows)
    raise UsageError(f"read limit {type(limit).__name__} cannot be honoured, use bytes or rows")
