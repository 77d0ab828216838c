"""Limits of a micro-batch: the read limit that Spark gets, and how it combines with the options."""

from __future__ import annotations

from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.planning.ranges import Budget

__all__ = ["budget_of", "default_limit"]

#: Bytes of one micro-batch by default: about a second of work for a task slot.
DEFAULT_MAX_BYTES_PER_TRIGGER = 256 << 20


def default_limit(options: ReadOptions) -> Budget:
    """The main limit, alone; where both are given, ``budget_of`` adds that of messages."""
    if options.max_bytes_per_trigger is None and options.max_messages_per_trigger is not None:
        return Budget(max_bytes=None, max_messages=options.max_messages_per_trigger)
    return Budget(max_bytes=options.max_bytes_per_trigger or DEFAULT_MAX_BYTES_PER_TRIGGER, max_messages=None)


def budget_of(options: ReadOptions, limit: Budget) -> Budget:
    """What a micro-batch may take under Spark's limit and the options' other one; no limit of Spark is none at all."""
    if limit.is_unbounded:
        return limit
    return Budget(
        max_bytes=options.max_bytes_per_trigger if limit.max_bytes is None else limit.max_bytes,
        max_messages=options.max_messages_per_trigger if limit.max_messages is None else limit.max_messages,
    )
