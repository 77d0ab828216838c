"""Options of SBE messages, read and written: the decoder's and the encoder's, checked before a query starts.

They are those of ``aeron_spark.sbe``, which does the work; here is what they are called, and what has no meaning beside what.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from aeron_spark.errors import UsageError
from aeron_spark.names import nearest, pairs

if TYPE_CHECKING:
    from aeron_spark.sbe import Decoder, Encoder, Schema

__all__ = ["WRITING", "SbeOptions", "encoder_of", "is_schema_text", "load_schema"]

#: Of the decoder's options those with a few choices, and what they are called here.
_CHOICES = {
    "sbeUint64": "uint64",
    "sbeEnums": "enums",
    "sbeUnknownEnum": "unknown_enum",
    "sbeSets": "sets",
    "sbeTimestamps": "timestamps",
    "sbeMonthYears": "month_years",
    "sbeChars": "chars",
    "sbeByteArrays": "byte_arrays",
    "sbeBadText": "bad_text",
    "sbeConstants": "constants",
}
_FLAGS = {"sbeStrictBlocks": "strict_blocks", "sbeDropDeprecated": "drop_deprecated", "sbeHeader": "header"}
#: Framings of messages in payloads: for reading, and for times out of a field.
_WIRE = ("sbeFraming", "sbeSkip", "sbeHeaderType", "sbeHeaderMap")
MAX_SKIP = 1 << 20
#: Options of a write.
WRITING = ("sbeSchema", "sbeMessage", "sbeFraming", "sbeHeaderType", "sbeHeaderMap", "sbeVersion")


class Given(Protocol):
    """Options as given, by their documented names."""

    def text(self, name: str) -> str | None: ...

    def refuse(self, name: str, why: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SbeOptions:
    """How messages are read. ``decoding``: the decoder's options of one value; ``times``: fields and their units."""

    schemas: tuple[str, ...]
    message: str | None
    on_error: str
    header_type: str | None
    header_map: tuple[tuple[str, str], ...]
    framing: str
    skip: int
    explode: str | None
    decoding: tuple[tuple[str, Any], ...]

    NAMES = (
        "sbeSchema",
        "sbeMessage",
        "onSbeError",
        "sbeOthers",
        *_WIRE,
        "sbeExplode",
        "sbeDecimals",
        "sbeTimes",
        "sbeEmptyAsNull",
        "sbeMaxEntries",
        *_CHOICES,
        *_FLAGS,
    )

    @classmethod
    def parse(
        cls, given: Given, schemas: tuple[str, ...], *, is_payload: bool, is_time_source: bool
    ) -> SbeOptions | None:
        """UsageError: an option that has no meaning here, contradicts another, or is misspelt. None: SBE is not asked for."""
        if not is_payload:
            allowed = ("sbeSchema", *_WIRE) if is_time_source else ()
            for name in cls.NAMES:
                if name not in allowed:
                    given.refuse(name, "it is for payload=sbe")
            if not is_time_source:
                return None
        from aeron_spark.sbe.options import CHOICES, UNITS

        message = given.text("sbeMessage")
        if message is None:
            given.refuse("sbeExplode", "it needs sbeMessage, the message whose group it names")
            given.refuse("sbeOthers", "without sbeMessage there is no other message")
        decoding: dict[str, Any] = {field: _choice(given, name, CHOICES[field]) for name, field in _CHOICES.items()}
        if decoding["enums"] == "values":
            given.refuse("sbeUnknownEnum", "with sbeEnums=values no value is unknown")
        decoding |= {field: _flag(given, name) for name, field in _FLAGS.items()}
        decoding["others"] = _choice(given, "sbeOthers", ("skip", "error"))
        decoding["decimals"] = _decimals(given)
        if given.text("sbeMaxEntries") is not None:
            decoding["max_entries"] = _number(given, "sbeMaxEntries", 1, (1 << 31) - 1)
        decoding["times"] = _pairs(given, "sbeTimes", "sentAt:ns,createdAt:us")
        for field, unit in decoding["times"]:
            if unit not in UNITS:
                raise UsageError(f"option sbeTimes: the unit {unit!r} of {field} is not one of {', '.join(UNITS)}")
        decoding["empty_as_null"] = tuple(
            one.strip() for one in (given.text("sbeEmptyAsNull") or "").split(",") if one.strip()
        )
        return cls(
            schemas=schemas,
            message=message,
            on_error=_choice(given, "onSbeError", ("fail", "null", "drop")),
            header_type=given.text("sbeHeaderType"),
            header_map=_pairs(given, "sbeHeaderMap", "templateId:messageTypeId"),
            framing=_framing(given),
            skip=_number(given, "sbeSkip", 0, MAX_SKIP),
            explode=given.text("sbeExplode"),
            decoding=tuple(sorted(decoding.items())),
        )

    def load(self) -> tuple[Schema, ...]:
        """The schemas, in their files or given as text."""
        return tuple(load_schema(one, self.header_type, self.header_map) for one in self.schemas)

    def decoder(self, schemas: Sequence[Schema], columns: Sequence[str] | None = None, **others: Any) -> Decoder:
        """A decoder by the options, for Spark; ``others`` replace the decoder's own."""
        from aeron_spark.sbe import Decoder

        chosen = {
            **dict(self.decoding), "message": self.message, "on_error": "null", "framing": self.framing, "skip": self.skip,
            "explode": self.explode, "spark": True, **others,
        }  # fmt: skip
        try:
            return Decoder(schemas, columns=columns, **chosen)
        except UsageError as error:
            raise UsageError(f"payload=sbe, {', '.join(map(_name, self.schemas))}: {error}") from None


