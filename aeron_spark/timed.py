"""Publishing on a schedule: messages with times go out when they are due, on one of several publications, GIL released."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.check import error, nanoseconds
from aeron_spark.publication import Publication, RawMessages
from aeron_spark.types import NULL_VALUE, Outcome

__all__ = ["Bin", "Spread", "Timed", "TimedPublisher", "now_ns"]


@dataclass(frozen=True, slots=True)
class Bin:
    """How many are from `from_ns` to below `to_ns`."""

    from_ns: int
    to_ns: int
    count: int


@dataclass(frozen=True, slots=True)
class Spread:
    """Differences from a schedule in ns; none of a replay without waits."""

    bins: tuple[Bin, ...]
    max_ns: int

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(one.count for one in self.bins)

    def below_ns(self, part: float) -> int | None:
        """What this part of them is below: 0.99 for the 99th percentile. None without any."""
        left = part * self.count
        for one in self.bins:
            left -= one.count
            if left <= 0:
                return min(one.to_ns, self.max_ns + 1)
        return None


class Timed:
    """Messages for a `TimedPublisher`: `values` (binary), their ascending times in ns, and each one's publication."""

    def __init__(self, values: pa.Array, reserved: np.ndarray, times: np.ndarray, targets: np.ndarray) -> None:
        self.times = np.ascontiguousarray(times, np.int64)
        self._targets = np.ascontiguousarray(targets, np.int32)
        self._reserved = np.ascontiguousarray(reserved, np.int64)
        self._raw = RawMessages(values, self._reserved)
        self.count = self._raw.count

    def bytes_between(self, start: int, end: int) -> int:
        """Bytes of the messages [start, end)."""
        return self._raw.bytes_between(start, end)

    def put(self, schedule: object, done: int, count: int) -> object:
        """Set the schedule's arrays to the messages from `done` on, and return these, no more than `count`."""
        schedule.times_ns = ffi.cast("int64_t *", self.times.ctypes.data) + done  # type: ignore[attr-defined]
        schedule.targets = ffi.cast("int32_t *", self._targets.ctypes.data) + done  # type: ignore[attr-defined]
        raw = self._raw.rest(done)
        raw.count = min(raw.count, count)
        return raw


class TimedPublisher:
    """Publishes `Timed` messages on a schedule: `time_ns` of them is due at `at_ns` of `time.monotonic_ns`.

    `pace` is how many ns of the clock pass for one of the times, 0 for no wait at all. Thread rule: one thread; another one may
    append to `publications`, before it makes messages for them.
    """

    def __init__(self, publications: Sequence[Publication]) -> None:
        self._publications = publications
        self._timing = ffi.new("as_timing *")
        self._timing.last_due_ns = NULL_VALUE
        self._schedule = ffi.new("as_schedule *")

    def plan(self, time_ns: int, at_ns: int, pace: float) -> None:
        """A new schedule. No interval is measured across it."""
        self._schedule.time_ns, self._schedule.at_ns, self._schedule.pace = time_ns, at_ns, pace
        self._timing.last_due_ns = NULL_VALUE

    @property
    def pace(self) -> float:
        """Of the schedule."""
        return float(self._schedule.pace)

    def time_at(self, at_ns: int) -> int:
        """Which time is due then."""
        ahead = at_ns - self._schedule.at_ns
        return int(self._schedule.time_ns) + (int(ahead / self.pace) if self.pace else 0)

    def offer(self, messages: Timed, done: int, count: int, seconds: float) -> int:
        """Publish no more than `count` from number `done` on, in at most `seconds`; returns how many.

        ClosedError: a publication was closed; UsageError: a message is longer than its publication takes.
        """
        with ExitStack() as held:
            pointers = []
            for one in tuple(self._publications):  # the list may grow meanwhile
                pointers.append(one._acquire())
                held.callback(one._lock.release)
            raw = ffi.new("as_publication *[]", pointers)
            result = lib.as_publications_offer_timed(
                raw, len(pointers), messages.put(self._schedule, done, count), self._schedule,
                nanoseconds(seconds), self._timing,
            )  # fmt: skip
            failure = error(result) if result < 0 else None
        if failure is not None:
            failure.accepted = int(self._timing.accepted)
            raise failure
        return int(self._timing.accepted)

    @property
    def blocked(self) -> tuple[Outcome, float] | None:
        """Why the last `offer` could not publish its next message, and for how many seconds; None if it could."""
        if not self._timing.status:
            return None
        return Outcome(self._timing.status), self._timing.blocked_ns / 1e9

    def errors(self) -> Spread:
        """How far the intervals between messages were from the schedule's."""
        return _spread(self._timing.error_counts, self._timing.max_error_ns)

    def lateness(self) -> Spread:
        """How late messages were."""
        return _spread(self._timing.late_counts, self._timing.max_late_ns)


def _spread(counts: Any, most_ns: int) -> Spread:
    lows = [_low(number) for number in range(len(counts) + 1)]
    return Spread(
        tuple(Bin(lows[n], lows[n + 1], int(count)) for n, count in enumerate(counts) if count), max_ns=int(most_ns)
    )


def _low(number: int) -> int:
    """Where a bin of `as_timing` begins."""
    return number if number < 8 else (8 + number % 8) << (number // 8 - 1)  # noqa: PLR2004 - as_timing says


def now_ns() -> int:
    """The clock of schedules."""
    return time.monotonic_ns()
