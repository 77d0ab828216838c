"""Direct reads of an archive's folder: descriptors, the extent of each recording, and its messages as record batches.

Works on live, stopped and crashed archives of this project and of stock Aeron, and does not write to them. Ranges are
half-open in bytes of the stream: a message belongs to [start, end) if its first frame begins there.
Thread rule: a folder serialises its calls, as a reader does; they are independent of each other.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypedDict, Unpack

import numpy as np
import pyarrow as pa

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.check import c_path, check, string
from aeron_spark._native.handle import Handle
from aeron_spark.archive.recordings import Recording, recording_from
from aeron_spark.archive.times import TimeIndexInfo, TimePosition, Times
from aeron_spark.batch import (
    DEFAULT_BYTES,
    DEFAULT_COLUMNS,
    DEFAULT_ROWS,
    RECORDING_ID,
    Batches,
    ColumnBuffers,
    ColumnMemory,
)
from aeron_spark.errors import DataLossError, DoubtWarning, StorageError, UsageError
from aeron_spark.types import NULL_VALUE, Position, RecordChecksum

__all__ = [
    "Extent",
    "Folder",
    "FolderInfo",
    "Recording",
    "RecordingColumns",
    "SegmentFiles",
    "SegmentReader",
    "TimeIndexInfo",
    "TimePosition",
    "archive_is_live",
]

READ_COLUMNS = (RECORDING_ID.name, *DEFAULT_COLUMNS)
# Argument: a description of data that looks damaged but may be valid; each kind once per range, with the first
# position.
OnDoubt = Callable[[str], object]
# Makes the batches of a range of one recording from its segment files; arguments: files, begin, end and limit.
RowsOf = Callable[["SegmentFiles", int, int, int], Iterator[pa.RecordBatch]]
# Arguments: begin and end of a range whose segments are missing, and the first one's name.
OnMissing = Callable[[int, int, str], object]


class Choice(TypedDict, total=False):
    """What a read of recorded messages gives: columns, rows and bytes of a batch at most, and the handler of doubts."""

    columns: Sequence[str]
    row_capacity: int
    byte_capacity: int | None
    on_doubt: OnDoubt


class FolderChoice(Choice, total=False):
    """The same of a folder's messages. `memory`: for columns that are used only until the next batch is read."""

    memory: ColumnMemory | None


class SegmentFiles(Protocol):
    """What a `SegmentReader` reads: the files of a folder, or bytes of one file that is elsewhere."""

    @property
    def path(self) -> str | Path:
        """Name of the folder in messages."""

    def recording(self, recording_id: int) -> Recording:
        """The recording, as far as these files hold it."""

    def has_file(self, name: str) -> bool:
        """Whether the segment file is there."""

    def open_reader(self, recording_id: int, start: int, end: int, limit: int) -> tuple[Any, Handle | None]:
        """A C reader of the range, and what has to stay open for it."""


