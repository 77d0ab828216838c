"""Which parts of recordings a filter can select rows of.

Arrow itself answers: for each part there is an expression of what holds for all of its rows, and a dataset of parts lists
those whose expression does not contradict the filter. So every filter of Arrow prunes, whatever its form, and a form that
Arrow cannot judge prunes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import dataset, fs

__all__ = ["Pruner", "Span"]

#: Parts into which a span is cut at a time.
FAN_OUT = 4
#: Spans of this size are not cut further: to read as much takes less time than to judge its parts.
GRAIN_BYTES = 256 << 10
#: Spans of a recording from which on none is cut further.
MAX_SPANS = 4096

_FORMAT = dataset.IpcFileFormat()
_NOWHERE = fs.LocalFileSystem()


@dataclass(frozen=True, slots=True)
class Span:
    """Messages that begin in [start, end). `is_whole`: the filter selects all of them."""

    start: int
    end: int
    is_whole: bool = False


#: What holds for the rows of each of spans in ascending order, given as their borders.
Facts = Callable[[Sequence[tuple[int, int]]], list[pc.Expression]]


class Pruner:
    """One filter over one schema. `always` names the columns that are never null."""

    def __init__(self, expression: pc.Expression | None, schema: pa.Schema, *, is_never_null: bool) -> None:
        self._expression = expression
        self._schema = schema
        # Where a row may be null, a filter that is never false may still be null, and selects nothing.
        self._opposite = ~expression if expression is not None and is_never_null else None

    def possible(self, facts: Sequence[pc.Expression]) -> list[bool]:
        """For each part whether the filter can select a row of it."""
        return self._possible(self._expression, facts)

    def _possible(self, expression: pc.Expression | None, facts: Sequence[pc.Expression]) -> list[bool]:
        if expression is None:
            return [True] * len(facts)
        parts = [_FORMAT.make_fragment(str(number), _NOWHERE, fact) for number, fact in enumerate(facts)]
        listed = dataset.FileSystemDataset(parts, self._schema, _FORMAT).get_fragments(expression)
        found = {int(part.path) for part in listed}
        return [number in found for number in range(len(facts))]

    def spans(self, start: int, end: int, facts: Facts) -> list[Span]:
        """The parts of [start, end) that can hold rows, in order; cut finer only where a part may end."""
        found = self.judged(start, end, facts)
        while True:
            cut = [span for span in self._edges(found) if span.end - span.start > GRAIN_BYTES and not span.is_whole]
            if not cut or len(found) > MAX_SPANS:
                return _joined(found)
            pieces = self._pruned([border for span in cut for border in _cuts(span)], facts)
            found = sorted({*found} - {*cut} | {*pieces}, key=lambda span: span.start)

    def judged(self, start: int, end: int, facts: Facts) -> list[Span]:
        """[start, end) as a whole, if it can hold rows."""
        if start >= end:
            return []
        return [Span(start, end, is_whole=True)] if self._expression is None else self._pruned([(start, end)], facts)

    def _pruned(self, borders: Sequence[tuple[int, int]], facts: Facts) -> list[Span]:
        held = facts(borders)
        is_possible = self.possible(held)
        is_partial = [True] * len(held) if self._opposite is None else self._possible(self._opposite, held)
        return [
            Span(*border, is_whole=not partial)
            for border, one, partial in zip(borders, is_possible, is_partial, strict=True)
            if one
        ]

    @staticmethod
    def _edges(spans: Sequence[Span]) -> list[Span]:
        """Spans with no neighbour on one side: only there the parts that can hold rows may end."""
        starts, ends = {span.start for span in spans}, {span.end for span in spans}
        return [span for span in spans if span.start not in ends or span.end not in starts]


def _cuts(span: Span) -> list[tuple[int, int]]:
    step = max(-(-(span.end - span.start) // FAN_OUT), GRAIN_BYTES)
    begins = range(span.start, span.end, step)
    return [(begin, min(begin + step, span.end)) for begin in begins]


def _joined(spans: Sequence[Span]) -> list[Span]:
    """Neighbours of one kind as one."""
    found: list[Span] = []
    for span in spans:
        if found and found[-1].end == span.start and found[-1].is_whole == span.is_whole:
            found[-1] = Span(found[-1].start, span.end, span.is_whole)
        else:
            found.append(span)
    return found
