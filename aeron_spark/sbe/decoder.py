"""Payloads to record batches. Spec: 10 §13 to §15, §18."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.check import check
from aeron_spark.errors import UsageError
from aeron_spark.sbe.columns import NAMES, Column, Compiler
from aeron_spark.sbe.explode import explode, exploded_schema
from aeron_spark.sbe.framing import named
from aeron_spark.sbe.model import Message, Schema
from aeron_spark.sbe.options import Options
from aeron_spark.sbe.packets import Frames, cut
from aeron_spark.sbe.plan import Plan
from aeron_spark.sbe.run import Run, Scratch, pointer
from aeron_spark.sbe.schema import load, parse
from aeron_spark.sbe.walk import DecodeError

TEMPLATE_ID = "sbe_template_id"
TEMPLATE = "sbe_template"
ERROR = "sbe_error"
"""Column that says why a message could not be decoded; null where it could."""
ERROR_AT = "sbe_error_at"
"""Column with the offset in the message where the error showed."""
RAW = "sbe_raw"
"""Column with the bytes of a message that could not be decoded."""

ERRORS = tuple(
    ffi.typeof("as_sbe_error").elements[number].removeprefix("AS_SBE_")
    for number in range(len(ffi.typeof("as_sbe_error").elements))
)
MAX_KEPT_SCRATCH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What `decode_rows` gives.

    `payload`: for each row of the batch the index of its payload. `dropped`, `skipped`: messages that could not be decoded, and
    messages of other templates, without a row. `lost`: values that are null because no column of their type can hold them.
    """

    batch: pa.RecordBatch
    payload: np.ndarray
    dropped: int
    skipped: int
    lost: int


class _Template:
    """One message's plan and columns, and scratch memory that runs take and give back."""

    def __init__(self, schema: Schema, message: Message, options: Options) -> None:
        self.message = message
        self.plan = Plan(schema, message)
        compiler = Compiler(self.plan, options)
        self.columns: dict[str, Column] = compiler.columns
        self.tasks = compiler.tasks
        self._idle: list[Scratch] = []

    def run(self, payload: pa.Buffer | None, starts: np.ndarray, ends: np.ndarray) -> tuple[Run, list[pa.Array]]:
        try:
            scratch = self._idle.pop()
        except IndexError:
            scratch = Scratch(self.plan, self.tasks)
        run = Run(self.plan, self.tasks, scratch, (payload, starts, ends))
        columns = [column.make(run) for column in self.columns.values()]
        run.finish()
        if len(self._idle) < MAX_KEPT_SCRATCH:
            self._idle.append(scratch)
        return run, columns


