"""Columns of values at a place of a message: numbers, enums, sets, decimals and times. Spec: 10 §14.3, §14.6."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aeron_spark._native._lib import ffi, lib
from aeron_spark.errors import UsageError
from aeron_spark.sbe import decimals, times
from aeron_spark.sbe.column import Column, fold, struct_of
from aeron_spark.sbe.export import Node
from aeron_spark.sbe.model import Enum, Primitive, Scalar, Set
from aeron_spark.sbe.options import MAX_DIGITS, Options
from aeron_spark.sbe.run import Location, Run, Task, Tasks

DECIMAL_DIGITS = {8: 19, 4: 10, 2: 5, 1: 3}
UINT64_DIGITS = 20
NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
PER_MICROSECOND = {"s": (1_000_000, 1), "ms": (1000, 1), "us": (1, 1), "ns": (1, 1000)}
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
BOOLEANS = ({"f", "t"}, {"false", "true"}, {"no", "yes"})
NAMES = pa.dictionary(pa.int16(), pa.string())
DAY_NS = 86_400 * 10**9
MAX_DAY = np.iinfo(np.int32).max
MAX_NAMES = np.iinfo(np.int16).max


def type_of_number(primitive: Primitive) -> pa.DataType:
    """The smallest type that holds all of its values."""
    return SAME.get(primitive.name) or WIDER.get(primitive.name) or pa.decimal128(UINT64_DIGITS, 0)


class Values:
    """Makes columns by one set of options; `tasks` are the numeric ones."""

    def __init__(self, options: Options) -> None:
        self.tasks = Tasks()
        self._options = options

    def _task(self, task: Task, of: pa.DataType) -> Column:
        task.width = of.bit_width // 8
        slot = self.tasks.add(task)
        repeat = task.repeat
        node = Node(kind=lib.AS_SBE_NODE_NUMBERS, level=slot[0], index=slot[1], width=task.width, repeat=repeat)
        return Column(of, lambda run: run.numbers(slot, of, repeat), node)

    def _number(self, location: Location, primitive: Primitive, null: float | None, repeat: int = 1) -> Column:
        form, of = lib.AS_SBE_FORM_SAME, type_of_number(primitive)
        if primitive.name in WIDER:
            form = lib.AS_SBE_FORM_WIDEN
        elif primitive.name not in SAME:
            form, of = {
                "decimal": (lib.AS_SBE_FORM_DECIMAL, of),
                "long": (lib.AS_SBE_FORM_LONG, pa.int64()),
                "bits": (lib.AS_SBE_FORM_SAME, pa.int64()),
            }[self._options.uint64]
        return self._task(
            Task(location=location, primitive=primitive, form=form, width=0, null=null, repeat=repeat), of
        )

    # -- enums and sets ------------------------------------------------------------------------------------------------------

    def _enum(self, of: Enum, location: Location) -> Column:
        if self._options.enums == "values":
            return self._enum_values(of, location)
        if (
            self._options.enums == "bool"
            and {raw for _, raw in of.values} == {0, 1}
            and len(of.values) == len(BOOLEANS[0])
        ):
            names = {name.lower() for name, _ in of.values}
            falses = {name.lower() for name, raw in of.values if raw == 0}
            if names in BOOLEANS and falses <= {"f", "false", "no"}:
                return self._enum_bool(of, location)
        return self._enum_names(of, location)

    def _enum_values(self, of: Enum, location: Location) -> Column:
        if not of.primitive.is_char:
            return self._number(location, of.primitive, of.null)
        column = location.fill(ffi.new("as_sbe_column *"), of.primitive, null=of.null, repeat=1)
        charset = CHARSETS["iso8859-1"]
        node = Node(kind=lib.AS_SBE_NODE_TEXT, level=location.level, column=column, charset=charset)
        return Column(pa.string(), lambda run: run.text(column, location.level, 1, charset), node)

    def _index(self, of: Enum, location: Location) -> tuple[Column, tuple[int, int]]:
        """Indices of names; -1: unknown."""
        known = {_signed(raw): index for index, (_, raw) in reversed(list(enumerate(of.values)))}
        if of.primitive.size == 1:
            table = np.full(256, -1, np.int16)
            for raw, index in [*known.items(), (int(of.null), 0)]:
                table[raw % 256] = index
            enum: tuple[np.ndarray, ...] = (table,)
        else:
            enum = (np.array(sorted(known), np.int64), np.array([known[raw] for raw in sorted(known)], np.int16))
        task = Task(
            location=location, primitive=of.primitive, form=lib.AS_SBE_FORM_ENUM, width=2, null=of.null, enum=enum
        )  # fmt: skip
        slot = self.tasks.add(task)
        node = Node(kind=lib.AS_SBE_NODE_NUMBERS, level=slot[0], index=slot[1], width=task.width)
        return Column(pa.int16(), lambda run: run.numbers(slot, pa.int16()), node), slot

    def _enum_bool(self, of: Enum, location: Location) -> Column:
        indices, _ = self._index(of, location)
        is_true = [raw == 1 for _, raw in of.values]

        def make(run: Run) -> pa.Array:
            found = self._known(run, of, location, indices.make(run))
            return pc.equal(found, is_true.index(True))

        return Column(pa.bool_(), make)

    def _known(self, run: Run, of: Enum, location: Location, indices: pa.Array) -> pa.Array:
        """Replaces indices without a name by null."""
        is_known = pc.greater_equal(indices, 0)
        unknown = len(indices) - indices.null_count - (pc.sum(is_known).as_py() or 0)
        if unknown and self._options.unknown_enum == "error":
            raw = run.raw(Task(location=location, primitive=of.primitive, form=lib.AS_SBE_FORM_SAME, width=0))
            for instance in np.flatnonzero(np.asarray(indices.fill_null(0)) < 0).tolist():
                value = raw[instance].as_py()
                shown = repr(chr(value)) if of.primitive.is_char else str(value)
                run.refuse("BAD_ENUM", location, instance, f"{shown}, which is no value of enum {of.name}")
        elif unknown:
            run.lost += unknown
        return pc.if_else(is_known, indices, pa.scalar(None, pa.int16())) if unknown else indices

    def _enum_names(self, of: Enum, location: Location) -> Column:
        indices, slot = self._index(of, location)
        names = [name for name, _ in of.values]
        known = pa.array(names, pa.string())
        raw_task = Task(location=location, primitive=of.primitive, form=lib.AS_SBE_FORM_SAME, width=0)

        def make(run: Run) -> pa.Array:
            found = indices.make(run)
            if not run.unknown(slot):
                return pa.DictionaryArray.from_arrays(found, known, safe=False)
            if self._options.unknown_enum != "text":
                return pa.DictionaryArray.from_arrays(self._known(run, of, location, found), known)
            return _named(of, found, run.raw(raw_task))

        node = indices.node and indices.node.named(names)
        if self._options.spark:
            return Column(pa.string(), lambda run: make(run).cast(pa.string()), encoded=node)
        return Column(NAMES, make, node)

    def _set(self, of: Set, location: Location) -> Column:
        names = pa.array([name for name, _ in of.choices], pa.string())
        if self._options.sets == "bits":
            return self._number(location, of.primitive, None)
        if self._options.sets == "struct":
            return self._set_struct(of, location)
        bits = np.array([bit for _, bit in of.choices], np.uint8)
        kind = pa.list_(pa.string() if self._options.spark else NAMES)

        def make(run: Run) -> pa.Array:
            found = run.set(location, of.primitive, bits, names)
            return found.cast(kind) if self._options.spark else found

        node = Node(
            kind=lib.AS_SBE_NODE_SET,
            level=location.level,
            column=location.fill(ffi.new("as_sbe_column *"), of.primitive),
            names=tuple(name for name, _ in of.choices),
            bits=bits.tobytes(),
        )
        return Column(kind, make, encoded=node) if self._options.spark else Column(kind, make, node)

    def _set_struct(self, of: Set, location: Location) -> Column:
        task = Task(location=location, primitive=of.primitive, form=lib.AS_SBE_FORM_SAME, width=0)
        bits = self._task(task, pa.type_for_alias(of.primitive.name))

        def one(bit: int) -> Column:
            return Column(
                pa.bool_(),
                lambda run: pa.array(np.asarray(bits.make(run).fill_null(0)) >> bit & 1).cast(pa.bool_()),
            )

        made = {name: one(bit) for name, bit in of.choices}
        return struct_of(made, lambda run: (run.counts[location.level], *run.presence(location)))

    # -- decimals, Spec: 10 §14.3 ----------------------------------------------------------------------------------------------

    def _constant_shift(self, at: Location, mantissa: Scalar, null: float | None, shift: int) -> Column | None:
        primitive = mantissa.primitive
        digits = UINT64_DIGITS if primitive.name == "uint64" else DECIMAL_DIGITS[primitive.size]
        digits, scale = (max(digits, -shift), -shift) if shift <= 0 else (min(MAX_DIGITS, digits + shift), 0)
        if scale > MAX_DIGITS:
            return self._folded(at, mantissa, null, shift, None) if -shift <= decimals.MAX_SHIFT else None
        if shift > 18:  # noqa: PLR2004 - 10^18 is the largest power of ten in 64 bits
            return self._folded(at, mantissa, null, shift, (digits, scale)) if shift <= decimals.MAX_SHIFT else None
        task = Task(
            location=at, primitive=primitive, form=_decimal_form(primitive), width=0, null=null, factor=10 ** max(shift, 0)
        )  # fmt: skip
        return self._task(task, pa.decimal128(digits, scale))

    def _exponent(self, location: Location) -> Column:
        task = Task(location=location, primitive=_INT8, form=lib.AS_SBE_FORM_SAME, width=0)
        return self._task(task, pa.int8())

    def _folded(
        self,
        at: Location,
        mantissa: Scalar,
        null: float | None,
        exponent: Column | Location | int,
        decimal: tuple[int, int] | None,
    ) -> Column:
        """Combines a mantissa and its exponent, an int8: a double, or a decimal of digits and scale."""
        primitive = mantissa.primitive
        if decimal is None and not isinstance(exponent, Column):
            return self._task(
                Task(
                    location=at, primitive=primitive, form=lib.AS_SBE_FORM_DOUBLE, width=0, null=null, exponent=exponent
                ),
                pa.float64(),
            )
        if isinstance(exponent, Location):
            exponent = self._exponent(exponent)
        task = Task(location=at, primitive=primitive, form=_decimal_form(primitive), width=0, null=null)
        return fold(self._task(task, pa.decimal128(MAX_DIGITS, 0)), exponent, decimal)

    # -- times, Spec: 10 §14.6 -----------------------------------------------------------------------------------------------

    def _time_of_day(self, location: Location, primitive: Primitive, null: float | None, code: str) -> Column:
        task = Task(location=location, primitive=primitive, form=lib.AS_SBE_FORM_LONG, width=0, null=null)
        if self._options.spark:
            return self._task(task, pa.int64())
        task.factor = NANOSECONDS[code]
        task.most = DAY_NS // task.factor - 1
        return self._task(task, pa.time64("ns"))

    def _date(self, location: Location, primitive: Primitive, null: float | None) -> Column:
        if primitive.name == "uint32":
            task = Task(
                location=location, primitive=primitive, form=lib.AS_SBE_FORM_LONG, width=0, null=null, most=MAX_DAY
            )
            days = self._task(task, pa.int64())
        else:
            days = self._number(location, primitive, null)
        node = days.node if days.type == pa.int32() else None
        return Column(pa.date32(), lambda run: days.make(run).cast(pa.int32()).cast(pa.date32()), node)

    def _mixed_moment(self, at: Location, of: Scalar, null: float | None, unit: Location) -> Column:
        """Times with units on the wire, as nanoseconds, or as microseconds if an option requests them."""
        number = self._task(
            Task(location=at, primitive=of.primitive, form=lib.AS_SBE_FORM_LONG, width=0, null=null), pa.int64()
        )
        units = self._task(Task(location=unit, primitive=_UINT8, form=lib.AS_SBE_FORM_SAME, width=0), pa.uint8())
        is_short = self._options.spark or self._options.timestamps == "us"
        kind = pa.timestamp("us" if is_short else "ns", "UTC")

        def make(run: Run) -> pa.Array:
            made, lost = times.nanoseconds(number.make(run), units.make(run))
            run.lost += lost
            return (times.microseconds(made) if is_short else made).cast(kind)

        return Column(kind, make)

    def _moment(self, location: Location, primitive: Primitive, null: float | None, code: str) -> Column:
        factor, divisor = 1, 1
        if self._options.spark or self._options.timestamps == "us":
            factor, divisor = PER_MICROSECOND[code]
            code = "us"
        task = Task(
            location=location, primitive=primitive, form=lib.AS_SBE_FORM_LONG, width=0, null=null, factor=factor,
            divisor=divisor,
        )  # fmt: skip
        return self._task(task, pa.timestamp(code, "UTC"))


_INT8 = Primitive("int8", 1, "b", -127, 127, -128)
_UINT8 = Primitive("uint8", 1, "B", 0, 254, 255)


def _decimal_form(primitive: Primitive) -> int:
    return int(lib.AS_SBE_FORM_DECIMAL if primitive.is_unsigned else lib.AS_SBE_FORM_SIGNED_DECIMAL)


def _signed(raw: int) -> int:
    """The value as a signed 64-bit number."""
    return raw - (1 << 64) if raw >= 1 << 63 else raw


def _named(of: Enum, indices: pa.Array, raw: pa.Array) -> pa.Array:
    """Names, and for values without a name the number or the character."""
    names = [name for name, _ in of.values]
    numbers = np.array(indices.fill_null(0))
    where = np.flatnonzero(numbers < 0)
    values = raw.take(pa.array(where)).to_pylist()
    found = [chr(one) if of.primitive.is_char else str(one) for one in values]
    more = {name: len(names) + index for index, name in enumerate(dict.fromkeys(found))}
    if len(names) + len(more) > MAX_NAMES:
        raise UsageError(f"enum {of.name}: more than {MAX_NAMES} different values; decode fewer messages at once")
    numbers[where] = [more[name] for name in found]
    filled = pa.array(numbers, pa.int16(), mask=np.asarray(indices.is_null()))
    return pa.DictionaryArray.from_arrays(filled, pa.array(names + list(more), pa.string()))
