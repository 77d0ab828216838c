"""Micro-batches. One reader lives on the driver for the life of the query; its planner decides what is read.

It handles these habits of Spark (Spec: 09 §3): Spark asks for the initial offset twice, and once more after a crash
inside batch 0; offsets are compared as text; nothing checks that they advance; partitions are planned again on replay; commits
arrive one batch late; an idle query polls the latest offset many times a second.

The engine in the JVM asks for more by the call that plans a micro-batch, with a request in place of its end: see
``planning/real_time.py``, and ``{"lagTo": <newest offset>}`` for how far the begin is behind that, as metrics of the source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import cast

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from aeron_spark.errors import AeronError
from aeron_spark.spark.features import StreamReader
from aeron_spark.spark.planning.lag import source_metrics
from aeron_spark.spark.planning.limits import budget_of, default_limit
from aeron_spark.spark.planning.offsets import Offset
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.planning.planner import Planner, planner_of
from aeron_spark.spark.planning.ranges import Budget
from aeron_spark.spark.planning.real_time import RealTime, request_of
from aeron_spark.spark.reading.batch import RangesPartition, partition_ranges, read_partition
from aeron_spark.spark.reading.rows import Rows

__all__ = ["AeronStreamReader", "RefusedStream"]


class AeronStreamReader(StreamReader):
    """Translates between Spark's calls and a planner, which it opens at the first of them."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._rows = Rows(options, schema)
        self._planner: Planner | None = None
        self._initial: Offset | None = None
        self._seen: tuple[Offset, ...] = ()
        self._real_time: RealTime | None = None

    def __getstate__(self) -> dict[str, object]:
        """Tasks get options and what makes rows; the planner stays on the driver."""
        return {"_options": self._options, "_rows": self._rows}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    @property
    def planner(self) -> Planner:
        """The planner of the query's isolation."""
        if self._planner is None:
            self._planner = planner_of(self._options)
        return self._planner

    def initialOffset(self) -> dict[str, object]:
        """Resolved once: Spark asks twice, and "latest" must not move in between."""
        if self._initial is None:
            self._initial = self.planner.initial()
        return self._initial.json

    def limit(self) -> Budget:
        """The main limit; ``next_offset`` applies the other one as well."""
        return default_limit(self._options)

    def next_offset(self, start: dict[str, object], limit: Budget) -> dict[str, object]:
        """The end of the next micro-batch, within the limits."""
        end = self.planner.next_end(self._offset(start), budget_of(self._options, limit))
        return self._remember(end).json

    def newest_offset(self) -> dict[str, object]:
        """How far the recordings go now."""
        return self.planner.newest()

    def pin(self) -> None:
        """What is recorded later is not of this available-now run."""
        self.planner.pin()

    def plan(self, start: dict[str, object], end: dict[str, object]) -> Sequence[InputPartition]:
        """The planned ranges, cut for tasks; or what the engine in the JVM asks for in place of them."""
        newest = end.get("lagTo")
        if isinstance(newest, dict):
            return [RangesPartition((), json.dumps({"metrics": source_metrics(start, newest)}))]
        request = request_of(end)
        if request is not None:
            planner = self.planner
            if self._real_time is None:
                self._real_time = RealTime(self._options, planner)
            answer = self._real_time.answer(self._offset(start), request)
            return [RangesPartition(pack.ranges, pack.job) for pack in answer]
        ranges = self.planner.ranges(self._offset(start), self._offset(end))
        return partition_ranges(self.planner.source, ranges, self._options, self._rows)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a task."""
        return read_partition(cast("RangesPartition", partition), self._options, self._rows)

    def commit(self, end: dict[str, object]) -> None:
        """Nothing to give back: the archive keeps its segments until somebody purges them."""

    def stop(self) -> None:
        """Closes the source. Spark seldom calls this; the end of the process does it as well."""
        if self._planner is not None:
            self._planner.source.close()
            self._planner = None

    def _offset(self, parsed: dict[str, object]) -> Offset:
        """Parses an offset, or finds it among the last ones: Spark mostly returns what it was given."""
        for seen in self._seen:
            if seen.json is parsed or seen.json == parsed:
                return seen
        return self._remember(Offset.from_json_dict(parsed))

    def _remember(self, offset: Offset) -> Offset:
        if offset not in self._seen:
            self._seen = (offset, *self._seen[:1])
        return offset


class RefusedStream(AeronStreamReader):
    """Raises the reason at the first call: Spark hides an error of the constructor behind one of its own."""

    def __init__(self, why: AeronError) -> None:
        self._why = why
        self._initial = None

    @property
    def planner(self) -> Planner:
        """Raises: whatever Spark asks for, and after a restart that is not the initial offset, needs the planner."""
        raise self._why

    def limit(self) -> Budget:
        """Raises: where Spark limits micro-batches, it asks for this first."""
        raise self._why

    def stop(self) -> None:
        """Nothing was opened."""
