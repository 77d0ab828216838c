"""`RecordingSource`: the interface that readers of recordings use, for folders, object stores and remote archives.

`Folder` reads an archive's folder on a local path, `ObjectFolder` its segment files in an object store, `RemoteArchive`
replays of an archive. Each returns the same rows for the same range. Callers check a source's capabilities (`is_local`,
`has_segment_files`), not its class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, Unpack

import numpy as np
import pyarrow as pa

from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.segments import (
    Choice,
    Extent,
    OnMissing,
    RecordingColumns,
    RowsOf,
)
from aeron_spark.archive.times import TimeIndexInfo, TimePosition, TimeReach
from aeron_spark.batch import Batches
from aeron_spark.types import Position

__all__ = ["RecordingSource"]


class RecordingSource(Protocol):
    """Read-only view of an archive's recordings, as of opening or the last `refresh()`."""

    @property
    def path(self) -> str | Path:
        """Name of the source in messages."""

    @property
    def is_local(self) -> bool:
        """Segment files and time index are on a local path: the C library reads and searches them in place."""

    @property
    def has_segment_files(self) -> bool:
        """`segment_rows` works: a reader can skip broken data in a segment file."""

    def close(self) -> None:
        """Close it; repeated calls are harmless."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    def refresh(self) -> None:
        """List the recordings again."""

    # -- list and extent -------------------------------------------------------------------------------------------

    def recordings(self) -> list[Recording]:
        """Every readable recording, by id."""

    def recording(self, recording_id: int) -> Recording:
        """One recording; UsageError for an unknown id."""

    def hidden_count(self) -> int:
        """Number of recordings that are marked INVALID and not listed."""

    def without_segments(self) -> list[Recording]:
        """Recordings of the catalog that are not listed because the source has none of their segments."""

    def columns(self) -> RecordingColumns:
        """The list as arrays, for planning over very many recordings."""

    def recording_at(self, index: int) -> Recording:
        """The recording at an index of the last `columns()`."""

    def extent(self, recording_id: int) -> Extent:
        """The range of a recording that can be read now."""

    def extents(self, recording_ids: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Start and limit positions of recordings, as `extent` returns them one by one."""

    def fingerprints(
        self, recording_ids: np.ndarray[Any, Any], positions: np.ndarray[Any, Any]
    ) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Fingerprint of the frame before each position; 0 where the source has none."""

    # -- boundaries ------------------------------------------------------------------------------------------------

    def advance(
        self,
        recording_id: int,
        start: int,
        limit: int,
        *,
        max_bytes: int | None = None,
        max_messages: int | None = None,
    ) -> Position:
        """A message boundary in [start, limit] within the bounds; advances by one whole message at least, if any."""

    def align(self, recording_id: int, position: int, limit: int, *, back: bool = False) -> Position:
        """Message boundary at or after `position`, or with `back` at or before it."""

    def split(self, recording_id: int, start: int, end: int, target_bytes: int) -> list[Position]:
        """Starts of ranges of about `target_bytes` that together cover [start, end)."""

    # -- ranges ----------------------------------------------------------------------------------------------------

    def read(
        self,
        recording_id: int,
        start: int | None = None,
        end: int | None = None,
        *,
        limit: int | None = None,
        **choice: Unpack[Choice],
    ) -> Batches:
        """Messages that begin in [start, end), in position order."""

    def segment_rows(
        self, recording_id: int, start: int, end: int, *, limit: int, rows_of: RowsOf, on_missing: OnMissing
    ) -> Iterator[pa.RecordBatch]:
        """Batches that `rows_of` makes of the range's parts; reports gaps to `on_missing`.

        UsageError where `has_segment_files` is False.
        """

    # -- by time ---------------------------------------------------------------------------------------------------

    def position_at(self, recording_id: int, when: datetime | int) -> TimePosition:
        """Message boundary at or before the first message at or after `when`, by the time index."""

    def position_at_reserved(
        self, recording_id: int, when: datetime | int, *, unit: str = "ns", skew: float = 1.0
    ) -> Position:
        """First message whose reserved value, a time, is at or after `when`."""

    def times_at(self, recording_id: int, positions: Sequence[int] | pa.Array) -> pa.TimestampArray:
        """When the bytes at `positions` were written, by the time index or the modification times of segments."""

    def index_times_at(self, recording_id: int, positions: Sequence[int] | pa.Array) -> pa.TimestampArray:
        """When the bytes at `positions` were written, null where the time index has no entry."""

    def time_reach(self, recording_id: int) -> TimeReach:
        """How far the messages of an active recording have times of the time index."""

    def time_index(self, recording_id: int) -> TimeIndexInfo:
        """Summary of the recording's time index."""
