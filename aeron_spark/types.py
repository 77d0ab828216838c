"""Identifiers, enumerations and values shared by the modules of the package."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

# Byte position in a stream, counted from the start of its first term; frames are aligned to 32 bytes.
Position = NewType("Position", int)
FRAME_ALIGNMENT = 32
SessionId = NewType("SessionId", int)
StreamId = NewType("StreamId", int)
RecordingId = NewType("RecordingId", int)
CounterId = NewType("CounterId", int)
RegistrationId = NewType("RegistrationId", int)

# No id, no position, no timestamp.
NULL_VALUE = -1


class Outcome(IntEnum):
    """What an offer gives instead of a position; all are negative."""

    NOT_CONNECTED = -1
    BACK_PRESSURED = -2
    ADMIN_ACTION = -3
    CLOSED = -4
    MAX_POSITION_EXCEEDED = -5
    ERROR = -6


class Action(IntEnum):
    """What a poll does after a handler call; a handler that returns None continues."""

    ABORT = 1
    BREAK = 2
    COMMIT = 3
    CONTINUE = 4


class SourceLocation(IntEnum):
    """Where a recorded stream is published, as seen by the archive."""

    LOCAL = 0
    REMOTE = 1


class RecordingSignal(IntEnum):
    """What happened to a recording."""

    START = 0
    STOP = 1
    EXTEND = 2
    REPLICATE = 3
    MERGE = 4
    SYNC = 5
    DELETE = 6
    REPLICATE_END = 7


class ArchiveErrorCode(IntEnum):
    """`code` of a PeerError that an archive answered with."""

    GENERIC = 0
    ACTIVE_LISTING = 1
    ACTIVE_RECORDING = 2
    ACTIVE_SUBSCRIPTION = 3
    UNKNOWN_SUBSCRIPTION = 4
    UNKNOWN_RECORDING = 5
    UNKNOWN_REPLAY = 6
    MAX_REPLAYS = 7
    MAX_RECORDINGS = 8
    INVALID_EXTENSION = 9
    AUTHENTICATION_REJECTED = 10
    STORAGE_SPACE = 11
    UNKNOWN_REPLICATION = 12
    UNAUTHORISED_ACTION = 13
    REPLICATION_CONNECTION_FAILURE = 14
    EMPTY_RECORDING = 15
    INVALID_POSITION = 16


class RecordChecksum(IntEnum):
    """Checksum that an archive stores in the session id field of recorded frames."""

    AUTO = 0
    NONE = 1
    CRC_32 = 2
    CRC_32C = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Header of a received message.

    `position` is the aligned end of its last fragment, the other fields are those of its first frame.
    """

    position: Position
    reserved_value: int
    session_id: SessionId
    stream_id: StreamId
    term_id: int
    term_offset: int
    flags: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageInfo:
    """Identity of one publisher's stream as a subscriber sees it. Lengths are bytes."""

    source_identity: str
    correlation_id: int
    join_position: Position
    session_id: SessionId
    stream_id: StreamId
    initial_term_id: int
    term_length: int
    mtu_length: int
    subscriber_position_id: CounterId


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A recording signal sent to a control session."""

    control_session_id: int
    correlation_id: int
    recording_id: RecordingId
    subscription_id: int
    position: Position
    signal: RecordingSignal | int
