"""Encodes record batches to messages. Spec: 10 §16; the structures are those of `as_sbe.h`."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from aeron_spark._native._lib import ffi, lib
from aeron_spark.errors import UsageError
from aeron_spark.names import nearest
from aeron_spark.sbe.columns import Compiler, member_of
from aeron_spark.sbe.framing import Framing, named
from aeron_spark.sbe.model import Block, Composite, Data, Field, Group, Role, Scalar, Schema
from aeron_spark.sbe.older import of_version
from aeron_spark.sbe.options import Options
from aeron_spark.sbe.plan import Level, Plan
from aeron_spark.sbe.registry import Registry, Source, schema_of
from aeron_spark.sbe.run import pointer
from aeron_spark.sbe.wire import Wire, contents, plain, type_of_nulls

MAX_BYTES = 2**31 - 1


class Encoder:
    """Encodes record batches to messages of one template.

        encoder = Encoder("prices.xml", "Quote", framing="sofh")
        payloads = encoder.encode(batch)

    Columns are matched by name and have the types that a `Decoder` produces, with any of its lossless options: enums by
    name or number, sets as lists or bits, decimals as `decimal128` or structs. Times may have any unit that the field's
    holds without a loss. A column may be absent if its field is
    optional or constant. A null becomes the field's null value, no entries, or data of length 0; in a required field it
    is an error. The value of a char array has zero bytes only at its end, where they are padding.
    `version`: of the messages, by default the schema's; later elements are left out. `framing`: `none`, or one that
    puts each message's size before it and has no packet header. `header_type`, `header_map`: as for `load`. An encoder
    can be pickled, and used by any number of threads. Other members of headers, counts of groups and data among them,
    are 0, as in the reference codecs.
    """

    def __init__(
        self,
        schema: Source,
        message: str,
        *,
        framing: str = "none",
        version: int | None = None,
        header_type: str | None = None,
        header_map: Mapping[str, str] | None = None,
    ) -> None:
        self.schema = schema_of(schema, header_type, dict(header_map or {}))
        _, found = Registry([self.schema]).find(message)
        self.version = self.schema.version if version is None else version
        self.message = of_version(self.schema, found, self.version)
        self._framing = framing
        self.frame = named(framing)
        if self.frame.packet_header or (self.frame.size and (self.frame.size == "walk" or not self.frame.skip)):
            raise UsageError(
                f"framing '{framing}' has more than a message's size; none, sofh, sofh-le4, sofh-le6, ilink3 and a "
                f"lengthPrefix without a packet header can be written"
            )
        self.plan = Plan(self.schema, self.message)
        self.wire = Wire(is_big_endian=self.schema.is_big_endian)
        self.arrow_schema = pa.schema(
            [(name, one.type) for name, one in Compiler(self.plan, Options(constants="drop")).columns.items()]
        )

    def __reduce__(self) -> Any:
        return _restored, (self.schema, self.message.name, self._framing, self.version)

    def check_columns(self, schema: pa.Schema) -> None:
        """UsageError if the schema's columns don't form a message: one is missing, unknown or of a wrong type."""
        self.encode(pa.RecordBatch.from_arrays([pa.nulls(0, one.type) for one in schema], schema=schema))

    def encode(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        """One message per row. UsageError names a column that is missing, or has a value the message can't hold."""
        writing = _Writing(self, batch)
        return writing.run()


def _restored(schema: Schema, message: str, framing: str, version: int) -> Encoder:
    return Encoder(schema, message, framing=framing, version=version)


