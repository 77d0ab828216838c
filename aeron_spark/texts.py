"""Texts of other processes (labels, channels, errors) as a terminal can show them: none moves its cursor or begins a line."""

from __future__ import annotations

import io
import re
from typing import Any, BinaryIO, cast

#: C0 but the tab, DEL, and C1 as UTF-8.
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]|\xc2[\x80-\x9f]")


def escaped(text: str) -> str:
    r"""A message with control characters as \uXXXX."""
    return text if text.isprintable() else "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)


def escaped_bytes(message: bytes) -> bytes:
    r"""A message's bytes with control characters as \xXX."""
    return _CONTROL.sub(lambda found: b"".join(b"\\x%02x" % byte for byte in found[0]), message)


class TerminalFile(io.RawIOBase):
    """A terminal's file for lines of text that others wrote parts of: control characters but line ends are escaped."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: Any) -> int:
        """Whole characters, of any number of lines."""
        self._file.write(b"\n".join(map(escaped_bytes, bytes(data).split(b"\n"))))
        return len(data)

    def flush(self) -> None:
        """Let it be seen."""
        self._file.flush()


def harmless(file: BinaryIO) -> BinaryIO:
    """The file itself, or what keeps a terminal from obeying what is written to it."""
    return cast("BinaryIO", TerminalFile(file)) if file.isatty() else file
