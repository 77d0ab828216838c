"""Decodes one message at a time, without options; used by `aeron-spark sbe decode`. Spec: 10 §5-10, §13.

Values are canonical: members as on the wire, nothing combined. Every length is checked against the remaining bytes
before anything is read or allocated; a message is decoded within its own `[start, end)`.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from aeron_spark.errors import AeronError
from aeron_spark.sbe.model import (
    Block,
    Composite,
    Data,
    Enum,
    Field,
    Group,
    Message,
    Primitive,
    Raw,
    Role,
    Scalar,
    Schema,
    Set,
    Type,
)

MAX_ENTRIES = 65_534
MAX_SKIP_DEPTH = 64
"""Maximum nesting depth of unknown groups."""
MAX_BLOCK = 2**31 - 1

Value = Any


class DecodeError(AeronError):
    """A message that can't be decoded: the error of Spec: 10 §13, and the offset in the message where it occurred."""

    def __init__(self, kind: str, offset: int, text: str) -> None:
        self.kind = kind
        self.offset = offset
        super().__init__(f"{kind} at offset {offset}: {text}")


@dataclass(frozen=True, slots=True)
class Decoded:
    """A message: its definition, its header, the number of bytes it took, and its values by name.

    `header`: all members of the header, by name.
    """

    message: Message
    template_id: int
    schema_id: int
    version: int
    block_length: int
    consumed: int
    values: dict[str, Value]
    header: dict[str, Value]


def _is_null(primitive: Primitive, raw: Raw, null: Raw) -> bool:
    if not primitive.is_float:
        return raw == null
    # For a float whose null value is NaN, any NaN is null; other null values are compared bit by bit.
    if math.isnan(null):
        return math.isnan(raw)
    return struct.pack(primitive.code, raw) == struct.pack(primitive.code, null)


def _number(primitive: Primitive, raw: Raw) -> Value:
    if not primitive.is_float:
        return raw
    if math.isnan(raw):
        return "NaN"
    if math.isinf(raw):
        return "Infinity" if raw > 0 else "-Infinity"
    # The shortest decimal that parses to the same float.
    return float(str(np.float32(raw))) if primitive.name == "float" else raw


def first_on_wire(of: Composite, offset: int = 0) -> tuple[int, Scalar | Enum | Set] | None:
    """Offset and type of a composite's first member that takes bytes, however deep. Spec: 10 §3.5."""
    for member in of.members:
        if isinstance(member.type, Composite):
            found = first_on_wire(member.type, offset + member.offset)
            if found is not None:
                return found
        elif member.type.size:
            return offset + member.offset, member.type
    return None


def _text(content: bytes, charset: str) -> str:
    return content.decode(charset or "ascii", "replace")


class Walker:
    """Decoder of one schema's messages.

    `strict_blocks`: a field that its version has but its block cuts off is an error, never null. `max_entries` bounds a
    message's entries that take no bytes. Thread rule: any number of threads.
    """

    def __init__(self, schema: Schema, *, strict_blocks: bool = False, max_entries: int = MAX_ENTRIES) -> None:
        self.schema = schema
        self.strict_blocks = strict_blocks
        self.max_entries = max_entries
        self.order = ">" if schema.is_big_endian else "<"

    def decode(self, buffer: bytes | memoryview, start: int = 0, end: int | None = None) -> Decoded:
        """The message that begins at `start`. Raises DecodeError."""
        return _Walk(self, memoryview(buffer).cast("B"), start, len(buffer) if end is None else end).message()


