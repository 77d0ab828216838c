"""Compiles a message's definition to Arrow columns: their types, and how each is made from a walk. Spec: 10 §14.

Mapping of values unless `Options` override it: integers keep their width; unsigned ones use the next wider type,
`uint64` a `decimal128(20, 0)`; char arrays are text; enums are dictionaries of names, and a value without a name is its
number as text; sets are lists of names; composites are structs, except that decimals of a constant exponent are
`decimal128` and times follow their `semanticType`; groups are lists of structs. Fields and groups that a message's
version does not have are null.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Container
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aeron_spark._native._lib import ffi, lib
from aeron_spark.sbe import decimals, times
from aeron_spark.sbe.column import Column, repeated, struct_of
from aeron_spark.sbe.export import Node, struct_node
from aeron_spark.sbe.model import Composite, Data, Enum, Field, Member, Primitive, Scalar, Set, Type
from aeron_spark.sbe.options import Options
from aeron_spark.sbe.plan import Level, Plan
from aeron_spark.sbe.run import Location, Run, list_of
from aeron_spark.sbe.values import CHARSETS, Values, type_of_number
from aeron_spark.sbe.walk import first_on_wire

UNITS = {0: "s", 3: "ms", 6: "us", 9: "ns"}
TIME_UNITS = {"second": "s", "millisecond": "ms", "microsecond": "us", "nanosecond": "ns"}
HEADER = "sbe_header"
"""Column with the members of the message's header."""
MAX_SHOWN = 32
"""Bytes of a text that an error includes."""
DATE_PARTS = ("year", "month", "day", "week")


def charset_of(name: str) -> int | None:
    """The charset's number in C; None: Python decodes it."""
    return CHARSETS.get(codecs.lookup(name).name)


def member_of(of: Composite, name: str) -> Member | None:
    """A member by name, ignoring case."""
    return next((one for one in of.members if one.name.lower() == name), None)


def unit_of(field: Field) -> str | None:
    """The unit of an integer that is a time; None: its `timeUnit` is no unit. Spec: 10 §14.6."""
    return TIME_UNITS.get(field.time_unit.lower() or "nanosecond")


def _guard(of: Composite, offset: int) -> tuple[int, Primitive, float] | None:
    """The first member that takes bytes; the composite is null when this member is null. Spec: 10 §3.5."""
    first = first_on_wire(of, offset)
    if first is None or isinstance(first[1], Set):
        return None
    return first[0], first[1].primitive, first[1].null


def _year(of: Composite, offset: int) -> tuple[int, Primitive, float] | None:
    """A MonthYear is null when its year is. Spec: 10 §14.6."""
    year = member_of(of, "year")
    if year is None or not isinstance(year.type, Scalar) or year.type.size != year.type.primitive.size:
        return None
    return offset + year.offset, year.type.primitive, year.type.null


