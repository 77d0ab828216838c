"""How to decode one message, as bytes: C in another process runs them without Python (`_native/jvm/sbe_program.c`).

They are the structures of `as_sbe.h`, each padded to 8 bytes, in the order in which C takes them. Pointers are zero; what
they point to follows. Both sides are of one build: the bytes begin with the structures' sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from aeron_spark._native._lib import ffi
from aeron_spark.sbe.export import Node, fill, flat, names_of
from aeron_spark.sbe.plan import Plan
from aeron_spark.sbe.run import Tasks

__all__ = ["program"]

_STRUCTURES = ("as_sbe_plan", "as_sbe_level", "as_sbe_data", "as_sbe_framing", "as_sbe_task", "as_sbe_node")
_ALIGNMENT = 8


class _Writer:
    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def put(self, content: bytes) -> None:
        self.parts.append(content + bytes(-len(content) % _ALIGNMENT))

    def number(self, value: int) -> None:
        self.put(value.to_bytes(8, "little", signed=True))

    def structures(self, of: str, native: Any, count: int, pointers: Sequence[str]) -> None:
        copy = ffi.new(f"{of}[]", max(1, count))
        ffi.memmove(copy, native, count * ffi.sizeof(of))
        for one in copy:
            for name in pointers:
                setattr(one, name, ffi.NULL)
        self.put(bytes(ffi.buffer(copy, count * ffi.sizeof(of))))


def program(
    plan: Plan, tasks: Tasks, columns: Sequence[Node], framing: Any, *, skip: int, others: Sequence[int]
) -> bytes:
    """The plan and its `columns`.

    `framing`: `as_sbe_framing`, or None where a payload is a message, of which the first `skip` bytes are left out.
    Messages with the template ids `others` have no row.
    """
    to = _Writer()
    for name in _STRUCTURES:
        to.number(ffi.sizeof(name))
    to.structures("as_sbe_plan", plan.native, 1, ("levels", "data"))
    levels = plan.native.levels
    to.structures("as_sbe_level", levels, len(plan.levels), ("needs",))
    for level in range(len(plan.levels)):
        to.structures("as_sbe_need", levels[level].needs, levels[level].need_count, ())
    to.structures("as_sbe_data", plan.native.data, plan.native.data_count, ())
    _numbers(to, [number for one in plan.later for number in one])
    to.number(0 if framing is None else 1)
    to.number(skip)
    if framing is not None:
        to.structures("as_sbe_framing", framing, 1, ())
    _numbers(to, sorted(others))
    _put_tasks(to, tasks, len(plan.levels))
    nodes = [node for column in columns for node in flat(column)]
    to.number(len(nodes))
    for node in nodes:
        _put_node(to, node)
    return b"".join(to.parts)


def _numbers(to: _Writer, numbers: Sequence[int]) -> None:
    to.number(len(numbers))
    to.put(np.array(numbers, np.int64).tobytes())


def _put_tasks(to: _Writer, tasks: Tasks, level_count: int) -> None:
    native = tasks.native()
    for level in range(level_count):
        of_level = tasks.of_level.get(level, [])
        to.number(len(of_level))
        pointers = ("of_byte", "values", "indices", "out", "validity")
        to.structures("as_sbe_task", native.get(level, ffi.NULL), len(of_level), pointers)
        for task in of_level:
            to.number(len(task.enum))
            for table in task.enum:
                to.put(table.tobytes())


def _put_node(to: _Writer, node: Node) -> None:
    structure = ffi.new("as_sbe_node *")
    fill(structure, node)
    to.structures("as_sbe_node", structure, 1, ())
    has_column = node.column != ffi.NULL
    to.number(1 if has_column else 0)
    if has_column:
        to.structures("as_sbe_column", node.column, 1, ())
    offsets, text = names_of(node)
    to.put(offsets.tobytes())
    to.put(text.tobytes())
    to.number(len(node.bits))
    to.put(node.bits)
