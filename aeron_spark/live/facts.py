"""What the servers do, as views draw it: plain data, made by `compare` from two snapshots.

A rate is a second's. It is None where there is nothing to compare with, or the figure went back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from aeron_spark.live.snapshot import ServerState


class Flow(StrEnum):
    """How a stream goes, the worst first."""

    BLOCKED = "blocked"  # somebody may not go on
    SLOW = "slow"  # nearly
    NO_READER = "no reader"
    OK = "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """One publisher, sender, receiver or subscriber of a stream.

    `after` is the place of the party that it gets its data from, `behind` its distance to it, `window` how far it may go on.
    """

    role: str
    directory: str
    channel: str
    registration_id: int
    client_id: int
    client: str
    after: int | None
    position: int
    rate: float | None
    behind: int | None
    window: int | None

    @property
    def name(self) -> str:
        """What a person calls it."""
        return f"{self.role} {self.registration_id}{f' ({self.client})' if self.client else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A publication with its images, or an image whose publication is not in these directories.

    `behind`: bytes between the head of the stream and its slowest subscriber. Where `flow` is slow or blocked, `holder` holds
    back `held`: names of parties.
    """

    key: str
    directory: str
    stream_id: int
    session_id: int
    channel: str
    position: int
    rate: float | None
    behind: int | None
    flow: Flow
    holder: str
    held: str
    naks: int
    back_pressure: int
    recordings: tuple[str, ...]
    parties: tuple[Party, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One of a catalog, of an active archive, or of both. `stream`: the key of the stream that is recorded, if it is known."""

    key: str
    archive: str
    archive_id: str
    recording_id: int
    state: str
    stream_id: int | None
    session_id: int
    channel: str
    start_ms: int | None
    stop_ms: int | None
    start_position: int | None
    position: int | None
    length: int | None
    rate: float | None
    behind: int | None
    stream: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFact:
    """A driver (its directory) or an archive (its folder, or where only its counters are known, its driver's directory)."""

    key: str
    kind: str
    path: str
    archive_id: str
    state: ServerState
    trouble: str
    pid: int | None
    up_s: float | None
    heartbeat_age_s: float | None
    free_bytes: int | None
    total_bytes: int | None
    full_s: float | None
    disk_bytes: int | None
    in_rate: float | None
    out_rate: float | None
    errors: int
    new_errors: int
    stalls: int
    recordings: int | None
    replays: int | None
    sessions: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One client of a driver; `behind` of its slowest subscriber."""

    key: str
    directory: str
    client_id: int
    name: str
    age_s: float
    publications: int
    subscribers: int
    behind: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """A distinct error, and how often it came since the snapshot before."""

    key: str
    module: str
    directory: str
    level: str
    message: str
    count: int
    new: int
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The gaps of one image, and what was lost since the snapshot before; most came again."""

    key: str
    directory: str
    stream_id: int
    session_id: int
    channel: str
    source: str
    gaps: int
    lost_bytes: int
    new_bytes: int
    last_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known at a moment. `seconds` is what rates are over; None in the first snapshot.

    `left_out`: how many counters, recordings, errors or losses were too many, by these names.
    """

    time_ms: int
    seconds: float | None
    streams: tuple[Stream, ...] = ()
    recordings: tuple[Recording, ...] = ()
    servers: tuple[ServerFact, ...] = ()
    clients: tuple[Client, ...] = ()
    errors: tuple[Error, ...] = ()
    losses: tuple[Loss, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
