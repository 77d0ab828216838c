"""From result codes to exceptions, and the small conversions every module needs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from aeron_spark import errors
from aeron_spark._native._lib import ffi, lib

_CLASSES: dict[int, type[errors.AeronError]] = {
    lib.AS_E_USAGE: errors.UsageError,
    lib.AS_E_TIMEOUT: errors.WaitTimeoutError,
    lib.AS_E_CLOSED: errors.ClosedError,
    lib.AS_E_PEER: errors.PeerError,
    lib.AS_E_STORAGE: errors.StorageError,
    lib.AS_E_DATA: errors.DataLossError,
    lib.AS_E_INTERNAL: errors.InternalError,
}


def error(result: int, *, text: str | None = None, code: int | None = None) -> errors.AeronError:
    """Exception for the class `result`, with this thread's last error text and code where none are given."""
    kind = _CLASSES.get(result, errors.InternalError)
    return kind(
        string(lib.as_error_text()) if text is None else text, code=lib.as_error_code() if code is None else code
    )


def check(result: int) -> bool:
    """Raise what a negative `as_result` stands for; True for done, False for "again later"."""
    if result < 0:
        raise error(result)
    return bool(result == lib.AS_OK)


def string(pointer: Any) -> str:
    """Text of a C string; "" for NULL. Bytes that are no UTF-8 are replaced."""
    return bytes(ffi.string(pointer)).decode("utf-8", "replace") if pointer else ""


def c_string(text: str) -> Any:
    """A C string that lives as long as the returned object; UsageError for embedded NUL, and what is no UTF-8."""
    return _c_bytes(text, str.encode)


def c_path(path: str | os.PathLike[str]) -> Any:
    """As `c_string`, of a path: its bytes need not be UTF-8."""
    return _c_bytes(os.fspath(path), os.fsencode)


def _c_bytes(text: str, encode: Callable[[str], bytes]) -> Any:
    if "\0" in text:
        raise errors.UsageError(f"text {text!r} holds a NUL character")
    try:
        return ffi.new("char[]", encode(text))
    except UnicodeEncodeError:
        raise errors.UsageError(f"text {text!r} is no UTF-8") from None


def nanoseconds(seconds: float) -> int:
    """Nanoseconds of a duration in seconds, at most 292 years; UsageError for a negative one, and for NaN."""
    if not seconds >= 0:
        raise errors.UsageError(f"duration {seconds} s is negative or no number")
    return int(min(seconds * 1e9, 2**63 - 1))
