"""Recordings whose segment files are in an object store (or in any folder that pyarrow's filesystems can access).

A store's folder holds segment files under their own names, `<recording>-<position>.rec`, and a copy of the archive's
catalog, `archive.catalog`, made when the newest of them was there. Usually the segments were detached and moved, so the
recordings begin later in the catalog than in the store. Here the segments define a recording: from the first one to the
last, up to the catalog's stop position where that lies in the last one. Segments behind the stop position are an error.

A read fetches windows of whole terms by parallel ranged requests. The code that reads segment files reads a window, with
the same checks (`as_segment_reader_open_bytes`). The next window is fetched while one is read. Two windows bound a task's
memory and disk, whatever the recording's size: a window is a mapped temporary file without a name.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
from pyarrow import fs as filesystems

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.check import c_string, check
from aeron_spark._native.handle import Handle
from aeron_spark.archive.cuts import TermCuts
from aeron_spark.archive.recordings import Recording, list_catalog
from aeron_spark.archive.segments import (
    READ_COLUMNS,
    Choice,
    Extent,
    OnMissing,
    RowsOf,
    SegmentFiles,
    SegmentReader,
    read_files,
)
from aeron_spark.archive.store_reads import read_range
from aeron_spark.batch import Batches, schema_of
from aeron_spark.errors import AeronError, DataLossError, StorageError, UsageError
from aeron_spark.types import FRAME_ALIGNMENT, NULL_VALUE, Position, RecordChecksum

__all__ = ["CATALOG", "ObjectFolder"]

CATALOG = "archive.catalog"
#: Bytes of a window where terms are smaller; a larger term is a window of its own.
WINDOW_BYTES = 32 << 20
#: Bytes of one ranged request, and the number of concurrent requests.
REQUEST_BYTES = 4 << 20
PARALLEL_REQUESTS = 8

_SEGMENT = re.compile(r"(\d{1,19})-(\d{1,19})\.rec", re.ASCII)
_MAX_MESSAGE_LENGTH = 16 << 20
_MAX_CATALOG_BYTES = (1 << 31) - 1
# Holds 16 frames of any length.
_CHECKSUM_SAMPLE_BYTES = 2 << 20

# Spec: 02 - length, version, flags, type, term offset, session, stream, term, reserved; padding is 0, data 1.
_FRAME_HEADER = struct.Struct("<iBBHiiiiq")
_FRAME_TYPES = (0, 1)
_BEGIN = 0x80

# What a reader of bytes needs of a recording.
_FACTS = (
    "recording_id",
    "start_position",
    "stop_position",
    "initial_term_id",
    "segment_file_length",
    "term_buffer_length",
    "mtu_length",
    "session_id",
    "stream_id",
)


@dataclass(frozen=True, slots=True)
class _Segments:
    """Existing segment files of a recording: the first one's position, and how many follow without a gap."""

    first: int
    last: int
    positions: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Window:
    """Messages that begin in [begin, end); reading them needs the bytes of [fetched_from, limit)."""

    begin: int
    end: int
    limit: int
    fetched_from: int


@dataclass(frozen=True, slots=True)
class _SegmentBytes:
    """`SegmentFiles` of one segment: `recording` is cut to it, `data` holds its bytes from `position` on."""

    path: str
    shown: Recording
    position: int
    data: mmap.mmap
    checksum: RecordChecksum

    def recording(self, recording_id: int) -> Recording:  # noqa: ARG002 - there is one
        return self.shown

    def has_file(self, name: str) -> bool:  # noqa: ARG002 - it was fetched
        return True

    def open_reader(self, recording_id: int, start: int, end: int, limit: int) -> tuple[Any, Handle | None]:  # noqa: ARG002
        shown, path, data = self.shown, c_string(self.path), ffi.from_buffer(self.data)
        recording = ffi.new("as_recording *", {name: getattr(shown, name) for name in _FACTS})
        given = ffi.new("as_segment_bytes *", [path, data, self.position, len(self.data), int(self.checksum)])
        out = ffi.new("as_segment_reader **")
        check(lib.as_segment_reader_open_bytes(recording, given, start, end, limit, out))
        return out[0], None


