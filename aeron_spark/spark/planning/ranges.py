"""Pure planning: which bytes a micro-batch takes, and how a range becomes partitions.

Nothing here opens a file. ``advance`` is passed in: it moves a position to a message boundary (see ``Folder.advance``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from aeron_spark.archive.ranges import Range

__all__ = ["Budget", "Range", "Slice", "pack", "share_out", "target_partition_bytes"]

#: Ranges smaller than this are not split for parallelism: a task costs more than reading them.
MIN_SPLIT_BYTES = 4 << 20
#: How far a cut usually lies before its target: less than a message.
CUT_SLACK_BYTES = 64 << 10
#: A partition is one task's retry unit; larger ranges are split further.
MAX_PARTITION_BYTES = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much one micro-batch may take; None is no bound."""

    max_bytes: int | None
    max_messages: int | None

    @property
    def is_unbounded(self) -> bool:
        """Neither bound is set."""
        return self.max_bytes is None and self.max_messages is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The half-open range of one recording that is there to be read."""

    recording_id: int
    begin: int
    limit: int

    @property
    def backlog(self) -> int:
        """Bytes there are to read."""
        return self.limit - self.begin


#: (recording id, from, limit, max bytes or None, max messages or None) -> (position reached, messages counted or 0)
Advance = Callable[[int, int, int, int | None, int | None], int]


def share_out(
    slices: list[Slice], budget: Budget, advance: Advance, waited: Mapping[int, int] | None = None
) -> dict[int, int]:
    """End position per recording for the next micro-batch.

    The byte budget is shared in proportion to backlog, the message budget evenly and exactly; the bytes that one
    leaves of its share are for those after it, and the messages of one that has none, so that a recording that ends inside a
    message holds nothing back. A recording whose next message is
    larger than its share waits until budget is left over; if nothing fits at all, the first takes one message, so that a
    limit below one message still progresses. Those that got nothing (``waited``: for how many batches) come first, then the
    largest backlogs, so that busy recordings never starve a small one.
    """
    turns = waited or {}
    ends = {part.recording_id: part.begin for part in slices}
    waiting = sorted(
        (part for part in slices if part.backlog > 0),
        key=lambda part: (-turns.get(part.recording_id, 0), -part.backlog, part.recording_id),
    )
    if budget.is_unbounded:
        for part in waiting:
            ends[part.recording_id] = advance(part.recording_id, part.begin, part.limit, None, None)
        return ends
    left, messages_left = budget.max_bytes, budget.max_messages
    backlog = sum(part.backlog for part in waiting)
    progressed = False
    oversized: list[tuple[Slice, int]] = []
    for at, part in enumerate(waiting):
        share = None if left is None else max(1, left * part.backlog // backlog)
        messages = None if messages_left is None else -(-messages_left // (len(waiting) - at))
        if messages == 0:
            break
        backlog -= part.backlog
        reached = advance(part.recording_id, part.begin, part.limit, share, messages)
        taken = reached - part.begin
        if taken == 0:
            continue
        if messages_left is not None and messages is not None:
            messages_left -= messages
        has_turn = part.recording_id in turns and (not progressed or left is None or taken <= left)
        if share is None or taken <= share or has_turn:
            ends[part.recording_id] = reached
            left = None if left is None else left - taken
            progressed = True
        else:
            oversized.append((part, reached))
    for part, reached in oversized:
        taken = reached - part.begin
        if left is None or taken <= left or not progressed:
            ends[part.recording_id] = reached
            left = None if left is None else left - taken
            progressed = True
    return ends


def target_partition_bytes(total: int, *, slots: int, min_partitions: int | None, max_bytes: int | None) -> int:
    """Bytes a partition should hold so that all slots work, without tasks too small to pay or too large to retry."""
    wanted = max(min_partitions if min_partitions is not None else slots, 1)
    even = -(-total // wanted)
    # Cuts lie at or before the target; without some slack the remainders would make one small partition more.
    even += min(even // (2 * wanted), CUT_SLACK_BYTES)
    if min_partitions is None:
        even = max(even, MIN_SPLIT_BYTES)
    return max(1, min(even, max_bytes if max_bytes is not None else MAX_PARTITION_BYTES))


def pack(ranges: Iterable[Range], target: int) -> list[tuple[Range, ...]]:
    """Ranges in their order, those that follow each other together as long as they hold at most ``target`` bytes.

    So that a folder of a thousand small recordings is not a thousand tasks.
    """
    packs: list[list[Range]] = []
    room = 0
    for part in ranges:
        size = part.end - part.start
        if not packs or size > room:
            packs.append([])
            room = target
        packs[-1].append(part)
        room -= size
    return [tuple(members) for members in packs]
