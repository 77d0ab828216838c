"""Converts Arrow columns to the bytes of fields: the inverse of `columns`. Spec: 10 §16.

Each function returns an array of bytes, one row per instance. UsageError names the column with a value that does not
fit.
"""

from __future__ import annotations

import codecs
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aeron_spark.errors import UsageError
from aeron_spark.sbe.columns import UNITS, member_of, unit_of
from aeron_spark.sbe.model import Composite, Enum, Field, Member, Primitive, Scalar, Set, Type
from aeron_spark.sbe.values import CHARSETS

MOMENTS = {
    "utctimestamp": pa.types.is_timestamp,
    "utctimeonly": pa.types.is_time,
    "utcdateonly": pa.types.is_date32,
    "localmktdate": pa.types.is_date32,
    "int": pa.types.is_date32,
    "": pa.types.is_date32,
}
"""Which times and dates an integer takes, by the field's `semanticType`."""


class Wire:
    """Conversions for one byte order."""

    def __init__(self, *, is_big_endian: bool) -> None:
        self._order = ">" if is_big_endian else "<"

    def value(self, of: Type, column: pa.Array, path: str, *, is_optional: bool) -> np.ndarray:
        """Bytes of any type, `(instances, size)`."""
        if pa.types.is_null(column.type):
            if not is_optional and not isinstance(of, Enum):
                raise UsageError(f"column {path}: it has only nulls, in a field that is required")
            column = pa.nulls(len(column), type_of_nulls(of))
        match of:
            case Scalar():
                return self._scalar(of, column, path, is_optional=is_optional)
            case Enum():
                return self._bytes(of.primitive, self._enum(of, column, path))
            case Set():
                return self._bytes(of.primitive, self._set(of, column, path))
            case Composite():
                return self._composite(of, column, path, is_optional=is_optional)

    def _bytes(self, primitive: Primitive, numbers: np.ndarray) -> np.ndarray:
        wire = numbers.astype(np.dtype(self._order + primitive.code))
        return wire.view(np.uint8).reshape(len(numbers), primitive.size)

    # -- numbers -----------------------------------------------------------------------------------------------------------

    def _numbers(
        self, of: Scalar, column: pa.Array, path: str, *, is_optional: bool, may_be_null_value: bool = False
    ) -> np.ndarray:
        """NumPy representation, with null values for nulls."""
        kind = pa.from_numpy_dtype(np.dtype(of.primitive.code))
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_boolean(column.type) or not _is_number(column.type):
            raise UsageError(f"column {path}: {column.type} is no number")
        try:
            numbers = column.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as failure:
            raise UsageError(f"column {path}: {failure}; it must fit {of.primitive.name}") from None
        if of.primitive.is_float and pc.any(_became_infinite(column, numbers)).as_py():
            raise UsageError(f"column {path}: a value beyond the range of {of.primitive.name}")
        if not is_optional:
            self._refuse_nulls(column, path)
            return np.asarray(numbers)
        null = pa.scalar(of.null, kind)
        # NaN is no value that a null could be mistaken for, unlike a null value that the schema gives a float.
        if not may_be_null_value and not math.isnan(of.null) and _holds(numbers, of.null):
            raise UsageError(f"column {path}: the value {of.null} means null in the schema")
        return np.asarray(numbers.fill_null(null))

    @staticmethod
    def _refuse_nulls(column: pa.Array, path: str) -> None:
        if column.null_count:
            raise UsageError(f"column {path}: a null in a field that is required")

    def _scalar(self, of: Scalar, column: pa.Array, path: str, *, is_optional: bool) -> np.ndarray:
        if of.is_text:
            return self._chars(of, column, path, is_optional=is_optional)
        if of.length == 1:
            return self._bytes(of.primitive, self._numbers(of, column, path, is_optional=is_optional))
        self._refuse_nulls(column, path)
        if pa.types.is_binary(column.type) or pa.types.is_fixed_size_binary(column.type):
            return _padded(column.cast(pa.binary()), of.length, path, is_exact=True)
        if not _is_list(column.type):
            raise UsageError(f"column {path}: {column.type} is no list, nor binary")
        lengths = pc.list_value_length(column)
        if len(column) and (pc.min(lengths).as_py() != of.length or pc.max(lengths).as_py() != of.length):
            raise UsageError(f"column {path}: a list that has not {of.length} items")
        items = self._numbers(of, column.flatten(), path, is_optional=is_optional)
        return self._bytes(of.primitive, items).reshape(len(column), of.size)

    def _chars(self, of: Scalar, column: pa.Array, path: str, *, is_optional: bool) -> np.ndarray:
        if not is_optional:
            self._refuse_nulls(column, path)
        made = _padded(_encoded(column, of.charset or "ascii", path), of.length, path, is_exact=False)
        # Readers end a value at its first zero byte. Zeros at its end are padding, as in every shorter value.
        is_zero = made == 0
        if (is_zero[:, :-1] & ~is_zero[:, 1:]).any():
            raise UsageError(
                f"column {path}: a value with a zero byte inside, where readers would end it: take that out"
            )
        if is_optional:
            is_null = np.asarray(column.is_null())
            # The usual null value is 0, and an empty text, which begins with it, is null, too.
            if of.null and (made[~is_null, 0] == of.null).any():
                raise UsageError(
                    f"column {path}: a text that begins with {chr(int(of.null))!r}, which means null in the schema"
                )
            made[is_null, 0] = of.null
        return made

    # -- enums and sets ------------------------------------------------------------------------------------------------------

    def _enum(self, of: Enum, column: pa.Array, path: str) -> np.ndarray:
        if pa.types.is_boolean(column.type) or _is_number(column.type):
            plain = Scalar(of.name, of.primitive, presence="optional", null=of.null)
            column = column.cast(pa.uint8()) if pa.types.is_boolean(column.type) else column
            # Some schemas name the null value: then its number may be written if its name may.
            is_named = any(raw == of.null for _, raw in of.values)
            return self._numbers(plain, column, path, is_optional=True, may_be_null_value=is_named)
        if not _is_text(column.type):
            raise UsageError(f"column {path}: {column.type} is neither names nor numbers of enum {of.name}")
        names = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        raw_of = dict(of.values)
        used = set(pc.unique(names.indices).to_pylist()) - {None}
        raws = [of.null] * (len(names.dictionary) + 1)
        for index, name in enumerate(names.dictionary.to_pylist()):
            if index in used and name not in raw_of:
                raise UsageError(f"column {path}: enum {of.name} has no '{name}'; it has {', '.join(raw_of)}")
            raws[index] = raw_of.get(name, of.null)
        table = np.array(raws, np.dtype(of.primitive.code))
        numbers: np.ndarray = table[np.asarray(names.indices.fill_null(len(raws) - 1).cast(pa.int64()))]
        return numbers

    def _set(self, of: Set, column: pa.Array, path: str) -> np.ndarray:
        self._refuse_nulls(column, path)
        if _is_number(column.type):
            return self._numbers(Scalar(of.name, of.primitive), column, path, is_optional=False)
        if not _is_list(column.type) or not _is_text(column.type.value_type):
            raise UsageError(f"column {path}: {column.type} is neither a list of names nor the bits of set {of.name}")
        items = column.flatten()
        items = items.cast(pa.string()) if pa.types.is_dictionary(items.type) else items
        parents = np.asarray(pc.list_parent_indices(column))
        bits = np.zeros(len(column), np.uint64)
        known = dict(of.choices)
        for name in pc.unique(items).to_pylist():
            if name not in known:
                raise UsageError(f"column {path}: set {of.name} has no '{name}'; it has {', '.join(known)}")
            np.bitwise_or.at(bits, parents[np.asarray(pc.equal(items, name))], np.uint64(1 << known[name]))
        return bits

    # -- composites ----------------------------------------------------------------------------------------------------------

    def _composite(self, of: Composite, column: pa.Array, path: str, *, is_optional: bool) -> np.ndarray:
        made = np.zeros((len(column), of.size), np.uint8)
        if not is_optional and not pa.types.is_decimal(column.type) and not pa.types.is_timestamp(column.type):
            self._refuse_nulls(column, path)
        if pa.types.is_decimal(column.type) or pa.types.is_timestamp(column.type):
            return self._folded(of, column, path, made, is_optional=is_optional)
        if not pa.types.is_struct(column.type):
            raise UsageError(f"column {path}: {column.type} is no struct")
        first = True
        for member in of.members:
            if member.is_constant:
                continue
            index = column.type.get_field_index(member.name)
            if index < 0:
                raise UsageError(f"column {path} has no field {member.name}")
            inner = column.field(index)
            may_be_null = isinstance(member.type, Scalar) and member.type.presence == "optional"
            if column.null_count:
                # The first member marks a null composite; the other members then hold any valid value.
                inner = _without(inner, column, keep_null=(first and not isinstance(member.type, Set)) or may_be_null)
            found = self.value(
                member.type, inner, f"{path}.{member.name}", is_optional=may_be_null or (is_optional and first)
            )
            made[:, member.offset : member.offset + found.shape[1]] = found
            first = first and found.shape[1] == 0
        return made

    def _folded(self, of: Composite, column: pa.Array, path: str, made: np.ndarray, *, is_optional: bool) -> np.ndarray:
        """A decimal or a time, from the one number that the composite has beside a constant."""
        is_time = bool(pa.types.is_timestamp(column.type))
        members = [one for one in of.members if not one.is_constant]
        scale = member_of(of, "unit" if is_time else "exponent")
        constant = scale.type if scale is not None and scale.is_constant else None
        factor = constant.constant if isinstance(constant, Scalar) else None
        if is_time and constant is None:
            members, factor = self._with_unit(members, made)
        is_whole = len(members) == 1 and (not is_time or members[0].name.lower() == "time")
        if not is_whole or not isinstance(members[0].type, Scalar):
            raise UsageError(f"column {path}: {column.type} does not fit the composite {of.name}; give a struct")
        number = members[0].type
        if not isinstance(factor, int):
            raise UsageError(f"column {path}: {of.name} has no constant exponent or unit; give a struct")
        whole = _moments(column, UNITS.get(factor), path) if is_time else _unscaled(column, factor, path)
        may_be_null = is_optional or number.presence == "optional"
        found = self._bytes(number.primitive, self._numbers(number, whole, path, is_optional=may_be_null))
        made[:, members[0].offset : members[0].offset + found.shape[1]] = found
        return made

    @staticmethod
    def _with_unit(members: list[Member], made: np.ndarray) -> tuple[list[Member], int | None]:
        """For a time with its unit on the wire: the time member, and the finest unit, which is written."""
        unit = next((one for one in members if one.name.lower() == "unit"), None)
        if unit is None or not isinstance(unit.type, (Scalar, Enum)) or unit.type.primitive.name != "uint8":
            return members, None
        known = {raw for _, raw in unit.type.values} if isinstance(unit.type, Enum) else set(UNITS)
        finest = max(known & set(UNITS), default=None)
        if finest is not None:
            made[:, unit.offset] = finest
        return [one for one in members if one is not unit], finest


