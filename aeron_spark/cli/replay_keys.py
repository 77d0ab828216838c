"""Commands of a running replay: keys of a terminal, or lines of standard input."""

from __future__ import annotations

import contextlib
import math
import os
import select
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from aeron_spark.archive.time_text import parse_time_ns
from aeron_spark.errors import UsageError
from aeron_spark.tables.replay import Command, checked_speed

__all__ = ["COMMANDS", "KEYS", "commands_of_lines", "is_in_foreground", "keys_of_terminal", "parse_speed"]

KEYS = "space pause or go on, n next message, + twice as fast, - half as fast, f and b 10 s forward and back, q quit"
COMMANDS = "pause, resume, step [N], speed N|max, seek TIME|+SECONDS|-SECONDS, quit"
_OF_KEY = {
    b" ": Command("toggle"),
    b"n": Command("step", 1),
    b"+": Command("faster"),
    b"-": Command("slower"),
    b"f": Command("move", 10e9),
    b"b": Command("move", -10e9),
    b"q": Command("quit"),
}
_MOST_BYTES = 4096


def parse_speed(text: str) -> float:
    """`max`, or a number. UsageError: neither, or no replay has it."""
    try:
        speed = math.inf if text == "max" else float(text)
    except ValueError:
        raise UsageError(f"speed {text!r} is neither a number, like 1 or 0.5, nor max") from None
    return checked_speed(speed)


def _command(line: str) -> Command:
    """One line's command. UsageError lists them."""
    word, _, rest = line.strip().partition(" ")
    value = rest.strip()
    if word in {"pause", "resume", "quit"} and not value:
        return Command(word)  # type: ignore[arg-type]
    if word == "step" and (not value or value.isdecimal()):
        return Command("step", int(value or 1))
    if word == "speed" and value:
        return Command("speed", parse_speed(value))
    if word == "seek" and value[:1] in {"+", "-"}:
        with contextlib.suppress(ValueError):
            by_ns = float(value) * 1e9
            if math.isfinite(by_ns):
                return Command("move", by_ns)
    elif word == "seek" and value:
        return Command("seek", parse_time_ns("seek", value))
    raise UsageError(f"{line.strip()!r} is no command: {COMMANDS}")


def _told(text: str) -> None:
    print(f"replay: {text}", file=sys.stderr, flush=True)


def commands_of_lines(fd: int) -> Callable[[], Sequence[Command]]:
    """Lines of a pipe or a file that are there, without waiting; a wrong one is told and left out."""
    rest = b""
    is_open = True

    def taken() -> Sequence[Command]:
        nonlocal rest, is_open
        found: list[Command] = []
        if is_open and select.select([fd], [], [], 0)[0]:
            data = os.read(fd, _MOST_BYTES)
            is_open = bool(data)
            *lines, rest = (rest + (data or b"\n")).split(b"\n")
            rest = rest[:_MOST_BYTES]
            for line in lines:
                if line.strip():
                    try:
                        found.append(_command(line.decode("utf-8", "replace")))
                    except UsageError as error:
                        _told(str(error))
        return found

    return taken


def is_in_foreground(fd: int) -> bool:
    """Whether the terminal's keys are this program's: one in the background is stopped when it asks for them."""
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:  # not the terminal that controls this process, so none that stops it
        return True


@contextmanager
def keys_of_terminal(fd: int) -> Iterator[Callable[[], Sequence[Command]]]:
    """Keys that were pressed; the terminal is as it was afterwards."""
    before = termios.tcgetattr(fd)
    _told(KEYS)
    tty.setcbreak(fd)
    try:
        yield (
            lambda: (
                [_OF_KEY[key] for key in _keys(os.read(fd, _MOST_BYTES)) if key in _OF_KEY]
                if is_in_foreground(fd) and select.select([fd], [], [], 0)[0]
                else ()
            )
        )
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def _keys(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]
