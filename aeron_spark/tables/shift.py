"""Times inside messages, moved by an amount: reserved values and integer fields of SBE messages, over whole batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from aeron_spark.archive.time_text import TimeSource
from aeron_spark.archive.times import UNITS_NS
from aeron_spark.errors import UsageError
from aeron_spark.sbe.decoder import Decoder
from aeron_spark.sbe.model import Composite, Field, Role, Scalar, Schema
from aeron_spark.sbe.registry import Registry, Source, schema_of

__all__ = ["Shift"]

_UNITS = {"s": 10**9, **UNITS_NS}
_OF_EXPONENT = {0: 10**9, 3: 10**6, 6: 10**3, 9: 1}
_OF_NAME = {"second": 10**9, "millisecond": 10**6, "microsecond": 10**3, "nanosecond": 1}
_BYTES = np.arange(8)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a time is in the messages of a template: bytes from the message's begin, its type and unit."""

    field: str
    offset: int
    type: np.dtype[Any]
    null: int
    unit_ns: int


class Shift:
    """Moves the times that `sources` name: reserved values, and fields of the schema's messages that have them."""

    def __init__(self, sources: Sequence[TimeSource], sbe: Source | Sequence[Source] | None) -> None:
        self._reserved_ns = [UNITS_NS[one.unit] for one in sources if one.kind == "reserved"]
        fields = [one for one in sources if one.kind == "sbe"]
        if any(one.kind == "index" for one in sources):
            raise UsageError("the time index is no part of a message: name reserved(ns) or sbe:<field> to be shifted")
        self._places: dict[int, list[_Place]] = {}
        if fields:
            if sbe is None:
                raise UsageError("a field to be shifted needs the SBE schema")
            schemas = [schema_of(one) for one in (sbe if isinstance(sbe, list | tuple) else [sbe])]  # type: ignore[arg-type]
            self._block_length = schemas[0].header.block_length
            self._header_size = schemas[0].header.composite.size
            self._is_big_endian = schemas[0].is_big_endian
            self._decoder = Decoder(schemas, None, others="error", on_error="null")
            for source in fields:
                self._add(schemas, source)

    def _add(self, schemas: Sequence[Schema], source: TimeSource) -> None:
        found = False
        for number, (schema, message) in enumerate(Registry(schemas).messages.values()):
            for field in message.fields:
                if field.name == source.field and field.presence != "constant":
                    self._places.setdefault(number, []).append(_place(schema, field, source.unit))
                    found = True
        if not found:
            raise UsageError(f"sbe:{source.field}: no message of the SBE schema has such a field in its block")

    def __call__(self, values: pa.Array, reserved: np.ndarray, by_ns: int) -> tuple[pa.Array, np.ndarray]:
        """Messages and reserved values whose times are later by `by_ns`, in whole units of each.

        Nulls stay, and reserved values of 0, which are no times. UsageError: a time leaves the range of its type.
        """
        for unit_ns in self._reserved_ns:
            moved = reserved + by_ns // unit_ns
            _check_range(reserved, moved, by_ns, "a reserved value")
            reserved = np.where(reserved == 0, 0, moved)
        if not self._places or not len(values):
            return values, reserved
        _, offsets_buffer, data = values.buffers()
        offsets = np.frombuffer(offsets_buffer, np.int32, len(values) + 1, values.offset * 4).astype(np.int64)
        content = np.frombuffer(data, np.uint8).copy() if data is not None else np.empty(0, np.uint8)
        templates = self._decoder.template_numbers(values)
        for number, places in self._places.items():
            starts = offsets[:-1][templates == number]
            ends = offsets[1:][templates == number]
            for place in places:
                self._move(content, starts, ends, place, by_ns // place.unit_ns)
        made = pa.Array.from_buffers(
            values.type, len(values), [None, offsets_buffer, pa.py_buffer(content)], offset=values.offset
        )
        return made, reserved

    def _move(self, content: np.ndarray, starts: np.ndarray, ends: np.ndarray, place: _Place, by: int) -> None:
        header, offset = self._header_size, place.offset
        # A message of an older version has a shorter block, in which the field is not.
        is_there = ends - starts >= header + offset + 8
        starts = starts[is_there]
        starts = starts[self._block_lengths(content, starts) >= offset + 8]
        at = (starts + header + offset)[:, None] + _BYTES
        raw = content[at].view(place.type)[:, 0]
        is_time = raw != raw.dtype.type(place.null)
        raw, at = raw[is_time], at[is_time]
        old = raw.astype(np.int64)
        new = old + by
        if place.type.kind == "u" and (old < 0).any():
            raise UsageError(f"sbe:{place.field}: a value is beyond 2^63, which is no time that can be shifted")
        _check_range(old, new, by, f"sbe:{place.field}", least=0 if place.type.kind == "u" else None)
        content[at] = new.astype(place.type)[:, None].view(np.uint8)

    def _block_lengths(self, content: np.ndarray, starts: np.ndarray) -> np.ndarray:
        role: Role | None = self._block_length
        if role is None or role.constant is not None:
            return np.full(len(starts), np.iinfo(np.int64).max)
        size = role.primitive.size
        kind = np.dtype(f"{'>' if self._is_big_endian else '<'}u{size}")
        return content[(starts + role.offset)[:, None] + np.arange(size)].view(kind)[:, 0].astype(np.int64)


def _check_range(old: np.ndarray, new: np.ndarray, by: int, what: str, least: int | None = None) -> None:
    wrapped = (new < old) if by >= 0 else (new > old)
    if wrapped.any() or (least is not None and len(new) and new.min() < least):
        raise UsageError(f"{what}: shifted by {by}, a time leaves the range of its type")


def _place(schema: Schema, field: Field, unit: str) -> _Place:
    """The place of a field. UsageError: it is no integer of 8 bytes, or of no known unit."""
    kind, offset, null = field.type, field.offset, field.null
    unit_ns = _UNITS.get(unit) or _OF_NAME.get(field.time_unit.lower())
    if isinstance(kind, Composite):
        members = {one.name: one for one in kind.members}
        named = members.get("time")
        if named is None:
            raise UsageError(f"sbe:{field.name}: its type {kind.name} has no member 'time'")
        exponent = members["unit"].type if "unit" in members else None
        if unit_ns is None and isinstance(exponent, Scalar) and isinstance(exponent.constant, int):
            unit_ns = _OF_EXPONENT.get(exponent.constant)
        kind, offset = named.type, offset + named.offset
        null = kind.null if isinstance(kind, Scalar) else 0
    if not isinstance(kind, Scalar) or kind.length != 1 or kind.primitive.code not in "qQ":
        raise UsageError(f"sbe:{field.name}: only an integer of 8 bytes can be shifted")
    if unit_ns is None:
        raise UsageError(
            f"sbe:{field.name}: the unit is not the schema's: write sbe:{field.name}(ns), (us), (ms) or (s)"
        )
    order = ">" if schema.is_big_endian else "<"
    return _Place(
        field.name, offset, np.dtype(order + ("u8" if kind.primitive.code == "Q" else "i8")), int(null), unit_ns
    )