class _Writing:
    """One batch in progress: the C structures and the memory they point to."""

    def __init__(self, encoder: Encoder, batch: pa.RecordBatch) -> None:
        self._encoder = encoder
        self._count = batch.num_rows
        self._order = ">" if encoder.schema.is_big_endian else "<"
        self._keep: list[Any] = []
        self._fields: list[tuple[int, np.ndarray]] = []
        self._data: list[tuple[Data, np.ndarray, pa.Buffer | None]] = []
        levels = encoder.plan.levels
        self._levels = ffi.new("as_sbe_wire_level[]", len(levels))
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        if len(columns) < batch.num_columns:
            raise UsageError("two columns have the same name")
        _refuse_others(columns, encoder.message, f"message {encoder.message.name}")
        self._level(encoder.plan.root, columns, self._count, "")

    # -- levels ------------------------------------------------------------------------------------------------------------

    def _level(self, level: Level, columns: dict[str, pa.Array], count: int, path: str) -> None:
        to, block = self._levels[level.number], level.block
        to.first_child = level.children[0].number if level.children else -1
        to.next_sibling = -1
        to.block_length = block.block_length
        to.first_field, to.first_data = len(self._fields), len(self._data)
        for field in block.fields:
            if field.presence != "constant":
                self._field(field, columns.get(field.name), count, path + field.name)
        to.field_count = len(self._fields) - to.first_field
        for data in block.data:
            self._variable(data, columns.get(data.name), path + data.name)
        to.data_count = len(self._data) - to.first_data
        header = self._header(block)
        to.header_size, to.header = len(header), self._kept(ffi.from_buffer("uint8_t[]", header))
        for one, following in zip(level.children, [one.number for one in level.children[1:]] + [-1], strict=False):
            self._group(one, columns.get(one.block.name), count, path + one.block.name)
            self._levels[one.number].next_sibling = following

    def _field(self, field: Field, column: pa.Array | None, count: int, path: str) -> None:
        is_optional = field.presence == "optional" or _is_null_by_year(field)
        if column is None:
            if not is_optional:
                raise UsageError(f"column {path} is missing, and its field is required")
            column = pa.nulls(count, type_of_nulls(field.type))
        wire = self._encoder.wire.value(field.type, plain(column, field, path), path, is_optional=is_optional)
        self._fields.append((field.offset, np.ascontiguousarray(wire)))

    def _variable(self, data: Data, column: pa.Array | None, path: str) -> None:
        if column is None:
            raise UsageError(f"column {path} is missing")
        offsets, content, lengths = contents(column, data.charset, path)
        _check_range(data.length, lengths, f"column {path}: data of", "bytes")
        self._data.append((data, offsets, content))

    def _group(self, level: Level, column: pa.Array | None, parents: int, path: str) -> None:
        block, to = level.block, self._levels[level.number]
        assert isinstance(block, Group)  # noqa: S101 - children are groups
        if column is None:
            raise UsageError(f"column {path} is missing")
        if not pa.types.is_list(column.type) or not pa.types.is_struct(column.type.value_type):
            raise UsageError(f"column {path}: {column.type} is no list of structs")
        lengths = np.zeros(parents, np.int64)
        if parents:
            found = np.asarray(column.value_lengths().fill_null(0))
            lengths = found.astype(np.int64)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        entries = column.flatten()
        _check_range(block.dimension.num_in_group, lengths, f"column {path}:", "entries")
        to.offsets = self._kept(ffi.cast("int64_t *", self._kept(offsets).ctypes.data))
        _put_role(to.count, block.dimension.num_in_group)
        if entries.null_count:
            raise UsageError(f"column {path}: an entry that is null")
        names = [one.name for one in entries.type]
        _refuse_others(names, block, f"group {path}")
        self._level(level, dict(zip(names, entries.flatten(), strict=True)), len(entries), path + ".")

    # -- headers -----------------------------------------------------------------------------------------------------------

    def _header(self, block: Block) -> bytes:
        if isinstance(block, Group):
            made = bytearray(block.dimension.size)
            roles = [(block.dimension.block_length, block.block_length)]
        else:
            header, schema = self._encoder.schema.header, self._encoder.schema
            made = bytearray(header.composite.size)
            roles = [
                (role, value)
                for role, value in (
                    (header.block_length, block.block_length), (header.template_id, block.id),
                    (header.schema_id, schema.id), (header.version, self._encoder.version),
                )
                if role is not None
            ]  # fmt: skip
        for role, value in roles:
            if role.constant is None:
                _check_role(role, value, f"{block.name}:", "in its header")
                struct.pack_into(self._order + role.primitive.code, made, role.offset, value)
        return bytes(made)

    def _kept(self, one: Any) -> Any:
        self._keep.append(one)
        return one

    # -- running -----------------------------------------------------------------------------------------------------------

    def run(self) -> pa.BinaryArray:
        plan = ffi.new("as_sbe_wire_plan *")
        plan.is_big_endian = self._encoder.schema.is_big_endian
        plan.levels = self._levels
        fields = ffi.new("as_sbe_wire_field[]", max(1, len(self._fields)))
        for to, (offset, values) in zip(fields, self._fields, strict=False):
            to.offset, to.width, to.values = offset, values.shape[1], pointer("uint8_t *", values)
        data = ffi.new("as_sbe_wire_data[]", max(1, len(self._data)))
        for to, (one, offsets, content) in zip(data, self._data, strict=False):
            to.head = max(one.data_offset, one.length.end)
            to.offsets = pointer("int64_t *", offsets)
            to.bytes = ffi.cast("uint8_t *", content.address) if content is not None else ffi.NULL
            _put_role(to.length, one.length)
        plan.fields, plan.data = fields, data
        self._put_frame(plan, self._encoder.frame)
        starts = np.empty(self._count + 1, np.int64)
        size = int(lib.as_sbe_encode(plan, self._count, ffi.NULL, 0, pointer("int64_t *", starts)))
        if size > MAX_BYTES:
            raise UsageError(f"{size} bytes of messages in a batch, more than {MAX_BYTES}; encode fewer rows at once")
        self._check_frames(np.diff(starts))
        out = pa.allocate_buffer(size)
        lib.as_sbe_encode(plan, self._count, ffi.cast("uint8_t *", out.address), size, pointer("int64_t *", starts))
        offsets = pa.py_buffer(starts.astype(np.int32))
        return pa.Array.from_buffers(pa.binary(), self._count, [None, offsets, out], 0)

    def _check_frames(self, lengths: np.ndarray) -> None:
        frame = self._encoder.frame
        if not frame.size or not len(lengths):
            return
        longest, most = int(lengths.max()) - frame.size_adds, (1 << 8 * struct.calcsize(frame.size)) - 1
        if longest > most or int(lengths.min()) < frame.size_adds:
            raise UsageError(f"a message of {longest} bytes; the framing's size holds up to {most}, and none below 0")

    def _put_frame(self, plan: Any, framing: Framing) -> None:
        if not framing.size:
            return
        frame = bytearray(framing.skip)
        if framing.marks:
            # If there are two marks, the last one is that of little-endian messages.
            mark = framing.marks[0] if self._encoder.schema.is_big_endian else framing.marks[-1]
            frame[framing.mark_at : framing.mark_at + len(mark)] = mark
        plan.frame_size, plan.frame = framing.skip, self._kept(ffi.from_buffer("uint8_t[]", self._kept(bytes(frame))))
        plan.frame_length.offset, plan.frame_length.size = framing.size_at, struct.calcsize(framing.size)
        plan.frame_is_big_endian = framing.size.startswith(">")
        plan.frame_adds = framing.size_adds


