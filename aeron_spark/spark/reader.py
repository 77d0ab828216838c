"""Batch reading: partitions are half-open position ranges of recordings, read as Arrow batches."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from aeron_spark.archive.segments import Folder
from aeron_spark.errors import UsageError
from aeron_spark.spark.options import ReadOptions
from aeron_spark.spark.plan import Range, pack, target_partition_bytes
from aeron_spark.spark.schema import arrow_schema, column_names
from aeron_spark.spark.selection import (
    check_asked_for,
    open_folder,
    resolve_position,
    select_recordings,
    task_slots,
)

__all__ = ["AeronBatchReader", "RangesPartition", "partition_ranges", "read_partition"]


#: No message is longer (spec 02 section 4), so a batch that holds this many bytes takes any.
MAX_MESSAGE_LENGTH = 16 << 20
#: Every frame begins at a multiple of this, so a range of n bytes holds no more than n / 32 rows.
FRAME_ALIGNMENT = 32


@dataclass(frozen=True)
class RangesPartition(InputPartition):
    """Ranges that one task reads, in this order."""

    ranges: tuple[Range, ...]


def partition_ranges(
    folder: Folder, ranges: dict[int, tuple[int, int]], limits: dict[int, int], options: ReadOptions
) -> list[InputPartition]:
    """Cuts large ranges and puts small ones together.

    Where the cuts lie depends on the planning machine's cores too; which rows all partitions hold together does not.
    """
    target = target_partition_bytes(
        ranges, slots=task_slots(), min_partitions=options.min_partitions, max_bytes=options.max_bytes_per_partition
    )
    pieces: list[Range] = []
    for recording_id, (start, end) in sorted(ranges.items()):
        if start < end:
            cuts = [start, end] if end - start <= target else [*folder.split(recording_id, start, end, target), end]
            pieces.extend(
                Range(recording_id, low, high, limits[recording_id])
                for low, high in itertools.pairwise(cuts)
                if low < high
            )
    return [RangesPartition(members) for members in pack(pieces, target)]


def read_partition(partition: RangesPartition, options: ReadOptions, schema: StructType) -> Iterator[pa.RecordBatch]:
    """Opens the folder, yields the ranges' batches, keeps nothing. The same range gives the same rows at each run."""
    names = column_names(schema)
    target = arrow_schema(schema)
    with open_folder(options) as folder:
        for part in partition.ranges:
            term_length = folder.recording(part.recording_id).term_buffer_length
            largest = min(term_length // 8, MAX_MESSAGE_LENGTH)
            span = min(part.limit, part.end + largest) - part.start
            for batch in folder.read(
                part.recording_id,
                part.start,
                part.end,
                limit=part.limit,
                columns=names,
                row_capacity=min(options.rows_per_batch, span // FRAME_ALIGNMENT + 1),
                byte_capacity=min(max(options.bytes_per_batch, largest), span),
            ):
                yield batch if batch.schema.equals(target) else batch.cast(target)


class AeronBatchReader(DataSourceReader):
    """Reads [startingPositions, endingPositions) of the chosen recordings as they are when the query is planned."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Fixes each recording's range now; a live recording is read up to its recorded position and no further."""
        options = self._options
        with open_folder(options) as folder:
            ranges: dict[int, tuple[int, int]] = {}
            limits: dict[int, int] = {}
            for recording in select_recordings(folder, options, allow_none=False):
                recording_id = recording.recording_id
                extent = folder.extent(recording_id)
                start = resolve_position(
                    "startingPositions", options.starting_positions.of(recording_id), recording_id, extent
                )
                end = resolve_position(
                    "endingPositions", options.ending_positions.of(recording_id), recording_id, extent
                )
                if start > end:
                    raise UsageError(
                        f"recording {recording_id}: startingPositions {start} lies after endingPositions {end}"
                    )
                ranges[recording_id] = (start, end)
                limits[recording_id] = extent.limit_position
            check_asked_for(options, ranges)
            # Where there is no partition, Spark makes up one of its own, which read() could not know.
            return partition_ranges(folder, ranges, limits, options) or [RangesPartition(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a task."""
        return read_partition(cast("RangesPartition", partition), self._options, self._schema)
