"""Reads the batches of a range. Skips missing or damaged bytes where the options allow that, and logs what was skipped."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from aeron_spark.archive.segments import Extent, OnDoubt, Recording, SegmentFiles, SegmentReader
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.errors import DataLossError, PeerError
from aeron_spark.spark.log import LOG, facts
from aeron_spark.spark.planning.data_loss import goes_on, lost, segment_path
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.planning.ranges import Range
from aeron_spark.types import Position

__all__ = ["Columns", "Skipped", "range_batches"]


class Skipped:
    """Counts what one task skipped: damaged bytes (``onCorruption``) or missing ones (``failOnDataLoss``)."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self.count = 0
        self.byte_count = 0

    def resume_at(self, files: SegmentFiles, recording: Recording, position: int, error: DataLossError) -> int:
        """The position after broken bytes where a message certainly begins; raises if the bytes may not be skipped.

        No message reaches from one term into the next. Where the next one of the same term begins, broken bytes do not show.
        """
        term_length = recording.term_buffer_length
        next_term = position - position % term_length + term_length
        for at in (position, next_term):  # behind the last message of a segment only padding may stand
            name = segment_path(self._options, recording, at).name
            if name in str(error) and not files.has_file(name):
                self.lacks(recording, at, error)
                return recording.segment_base(at) + recording.segment_file_length
        if not self._options.skip_corruption:
            raise error
        return next_term

    def lacks(self, recording: Recording, position: int, error: DataLossError) -> None:
        """A segment is missing; raises if it may not be skipped."""
        lost(
            self._options,
            f"recording {recording.recording_id}: position {position} is wanted: {error}",
            recording_id=recording.recording_id,
            position=position,
        )

    def doubt(self, text: str) -> None:
        """Something seems damaged and may be valid: logs a warning, or raises with ``onCorruption=strict``."""
        text = f"{text}; check it with aeron-spark archive verify"
        if self._options.on_corruption == "strict":
            raise DataLossError(f"{self._options.path}: {text}; onCorruption=fail goes on with a warning")
        LOG.warning("%s: %s", self._options.path, text, extra=facts(path=self._options.path))

    @property
    def is_allowed(self) -> bool:
        """Missing or damaged bytes may be skipped."""
        return goes_on(self._options)

    def what_is_there(self, folder: RecordingSource, recording: Recording, part: Range) -> Range:
        """The range as far as the recording still holds it."""
        try:
            extent = folder.extent(part.recording_id)
        except PeerError:
            # The planning machine saw the live archive's counters and this one does not: trust the plan.
            extent = Extent(
                start_position=recording.start_position, limit_position=Position(part.limit), is_active=True
            )
        if extent.start_position <= part.start and part.end <= extent.limit_position:
            return part
        path = segment_path(self._options, recording, part.start)
        lost(
            self._options,
            f"recording {part.recording_id}: [{part.start}, {part.end}) was planned to be read from {path} on, but now "
            f"[{extent.start_position}, {extent.limit_position}) is there: it was purged or truncated meanwhile (a plan that "
            "Spark has kept reads the same again: load anew)",
            recording_id=part.recording_id,
            position=part.start,
        )
        limit = min(part.limit, extent.limit_position)
        return Range(part.recording_id, max(part.start, extent.start_position), min(part.end, limit), limit)

    def add(self, recording: Recording, start: int, end: int, error: DataLossError) -> None:
        """Bytes [start, end) were left out."""
        self.count += 1
        self.byte_count += end - start
        LOG.warning(
            "recording %d of %s: left out %d bytes, [%d, %d): %s; by this task until now: %d times, %d bytes",
            recording.recording_id, self._options.path, end - start, start, end, error, self.count, self.byte_count,
            extra=facts(
                path=self._options.path, recording_id=recording.recording_id, position=start, end_position=end,
                left_out_bytes=end - start,
            ),
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What batches hold, and how much at most."""

    names: Sequence[str]
    row_capacity: int
    byte_capacity: int


def range_batches(
    source: RecordingSource, recording: Recording, part: Range, columns: Columns, skipped: Skipped
) -> Iterator[pa.RecordBatch]:
    """Batches of a range; skips missing or damaged bytes where the options allow it."""
    part = skipped.what_is_there(source, recording, part)
    # Fetching whole terms of a store pays only where something may be skipped.
    if source.is_local or (source.has_segment_files and skipped.is_allowed):
        yield from _segment_batches(source, recording, part, columns, skipped)
    else:
        yield from source.read(
            part.recording_id,
            part.start,
            part.end,
            limit=part.limit,
            columns=columns.names,
            row_capacity=columns.row_capacity,
            byte_capacity=columns.byte_capacity,
            on_doubt=skipped.doubt,
        )


def _segment_batches(
    source: RecordingSource, recording: Recording, part: Range, columns: Columns, skipped: Skipped
) -> Iterator[pa.RecordBatch]:
    """Reads segment files: a folder's own, or windows of a store's, which end where terms do."""

    def rows_of(files: SegmentFiles, begin: int, end: int, limit: int) -> Iterator[pa.RecordBatch]:
        return _batches(files, recording, Range(part.recording_id, begin, end, limit), columns, skipped)

    def on_missing(begin: int, end: int, name: str) -> None:
        missing = DataLossError(f"{name} is missing: put the object back")
        skipped.lacks(recording, begin, missing)
        skipped.add(recording, begin, end, missing)

    yield from source.segment_rows(
        part.recording_id, part.start, part.end, limit=part.limit, rows_of=rows_of, on_missing=on_missing
    )


def _batches(
    files: SegmentFiles, recording: Recording, part: Range, columns: Columns, skipped: Skipped
) -> Iterator[pa.RecordBatch]:
    start = part.start
    while start < part.end:
        failure, given, at = yield from _until_broken(files, replace(part, start=start), columns, skipped.doubt)
        if failure is None:
            return
        if skipped.is_allowed:
            # The failed batch is lost with its good rows, so they are read again up to the broken position.
            at = max(given, at if at > given else _broken_at(files, recording, replace(part, start=given)))
            failed_again, given, _ = yield from _until_broken(
                files, replace(part, start=given, end=at, limit=at), columns, _known_doubt
            )
            at = given if failed_again else at
        start = min(skipped.resume_at(files, recording, at, failure), part.end)
        skipped.add(recording, at, start, failure)


def _broken_at(files: SegmentFiles, recording: Recording, part: Range) -> int:
    """Where the term is broken in which the range begins. A reader must begin at the term's start to find it."""
    base = max(
        part.start - part.start % recording.term_buffer_length, files.recording(part.recording_id).start_position
    )
    end = min(base - base % recording.term_buffer_length + recording.term_buffer_length, part.limit)
    scan = _until_broken(
        files,
        Range(part.recording_id, base, end, end),
        Columns(names=("position",), row_capacity=1 << 12, byte_capacity=1),
        _known_doubt,
    )
    while True:
        try:
            next(scan)
        except StopIteration as ended:
            return int(ended.value[2])


def _known_doubt(_text: str) -> None:
    """Ignores the doubt: it was logged when the bytes were read first."""


def _until_broken(
    files: SegmentFiles, part: Range, columns: Columns, on_doubt: OnDoubt
) -> Generator[pa.RecordBatch, None, tuple[DataLossError | None, int, int]]:
    """Batches up to the first broken bytes; returns the error, the end of the last batch, and the broken position."""
    given = part.start
    try:
        with SegmentReader(
            files,
            part.recording_id,
            part.start,
            part.end,
            limit=part.limit,
            columns=columns.names,
            row_capacity=columns.row_capacity,
            byte_capacity=columns.byte_capacity,
            on_doubt=on_doubt,
        ) as reader:
            try:
                while (batch := reader.next_batch()) is not None:
                    yield batch
                    given = reader.position
            except DataLossError as error:
                return error, given, max(given, reader.position)
    except DataLossError as error:
        return error, given, given
    return None, part.end, part.end
