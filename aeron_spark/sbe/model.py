"""A resolved schema: every type found, every offset known. Spec: 10 §3-7.

Offsets and sizes are bytes. An offset in a composite counts from the composite's beginning, that of a field from its
block's.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Presence = Literal["required", "optional", "constant"]
Raw = int | float


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive type: bytes, `struct` code, range and null value (NaN for floats)."""

    name: str
    size: int
    code: str
    low: Raw
    high: Raw
    null: Raw

    @property
    def is_float(self) -> bool:
        """Whether it is float or double."""
        return self.code in "fd"

    @property
    def is_char(self) -> bool:
        """Whether it is a byte of text."""
        return self.name == "char"

    @property
    def is_unsigned(self) -> bool:
        """Whether it is one of uint8 to uint64."""
        return self.name.startswith("uint")

    def fits(self, value: Raw) -> bool:
        """Whether the wire can carry the value, null values included."""
        if self.is_float:
            return self._packs(value)
        bits = 8 * self.size
        low = 0 if self.is_unsigned or self.is_char else -(1 << (bits - 1))
        return low <= value < low + (1 << bits)

    def _packs(self, value: Raw) -> bool:
        try:
            struct.pack("<" + self.code, value)
        except OverflowError:
            return False
        return True


def _int(name: str, size: int, code: str) -> Primitive:
    bits = 8 * size
    if name.startswith("u"):
        return Primitive(name, size, code, 0, 2**bits - 2, 2**bits - 1)
    return Primitive(name, size, code, 1 - 2 ** (bits - 1), 2 ** (bits - 1) - 1, -(2 ** (bits - 1)))


_FLOAT_MAX = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
_DOUBLE_MAX = struct.unpack("<d", b"\xff\xff\xff\xff\xff\xff\xef\x7f")[0]

PRIMITIVES: Mapping[str, Primitive] = {
    one.name: one
    for one in (
        Primitive("char", 1, "B", 0x20, 0x7E, 0),
        _int("int8", 1, "b"),
        _int("int16", 2, "h"),
        _int("int32", 4, "i"),
        _int("int64", 8, "q"),
        _int("uint8", 1, "B"),
        _int("uint16", 2, "H"),
        _int("uint32", 4, "I"),
        _int("uint64", 8, "Q"),
        Primitive("float", 4, "f", -_FLOAT_MAX, _FLOAT_MAX, math.nan),
        Primitive("double", 8, "d", -_DOUBLE_MAX, _DOUBLE_MAX, math.nan),
    )
}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A `type`: one primitive, or `length` of them. `constant` is a number or a text, and takes no bytes."""

    name: str
    primitive: Primitive
    length: int = 1
    presence: Presence = "required"
    null: Raw = 0
    constant: Raw | str | None = None
    charset: str = ""
    semantic_type: str = ""
    since: int = 0
    deprecated: int = 0
    description: str = ""

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return 0 if self.presence == "constant" else self.primitive.size * self.length

    @property
    def is_text(self) -> bool:
        """A char or an array of char."""
        return self.primitive.is_char


@dataclass(frozen=True, slots=True)
class Enum:
    """An `enum`: names of raw values."""

    name: str
    primitive: Primitive
    null: Raw
    values: tuple[tuple[str, int], ...]
    semantic_type: str = ""
    since: int = 0
    deprecated: int = 0

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return self.primitive.size


@dataclass(frozen=True, slots=True)
class Set:
    """A `set`: names of bits, the least significant is 0."""

    name: str
    primitive: Primitive
    choices: tuple[tuple[str, int], ...]
    semantic_type: str = ""
    since: int = 0
    deprecated: int = 0

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return self.primitive.size


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a composite."""

    name: str
    offset: int
    type: Type

    @property
    def is_constant(self) -> bool:
        """Whether it takes no bytes."""
        return isinstance(self.type, Scalar) and self.type.presence == "constant"


@dataclass(frozen=True, slots=True)
class Composite:
    """A `composite`; `size` is the end of its last member that takes bytes.

    `depth` counts the nesting of composites in it, `leaves` the members that are not composites.
    """

    name: str
    members: tuple[Member, ...]
    size: int
    semantic_type: str = ""
    since: int = 0
    deprecated: int = 0
    depth: int = 1
    leaves: int = 0

    def member(self, *names: str) -> Member | None:
        """The first member that has one of the names."""
        return next((one for name in names for one in self.members if one.name == name), None)


Type = Scalar | Enum | Set | Composite


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a block.

    `since` includes that of its type; `constant` is the value or the enum's name if `presence` is constant.
    """

    name: str
    id: int
    offset: int
    type: Type
    presence: Presence
    since: int
    null: Raw = 0
    constant: Raw | str | None = None
    semantic_type: str = ""
    time_unit: str = ""
    epoch: str = ""
    deprecated: int = 0
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return 0 if self.presence == "constant" else self.type.size


@dataclass(frozen=True, slots=True)
class Role:
    """An integer of a header, dimension or length; a constant one takes no bytes."""

    offset: int
    primitive: Primitive
    constant: int | None
    least: int = 0
    most: int | None = None
    """Upper bound of counts and lengths on encode; None: the primitive's range."""

    @property
    def end(self) -> int:
        """End offset."""
        return self.offset + (self.primitive.size if self.constant is None else 0)


@dataclass(frozen=True, slots=True)
class Dimension:
    """A group's header: where its entry length and its count are, and the counts that newer writers may add."""

    size: int
    block_length: Role
    num_in_group: Role
    num_groups: Role | None
    num_var_data: Role | None


@dataclass(frozen=True, slots=True)
class Data:
    """A `data`: where its length and its bytes begin; text if it has a charset."""

    name: str
    id: int
    length: Role
    data_offset: int
    charset: str
    since: int
    semantic_type: str = ""
    deprecated: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Common part of messages and group entries."""

    name: str
    id: int
    block_length: int
    since: int
    deprecated: int
    semantic_type: str
    fields: tuple[Field, ...]
    groups: tuple[Group, ...]
    data: tuple[Data, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its members, in order."""
        return tuple(one.name for members in (self.fields, self.groups, self.data) for one in members)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(Block):
    """A `message`; `id` is its template id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(Block):
    """A `group`; `block_length` is that of an entry."""

    dimension: Dimension


@dataclass(frozen=True, slots=True)
class Header:
    """The message header: its size, and its members by role. A role is None if the header lacks it. Spec: 10 §5."""

    composite: Composite
    block_length: Role | None
    template_id: Role
    schema_id: Role | None
    version: Role | None
    num_groups: Role | None
    num_var_data: Role | None


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema without errors."""

    package: str
    id: int
    version: int
    semantic_version: str
    description: str
    is_big_endian: bool
    header: Header
    types: Mapping[str, Type]
    messages: Mapping[int, Message]

    def message(self, name: str) -> Message | None:
        """The message with a name."""
        return next((one for one in self.messages.values() if one.name == name), None)
