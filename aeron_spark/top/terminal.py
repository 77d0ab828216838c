"""Keys and frames of a terminal: only lines that changed are written, and the terminal is left as it was found.

Colours are rich's: it knows NO_COLOR and what the terminal can. A dumb terminal gets each frame below the one before,
without any escape sequence.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from aeron_spark.extras import missing
from aeron_spark.live.facts import Facts

try:
    from rich.console import Console
    from rich.text import Text
except ModuleNotFoundError as error:
    raise missing(error, "top") from None

from aeron_spark.top.screen import Screen

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[2J", "\x1b[?25h\x1b[?1049l"
#: A key that begins with Esc comes as a whole; this long after an Esc nothing of it will come any more.
_ESCAPE_S = 0.05
_KEYS = {
    "\x1b[A": "up",
    "\x1bOA": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "\x1b[5~": "pageup",
    "\x1b[6~": "pagedown",
    "\x1b[H": "home",
    "\x1bOH": "home",
    "\x1b[1~": "home",
    "\x1b[F": "end",
    "\x1bOF": "end",
    "\x1b[4~": "end",
    "\x1b[Z": "backtab",
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\b": "backspace",
    "\x03": "ctrl-c",
    "\x1a": "ctrl-z",
}
_KEY = re.compile(r"\x1b\[[0-9;?]*[@-~]|\x1bO[@-~]|.", re.DOTALL)
_PART = re.compile(r"\x1b(?:\[[0-9;?]*|O)?")


class Keys:
    """Takes apart what a terminal sends."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""

    @property
    def is_in_key(self) -> bool:
        """Whether the end of a key may still come."""
        return bool(self._text)

    def take(self, sent: bytes) -> list[str]:
        """The keys that are whole. Nothing sent: what has begun is all that comes."""
        self._text += self._decoder.decode(sent)
        if sent and _PART.fullmatch(self._text):
            return []
        found = [_KEYS.get(one, one) for one in _KEY.findall(self._text)]
        self._text = ""
        # Keys that are not known do nothing.
        return [one for one in found if not one.startswith("\x1b")]


class Terminal:
    """The one that standard input and output are."""

    def __init__(self) -> None:
        self._in, self._out = sys.stdin.fileno(), sys.stdout.fileno()
        self._console = Console(file=io.StringIO(), force_terminal=True, highlight=False, width=1000)
        self.is_dumb = os.environ.get("TERM", "dumb").lower() in {"dumb", "unknown", ""}
        if self.is_dumb:
            self._console = Console(file=io.StringIO(), color_system=None, highlight=False, width=1000)
        self._encoding = sys.stdout.encoding or "ascii"
        self._shown: list[str] = []
        self._size = (0, 0)
        self._keys = Keys()
        self._waiting: list[str] = []
        self._woken, self._wake = os.pipe()
        self._found = termios.tcgetattr(self._in)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """The terminal sends each key at once, and shows frames alone."""
        os.set_blocking(self._wake, False)
        former = signal.signal(signal.SIGWINCH, lambda *_: None)
        former_wake = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        self._enter()
        try:
            yield
        finally:
            self._leave()
            signal.set_wakeup_fd(former_wake)
            signal.signal(signal.SIGWINCH, former)
            os.close(self._woken)
            os.close(self._wake)

    def size(self) -> tuple[int, int]:
        """Columns and lines now."""
        width, height = os.get_terminal_size(self._out)
        return (width or 80, height or 24)

    def draw(self, lines: Sequence[Text], size: tuple[int, int]) -> None:
        """Show a frame that was made for a screen of that many columns and lines."""
        texts = [self._rendered(line) for line in lines]
        if self.is_dumb:
            if texts != self._shown:
                self._write("\n".join(text.rstrip() for text in texts if text.strip()) + "\n\n")
            self._shown = texts
            return
        if size != self._size:
            self._write("\x1b[2J")
            self._shown, self._size = [], size
        before = [*self._shown, *[""] * (len(texts) - len(self._shown))]
        changed = [
            f"\x1b[{number};1H{text}\x1b[0m\x1b[K"
            for number, (text, was) in enumerate(zip(texts, before, strict=False), 1)
            if text != was
        ]
        self._shown = texts
        self._write("".join(changed))

    def key(self, timeout_s: float) -> str | None:
        """The next key; None when the time is over, or the size changed. `ctrl-c` when the terminal is gone."""
        deadline = time.monotonic() + timeout_s
        while not self._waiting:
            left = _ESCAPE_S if self._keys.is_in_key else max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([self._in, self._woken], [], [], left)
            if self._woken in ready:
                os.read(self._woken, 4096)
                return None
            if self._in in ready:
                sent = self._sent()
                if not sent:
                    return "ctrl-c"
                self._waiting = self._keys.take(sent)
            elif self._keys.is_in_key:
                self._waiting = self._keys.take(b"")
            else:
                return None
        key = self._waiting.pop(0)
        if key == "ctrl-z":
            self._suspend()
            return None
        return key

    def _sent(self) -> bytes:
        """What the terminal sends; nothing when it is gone."""
        try:
            return os.read(self._in, 4096)
        except OSError:
            return b""

    def _suspend(self) -> None:
        """Stop as a program that knows nothing of keys does, and go on when the shell says so."""
        self._leave()
        os.kill(os.getpid(), signal.SIGTSTP)
        self._enter()
        self._size = (0, 0)

    def _enter(self) -> None:
        tty.setcbreak(self._in)
        mode = termios.tcgetattr(self._in)
        mode[3] &= ~termios.ISIG
        termios.tcsetattr(self._in, termios.TCSADRAIN, mode)
        if not self.is_dumb:
            self._write(_ENTER)

    def _leave(self) -> None:
        # A terminal that is gone needs nothing any more.
        with suppress(OSError, termios.error):
            if not self.is_dumb:
                self._write(_LEAVE)
            termios.tcsetattr(self._in, termios.TCSADRAIN, self._found)

    def _rendered(self, line: Text) -> str:
        with self._console.capture() as captured:
            self._console.print(line, end="", no_wrap=True, overflow="ignore", crop=False)
        text = captured.get()
        return text.encode(self._encoding, "replace").decode(self._encoding)

    def _write(self, text: str) -> None:
        data = text.encode(self._encoding, "replace")
        while data:
            data = data[os.write(self._out, data) :]


def run(
    read: Callable[[], Facts], interval_s: float, terminal: Terminal, clock_s: Callable[[], float] = time.monotonic
) -> None:
    """Show what `read` gives, each interval, until a key ends it."""
    screen = Screen(interval_s)
    with terminal.opened():
        facts, next_s = read(), clock_s() + interval_s
        while True:
            size = terminal.size()
            terminal.draw(screen.lines(facts, *size), size)
            key = terminal.key(max(0.0, next_s - clock_s()))
            if key is not None and not screen.press(key, facts):
                return
            if clock_s() >= next_s:
                if not screen.paused:
                    facts = read()
                next_s = clock_s() + interval_s
