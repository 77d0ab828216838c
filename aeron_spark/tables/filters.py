"""Filters of a scan: the text that users write, and what Arrow needs of an expression.

A filter is an expression of pyarrow, as DuckDB and pyarrow's own datasets pass it. Text of this grammar becomes one:

    filter     = comparison { "and" comparison }
    comparison = field operator value | field "in" "(" value { "," value } ")"
    operator   = "=" | "==" | "!=" | "<" | "<=" | ">" | ">=" | "~"
    field      = name { "." name }
    value      = word | 'text' | "text" | null

A value is read by the type of its field; "~" is a regular expression (RE2). Nothing of the text is run as code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero

from aeron_spark.archive.time_text import parse_time_ns
from aeron_spark.archive.times import UNITS_NS
from aeron_spark.errors import UsageError
from aeron_spark.names import nearest

__all__ = ["NO_TIMES", "checked", "fields_of", "parse", "rows_of"]

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<mark>==|!=|<=|>=|[=<>~(),])|(?P<word>[^\s=<>~!(),'"]+))""",
    re.DOTALL,
)
_COMPARE: dict[str, Callable[[pc.Expression, pa.Scalar], pc.Expression]] = {
    "=": lambda field, value: field == value,
    "==": lambda field, value: field == value,
    "!=": lambda field, value: field != value,
    "<": lambda field, value: field < value,
    "<=": lambda field, value: field <= value,
    ">": lambda field, value: field > value,
    ">=": lambda field, value: field >= value,
}
_EXAMPLE = "write it like: price >= 10.5 and symbol = 'ABC' and side in (BUY, SELL)"
_MAX_LENGTH = 10_000
_DAY_NS = 86_400 * 10**9
_UNITS_NS = {"s": 10**9, **UNITS_NS}
NO_TIMES = (
    "there is no column 'timestamp': only an archive's folder has a time index; name the messages' own times, "
    "timestamp='reserved(ns)' or timestamp='sbe:<field>'"
)


def parse(text: str, schema: pa.Schema) -> pc.Expression:
    """The expression of a filter's text. UsageError names the place, the field or the value that is wrong."""
    if len(text) > _MAX_LENGTH:
        raise UsageError(f"the filter has {len(text)} characters, more than {_MAX_LENGTH}")
    tokens = [*_tokens(text), ("end", "")]
    found: pc.Expression | None = None
    at = 0
    while found is None or tokens[at][1].lower() == "and":
        at += found is not None
        one, at = _comparison(tokens, at, schema)
        found = one if found is None else found & one
    if tokens[at][0] != "end":
        raise UsageError(f"filter {text!r}: {tokens[at][1]!r} is not understood there; {_EXAMPLE}")
    return found


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise UsageError(f"filter {text!r}: {text[at:].strip()[:20]!r} is not understood; {_EXAMPLE}")
        kind = str(match.lastgroup)
        token = match[kind]
        yield kind, re.sub(r"\\(.)", r"\1", token[1:-1], flags=re.DOTALL) if kind == "text" else token
        at = match.end()


def _comparison(tokens: Sequence[tuple[str, str]], at: int, schema: pa.Schema) -> tuple[pc.Expression, int]:
    kind, name = tokens[at]
    if kind != "word":
        raise UsageError(f"filter: a field is missing{f' before {name!r}' if name else ' at the end'}; {_EXAMPLE}")
    path = name.split(".")
    field, of_type = pc.field(*path) if len(path) > 1 else pc.field(name), _type(schema, path)
    operator = tokens[at + 1][1]
    if operator.lower() == "in":
        values, at = _members(tokens, at + 2, name)
        made = field.isin(_set([_value(name, of_type, one) for one in values], _value_type(of_type)))
    elif operator == "~" or operator in _COMPARE:
        kind, value = tokens[at + 2]
        if kind not in {"word", "text"}:
            raise UsageError(f"filter: {name} {operator} needs a value; {_EXAMPLE}")
        if operator == "~":
            made = _matches(field, name, of_type, value)
        elif kind == "word" and value.lower() == "null":
            if operator not in {"=", "==", "!="}:
                raise UsageError(f"filter: {name} {operator} null: nothing is; write {name} = null or {name} != null")
            made = field.is_valid() if operator == "!=" else field.is_null()
        else:
            made = _compared(field, operator, _value(name, of_type, value), _value_type(of_type))
        at += 3
    else:
        raise UsageError(f"filter: {name} needs one of {', '.join(_COMPARE)}, ~, in behind it; {_EXAMPLE}")
    if len(path) > 1 and "sbe_template" in schema.names:
        # Only messages of that template have it, so that others need not be decoded.
        made = (pc.field("sbe_template") == path[0]) & made
    return made, at


