"""A column of decoded messages: its Arrow type, how it is made from a walk, and columns made of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from aeron_spark._native._lib import ffi
from aeron_spark.sbe import decimals
from aeron_spark.sbe.export import Node, struct_node
from aeron_spark.sbe.run import Run


@dataclass(frozen=True, slots=True)
class Column:
    """An Arrow type, and the function that makes its array from a walk; `node` if C can do it alone.

    `encoded` instead if C makes indices of names where the type has text.
    """

    type: pa.DataType
    make: Callable[[Run], pa.Array]
    node: Node | None = None
    encoded: Node | None = None

    @property
    def of_c(self) -> Node | None:
        """What C makes, of the type or encoded."""
        return self.node or self.encoded


def struct_of(
    made: dict[str, Column],
    shape: Callable[[Run], tuple[int, pa.Buffer | None, int]],
    level: int | None = None,
    column: Any = ffi.NULL,
) -> Column:
    """A struct of columns; `shape` returns count, validity and nulls. C can make it at a `level`, null where `column` is."""
    kind = pa.struct([pa.field(name, column.type) for name, column in made.items()])

    def make(run: Run) -> pa.Array:
        children = [column.make(run) for column in made.values()]
        count, validity, nulls = shape(run)
        return pa.Array.from_buffers(kind, count, [validity], nulls, children=children)

    if level is None:
        return Column(kind, make)
    return Column(
        kind,
        make,
        struct_node(level, [one.node for one in made.values()], column),
        struct_node(level, [one.of_c for one in made.values()], column),
    )


def repeated(exponent: Column, steps: Sequence[tuple[int, int]]) -> Column:
    """Repeats a block's values for the entries of its groups: each step is a group and its parent."""

    def make(run: Run) -> pa.Array:
        found = exponent.make(run)
        for group, parent in steps:
            _, offsets, _, _ = run.lists(group, parent)
            found = found.take(
                pa.array(np.repeat(np.arange(len(found)), np.diff(np.frombuffer(offsets, np.int32)).astype(np.int64)))
            )
        return found

    return Column(exponent.type, make)


def fold(mantissa: Column, exponent: Column | int, decimal: tuple[int, int] | None) -> Column:
    """Combines a mantissa and its exponent: a double, or a decimal of digits and scale."""

    def make(run: Run) -> pa.Array:
        shifts = pa.array([exponent], pa.int8()) if isinstance(exponent, int) else exponent.make(run)
        made, lost = decimals.fold(mantissa.make(run), shifts, decimal, is_one=isinstance(exponent, int))
        run.lost += lost
        return made

    return Column(pa.float64() if decimal is None else pa.decimal128(*decimal), make)
