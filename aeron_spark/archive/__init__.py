"""Python API of the Archive: control sessions, servers, streams over both, and direct reads of an archive's folder.

The names are loaded at their first use: Spark plans each query in a new process, mostly without a session.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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

_MODULES = {
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
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
