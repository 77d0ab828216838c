"""Users of an archive's credentials file, both sides: the line that an archive reads, and a client's answer.

The secret of a line is SCRAM's (RFC 5802) with SHA-256: it reveals neither the password nor anything that allows a
login.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

from aeron_spark.errors import UsageError

ITERATIONS = 100_000
GROUPS = ("all", "query", "record", "replay", "maintain", "replicate", "stop-any-replay")

_LEAST, _MOST = 1_000, 10_000_000
_SALT_LENGTH = 16


def user_line(name: str, password: str, actions: list[str], *, iterations: int = ITERATIONS) -> str:
    """The line of a user in `aeron.spark.archive.credentials.file`, without its line end.

    `actions` are `GROUPS`, or requests of the control protocol by name (`StartRecordingRequest2`). More `iterations`
    raise the cost of guessing for a thief of the file, and the cost of each login by password equally (100,000: a tenth
    of a second).

    Raises:
        UsageError: A name, an action or a number that an archive would refuse, or no password.
    """
    if re.fullmatch(r"[A-Za-z0-9._@-]{1,64}", name) is None:
        raise UsageError(f"{name!r} is no user's name: 1 to 64 letters, digits, '.', '_', '@', '-'")
    wrong = [one for one in actions if one not in GROUPS and re.fullmatch(r"[A-Z][A-Za-z]*Request2?", one) is None]
    if wrong or not actions:
        raise UsageError(
            f"actions are {', '.join(GROUPS)}, or requests such as StartRecordingRequest2, not {wrong or 'none'}"
        )
    if not _LEAST <= iterations <= _MOST:
        raise UsageError(f"{iterations} iterations are out of range: {_LEAST} to {_MOST}")
    if not password:
        raise UsageError("an empty password is none")
    salt = secrets.token_bytes(_SALT_LENGTH)
    stored = hashlib.sha256(_client_key(password, salt, iterations)).hexdigest()
    return f"{name} scram-sha-256${iterations}${salt.hex()}${stored} {','.join(actions)}"


def answer(challenge: bytes, password: str) -> bytes:
    """Answer to the archive's challenge, of a client that connected with a user's name only.

    Raises:
        UsageError: The challenge is not one of a credentials file, or demands more iterations than a file may set.
    """
    match = re.fullmatch(rb"scram-sha-256 (\d{4,8}) ((?:[0-9a-f]{2}){8,64}) [0-9a-f]{32}", challenge)
    if match is None or not _LEAST <= int(match[1]) <= _MOST:
        raise UsageError("the archive's challenge is none of a credentials file")
    key = _client_key(password, bytes.fromhex(match[2].decode()), int(match[1]))
    signature = hmac.digest(hashlib.sha256(key).digest(), challenge, "sha256")
    return bytes(a ^ b for a, b in zip(key, signature, strict=True)).hex().encode()


def _client_key(password: str, salt: bytes, iterations: int) -> bytes:
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    return hmac.digest(salted, b"Client Key", "sha256")
