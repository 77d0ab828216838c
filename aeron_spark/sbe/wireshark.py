"""Writes a dissector for Wireshark, in Lua, of a schema. Spec: 10 §5-10, §15.

The file is a table and `wireshark.lua`, which walks messages by it. All that comes from the schema is in the table, as
numbers and as strings in which every byte but letters, digits, blanks and `_` is escaped: a name can't become code.
Names of fields in filters are those of the schema with `_` for other characters, `sbe_PACKAGE.Message.field`.
"""

from __future__ import annotations

import codecs
import re
import string
import struct
from collections.abc import Iterator, Mapping
from importlib import resources

from aeron_spark.errors import UsageError
from aeron_spark.sbe.framing import Framing, named
from aeron_spark.sbe.model import (
    Block,
    Composite,
    Data,
    Enum,
    Field,
    Group,
    Header,
    Primitive,
    Raw,
    Role,
    Scalar,
    Schema,
    Set,
    Type,
)
from aeron_spark.sbe.walk import first_on_wire

Lua = int | str | bool | Mapping[str, "Lua"] | list["Lua"]

_PLAIN = f"{string.ascii_letters}{string.digits}_ ".encode("ascii")
_MOST_FIELDS = 100_000
_LONGEST_NAME = 48
#: Charsets that Wireshark 4.0 has, by Python's names for them.
_CHARSETS = {"ascii": "ASCII", "utf-8": "UTF_8", "utf-16-le": "UTF_16LE", "utf-16-be": "UTF_16BE"}
_CHARSETS |= {f"cp{page}": f"WINDOWS_{page}" for page in (1250, 1251, 1252)}
_CHARSETS |= {f"iso8859-{part}": f"ISO_8859_{part}" for part in range(1, 17)}


def dissector(schema: Schema, *, framing: str = "none") -> str:
    """The text of a Lua file that Wireshark and tshark load. `framing`: how messages lie in a payload.

    UsageError: an unknown framing, or a schema of more fields than Wireshark can be expected to hold.
    """
    table = _Writer(schema, named(framing)).table()
    engine = resources.files("aeron_spark.sbe").joinpath("wireshark.lua").read_text("utf-8")
    return f"-- Dissector of an SBE schema, made by `aeron-spark sbe wireshark`.\nlocal S = {{}}\n{table}{engine}"


def protocol_name(schema: Schema) -> str:
    """Name of the protocol in Wireshark, in filters and in `-d udp.port==PORT,NAME`."""
    return "sbe_" + (_word(schema.package).lower() or f"schema_{schema.id}")


def _word(name: str) -> str:
    """A part of a filter's name."""
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")[:_LONGEST_NAME]


