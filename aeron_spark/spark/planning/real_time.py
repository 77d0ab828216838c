"""Spark's Real-Time Mode: tasks follow growing recordings while a batch lasts; then Spark asks for the offset they reached.

Only the engine in the JVM has the mode. Its stream asks for both by the call that plans a micro-batch, which is the one that
carries an offset in and bytes out. In place of the end of the micro-batch stands a request:

- ``{"realTime": {"tasks": n}}``: partitions for at most n tasks. Each follows the recordings of its ranges, beyond their ends.
- ``{"realTime": {"reached": {"<id>": position}}}``: one partition without ranges, whose job is ``{"offset": text}``.

So offsets and checkpoints are made and checked by the planner of micro-batches, and a query may change its mode at a restart.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from aeron_spark.errors import InternalError, UsageError
from aeron_spark.spark.planning.data_loss import goes_on
from aeron_spark.spark.planning.engine import jvm_job, lack_of
from aeron_spark.spark.planning.offsets import Offset, integers_of
from aeron_spark.spark.planning.options import READ_COMMITTED, ReadOptions
from aeron_spark.spark.planning.planner import Planner
from aeron_spark.spark.planning.ranges import Range
from aeron_spark.spark.planning.uncommitted import Followed, UncommittedPlanner

__all__ = ["RealTime", "request_of"]

_KEY = "realTime"
#: Limits of a micro-batch: a batch of Real-Time Mode is as long as its trigger says.
_LIMITS = {
    "maxBytesPerTrigger": "max_bytes_per_trigger",
    "maxMessagesPerTrigger": "max_messages_per_trigger",
    "minBytesPerTrigger": "min_bytes_per_trigger",
}


def request_of(end: Mapping[str, object]) -> Mapping[str, object] | None:
    """The request that stands in place of an end offset; None for an end offset."""
    request = end.get(_KEY)
    return request if isinstance(request, Mapping) else None


def _lack(options: ReadOptions) -> str | None:
    """The option with which the mode cannot read, and why; None where it can."""
    for name, field in _LIMITS.items():
        if getattr(options, field) is not None:
            return f"{name}: its batches have no limits, their trigger says how long they are"
    if options.isolation == READ_COMMITTED:
        return "isolation=read_committed: commits make batches visible, not messages"
    if options.payload != "binary":
        return f"payload={options.payload}: what is not as it should be, Python reads, and it does so in micro-batches only"
    if goes_on(options):
        return (
            f"{'onCorruption=skip' if options.skip_corruption else 'failOnDataLoss=false'}: Python leaves out what is missing "
            f"or damaged, and it does so in micro-batches only"
        )
    when = options.starting_timestamp
    if when is not None and (options.timestamp_from.kind != "index" or time.time_ns() < when):
        return "startingTimestamp: one that is to come, or not by the time index, is looked for in each micro-batch"
    return lack_of(options)


@dataclass(frozen=True, slots=True)
class Pack:
    """What one task follows, and how it reads."""

    ranges: tuple[Range, ...]
    job: str


class RealTime:
    """The batches of one query. Remembers what the tasks of the present one follow."""

    def __init__(self, options: ReadOptions, planner: Planner) -> None:
        lack = _lack(options)
        if lack is not None or not isinstance(planner, UncommittedPlanner):
            raise UsageError(
                f"Spark's Real-Time Mode cannot read with {lack}; leave out that option, or the trigger realTime, and Spark "
                f"reads in micro-batches"
            )
        self._options = options
        self._planner = planner
        self._followed: Followed | None = None

    def answer(self, start: Offset, request: Mapping[str, object]) -> list[Pack]:
        """See the module."""
        if "reached" in request:
            return [Pack((), json.dumps({"offset": json.dumps(self._reached(start, request).json)}))]
        return self._plan(start, int(str(request["tasks"])))

    def _plan(self, start: Offset, tasks: int) -> list[Pack]:
        self._followed = followed = self._planner.follow(start)
        known = {"newest": followed.newest, "active": list(followed.known)}
        job = json.dumps({**jvm_job(self._options, None), "known": known})
        # One task there is always: it ends the batch when the first recording begins.
        count = max(1, min(self._options.min_partitions or tasks, len(followed.ranges)))
        return [Pack(tuple(followed.ranges[index::count]), job) for index in range(count)]

    def _reached(self, start: Offset, request: Mapping[str, object]) -> Offset:
        if self._followed is None:
            raise InternalError("Spark asks for the end of a batch of Real-Time Mode that was not planned here")
        planned = self._followed.offset
        reached = integers_of(request, "reached")
        ids = np.array(sorted(reached), np.int64)
        positions = np.array([reached[key] for key in sorted(reached)], np.int64)
        end = planned.moved(
            np.searchsorted(planned.ids, ids), positions, self._planner.source.fingerprints(ids, positions)
        )
        start.check_advances_to(end)
        return end
