"""Puts pieces of a stream in order by their positions.

What comes again is dropped, what comes early waits, what never comes is a gap.

A piece covers `extent` of the stream from `position` on. Pieces that wait are copied. All streams of an import share a
`Budget` of memory for them. When it is used up, or a stream is `window` ahead of what is missing, what is missing counts as
lost. Times do not decrease: a piece that waited has the time of what it waited for.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

#: Bytes that wait in all streams together.
BUDGET = 128 << 20
#: What a piece costs beside its bytes.
_OVERHEAD = 300


@dataclass(slots=True)
class Budget:
    """Memory that the streams of an import share."""

    limit: int
    held: int = 0

    def take(self, count: int) -> None:
        """Count bytes that are kept."""
        self.held += count

    def give(self, count: int) -> None:
        """Count bytes that are not kept any more."""
        self.held -= count

    @property
    def is_used_up(self) -> bool:
        """Whether something must go."""
        return self.held > self.limit


@dataclass(frozen=True, slots=True)
class Run:
    """Pieces one behind the other, from `position` on."""

    position: int
    content: np.ndarray
    start: np.ndarray
    length: np.ndarray
    time_ns: np.ndarray
    end: int


@dataclass(frozen=True, slots=True)
class Missing:
    """A stretch that nothing covers."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, order=True)
class _Piece:
    position: int
    number: int
    extent: int = field(compare=False)
    body: bytes = field(compare=False)
    time_ns: int = field(compare=False)


#: The rest of a piece behind so many bytes of its extent; None: it cannot be cut there.
Trim = Callable[[bytes, int], bytes | None]


class Order:
    """One stream, from its first position on."""

    def __init__(self, first: int, *, window: int, trim: Trim, budget: Budget) -> None:
        self.first = self.next = first
        self.repeated = 0
        #: Pieces that begin before the first position: what of them lies before it has no place any more.
        self.early = 0
        #: Pieces that overlap what is there, and cannot be cut at its end.
        self.contradicting = 0
        #: When the last piece was taken.
        self.last_ns = 0
        self._window, self._trim, self._budget = window, trim, budget
        self._waiting: list[_Piece] = []
        self._added = 0
        self._farthest = first

    def add(  # noqa: PLR0917 - columns of one table
        self,
        content: np.ndarray,
        position: np.ndarray,
        extent: np.ndarray,
        start: np.ndarray,
        length: np.ndarray,
        time_ns: np.ndarray,
    ) -> Iterator[Run | Missing]:
        """What is in order now, and what is lost."""
        if not self._waiting and self._is_next(position, extent):
            yield self._run(content, start, length, time_ns, int(position[-1] + extent[-1]))
            return
        rows = zip(*(one.tolist() for one in (position, extent, start, length, time_ns)), strict=True)
        for at, covers, begin, size, time in rows:
            self.early += at < self.first
            if at + covers <= self.next:
                self.repeated += at >= self.first
                continue
            piece = _Piece(at, self._added, covers, content[begin : begin + size].tobytes(), time)
            heapq.heappush(self._waiting, piece)
            self._added += 1
            self._budget.take(size + _OVERHEAD)
            self._farthest = max(self._farthest, at + covers)
        yield from self._ready()
        while self._waiting and (self._budget.is_used_up or self._farthest - self.next > self._window):
            yield from self._give_up()

    def finish(self) -> Iterator[Run | Missing]:
        """What waits still; gaps are before it."""
        while self._waiting:
            yield from self._give_up()

    def drop(self) -> None:
        """Forget what waits."""
        for piece in self._waiting:
            self._budget.give(len(piece.body) + _OVERHEAD)
        self._waiting.clear()

    def _is_next(self, position: np.ndarray, extent: np.ndarray) -> bool:
        return bool(position[0] == self.next and (position[1:] == position[:-1] + extent[:-1]).all())

    def _give_up(self) -> Iterator[Run | Missing]:
        first = self._waiting[0].position
        yield Missing(self.next, first)
        self.next = first
        yield from self._ready()

    def _ready(self) -> Iterator[Run]:
        """Takes what follows `next`; the rest waits on."""
        first, bodies, times = self.next, [], []
        while self._waiting and self._waiting[0].position <= self.next:
            piece = heapq.heappop(self._waiting)
            self._budget.give(len(piece.body) + _OVERHEAD)
            if piece.position + piece.extent <= self.next:
                self.repeated += 1
                continue
            skip = self.next - piece.position
            body = self._trim(piece.body, skip) if skip else piece.body
            if body is None:
                self.contradicting += 1
                continue
            bodies.append(body)
            times.append(piece.time_ns)
            self.next = piece.position + piece.extent
        if bodies:
            end, self.next = self.next, first
            length = np.array([len(body) for body in bodies], np.int64)
            content = np.frombuffer(b"".join(bodies), np.uint8)
            yield self._run(content, np.cumsum(length) - length, length, np.array(times, np.int64), end)

    def _run(self, content: np.ndarray, start: np.ndarray, length: np.ndarray, time_ns: np.ndarray, end: int) -> Run:
        times = np.maximum(np.maximum.accumulate(time_ns), self.last_ns)
        position, self.next, self.last_ns = self.next, end, int(times[-1])
        self._farthest = max(self._farthest, end)
        return Run(position, content, start, length, times, end)
