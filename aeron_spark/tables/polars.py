"""Recordings as a LazyFrame of Polars.

Polars passes columns, predicate and number of rows to a scan, and takes its batches one by one. Every predicate is applied by
Polars itself; where its parts are comparisons of columns with values, the scan reads only what these do not rule out. The
number of rows is of those before the predicate.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from aeron_spark.errors import UsageError
from aeron_spark.extras import missing
from aeron_spark.tables.scans import Scan, Source, scan

if TYPE_CHECKING:
    import polars as pl

__all__ = ["scan_aeron"]

_COMPARE: dict[str, Callable[[pc.Expression, pa.Scalar], pc.Expression]] = {
    "Eq": lambda field, value: field == value,
    "Lt": lambda field, value: field < value,
    "LtEq": lambda field, value: field <= value,
    "Gt": lambda field, value: field > value,
    "GtEq": lambda field, value: field >= value,
}
_MIRRORED = {"Eq": "Eq", "Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt", "GtEq": "LtEq"}
_INTEGERS = {f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)}
_TIME_UNITS = {"Nanoseconds": "ns", "Microseconds": "us", "Milliseconds": "ms"}


def scan_aeron(source: Source | Scan, recordings: int | list[int] | None = None, **options: Any) -> pl.LazyFrame:
    """Messages as a LazyFrame; the arguments are those of `aeron_spark.tables.scan`.

        quotes = scan_aeron("recordings", 3, sbe="prices.xml", message="Quote")
        quotes.filter(pl.col("price") > 10).group_by("symbol").agg(pl.col("price").mean()).collect()

    Each `collect` reads anew; with `engine="streaming"` the recordings may be larger than the memory.
    """
    try:
        import polars as pl  # noqa: PLC0415 - an extra
        from polars.io.plugins import register_io_source  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise missing(error, "polars") from None
    whole = source if isinstance(source, Scan) else scan(source, recordings, **options)

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, row_count: int | None, _batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        narrowed = whole if columns is None else whole.select(columns)
        if predicate is not None and row_count is None:  # the first rows are those before the predicate
            bounds = bounds_of(predicate.meta.serialize(format="json"), narrowed.schema)
            narrowed = narrowed if bounds is None else narrowed.filter(bounds)
        left = row_count
        with narrowed.batches() as batches:
            for batch in batches:
                frame = pl.DataFrame(batch)
                frame = frame if left is None else frame.head(left)
                left = None if left is None else left - len(frame)
                yield frame if predicate is None else frame.filter(predicate)
                if left == 0:
                    return

    schema = pl.DataFrame(whole.schema.empty_table()).schema
    return register_io_source(read, schema=schema)


def bounds_of(predicate: str, schema: pa.Schema) -> pc.Expression | None:
    """What a predicate of Polars, as JSON, implies for its columns: comparisons with values, joined by and or by or.

    Polars promises nothing about this form. What is not understood here implies nothing, so that more is read.
    """
    try:
        return _implied(json.loads(predicate), schema)
    except (ValueError, RecursionError):
        return None


def _implied(node: Any, schema: pa.Schema) -> pc.Expression | None:
    match node:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            return _both(_implied(left, schema), _implied(right, schema))
        case {"BinaryExpr": {"left": left, "op": "Or" | "LogicalOr", "right": right}}:
            one, other = _implied(left, schema), _implied(right, schema)
            return None if one is None or other is None else one | other
        case {"BinaryExpr": {"left": {"Column": str(name)}, "op": str(operator), "right": {"Literal": value}}}:
            return _compared(name, operator, value, schema)
        case {"BinaryExpr": {"left": {"Literal": value}, "op": str(operator), "right": {"Column": str(name)}}}:
            return _compared(name, _MIRRORED.get(operator, ""), value, schema)
        case {
            "Function": {"input": [{"Column": str(name)}, {"Literal": low}, {"Literal": high}], "function": function}
        }:
            match function:
                case {"Boolean": {"IsBetween": {"closed": _}}}:
                    return _both(_compared(name, "GtEq", low, schema), _compared(name, "LtEq", high, schema))
    return None


def _both(one: pc.Expression | None, other: pc.Expression | None) -> pc.Expression | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _compared(name: str, operator: str, literal: Any, schema: pa.Schema) -> pc.Expression | None:
    if operator not in _COMPARE or name not in schema.names:
        return None
    try:
        value = _value(literal, schema.field(name).type)
        return None if value is None else _COMPARE[operator](pc.field(name), value)
    except (pa.ArrowInvalid, OverflowError, UsageError):
        return None


def _value(literal: Any, of_type: pa.DataType) -> pa.Scalar | None:
    """A literal of the column's own kind; None for any other, which the two libraries may compare differently."""
    match literal:
        case {"Scalar": inner} | {"Dyn": inner}:
            literal = inner
    match literal:
        case {"Datetime": [int(number), str(unit), {"inner": "UTC"}]} if pa.types.is_timestamp(of_type):
            return pa.scalar(number, pa.timestamp(_TIME_UNITS[unit], of_type.tz)) if unit in _TIME_UNITS else None
        case {"String": str(text)} if pa.types.is_string(of_type) or pa.types.is_dictionary(of_type):
            return pa.scalar(text, pa.string())
        case dict() if len(literal) == 1 and pa.types.is_integer(of_type):
            ((kind, number),) = literal.items()
            return pa.scalar(number, of_type) if kind in {*_INTEGERS, "Int"} and type(number) is int else None
    return None
