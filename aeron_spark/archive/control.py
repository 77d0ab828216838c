"""How a client connects to an archive, as C takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.callback import Callbacks
from aeron_spark._native.check import c_string, check, nanoseconds
from aeron_spark.archive.credentials import Supplier
from aeron_spark.channel import ChannelUri


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlOptions:
    """How to reach an archive and to prove oneself there; what is None the environment or the default says.

    `timeout` is in seconds. Credentials are in no representation.
    """

    control_channel: str | ChannelUri | None
    control_stream_id: int | None
    response_channel: str | ChannelUri | None
    response_stream_id: int | None
    timeout: float | None
    client_info: str | None
    supplier: Supplier

    def fill(self, options: Any, callbacks: Callbacks) -> list[Any]:
        """Set an `as_archive_client_options`; what is returned has to live as long as C uses it."""
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
        encoded = self.supplier.encoded()
        if encoded:
            kept.append(ffi.from_buffer("uint8_t[]", encoded))
            options.credentials, options.credentials_length = kept[-1], len(encoded)
        if self.supplier.answers_challenges:
            options.on_challenge = lib.asp_on_challenge
            options.on_challenge_context = callbacks.context
        return kept
