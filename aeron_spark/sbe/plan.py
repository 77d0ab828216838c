"""A message's definition as the native walk takes it. Spec: 10 §18; the structures are those of `as_sbe.h`."""

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


class Plan:
    """How to walk the messages of one template. `native` is the C structure; what it points to lives as long as this."""

    def __init__(self, schema: Schema, message: Message) -> None:
        self.schema = schema
        self.message = message
        self.levels: list[Level] = []
        self._data: list[Data] = []
        self.root = self._number(message)
        self._c_levels = ffi.new("as_sbe_level[]", len(self.levels))
        self._c_data = ffi.new("as_sbe_data[]", max(1, len(self._data)))
        self._fill_levels()
        self._fill_data()
        self.native = self._fill_plan()

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
            to.first_data = level.first_data
            to.data_count = len(level.block.data)
            if isinstance(level.block, Group):
                dimension = level.block.dimension
                to.header_size = dimension.size
                _put_role(to.block_length, dimension.block_length, 0)
                _put_role(to.count, dimension.num_in_group, 0)
                _put_role(to.groups_told, dimension.num_groups, -1)
                _put_role(to.data_told, dimension.num_var_data, -1)
        for level in self.levels:
            for one, following in zip(level.children, level.children[1:], strict=False):
                self._c_levels[one.number].next_sibling = following.number

    def _fill_data(self) -> None:
        for number, data in enumerate(self._data):
            to = self._c_data[number]
            to.since = data.since
            to.head = max(data.data_offset, data.length.end)
            to.offset = data.data_offset
            _put_role(to.length, data.length, 0)

    def _fill_plan(self) -> Any:
        schema, header = self.schema, self.schema.header
        plan = ffi.new("as_sbe_plan *")
        plan.header_size = header.composite.size
        _put_role(plan.block_length, header.block_length, self.message.block_length)
        _put_role(plan.template_id, header.template_id, 0)
        _put_role(plan.schema_id, header.schema_id, schema.id)
        _put_role(plan.version, header.version, schema.version)
        _put_role(plan.groups_told, header.num_groups, -1)
        _put_role(plan.data_told, header.num_var_data, -1)
        plan.is_big_endian = schema.is_big_endian
        plan.wants_own_version = header.block_length is None
        plan.own_template_id = self.message.id
        plan.own_schema_id = schema.id
        plan.own_version = schema.version
        plan.max_entries = MAX_ENTRIES
        plan.levels = self._c_levels
        plan.level_count = len(self.levels)
        plan.data = self._c_data
        plan.data_count = len(self._data)
        return plan


def _put_role(to: Any, role: Role | None, missing: int) -> None:
    if role is None or role.constant is not None:
        to.constant = missing if role is None else role.constant
        return
    to.offset = role.offset
    to.size = role.primitive.size
    to.is_signed = not (role.primitive.is_unsigned or role.primitive.is_char)


def bits_of(primitive: Primitive, value: Raw) -> int:
    """The bits of a value, as an unsigned number of the primitive's width."""
    return int.from_bytes(struct.pack("<" + primitive.code, value), "little")