def _is_number(of: pa.DataType) -> bool:
    return bool(pa.types.is_integer(of) or pa.types.is_floating(of) or pa.types.is_decimal(of))


def _is_moment(of: pa.DataType) -> bool:
    return bool(pa.types.is_date32(of) or pa.types.is_timestamp(of) or pa.types.is_time(of))


def _became_infinite(column: pa.Array, numbers: pa.Array) -> pa.Array:
    """Where a cast to floats left the range of finite ones."""
    infinite = pc.is_inf(numbers)
    if not pa.types.is_floating(column.type):
        return infinite
    return pc.and_not(infinite, pc.is_inf(column.cast(pa.float64())))


def _holds(numbers: pa.Array, raw: float) -> bool:
    """Whether a value has the very bits: -0.0 is not 0.0, as to readers."""
    found = np.asarray(numbers.drop_null())
    bits = f"u{found.itemsize}"
    return bool((found.view(bits) == np.array(raw, found.dtype).view(bits)).any())


def _is_list(of: pa.DataType) -> bool:
    return bool(pa.types.is_list(of) or pa.types.is_large_list(of) or pa.types.is_fixed_size_list(of))


def _is_text(of: pa.DataType) -> bool:
    if pa.types.is_dictionary(of):
        of = of.value_type
    return bool(pa.types.is_string(of) or pa.types.is_large_string(of))


