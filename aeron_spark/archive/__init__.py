"""Python API of the Archive: control sessions, servers, streams over both, and direct reads of an archive's folder.

The names are loaded at their first use: a Spark session's first query waits for what its planner loads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aeron_spark.later import loaded_later

if TYPE_CHECKING:
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

__getattr__, __dir__ = loaded_later(
    __name__,
    {
        "client": ("Archive", "ArchiveState"),
        "credentials": ("UserPassword",),
        "merge": ("MergeState", "ReplayMerge"),
        "persistent": ("PersistentFailure", "PersistentState", "PersistentSubscription", "StartPosition"),
        "recording_events": (
            "RecordingEvent",
            "RecordingEventKind",
            "RecordingEvents",
            "RecordingPosition",
            "find_recording_position",
        ),
    },
)
