"""The exceptions of aeron_spark: one tree, named for what the caller can do about it."""

from __future__ import annotations


class AeronError(Exception):
    """Base of every error of this package.

    `code` is the peer's error code or the errno, 0 where there is neither. `accepted` and `position` are set by batch
    offers: how many messages were published before the failure, and the stream position after them.
    """

    def __init__(
        self, message: str, *, code: int = 0, accepted: int | None = None, position: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.accepted = accepted
        self.position = position


class UsageError(AeronError, ValueError):
    """The arguments or the order of calls are wrong: fix the call."""


class WaitTimeoutError(AeronError, TimeoutError):
    """No answer, or no room, in time: try again or look at the peer."""


class ClosedError(AeronError):
    """The thing is closed: open it again."""


class PeerError(AeronError):
    """The driver or the archive answered with an error; its code is in `code`."""


class StorageError(AeronError, OSError):
    """File system or shared memory failed; the errno is in `code`."""


class DataLossError(AeronError):
    """Bytes are missing, foreign or corrupt: data is lost unless this is handled."""


class InternalError(AeronError):
    """Out of memory, or a mistake of this package."""


class DoubtWarning(UserWarning):
    """Something of a recording looks damaged and may be right: rows are given, and `aeron-spark archive verify` checks it."""
