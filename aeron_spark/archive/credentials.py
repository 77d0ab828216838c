"""What an archive's client proves itself with."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from aeron_spark.errors import UsageError

# Bytes, the path of a file that holds them, or a function: it gets None when connecting and the archive's challenge when there
# is one, and gives the bytes to answer with.
Credentials = bytes | os.PathLike[str] | Callable[[bytes | None], bytes]


class Supplier:
    """Credentials as a client asks for them; they are in no representation, text or error of this class."""

    __slots__ = ("_source",)

    def __init__(self, source: Credentials | None) -> None:
        self._source = source

    @property
    def answers_challenges(self) -> bool:
        """True when the credentials are a function."""
        return callable(self._source)

    def encoded(self) -> bytes:
        """Bytes for the connect request: b"" without credentials. A file's last line end is left out."""
        source = self._source
        if source is None:
            return b""
        if isinstance(source, bytes):
            return source
        if isinstance(source, os.PathLike):
            return Path(source).read_bytes().removesuffix(b"\n").removesuffix(b"\r")
        return _checked(source(None))

    def on_challenge(self, challenge: bytes) -> bytes:
        """Bytes that answer a challenge."""
        source = self._source
        if source is None or isinstance(source, bytes | os.PathLike):
            raise UsageError("the archive challenges its clients: give `credentials` as a function of the challenge")
        return _checked(source(challenge))


def _checked(answer: object) -> bytes:
    if not isinstance(answer, bytes):
        raise UsageError(f"credentials must be bytes, their function gave {type(answer).__name__}")
    return answer