class Decoder:
    """Payloads to record batches of one schema's messages.

    decoder = Decoder("prices.xml", message="Quote", framing="cme-udp", decimals="double")
    batch = decoder.decode(payloads)

    `schema`: a Schema, a path, or the text of a schema. `message`: the template whose fields, groups and data become columns;
    without it each row has `sbe_template_id`, `sbe_template` and a nullable struct for each template of the schema.
    `framing` and `skip`: how messages lie in a payload, see `FRAMINGS`. `explode`: the path of a group (`legs`, `legs.fills`)
    whose entries become rows, with the values around repeated; a message without entries gives no row, one with an error does.
    Other options: `Options`. With `on_error="null"` the columns `sbe_error`, `sbe_error_at` and `sbe_raw` come last.

    A decoder may be pickled, and used by any number of threads; the work in C leaves them running. UsageError: options that
    contradict the schema or each other; SchemaError: a schema that can't be used.
    """

    def __init__(
        self,
        schema: Schema | str | Path,
        message: str | None = None,
        *,
        framing: str = "none",
        skip: int = 0,
        explode: str | None = None,
        **options: Any,
    ) -> None:
        self.schema = schema_of(schema)
        self.message = message
        self.options = _options(options)
        self._framing, self._skip, self._explode = framing, skip, explode
        self._how = named(framing)
        if skip < 0:
            raise UsageError(f"skip={skip} is below 0")
        wanted = self._wanted()
        self._templates = {one.id: _Template(self.schema, one, self.options) for one in wanted}
        self._any = Plan(self.schema, next(iter(self.schema.messages.values()))) if self.schema.messages else None
        self._all = self._templates
        if framing == "messages":
            self._all = {
                one.id: self._templates.get(one.id) or _Template(self.schema, one, self.options)
                for one in self.schema.messages.values()
            }
        self._names = pa.array([one.name for one in wanted], pa.string())
        self._nulls = [pa.nulls(0, kind) for kind in self._error_types()]
        self.arrow_schema = self._schema()

    def _wanted(self) -> list[Message]:
        if self.message is None:
            if self._explode:
                raise UsageError("explode needs a message whose group it names")
            return list(self.schema.messages.values())
        found = self.schema.message(self.message)
        if found is None:
            known = ", ".join(one.name for one in self.schema.messages.values())
            raise UsageError(f"there is no message '{self.message}' in the schema; it has {known}")
        return [found]

    def __reduce__(self) -> Any:
        options = {**asdict(self.options), "framing": self._framing, "skip": self._skip, "explode": self._explode}
        return _restored, (self.schema, self.message, options)

    # -- schema ------------------------------------------------------------------------------------------------------------

    def _schema(self) -> pa.Schema:
        plain = pa.string() if self.options.spark else NAMES
        if self.message is not None:
            fields = [pa.field(name, one.type) for name, one in next(iter(self._templates.values())).columns.items()]
        else:
            fields = [pa.field(TEMPLATE_ID, pa.int64()), pa.field(TEMPLATE, plain)]
            fields += [pa.field(one.message.name, _struct_type(one)) for one in self._templates.values()]
        if self.options.on_error == "null":
            fields += [pa.field(ERROR, plain), pa.field(ERROR_AT, pa.int64()), pa.field(RAW, pa.binary())]
        names = [one.name for one in fields]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise UsageError(f"two columns are named {', '.join(sorted(twice))}; on_error='drop' or 'fail' adds none")
        schema = pa.schema(fields)
        return exploded_schema(schema, self._explode) if self._explode else schema

    # -- decoding ----------------------------------------------------------------------------------------------------------

    def decode(self, payloads: pa.Array | pa.ChunkedArray | Sequence[bytes]) -> pa.RecordBatch:
        """The messages of binary payloads, in order, a row each, as `arrow_schema`. A null payload has no row.

        DecodeError: a message that can't be decoded, or a value that an option makes an error.
        """
        return self.decode_rows(payloads).batch

    def decode_rows(self, payloads: pa.Array | pa.ChunkedArray | Sequence[bytes]) -> Rows:
        """The same, with each row's payload and what has no row."""
        array = _binary(payloads)
        valid = np.flatnonzero(np.asarray(array.is_valid())) if array.null_count else None
        array = array.drop_null() if valid is not None else array
        offsets, content = _parts(array)
        rows = self._rows(content, cut(self._how, content, offsets, self._skip, self._consumed))
        return rows if valid is None else replace(rows, payload=valid[rows.payload])

    def _rows(self, content: pa.Buffer | None, found: Frames) -> Rows:
        skipped = 0
        if self.options.others == "skip" or self.message is None:
            ids = self._template_ids(content, found)
            if self.options.others == "skip" and self.message is not None:
                others = np.isin(ids, [one for one in self.schema.messages if one not in self._templates])
                skipped = int(others.sum())
                found = found.take(~others) if skipped else found
        if self.message is not None:
            template = next(iter(self._templates.values()))
            run, columns = template.run(content, found.starts, found.ends)
            errors, ends, lost = run.found_errors, run.found_ends, run.lost
            self._complain(run)
        else:
            columns, errors, ends, lost = self._union(content, found, ids)
        if found.errors is not None:
            errors = np.where(found.errors > 0, found.errors, 0 if errors is None else errors).astype(np.uint8)
            ends = np.where(found.errors > 0, 0, 0 if ends is None else ends)
        batch, rows, dropped = self._with_errors(content, found, columns, errors, ends)
        if self._explode:
            batch, parents = explode(batch, self._explode, ERROR)
            rows = rows[parents]
        return Rows(batch=batch, payload=rows, dropped=dropped, skipped=skipped, lost=lost)

    def _complain(self, run: Run) -> None:
        if self.options.on_error == "fail" and run.lost and not run.complaint:
            raise DecodeError("LOST_VALUE", 0, f"{run.lost} values do not fit the types of their columns")
        if run.complaint:
            kind, _, where = run.complaint.partition(" in ")
            raise DecodeError(kind, 0, f"a value of {where or 'a text'} has no meaning")

    def _with_errors(
        self, content: pa.Buffer | None, found: Frames, columns: list[pa.Array], errors: np.ndarray | None,
        ends: np.ndarray | None,
    ) -> tuple[pa.RecordBatch, np.ndarray, int]:  # fmt: skip
        names = self._plain_names()
        count, rows = len(found.starts), found.payload
        bad = np.flatnonzero(errors) if errors is not None else _NO_ROWS
        if not len(bad) or errors is None or ends is None:
            if self.options.on_error == "null":
                columns = [*columns, *self._no_errors(count)]
            return _batch(columns, names, count), rows, 0
        if self.options.on_error == "fail":
            row = int(bad[0])
            text = f"message {row}, of payload {int(rows[row])}"
            raise DecodeError(ERRORS[errors[row]], int(ends[row]), f"{text}, as {self.message or 'any template'}")
        if self.options.on_error == "drop":
            batch = _batch(columns, names, count)
            return batch.filter(pa.array(errors == 0)), rows[errors == 0], len(bad)
        kind = pa.DictionaryArray.from_arrays(
            pa.array(errors.astype(np.int16), mask=errors == 0), pa.array(ERRORS, pa.string())
        )
        at = pa.array(ends, pa.int64(), mask=errors == 0)
        raw: list[bytes | None] = [None] * count
        for row in bad.tolist():
            start, stop = int(found.starts[row]), int(found.stops[row])
            raw[row] = content.slice(start, stop - start).to_pybytes() if content is not None and stop > start else b""
        types = self._error_types()
        columns = [*columns, kind.cast(types[0]) if self.options.spark else kind, at, pa.array(raw, pa.binary())]
        return pa.RecordBatch.from_arrays(columns, names), rows, 0

    def _no_errors(self, count: int) -> list[pa.Array]:
        """Columns of nulls, cut from ones that are kept: nearly every batch has them."""
        kept = self._nulls
        if len(kept[0]) < count:
            self._nulls = kept = [pa.nulls(2 * count, kind) for kind in self._error_types()]
        return [one.slice(0, count) for one in kept]

    def _error_types(self) -> tuple[pa.DataType, ...]:
        return (pa.string() if self.options.spark else NAMES), pa.int64(), pa.binary()

    def _plain_names(self) -> list[str]:
        names = [] if self.message is not None else [TEMPLATE_ID, TEMPLATE]
        if self.message is not None:
            names += next(iter(self._templates.values())).columns
        else:
            names += [one.message.name for one in self._templates.values()]
        return names + ([ERROR, ERROR_AT, RAW] if self.options.on_error == "null" else [])

    def _template_ids(self, content: pa.Buffer | None, found: Frames) -> np.ndarray:
        ids = np.full(len(found.starts), -1, np.int64)
        if self._any is not None and len(ids) and content is not None:
            check(
                lib.as_sbe_template_ids(
                    self._any.native, ffi.cast("uint8_t *", content.address), pointer("int64_t *", found.starts),
                    pointer("int64_t *", found.ends), len(ids), pointer("int64_t *", ids),
                )
            )  # fmt: skip
        return ids

    def _union(
        self, content: pa.Buffer | None, found: Frames, ids: np.ndarray
    ) -> tuple[list[pa.Array], np.ndarray | None, np.ndarray | None, int]:
        count = len(ids)
        errors, ends = np.zeros(count, np.uint8), np.zeros(count, np.int64)
        structs: list[pa.Array] = []
        order, lost = np.full(count, -1, np.int16), 0
        if self._templates:
            # Whatever is of no template gets its error by the walk of any.
            known = np.isin(ids, list(self._templates))
            first = next(iter(self._templates))
            ids = np.where(known, ids, first)
        else:
            errors[:] = ERRORS.index("UNKNOWN_TEMPLATE")
        for number, (template_id, template) in enumerate(self._templates.items()):
            rows = np.flatnonzero(ids == template_id)
            if not len(rows):
                structs.append(pa.nulls(count, _struct_type(template)))
                continue
            starts, stops = np.ascontiguousarray(found.starts[rows]), np.ascontiguousarray(found.ends[rows])
            run, columns = template.run(content, starts, stops)
            self._complain(run)
            lost += run.lost
            good = np.ones(len(rows), bool)
            if run.found_errors is not None and run.found_ends is not None:
                errors[rows], ends[rows] = run.found_errors, run.found_ends
                good = run.found_errors == 0
            order[rows[good]] = number
            where = np.full(count, -1, np.int64)
            where[rows[good]] = np.flatnonzero(good)
            made = _as_struct(template, columns, len(rows))
            structs.append(made.take(pa.array(where, mask=where < 0)))
        named_by = pa.DictionaryArray.from_arrays(pa.array(order, mask=order < 0), self._names)
        seen = pa.array(self._template_ids(content, found), pa.int64())
        seen = pc.if_else(pc.less(seen, 0), pa.scalar(None, pa.int64()), seen)
        return [seen, named_by.cast(pa.string()) if self.options.spark else named_by, *structs], errors, ends, lost

    def _consumed(self, content: pa.Buffer, start: int, end: int) -> tuple[int, int]:
        """Error and length of one message, of any template."""
        found = Frames(np.array([start]), np.array([end]), np.zeros(1, np.int64), None, np.array([end]))
        template_id = int(self._template_ids(content, found)[0])
        template = self._all.get(template_id) or next(iter(self._all.values()), None)
        if template is None:
            return ERRORS.index("UNKNOWN_TEMPLATE"), 0
        run, _ = template.run(content, found.starts, found.ends)
        if run.found_errors is not None:
            return int(run.found_errors[0]), 0
        return 0, run.first_end


