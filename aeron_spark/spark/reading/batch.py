"""Batch reading: partitions are half-open position ranges of recordings, read as Arrow batches."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from aeron_spark.archive.search import clamped_ns, index_time_position
from aeron_spark.archive.segments import Extent, Recording
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.batch import joined
from aeron_spark.errors import DataLossError
from aeron_spark.spark.planning.bounds import Bounds
from aeron_spark.spark.planning.data_loss import goes_on, looked_again
from aeron_spark.spark.planning.engine import check_reads_in_python, jvm_job
from aeron_spark.spark.planning.options import READ_COMMITTED, TIME, ReadOptions
from aeron_spark.spark.planning.ranges import Range, pack, target_partition_bytes
from aeron_spark.spark.planning.sbe_times import times_of
from aeron_spark.spark.planning.selection import (
    check_asked_for,
    log_hidden,
    open_folder,
    select_recordings,
    task_slots,
)
from aeron_spark.spark.planning.slices import time_slices
from aeron_spark.spark.reading.range_reader import Columns, Skipped, range_batches
from aeron_spark.spark.reading.rows import Interval, Rows, intervals
from aeron_spark.types import FRAME_ALIGNMENT

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter  # not in every pyspark

__all__ = [
    "BATCH_BYTES",
    "AeronBatchReader",
    "PushdownReader",
    "RangesPartition",
    "is_pushing_filters",
    "partition_ranges",
    "read_partition",
]


#: Bytes of messages in an Arrow batch: each costs Spark a turn of its socket.
BATCH_BYTES = 8 << 20
#: The largest message (Spec: 02 §4): a batch of this many bytes holds any message.
MAX_MESSAGE_LENGTH = 16 << 20
#: Spark's worker that pushes filters and then plans the read.
PUSHDOWN_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"


@dataclass(frozen=True)
class RangesPartition(InputPartition):
    """Ranges that one task reads, in this order; and by which engine.

    Pickled as a call of ``partition_of`` with plain text, which the engine in the JVM reads as well (``Planned.java``).
    """

    ranges: tuple[Range, ...]
    job: str = "{}"

    @property
    def is_handed_over(self) -> bool:
        """The engine in the JVM has left these ranges to Python."""
        return bool(json.loads(self.job).get("isHandedOver"))

    def __reduce__(self) -> tuple[Callable[[str], RangesPartition], tuple[str]]:
        ranges = [[part.recording_id, part.start, part.end, part.limit] for part in self.ranges]
        return partition_of, (json.dumps({"ranges": ranges, "job": json.loads(self.job)}),)


def partition_of(text: str) -> RangesPartition:
    """The partition again."""
    parsed = json.loads(text)
    return RangesPartition(tuple(Range(*part) for part in parsed["ranges"]), json.dumps(parsed["job"]))


def partition_ranges(
    folder: RecordingSource, ranges: Iterable[Range], options: ReadOptions, rows: Rows
) -> list[InputPartition]:
    """Splits large ranges and packs small ones together, or cuts them by time.

    Where the cuts lie depends on the planning machine's cores too; which rows all partitions hold together does not.
    """
    ordered = sorted(ranges, key=lambda part: (part.recording_id, part.start))
    target = target_partition_bytes(
        sum(part.end - part.start for part in ordered),
        slots=task_slots(),
        min_partitions=options.min_partitions,
        max_bytes=options.max_bytes_per_partition,
    )
    if options.partition_by == TIME:
        packs = time_slices(folder, [part for part in ordered if part.start < part.end], target, options)
    else:
        packs = pack(_pieces(folder, ordered, target, options), target)
    job = jvm_job(options, rows.for_jvm())
    first, others = json.dumps(job), json.dumps({name: job[name] for name in job if name != "sbe"})
    # How payloads are decoded is long, and the same for all.
    return [RangesPartition(members, others if at else first) for at, members in enumerate(packs)]


def _pieces(folder: RecordingSource, ranges: Iterable[Range], target: int, options: ReadOptions) -> Iterator[Range]:
    for part in ranges:
        if part.start < part.end:
            starts = [part.start] if part.end - part.start <= target else _cuts(folder, part, target, options)
            yield from (
                Range(part.recording_id, low, high, part.limit)
                for low, high in itertools.pairwise([*starts, part.end])
                if low < high
            )


def _cuts(folder: RecordingSource, part: Range, target: int, options: ReadOptions) -> list[int]:
    try:
        return list(folder.split(part.recording_id, part.start, part.end, target))
    except DataLossError:
        if not goes_on(options):
            raise
    # Terms begin with a message whatever else is broken.
    term_length = folder.recording(part.recording_id).term_buffer_length
    step = max(term_length, target // term_length * term_length)
    first = part.start - part.start % term_length + step
    return [part.start, *range(first, part.end, step)]


def read_partition(
    partition: RangesPartition, options: ReadOptions, rows: Rows, pushed: Mapping[str, Interval] | None = None
) -> Iterator[pa.RecordBatch]:
    """Opens the source, yields the ranges' batches and keeps no state. The same range gives the same rows at each run."""
    if not partition.is_handed_over:
        check_reads_in_python(options)
    batches = _read_ranges(partition, options, rows, pushed or {})
    return joined(batches, max_rows=options.rows_per_batch, max_bytes=options.bytes_per_batch or BATCH_BYTES)