def warn_of_doubt(text: str) -> None:
    """Report a doubt as a Python warning."""
    warnings.warn(text, DoubtWarning, stacklevel=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The range of a recording that can be read now.

    `limit_position` is the recorded position if it is live, the stop position if it is stopped, and the end of the last
    whole frame if its archive died. It grows while `is_active`.
    """

    start_position: Position
    limit_position: Position
    is_active: bool


@dataclass(frozen=True, slots=True, eq=False)
class RecordingColumns:
    """Every valid recording, by id: int64 arrays.

    A `revision` of a folder's object changes whenever more than positions and stop time has changed. `stop_position` is
    -1 where `extents()` must be called: for recordings that are active, or whose entry is damaged.
    """

    recording_id: np.ndarray[Any, Any]
    revision: np.ndarray[Any, Any]
    start_position: np.ndarray[Any, Any]
    stop_position: np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderInfo:
    """The mark file's facts about the archive that owns a folder.

    `archive_id` is -1 and `pid` 0 without a mark file; `activity_timestamp_ms` is None after an orderly shutdown.
    `local_control_stream_id` is where the archive accepts control sessions over IPC, 0 without a mark file.
    `invalid_count` recordings are marked INVALID: `Folder.recordings()` omits them.
    """

    archive_id: int
    pid: int
    activity_timestamp_ms: int | None
    has_mark_file: bool
    is_live: bool
    local_control_stream_id: int
    invalid_count: int
    aeron_dir: Path | None


class Folder(Times):
    """Read-only view of an archive's folder, as of opening or the last `refresh()`.

    `aeron_dir` overrides the Aeron directory that the mark file names, for a live archive whose driver is mounted under
    another path here. DataLossError: no catalog, or a foreign or damaged one; StorageError: it can't be read.
    """

    is_local = True
    has_segment_files = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        aeron_dir: str | os.PathLike[str] | None = None,
        checksum: RecordChecksum = RecordChecksum.AUTO,
    ) -> None:
        self.path = Path(path)
        options = ffi.new("as_folder_options *")
        lib.as_folder_options_init(options)
        directory = c_path(aeron_dir) if aeron_dir is not None else ffi.NULL
        options.aeron_dir = directory
        options.checksum = int(checksum)
        out = ffi.new("as_folder **")
        check(lib.as_folder_open(c_path(path), options, out))
        super().__init__(out[0], lib.as_folder_close)

    def refresh(self) -> None:
        """Read catalog and mark file again: new recordings and changed positions."""
        with self._use() as folder:
            check(lib.as_folder_refresh(folder))

    def info(self) -> FolderInfo:
        """Identity and liveness of the archive that owns the folder."""
        raw = ffi.new("as_folder_info *")
        with self._use() as folder:
            check(lib.as_folder_get_info(folder, raw))
            directory = string(raw.aeron_dir)
        activity = raw.activity_timestamp_ms
        return FolderInfo(
            archive_id=raw.archive_id,
            pid=raw.pid,
            activity_timestamp_ms=None if activity == NULL_VALUE else activity,
            has_mark_file=raw.has_mark_file,
            is_live=raw.is_live,
            local_control_stream_id=raw.local_control_stream_id,
            invalid_count=raw.invalid_count,
            aeron_dir=Path(directory) if directory else None,
        )

    def recordings(self) -> list[Recording]:
        """Every valid recording, by id."""
        raw = ffi.new("as_recording *")
        found = []
        with self._use() as folder:
            for index in range(lib.as_folder_recording_count(folder)):
                check(lib.as_folder_recording_at(folder, index, raw))
                found.append(recording_from(raw))
        return found

    def hidden_count(self) -> int:
        """Number of recordings that are marked INVALID and not listed."""
        return self.info().invalid_count

    def without_segments(self) -> list[Recording]:
        """Empty: a folder lists its recordings whether or not their segments exist."""
        return []

    def recording_at(self, index: int) -> Recording:
        """The recording at an index of `columns()`."""
        raw = ffi.new("as_recording *")
        with self._use() as folder:
            check(lib.as_folder_recording_at(folder, index, raw))
            return recording_from(raw)

    def columns(self) -> RecordingColumns:
        """Input for planning over very many recordings, without an object for each."""
        with self._use() as folder:
            count = lib.as_folder_recording_count(folder)
            arrays = [np.empty(count, np.int64) for _ in range(4)]
            raw = ffi.new("as_folder_columns *", [_numbers(array) for array in arrays])
            lib.as_folder_get_columns(folder, raw)
        return RecordingColumns(*arrays)

    def recording(self, recording_id: int) -> Recording:
        """One recording; UsageError for an unknown id, with the known ids."""
        raw = ffi.new("as_recording *")
        with self._use() as folder:
            check(lib.as_folder_recording(folder, recording_id, raw))
            return recording_from(raw)

    def extent(self, recording_id: int) -> Extent:
        """The range of a recording that can be read now; reads live counters at every call.

        PeerError when the archive is live but its driver's counters can't be reached; the text names the setting.
        """
        raw = ffi.new("as_recording_extent *")
        with self._use() as folder:
            check(lib.as_folder_extent(folder, recording_id, raw))
        return Extent(
            start_position=Position(raw.start_position),
            limit_position=Position(raw.limit_position),
            is_active=raw.is_active,
        )

    def extents(self, recording_ids: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Start and limit positions of recordings, as `extent` returns them one by one."""
        ids = np.ascontiguousarray(recording_ids, np.int64)
        raw = ffi.new("as_recording_extent[]", len(ids))
        with self._use() as folder:
            check(lib.as_folder_extents(folder, _numbers(ids), len(ids), raw))
        # Two positions, and a boolean with its padding.
        found = np.frombuffer(ffi.buffer(raw), np.int64).reshape(-1, 3)
        return found[:, 0].copy(), found[:, 1].copy()

    def checksum(self, recording_id: int) -> RecordChecksum:
        """The checksum that applies to the recording; never AUTO."""
        raw = ffi.new("as_record_checksum *")
        with self._use() as folder:
            check(lib.as_folder_checksum(folder, recording_id, raw))
        return RecordChecksum(int(raw[0]))

    def advance(
        self,
        recording_id: int,
        start: int,
        limit: int,
        *,
        max_bytes: int | None = None,
        max_messages: int | None = None,
    ) -> Position:
        """Largest message boundary in [start, limit] within `max_bytes` and `max_messages`.

        Advances by at least one message when a whole one lies before `limit`, so that a small bound still progresses. A
        `start` inside a message is moved up to the next one.
        """
        out = ffi.new("int64_t *")
        with self._use() as folder:
            check(
                lib.as_folder_advance(
                    folder,
                    recording_id,
                    start,
                    limit,
                    NULL_VALUE if max_bytes is None else max_bytes,
                    NULL_VALUE if max_messages is None else max_messages,
                    out,
                )
            )
        return Position(out[0])

    def fingerprint(self, recording_id: int, position: int) -> int:
        """48 bits of the frame that ends at `position`; 0 if it can't be read: at the start, or its bytes are purged.

        Bytes before a recorded position change in one way only: the recording is truncated below it and extended past
        it. A caller that stores positions stores this with them, and compares with `same_fingerprint`.
        """
        return int(self.fingerprints(np.array([recording_id]), np.array([position]))[0])

    def fingerprints(
        self, recording_ids: np.ndarray[Any, Any], positions: np.ndarray[Any, Any]
    ) -> np.ndarray[Any, np.dtype[np.int64]]:
        """`fingerprint` of each recording at its position."""
        ids, at = (np.ascontiguousarray(column, np.int64) for column in (recording_ids, positions))
        found = np.zeros(len(ids), np.int64)
        with self._use() as folder:
            check(lib.as_folder_fingerprints(folder, _numbers(ids), _numbers(at), len(ids), _numbers(found)))
        return found

    def align(self, recording_id: int, position: int, limit: int, *, back: bool = False) -> Position:
        """Message boundary at or after `position`, or with `back` at or before it, inside [start_position, limit]."""
        out = ffi.new("int64_t *")
        with self._use() as folder:
            check(lib.as_folder_align(folder, recording_id, position, limit, back, out))
        return Position(out[0])

    def split(self, recording_id: int, start: int, end: int, target_bytes: int) -> list[Position]:
        """Starts of ranges of about `target_bytes` that together cover [start, end), cut at message boundaries.

        The same arguments always give the same cuts.
        """
        capacity = 16
        count = ffi.new("int64_t *")
        with self._use() as folder:
            while True:
                starts = ffi.new("int64_t[]", capacity)
                check(lib.as_folder_split(folder, recording_id, start, end, target_bytes, starts, capacity, count))
                if count[0] < capacity:
                    return [Position(starts[index]) for index in range(count[0])]
                capacity *= 4

    def read(
        self,
        recording_id: int,
        start: int | None = None,
        end: int | None = None,
        *,
        limit: int | None = None,
        **choice: Unpack[FolderChoice],
    ) -> Batches:
        """Messages that begin in [start, end), in position order, in batches of the chosen columns (`batch.FIELDS`).

        Iterate over them, or pass them to pyarrow, DuckDB, Polars or pandas as an Arrow stream, see `Batches`. Bytes up
        to `limit` >= end may be read to complete the last message; by default, up to the recording's end. Without
        `start` and `end`: the whole recording as it is now. Invalid positions raise UsageError here. Broken or missing
        bytes raise DataLossError where they occur, after the rows before them. Data that looks damaged but may be valid
        is reported to `on_doubt`, by default a DoubtWarning.
        """
        if start is None or end is None or limit is None:
            extent = self.extent(recording_id)
            start = extent.start_position if start is None else start
            limit = extent.limit_position if limit is None else limit
            end = limit if end is None else end
        return read_files(self, recording_id, start, end, limit=limit, **choice)

    def has_file(self, name: str) -> bool:
        """Whether a file is in the folder."""
        return (self.path / name).exists()

    def open_reader(self, recording_id: int, start: int, end: int, limit: int) -> tuple[Any, Handle | None]:
        """For `SegmentReader`."""
        out = ffi.new("as_segment_reader **")
        with self._use() as folder:
            check(lib.as_segment_reader_open(folder, recording_id, start, end, limit, out))
        return out[0], self

    def segment_rows(
        self,
        recording_id: int,  # noqa: ARG002 - as a source's
        start: int,
        end: int,
        *,
        limit: int,
        rows_of: RowsOf,
        on_missing: OnMissing,  # noqa: ARG002 - `rows_of` finds out itself
    ) -> Iterator[pa.RecordBatch]:
        """Batches that `rows_of` makes of the range, which is in one folder: this one."""
        return rows_of(self, start, end, limit)


class SegmentReader(Handle):
    """Reader of one range of one recording; `Folder.read` is the simple form."""

    def __init__(
        self,
        files: SegmentFiles,
        recording_id: int,
        start: int,
        end: int,
        *,
        limit: int,
        columns: Sequence[str] = READ_COLUMNS,
        row_capacity: int = DEFAULT_ROWS,
        byte_capacity: int | None = None,
        on_doubt: OnDoubt = warn_of_doubt,
        memory: ColumnMemory | None = None,
    ) -> None:
        if byte_capacity is None:
            # No message of this recording is longer than an eighth of its term.
            term_length = files.recording(recording_id).term_buffer_length
            byte_capacity = min(DEFAULT_BYTES, max(DEFAULT_BYTES // 4, term_length // 8))
        self._columns = ColumnBuffers(
            columns,
            row_capacity=row_capacity,
            byte_capacity=byte_capacity,
            recording_id=recording_id,
            memory=memory,
        )
        self.schema: pa.Schema = self._columns.schema
        pointer, parent = files.open_reader(recording_id, start, end, limit)
        super().__init__(pointer, lib.as_segment_reader_close, parent)
        self._files = files  # kept alive: the reader may read its bytes
        self._on_doubt = on_doubt
        self._doubt = ffi.new("as_doubt *")

    def next_batch(self) -> pa.RecordBatch | None:
        """Next rows, or None at the end of the range."""
        return self._columns.fill(self._read)

    def _read(self, columns: Any) -> None:
        with self._use() as reader:
            try:
                result = lib.as_segment_reader_next(reader, columns)
                if result < 0:
                    columns.row_count = 0  # in front of damage, or purged while they were read
                check(result)
            finally:
                while lib.as_segment_reader_doubt(reader, self._doubt):
                    self._on_doubt(string(self._doubt.text))

    @property
    def position(self) -> Position:
        """Where the next message begins."""
        with self._use() as reader:
            return Position(lib.as_segment_reader_position(reader))

    @property
    def checksum(self) -> RecordChecksum:
        """The checksum that the frames are compared with; never AUTO."""
        with self._use() as reader:
            return RecordChecksum(int(lib.as_segment_reader_checksum(reader)))


def read_files(
    files: SegmentFiles, recording_id: int, start: int, end: int, *, limit: int, **choice: Unpack[FolderChoice]
) -> Batches:
    """As `Folder.read`, of any segment files."""

    def batches() -> Iterator[pa.RecordBatch]:
        given = start
        try:
            while (batch := reader.next_batch()) is not None:
                yield batch
                given = reader.position
        except DataLossError:
            # The rows before the damage, of the batch that contains it.
            whole = min(reader.position, end)
            if whole > given:
                silent = FolderChoice(**{**choice, "on_doubt": lambda _text: None})
                try:
                    again = SegmentReader(files, recording_id, given, whole, limit=whole, **silent)
                except UsageError as gone:  # these bytes are gone, too
                    raise DataLossError(f"{gone}: it was purged or truncated while it was read") from None
                with again:
                    yield from iter(again.next_batch, None)
            raise

    reader = SegmentReader(files, recording_id, start, end, limit=limit, **choice)
    return Batches(reader.schema, batches(), reader.close)


def archive_is_live(path: str | os.PathLike[str]) -> bool:
    """True when a live archive owns the folder; False also if the folder is not an archive's."""
    try:
        with Folder(path) as folder:
            return folder.info().is_live
    except (StorageError, DataLossError):
        return False


def _numbers(array: np.ndarray[Any, Any]) -> Any:
    return ffi.cast("int64_t *", array.ctypes.data)
