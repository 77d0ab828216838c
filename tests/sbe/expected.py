"""What the columns must hold, from the canonical values of a message. Spec: 10 §14."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from aeron_spark.sbe.model import Block, Composite, Enum, Field, Scalar, Set, Type

MAX_LONG = 2**63 - 1
DAY_NS = 86_400 * 10**9
TIMES = {"utctimestamp", "utctimeonly"}
DATES = {"utcdateonly", "localmktdate"}
MAX_DAY = 2**31 - 1
UNIT_NS = {"": 1, "second": 10**9, "millisecond": 10**6, "microsecond": 10**3, "nanosecond": 1}


def row_of(block: Block, values: dict[str, Any] | None) -> dict[str, Any] | None:
    """A row, or an entry of a group."""
    if values is None:
        return None
    row = {one.name: _field(one, values[one.name]) for one in block.fields}
    for group in block.groups:
        entries = values[group.name]
        row[group.name] = None if entries is None else [row_of(group, entry) for entry in entries]
    for data in block.data:
        found = values[data.name]
        row[data.name] = bytes.fromhex(found["hex"]) if isinstance(found, dict) else found
    return row


def _field(field: Field, value: Any) -> Any:
    semantic = field.semantic_type.lower()
    if value is None or field.presence == "constant":
        return value
    if isinstance(field.type, Composite) and semantic == "utctimestamp":
        time = next(one for name, one in value.items() if name.lower() == "time")
        factor = 1 if _constant_unit(field.type) else _unit_on_the_wire(field.type, value)
        return None if time is None or factor is None or time * factor > MAX_LONG else time * factor
    if isinstance(field.type, Composite) and semantic == "monthyear":
        year = next((one for one in field.type.members if one.name.lower() == "year"), None)
        if year is not None and value[year.name] in (None, getattr(year.type, "null", None)):
            return None
    if isinstance(field.type, Scalar) and field.type.length == 1 and semantic in TIMES | DATES:
        return _moment(field.type, value, semantic, field.time_unit)
    return _value(field.type, value, is_optional=field.presence == "optional")


def _moment(of: Scalar, value: int, semantic: str, unit: str) -> int | None:
    """In nanoseconds a time of day, in its own unit what else there is."""
    if semantic in DATES:
        return value if value <= MAX_DAY else None
    if of.primitive.size < 8:
        return value
    if semantic == "utctimestamp":
        return value if value <= MAX_LONG else None
    return value * UNIT_NS[unit] if 0 <= value * UNIT_NS[unit] < DAY_NS else None


def _constant_unit(of: Composite) -> bool:
    return any(one.name.lower() == "unit" and one.is_constant for one in of.members)


def _unit_on_the_wire(of: Composite, value: dict[str, Any]) -> int | None:
    """Nanoseconds."""
    unit = next(one for one in of.members if one.name.lower() == "unit")
    raw = value[unit.name]
    if isinstance(unit.type, Enum) and isinstance(raw, str):
        raw = dict(unit.type.values)[raw]
    return {0: 10**9, 3: 10**6, 6: 10**3, 9: 1}.get(raw) if isinstance(raw, int) else None


def _value(of: Type, value: Any, *, is_optional: bool) -> Any:
    if value is None:
        return None
    match of:
        case Scalar():
            return _scalar(of, value, is_optional=is_optional)
        case Enum():
            if not isinstance(value, dict):
                return value
            return chr(value["unknown"]) if of.primitive.is_char else str(value["unknown"])
        case Set():
            return value["names"]
        case Composite():
            return _composite(of, value)


def _scalar(of: Scalar, value: Any, *, is_optional: bool) -> Any:
    if of.is_text:
        return value
    if isinstance(value, list):
        if of.primitive.size == 1 and not of.charset and not is_optional:
            return bytes(one % 256 for one in value)
        return [_number(of, one) for one in value]
    return _number(of, value)


def _number(of: Scalar, value: Any) -> Any:
    if value is None:
        return None
    if of.primitive.is_float:
        return float(np.float32(value)) if of.primitive.size == 4 else float(value)
    return Decimal(value) if of.primitive.name == "uint64" else value


def _composite(of: Composite, value: dict[str, Any]) -> Any:
    names = {one.name.lower(): one for one in of.members}
    exponent = names.get("exponent")
    others = [one for one in of.members if one is not exponent]
    if exponent is not None and exponent.is_constant and len(others) == 1 and isinstance(others[0].type, Scalar):
        mantissa = value[others[0].name]
        return None if mantissa is None else Decimal(mantissa).scaleb(value[exponent.name])
    return {
        one.name: value[one.name]
        if one.is_constant
        else _value(
            one.type,
            value[one.name],
            is_optional=isinstance(one.type, Scalar) and one.type.presence == "optional",
        )
        for one in of.members
    }


def plain(of: pa.DataType) -> pa.DataType:
    """The type with times and dates as the numbers that they are: Python's have other ranges."""
    if pa.types.is_timestamp(of) or pa.types.is_time64(of):
        return pa.int64()
    if pa.types.is_date32(of):
        return pa.int32()
    if pa.types.is_list(of):
        return pa.list_(plain(of.value_type))
    if pa.types.is_struct(of):
        return pa.struct([pa.field(one.name, plain(one.type)) for one in of])
    return of


def rows_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows, comparable: NaN equals itself, and a decimal its value."""
    columns = [column.cast(plain(column.type)) for column in batch.columns]
    return [comparable(row) for row in pa.RecordBatch.from_arrays(columns, batch.schema.names).to_pylist()]


def comparable(value: Any) -> Any:
    """Floats by their bits, decimals without trailing zeros."""
    if isinstance(value, float):
        return ("float", np.float64(value).tobytes() if value == value else "nan")  # noqa: PLR0124 - not of NaN
    if isinstance(value, Decimal):
        return ("decimal", value.as_integer_ratio())
    if isinstance(value, dict):
        return {name: comparable(one) for name, one in value.items()}
    if isinstance(value, list):
        return [comparable(one) for one in value]
    return value
