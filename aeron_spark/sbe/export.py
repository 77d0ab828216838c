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
    charset: int = 0
    column: Any = ffi.NULL
    names: tuple[str, ...] = ()
    children: tuple[Node, ...] = ()

    def named(self, names: list[str]) -> Node:
        """A node of numbers that are indices of names."""
        return replace(self, kind=lib.AS_SBE_NODE_ENUM, names=tuple(names))


def struct_node(level: int, children: list[Node | None]) -> Node | None:
    """A struct, if all its fields are nodes."""
    known = tuple(one for one in children if one is not None)
    if len(known) < len(children):
        return None
    return Node(kind=lib.AS_SBE_NODE_STRUCT, level=level, children=known)


def _flat(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _flat(child)


class Exporter:
    """Makes record batches of a schema from walks."""

    def __init__(self, root: Node, schema: pa.Schema) -> None:
        self._schema = schema
        self._nodes = list(_flat(root))
        self._native = ffi.new("as_sbe_node[]", len(self._nodes))
        self._keep: list[np.ndarray] = []
        for to, node in zip(self._native, self._nodes, strict=True):
            to.kind, to.level, to.parent, to.index = node.kind, node.level, node.parent, node.index
            to.width, to.charset, to.column = node.width, node.charset, node.column
            to.child_count = len(node.children)
            self._name(to, node.names)

    def _name(self, to: Any, names: tuple[str, ...]) -> None:
        encoded = [one.encode() for one in names]
        offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
        text = np.frombuffer(b"".join(encoded), np.uint8)
        self._keep += [offsets, text]
        to.name_count = len(names)
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
