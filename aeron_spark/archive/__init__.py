"""Python API of the Archive: control sessions, servers, streams over both, and direct reads of an archive's folder."""

from aeron_spark.archive.client import Archive, ArchiveState
from aeron_spark.archive.credentials import UserPassword
from aeron_spark.archive.merge import MergeState, ReplayMerge
from aeron_spark.archive.persistent import (
    PersistentFailure,
    PersistentState,
    PersistentSubscription,
    StartPosition,
)
from aeron_spark.archive.recording_events import (
    RecordingEvent,
    RecordingEventKind,
    RecordingEvents,
    RecordingPosition,
    find_recording_position,
)

__all__ = [
    "Archive",
    "ArchiveState",
    "MergeState",
    "PersistentFailure",
    "PersistentState",
    "PersistentSubscription",
    "RecordingEvent",
    "RecordingEventKind",
    "RecordingEvents",
    "RecordingPosition",
    "ReplayMerge",
    "StartPosition",
    "UserPassword",
    "find_recording_position",
]
