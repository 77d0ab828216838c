"""Compiles a message's definition for the native walk. Spec: 10 §18; the structures are those of `as_sbe.h`."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from aeron_spark._native._lib import ffi
from aeron_spark.sbe.model import Block, Data, Group, Message, Primitive, Raw, Role, Schema
from aeron_spark.sbe.walk import MAX_ENTRIES

NO_LEVEL = -1


@dataclass(slots=True)
class Level:
    """The root block or a group, with its number, its children and the number of its first data."""

    number: int
    block: Block
    children: list[Level] = field(default_factory=list)
    first_data: int = 0
    parent: Level | None = None

    def path_of(self, member: str) -> str:
        """A member's name, prefixed with the names of the enclosing groups."""
        return member if self.parent is None else self.parent.path_of(f"{self.block.name}.{member}")

    @property
    def needs(self) -> list[tuple[int, int]]:
        """Version and end of each field that a later version added."""
        fields = [one for one in self.block.fields if one.since > 0 and one.presence != "constant"]
        return sorted({(one.since, one.offset + one.size) for one in fields})


class Plan:
    """Walk plan for one template's messages. `native` is the C structure; the memory it uses lives as long as this."""

    def __init__(
        self, schema: Schema, message: Message, *, strict_blocks: bool = False, max_entries: int = MAX_ENTRIES
    ) -> None:
        self.schema = schema
        self.message = message
        self._strict_blocks, self._max_entries = strict_blocks, max_entries
        self._keep: list[Any] = []
        self.levels: list[Level] = []
        self._data: list[Data] = []
        self.root = self._number(message)
        self._c_levels = ffi.new("as_sbe_level[]", len(self.levels))
        self._c_data = ffi.new("as_sbe_data[]", max(1, len(self._data)))
        self._fill_levels()
        self._fill_data()
        self.native = self._fill_plan()
        self.later = [(level.number, since, end) for level in self.levels for since, end in level.needs]
        """Level, version and end of each field that a later version added."""

    def _number(self, block: Block, parent: Level | None = None) -> Level:
        level = Level(len(self.levels), block, parent=parent)
        self.levels.append(level)
        level.children = [self._number(group, level) for group in block.groups]
        level.first_data = len(self._data)
        self._data.extend(block.data)
        return level

    def _fill_levels(self) -> None:
        for level in self.levels:
            to = self._c_levels[level.number]
            to.first_child = level.children[0].number if level.children else NO_LEVEL
            to.next_sibling = NO_LEVEL
            to.since = level.block.since
            to.need = max(
                (one.offset + one.size for one in level.block.fields if one.since == 0 and one.presence != "constant"),
                default=0,
            )
            if self._strict_blocks and level.needs:
                needs = ffi.new("as_sbe_need[]", level.needs)
                self._keep.append(needs)
                to.needs, to.need_count = needs, len(level.needs)
            to.first_data = level.first_data
            to.data_count = len(level.block.data)
            if isinstance(level.block, Group):
                dimension = level.block.dimension
                to.header_size = dimension.size
                self.put_role(to.block_length, dimension.block_length, 0)
                self.put_role(to.count, dimension.num_in_group, 0)
                self.put_role(to.groups_told, dimension.num_groups, -1)
                self.put_role(to.data_told, dimension.num_var_data, -1)
        for level in self.levels:
            for one, following in zip(level.children, level.children[1:], strict=False):
                self._c_levels[one.number].next_sibling = following.number

    def _fill_data(self) -> None:
        for number, data in enumerate(self._data):
            to = self._c_data[number]
            to.since = data.since
            to.head = max(data.data_offset, data.length.end)
            to.offset = data.data_offset
            self.put_role(to.length, data.length, 0)

    def _fill_plan(self) -> Any:
        schema, header = self.schema, self.schema.header
        plan = ffi.new("as_sbe_plan *")
        self.put_header(plan, schema)
        self.put_role(plan.block_length, header.block_length, self.message.block_length)
        self.put_role(plan.schema_id, header.schema_id, schema.id)
        self.put_role(plan.version, header.version, schema.version)
        self.put_role(plan.groups_told, header.num_groups, -1)
        self.put_role(plan.data_told, header.num_var_data, -1)
        plan.wants_own_version = header.block_length is None
        plan.own_template_id = self.message.id
        plan.own_schema_id = schema.id
        plan.own_version = schema.version
        plan.max_entries = self._max_entries
        plan.levels = self._c_levels
        plan.level_count = len(self.levels)
        plan.data = self._c_data
        plan.data_count = len(self._data)
        return plan

    @classmethod
    def put_header(cls, plan: Any, schema: Schema) -> None:
        """Set the part of a plan that is needed to read template ids."""
        plan.header_size = schema.header.composite.size
        plan.is_big_endian = schema.is_big_endian
        cls.put_role(plan.template_id, schema.header.template_id, 0)

    @staticmethod
    def put_role(to: Any, role: Role | None, missing: int) -> None:
        """Where C finds a number, or the substitute for one that is not on the wire."""
        if role is None or role.constant is not None:
            to.constant, to.size = (missing if role is None else role.constant), 0
            return
        to.offset = role.offset
        to.size = role.primitive.size
        to.is_signed = not (role.primitive.is_unsigned or role.primitive.is_char)


def bits_of(primitive: Primitive, value: Raw) -> int:
    """The bits of a value, as an unsigned number of the primitive's width."""
    return int.from_bytes(struct.pack("<" + primitive.code, value), "little")
