"""What an archive's catalog says about a recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aeron_spark._native.check import string
from aeron_spark.types import NULL_VALUE, Position, RecordingId, SessionId, StreamId


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