def _members(tokens: Sequence[tuple[str, str]], at: int, name: str) -> tuple[list[str], int]:
    values = []
    if tokens[at][1] == "(":
        while tokens[at + 1][0] in {"word", "text"}:
            values.append(tokens[at + 1][1])
            at += 2
            if tokens[at][1] == ")":
                return values, at + 1
            if tokens[at][1] != ",":
                break
    raise UsageError(f"filter: {name} in needs a list like (1, 2, 3)")


def _type(schema: pa.Schema, path: Sequence[str]) -> pa.DataType:
    """The type of a field, whose path goes through structs."""
    known, of_type = {field.name: field.type for field in schema}, None
    for depth, name in enumerate(path):
        if name not in known:
            if depth and not known:
                raise UsageError(f"filter: {'.'.join(path[:depth])} is {of_type}, which has no field {name!r}")
            if name == "timestamp" and not depth:
                raise UsageError(f"filter: {NO_TIMES}")
            where = f"{'.'.join(path[:depth])} has no field" if depth else "there is no column"
            raise UsageError(f"filter: {where} {name!r}; there are {', '.join(known)}{nearest(name, known)}")
        of_type = known[name]
        known = {one.name: one.type for one in of_type} if pa.types.is_struct(of_type) else {}
    return of_type


def _value_type(of_type: pa.DataType) -> pa.DataType:
    return of_type.value_type if pa.types.is_dictionary(of_type) else of_type


def _matches(field: pc.Expression, name: str, of_type: pa.DataType, pattern: str) -> pc.Expression:
    kind = _value_type(of_type)
    if not (pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind)):
        raise UsageError(f"filter: {name} is {of_type}; ~ is for text")
    try:
        pc.match_substring_regex(pa.array([""]).cast(kind), pattern)
    except pa.ArrowInvalid as error:
        raise UsageError(f"filter: {name} ~ {pattern!r} is no regular expression: {error}") from None
    return pc.match_substring_regex(field.cast(kind) if kind != of_type else field, pattern)


def _value(name: str, of_type: pa.DataType, text: str) -> pa.Scalar:
    """A value as its field has it."""
    kind = _value_type(of_type)
    for is_one, read, what in _READ:
        if is_one(kind):
            try:
                return read(text, kind)
            except (ValueError, InvalidOperation, OverflowError, pa.ArrowInvalid) as error:
                if isinstance(error, UsageError):
                    raise
                raise UsageError(f"filter: {name} is {of_type} and compares with {what}, not {text!r}") from None
    raise UsageError(f"filter: {name} is {of_type}, which does not compare with a value; name a field in it")


def _boolean(text: str, kind: pa.DataType) -> pa.Scalar:
    return pa.scalar({"true": True, "false": False, "1": True, "0": False}.get(text.lower(), text), kind)


def _time_of_day(text: str, _: pa.DataType) -> pa.Scalar:
    ns = parse_time_ns("filter: time", f"1970-01-01T{text}")
    if not 0 <= ns < _DAY_NS or re.search("[+-]", text):
        raise UsageError(f"filter: time {text!r} is none of a day in UTC: write it like 14:30:00, without a zone")
    return pa.scalar(ns, pa.time64("ns"))


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_time(kind))


def _set(values: Sequence[pa.Scalar], kind: pa.DataType) -> pa.Array:
    if not _is_time(kind):
        return pa.array([value.as_py() for value in values], kind)
    whole = [divmod(value.value, _UNITS_NS[kind.unit]) for value in values]
    return pa.array([ticks for ticks, rest in whole if not rest], kind)