class ObjectFolder(TermCuts):
    """Read-only view of recordings in a folder of a filesystem, as of opening or the last `refresh()`.

    `filesystem` is one of pyarrow's and `path` a folder in it. DataLossError: no catalog, a foreign or damaged one, or
    segments that do not match it; StorageError: the store refuses or can't be reached. Writes nothing to the store.
    """

    has_segment_files = True

    def __init__(
        self, filesystem: filesystems.FileSystem, path: str, *, checksum: RecordChecksum = RecordChecksum.AUTO
    ) -> None:
        self._filesystem = filesystem
        self.path = path.rstrip("/")
        self._asked_checksum = checksum
        self._checksums: dict[int, RecordChecksum] = {}
        self._starts: dict[int, int] = {}
        self._recordings: dict[int, Recording] = {}
        self._segments: dict[int, _Segments] = {}
        self.refresh()

    def refresh(self) -> None:
        """List the segments and read the catalog's copy again; in this order, since the catalog comes after its segments."""
        found: dict[int, set[int]] = {}
        sizes: dict[tuple[int, int], int] = {}
        for info in self._list():
            name = _SEGMENT.fullmatch(info.base_name)
            if name is not None and info.type == filesystems.FileType.File and max(map(int, name.groups())) < 1 << 63:
                key = int(name[1]), int(name[2])
                found.setdefault(key[0], set()).add(key[1])
                sizes[key] = info.size
        recordings = list_catalog(f"{self.path}/{CATALOG}", self._read_catalog(), found)
        self._recordings, self._segments = {}, {}
        self._absent: list[Recording] = []
        for recording in recordings:
            positions = found.get(recording.recording_id)
            if not positions:
                self._absent.append(recording)
            else:
                self._check_segments(recording, positions, sizes)
                self._segments[recording.recording_id] = _Segments(min(positions), max(positions), frozenset(positions))
                self._recordings[recording.recording_id] = recording

    def recordings(self) -> list[Recording]:
        """Recordings of the catalog that have a segment here, by id; start and stop positions are the catalog's."""
        return list(self._recordings.values())

    def recording(self, recording_id: int) -> Recording:
        """One recording; UsageError if it has no segment here."""
        known = self._recordings.get(recording_id)
        if known is None:
            raise UsageError(
                f"recording {recording_id} has no segments in {self.path}; there are those of "
                f"{', '.join(map(str, sorted(self._recordings)[:20])) or 'none'}"
            )
        return known

    def _known_stop(self, recording: Recording) -> int:  # noqa: ARG002
        """Unknown: the existing segments bound the recording, not its catalog entry."""
        return NULL_VALUE

    def extent(self, recording_id: int) -> Extent:
        """From the first byte of the first segment to the stop position, or to the end of the last segment."""
        recording, there = self.recording(recording_id), self._segments[recording_id]
        stop, limit = recording.stop_position, _limit(recording, there)
        return Extent(
            start_position=Position(self._start(recording, there)),
            limit_position=Position(limit),
            is_active=stop is None or stop > limit,
        )

    def read(
        self,
        recording_id: int,
        start: int | None = None,
        end: int | None = None,
        *,
        limit: int | None = None,
        **choice: Unpack[Choice],
    ) -> Batches:
        """Messages that begin in [start, end); see `Folder.read`. `start` is a frame's begin."""
        schema = schema_of(choice.get("columns", READ_COLUMNS), is_recorded=True)
        recording = self.recording(recording_id)
        if start is None or end is None or limit is None:
            extent = self.extent(recording_id)
            start = extent.start_position if start is None else start
            limit = extent.limit_position if limit is None else limit
            end = limit if end is None else end
        # Inside a frame, the next message begin is found by a read from the term's begin on.
        is_inside = start < end and self._frame_at(recording, start) is None
        windows = self._windows(recording, start, end, limit, from_term=is_inside)

        def rows_of(files: SegmentFiles, begin: int, end: int, limit: int) -> Iterator[pa.RecordBatch]:
            return read_files(files, recording_id, begin, end, limit=limit, **choice)

        return Batches(schema, self._batches(recording, windows, rows_of))

    def read_windows(
        self, recording_id: int, start: int, end: int, *, limit: int, rows_of: RowsOf
    ) -> Iterator[pa.RecordBatch]:
        """Batches that `rows_of` makes of a range's windows, each with the bytes from a term's begin on.

        For readers that skip broken bytes. `rows_of` receives the window and the range's begin, end and limit in it.
        DataLossError: a segment is missing, see `segments_between`.
        """
        recording = self.recording(recording_id)
        return self._batches(recording, self._windows(recording, start, end, limit, from_term=True), rows_of)

    def segment_rows(
        self, recording_id: int, start: int, end: int, *, limit: int, rows_of: RowsOf, on_missing: OnMissing
    ) -> Iterator[pa.RecordBatch]:
        """Batches that `rows_of` makes of windows of the range; windows end at term boundaries."""
        for low, high, name, is_there in self.segments_between(recording_id, start, end):
            if is_there:
                bound = max(high, limit) if high == end else high
                yield from self.read_windows(recording_id, low, high, limit=bound, rows_of=rows_of)
            else:
                on_missing(low, high, name)

    def segments_between(self, recording_id: int, start: int, end: int) -> list[tuple[int, int, str, bool]]:
        """The range cut at segment begins: begin and end of each piece, the object's name, and whether it exists.

        Adjacent missing segments form one piece, with the name of the first.
        """
        recording, there = self.recording(recording_id), self._segments[recording_id]
        length = recording.segment_file_length
        found = []
        # Iterates over existing segments: a name may imply more segments than can be counted.
        for base in sorted(there.positions):
            if base + length > start and base < end:
                if base > start:
                    missing = self._name(recording_id, start, there, length)
                    found.append((start, base, missing, False))
                found.append(
                    (max(start, base), min(base + length, end), self._name(recording_id, base, there, length), True)
                )
                start = min(base + length, end)
        if start < end:
            found.append((start, end, self._name(recording_id, start, there, length), False))
        return found

    def _name(self, recording_id: int, position: int, there: _Segments, length: int) -> str:
        """The object that holds a position."""
        return f"{self.path}/{recording_id}-{position - (position - there.first) % length}.rec"

    def without_segments(self) -> list[Recording]:
        """Recordings of the catalog that have no segment here, by id: never moved here, or missed."""
        return list(self._absent)

    def __repr__(self) -> str:
        return f"<ObjectFolder {self._filesystem.type_name} {self.path!r}>"

    def begins_message(self, recording_id: int, position: int) -> bool:
        """Whether the header of a message's first frame is at `position`."""
        flags = self._frame_at(self.recording(recording_id), position)
        return flags is not None and bool(flags & _BEGIN)

    # -- windows ---------------------------------------------------------------------------------------------------

    def _windows(self, recording: Recording, start: int, end: int, limit: int, *, from_term: bool) -> Iterator[_Window]:
        """Whole terms, except the first one's begin and the last one's end.

        `from_term`: the first term is fetched whole.
        """
        term_length, segment_length = recording.term_buffer_length, recording.segment_file_length
        span = max(term_length, WINDOW_BYTES - WINDOW_BYTES % term_length)
        largest = min(term_length // 8, _MAX_MESSAGE_LENGTH)
        fragments = largest // max(recording.mtu_length - FRAME_ALIGNMENT, FRAME_ALIGNMENT) + 1
        largest += 2 * FRAME_ALIGNMENT * fragments
        first = self._segments[recording.recording_id].first
        begin = fetched_from = start
        if from_term:
            fetched_from = max(
                start - start % term_length, self._start(recording, self._segments[recording.recording_id])
            )
        while begin < end:
            segment_end = begin - (begin - first) % segment_length + segment_length
            stop = min(begin - begin % term_length + span, segment_end)
            if stop < end:
                yield _Window(begin, stop, stop, fetched_from)
            else:
                term_end = -(-end // term_length) * term_length
                reach = -(-(end + largest) // FRAME_ALIGNMENT) * FRAME_ALIGNMENT
                yield _Window(begin, end, min(limit, term_end, reach), fetched_from)
            begin = fetched_from = stop

    def _batches(
        self,
        recording: Recording,
        windows: Iterator[_Window],
        rows_of: RowsOf,
    ) -> Iterator[pa.RecordBatch]:
        window = next(windows, None)
        if window is None:
            return
        checksum = self._checksum(recording)
        with ThreadPoolExecutor(PARALLEL_REQUESTS) as requests, ThreadPoolExecutor(1) as ahead:

            def fetch(window: _Window) -> Future[_SegmentBytes]:
                return ahead.submit(self._fetch, requests, recording, window.fetched_from, window.limit, checksum)

            pending = fetch(window)
            while window is not None:
                following = next(windows, None)
                fetched = pending.result()
                if following is not None:
                    pending = fetch(following)
                yield from rows_of(fetched, window.begin, window.end, window.limit)
                window = following

    def _fetch(
        self, requests: ThreadPoolExecutor, recording: Recording, begin: int, end: int, checksum: RecordChecksum
    ) -> _SegmentBytes:
        """[begin, end) of one of the recording's segments."""
        there = self._segments[recording.recording_id]
        segment = begin - (begin - there.first) % recording.segment_file_length
        name = f"{recording.recording_id}-{segment}.rec"
        if segment not in there.positions:
            raise DataLossError(
                f"segment {self.path}/{name} is missing: recording {recording.recording_id} is wanted from position {begin}; "
                f"put the file back, or read ranges without it",
                position=begin,
            )
        start = self._start(recording, there) if segment == there.first else segment
        segment_end = segment + recording.segment_file_length
        stop = min(_limit(recording, there), segment_end)
        # One more header, which shows the reader whether the recording continues past its stop position.
        behind = min(end + FRAME_ALIGNMENT, segment_end)
        data = self._copied(requests, name, range(begin - segment, behind - segment, REQUEST_BYTES))
        shown = replace(recording, start_position=Position(start), stop_position=Position(stop))
        return _SegmentBytes(self.path, shown, begin, data, checksum)

    def _copied(self, requests: ThreadPoolExecutor, name: str, offsets: range) -> mmap.mmap:
        """[offsets.start, offsets.stop) of an object, by one request per offset."""
        length = len(range(offsets.start, offsets.stop))
        with self._open(name) as source, _on_disk() as folder, tempfile.TemporaryFile(dir=folder) as file:
            # Without it a full disk would take a part of what is written, and say nothing.
            os.posix_fallocate(file.fileno(), 0, length)

            def copy(offset: int) -> None:
                data = self._read_at(source, name, min(offsets.step, offsets.stop - offset), offset)
                os.pwrite(file.fileno(), data, offset - offsets.start)

            for _ in requests.map(copy, offsets):
                pass
            return mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ)

    # -- facts of a recording --------------------------------------------------------------------------------------

    def _start(self, recording: Recording, there: _Segments) -> int:
        """First frame of the first segment: only the first segment of a recording may begin with a hole."""
        known = self._starts.get(recording.recording_id)
        if known is None or not there.first <= known < there.first + recording.segment_file_length:
            known = recording.start_position
            if not there.first <= known < there.first + recording.term_buffer_length:
                known = there.first + self._hole(recording, there.first)
            self._starts[recording.recording_id] = known
        return known

    def _hole(self, recording: Recording, position: int) -> int:
        name = f"{recording.recording_id}-{position}.rec"
        length = FRAME_ALIGNMENT
        offset = 0
        while offset < recording.term_buffer_length:
            with self._open(name) as source:
                data = np.frombuffer(self._read_at(source, name, length, offset), np.uint8)
            used = np.flatnonzero(data)
            if used.size:
                found = offset + int(used[0])
                return found - found % FRAME_ALIGNMENT
            offset += length
            length = min(REQUEST_BYTES, recording.term_buffer_length - offset)
        raise DataLossError(
            f"segment {self.path}/{name} has no frame in its first term: put back the file the archive wrote"
        )

    def _frame_at(self, recording: Recording, position: int) -> int | None:
        """Flags of the frame whose header is at `position`; None unless all of its known fields match a header."""
        there = self._segments[recording.recording_id]
        if position % FRAME_ALIGNMENT or position < there.first:
            return None
        segment = position - (position - there.first) % recording.segment_file_length
        if segment not in there.positions:
            return None
        name = f"{recording.recording_id}-{segment}.rec"
        with self._open(name) as source:
            data = self._read_at(source, name, _FRAME_HEADER.size, position - segment)
        length, _, flags, kind, offset, _, stream_id, term_id, _ = _FRAME_HEADER.unpack(data)
        is_frame = (
            length >= _FRAME_HEADER.size
            and kind in _FRAME_TYPES
            and offset == recording.term_offset(position)
            and term_id == recording.term_id(position)
            and stream_id == recording.stream_id
        )
        return flags if is_frame else None

    def _checksum(self, recording: Recording) -> RecordChecksum:
        """Checksum that the frames carry, detected from the first existing ones."""
        if self._asked_checksum != RecordChecksum.AUTO:
            return self._asked_checksum
        recording_id = recording.recording_id
        if recording_id not in self._checksums:
            extent = self.extent(recording_id)
            begin = extent.start_position
            first_end = self._segments[recording_id].first + recording.segment_file_length
            end = min(begin + _CHECKSUM_SAMPLE_BYTES, first_end, extent.limit_position)
            with ThreadPoolExecutor(1) as requests:
                sample = self._fetch(requests, recording, begin, end, RecordChecksum.AUTO)
            with SegmentReader(sample, recording_id, begin, end, limit=end, columns=("position",)) as reader:
                self._checksums[recording_id] = reader.checksum
        return self._checksums[recording_id]

    def _check_segments(self, recording: Recording, positions: set[int], sizes: dict[tuple[int, int], int]) -> None:
        recording_id, length, stop = recording.recording_id, recording.segment_file_length, recording.stop_position
        first = min(positions)
        for position in sorted(positions):
            name = f"{self.path}/{recording_id}-{position}.rec"
            if (position - first) % length or position % recording.term_buffer_length:
                raise DataLossError(
                    f"{name} is no segment of recording {recording_id} beside the one at {first}: segments are {length} bytes "
                    f"long; the catalog beside them is another archive's, or the file was renamed"
                )
            if sizes[recording_id, position] != length:
                raise DataLossError(
                    f"{name} is {sizes[recording_id, position]} bytes long, a segment of recording {recording_id} is {length}: "
                    f"it was cut, or the catalog beside it is another archive's; put the whole file there"
                )
            if stop is not None and position > stop:
                raise DataLossError(
                    f"{name} lies behind the stop position {stop} of recording {recording_id}: it was truncated, then delete "
                    f"this object; or it was extended, then copy the archive's {CATALOG} there again"
                )

    # -- the store -------------------------------------------------------------------------------------------------

    def _list(self) -> list[Any]:
        try:
            found: list[Any] = self._filesystem.get_file_info(filesystems.FileSelector(self.path))
        except OSError as error:
            raise _storage_error(self.path, error) from None
        return found

    def _open(self, name: str) -> Any:
        try:
            return self._filesystem.open_input_file(f"{self.path}/{name}")
        except FileNotFoundError:
            raise DataLossError(
                f"{self.path}/{name} does not exist (any more): put the file back, or read ranges without it"
            ) from None
        except OSError as error:
            raise _storage_error(f"{self.path}/{name}", error) from None

    def _read_at(self, source: Any, name: str, length: int, offset: int) -> memoryview:
        try:
            data = read_range(source, offset, length)
        except OSError as error:
            raise _storage_error(f"{self.path}/{name}", error) from None
        if len(data) != length:
            raise DataLossError(
                f"object {self.path}/{name} gave {len(data)} of {length} bytes at offset {offset}: it was cut or replaced "
                f"while it was read; put the whole file back"
            )
        return data

    def _read_catalog(self) -> memoryview:
        try:
            with self._filesystem.open_input_file(f"{self.path}/{CATALOG}") as source:
                size = source.size()
                if size > _MAX_CATALOG_BYTES:
                    raise DataLossError(
                        f"{self.path}/{CATALOG} has {size} bytes, no catalog has: put the archive's there"
                    )
                return self._read_at(source, CATALOG, size, 0)
        except FileNotFoundError:
            raise DataLossError(
                f"{self.path} is no folder of segments: it has no {CATALOG}; copy the archive's beside the segments"
            ) from None
        except StorageError:
            raise
        except OSError as error:
            raise _storage_error(f"{self.path}/{CATALOG}", error) from None


def _limit(recording: Recording, there: _Segments) -> int:
    """The recording's end in this store."""
    end = there.last + recording.segment_file_length
    return end if recording.stop_position is None else min(recording.stop_position, end)


def _storage_error(path: str, error: OSError) -> StorageError:
    return StorageError(
        f"object store, {path}: {error}; see that it answers, and that keys, region and endpoint are right. To read again "
        f"loses nothing",
        code=error.errno or 0,
    )


@contextmanager
def _on_disk() -> Iterator[str]:
    """The folder for temporary files; an error there names it, not the store."""
    folder = _scratch() or tempfile.gettempdir()
    try:
        yield folder
    except AeronError:
        raise
    except OSError as error:
        raise StorageError(
            f"temporary file in {folder}: {error}; windows of {WINDOW_BYTES >> 20} MiB, or of a longer term, need room there: "
            f"make some, or name another folder by TMPDIR (in Spark: spark.local.dir)",
            code=error.errno or 0,
        ) from None


def _scratch() -> str | None:
    """Spark's folder for an executor's local files, else the system's temporary folder."""
    return next(filter(os.path.isdir, os.environ.get("SPARK_LOCAL_DIRS", "").split(",")), None)
