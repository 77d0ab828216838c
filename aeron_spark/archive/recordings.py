"""A recording's descriptor in an archive's catalog."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.callback import Callbacks
from aeron_spark._native.check import c_string, error, string
from aeron_spark.types import NULL_VALUE, Position, RecordingId, SessionId, StreamId


class RecordingState(IntEnum):
    """State of a catalog record."""

    INVALID = lib.AS_RECORDING_INVALID
    VALID = lib.AS_RECORDING_VALID
    DELETED = lib.AS_RECORDING_DELETED


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A recording as the catalog describes it: positions and lengths in bytes, timestamps in ms since the epoch.

    `stop_position` and `stop_timestamp_ms` are None while it is being recorded.
    """

    recording_id: RecordingId
    start_timestamp_ms: int
    stop_timestamp_ms: int | None
    start_position: Position
    stop_position: Position | None
    initial_term_id: int
    segment_file_length: int
    term_buffer_length: int
    mtu_length: int
    session_id: SessionId
    stream_id: StreamId
    stripped_channel: str
    original_channel: str
    source_identity: str

    def segment_base(self, position: int) -> Position:
        """Position of the first byte of the segment file that holds `position`, at or after the recording's start."""
        lengths = self.term_buffer_length, self.segment_file_length
        return Position(lib.as_segment_base_position(self.start_position, position, *lengths))

    def segment_file(self, position: int) -> str:
        """Name of the segment file that holds `position`."""
        return f"{self.recording_id}-{self.segment_base(position)}.rec"

    def detachable(self, end: int | None = None) -> range:
        """Positions that can become the recording's start by detaching or purging the segments before them.

        `end`: the recording's end, by default its stop position; required for an active recording, else UsageError.
        """
        end = self.stop_position if end is None else end
        if end is None:
            raise error(lib.AS_E_USAGE, text=f"recording {self.recording_id} is active: give its position", code=0)
        lengths = self.term_buffer_length, self.segment_file_length
        first = lib.as_segment_first_detachable(self.start_position, *lengths)
        last = lib.as_segment_last_detachable(self.start_position, end, *lengths)
        return range(first, last + 1, self.segment_file_length)

    def term_id(self, position: int) -> int:
        """Term id of the bytes at a position."""
        return int(lib.as_position_term_id(position, self.term_buffer_length, self.initial_term_id))

    def term_offset(self, position: int) -> int:
        """Offset of a position in its term."""
        return int(lib.as_position_term_offset(position, self.term_buffer_length))


def is_ledger(recording: Recording) -> bool:
    """Whether a recording is the ledger of exactly-once writes, or a part of it; no policy deletes it."""
    return bool(lib.as_is_ledger(recording.stream_id, c_string(recording.original_channel)))


def list_catalog(name: str, catalog: bytes | memoryview, with_segments: Collection[int]) -> list[Recording]:
    """The valid recordings of a catalog's bytes, by id. DataLossError, which has `name`: a foreign or damaged one.

    `with_segments`: recordings of which there are segments, which show whether the catalog's end was cut off.
    """
    found: list[Recording] = []
    callbacks = Callbacks(on_recording=lambda raw: found.append(recording_from(raw)))
    callbacks.check(
        lib.as_catalog_list(
            c_string(name),
            ffi.from_buffer(catalog),
            len(catalog),
            ffi.new("int64_t[]", list(with_segments)),
            len(with_segments),
            lib.asp_on_recording,
            callbacks.context,
        )
    )
    return found


def recording_from(raw: Any) -> Recording:
    """Copy a C `as_recording`."""
    stop_timestamp, stop_position = raw.stop_timestamp_ms, raw.stop_position
    return Recording(
        recording_id=RecordingId(raw.recording_id),
        start_timestamp_ms=raw.start_timestamp_ms,
        stop_timestamp_ms=None if stop_timestamp == NULL_VALUE else stop_timestamp,
        start_position=Position(raw.start_position),
        stop_position=None if stop_position == NULL_VALUE else Position(stop_position),
        initial_term_id=raw.initial_term_id,
        segment_file_length=raw.segment_file_length,
        term_buffer_length=raw.term_buffer_length,
        mtu_length=raw.mtu_length,
        session_id=SessionId(raw.session_id),
        stream_id=StreamId(raw.stream_id),
        stripped_channel=string(raw.stripped_channel),
        original_channel=string(raw.original_channel),
        source_identity=string(raw.source_identity),
    )
