"""One walk over a batch, and the Arrow buffers that it fills. Spec: 10 §18; the structures are those of `as_sbe.h`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.check import check, error
from aeron_spark.errors import UsageError
from aeron_spark.sbe.model import Member, Primitive
from aeron_spark.sbe.plan import Plan, bits_of

ALIGNMENT = 64
SPARE_BYTES = 16
"""Room after text, for copies of fixed length."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where a value is, and what it depends on: `as_sbe_column` except the value's own width and null."""

    level: int
    offset: int
    since: int
    field_end: int
    guard: tuple[int, Primitive, float] | None = None
    path: str = ""

    def at(self, member: Member) -> Location:
        """The location of a member of this location's composite."""
        return replace(self, offset=self.offset + member.offset, path=f"{self.path}.{member.name}")

    @property
    def presence(self) -> Any:
        """A C structure that tells only where the location's values are there."""
        return self.fill(ffi.new("as_sbe_column *"), _BYTE)

    def fill(self, column: Any, primitive: Primitive, *, null: float | None = None, repeat: int = 1) -> Any:
        """Fill the C structure."""
        column.level, column.offset = self.level, self.offset
        column.width, column.repeat = primitive.size, repeat
        column.since, column.field_end = self.since, self.field_end
        if null is not None:
            column.has_null = True
            column.null_is_nan = primitive.is_float and math.isnan(null)
            column.null_bits = bits_of(primitive, null)
        if self.guard is not None:
            offset, guard, value = self.guard
            column.has_guard = True
            column.guard_offset, column.guard_width = offset, guard.size
            column.guard_is_nan = guard.is_float and math.isnan(value)
            column.guard_bits = bits_of(guard, value)
        return column


@dataclass(slots=True, kw_only=True)
class Task:
    """A column of numbers.

    `enum`: for each byte its index, or the values, ascending, and their indices. `exponent`: of doubles, the power of ten,
    or where it is: a signed byte.
    """

    location: Location
    primitive: Primitive
    form: int
    width: int
    null: float | None = None
    repeat: int = 1
    factor: int = 1
    divisor: int = 1
    most: int = 0
    enum: tuple[np.ndarray, ...] = ()
    exponent: Location | int = 0


class Tasks:
    """All columns of numbers of a message, level by level."""

    def __init__(self) -> None:
        self.of_level: dict[int, list[Task]] = {}

    def add(self, task: Task) -> tuple[int, int]:
        """Level and index, with which `Run.numbers` finds the result."""
        of_level = self.of_level.setdefault(task.location.level, [])
        of_level.append(task)
        return task.location.level, len(of_level) - 1

    def native(self) -> dict[int, Any]:
        """C structures, without the buffers."""
        made = {}
        for level, tasks in self.of_level.items():
            array = made[level] = ffi.new("as_sbe_task[]", len(tasks))
            for to, task in zip(array, tasks, strict=True):
                task.location.fill(to.column, task.primitive, null=task.null, repeat=task.repeat)
                to.form, to.is_signed = task.form, not task.primitive.is_unsigned and not task.primitive.is_char
                to.factor, to.divisor, to.most = task.factor, task.divisor, task.most
                if isinstance(task.exponent, Location):
                    to.has_exponent = True
                    task.exponent.fill(to.exponent, _BYTE)
                else:
                    to.shift = task.exponent
                if len(task.enum) == 1:
                    to.of_byte = pointer("int16_t *", task.enum[0])
                elif task.enum:
                    to.values, to.indices = pointer("int64_t *", task.enum[0]), pointer("int16_t *", task.enum[1])
                    to.value_count = len(task.enum[0])
        return made


class Scratch:
    """Buffers for one run at a time: kept between runs, so that the memory's pages are touched only once."""

    def __init__(self, plan: Plan, tasks: Tasks) -> None:
        out = ffi.new("as_sbe_batch **")
        check(lib.as_sbe_batch_open(plan.native, out))
        self.native = ffi.gc(out[0], lib.as_sbe_batch_close)
        self.tasks = tasks.native()
        self.task_lists = ffi.new("as_sbe_task *[]", len(plan.levels))
        self.task_counts = ffi.new("int64_t[]", len(plan.levels))
        for level, array in self.tasks.items():
            self.task_lists[level], self.task_counts[level] = array, len(array)