def literal(value: Lua) -> str:
    """A value as Lua reads it."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            escaped = (
                chr(byte) if byte in _PLAIN else f"\\{byte:03d}" for byte in value.encode("utf-8", "surrogatepass")
            )
            return '"' + "".join(escaped) + '"'
        case list():
            return "{" + ",".join(map(literal, value)) + "}"
        case _:
            return "{" + ",".join(f"{key}={literal(one)}" for key, one in value.items()) + "}"


class _Writer:
    """Collects rows of fields and of blocks; blocks refer to each other by number, so no table is deep in another."""

    def __init__(self, schema: Schema, framing: Framing) -> None:
        self._schema, self._framing = schema, framing
        self._order = ">" if schema.is_big_endian else "<"
        self._fields: list[Lua] = []
        self._blocks: list[Lua] = []
        self._names: set[str] = set()

    def table(self) -> str:
        """Statements that fill `S`; one a row, so that no function of Lua has too many constants."""
        schema, header = self._schema, self._schema.header
        top: dict[str, Lua] = {
            "proto": protocol_name(schema),
            "title": f"SBE {schema.package or schema.id}",
            "schema_id": schema.id,
            "version": schema.version,
            "big": schema.is_big_endian,
            "header": self._header(header),
            "framing": self._frame(self._framing),
        }
        messages = {
            number: self._block(message, _word(message.name) or "message")
            for number, message in schema.messages.items()
        }
        lines = [f"S.{name} = {literal(value)}" for name, value in top.items()]
        lines += ["S.fields, S.blocks, S.messages = {}, {}, {}"]
        lines += [f"S.fields[{number}] = {literal(one)}" for number, one in enumerate(self._fields, 1)]
        lines += [f"S.blocks[{number}] = {literal(one)}" for number, one in enumerate(self._blocks, 1)]
        lines += [f"S.messages[{number}] = {block}" for number, block in messages.items()]
        return "\n".join(lines) + "\n"

    # -- structures ----------------------------------------------------------------------------------------------------------

    def _header(self, header: Header) -> Lua:
        roles = ("block_length", "template_id", "schema_id", "version", "num_groups", "num_var_data")
        return {
            "size": header.composite.size,
            "members": self._members(header.composite, "header"),
            **{name: _role(role) for name in roles if (role := getattr(header, name)) is not None},
        }

    def _frame(self, framing: Framing) -> Lua:
        return {
            "header": framing.packet_header,
            "count": struct.calcsize(framing.count) if framing.count else 0,
            "count_at": framing.count_at,
            "size": 0 if framing.size in ("", "walk") else struct.calcsize(framing.size),
            "walks": framing.size == "walk",
            "size_at": framing.size_at,
            "size_adds": framing.size_adds,
            "big": framing.size.startswith(">"),
            "skip": framing.skip,
            "marks": [mark.hex().upper() for mark in framing.marks],
            "mark_at": framing.mark_at,
            "mark_of_packet": framing.mark_is_of_packet,
            "quiet": framing.quiet_mark.hex().upper(),
            "quiet_bytes": framing.quiet_bytes,
        }

    def _block(self, block: Block, path: str) -> int:
        """Number of the block's row."""
        row: dict[str, Lua] = {
            "name": block.name,
            "length": block.block_length,
            "members": [self._field(one, path) for one in block.fields],
            "groups": [self._group(one, path) for one in block.groups],
            "data": [self._data(one, path) for one in block.data],
        }
        self._blocks.append(row)
        return len(self._blocks)

    def _group(self, group: Group, path: str) -> Lua:
        dimension = group.dimension
        return {
            "name": group.name,
            "since": group.since,
            "size": dimension.size,
            "block_length": _role(dimension.block_length),
            "count": _role(dimension.num_in_group),
            "block": self._block(group, f"{path}.{_word(group.name)}"),
        }

    def _data(self, data: Data, path: str) -> Lua:
        charset = _charset(data.charset) if data.charset else {}
        return charset | {
            "since": data.since,
            "length": _role(data.length),
            "head": max(data.data_offset, data.length.end),
            "at": data.data_offset,
            "field": self._new(f"{path}.{data.name}", data.name, "string" if charset else "bytes"),
            "name": data.name,
        }

    # -- values --------------------------------------------------------------------------------------------------------------

    def _field(self, field: Field, path: str) -> Lua:
        if field.presence == "constant":
            return {"name": field.name, "constant": str(field.constant), "since": field.since}
        row = self._value(field.type, field.name, field.offset, path, is_optional=field.presence == "optional")
        row |= {"since": field.since, "size": field.size}
        first = first_on_wire(field.type) if isinstance(field.type, Composite) else None
        if field.presence == "optional" and first is not None and not isinstance(first[1], Set):
            row |= {"null_at": first[0], **self._null(first[1].primitive, first[1].null)}
        return row

    def _members(self, of: Composite, path: str) -> list[Lua]:
        return [self._member(one.name, one.offset, one.type, path) for one in of.members]

    def _member(self, name: str, offset: int, of: Type, path: str) -> Lua:
        if isinstance(of, Scalar) and of.presence == "constant":
            return {"name": name, "constant": str(of.constant)}
        is_optional = isinstance(of, Scalar) and of.presence == "optional"
        return self._value(of, name, offset, path, is_optional=is_optional)

    def _value(self, of: Type, name: str, offset: int, path: str, *, is_optional: bool) -> dict[str, Lua]:
        path = f"{path}.{_word(name)}"
        row: dict[str, Lua] = {"name": name, "at": offset, "size": of.size}
        match of:
            case Composite():
                return row | {"members": self._members(of, path)}
            case Set():
                bits: list[Lua] = [
                    {"bit": bit, "name": choice, "field": self._new(f"{path}.{choice}", choice, "boolean")}
                    for choice, bit in of.choices
                ]
                return row | {
                    "field": self._new(path, name, of.primitive.name),
                    "kind": of.primitive.name,
                    "bits": bits,
                }
            case Enum():
                number = self._new(path, name, _number(of.primitive))
                names: list[Lua] = [{"raw": self._hex(of.primitive, raw), "name": one} for one, raw in of.values]
                return row | self._null(of.primitive, of.null) | {
                    "field": number, "kind": _number(of.primitive), "names": names
                }  # fmt: skip
            case Scalar():
                null = self._null(of.primitive, of.null) if is_optional else {}
                if of.is_text:
                    charset = _charset(of.charset or "ascii")
                    field = self._new(path, name, "string" if charset else "bytes")
                    return row | null | charset | {"field": field, "kind": "string"}
                kind = of.primitive.name
                return row | null | {"field": self._new(path, name, kind), "kind": kind, "each": of.primitive.size}

    def _null(self, primitive: Primitive, null: Raw) -> dict[str, Lua]:
        if primitive.is_float and null != null:  # noqa: PLR0124 - NaN
            return {"nan": primitive.name}
        return {"null": self._hex(primitive, null)}

    def _hex(self, primitive: Primitive, raw: Raw) -> str:
        """The bytes on the wire as Wireshark prints them."""
        return struct.pack(self._order + primitive.code, raw).hex().upper()

    def _new(self, path: str, name: str, kind: str) -> int:
        """Number of a new field, whose name in filters is like no other's."""
        if len(self._fields) >= _MOST_FIELDS:
            raise UsageError(
                f"the schema has more than {_MOST_FIELDS:,} fields, too many for a dissector: remove messages from a copy of it"
            )
        parts = [_word(part) or "_" for part in path.split(".")]
        wanted = ".".join([protocol_name(self._schema), *parts])
        found = next(one for one in _candidates(wanted) if one.lower() not in self._names)
        self._names.add(found.lower())
        self._fields.append({"abbr": found, "name": name, "kind": kind})
        return len(self._fields)


def _charset(name: str) -> dict[str, Lua]:
    """What the engine reads text by; nothing where Wireshark has no such charset: then the bytes are shown."""
    known = _CHARSETS.get(codecs.lookup(name).name)
    return {} if known is None else {"charset": known}


def _number(primitive: Primitive) -> str:
    return "uint8" if primitive.is_char else primitive.name


def _role(role: Role) -> Lua:
    if role.constant is not None:
        return {"constant": role.constant}
    return {"at": role.offset, "kind": role.primitive.name}


def _candidates(wanted: str) -> Iterator[str]:
    yield wanted
    number = 2
    while True:
        yield f"{wanted}_{number}"
        number += 1
