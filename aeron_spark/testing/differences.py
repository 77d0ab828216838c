"""Differences of two tables, as few lines that a person can read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from aeron_spark.errors import UsageError

MAX_LINES = 20
# Columns that tell which message a row is; they are shown with each row that differs.
PLACE = ("recording_id", "session_id", "stream_id", "position")
_SLICE_ROWS = 1024
# How many rows one side may have more before the next row of both.
_WINDOW_ROWS = 16
_SHOWN = 60
_NEGATIVE_ZERO = re.compile(r"-0\.0(?![\de])")
_Row: TypeAlias = tuple[Any, ...]


def assert_equal(actual: Any, expected: Any, *, ignore_order: bool = False, max_lines: int = MAX_LINES) -> None:
    """AssertionError with `difference(...)` unless both have the same columns, types and rows."""
    __tracebackhide__ = True
    text = difference(actual, expected, ignore_order=ignore_order, max_lines=max_lines)
    if text:
        raise AssertionError(text)


def difference(actual: Any, expected: Any, *, ignore_order: bool = False, max_lines: int = MAX_LINES) -> str:
    """Describe how two tables differ, in at most `max_lines` lines; empty text where they are equal.

    Each is an Arrow table or record batch, a DataFrame of Spark, pandas or Polars, or whatever else gives an Arrow stream
    (as `Folder.read`); or plain values, a dict of columns or a list of dicts, which take the types of the other
    side. The order of columns does not count, that of rows does unless `ignore_order`. NaN equals NaN; 0.0 equals -0.0.
    A row that only one side has is shown as such, and the comparison goes on behind it.

    Rows are numbered from 0; with `ignore_order` they are numbered in the order of their values. From the first row that
    differs, both sides are Python values in memory. UsageError: something else than a table, or plain values that do
    not fit the other side's types.
    """
    if max_lines < 2:  # noqa: PLR2004 - the summary and one difference
        raise UsageError(f"max_lines={max_lines} leaves no room for a difference: give 2 or more")
    left, right = _tables(actual, expected)
    lines = list(_of_schemas(left.schema, right.schema))
    shared = [name for name in left.schema.names if name in right.schema.names]
    count = 0
    for block in _of_rows(left.select(shared), right.select(shared), ignore_order=ignore_order):
        count += 1
        if len(lines) < max_lines:
            lines += block
    if not lines:
        return ""
    sizes = f"{left.num_rows} actual, {right.num_rows} expected"
    lines.insert(0, f"tables differ in {count} row{'s' * (count != 1)} ({sizes})")
    if len(lines) > max_lines:
        lines[max_lines - 1 :] = [f"  ... cut after {max_lines} lines, max_lines= shows more"]
    return "\n".join(lines)


def _tables(actual: Any, expected: Any) -> tuple[pa.Table, pa.Table]:
    left, right = _table(actual), _table(expected)
    if left is None:
        left = _plain(actual, right and right.schema)
    if right is None:
        right = _plain(expected, left.schema)
    for table in (left, right):
        if len(set(table.schema.names)) < table.num_columns:
            raise UsageError(f"two columns have the same name, rename one: {', '.join(table.schema.names)}")
    return left, right


def _table(data: Any) -> pa.Table | None:
    """Data as a table, None for plain values."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "toArrow"):  # Spark
        return data.toArrow()
    if type(data).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data).read_all()
    if isinstance(data, Mapping) or (isinstance(data, Sequence) and all(isinstance(row, Mapping) for row in data)):
        return None
    raise UsageError(
        f"{type(data).__name__} is no table: give Arrow data, a DataFrame, a dict of columns or a list of dicts"
    )


def _plain(values: Any, schema: pa.Schema | None) -> pa.Table:
    """A dict of columns, or rows as dicts, in the types of a schema where they fit."""
    if not isinstance(values, Mapping):
        if not values and schema is not None:
            return schema.empty_table()
        names = dict.fromkeys(name for row in values for name in row)
        values = {name: [row.get(name) for row in values] for name in names}
    types = {} if schema is None else {field.name: field.type for field in schema}
    try:
        return pa.table({name: _array(column, types.get(name)) for name, column in values.items()})
    except (pa.ArrowException, TypeError, ValueError) as failure:
        raise UsageError(f"plain values form no table: {failure}") from None


def _array(values: Any, kind: pa.DataType | None) -> pa.Array:
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError):
        return pa.array(values)  # another type: a difference to report


def _of_schemas(left: pa.Schema, right: pa.Schema) -> Iterator[str]:
    for name in right.names:
        if name not in left.names:
            yield f"  column {name} is missing"
    for field in left:
        if field.name not in right.names:
            yield f"  column {field.name} is not expected"
        elif (expected := right.field(field.name).type) != field.type:
            yield f"  column {field.name} is {field.type}, expected {expected}"