def _unscaled(column: pa.Array, exponent: int, path: str) -> pa.Array:
    """Mantissas of decimals for an exponent."""
    try:
        if exponent > 0:
            # A value that is not a multiple then has fractional digits, and the cast refuses it.
            power = pa.scalar(Decimal(10**exponent), pa.decimal256(exponent + 1, 0))
            wide = pc.divide(column.cast(pa.decimal256(38, 0)), power)
            return wide.cast(pa.decimal256(38, 0)).cast(pa.decimal128(38, 0))
        scaled = column.cast(pa.decimal128(38, -exponent))
    except pa.ArrowInvalid as failure:
        raise UsageError(f"column {path}: {failure}; the exponent is {exponent}") from None
    buffers = scaled.buffers()
    return pa.Array.from_buffers(pa.decimal128(38, 0), len(scaled), buffers, scaled.null_count, scaled.offset)


def _without(inner: pa.Array, outer: pa.Array, *, keep_null: bool) -> pa.Array:
    """A member's values where its composite is null: null, or the first existing value."""
    if keep_null:
        return pc.if_else(outer.is_valid(), inner, pa.scalar(None, inner.type))
    some = inner.drop_null()
    if len(some):
        return pc.if_else(outer.is_valid(), inner, some[0])
    if pa.types.is_string(inner.type):
        return inner.fill_null("")
    return inner.fill_null(0) if _is_number(inner.type) else inner


