"""Message rates and remaining time of long work, on standard error while it is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import timedelta

_SMALL = 10
_MINUTE = 60


def number(value: float) -> str:
    """A count or a rate: a small one with a digit behind the point, so that little is not nothing."""
    return f"{value:,.1f}" if value < _SMALL and value % 1 else f"{value:,.0f}"


def size(count: float) -> str:
    """Bytes, by a unit in which there is something to see."""
    for unit, name in ((1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return f"{number(count)} bytes"


def duration(seconds: float) -> str:
    """Seconds with a digit behind the point, from a minute on days, hours, minutes and seconds."""
    return f"{seconds:.1f} s" if seconds < _MINUTE else str(timedelta(seconds=round(seconds)))


class Progress:
    """Counts messages and bytes; a line a second on a terminal, and `summary` for the end."""

    def __init__(self, what: str, *, quiet: bool = False) -> None:
        self._what = what
        self._is_shown = sys.stderr.isatty() and not quiet
        self._started = self._shown_at = time.monotonic()
        self.messages = 0
        self.bytes = 0

    def start(self) -> None:
        """Begin to measure: waiting for the other side is no part of the rate."""
        self._started = self._shown_at = time.monotonic()

    def add(self, messages: int, count: int) -> None:
        """Tell of `messages` more with `count` bytes together."""
        self.messages += messages
        self.bytes += count
        now = time.monotonic()
        if self._is_shown and now - self._shown_at >= 1:
            self._shown_at = now
            print(f"\r{self.summary()}\x1b[K", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leave the last line on the terminal."""
        if self._is_shown:
            print(f"\r{self.summary()}\x1b[K", file=sys.stderr)

    def summary(self) -> str:
        """Everything so far and the rate over all of it."""
        seconds = max(time.monotonic() - self._started, 1e-3)
        return (
            f"{self.messages:,} messages {self._what}, {self.bytes:,} bytes in {seconds:.1f} s: "
            f"{number(self.messages / seconds)} messages and {size(self.bytes / seconds)} a second"
        )


class Work:
    """Bytes of work: done, rate and time left, a line a second on a terminal or with `always`; `total` 0: nobody knows.

    `rows` counts what the work is about (messages, recordings), named by `unit`; its rate is shown where there are any.
    """

    def __init__(self, what: str, total: int, *, unit: str = "", quiet: bool = False, always: bool = False) -> None:
        self._what = what
        self._total = total
        self._unit = unit
        self._is_terminal = sys.stderr.isatty()
        self._is_shown = (self._is_terminal or always) and not quiet
        self._started = self._shown_at = time.monotonic()
        self._has_shown = False
        self.bytes = 0
        self.rows = 0

    def at(self, count: int, rows: int | None = None) -> None:
        """Tell that `count` bytes, and `rows`, are done in all."""
        self.bytes = count
        self.rows = self.rows if rows is None else rows
        now = time.monotonic()
        if self._is_shown and now - self._shown_at >= 1:
            self._shown_at = now
            self._print(now)

    def from_here(self, base: int) -> Callable[[int], None]:
        """A function for work that counts its own bytes from 0: they come on top of `base`."""
        return lambda count: self.at(base + count)

    def end(self) -> None:
        """Leave the last line; where it was quick there was none."""
        if self._is_shown and self._has_shown:
            self._print(time.monotonic())
            if self._is_terminal:
                print(file=sys.stderr)

    def line(self, now: float) -> str:
        """What is done, of how much, how fast, and the time left."""
        seconds = max(now - self._started, 1e-3)
        rate = self.bytes / seconds
        total = f" of {size(self._total)}" if self._total else ""
        done = f"{self._what}: {size(self.bytes)}{total}"
        rows = f", {self.rows:,} {self._unit}" if self._unit else ""
        row_rate = f", {number(self.rows / seconds)} {self._unit} a second" if self._unit and self.rows else ""
        left = (
            "" if rate <= 0 or not self._total else f", {_duration(max(0.0, (self._total - self.bytes) / rate))} left"
        )
        return f"{done}{rows}, {size(rate)} a second{row_rate}{left}"

    def _print(self, now: float) -> None:
        self._has_shown = True
        if self._is_terminal:
            print(f"\r{self.line(now)}\x1b[K", end="", file=sys.stderr, flush=True)
        else:
            print(self.line(now), file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
