"""Bytes of recordings for the engine in Spark's JVM, where only Python reaches them: segments in an object store.

The engine asks for them by a schema of its own (``Fetched.java``). A window is a piece of one segment, of whole terms where the
range does not begin or end inside of one. It comes in rows of at most ``CHUNK_BYTES``: the first one says what it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import cast

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from aeron_spark.archive.objects import SegmentBytes
from aeron_spark.archive.segments import SegmentFiles
from aeron_spark.spark.access import open_objects
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.planning.selection import CHECKSUMS
from aeron_spark.spark.reading.batch import RangesPartition
from aeron_spark.spark.reading.range_reader import Skipped

__all__ = ["COLUMNS", "WindowReader"]

CHUNK_BYTES = 4 << 20
COLUMNS = pa.schema([("aeron_window", pa.string()), ("aeron_bytes", pa.binary())])


class WindowReader(DataSourceReader):
    """Reads ranges that another reader has planned; tasks as that one's, but for what they give."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """One that holds nothing: without any, Spark would make one of its own type."""
        return [RangesPartition(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs in a task."""
        options = self._options
        skipped = Skipped(options)
        with open_objects(options.access, CHECKSUMS[options.record_checksum]) as folder:
            for planned in cast("RangesPartition", partition).ranges:
                recording = folder.recording(planned.recording_id)
                part = skipped.what_is_there(folder, recording, planned)
                yield from folder.read_windows(
                    part.recording_id, part.start, part.end, limit=part.limit, rows_of=_chunks
                )


def _chunks(files: SegmentFiles, begin: int, end: int, limit: int) -> Iterator[pa.RecordBatch]:
    window = cast("SegmentBytes", files)
    shown, length = window.shown, len(window.data)
    facts = {
        "begin": begin,
        "end": end,
        "limit": limit,
        "position": window.position,
        "length": length,
        "checksum": int(window.checksum),
        "path": window.path,
        "recordingId": shown.recording_id,
        "startPosition": shown.start_position,
        "stopPosition": shown.stop_position,
        "initialTermId": shown.initial_term_id,
        "segmentLength": shown.segment_file_length,
        "termLength": shown.term_buffer_length,
        "mtuLength": shown.mtu_length,
        "sessionId": shown.session_id,
        "streamId": shown.stream_id,
        "channel": shown.original_channel,
        "sourceIdentity": shown.source_identity,
    }
    for at in range(0, length, CHUNK_BYTES):
        size = min(CHUNK_BYTES, length - at)
        offsets = pa.array([0, size], pa.int32()).buffers()[1]
        data = pa.BinaryArray.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(window.data).slice(at, size)])
        yield pa.RecordBatch.from_arrays(
            [pa.array([None if at else json.dumps(facts)], pa.string()), data], schema=COLUMNS
        )
