"""Whole batches of messages to Arrow columns, in C. Spec: 10 §13, §14, §18.

What a value becomes: integers keep their width, unsigned ones take the next wider type, `uint64` a `decimal128(20, 0)`; char
arrays are text; enums are dictionaries of names, a value without a name is its number as text; sets are lists of names;
composites are structs, but decimals of a constant exponent are `decimal128` and times are what `semanticType` says; groups are
lists of structs. What a message's version does not have is null, a group too.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.check import check
from aeron_spark.errors import UsageError
from aeron_spark.sbe.model import Composite, Data, Enum, Field, Member, Message, Primitive, Scalar, Schema, Set, Type
from aeron_spark.sbe.plan import Level, Plan, bits_of
from aeron_spark.sbe.walk import DecodeError

ERROR = "sbe_error"
"""Column that says why a message could not be decoded; null where it could."""

ERRORS = tuple(
    ffi.typeof("as_sbe_error").elements[number].removeprefix("AS_SBE_")
    for number in range(len(ffi.typeof("as_sbe_error").elements))
)

OnError = Literal["null", "drop", "fail"]

DECIMAL_DIGITS = {8: 19, 4: 10, 2: 5, 1: 3}
UINT64_DIGITS = 20
MAX_DIGITS = 38
UNITS = {0: "s", 3: "ms", 6: "us", 9: "ns"}
TIME_UNITS = {"second": "s", "millisecond": "ms", "microsecond": "us", "nanosecond": "ns"}
CHARSETS = {"ascii": 1, "iso8859-1": 2, "utf-8": 3}
WIDER = {"uint8": pa.int16(), "uint16": pa.int32(), "uint32": pa.int64()}
SAME = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value stands, and on what it depends: `as_sbe_column` but for the value's own width and null."""

    level: int
    offset: int
    since: int
    field_end: int
    guard: tuple[int, Primitive, float] | None = None

    def at(self, offset: int) -> _Place:
        """A member of what is here."""
        return replace(self, offset=self.offset + offset)


