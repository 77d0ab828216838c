"""How fast messages go by, told on standard error while a person is looking at it."""

from __future__ import annotations

import sys
import time


class Progress:
    """Counts messages and bytes; a line a second on a terminal, and `summary` for the end."""

    def __init__(self, what: str, *, quiet: bool = False) -> None:
        self._what = what
        self._is_shown = sys.stderr.isatty() and not quiet
        self._started = self._told = time.monotonic()
        self.messages = 0
        self.bytes = 0

    def start(self) -> None:
        """Begin to measure: waiting for the other side is no part of the rate."""
        self._started = self._told = time.monotonic()

    def add(self, messages: int, count: int) -> None:
        """Tell of `messages` more with `count` bytes together."""
        self.messages += messages
        self.bytes += count
        now = time.monotonic()
        if self._is_shown and now - self._told >= 1:
            self._told = now
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
            f"{self.messages / seconds:,.0f} messages and {self.bytes / seconds / 1e6:,.1f} MB a second"
        )