class _Walk:
    """The walk over one message: `at` is the next byte."""

    def __init__(self, walker: Walker, buffer: memoryview, start: int, end: int) -> None:
        self.schema = walker.schema
        self._walker = walker
        self._buffer = buffer
        self._start = start
        self._end = end
        self._order = walker.order
        self._empty_entries = 0
        self.at = start
        self.version = 0

    # -- reading ---------------------------------------------------------------------------------------------------------

    def _fail(self, kind: str, text: str) -> DecodeError:
        return DecodeError(kind, self.at - self._start, text)

    def _need(self, count: int, kind: str, what: str) -> None:
        if count > self._end - self.at:
            raise self._fail(kind, f"{what} of {count} bytes, of which {max(0, self._end - self.at)} are there")

    def _raw(self, primitive: Primitive, at: int) -> Raw:
        value: Raw = struct.unpack_from(self._order + primitive.code, self._buffer, at)[0]
        return value

    def _role(self, role: Role | None, base: int, missing: int) -> int:
        """Value from the wire, its constant, or `missing` if it is absent."""
        if role is None:
            return missing
        return int(self._raw(role.primitive, base + role.offset)) if role.constant is None else role.constant

    # -- message -----------------------------------------------------------------------------------------------------------

    def message(self) -> Decoded:
        schema, header = self.schema, self.schema.header
        self._need(header.composite.size, "SHORT_HEADER", "a message header")
        base = self.at
        schema_id = self._role(header.schema_id, base, schema.id)
        template_id = self._role(header.template_id, base, 0)
        self.version = self._role(header.version, base, schema.version)
        if schema_id != schema.id:
            raise self._fail("UNKNOWN_SCHEMA", f"schema id {schema_id}, not {schema.id}")
        message = schema.messages.get(template_id)
        if message is None:
            raise self._fail("UNKNOWN_TEMPLATE", f"template id {template_id}")
        if header.block_length is None and self.version != schema.version:
            raise self._fail(
                "HEADER_INCOMPLETE", f"version {self.version} without a block length, the schema is {schema.version}"
            )
        block_length = self._role(header.block_length, base, message.block_length)
        members = self._members(header.composite, base)
        self.at += header.composite.size
        try:
            self._need(block_length, "SHORT_BLOCK", "a root block")
            counts = self._counts(header.num_groups, header.num_var_data, base)
            values = self._block(message, block_length, "BLOCK_TOO_SMALL", counts)
        except DecodeError as failure:
            if self.version > schema.version and failure.kind != "NEWER_VERSION":
                text = f"{failure}; version {self.version} is newer than the schema's {schema.version}"
                raise DecodeError("NEWER_VERSION", failure.offset, text) from None
            raise
        return Decoded(
            message, template_id, schema_id, self.version, block_length, self.at - self._start, values, members
        )

    def _counts(self, groups: Role | None, data: Role | None, base: int) -> tuple[int, int]:
        """Number of groups and data after a block; -1, as many as the schema has. Only newer versions have more."""
        if self.version <= self.schema.version:
            return -1, -1
        return self._role(groups, base, -1), self._role(data, base, -1)

    def _block(self, block: Block, length: int, too_small: str, counts: tuple[int, int]) -> dict[str, Value]:
        base = self.at
        values = {field.name: self._field(field, base, length, too_small) for field in block.fields}
        self.at = base + length
        for group in block.groups:
            values[group.name] = self._group(group) if group.since <= self.version else None
        self._skip_rest(block, counts[0] - len(block.groups), 0, depth=0)
        for one in block.data:
            values[one.name] = self._data(one) if one.since <= self.version else None
        self._skip_rest(block, 0, counts[1] - len(block.data), depth=0)
        return values

    def _skip_rest(self, block: Block, groups: int, data: int, *, depth: int) -> None:
        for _ in range(groups):
            start = self.at
            self._skip_group(block, depth)
            self._take_empty(self.at == start)
        for _ in range(data):
            start = self.at
            self._skip_data(block)
            self._take_empty(self.at == start)

    def _skip_group(self, block: Block, depth: int) -> None:
        """Skip an unknown group: its header has its level's dimension encoding and states its own content."""
        if not block.groups or block.groups[0].dimension.num_groups is None or depth >= MAX_SKIP_DEPTH:
            raise self._fail("NEWER_VERSION", "an unknown group follows, and nothing says how long it is")
        dimension = block.groups[0].dimension
        self._need(dimension.size, "SHORT_GROUP_HEADER", "a group header")
        base = self.at
        length, count = self._role(dimension.block_length, base, 0), self._role(dimension.num_in_group, base, 0)
        counts = self._counts(dimension.num_groups, dimension.num_var_data, base)
        self.at += dimension.size
        is_bare = length == 0 and max(counts) <= 0
        self._check_entries(length, count, is_bare=is_bare)
        for _ in range(0 if is_bare else count):
            start = self.at
            self._need(length, "SHORT_GROUP_ENTRY", "a group entry")
            self.at += length
            self._skip_rest(block, *counts, depth=depth + 1)
            self._take_empty(self.at == start)

    def _skip_data(self, block: Block) -> None:
        if not block.data:
            raise self._fail("NEWER_VERSION", "unknown data follows, and nothing says how it is written")
        self._data(block.data[0])

    # -- group and data --------------------------------------------------------------------------------------------------------

    def _check_entries(self, length: int, count: int, *, is_bare: bool) -> None:
        """`is_bare`: entries are known to take no bytes."""
        if count < 0 or (count > 0 and length > MAX_BLOCK):
            raise self._fail("SHORT_GROUP_ENTRY", f"{count} entries of {length} bytes")
        self._take_empty(count if is_bare else 0)

    def _take_empty(self, count: int) -> None:
        # The remaining bytes bound entries that take bytes: the walk ends at the first entry that is cut off.
        if count > self._walker.max_entries - self._empty_entries:
            raise self._fail("LIMIT", f"more than {self._walker.max_entries} entries of no bytes in a message")
        self._empty_entries += count

    def _group(self, group: Group) -> list[dict[str, Value]]:
        dimension = group.dimension
        self._need(dimension.size, "SHORT_GROUP_HEADER", f"the header of group {group.name}")
        base = self.at
        length, count = self._role(dimension.block_length, base, 0), self._role(dimension.num_in_group, base, 0)
        counts = self._counts(dimension.num_groups, dimension.num_var_data, base)
        self.at += dimension.size
        is_bare = length == 0 and not group.groups and not group.data and max(counts) <= 0
        self._check_entries(length, count, is_bare=is_bare)
        entries = []
        for _ in range(count):
            start = self.at
            self._need(length, "SHORT_GROUP_ENTRY", f"an entry of group {group.name}")
            entries.append(self._block(group, length, "GROUP_BLOCK_TOO_SMALL", counts))
            self._take_empty(self.at == start and not is_bare)
        return entries

    def _data(self, data: Data) -> Value:
        head = max(data.data_offset, data.length.end)
        self._need(head, "SHORT_DATA_LENGTH", f"the length of {data.name}")
        length = self._role(data.length, self.at, 0)
        self.at += data.data_offset
        self._need(length, "SHORT_DATA", f"{data.name}")
        content = bytes(self._buffer[self.at : self.at + length])
        self.at += length
        return _text(content, data.charset) if data.charset else {"hex": content.hex()}

    # -- field -----------------------------------------------------------------------------------------------------------------

    def _field(self, field: Field, base: int, length: int, too_small: str) -> Value:
        if field.presence == "constant":
            return field.constant
        if field.since > self.version:
            return None
        if field.offset + field.size > length:
            if field.since > 0 and not self._walker.strict_blocks:
                return None
            raise self._fail(
                too_small, f"{field.name} ends at {field.offset + field.size} in a block of {length} bytes"
            )
        at = base + field.offset
        is_optional = field.presence == "optional"
        if isinstance(field.type, Composite) and is_optional and self._is_null_composite(field.type, at):
            return None
        return self._value(field.type, at, is_optional=is_optional)

    def _value(self, of: Type, at: int, *, is_optional: bool) -> Value:
        match of:
            case Scalar():
                return self._scalar(of, at, is_optional=is_optional)
            case Enum():
                return self._enum(of, at)
            case Set():
                return self._set(of, at)
            case Composite():
                return self._members(of, at)

    def _scalar(self, of: Scalar, at: int, *, is_optional: bool) -> Value:
        primitive = of.primitive
        if primitive.is_char:
            content = bytes(self._buffer[at : at + of.length])
            if is_optional and content and content[0] == of.null:
                return None
            return _text(content.partition(b"\0")[0], of.charset)
        values = []
        for index in range(of.length):
            raw = self._raw(primitive, at + index * primitive.size)
            values.append(None if is_optional and _is_null(primitive, raw, of.null) else _number(primitive, raw))
        return values[0] if of.length == 1 else values

    def _enum(self, of: Enum, at: int) -> Value:
        raw = int(self._raw(of.primitive, at))
        if raw == of.null:
            return None
        for name, value in of.values:
            if value == raw:
                return name
        return {"unknown": raw}

    def _set(self, of: Set, at: int) -> Value:
        raw = int(self._raw(of.primitive, at))
        return {"raw": raw, "names": [name for name, bit in of.choices if raw >> bit & 1]}

    def _members(self, of: Composite, at: int) -> dict[str, Value]:
        return {member.name: self._member(member.type, at + member.offset) for member in of.members}

    def _member(self, of: Type, at: int) -> Value:
        if isinstance(of, Scalar) and of.presence == "constant":
            return of.constant
        return self._value(of, at, is_optional=isinstance(of, Scalar) and of.presence == "optional")

    def _is_null_composite(self, of: Composite, at: int) -> bool:
        """Spec: 10 §3.5 - null when its first member that takes bytes holds its null value."""
        first = first_on_wire(of, at)
        if first is None:
            return False
        at, member = first
        if isinstance(member, Set):
            return False
        return _is_null(member.primitive, self._raw(member.primitive, at), member.null)