def pointer(of: str, array: np.ndarray) -> Any:
    """Pointer to an array's memory; the caller keeps the array alive."""
    return ffi.cast(of, ffi.from_buffer(array))


def allocate(size: int) -> pa.Buffer:
    """Allocate from Arrow's pool, which reuses the same pages."""
    return pa.allocate_buffer(size)


class BatchTooLargeError(UsageError):
    """Messages, each of which may be decoded, are too much for one batch."""


_EMPTY_LIMIT = (
    "their groups have more entries that take no bytes than a batch may have, 2^20 and 64 for each message; "
    "decode fewer at once, or with a lower max_entries"
)
_COLUMN_LIMIT = "a column has more than 2 GiB of text or more than 2^31 - 1 items; decode fewer at once"


def check_batch(result: int, count: int, limit: str = _COLUMN_LIMIT) -> None:
    """Check the result of a call over `count` messages: BatchTooLargeError names the exceeded `limit`."""
    where = f"{count} messages in one batch"
    if result == lib.AS_E_USAGE:
        raise BatchTooLargeError(f"{where}: {limit}")
    if result < 0:
        what = "there is not enough memory, or a group has more than 2^31 - 1 entries; decode fewer at once"
        raise error(result, text=f"{where}: {what}", code=0)


def _up(size: int) -> int:
    return (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


Messages = tuple[pa.Buffer | None, np.ndarray, np.ndarray]
"""Bytes, and the start and end of each message in them."""


class Run:
    """One walk's results.

    `lost` counts values that are null because no column of their type can hold them, `short_fields` those that their
    version has but their block cuts off, `unread` the bytes after messages. `refused`: by message, the first of its
    values that an option treats as an error: kind, offset in the message, and text.
    """

    def __init__(
        self, plan: Plan, tasks: Tasks, scratch: Scratch, messages: Messages, *, gathers: bool = False
    ) -> None:
        """`gathers`: also fills the root block's columns of numbers, while the messages are in the processor's cache."""
        payload, starts, ends = messages
        self.plan = plan
        self.lost = 0
        self.short_fields = 0
        self.unread = 0
        self.refused: dict[int, tuple[str, int, str]] = {}
        self.found_errors: np.ndarray | None = None
        self.found_ends: np.ndarray | None = None
        self.first_end = 0
        self._tasks = tasks
        self._scratch = scratch
        self._native = scratch.native
        self._keep = (payload, starts, ends)
        bytes_at = ffi.cast("uint8_t *", payload.address) if payload is not None and payload.size else ffi.NULL
        self.message_count = len(starts)
        self.counts: list[int] = []
        self._results: dict[tuple[int, int], tuple[pa.Buffer, pa.Buffer, int, int]] = {}
        of_root = tasks.of_level.get(0, []) if gathers else []
        buffers = self._prepare(0, of_root, len(starts)) if of_root else []
        check_batch(
            lib.as_sbe_batch_walk_gather(
                self._native, bytes_at, pointer("int64_t *", starts), pointer("int64_t *", ends), len(starts),
                scratch.tasks[0] if of_root else ffi.NULL, len(of_root),
            ),
            self.message_count,
            _EMPTY_LIMIT,
        )  # fmt: skip
        self._take(0, buffers)
        self.error_count = int(lib.as_sbe_batch_error_count(self._native))

    def gather(self) -> None:
        """Fill the columns of numbers that are not filled yet, before any column is made."""
        self.counts = [int(lib.as_sbe_batch_instances(self._native, level.number)) for level in self.plan.levels]
        for level, of_level in self._tasks.of_level.items():
            if (level, 0) not in self._results:
                buffers = self._prepare(level, of_level, self.counts[level])
                lib.as_sbe_gather(self._native, self._scratch.tasks[level], len(of_level))
                self._take(level, buffers)

    def _prepare(self, level: int, tasks: Sequence[Task], count: int) -> list[pa.Buffer]:
        """Buffers for the values and the validity of each task, where C finds them."""
        sizes = [
            size
            for task in tasks
            for size in (_up(count * task.repeat * task.width), _up((count * task.repeat + 7) // 8))
        ]
        block = allocate(sum(sizes))
        native, at, base = self._scratch.tasks[level], 0, block.address
        buffers = []
        for index, size in enumerate(sizes):
            to = native[index // 2]
            if index % 2:
                to.validity = ffi.cast("uint8_t *", base + at)
            else:
                to.out = ffi.cast("void *", base + at)
            buffers.append(block.slice(at, size))
            at += size
        return buffers

    def _take(self, level: int, buffers: list[pa.Buffer]) -> None:
        for index in range(len(buffers) // 2):
            to = self._scratch.tasks[level][index]
            self.lost += to.lost
            self._results[level, index] = (buffers[2 * index], buffers[2 * index + 1], to.nulls, to.unknown)

    def finish(self) -> None:
        """Take the walk's remaining results; the next walk reuses its memory.

        `found_errors` and `found_ends` (where an error was detected, undefined for other messages) are None if there is
        no error.
        """
        count = self.message_count
        self.short_fields = sum(int(lib.as_sbe_batch_short(self._native, *one)) for one in self.plan.later)
        self.unread = int(lib.as_sbe_batch_unread(self._native))
        if self.error_count:
            self.found_errors = np.frombuffer(ffi.buffer(lib.as_sbe_batch_errors(self._native), count), np.uint8).copy()
            self.found_ends = np.frombuffer(ffi.buffer(lib.as_sbe_batch_ends(self._native), 8 * count), np.int64).copy()
        self.first_end = int(lib.as_sbe_batch_ends(self._native)[0]) if count else 0

    # -- values that are errors ------------------------------------------------------------------------------------------

    def refuse(self, kind: str, location: Location, instance: int, text: str) -> None:
        """Make a value's message an error."""
        at = int(lib.as_sbe_batch_starts(self._native, location.level)[instance]) + location.offset
        self._refuse(kind, location.level, instance, at, f"{location.path} is {text}")

    def refuse_data(self, kind: str, number: int, location: Location, instance: int, text: str) -> None:
        """As `refuse`, for variable data."""
        at = int(lib.as_sbe_batch_data_starts(self._native, number)[instance])
        self._refuse(kind, location.level, instance, at, f"{location.path} is {text}")

    def _refuse(self, kind: str, level: int, instance: int, at: int, text: str) -> None:
        parent = self.plan.levels[level].parent
        while parent is not None:
            size = 4 * (self.counts[parent.number] + 1)
            offsets = np.frombuffer(ffi.buffer(lib.as_sbe_batch_list_offsets(self._native, level), size), np.int32)
            instance = int(np.searchsorted(offsets, instance, side="right")) - 1
            level, parent = parent.number, parent.parent
        offset = at - int(self._keep[1][instance])
        known = self.refused.get(instance)
        if known is None or offset < known[1]:
            self.refused[instance] = (kind, offset, text)

    # -- columns ---------------------------------------------------------------------------------------------------------

    def numbers(self, slot: tuple[int, int], of: pa.DataType, repeat: int = 1) -> pa.Array:
        """A task's result, as an array of a type of that width."""
        out, validity, nulls, _ = self._results[slot]
        return pa.Array.from_buffers(of, self.counts[slot[0]] * repeat, [validity if nulls else None, out], nulls)

    def unknown(self, slot: tuple[int, int]) -> int:
        """Number of values that an enum does not name."""
        return int(self._results[slot][3])

    def raw(self, task: Task) -> pa.Array:
        """The numbers on the wire, for rare uses."""
        name = task.primitive.name.replace("char", "uint8")
        tasks = Tasks()
        slot = tasks.add(replace(task, width=task.primitive.size))
        native, count = tasks.native()[slot[0]], self.counts[slot[0]]
        out, validity = allocate(count * task.primitive.size), self._bitmap(slot[0])
        native[0].out = ffi.cast("void *", out.address)
        native[0].validity = ffi.cast("uint8_t *", validity.address)
        lib.as_sbe_gather(self._native, native, 1)
        return pa.Array.from_buffers(
            pa.type_for_alias(name), count, [validity if native[0].nulls else None, out], native[0].nulls
        )

    def presence(self, location: Location) -> tuple[pa.Buffer | None, int]:
        """Presence of the location's values: validity and number of nulls."""
        validity, nulls = self._bitmap(location.level), ffi.new("int64_t *")
        lib.as_sbe_gather_presence(self._native, location.presence, ffi.cast("uint8_t *", validity.address), nulls)
        return (validity if nulls[0] else None), int(nulls[0])

    def text(self, column: Any, level: int, length: int, charset: int) -> pa.Array:
        """Char arrays: text if the charset is one, else bytes."""
        count = self.counts[level]
        return self._text(
            count, 3 * count * length, charset,
            lambda *rest: lib.as_sbe_gather_text(self._native, column, charset, *rest),
        )  # fmt: skip

    def data(self, number: int, level: int, charset: int) -> pa.Array:
        """As `text`, for variable data."""
        size = int(lib.as_sbe_batch_data_bytes(self._native, number))
        return self._text(
            self.counts[level], (1 if charset == lib.AS_SBE_BYTES else 3) * size, charset,
            lambda *rest: lib.as_sbe_gather_data(self._native, number, charset, *rest),
        )  # fmt: skip

    def _text(self, count: int, capacity: int, charset: int, gather: Any) -> pa.Array:
        offsets, validity, nulls = allocate(4 * (count + 1)), allocate((count + 7) // 8), ffi.new("int64_t *")
        out = allocate(capacity + SPARE_BYTES)
        check_batch(
            gather(
                ffi.cast("int32_t *", offsets.address), ffi.cast("uint8_t *", out.address), out.size,
                ffi.cast("uint8_t *", validity.address), nulls,
            ),
            self.message_count,
        )  # fmt: skip
        of = pa.binary() if charset == lib.AS_SBE_BYTES else pa.string()
        return pa.Array.from_buffers(of, count, [validity if nulls[0] else None, offsets, out], nulls[0])

    def bytes_of(self, location: Location, primitive: Primitive, length: int) -> pa.Array:
        """Arrays of bytes, unchanged."""
        count = self.counts[location.level]
        out, validity, nulls = allocate(count * length), self._bitmap(location.level), ffi.new("int64_t *")
        column = location.fill(ffi.new("as_sbe_column *"), primitive, repeat=length)
        lib.as_sbe_gather_bytes(
            self._native, column, ffi.cast("uint8_t *", out.address), ffi.cast("uint8_t *", validity.address), nulls
        )
        return pa.Array.from_buffers(pa.binary(length), count, [validity if nulls[0] else None, out], nulls[0])

    def set(self, location: Location, primitive: Primitive, bits: np.ndarray, names: pa.Array) -> pa.Array:
        """Lists of the names of the bits that are set."""
        count = self.counts[location.level]
        offsets, out = allocate(4 * (count + 1)), allocate(2 * (count * len(bits) + 1))
        validity, nulls = self._bitmap(location.level), ffi.new("int64_t *")
        column = location.fill(ffi.new("as_sbe_column *"), primitive)
        check_batch(
            lib.as_sbe_gather_set(
                self._native, column, pointer("uint8_t *", bits), len(bits), ffi.cast("int32_t *", offsets.address),
                ffi.cast("int16_t *", out.address), ffi.cast("uint8_t *", validity.address), nulls,
            ),
            self.message_count,
        )  # fmt: skip
        total = int(np.frombuffer(offsets, np.int32)[count])
        items = pa.DictionaryArray.from_arrays(pa.Array.from_buffers(pa.int16(), total, [None, out], 0), names)
        return list_of(items, count, offsets, validity if nulls[0] else None, int(nulls[0]))

    def lists(self, level: int, parent: int) -> tuple[int, pa.Buffer, pa.Buffer | None, int]:
        """Instances of a group's parent; offsets, validity and nulls of the group."""
        count = self.counts[parent]
        offsets = _copied(lib.as_sbe_batch_list_offsets(self._native, level), 4 * (count + 1))
        if self.plan.levels[level].block.since == 0 and self.error_count == 0:
            return count, offsets, None, 0
        validity = _copied(lib.as_sbe_batch_list_validity(self._native, level), (count + 7) // 8)
        there = int(np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little", count=count).sum())
        return count, offsets, validity, count - there

    def _bitmap(self, level: int) -> pa.Buffer:
        return allocate((self.counts[level] + 7) // 8)


def _copied(source: Any, size: int) -> pa.Buffer:
    made = allocate(size)
    ffi.memmove(ffi.cast("char *", made.address), source, size)
    return made


def list_of(items: pa.Array, count: int, offsets: pa.Buffer, validity: pa.Buffer | None, nulls: int) -> pa.Array:
    """A list array."""
    return pa.Array.from_buffers(pa.list_(items.type), count, [validity, offsets], nulls, children=[items])


_BYTE = Primitive("uint8", 1, "B", 0, 254, 255)
