"""What the directories of drivers and the folders of archives held at one moment: plain data, made by `reader`.

Texts of other processes in it are printable and short.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from aeron_spark.logs import LoggedError


class ServerState(StrEnum):
    """Whether a server lives."""

    ALIVE = "alive"
    ENDED = "ended"  # in order
    DEAD = "dead"  # its last heartbeat is too old
    UNREADABLE = "unreadable"  # nothing is there, or it is damaged


class Counted(NamedTuple):
    """A counter of a stream. A tuple, as each snapshot makes one for each counter."""

    type_id: int
    value: int
    stream_id: int
    session_id: int
    channel: str
    registration_id: int
    reference_id: int
    owner_id: int


class Recorded(NamedTuple):
    """The position of an active recording. `archive_id` is empty where its counter has none."""

    archive_id: str
    recording_id: int
    stream_id: int | None
    session_id: int
    channel: str
    position: int


class Beat(NamedTuple):
    """A client, and how long ago it last showed that it works."""

    client_id: int
    name: str
    age_s: float


class Lost(NamedTuple):
    """The gaps of one image since the driver's start."""

    stream_id: int
    session_id: int
    channel: str
    source: str
    gaps: int
    lost_bytes: int
    last_ms: int


#: Values by metric and second label, as `metrics.table` names them.
Values = Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What drivers and archives have. `trouble`: what is wrong with it. `left_out`: how many of what were too many."""

    path: str
    state: ServerState
    trouble: str = ""
    pid: int | None = None
    start_ms: int | None = None
    heartbeat_age_s: float | None = None
    free_bytes: int | None = None
    total_bytes: int | None = None
    errors: tuple[LoggedError, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverReading(Server):
    """One directory."""

    counted: tuple[Counted, ...] = ()
    recorded: tuple[Recorded, ...] = ()
    clients: tuple[Beat, ...] = ()
    losses: tuple[Lost, ...] = ()
    values: Values = field(default_factory=dict)
    archives: Mapping[str, Values] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A recording in a catalog. Its positions are None where they are not known. One without an end is `active`."""

    recording_id: int
    state: str
    stream_id: int
    session_id: int
    channel: str
    start_ms: int
    stop_ms: int | None
    start_position: int
    stop_position: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveReading(Server):
    """One folder. `full_s`: until its file system is full; None while that is not known, or it does not fill.

    `inode`, with its device, is equal where two names lead to one folder.
    """

    inode: tuple[int, int] | None = None
    archive_id: str = ""
    aeron_dir: str = ""
    full_s: float | None = None
    disk_bytes: int | None = None
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All directories. `at_s` is of a clock that only goes on, `time_ms` since 1970."""

    at_s: float
    time_ms: int
    drivers: tuple[DriverReading, ...] = ()
    archives: tuple[ArchiveReading, ...] = ()