def _of_rows(left: pa.Table, right: pa.Table, *, ignore_order: bool) -> Iterator[list[str]]:
    """The lines of each row that differs."""
    begin = 0
    while begin < max(left.num_rows, right.num_rows) and left.slice(begin, _SLICE_ROWS).equals(
        right.slice(begin, _SLICE_ROWS)
    ):
        begin += _SLICE_ROWS
    names = left.schema.names
    ours, theirs = _values(left.slice(begin)), _values(right.slice(begin))
    if ignore_order:
        ours.sort(key=_place)
        theirs.sort(key=_place)
    for at, wanted in _aligned(ours, theirs):
        if wanted is None:
            assert at is not None  # noqa: S101 - one side has a row
            yield [f"  row {begin + at} is not expected: {_row(names, ours[at])}"]
        elif at is None:
            yield [f"  expected row {begin + wanted} is missing: {_row(names, theirs[wanted])}"]
        else:
            other = "" if at == wanted else f", expected row {begin + wanted}"
            yield list(_changed(f"  row {begin + at}{other}", names, ours[at], theirs[wanted]))


def _values(table: pa.Table) -> list[_Row]:
    return list(zip(*(_as_texts(column).to_pylist() for column in table.columns), strict=True))


def _as_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times and dates as texts, also within lists and structs: Python's have no nanoseconds, and other ranges."""
    # One after the other, as Arrow has no cast for all. Text of a time with a zone would need the zones' database.
    for change in (_decoded, _without_zone, _text):
        wanted = _with_leaves(column.type, change)
        if wanted != column.type:
            column = column.cast(wanted)
    return column


def _with_leaves(of: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """A type with the types within lists, structs and maps changed."""
    if pa.types.is_struct(of):
        return pa.struct([one.with_type(_with_leaves(one.type, change)) for one in of])
    if pa.types.is_map(of):
        return pa.map_(_with_leaves(of.key_type, change), _with_leaves(of.item_type, change))
    if pa.types.is_fixed_size_list(of):
        return pa.list_(_field_with(of, change), of.list_size)
    if pa.types.is_large_list(of):
        return pa.large_list(_field_with(of, change))
    if pa.types.is_list(of):
        return pa.list_(_field_with(of, change))
    return change(of)


def _field_with(of: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.Field:
    return of.value_field.with_type(_with_leaves(of.value_type, change))


def _decoded(of: pa.DataType) -> pa.DataType:
    return of.value_type if pa.types.is_dictionary(of) and _is_moment(of.value_type) else of


def _without_zone(of: pa.DataType) -> pa.DataType:
    return pa.timestamp(of.unit) if pa.types.is_timestamp(of) else of


def _text(of: pa.DataType) -> pa.DataType:
    return pa.string() if _is_moment(of) else of


def _is_moment(of: pa.DataType) -> bool:
    is_clock = pa.types.is_timestamp(of) or pa.types.is_time(of)
    return bool(is_clock or pa.types.is_date(of) or pa.types.is_duration(of))


def _aligned(ours: list[_Row], theirs: list[_Row]) -> Iterator[tuple[int | None, int | None]]:
    """Numbers of the rows of each pair that differs, None where one side has no such row."""
    at = wanted = 0
    while at < len(ours) and wanted < len(theirs):
        if _same(ours[at], theirs[wanted]):
            at, wanted = at + 1, wanted + 1
            continue
        more, fewer = _distance(theirs[wanted], ours, at), _distance(ours[at], theirs, wanted)
        is_one_changed = ours[at + 1 : at + 2] and _distance(ours[at + 1], theirs, wanted, window=1)
        if is_one_changed or more == fewer:  # both None, or as far
            yield at, wanted
            at, wanted = at + 1, wanted + 1
        elif fewer is None or (more is not None and more < fewer):
            yield at, None
            at += 1
        else:
            yield None, wanted
            wanted += 1
    yield from ((one, None) for one in range(at, len(ours)))
    yield from ((None, one) for one in range(wanted, len(theirs)))


def _distance(row: _Row, rows: list[_Row], at: int, *, window: int = _WINDOW_ROWS) -> int | None:
    """How far behind `at` a row like this one is."""
    following = rows[at + 1 : at + 1 + window]
    return next((number for number, other in enumerate(following, 1) if _same(row, other)), None)


def _place(row: _Row) -> str:
    """Where a row is in order, the same for values that are equal: 0.0 and -0.0."""
    return _NEGATIVE_ZERO.sub("0.0", repr(row))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return bool(one == other)


def _changed(head: str, names: list[str], ours: _Row, theirs: _Row) -> Iterator[str]:
    wrong = [name for name, one, other in zip(names, ours, theirs, strict=True) if not _same(one, other)]
    equal = [name for name in names if name not in wrong]
    place = [name for name in PLACE if name in equal] or equal[:2]
    values, expected = dict(zip(names, ours, strict=True)), dict(zip(names, theirs, strict=True))
    where = ", ".join(f"{name} {_shown(values[name])}" for name in place)
    yield f"{head} ({where})" if where else head
    for name in wrong:
        at = _first_difference(values[name], expected[name])
        behind = f" from {at} on" if at else ""
        yield f"    {name}{behind}: {_shown(values[name], at)}, expected {_shown(expected[name], at)}"


def _first_difference(one: Any, other: Any) -> int:
    """Where two long texts or bytes begin to differ, 0 for other values."""
    if type(one) is not type(other) or not isinstance(one, (str, bytes)) or max(len(one), len(other)) < _SHOWN:
        return 0
    both = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in both if left != right), min(len(one), len(other)))


def _shown(value: Any, at: int = 0) -> str:
    text = repr(value[at:] if at else value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _row(names: list[str], row: _Row) -> str:
    return ", ".join(f"{name} {_shown(value)}" for name, value in zip(names, row, strict=True))
