"""Retention: selects segments and recordings for deletion, and has a running archive delete them.

Deletes whole segments only, from a recording's start on, and never the segment that an active recording is written to.
A stopped recording is purged when all of its segments are selected. The oldest writes are deleted first. The ledger of
exactly-once writes is kept whole: without it, the batches it recorded no longer count.

The time of a segment's last write comes from the first of these sources that has it: the archive's time index at the
segment's end; the catalog, for the last segment of a stopped recording; the file's modification time. Sizes are disk
usage, because segments are sparse.

`plan` is pure, and the archive's own policy (`aeron.spark.archive.retain.*`) plans by the same function. `apply` sends
requests to the archive (`purge_segments`, `purge_recording`), which decides: a replay that reads a segment blocks its
deletion, and that of the later segments of the recording. A recording that was extended after the plan was made keeps
everything; the next plan decides.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.check import check
from aeron_spark.archive.recordings import Recording, is_ledger
from aeron_spark.archive.segment_files import segment_base, segment_files
from aeron_spark.archive.segments import Folder
from aeron_spark.errors import AeronError, PeerError, UsageError

if TYPE_CHECKING:
    from aeron_spark.archive.client import Archive

__all__ = ["Action", "Kept", "Policy", "Segment", "apply", "inventory", "plan"]

_EXTENDED = "it was extended after the plan was made; the next run decides"
_IN_REPLAY = re.compile(r"replay in progress|active replay")
_REPLAY = re.compile(r"replay in progress\b.*?upperBound=(\d+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Bounds of what is kept; None: no bound. At least one bound is given.

    `older_than_s`: deletes segments written longer ago. `max_bytes`: deletes the oldest until the folder uses no more.
    `keep_recordings`: keeps this many recordings of each channel and stream, the newest; active ones are always kept.
    """

    older_than_s: float | None = None
    max_bytes: int | None = None
    keep_recordings: int | None = None

    def __post_init__(self) -> None:
        bounds = (self.older_than_s, self.max_bytes, self.keep_recordings)
        if all(bound is None for bound in bounds):
            raise UsageError("a retention policy needs a bound: --older-than, --max-bytes or --keep-recordings")
        if any(bound is not None and bound < 0 for bound in bounds):
            raise UsageError(f"a retention policy's bounds are not negative: {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A segment file of a recording: its bytes on disk, and its last write time (ms since the epoch)."""

    base: int
    bytes: int
    written_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A recording and its segments, ascending; `limit` is its current end."""

    recording: Recording
    limit: int
    segments: tuple[Segment, ...]

    @property
    def is_active(self) -> bool:
        """True while it is being recorded."""
        return self.recording.stop_position is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One action: make a recording start at `new_start`, or with None purge it whole.

    `committed`: the number of batches of exactly-once writes that lose rows by it; None where the ledger can't be read.
    `stopped_ms`: when the recording had stopped, by the plan; None: it was active.
    """

    recording_id: int
    new_start: int | None
    segments: int
    bytes: int
    reason: str
    committed: int | None = 0
    stopped_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Result of an action: `held` names what blocked some or all of it, "" if nothing did."""

    action: Action
    deleted: int
    held: str


def plan(policy: Policy, kept: Iterable[Kept], *, now_ms: int) -> list[Action]:
    """Actions to take, recording by recording; by the rules of the archive's own policy."""
    recordings = list(kept)
    rows, segments = ffi.new("as_retention_recording[]", len(recordings)), []
    streams: dict[tuple[str, int], int] = {}
    for row, one in zip(rows, recordings, strict=True):
        recording = one.recording
        of_one = ffi.new(
            "as_retention_segment[]", [(segment.base, segment.bytes, segment.written_ms) for segment in one.segments]
        )
        segments.append(of_one)  # keeps it alive
        row.recording_id = recording.recording_id
        row.stream = streams.setdefault((recording.stripped_channel, recording.stream_id), len(streams))
        row.is_active = one.is_active
        row.is_kept = is_ledger(recording)
        row.stop_timestamp_ms = _or_null(recording.stop_timestamp_ms)
        row.last_base = segment_base(recording, max(one.limit, recording.start_position))
        row.segments, row.segment_count = of_one, len(one.segments)
    bounds = ffi.new("as_retention_policy *")
    bounds.older_than_ms = _or_null(None if policy.older_than_s is None else round(policy.older_than_s * 1000))
    bounds.max_bytes, bounds.keep_recordings = _or_null(policy.max_bytes), _or_null(policy.keep_recordings)
    check(lib.as_retention_plan(bounds, now_ms, rows, len(recordings)))
    return [
        _action(policy, one, row)
        for one, row in zip(recordings, rows, strict=True)
        if row.is_purged or row.new_start != lib.AS_NULL_VALUE
    ]


def _or_null(value: int | None) -> int:
    return lib.AS_NULL_VALUE if value is None else value


def _action(policy: Policy, one: Kept, row: Any) -> Action:
    reasons = {
        lib.AS_RETENTION_TOO_OLD: f"written more than {policy.older_than_s or 0:g} s ago",
        lib.AS_RETENTION_TOO_BIG: f"more than {policy.max_bytes or 0:,} bytes are used",
        lib.AS_RETENTION_TOO_MANY: f"more than {policy.keep_recordings} recordings of its channel and stream",
    }
    return Action(
        recording_id=one.recording.recording_id,
        new_start=None if row.is_purged else int(row.new_start),
        segments=int(row.goes),
        bytes=sum(segment.bytes for segment in one.segments[: row.goes]),
        reason=reasons[row.reason],
        stopped_ms=one.recording.stop_timestamp_ms,
    )


def inventory(folder: Folder) -> list[Kept]:
    """Every valid recording of a folder with its segments; omits those whose end is currently unknown."""
    folder.refresh()
    files: dict[int, list[tuple[int, Path, float]]] = {}
    for file in segment_files(folder.path):
        if file.position is not None and not file.is_leftover:
            files.setdefault(file.recording_id, []).append((file.position, file.path, file.modified_s))
    found = []
    for recording in folder.recordings():
        try:
            limit = folder.extent(recording.recording_id).limit_position
        except AeronError:
            continue
        own = [file for file in files.get(recording.recording_id, []) if _is_used(recording, file[0])]
        found.append(Kept(recording=recording, limit=limit, segments=tuple(_segments(folder, recording, limit, own))))
    return found


def _is_used(recording: Recording, base: int) -> bool:
    first = segment_base(recording, recording.start_position)
    return base >= first and (base - first) % recording.segment_file_length == 0


def _segments(
    folder: Folder, recording: Recording, limit: int, files: Sequence[tuple[int, Path, float]]
) -> Iterator[Segment]:
    ends = [max(recording.start_position, min(base + recording.segment_file_length, limit) - 1) for base, _, _ in files]
    times = _times(folder, recording.recording_id, ends) if files else []
    for (base, path, modified_s), indexed_ms in zip(files, times, strict=True):
        try:
            size = path.stat().st_blocks * 512
        except FileNotFoundError:  # purged meanwhile
            continue
        is_last = base + recording.segment_file_length >= limit
        stopped_ms = recording.stop_timestamp_ms if is_last else None
        written_ms = next(when for when in (indexed_ms, stopped_ms, round(modified_s * 1000)) if when is not None)
        yield Segment(base=base, bytes=size, written_ms=written_ms)


def _times(folder: Folder, recording_id: int, positions: Sequence[int]) -> list[int | None]:
    """When the bytes at ascending positions were written, ms; None where the time index has no entry."""
    times, sources = ffi.new("int64_t[]", len(positions)), ffi.new("uint8_t[]", len(positions))
    with folder._use() as pointer:
        try:
            check(
                lib.as_folder_times_at(
                    pointer, recording_id, ffi.new("int64_t[]", list(positions)), len(positions), times, sources
                )
            )
        except AeronError:
            return [None] * len(positions)
    known = lib.AS_TIME_FROM_INDEX
    return [
        int(when) // 1_000_000 if source == known else None
        for when, source in zip(ffi.unpack(times, len(positions)), ffi.unpack(sources, len(positions)), strict=True)
    ]


def apply(archive: Archive, actions: Iterable[Action]) -> Iterator[Done]:
    """Have the archive execute each action; reports what a replay blocks, and deletes what lies before it.

    Leaves out a recording that was extended since it was planned. An extension that begins and stops within the
    milliseconds between that look and the archive's turn is not noticed: the requests carry no condition.
    """
    for action in actions:
        if _is_extended(archive, action):
            yield Done(action=action, deleted=0, held=_EXTENDED)
            continue
        try:
            yield Done(action=action, deleted=_delete(archive, action, action.new_start), held="")
        except PeerError as failure:
            yield _held(archive, action, failure)


def _is_extended(archive: Archive, action: Action) -> bool:
    """Whether a recording that had stopped has gone on since; what is active is only deleted from its start on."""
    if action.stopped_ms is None:
        return False
    recording = archive.recording(action.recording_id)
    return recording is not None and recording.stop_timestamp_ms != action.stopped_ms


def _delete(archive: Archive, action: Action, new_start: int | None) -> int:
    if new_start is None:
        return archive.purge_recording(action.recording_id)
    return archive.purge_segments(action.recording_id, new_start)


def _held(archive: Archive, action: Action, failure: PeerError) -> Done:
    """Delete what lies before the replay that blocks the rest."""
    recording = archive.recording(action.recording_id)
    deleted = 0
    if recording is not None and _IN_REPLAY.search(str(failure)):
        start = segment_base(recording, recording.start_position)
        # Only the refusal to purge segments reports the replay's position; the refusal to purge the recording does not.
        wanted = action.new_start
        if wanted is None and recording.stop_position is not None:
            wanted = segment_base(recording, recording.stop_position)
        for _ in range(2):
            if wanted is None or wanted <= start:
                break
            try:
                deleted = archive.purge_segments(action.recording_id, wanted)
                break
            except PeerError as again:
                failure = again
                replay = _REPLAY.search(str(again))
                wanted = int(replay[1]) if replay is not None else None
    return Done(action=action, deleted=deleted, held=str(failure))


def archive_settings(folder: str | os.PathLike[str]) -> tuple[str, int]:
    """Aeron directory and local control stream of the live archive of a folder; UsageError if none is live."""
    with Folder(folder) as opened:
        info = opened.info()
    if not info.is_live or info.aeron_dir is None:
        raise UsageError(
            f"no live archive owns {folder}: retention asks the running archive to delete. Start it (aeron-spark archive run), "
            "or clean up a stopped folder with delete-orphans and compact"
        )
    return str(info.aeron_dir), info.local_control_stream_id