def _read_ranges(
    partition: RangesPartition, options: ReadOptions, rows: Rows, pushed: Mapping[str, Interval]
) -> Iterator[pa.RecordBatch]:
    skipped = Skipped(options)
    with open_folder(options) as folder:
        for part in partition.ranges:
            recording = folder.recording(part.recording_id)
            largest = min(recording.term_buffer_length // 8, MAX_MESSAGE_LENGTH)
            span = min(part.limit, part.end + largest) - part.start
            # A row has a frame of its own, so a range of n bytes holds no more than n / 32.
            columns = Columns(
                names=rows.native_columns,
                row_capacity=min(options.rows_per_batch, span // FRAME_ALIGNMENT + 1),
                byte_capacity=min(max(options.bytes_per_batch or BATCH_BYTES, largest), span),
            )
            for batch in range_batches(folder, recording, part, columns, skipped):
                yield from rows.make(folder, recording, batch, pushed)


class AeronBatchReader(DataSourceReader):
    """Reads [startingPositions, endingPositions) of the chosen recordings as they are when the query is planned."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._rows = Rows(options, schema)
        self._pushed: Mapping[str, Interval] = {}

    def partitions(self) -> Sequence[InputPartition]:
        """Fixes each recording's range now; a live recording is read up to its recorded position and no further."""
        return looked_again(self._partitions, self._partitions)

    def _partitions(self) -> Sequence[InputPartition]:
        options = self._options
        with open_folder(options) as folder:
            is_committed = options.isolation == READ_COMMITTED
            ranges = self._committed(folder) if is_committed else self._ranges(folder)
            # Without partitions Spark would make one of its own type, which read() does not know.
            made = partition_ranges(folder, ranges, options, self._rows)
            return made or [RangesPartition((), json.dumps(jvm_job(options, self._rows.for_jvm())))]

    def _committed(self, folder: RecordingSource) -> list[Range]:
        from aeron_spark.spark.planning.committed import committed_now

        return committed_now(folder, self._options)

    def _ranges(self, folder: RecordingSource) -> list[Range]:
        options = self._options
        bounds = Bounds(folder, options, times_of(options))
        log_hidden(folder, options)
        recordings = select_recordings(folder, options, allow_none=False)
        check_asked_for(options, [recording.recording_id for recording in recordings])
        ranges = []
        for recording in filter(self._is_asked_for, recordings):
            extent = folder.extent(recording.recording_id)
            ranges += [self._narrowed(folder, part, extent) for part in bounds.ranges(recording, extent)]
        return ranges

    def _is_asked_for(self, recording: Recording) -> bool:
        return all(
            value in self._pushed.get(name, Interval())
            for name, value in (("recording_id", recording.recording_id), ("stream_id", recording.stream_id))
            if self._rows.is_of_message(name)
        )

    def _narrowed(self, folder: RecordingSource, part: Range, extent: Extent) -> Range:
        """The part of a range that the filters may select; they exclude all rows outside of it."""
        start, end = part.start, part.end
        if "position" in self._pushed and self._rows.is_of_message("position"):
            low, high = self._pushed["position"].bounds
            start = start if low is None else max(start, low)
            end = end if high is None else min(end, high + 1)
        for name, unit in (("timestamp", 1000), ("timestamp_ns", 1)):
            if name in self._pushed and self._rows.is_of_message(name) and self._options.timestamp_from.kind == "index":
                low, high = self._pushed[name].bounds
                if low is not None:
                    start = max(start, folder.position_at(part.recording_id, clamped_ns(low * unit)).position)
                if high is not None:
                    after = clamped_ns((high + 1) * unit)
                    end = min(end, index_time_position(folder, part.recording_id, extent, after))
        return Range(part.recording_id, min(start, part.end), max(min(start, part.end), end), part.limit)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a task."""
        return read_partition(cast("RangesPartition", partition), self._options, self._rows, self._pushed)


class PushdownReader(AeronBatchReader):
    """The reader where Spark pushes filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Narrows what is read; Spark still applies every filter itself."""
        self._pushed = intervals(filters)
        return filters


def is_pushing_filters() -> bool:
    """Whether this is the process in which Spark pushes filters, which it starts only with its setting on."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return PUSHDOWN_WORKER in sys.modules or (main is not None and main.name == PUSHDOWN_WORKER)
