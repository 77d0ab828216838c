"""Columns that C makes alone, all in one call.

For small batches, or messages of many columns, Python would take longer than C. Most columns qualify. If one does not,
or an enum has a value without a name, each column is made by its own function.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from aeron_spark._native._lib import ffi, lib
from aeron_spark.sbe.run import Run, Scratch, check_batch, pointer


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An array: `as_sbe_node` with its children. `index` is that of a task of its level, or of a data element."""

    kind: int
    level: int
    parent: int = 0
    index: int = 0
    width: int = 0
    repeat: int = 1
    charset: int = 0
    is_trimmed: bool = False
    value: bytes = b""
    column: Any = ffi.NULL
    names: tuple[str, ...] = ()
    bits: bytes = b""
    children: tuple[Node, ...] = ()

    def named(self, names: list[str]) -> Node:
        """A node of numbers that are indices of names."""
        return replace(self, kind=lib.AS_SBE_NODE_ENUM, names=tuple(names))


def struct_node(level: int, children: list[Node | None], column: Any = ffi.NULL) -> Node | None:
    """A struct, if all its fields are nodes; with a `column`, null where that is not there."""
    known = tuple(one for one in children if one is not None)
    if len(known) < len(children):
        return None
    return Node(kind=lib.AS_SBE_NODE_STRUCT, level=level, children=known, column=column)


def flat(node: Node) -> Iterator[Node]:
    """A node and what is below it, in the order of C."""
    yield node
    for child in node.children:
        yield from flat(child)


def fill(to: Any, node: Node) -> None:
    """Fill the C structure, except its pointers."""
    to.kind, to.level, to.parent, to.index = node.kind, node.level, node.parent, node.index
    to.width, to.repeat, to.charset, to.is_trimmed = node.width, node.repeat, node.charset, node.is_trimmed
    to.child_count, to.name_count = len(node.children), len(node.names)
    ffi.memmove(to.value, node.value, len(node.value))


def names_of(node: Node) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and bytes of the names, as an array of strings has them."""
    encoded = [one.encode() for one in node.names]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return offsets, np.frombuffer(b"".join(encoded), np.uint8)


class Exporter:
    """Makes record batches of a schema from walks."""

    def __init__(self, root: Node, schema: pa.Schema) -> None:
        self._schema = schema
        self._nodes = list(flat(root))
        self._native = ffi.new("as_sbe_node[]", len(self._nodes))
        self._keep: list[np.ndarray] = []
        for to, node in zip(self._native, self._nodes, strict=True):
            fill(to, node)
            offsets, text = names_of(node)
            bits = np.frombuffer(node.bits, np.uint8)
            self._keep += [offsets, text, bits]
            to.column, to.bits = node.column, pointer("uint8_t *", bits)
            to.name_offsets, to.names = pointer("int32_t *", offsets), pointer("uint8_t *", text)

    def batch(self, run: Run, scratch: Scratch) -> pa.RecordBatch | None:
        """The columns; None if they must be made one by one."""
        array, counts = ffi.new("int64_t[]", ARROW_ARRAY_WORDS), ffi.new("int64_t[2]")
        check_batch(
            lib.as_sbe_export(
                scratch.native, self._native, len(self._nodes), scratch.task_lists, scratch.task_counts, array,
                counts, counts + 1,
            ),
            run.message_count,
        )  # fmt: skip
        if counts[1]:
            return None
        run.lost += int(counts[0])
        return pa.RecordBatch._import_from_c(int(ffi.cast("intptr_t", array)), self._schema)


ARROW_ARRAY_WORDS = 10
"""Words of 64 bits in the C data interface's `struct ArrowArray`."""