def _compared(field: pc.Expression, operator: str, value: pa.Scalar, kind: pa.DataType) -> pc.Expression:
    """In the field's unit: it may hold times that ns do not reach. A time with more digits lies between two of the field's."""
    if _is_time(kind):
        ticks, rest = divmod(value.value, _UNITS_NS[kind.unit])
        if rest and operator in {"=", "==", "!="}:
            return field.is_valid() if operator == "!=" else field.isin(pa.array([], kind))
        value = pa.scalar(ticks + (rest > 0 and operator in {"<", ">="}), kind)
    return _COMPARE[operator](field, value)


_READ: tuple[tuple[Callable[[pa.DataType], bool], Callable[[str, pa.DataType], pa.Scalar], str], ...] = (
    (pa.types.is_boolean, _boolean, "true or false"),
    (pa.types.is_integer, lambda text, kind: pa.scalar(int(text, 0), kind), "a whole number in its range"),
    (pa.types.is_floating, lambda text, kind: pa.scalar(float(text), kind), "a number"),
    (pa.types.is_decimal, lambda text, kind: pa.scalar(Decimal(text), kind), "a number of no more digits"),
    (
        pa.types.is_timestamp,
        lambda text, kind: pa.scalar(parse_time_ns("filter: time", text), pa.timestamp("ns", kind.tz)),
        "a time like 2026-01-31T14:30:00Z",
    ),
    (pa.types.is_time, _time_of_day, "a time of day like 14:30:00"),
    (pa.types.is_date, lambda text, kind: pa.scalar(date.fromisoformat(text), kind), "a date like 2026-01-31"),
    (
        lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind),
        lambda text, kind: pa.scalar(bytes.fromhex(text[2:]) if text[:2] == "0x" else text.encode(), kind),
        "text, or bytes like 0x00ff",
    ),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), pa.scalar, "text"),
)


def fields_of(expression: pc.Expression, schema: pa.Schema) -> list[str]:
    """Columns that an expression may use: at least those that it does, in the schema's order."""
    text = str(expression)
    return [name for name in schema.names if name in text and re.search(rf"(?<![\w:]){re.escape(name)}(?!\w)", text)]


def checked(given: Any, schema: pa.Schema) -> pc.Expression | None:
    """The expression of a filter: text of the grammar, pyarrow's, or none. UsageError: it does not fit the columns."""
    if given is None:
        return None
    expression = parse(given, schema) if isinstance(given, str) else given
    if not isinstance(expression, pc.Expression):
        raise UsageError(f"a filter is text or an expression of pyarrow.compute, not {type(given).__name__}")
    if "FieldPath(" in re.sub(r'"(?:[^"\\]|\\.)*"', "", str(expression)):
        # By number it would be another column wherever a scan reads fewer of them.
        raise UsageError(f"the filter names a column by number: name it, {', '.join(schema.names)}")
    try:
        found = values_of(schema.empty_table(), expression).type
    except (pa.ArrowException, TypeError) as error:
        reason = str(error).split(" in ", 1)[0].splitlines()[0]
        unknown = re.search(r"No match for FieldRef\.Name\((.*?)\)", reason)
        if unknown and unknown[1].rpartition(":")[2] == "timestamp":
            raise UsageError(f"filter: {NO_TIMES}") from None
        closest = nearest(unknown[1], schema.names) if unknown else ""
        raise UsageError(f"the filter does not fit: {reason}; columns are {', '.join(schema.names)}{closest}") from None
    if not pa.types.is_boolean(found):
        raise UsageError(f"the filter does not fit: it is {found}, neither true nor false")
    return expression


def rows_of(batch: pa.RecordBatch, expression: pc.Expression) -> pa.Array:
    """Numbers of the rows that an expression selects, from 0, in order."""
    # Of one array: up to pyarrow 18 a chunked one without chunks, as of a batch without rows, ends the process.
    return pc.indices_nonzero(values_of(pa.Table.from_batches([batch]), expression).combine_chunks())


def values_of(table: pa.Table, expression: pc.Expression) -> pa.ChunkedArray:
    """An expression's value of each row.

    In the caller's thread: one of pyarrow's own may let go of Python's memory late, and where the program ends meanwhile,
    Python aborts it.
    """
    plan = [
        acero.Declaration("table_source", acero.TableSourceNodeOptions(table)),
        acero.Declaration("project", acero.ProjectNodeOptions([expression], ["value"])),
    ]
    return acero.Declaration.from_sequence(plan).to_table(use_threads=False).column(0)
