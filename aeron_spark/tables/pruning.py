"""Which parts of recordings a filter can select rows of.

Arrow itself answers: for each part there is an expression of what holds for all of its rows, and a dataset of parts lists
those whose expression does not contradict the filter. So every filter of Arrow prunes, whatever its form, and a form that
Arrow cannot judge prunes nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import dataset, fs

from aeron_spark.tables.filters import values_of

__all__ = ["Borders", "Facts", "Known", "Pruner", "Span"]

#: Parts into which a span is cut at a time.
FAN_OUT = 4
#: Cells of a grid at most; what is known of the borders between them is looked up at once.
GRID_CELLS = 4096
#: Spans of this size are not cut further: to read as much takes less time than to judge its parts.
GRAIN_BYTES = 256 << 10
#: Spans of a recording from which on none is cut further.
MAX_SPANS = 4096
#: Changes of a filter's value over a grid that are worth a cut of their own.
MAX_CHANGES = 8

_FORMAT = dataset.IpcFileFormat()
_NOWHERE = fs.LocalFileSystem()


@dataclass(frozen=True, slots=True)
class Span:
    """Messages that begin in [start, end). `is_whole`: the filter selects all of them."""

    start: int
    end: int
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of borders. Every number is one of theirs, from 0."""

    #: What holds for the messages that begin in [borders[a], borders[b]), for numbers a and b.
    between: Callable[[int, int], pc.Expression]
    #: Columns of the messages that begin at each border but the last, as far as they cost nothing: they show where to look.
    at: Mapping[str, pa.Array]


Borders = Sequence[int] | np.ndarray
#: Looks up what is known between borders in ascending order.
Facts = Callable[[Borders], Known]


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
        try:
            found = {int(part.path) for part in listed}
        except pa.ArrowException:  # it selects rows by such an expression, but does not judge parts by it
            return [True] * len(facts)
        return [number in found for number in range(len(facts))]

    def spans(self, start: int, end: int, facts: Facts) -> list[Span]:
        """The parts of [start, end) that can hold rows, in order; cut finer only where a part may end."""

        def cut(wide: Sequence[Span]) -> list[Span]:
            return [part for span in wide for part in self._in_grid(span, facts)]

        is_wide = self._expression is not None and end - start > GRAIN_BYTES
        found = [Span(start, end)] if is_wide else self.judged(start, end, facts)
        return _joined(_refined(found, GRAIN_BYTES, cut))

    def judged(self, start: int, end: int, facts: Facts) -> list[Span]:
        """[start, end) as a whole, if it can hold rows."""
        if start >= end:
            return []
        if self._expression is None:
            return [Span(start, end, is_whole=True)]
        return [replace(one, start=start, end=end) for one in self._selected([(0, 1)], facts([start, end]))]

    def _in_grid(self, span: Span, facts: Facts) -> list[Span]:
        """The same of one span, to the cells of a grid over it: what is known of their borders is looked up once."""
        step = max(-(-(span.end - span.start) // GRID_CELLS), GRAIN_BYTES)
        borders = np.append(np.arange(span.start, span.end, step), span.end)
        known = facts(borders)

        def cut(wide: Sequence[Span]) -> list[Span]:
            return self._selected([cells for one in wide for cells in _cuts(one)], known)

        cells = _refined(self._selected(self._guessed(known, len(borders) - 1), known), 1, cut)
        return [Span(int(borders[one.start]), int(borders[one.end]), one.is_whole) for one in cells]

    def _guessed(self, known: Known, cells: int) -> list[tuple[int, int]]:
        """Parts of a grid. A cell over which the filter's value seems to change is a part of its own, as are its neighbours.

        The filter's value at all borders takes no longer than to judge three parts.
        """
        if not known.at:
            return [(0, cells)]
        columns = {
            one.name: known.at[one.name] if one.name in known.at else pa.nulls(cells, one.type) for one in self._schema
        }
        try:
            values = values_of(pa.table(columns), self._expression)
        except pa.ArrowException:
            return [(0, cells)]  # no message may have what a border has: the filter of the messages says what is wrong
        ends = pc.run_end_encode(values.combine_chunks()).run_ends.to_numpy()
        changes = (ends[:-1] - 1).tolist()
        near = {cut for cell in changes for cut in range(cell - 1, cell + 3) if 0 < cut < cells}
        return list(itertools.pairwise(sorted({0, cells, *(near if len(changes) <= MAX_CHANGES else ())})))

    def _selected(self, parts: Sequence[tuple[int, int]], known: Known) -> list[Span]:
        """Those parts between borders, given as their numbers, that can hold rows."""
        facts = [known.between(*part) for part in parts]
        is_possible = self.possible(facts)
        is_partial = [True] * len(facts) if self._opposite is None else self._possible(self._opposite, facts)
        return [
            Span(*part, is_whole=not partial)
            for part, one, partial in zip(parts, is_possible, is_partial, strict=True)
            if one
        ]


def _refined(found: list[Span], grain: int, cut: Callable[[Sequence[Span]], list[Span]]) -> list[Span]:
    """Spans with those cut that are wider than `grain`, while the parts that can hold rows may end in them."""
    while True:
        wide = [span for span in _edges(found) if span.end - span.start > grain and not span.is_whole]
        if not wide or len(found) > MAX_SPANS:
            return found
        found = sorted({*found} - {*wide} | {*cut(wide)}, key=lambda span: span.start)


def _edges(spans: Sequence[Span]) -> list[Span]:
    """Spans with no neighbour on one side: only there the parts that can hold rows may end."""
    starts, ends = {span.start for span in spans}, {span.end for span in spans}
    return [span for span in spans if span.start not in ends or span.end not in starts]


def _cuts(span: Span) -> list[tuple[int, int]]:
    step = -(-(span.end - span.start) // FAN_OUT)
    return [(begin, min(begin + step, span.end)) for begin in range(span.start, span.end, step)]


def _joined(spans: Sequence[Span]) -> list[Span]:
    """Neighbours of one kind as one."""
    found: list[Span] = []
    for span in spans:
        if found and found[-1].end == span.start and found[-1].is_whole == span.is_whole:
            found[-1] = Span(found[-1].start, span.end, span.is_whole)
        else:
            found.append(span)
    return found