def _refuse_others(columns: Iterable[str], block: Block, what: str) -> None:
    known = block.names
    for name in columns:
        if name not in known:
            raise UsageError(f"{what} has no {name}; it has {', '.join(known)}{nearest(name, known)}")


def _is_null_by_year(field: Field) -> bool:
    """A MonthYear is null if its year is null, whatever the field's presence. Spec: 10 §14.6."""
    if field.semantic_type.lower() != "monthyear" or not isinstance(field.type, Composite):
        return False
    year = member_of(field.type, "year")
    return year is not None and isinstance(year.type, Scalar) and year.type.presence == "optional"


def _put_role(to: Any, role: Role) -> None:
    if role.constant is None:
        to.offset, to.size = role.offset, role.primitive.size


def _check_range(role: Role, sizes: np.ndarray, what: str, unit: str) -> None:
    """Check counts or lengths against the schema or its primitive, without its null value. Spec: 10 §16."""
    for size in (int(sizes.min()), int(sizes.max())) if len(sizes) else ():
        _check_role(role, size, what, unit)
        most = role.primitive.high if role.most is None else role.most
        if role.constant is None and not role.least <= size <= most:
            raise UsageError(f"{what} {size} {unit}; the schema allows {role.least} to {most}")


def _check_role(role: Role, value: int, what: str, unit: str) -> None:
    if role.constant is not None:
        if role.constant != value:
            raise UsageError(f"{what} {value} {unit}; the schema says {role.constant}")
    elif not role.primitive.fits(value):
        raise UsageError(f"{what} {value} {unit}, more than {role.primitive.name} holds")
