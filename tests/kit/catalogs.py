"""Catalogs of recordings that no archive has made."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from aeron_spark.archive.recordings import Recording

__all__ = ["catalog_of"]

# Spec: 06 §3 - catalog header, record header and record body; all little-endian.
_CATALOG_VERSION = 0x00030100
_RECORD_ALIGNMENT = 64
_VALID = 1
_NONE = -1
_CATALOG_HEADER = struct.Struct("<iiqi12x")
_RECORD_HEADER = struct.Struct("<iii20x")
_RECORD_BODY = struct.Struct("<qqqqqqqiiiiii")


def catalog_of(recordings: Sequence[Recording]) -> bytes:
    """A catalog of recordings, in id order, as an archive would write it."""
    header = _CATALOG_HEADER.pack(
        _CATALOG_VERSION, _CATALOG_HEADER.size, recordings[-1].recording_id + 1, _RECORD_ALIGNMENT
    )
    return header + b"".join(map(_record_of, recordings))


def _record_of(recording: Recording) -> bytes:
    strings = b"".join(
        struct.pack("<I", len(text)) + text
        for text in (
            value.encode("utf-8", "surrogateescape")
            for value in (recording.stripped_channel, recording.original_channel, recording.source_identity)
        )
    )
    body = (
        _RECORD_BODY.pack(
            0,
            0,
            recording.recording_id,
            recording.start_timestamp_ms,
            _NONE if recording.stop_timestamp_ms is None else recording.stop_timestamp_ms,
            recording.start_position,
            _NONE if recording.stop_position is None else recording.stop_position,
            recording.initial_term_id,
            recording.segment_file_length,
            recording.term_buffer_length,
            recording.mtu_length,
            recording.session_id,
            recording.stream_id,
        )
        + strings
    )
    length = -(-(_RECORD_HEADER.size + len(body)) // _RECORD_ALIGNMENT) * _RECORD_ALIGNMENT
    return (_RECORD_HEADER.pack(length - _RECORD_HEADER.size, _VALID, 0) + body).ljust(length, b"\0")