class _Batch:
    """One walk's results, and the columns made of them."""

    def __init__(self, plan: Plan, payload: Any, starts: np.ndarray, ends: np.ndarray) -> None:
        self.plan = plan
        self._keep = (payload, starts, ends)
        out = ffi.new("as_sbe_batch **")
        check(
            lib.as_sbe_batch_open(
                plan.native,
                ffi.cast("uint8_t *", ffi.from_buffer(payload)) if len(payload) else ffi.NULL,
                ffi.cast("int64_t *", ffi.from_buffer(starts)),
                ffi.cast("int64_t *", ffi.from_buffer(ends)),
                len(starts),
                out,
            )
        )
        self._native = ffi.gc(out[0], lib.as_sbe_batch_close)
        self.errors = np.frombuffer(ffi.buffer(lib.as_sbe_batch_errors(self._native), len(starts)), np.uint8).copy()
        self.ends = np.frombuffer(ffi.buffer(lib.as_sbe_batch_ends(self._native), 8 * len(starts)), np.int64).copy()

    def count(self, level: int) -> int:
        """Instances of a level."""
        return int(lib.as_sbe_batch_instances(self._native, level))

    # -- buffers ---------------------------------------------------------------------------------------------------------

    def _column(self, place: _Place, primitive: Primitive, *, null: float | None = None, repeat: int = 1) -> Any:
        column = ffi.new("as_sbe_column *")
        column.level, column.offset = place.level, place.offset
        column.width, column.repeat = primitive.size, repeat
        column.since, column.field_end = place.since, place.field_end
        if null is not None:
            column.has_null = True
            column.null_is_nan = primitive.is_float and math.isnan(null)
            column.null_bits = bits_of(primitive, null)
        if place.guard is not None:
            offset, guard, value = place.guard
            column.has_guard = True
            column.guard_offset, column.guard_width = offset, guard.size
            column.guard_is_nan = guard.is_float and math.isnan(value)
            column.guard_bits = bits_of(guard, value)
        return column

    @staticmethod
    def _bitmap(count: int) -> np.ndarray:
        return np.zeros((count + 7) // 8, np.uint8)

    def _fixed(self, place: _Place, primitive: Primitive, of: pa.DataType, form: int, *, null: float | None, repeat: int = 1,
               factor: int = 1) -> pa.Array:  # fmt: skip
        count = self.count(place.level) * repeat
        out = np.empty(count * (of.bit_width // 8), np.uint8)
        validity, nulls = self._bitmap(count), ffi.new("int64_t *")
        lib.as_sbe_gather_values(
            self._native, self._column(place, primitive, null=null, repeat=repeat), form, not primitive.is_unsigned, factor,
            _pointer("void *", out), _pointer("uint8_t *", validity), nulls,
        )  # fmt: skip
        return pa.Array.from_buffers(of, count, [_validity(validity, nulls[0]), pa.py_buffer(out)], nulls[0])

    def presence(self, place: _Place) -> tuple[np.ndarray, int]:
        """Whether what is there, is there."""
        validity, nulls = self._bitmap(self.count(place.level)), ffi.new("int64_t *")
        lib.as_sbe_gather_presence(self._native, self._column(place, _BYTE), _pointer("uint8_t *", validity), nulls)
        return validity, int(nulls[0])

    # -- scalars -----------------------------------------------------------------------------------------------------------

    def number(self, place: _Place, primitive: Primitive, *, null: float | None, repeat: int = 1) -> pa.Array:
        """A number, or `repeat` of them behind each other."""
        if primitive.name in SAME:
            return self._fixed(place, primitive, SAME[primitive.name], lib.AS_SBE_FORM_SAME, null=null, repeat=repeat)
        if primitive.name in WIDER:
            return self._fixed(place, primitive, WIDER[primitive.name], lib.AS_SBE_FORM_WIDEN, null=null, repeat=repeat)
        of = pa.decimal128(UINT64_DIGITS, 0)
        return self._fixed(place, primitive, of, lib.AS_SBE_FORM_DECIMAL, null=null, repeat=repeat)

    def long(
        self, place: _Place, primitive: Primitive, of: pa.DataType, *, null: float | None, factor: int = 1
    ) -> pa.Array:
        """An integer as 64 bits of another type; what does not fit is null."""
        return self._fixed(place, primitive, of, lib.AS_SBE_FORM_LONG, null=null, factor=factor)

    def decimal(
        self, place: _Place, primitive: Primitive, digits: int, scale: int, *, null: float | None, factor: int
    ) -> pa.Array:
        """An integer times a factor as a decimal."""
        form = lib.AS_SBE_FORM_DECIMAL if primitive.is_unsigned else lib.AS_SBE_FORM_SIGNED_DECIMAL
        return self._fixed(place, primitive, pa.decimal128(digits, scale), form, null=null, factor=factor)

    def text(self, place: _Place, of: Scalar, *, is_optional: bool) -> pa.Array:
        """A char or an array of them."""
        count = self.count(place.level)
        charset = _charset(of.charset or "ascii")
        offsets, validity, nulls = np.empty(count + 1, np.int32), self._bitmap(count), ffi.new("int64_t *")
        out = np.empty(3 * count * of.length + 1, np.uint8)
        check(
            lib.as_sbe_gather_text(
                self._native, self._column(place, of.primitive, null=of.null if is_optional else None, repeat=of.length),
                charset or lib.AS_SBE_BYTES, _pointer("int32_t *", offsets), _pointer("uint8_t *", out), len(out),
                _pointer("uint8_t *", validity), nulls,
            )
        )  # fmt: skip
        return _text(offsets, out, validity, int(nulls[0]), of.charset if charset is None else None, is_text=True)

    def bytes_of(self, place: _Place, of: Scalar) -> pa.Array:
        """An array of bytes as it is."""
        count = self.count(place.level)
        out, validity, nulls = np.empty(count * of.length, np.uint8), self._bitmap(count), ffi.new("int64_t *")
        lib.as_sbe_gather_bytes(
            self._native, self._column(place, of.primitive, repeat=of.length), _pointer("uint8_t *", out),
            _pointer("uint8_t *", validity), nulls,
        )  # fmt: skip
        return pa.Array.from_buffers(
            pa.binary(of.length), count, [_validity(validity, nulls[0]), pa.py_buffer(out)], nulls[0]
        )

    def enum(self, place: _Place, of: Enum) -> pa.Array:
        """Names of values."""
        count = self.count(place.level)
        known = sorted({raw: index for index, (_, raw) in reversed(list(enumerate(of.values)))}.items())
        values = np.array([raw for raw, _ in known], np.int64)
        indices = np.array([index for _, index in known], np.int16)
        out, validity = np.empty(count, np.int16), self._bitmap(count)
        nulls, unknown = ffi.new("int64_t *"), ffi.new("int64_t *")
        lib.as_sbe_gather_enum(
            self._native, self._column(place, of.primitive, null=of.null), not of.primitive.is_unsigned,
            _pointer("int64_t *", values), _pointer("int16_t *", indices), len(values), _pointer("int16_t *", out),
            _pointer("uint8_t *", validity), nulls, unknown,
        )  # fmt: skip
        names = [name for name, _ in of.values]
        if unknown[0]:
            raw = self.number(place, replace(of.primitive, name=of.primitive.name.replace("char", "uint8")), null=None)
            where = np.flatnonzero(out < 0)
            found = [str(one) for one in raw.take(pa.array(where)).to_pylist()]
            more = {name: len(names) + index for index, name in enumerate(dict.fromkeys(found))}
            if len(names) + len(more) > np.iinfo(np.int16).max:
                raise UsageError(
                    f"enum {of.name}: more than {np.iinfo(np.int16).max} different values; decode fewer messages at once"
                )
            out[where] = [more[name] for name in found]
            names += list(more)
        indices_array = pa.Array.from_buffers(
            pa.int16(), count, [_validity(validity, nulls[0]), pa.py_buffer(out)], nulls[0]
        )
        return pa.DictionaryArray.from_arrays(indices_array, pa.array(names, pa.string()))

    def set(self, place: _Place, of: Set) -> pa.Array:
        """Names of the choices that are there."""
        count, width = self.count(place.level), len(of.choices)
        bits = np.array([bit for _, bit in of.choices], np.uint8)
        offsets, out = np.empty(count + 1, np.int32), np.empty(count * width + 1, np.int16)
        validity, nulls = self._bitmap(count), ffi.new("int64_t *")
        check(
            lib.as_sbe_gather_set(
                self._native, self._column(place, of.primitive), _pointer("uint8_t *", bits), width,
                _pointer("int32_t *", offsets), _pointer("int16_t *", out), _pointer("uint8_t *", validity), nulls,
            )
        )  # fmt: skip
        total = int(offsets[-1])
        items = pa.DictionaryArray.from_arrays(
            pa.Array.from_buffers(pa.int16(), total, [None, pa.py_buffer(out)], 0),
            pa.array([name for name, _ in of.choices], pa.string()),
        )
        return _list(items, offsets, validity, int(nulls[0]))

    def data(self, number: int, of: Data, level: int) -> pa.Array:
        """Variable data: text where it has a charset."""
        count = self.count(level)
        charset = _charset(of.charset) if of.charset else lib.AS_SBE_BYTES
        size = int(lib.as_sbe_batch_data_bytes(self._native, number))
        out = np.empty((1 if charset in (None, lib.AS_SBE_BYTES) else 3) * size + 1, np.uint8)
        offsets, validity, nulls = np.empty(count + 1, np.int32), self._bitmap(count), ffi.new("int64_t *")
        check(
            lib.as_sbe_gather_data(
                self._native, number, charset or lib.AS_SBE_BYTES, _pointer("int32_t *", offsets), _pointer("uint8_t *", out),
                len(out), _pointer("uint8_t *", validity), nulls,
            )
        )  # fmt: skip
        return _text(
            offsets, out, validity, int(nulls[0]), of.charset if charset is None else None, is_text=bool(of.charset)
        )

    def lists(self, level: int, parents: int) -> tuple[np.ndarray, np.ndarray, int]:
        """Offsets, validity and nulls of a group, for the instances of its parent."""
        offsets = np.frombuffer(
            ffi.buffer(lib.as_sbe_batch_list_offsets(self._native, level), 4 * (parents + 1)), np.int32
        ).copy()
        validity = np.frombuffer(
            ffi.buffer(lib.as_sbe_batch_list_validity(self._native, level), (parents + 7) // 8), np.uint8
        ).copy()
        there = int(np.unpackbits(validity, bitorder="little", count=parents).sum())
        return offsets, validity, parents - there


_BYTE = Primitive("uint8", 1, "B", 0, 254, 255)


def _pointer(of: str, array: np.ndarray) -> Any:
    return ffi.cast(of, array.ctypes.data)


def _validity(bitmap: np.ndarray, nulls: int) -> pa.Buffer | None:
    return pa.py_buffer(bitmap) if nulls else None


def _charset(name: str) -> int | None:
    """The charset's number in C; None: Python decodes it."""
    return CHARSETS.get(codecs.lookup(name).name)


def _text(
    offsets: np.ndarray, out: np.ndarray, validity: np.ndarray, nulls: int, charset: str | None, *, is_text: bool
) -> pa.Array:
    buffers = [_validity(validity, nulls), pa.py_buffer(offsets), pa.py_buffer(out[: int(offsets[-1])])]
    if charset is not None:
        raw = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers, nulls)
        decoded = [None if one is None else one.decode(charset, "replace") for one in raw.to_pylist()]
        return pa.array(decoded, pa.string())
    return pa.Array.from_buffers(pa.string() if is_text else pa.binary(), len(offsets) - 1, buffers, nulls)


def _list(items: pa.Array, offsets: np.ndarray, validity: np.ndarray, nulls: int) -> pa.Array:
    return pa.Array.from_buffers(
        pa.list_(items.type),
        len(offsets) - 1,
        [_validity(validity, nulls), pa.py_buffer(offsets)],
        nulls,
        children=[items],
    )


def _struct(
    names: Sequence[str], columns: Sequence[pa.Array], count: int, validity: np.ndarray, nulls: int
) -> pa.Array:
    of = pa.struct([pa.field(name, column.type) for name, column in zip(names, columns, strict=True)])
    return pa.Array.from_buffers(of, count, [_validity(validity, nulls)], nulls, children=list(columns))


def _member(of: Composite, name: str) -> Member | None:
    """A member whatever the case of its name."""
    return next((one for one in of.members if one.name.lower() == name), None)


class _Columns:
    """The columns of one message over one batch."""

    def __init__(self, batch: _Batch) -> None:
        self._batch = batch

    def block(self, level: Level) -> tuple[list[str], list[pa.Array]]:
        """Names and columns of a root block or of a group's entries."""
        block = level.block
        names = [
            *(one.name for one in block.fields),
            *(one.name for one in block.groups),
            *(one.name for one in block.data),
        ]
        columns = [self._field(one, level.number) for one in block.fields]
        columns += [self._group(one, level.number) for one in level.children]
        columns += [
            self._batch.data(level.first_data + index, one, level.number) for index, one in enumerate(block.data)
        ]
        return names, columns

    def _group(self, level: Level, parent: int) -> pa.Array:
        names, columns = self.block(level)
        count = self._batch.count(level.number)
        entries = _struct(names, columns, count, np.empty(0, np.uint8), 0)
        return _list(entries, *self._batch.lists(level.number, self._batch.count(parent)))

    def _field(self, field: Field, level: int) -> pa.Array:
        if field.presence == "constant":
            return self._constant(field.constant, field.type, _Place(level, 0, 0, 0))
        place = _Place(level, field.offset, field.since, field.offset + field.size)
        is_optional = field.presence == "optional"
        if isinstance(field.type, Composite) and is_optional:
            place = replace(place, guard=_guard(field.type, field.offset))
        time = self._time(field.semantic_type.lower(), field, place, is_optional=is_optional)
        return time if time is not None else self._value(field.type, place, is_optional=is_optional)

    def _value(self, of: Type, place: _Place, *, is_optional: bool) -> pa.Array:
        match of:
            case Scalar():
                return self._scalar(of, place, is_optional=is_optional)
            case Enum():
                return self._batch.enum(place, of)
            case Set():
                return self._batch.set(place, of)
            case Composite():
                return self._composite(of, place)

    def _scalar(self, of: Scalar, place: _Place, *, is_optional: bool) -> pa.Array:
        if of.is_text:
            return self._batch.text(place, of, is_optional=is_optional)
        null = of.null if is_optional else None
        if of.length == 1:
            return self._batch.number(place, of.primitive, null=null)
        if of.primitive.size == 1 and not of.charset and not is_optional:
            return self._batch.bytes_of(place, of)
        items = self._batch.number(place, of.primitive, null=null, repeat=of.length)
        count = self._batch.count(place.level)
        return _list(items, np.arange(count + 1, dtype=np.int32) * of.length, *self._batch.presence(place))

    def _composite(self, of: Composite, place: _Place) -> pa.Array:
        decimal = self._decimal(of, place)
        if decimal is not None:
            return decimal
        columns = [self._member(one, place) for one in of.members]
        return _struct(
            [one.name for one in of.members], columns, self._batch.count(place.level), *self._batch.presence(place)
        )

    def _member(self, member: Member, place: _Place) -> pa.Array:
        of = member.type
        if isinstance(of, Scalar):
            if of.presence == "constant":
                return self._constant(of.constant, of, place)
            return self._scalar(of, place.at(member.offset), is_optional=of.presence == "optional")
        return self._value(of, place.at(member.offset), is_optional=False)

    def _constant(self, value: Any, of: Type, place: _Place) -> pa.Array:
        count = self._batch.count(place.level)
        validity, nulls = self._batch.presence(place)
        kind = pa.string() if isinstance(value, str) else _type_of(of)
        indices = pa.Array.from_buffers(
            pa.int16(), count, [_validity(validity, nulls), pa.py_buffer(np.zeros(count, np.int16))], nulls
        )
        values = pa.array([Decimal(value) if pa.types.is_decimal(kind) else value], kind)
        return pa.DictionaryArray.from_arrays(indices, values)

    # -- decimals and times, Spec: 10 §14.3, §14.6 -----------------------------------------------------------------------------

    def _decimal(self, of: Composite, place: _Place) -> pa.Array | None:
        exponent = _member(of, "exponent")
        numbers = [one for one in of.members if not one.is_constant and one is not exponent]
        if exponent is None or not exponent.is_constant or len(of.members) != len(numbers) + 1 or len(numbers) != 1:
            return None
        mantissa = numbers[0].type
        assert isinstance(exponent.type, Scalar)  # noqa: S101 - a constant is one
        shift = exponent.type.constant
        if (
            not isinstance(mantissa, Scalar)
            or mantissa.length != 1
            or mantissa.primitive.is_float
            or not isinstance(shift, int)
        ):
            return None
        digits = UINT64_DIGITS if mantissa.primitive.name == "uint64" else DECIMAL_DIGITS[mantissa.primitive.size]
        digits, scale = (max(digits, -shift), -shift) if shift <= 0 else (min(MAX_DIGITS, digits + shift), 0)
        if scale > MAX_DIGITS or shift > 18:  # noqa: PLR2004 - 10^18 is the largest power of ten in 64 bits
            return None
        null = mantissa.null if mantissa.presence == "optional" else None
        factor = 10 ** max(shift, 0)
        return self._batch.decimal(
            place.at(numbers[0].offset), mantissa.primitive, digits, scale, null=null, factor=factor
        )

    def _time(self, semantic: str, field: Field, place: _Place, *, is_optional: bool) -> pa.Array | None:
        of = field.type
        if isinstance(of, Composite):
            return self._timestamp(of, place) if semantic == "utctimestamp" else None
        if not isinstance(of, Scalar) or of.length != 1 or of.primitive.is_float or of.is_text:
            return None
        null = of.null if is_optional else None
        return self._plain_time(semantic, field, of, place, null)

    def _timestamp(self, of: Composite, place: _Place) -> pa.Array | None:
        """A time beside its constant unit."""
        time, unit = _member(of, "time"), _member(of, "unit")
        if time is None or unit is None or not isinstance(time.type, Scalar) or not isinstance(unit.type, Scalar):
            return None
        code = UNITS.get(unit.type.constant) if isinstance(unit.type.constant, int) else None
        if code is None or time.type.length != 1 or time.type.primitive.is_float:
            return None
        null = time.type.null if time.type.presence == "optional" else None
        return self._batch.long(place.at(time.offset), time.type.primitive, pa.timestamp(code, "UTC"), null=null)

    def _plain_time(
        self, semantic: str, field: Field, of: Scalar, place: _Place, null: float | None
    ) -> pa.Array | None:
        """A time that is one integer."""
        if semantic == "utctimestamp":
            code = TIME_UNITS.get(field.time_unit.lower() or "nanosecond")
            return code and self._batch.long(place, of.primitive, pa.timestamp(code, "UTC"), null=null)
        if semantic == "utctimeonly" and of.primitive.size == 8:  # noqa: PLR2004 - nanoseconds since midnight
            return self._batch.long(place, of.primitive, pa.time64("ns"), null=null)
        if semantic in ("utcdateonly", "localmktdate") and of.primitive.size <= 4:  # noqa: PLR2004 - days in 32 bits
            days = self._batch.number(place, of.primitive, null=null)
            return days.cast(pa.int32()).cast(pa.date32())
        return None


def _type_of(of: Type) -> pa.DataType:
    name = of.primitive.name if isinstance(of, (Scalar, Enum)) else ""
    return SAME.get(name) or WIDER.get(name) or pa.decimal128(UINT64_DIGITS, 0)


def _guard(of: Composite, offset: int) -> tuple[int, Primitive, float] | None:
    """The first member that takes bytes: the composite is null when that is. Spec: 10 §3.5."""
    first = next((one for one in of.members if not one.is_constant), None)
    if first is None or isinstance(first.type, Set):
        return None
    if isinstance(first.type, Composite):
        return _guard(first.type, offset + first.offset)
    return offset + first.offset, first.type.primitive, first.type.null


class Decoder:
    """Columns of a schema's messages.

    `on_error`: a message that can't be decoded is a row of nulls (`null`; the column `sbe_error` says why), no row (`drop`), or
    an exception (`fail`). Thread rule: any number of threads.
    """

    def __init__(self, schema: Schema, *, on_error: OnError = "null") -> None:
        if on_error not in ("null", "drop", "fail"):
            raise UsageError(f"on_error='{on_error}' is not null, drop or fail")
        self.schema = schema
        self._on_error = on_error
        self._plans: dict[int, Plan] = {}

    def decode(self, payloads: pa.Array | pa.ChunkedArray | Sequence[bytes], message: str) -> pa.RecordBatch:
        """The messages of one template, a row each: a column each for its fields, groups and data, and `sbe_error`.

        `payloads`: binary, one message each. UsageError: no such message in the schema; DecodeError, if `on_error` is `fail`.
        """
        definition = self.schema.message(message)
        if definition is None:
            known = ", ".join(one.name for one in self.schema.messages.values())
            raise UsageError(f"there is no message '{message}' in the schema; it has {known}")
        array = _binary(payloads)
        offsets = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, array.offset * 8)
        content = array.buffers()[2]
        batch = _Batch(
            self._plan(definition), b"" if content is None else content, np.ascontiguousarray(offsets[:-1]),
            np.ascontiguousarray(offsets[1:]),
        )  # fmt: skip
        if self._on_error == "fail" and batch.errors.any():
            row = int(np.flatnonzero(batch.errors)[0])
            raise DecodeError(ERRORS[batch.errors[row]], int(batch.ends[row]), f"message {row} of {message}")
        names, columns = _Columns(batch).block(batch.plan.root)
        errors = pa.DictionaryArray.from_arrays(
            pa.array(batch.errors.astype(np.int8), mask=batch.errors == 0), pa.array(ERRORS, pa.string())
        )
        found = pa.RecordBatch.from_arrays([*columns, errors], [*names, ERROR])
        return found.filter(pa.array(batch.errors == 0)) if self._on_error == "drop" and batch.errors.any() else found

    def _plan(self, message: Message) -> Plan:
        # Two threads that make the same plan waste one.
        return self._plans.setdefault(message.id, self._plans.get(message.id) or Plan(self.schema, message))


def _binary(payloads: pa.Array | pa.ChunkedArray | Sequence[bytes]) -> pa.Array:
    array = payloads if isinstance(payloads, (pa.Array, pa.ChunkedArray)) else pa.array(payloads, pa.large_binary())
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)):
        raise UsageError(f"payloads are {array.type}, not binary")
    return array.cast(pa.large_binary())