def _restored(schema: Schema, message: str | None, options: dict[str, Any]) -> Decoder:
    return Decoder(schema, message, **options)


def _options(given: dict[str, Any]) -> Options:
    known = Options.__dataclass_fields__
    for name in given:
        if name not in known:
            raise UsageError(f"there is no option '{name}'; there are {', '.join(known)}")
    return Options(**{**given, "empty_as_null": tuple(given.get("empty_as_null", ()))})


def schema_of(given: Schema | str | Path) -> Schema:
    """A schema that was read already, or is a file, or text."""
    if isinstance(given, Schema):
        return given
    if isinstance(given, str) and given.lstrip("\ufeff \t\r\n").startswith("<"):
        return parse(given)
    return load(Path(given))


def _struct_type(template: _Template) -> pa.DataType:
    return pa.struct([pa.field(name, one.type) for name, one in template.columns.items()])


def _as_struct(template: _Template, columns: list[pa.Array], count: int) -> pa.Array:
    return pa.Array.from_buffers(_struct_type(template), count, [None], 0, children=columns)


def _batch(columns: list[pa.Array], names: list[str], count: int) -> pa.RecordBatch:
    """With its rows where there is no column, too."""
    if columns:
        return pa.RecordBatch.from_arrays(columns, names)
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), count, [None], 0))


def _binary(payloads: pa.Array | pa.ChunkedArray | Sequence[bytes]) -> pa.Array:
    array = payloads if isinstance(payloads, (pa.Array, pa.ChunkedArray)) else pa.array(payloads, pa.large_binary())
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)):
        raise UsageError(f"payloads are {array.type}, not binary")
    return array


def _parts(array: pa.Array) -> tuple[np.ndarray, pa.Buffer | None]:
    """Offsets and bytes."""
    if not len(array):
        return _NOTHING, None
    narrow = pa.types.is_binary(array.type)
    width, kind = (4, np.int32) if narrow else (8, np.int64)
    offsets = np.frombuffer(array.buffers()[1], kind, len(array) + 1, array.offset * width)
    return offsets.astype(np.int64) if narrow else offsets, array.buffers()[2]


_NOTHING = np.zeros(1, np.int64)
_NO_ROWS = np.zeros(0, np.int64)
