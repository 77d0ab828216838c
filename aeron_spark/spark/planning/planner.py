"""`Planner`: decides where the micro-batches of one streaming query end, and which ranges they read.

There is one per isolation: ``UncommittedPlanner`` plans by positions of the recordings, ``CommittedPlanner`` by entries of the
ledger. Each takes a snapshot of its source and plans from it, from offsets and a budget.
"""

from __future__ import annotations

from typing import Protocol

from aeron_spark.archive.sources import RecordingSource
from aeron_spark.spark.planning.committed import CommittedPlanner
from aeron_spark.spark.planning.offsets import Offset
from aeron_spark.spark.planning.options import READ_COMMITTED, ReadOptions
from aeron_spark.spark.planning.ranges import Budget, Range
from aeron_spark.spark.planning.snapshot import Pace
from aeron_spark.spark.planning.uncommitted import UncommittedPlanner

__all__ = ["Planner", "planner_of"]


class Planner(Protocol):
    """Plans the micro-batches of one query. Whoever opens it closes its source."""

    source: RecordingSource
    pace: Pace

    def initial(self) -> Offset:
        """Where the query begins, now."""

    def next_end(self, start: Offset, budget: Budget) -> Offset:
        """Where the micro-batch from ``start`` on ends; ``start`` itself where there is nothing to read."""

    def newest(self) -> dict[str, object]:
        """How far the source goes now, for the lag in the query's progress."""

    def pin(self) -> None:
        """What is recorded later is not read."""

    def ranges(self, first: Offset, last: Offset) -> list[Range]:
        """What the micro-batch (first, last] reads: the same whenever it is planned."""


def planner_of(options: ReadOptions) -> Planner:
    """The planner of the query's isolation; opens its source."""
    return CommittedPlanner(options) if options.isolation == READ_COMMITTED else UncommittedPlanner(options)
