"""A pseudo-terminal of any size with a program in it, and what its screen shows, by pyte.

pyte knows no alternate screen: what a program leaves there stays visible. What was sent is kept in `sent`.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyte

from aeron_spark.closing import Closing
from tests.kit.wait import wait_until

TIMEOUT_S = 60.0
_STOP_S = 15.0


class Terminal(Closing):
    """One program in one terminal; closing ends it."""

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        columns: int = 80,
        lines: int = 24,
        env: Mapping[str, str | None] | None = None,
    ) -> None:
        self._own, theirs = pty.openpty()
        self.before = termios.tcgetattr(self._own)
        self.sent = b""
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self._set_size(columns, lines)
        wanted = {
            **os.environ,
            "TERM": "xterm-256color",
            "COLUMNS": None,
            "LINES": None,
            "NO_COLOR": None,
            **(env or {}),
        }
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={name: value for name, value in wanted.items() if value is not None},
            # A group of its own in this session, as a shell makes one: a group without any parent would not stop by Ctrl-Z.
            process_group=0,
        )
        os.close(theirs)

    def close(self) -> None:
        """End the program if it lives."""
        if self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_STOP_S)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.hang_up()

    def hang_up(self) -> None:
        """Close the terminal's window; nothing can be read from it any more."""
        if self._own >= 0:
            os.close(self._own)
        self._own = -1

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._own, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size, as a window does."""
        self._screen.resize(lines, columns)
        self._set_size(columns, lines)
        os.kill(self.process.pid, 28)  # SIGWINCH: the terminal is not the one that controls the program

    def shown(self) -> list[str]:
        """The lines of the screen now, without spaces at their ends."""
        while select.select([self._own], [], [], 0)[0]:
            try:
                sent = os.read(self._own, 1 << 16)
            except OSError:  # the program has ended
                break
            if not sent:
                break
            self.sent += sent
            self._stream.feed(sent)
        return [line.rstrip() for line in self._screen.display]

    def wait(self, is_right: Callable[[list[str]], bool], what: str) -> list[str]:
        """The screen that is right: a later one may be half drawn."""

        def shown_right() -> list[str] | None:
            lines = self.shown()
            return lines if is_right(lines) else None

        return wait_until(shown_right, TIMEOUT_S, what, state=lambda: "\n" + "\n".join(self.shown()))

    def wait_text(self, text: str) -> list[str]:
        """The screen as soon as it has a text."""
        return self.wait(lambda lines: any(text in line for line in lines), f"{text!r} on the screen")

    def wait_shows(self, expected: Sequence[str]) -> None:
        """Until the screen is exactly so."""
        whole = [*expected, *[""] * (self._screen.lines - len(expected))]
        self.wait(lambda lines: lines == whole, "the screen:\n" + "\n".join(expected) + "\n")

    def wait_end(self) -> int:
        """Its exit code."""

        def ended() -> bool:
            self.shown()
            return self.process.poll() is not None

        wait_until(ended, TIMEOUT_S, "the end of the program", state=lambda: "\n".join(self.shown()))
        return self.process.wait()

    def colours(self, line: int) -> set[str]:
        """Colours of the characters of a line."""
        self.shown()
        return {char.fg for char in self._screen.buffer[line].values()}

    def mode(self) -> object:
        """How the terminal treats keys; compare with `before`."""
        return termios.tcgetattr(self._own)

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._own, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