class Compiler(Values):
    """The columns of one message by one set of options, all or the `wanted` ones; `tasks` are the numeric ones."""

    def __init__(self, plan: Plan, options: Options, wanted: Container[str] | None = None) -> None:
        super().__init__(options)
        self._wanted = wanted
        self.columns = self._block(plan.root)
        if options.header and (wanted is None or HEADER in wanted):
            # A header precedes its message's block.
            composite = plan.schema.header.composite
            self.columns = {HEADER: self._struct(composite, Location(0, -composite.size, 0, 0)), **self.columns}

    # -- blocks ------------------------------------------------------------------------------------------------------------

    def _is_wanted(self, one: Any, level: Level) -> bool:
        if self._options.drop_deprecated and one.deprecated:
            return False
        if level.parent is None and self._wanted is not None and one.name not in self._wanted:
            return False
        return not (self._options.constants == "drop" and isinstance(one, Field) and one.presence == "constant")

    def _block(self, level: Level) -> dict[str, Column]:
        block = level.block
        made = {one.name: self._field(one, level) for one in block.fields if self._is_wanted(one, level)}
        for child in level.children:
            if self._is_wanted(child.block, level):
                made[child.block.name] = self._group(child, level.number)
        for index, one in enumerate(block.data):
            if self._is_wanted(one, level):
                made[one.name] = self._data(level.first_data + index, one, level)
        return made

    def _group(self, level: Level, parent: int) -> Column:
        made = self._block(level)
        entry = struct_of(made, lambda run: (run.counts[level.number], None, 0))
        number = level.number

        def make(run: Run) -> pa.Array:
            count, offsets, validity, nulls = run.lists(number, parent)
            return list_of(entry.make(run), count, offsets, validity, nulls)

        def node(inner: Node | None) -> Node | None:
            return inner and Node(kind=lib.AS_SBE_NODE_LIST, level=number, parent=parent, children=(inner,))

        return Column(
            pa.list_(entry.type),
            make,
            node(struct_node(number, [one.node for one in made.values()])),
            node(struct_node(number, [one.of_c for one in made.values()])),
        )

    def _field(self, field: Field, level: Level) -> Column:
        if field.presence == "constant":
            return self._constant(field.constant, field.type, Location(level.number, 0, 0, 0))
        location = Location(
            level.number, field.offset, field.since, field.offset + field.size, path=level.path_of(field.name)
        )  # fmt: skip
        is_optional = field.presence == "optional"
        if isinstance(field.type, Composite):
            guard = _guard(field.type, field.offset) if is_optional else None
            if field.semantic_type.lower() == "monthyear" and self._options.timestamps != "long":
                guard = _year(field.type, field.offset) or guard
            location = replace(location, guard=guard)
        time = self._time(field.semantic_type.lower(), field, location, is_optional=is_optional)
        if time is not None:
            return time
        return self._sibling_decimal(field, level, location) or self._value(
            field.type, location, is_optional=is_optional
        )

    def _value(self, of: Type, location: Location, *, is_optional: bool) -> Column:
        match of:
            case Scalar():
                return self._scalar(of, location, is_optional=is_optional)
            case Enum():
                return self._enum(of, location)
            case Set():
                return self._set(of, location)
            case Composite():
                return self._composite(of, location)

    # -- scalars -----------------------------------------------------------------------------------------------------------

    def _scalar(self, of: Scalar, location: Location, *, is_optional: bool) -> Column:
        if of.is_text:
            return self._chars(of, location, is_optional=is_optional)
        null = of.null if is_optional else None
        if of.length == 1:
            return self._number(location, of.primitive, null)
        is_bytes = of.primitive.size == 1 and not of.charset and not is_optional
        if is_bytes and self._options.byte_arrays == "binary":
            kind = pa.binary() if self._options.spark else pa.binary(of.length)
            column = location.fill(ffi.new("as_sbe_column *"), of.primitive, repeat=of.length)
            node = Node(kind=lib.AS_SBE_NODE_BYTES, level=location.level, column=column)
            return Column(
                kind,
                lambda run: run.bytes_of(location, of.primitive, of.length).cast(kind),
                node if self._options.spark else None,
            )
        items = self._number(location, of.primitive, null, of.length)

        def make(run: Run) -> pa.Array:
            count = run.counts[location.level]
            offsets = pa.py_buffer(np.arange(count + 1, dtype=np.int32) * of.length)
            return list_of(items.make(run), count, offsets, *run.presence(location))

        array = location.fill(ffi.new("as_sbe_column *"), of.primitive, repeat=of.length)
        return Column(
            pa.list_(items.type),
            make,
            items.node and Node(kind=lib.AS_SBE_NODE_ARRAY, level=location.level, column=array, children=(items.node,)),
        )

    def _chars(self, of: Scalar, location: Location, *, is_optional: bool) -> Column:
        column = location.fill(
            ffi.new("as_sbe_column *"), of.primitive, null=of.null if is_optional else None, repeat=of.length
        )
        charset = of.charset or "ascii"
        node = Node(kind=lib.AS_SBE_NODE_TEXT, level=location.level, column=column)

        def refuse(run: Run, instance: int, text: str) -> None:
            run.refuse("BAD_TEXT", location, instance, text)

        if self._options.chars == "binary":
            return Column(pa.binary(), lambda run: run.text(column, location.level, of.length, lib.AS_SBE_BYTES), node)
        text = self._text(
            charset, lambda run, number: run.text(column, location.level, of.length, number), node, refuse
        )
        if self._options.chars == "trim" and of.length > 1:
            trimmed = text.node and replace(text.node, is_trimmed=True)
            return Column(text.type, lambda run: pc.utf8_rtrim(text.make(run), characters=" "), trimmed)
        return text

    def _data(self, number: int, of: Data, level: Level) -> Column:
        location = Location(level.number, 0, of.since, 0, path=level.path_of(of.name))
        node = Node(kind=lib.AS_SBE_NODE_DATA, level=location.level, index=number)

        def refuse(run: Run, instance: int, text: str) -> None:
            run.refuse_data("BAD_TEXT", number, location, instance, text)

        if of.charset:
            made = self._text(of.charset, lambda run, charset: run.data(number, location.level, charset), node, refuse)
        else:
            made = Column(pa.binary(), lambda run: run.data(number, location.level, lib.AS_SBE_BYTES), node)
        if of.name not in self._options.empty_as_null:
            return made

        def make(run: Run) -> pa.Array:
            found = made.make(run)
            return pc.if_else(pc.equal(pc.binary_length(found), 0), pa.scalar(None, made.type), found)

        return Column(made.type, make)

    def _text(
        self, charset: str, gather: Callable[[Run, int], pa.Array], node: Node, refuse: Callable[[Run, int, str], None]
    ) -> Column:
        """`node` is the node of the bytes; `refuse` makes an instance's message an error."""
        number = charset_of(charset)
        if number is not None and self._options.bad_text == "replace":
            return Column(pa.string(), lambda run: gather(run, number), replace(node, charset=number))

        def make(run: Run) -> pa.Array:
            raw = gather(run, lib.AS_SBE_BYTES)
            try:
                if number is not None and charset_of("utf-8") == number:
                    return raw.cast(pa.string())
                decoded = [None if one is None else one.decode(charset) for one in raw.to_pylist()]
            except (UnicodeDecodeError, pa.ArrowInvalid):
                decoded = [self._decode(run, one, charset, refuse, i) for i, one in enumerate(raw.to_pylist())]
            return pa.array(decoded, pa.string())

        return Column(pa.string(), make)

    def _decode(
        self, run: Run, raw: bytes | None, charset: str, refuse: Callable[[Run, int, str], None], instance: int
    ) -> str | None:
        if raw is None:
            return None
        try:
            return raw.decode(charset)
        except UnicodeDecodeError:
            if self._options.bad_text == "replace":
                return raw.decode(charset, "replace")
            if self._options.bad_text == "error":
                refuse(
                    run, instance, f"{raw[:MAX_SHOWN].hex()}{'...' * (len(raw) > MAX_SHOWN)}, which is not {charset}"
                )
            else:
                run.lost += 1
            return None

    # -- composites ----------------------------------------------------------------------------------------------------------

    def _composite(self, of: Composite, location: Location) -> Column:
        return self._decimal(of, location) or self._struct(of, location)

    def _struct(self, of: Composite, location: Location) -> Column:
        made = {
            one.name: self._of_member(one, location)
            for one in of.members
            if not (one.is_constant and self._options.constants == "drop")
        }
        return struct_of(
            made, lambda run: (run.counts[location.level], *run.presence(location)), location.level, location.presence
        )

    def _of_member(self, member: Member, location: Location) -> Column:
        of = member.type
        if isinstance(of, Scalar):
            if of.presence == "constant":
                return self._constant(of.constant, of, location)
            return self._scalar(of, location.at(member), is_optional=of.presence == "optional")
        return self._value(of, location.at(member), is_optional=False)

    def _constant(self, value: Any, of: Type, location: Location) -> Column:
        plain = isinstance(of, (Scalar, Enum)) and not isinstance(value, str)
        kind = type_of_number(of.primitive) if plain and isinstance(of, (Scalar, Enum)) else pa.string()
        values = pa.array([Decimal(value) if pa.types.is_decimal(kind) else value], kind)

        def make(run: Run) -> pa.Array:
            count = run.counts[location.level]
            validity, nulls = run.presence(location)
            zeros = pa.py_buffer(np.zeros(count, np.int16))
            indices = pa.Array.from_buffers(pa.int16(), count, [validity, zeros], nulls)
            return pa.DictionaryArray.from_arrays(indices, values)

        node = Node(kind=lib.AS_SBE_NODE_CONSTANT, level=location.level, column=location.presence)
        if pa.types.is_string(kind):
            node = replace(node, width=2, value=b"\0\0", names=(value,))
        else:
            width = kind.bit_width // 8
            node = replace(node, width=width, value=values.buffers()[1].to_pybytes()[:width])
        if self._options.spark and node.names:
            return Column(kind, lambda run: make(run).cast(kind), encoded=node)
        if self._options.spark:
            return Column(kind, lambda run: make(run).cast(kind), node)
        return Column(pa.dictionary(pa.int16(), kind), make, node if node.names else None)

    # -- decimals, Spec: 10 §14.3 ----------------------------------------------------------------------------------------------

    def _decimal(self, of: Composite, location: Location) -> Column | None:  # noqa: PLR0911 - a table of cases
        exponent = member_of(of, "exponent")
        numbers = [one for one in of.members if not one.is_constant and one is not exponent]
        if exponent is None or len(of.members) != len(numbers) + 1 or len(numbers) != 1:
            return None
        mantissa = numbers[0].type
        if (
            not isinstance(mantissa, Scalar)
            or not isinstance(exponent.type, Scalar)
            or self._options.decimals == "parts"
        ):
            return None
        if mantissa.length != 1 or mantissa.primitive.is_float or mantissa.is_text or exponent.type.length != 1:
            return None
        at = location.at(numbers[0])
        null = mantissa.null if mantissa.presence == "optional" else None
        if not exponent.is_constant:
            if self._options.decimals == "exact" or exponent.type.primitive.name != "int8":
                return None
            return self._folded(at, mantissa, null, location.at(exponent), self._options.decimal)
        shift = exponent.type.constant
        if not isinstance(shift, int):
            return None
        if self._options.decimals != "exact":
            if abs(shift) > decimals.MAX_SHIFT:
                return None
            return self._folded(at, mantissa, null, shift, self._options.decimal)
        return self._constant_shift(at, mantissa, null, shift)

    def _sibling_decimal(self, field: Field, level: Level, location: Location) -> Column | None:
        """A mantissa whose exponent is a separate field, in the same block or an enclosing one."""
        of, name = field.type, field.attributes.get("exponent")
        if not name or self._options.decimals in ("exact", "parts"):
            return None
        if not isinstance(of, Scalar) or of.length != 1 or of.primitive.is_float or of.is_text:
            return None
        steps: list[tuple[int, int]] = []
        while True:
            found = next((one for one in level.block.fields if one.name == name), None)
            if found is not None or level.parent is None:
                break
            steps.insert(0, (level.number, level.parent.number))
            level = level.parent
        if found is None or not isinstance(found.type, Scalar) or found.type.primitive.name != "int8":
            return None
        if found.type.length != 1 or found.presence == "constant":
            return None
        where = Location(level.number, found.offset, found.since, found.offset + found.size)
        exponent = repeated(self._exponent(where), steps) if steps else where
        null = of.null if field.presence == "optional" else None
        return self._folded(location, of, null, exponent, self._options.decimal)

    # -- times, Spec: 10 §14.6 -----------------------------------------------------------------------------------------------

    def _time(  # noqa: PLR0911 - a table of cases
        self, semantic: str, field: Field, location: Location, *, is_optional: bool
    ) -> Column | None:
        of = field.type
        unit = dict(self._options.times).get(field.name)
        if isinstance(of, Composite) and semantic == "monthyear" and self._options.month_years == "text":
            return self._month_year(of, location)
        if self._options.timestamps == "long":
            return None
        if isinstance(of, Composite):
            return self._timestamp(of, location, unit) if semantic == "utctimestamp" or unit else None
        if not isinstance(of, Scalar) or of.length != 1 or of.primitive.is_float or of.is_text:
            return None
        null = of.null if is_optional else None
        if unit is not None:
            return self._moment(location, of.primitive, null, unit)
        code = unit_of(field)
        if semantic == "utctimestamp":
            return self._moment(location, of.primitive, null, code) if code else None
        if semantic == "utctimeonly" and of.primitive.size == 8:  # noqa: PLR2004 - nanoseconds of a day take more than 32 bits
            return self._time_of_day(location, of.primitive, null, code) if code else None
        if semantic in ("utcdateonly", "localmktdate") and of.primitive.size <= 4:  # noqa: PLR2004 - days in 32 bits
            return self._date(location, of.primitive, null)
        return None

    def _timestamp(  # noqa: PLR0911 - a table of cases
        self, of: Composite, location: Location, given: str | None
    ) -> Column | None:
        """A time with its unit, which is a constant, on the wire, or given by an option."""
        time, unit = member_of(of, "time"), member_of(of, "unit")
        if time is None or not isinstance(time.type, Scalar):
            return None
        if time.type.length != 1 or time.type.primitive.is_float or time.type.is_text:
            return None
        null = time.type.null if time.type.presence == "optional" else None
        at = location.at(time)
        if given is not None:
            return self._moment(at, time.type.primitive, null, given)
        if unit is None or not isinstance(unit.type, (Scalar, Enum)):
            return None
        if unit.is_constant and isinstance(unit.type, Scalar):
            code = UNITS.get(unit.type.constant) if isinstance(unit.type.constant, int) else None
            return None if code is None else self._moment(at, time.type.primitive, null, code)
        if unit.type.primitive.name != "uint8":
            return None
        return self._mixed_moment(at, time.type, null, location.at(unit))

    def _month_year(self, of: Composite, location: Location) -> Column | None:
        parts: dict[str, Column] = {}
        for name in DATE_PARTS:
            member = member_of(of, name)
            if member is None or not isinstance(member.type, Scalar) or member.is_constant or member.type.length != 1:
                return None
            # An absent part holds its null value, whatever its presence.
            parts[name] = self._number(location.at(member), member.type.primitive, member.type.null)

        def make(run: Run) -> pa.Array:
            made, lost = times.month_years({name: column.make(run) for name, column in parts.items()})
            run.lost += lost
            return made

        return Column(pa.string(), make)
