"""The limit of a micro-batch that Spark asks a stream for, by its options."""

from __future__ import annotations

from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes, ReadMaxRows

from aeron_spark.spark.planning.options import ReadOptions

__all__ = ["default_read_limit"]

#: Bytes of one micro-batch by default: about a second of work for a task slot.
DEFAULT_MAX_BYTES_PER_TRIGGER = 256 << 20


def default_read_limit(options: ReadOptions) -> ReadLimit:
    """The main limit; where both are given, readers apply that of messages as well."""
    if options.max_bytes_per_trigger is not None:
        return ReadMaxBytes(options.max_bytes_per_trigger)
    if options.max_messages_per_trigger is not None:
        return ReadMaxRows(options.max_messages_per_trigger)
    return ReadMaxBytes(DEFAULT_MAX_BYTES_PER_TRIGGER)
