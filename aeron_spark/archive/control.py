"""Connection options of an archive client, converted for C."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypedDict

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.callback import Callbacks
from aeron_spark._native.check import c_string, check, nanoseconds
from aeron_spark.archive.credentials import Credentials, Supplier
from aeron_spark.channel import ChannelUri
from aeron_spark.client import Client
from aeron_spark.types import NULL_VALUE, Position


class ClientOf:
    """The Aeron client that an archive object uses: the given one, or an owned one, which closes with the object."""

    __slots__ = ("_is_own", "client")

    def __init__(
        self, given: Client | None, *, aeron_dir: str | os.PathLike[str] | None, name: str, timeout: float | None
    ) -> None:
        self._is_own = given is None
        self.client = given or Client(aeron_dir, name=name, timeout=timeout)

    @contextmanager
    def opening(self) -> Iterator[Any]:
        """Pointer to the client while its user opens; a failure inside closes the client if it is owned."""
        try:
            with self.client._use() as pointer:
                yield pointer
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the client if it is owned; the user has closed."""
        if self._is_own:
            self.client.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlOptions:
    """How to reach an archive and authenticate there; None selects the environment's value or the default.

    `timeout` is in seconds. `repr` omits credentials.
    """

    control_channel: str | ChannelUri | None = None
    control_stream_id: int | None = None
    response_channel: str | ChannelUri | None = None
    response_stream_id: int | None = None
    timeout: float | None = None
    client_info: str | None = None
    credentials: Credentials | None = field(default=None, repr=False)

    def fill(self, options: Any, callbacks: Callbacks, supplier: Supplier) -> list[Any]:
        """Fill an `as_archive_client_options`; the returned objects must live as long as C uses it."""
        lib.as_archive_client_options_init(options)
        check(lib.as_archive_client_options_load_environment(options))
        kept: list[Any] = []
        for name in ("control_channel", "response_channel", "client_info"):
            text = getattr(self, name)
            if text is not None:
                kept.append(c_string(str(text)))
                setattr(options, name, kept[-1] if str(text) else ffi.NULL)
        for name in ("control_stream_id", "response_stream_id"):
            if getattr(self, name) is not None:
                setattr(options, name, getattr(self, name))
        if self.timeout is not None:
            options.message_timeout_ns = nanoseconds(self.timeout)
        encoded = supplier.encoded()
        if encoded:
            kept.append(ffi.from_buffer("uint8_t[]", encoded))
            options.credentials, options.credentials_length = kept[-1], len(encoded)
        if supplier.answers_challenges:
            options.on_challenge = lib.asp_on_challenge
            options.on_challenge_context = callbacks.context
        return kept


class ControlSettings(TypedDict, total=False):
    """`ControlOptions` as keyword arguments."""

    control_channel: str | ChannelUri | None
    control_stream_id: int | None
    response_channel: str | ChannelUri | None
    response_stream_id: int | None
    timeout: float | None
    client_info: str | None
    credentials: Credentials | None


def or_null(value: int | None) -> int:
    """C's null value for None."""
    return NULL_VALUE if value is None else value


def position_or_none(value: int) -> Position | None:
    """None for C's null value, else the position."""
    return None if value == NULL_VALUE else Position(value)
