"""Channel URIs: `["aeron-spy:"] "aeron:" ("ipc" | "udp") ["?" key=value ("|" key=value)*]`.

Only the text is handled here; which keys a channel may carry, and with which values, the driver decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self

from aeron_spark.errors import UsageError

MAX_LENGTH = 4095
_SPY = "aeron-spy:"
_SCHEME = "aeron:"


@dataclass(frozen=True, slots=True)
class ChannelUri:
    """A channel, to read or to build.

    >>> str(ChannelUri.ipc(term_length="64k", alias="demo"))
    'aeron:ipc?term-length=64k|alias=demo'
    """

    media: str
    params: Mapping[str, str] = field(default_factory=dict)
    is_spy: bool = False

    def __post_init__(self) -> None:
        if self.media not in ("ipc", "udp"):
            raise UsageError(f"channel media {self.media!r} is unknown: use 'ipc' or 'udp'")
        for key, value in self.params.items():
            for text, what in ((key, "key"), (value, f"value of {key!r}")):
                if not text or any(char in text for char in "?|\0") or (what == "key" and "=" in text):
                    raise UsageError(f"channel {what} {text!r} can't be written: it is empty or holds one of ? | =")
        object.__setattr__(self, "params", MappingProxyType(dict(self.params)))
        if len(str(self).encode("utf-8", "surrogatepass")) > MAX_LENGTH:
            raise UsageError(f"channel is longer than {MAX_LENGTH} bytes: {str(self)[:80]}...")

    @classmethod
    def ipc(cls, **params: object) -> Self:
        """Shared memory of one machine. Keys are given with `_` for `-`: `term_length="64k"`."""
        return cls("ipc", _params(params))

    @classmethod
    def udp(cls, endpoint: str, **params: object) -> Self:
        """UDP to or from `endpoint` ("host:port")."""
        return cls("udp", {"endpoint": endpoint, **_params(params)})

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a channel; UsageError names what is wrong with it."""
        rest = text.removeprefix(_SPY)
        if not rest.startswith(_SCHEME):
            raise UsageError(f"channel {text!r} must begin with 'aeron:' or 'aeron-spy:aeron:'")
        media, _, query = rest.removeprefix(_SCHEME).partition("?")
        params: dict[str, str] = {}
        for part in query.split("|") if query else ():
            key, separator, value = part.partition("=")
            if not separator:
                raise UsageError(f"channel {text!r}: parameter {part!r} has no '='")
            params[key] = value
        return cls(media, params, is_spy=text.startswith(_SPY))

    def with_params(self, **params: object) -> Self:
        """Copy with parameters set, or removed where the value is None."""
        merged = {**self.params, **_params(params)}
        for key, value in params.items():
            if value is None:
                merged.pop(key.replace("_", "-"), None)
        return type(self)(self.media, merged, self.is_spy)

    def spy(self) -> Self:
        """Subscribe channel of a spy on this publication channel."""
        return type(self)(self.media, self.params, is_spy=True)

    def __str__(self) -> str:
        query = "|".join(f"{key}={value}" for key, value in self.params.items())
        return f"{_SPY if self.is_spy else ''}{_SCHEME}{self.media}{'?' if query else ''}{query}"


def _params(params: Mapping[str, object]) -> dict[str, str]:
    return {
        key.replace("_", "-"): str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in params.items()
        if value is not None
    }