def _encoded(column: pa.Array, charset: str, path: str) -> pa.Array:
    """Text encoded as binary in a charset."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return column.cast(pa.binary())
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise UsageError(f"column {path}: {column.type} is no text")
    plain = column.cast(pa.string())
    name = codecs.lookup(charset).name
    is_ascii = pc.all(pc.string_is_ascii(plain)).as_py() is not False
    if name == "utf-8" or (is_ascii and name in CHARSETS):
        return plain.cast(pa.binary())
    try:
        return pa.array([None if one is None else one.encode(charset) for one in plain.to_pylist()], pa.binary())
    except UnicodeEncodeError as failure:
        raise UsageError(f"column {path}: {failure}") from None


def _padded(column: pa.Array, length: int, path: str, *, is_exact: bool) -> np.ndarray:
    """Values of one length, padded with zeros."""
    lengths = np.asarray(pc.binary_length(column).fill_null(0)).astype(np.int64)
    if (lengths > length).any() or (is_exact and (lengths != length).any()):
        raise UsageError(f"column {path}: a value of {int(lengths.max())} bytes, the field has {length}")
    made = np.zeros((len(column), length), np.uint8)
    offsets = (
        np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, 4 * column.offset)
        if len(column)
        else np.zeros(1, np.int32)
    )
    content = column.buffers()[2] if len(column) else None
    if content is not None and lengths.sum():
        rows = np.repeat(np.arange(len(column)), lengths)
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        starts = offsets[:-1].astype(np.int64)
        made[rows, within] = np.frombuffer(content, np.uint8)[np.repeat(starts, lengths) + within]
    return made


def contents(column: pa.Array, charset: str, path: str) -> tuple[np.ndarray, pa.Buffer | None, np.ndarray]:
    """Offsets, bytes and lengths of variable data; null becomes empty."""
    if charset:
        raw = _encoded(column, charset, path)
    elif pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        raw = column.cast(pa.binary())
    else:
        raise UsageError(f"column {path}: {column.type} is not binary")
    raw = raw.fill_null(b"") if raw.null_count else raw
    if not len(raw):
        return np.zeros(1, np.int64), None, np.zeros(0, np.int64)
    offsets = np.frombuffer(raw.buffers()[1], np.int32, len(raw) + 1, 4 * raw.offset).astype(np.int64)
    return offsets, raw.buffers()[2], np.diff(offsets)


def plain(column: pa.Array, field: Field, path: str) -> pa.Array:
    """A field's column with times and dates as numbers of the field's unit, except times of a composite with its own."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not _is_moment(kind):
        return column
    column, semantic = column.cast(kind), field.semantic_type.lower()
    if isinstance(field.type, Composite) and pa.types.is_timestamp(kind) and semantic in ("", "utctimestamp"):
        return column
    is_integer = isinstance(field.type, Scalar) and not field.type.is_text and not field.type.primitive.is_float
    if not is_integer or semantic not in MOMENTS or not MOMENTS[semantic](kind):
        whose = f", whose semanticType is {field.semantic_type}" if semantic else ""
        raise UsageError(
            f"column {path}: {kind} does not fit its field{whose}; cast it to the integer that the field shall have, or give "
            f"the field the semanticType of a time or date"
        )
    return column.cast(pa.int32()) if pa.types.is_date32(kind) else _moments(column, unit_of(field), path)


def _moments(column: pa.Array, unit: str | None, path: str) -> pa.Array:
    """Timestamps, or times of day, as numbers of a unit."""
    if unit is None:
        raise UsageError(f"column {path}: the schema says no unit for {column.type}")
    of = _of_unit(column.type, unit)
    try:
        return column.cast(of).cast(pa.int32() if pa.types.is_time32(of) else pa.int64())
    except pa.ArrowInvalid as failure:
        raise UsageError(f"column {path}: {failure}; the schema's unit is {unit}") from None


def _of_unit(of: pa.DataType, unit: str) -> pa.DataType:
    if pa.types.is_timestamp(of):
        return pa.timestamp(unit, of.tz)
    return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)


def type_of_nulls(of: Type) -> pa.DataType:
    """The type of a column of nulls for a field that the batch does not have."""
    if isinstance(of, Composite):
        return pa.struct([(one.name, type_of_nulls(one.type)) for one in of.members if not one.is_constant])
    if isinstance(of, Scalar) and of.is_text:
        return pa.string()
    return pa.from_numpy_dtype(np.dtype(of.primitive.code))