def encoder_of(given: Given, path: str) -> Encoder:
    """The options of a write: rows' columns are checked and encoded by them."""
    from aeron_spark.sbe import Encoder

    message = given.text("sbeMessage")
    schema = load_schema(path, given.text("sbeHeaderType"), _pairs(given, "sbeHeaderMap", "templateId:messageTypeId"))
    names = [one.name for one in schema.messages.values()]
    if message is None:
        raise UsageError(f"payload=sbe needs sbeMessage, the message that rows become; there are {', '.join(names)}")
    if message not in names:
        raise UsageError(
            f"option sbeMessage={message!r}: there is no such message in the schema; it has {', '.join(names)}"
            f"{nearest(message, names)}"
        )
    text = given.text("sbeVersion")
    version = None if text is None else _number(given, "sbeVersion", 0, schema.version)
    try:
        return Encoder(schema, message, framing=_framing(given), version=version)
    except UsageError as error:
        raise UsageError(f"payload=sbe, {_name(path)}: {error}") from None


def load_schema(path: str, header_type: str | None = None, header_map: Sequence[tuple[str, str]] = ()) -> Schema:
    """The schema of an XML file, or its text; UsageError names what is wrong with it, and the line."""
    if is_schema_text(path):
        return _load(path, header_type, tuple(header_map), ())
    try:
        stat = Path(path).stat()
        stamp = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    except OSError as error:
        raise UsageError(
            f"option sbeSchema={path} cannot be read ({error.strerror}): give the path of the schema's XML, as it is seen here"
        ) from None
    return _load(path, header_type, tuple(header_map), stamp)


@functools.lru_cache(maxsize=16)
def _load(
    path: str, header_type: str | None, header_map: tuple[tuple[str, str], ...], _stamp: tuple[int, ...]
) -> Schema:
    from aeron_spark.sbe import SchemaError, load, parse

    # Each micro-batch is planned anew, in a process that stays; the stamp detects a changed file.
    read = parse if is_schema_text(path) else load
    try:
        return read(path, header_type=header_type, header_map=dict(header_map))
    except SchemaError as error:
        raise UsageError(f"option sbeSchema={_name(path)}: {error}") from None


def is_schema_text(given: str) -> bool:
    """The schema itself and not its path: for sessions whose machines share no files with the client."""
    return given.startswith("<")


def _name(given: str) -> str:
    return "<the schema given as text>" if is_schema_text(given) else given


# -- texts ---------------------------------------------------------------------------------------------------------------


def _choice(given: Given, name: str, choices: Sequence[str]) -> str:
    """The first is the default."""
    value = (given.text(name) or choices[0]).strip().lower()
    if value not in choices:
        raise UsageError(
            f"option {name}={value!r} is unknown, choose one of {', '.join(choices)}{nearest(value, choices)}"
        )
    return value


def _flag(given: Given, name: str) -> bool:
    return _choice(given, name, ("false", "true")) == "true"


def _number(given: Given, name: str, low: int, high: int) -> int:
    text = (given.text(name) or str(low)).strip()
    if not text.isdecimal() or not low <= int(text) <= high:
        raise UsageError(f"option {name}={text!r} is no whole number from {low} to {high}")
    return int(text)


def _pairs(given: Given, name: str, example: str) -> tuple[tuple[str, str], ...]:
    """``a:b,c:d``."""
    return tuple(pairs(f"option {name}", given.text(name) or "", example).items())


def _framing(given: Given) -> str:
    from aeron_spark.sbe.framing import named

    text = (given.text("sbeFraming") or "none").strip()
    try:
        named(text)
    except UsageError as error:
        raise UsageError(f"option sbeFraming={text!r}: {error}") from None
    return text


def _decimals(given: Given) -> str:
    from aeron_spark.sbe import Options

    text = (given.text("sbeDecimals") or "exact").strip().lower()
    try:
        Options(decimals=text)
    except UsageError as error:
        raise UsageError(f"option sbeDecimals={text!r}: {error}{nearest(text, ('exact', 'double', 'parts'))}") from None
    return text
