"""Credentials of an archive client."""

from __future__ import annotations

import os
from collections.abc import Callable

from aeron_spark.archive.users import answer
from aeron_spark.errors import UsageError
from aeron_spark.small_files import read_small

# Bytes, the path of a file that holds them, or a function. The function receives None on connect and the archive's
# challenge if there is one, and returns the bytes to answer with.
Credentials = bytes | os.PathLike[str] | Callable[[bytes | None], bytes]


class UserPassword:
    """Credentials of a user of this project's archive with a credentials file; the password is never sent.

    Connects with the name and answers the archive's challenge with the key derived from the password (the client proof
    of SCRAM, RFC 5802). No `repr` or text contains the password.
    """

    __slots__ = ("_password", "user")

    def __init__(self, user: str, password: str) -> None:
        self.user = user
        self._password = password

    def __call__(self, challenge: bytes | None) -> bytes:
        """Name on connect; proof for a challenge `scram-sha-256 <iterations> <salt> <nonce>`."""
        return self.user.encode() if challenge is None else answer(challenge, self._password)

    def __repr__(self) -> str:
        return f"<UserPassword of {self.user!r}>"


class Supplier:
    """Credentials as a client requests them; no `repr`, text or error of this class contains them."""

    __slots__ = ("_source",)

    def __init__(self, source: Credentials | None) -> None:
        self._source = source

    @property
    def answers_challenges(self) -> bool:
        """True when the credentials are a function."""
        return callable(self._source)

    def encoded(self) -> bytes:
        """Bytes for the connect request: b"" without credentials. The last line end of a file is removed."""
        source = self._source
        if source is None:
            return b""
        if isinstance(source, bytes):
            return source
        if isinstance(source, os.PathLike):
            return read_small(source).removesuffix(b"\n").removesuffix(b"\r")
        return _checked(source(None))

    def on_challenge(self, challenge: bytes) -> bytes:
        """Bytes that answer a challenge."""
        source = self._source
        if source is None or isinstance(source, bytes | os.PathLike):
            raise UsageError("the archive challenges its clients: give `credentials` as a function of the challenge")
        return _checked(source(challenge))


def _checked(given: object) -> bytes:
    if not isinstance(given, bytes):
        raise UsageError(f"credentials must be bytes, their function gave {type(given).__name__}")
    return given
