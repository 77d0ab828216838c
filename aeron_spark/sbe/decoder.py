"""Decodes payloads to record batches. Spec: 10 §13-15, §18."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from aeron_spark._native._lib import ffi
from aeron_spark.errors import UsageError
from aeron_spark.names import nearest
from aeron_spark.sbe.column import Column
from aeron_spark.sbe.columns import HEADER, Compiler
from aeron_spark.sbe.explode import explode, exploded_schema
from aeron_spark.sbe.export import Exporter, struct_node
from aeron_spark.sbe.framing import MESSAGES, named
from aeron_spark.sbe.model import Message, Schema
from aeron_spark.sbe.options import Options
from aeron_spark.sbe.packets import Frames, cut, native
from aeron_spark.sbe.plan import Plan
from aeron_spark.sbe.program import program
from aeron_spark.sbe.registry import Registry, Source, schema_of
from aeron_spark.sbe.run import BatchTooLargeError, Run, Scratch, allocate
from aeron_spark.sbe.values import NAMES
from aeron_spark.sbe.walk import DecodeError

SCHEMA_ID = "sbe_schema_id"
TEMPLATE_ID = "sbe_template_id"
TEMPLATE = "sbe_template"
ERROR = "sbe_error"
"""Column with the reason why a message could not be decoded; null if it was decoded."""
ERROR_AT = "sbe_error_at"
"""Column with the offset in the message where the error was detected."""
RAW = "sbe_raw"
"""Column with the bytes of a message that could not be decoded."""

ERRORS = tuple(
    ffi.typeof("as_sbe_error").elements[number].removeprefix("AS_SBE_")
    for number in range(len(ffi.typeof("as_sbe_error").elements))
)
MAX_KEPT_SCRATCH = 4
MAX_EXPORTED = 4096
"""Messages of which C makes all columns in one call and one block of memory. Of more, each column's memory is Arrow's, whose
pool keeps its pages: a large block would be of fresh pages each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Result of `decode_rows`.

    `payload`: for each row of the batch the index of its payload. `dropped`, `skipped`: messages that could not be
    decoded, and messages of other templates, without a row. `lost`: values that are null because no column of their
    type can hold them. `short_fields`: values that are null because a block is too short for a field that its version
    has. `unread_bytes`: bytes after the last element of messages. `is_one_each`: row i is payload i, and the last row the
    last payload; it may be True only where that was clear without a look at the rows.
    """

    batch: pa.RecordBatch
    payload: np.ndarray
    dropped: int
    skipped: int
    lost: int
    short_fields: int
    unread_bytes: int
    is_one_each: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ForC:
    """Bytes that C runs, the columns that it then makes, in this order, and those that it cannot make."""

    program: bytes
    columns: tuple[str, ...]
    lacks: tuple[str, ...]


@dataclass(slots=True)
class _Counts:
    lost: int = 0
    short_fields: int = 0
    unread_bytes: int = 0
    reasons: dict[int, str] = field(default_factory=dict)

    def add(self, run: Run, rows: np.ndarray | None = None) -> None:
        """`rows`: the run's messages among all messages, if the run covers only some."""
        for message, (_, _, text) in run.refused.items():
            self.reasons[message if rows is None else int(rows[message])] = text
        self.lost += run.lost
        self.short_fields += run.short_fields
        self.unread_bytes += run.unread


class _Template:
    """One message's plan and columns, and scratch memory that runs borrow and return."""

    def __init__(self, schema: Schema, message: Message, options: Options, wanted: Collection[str] | None) -> None:
        self.plan = Plan(schema, message, strict_blocks=options.strict_blocks, max_entries=options.max_entries)
        compiler = Compiler(self.plan, options, wanted)
        self.columns: dict[str, Column] = compiler.columns
        self.tasks = compiler.tasks
        root = struct_node(0, [one.node for one in self.columns.values()])
        schema = pa.schema([pa.field(name, one.type) for name, one in self.columns.items()])
        self._exporter = Exporter(root, schema) if root and root.children else None
        self._idle: list[Scratch] = []

    def run(self, payload: pa.Buffer | None, starts: np.ndarray, ends: np.ndarray) -> tuple[Run, list[pa.Array]]:
        """Run, and make rows of nulls of messages that have a value which an option treats as an error."""
        run, columns = self.run_once(payload, starts, ends)
        if not run.refused:
            return run, columns
        refused = run.refused
        rows = np.fromiter(refused, np.int64)
        without = ends.copy()
        without[rows] = starts[rows]
        run, columns = self.run_once(payload, starts, without)
        if run.found_errors is None or run.found_ends is None:
            run.found_errors, run.found_ends = np.zeros(len(starts), np.uint8), np.zeros(len(starts), np.int64)
        run.found_errors[rows] = [ERRORS.index(kind) for kind, _, _ in refused.values()]
        run.found_ends[rows] = [offset for _, offset, _ in refused.values()]
        run.refused = refused
        return run, columns

    def run_once(self, payload: pa.Buffer | None, starts: np.ndarray, ends: np.ndarray) -> tuple[Run, list[pa.Array]]:
        """Run, with such messages as the walk decodes them."""
        try:
            scratch = self._idle.pop()
        except IndexError:
            scratch = Scratch(self.plan, self.tasks)
        exporter = self._exporter if len(starts) <= MAX_EXPORTED else None
        run = Run(self.plan, self.tasks, scratch, (payload, starts, ends), gathers=exporter is None)
        batch = exporter.batch(run, scratch) if exporter else None
        if batch is None:
            run.gather()
            columns = [column.make(run) for column in self.columns.values()]
        else:
            columns = batch.columns
        run.finish()
        if len(self._idle) < MAX_KEPT_SCRATCH:
            self._idle.append(scratch)
        return run, columns


class Decoder:
    """Decodes payloads to record batches of one schema's messages.

        decoder = Decoder("prices.xml", message="Quote", framing="cme-udp", decimals="double")
        batch = decoder.decode(payloads)

    `schema`: a Schema, a path, the text of a schema, or a list of those; with a list, the schema id of a message's
    header selects the schema.
    `message`: the template whose fields, groups and data become columns. Without it each row has `sbe_template_id`,
    `sbe_template` and a nullable struct for each template of the schema. With several schemas, a name in more than one
    of them gets the schema's id as a suffix (`Quote_100`), and `sbe_schema_id` is the first column.
    `header_type`, `header_map`: the composite that is the header on the wire if the schema names another one, and the
    names of its members, as for `load`.
    `framing` and `skip`: how messages are laid out in a payload, see `named`. `explode`: the path of a group (`legs`,
    `legs.fills`) whose entries become rows; the enclosing values are repeated. A message without entries yields no row,
    one with an error does. `columns`: names of the columns to make, all by default. Other options: `Options`. With
    `on_error="null"` the columns `sbe_error`, `sbe_error_at` and `sbe_raw` are last.

    A decoder can be pickled, and used by any number of threads; the C code releases the GIL. UsageError: options that
    contradict the schema or each other; SchemaError: a schema that can't be used.
    """

    def __init__(
        self,
        schema: Source | Sequence[Source],
        message: str | None = None,
        *,
        header_type: str | None = None,
        header_map: Mapping[str, str] | None = None,
        framing: str = "none",
        skip: int = 0,
        explode: str | None = None,
        columns: Collection[str] | None = None,
        **options: Any,
    ) -> None:
        sources = cast("list[Source]", list(schema) if isinstance(schema, (list, tuple)) else [schema])
        self._registry = Registry([schema_of(one, header_type, dict(header_map or {})) for one in sources])
        self.schemas = self._registry.schemas
        self.message = message
        self.options = Options.of(options)
        self._framing, self._skip, self._explode = framing, skip, explode
        self._columns = None if columns is None else tuple(columns)
        self._how = named(framing)
        if skip < 0:
            raise UsageError(f"skip={skip} is below 0")
        if message is None and explode:
            raise UsageError("explode needs a message whose group it names")
        if message is not None:
            self._registry.find(message)
        # Indexed by the message's number in the registry.
        self._templates: dict[int, _Template] = {}
        self._walked: dict[int, _Template] = {}
        for number, (name, (of, one)) in enumerate(self._registry.messages.items()):
            if message in (None, name):
                self._templates[number] = _Template(of, one, self.options, self._wanted(name))
            elif framing == "messages":
                self._walked[number] = _Template(of, one, self.options, ())
        self._walked |= self._templates
        self._names = list(self._registry.messages)
        self._has_others = False  # the messages before had such of other templates
        self._nulls = [pa.nulls(0, kind) for kind in self._error_types()]
        self.arrow_schema = self._schema()

    def _wanted(self, name: str) -> tuple[str, ...] | None:
        """The columns of a message to make."""
        if self._columns is None or self._explode:
            return None
        if self.message is not None:
            return self._columns
        return (None if name in self._columns else ()) if HEADER not in self._columns else None

    @property
    def _only(self) -> _Template:
        """The only template, where there is one."""
        return next(iter(self._templates.values()))

    def __reduce__(self) -> Any:
        options = {
            **asdict(self.options), "framing": self._framing, "skip": self._skip, "explode": self._explode,
            "columns": self._columns,
        }  # fmt: skip
        return _restored, (self.schemas, self.message, options)

    # -- for C alone -----------------------------------------------------------------------------------------------------

    def for_c(self) -> ForC | str:
        """How C decodes messages without Python, texts as indices of names; or what of the decoder it cannot do."""
        if self.message is None:
            return "messages of several templates"
        if len(self.schemas) > 1:
            return "several schemas"
        if self._explode:
            return "entries of a group as rows"
        if self._how is MESSAGES:
            return "messages of which only their fields tell where they end"
        template, columns = self._only, self._only.columns
        others = [one.id for name, (_, one) in self._registry.messages.items() if name != self.message]
        nodes = {name: column.of_c for name, column in columns.items() if column.of_c is not None}
        return ForC(
            program=program(
                template.plan,
                template.tasks,
                list(nodes.values()),
                native(self._how, self._skip) if self._how.size else None,
                skip=self._skip,
                others=others if self.options.others == "skip" else (),
            ),
            columns=tuple(nodes),
            lacks=tuple(name for name in columns if name not in nodes),
        )

    # -- schema ------------------------------------------------------------------------------------------------------------

    def _schema(self) -> pa.Schema:
        plain = pa.string() if self.options.spark else NAMES
        if self.message is not None:
            fields = [pa.field(name, one.type) for name, one in self._only.columns.items()]
        else:
            fields = [pa.field(SCHEMA_ID, pa.int64())] if len(self.schemas) > 1 else []
            fields += [pa.field(TEMPLATE_ID, pa.int64()), pa.field(TEMPLATE, plain)]
            if self.options.header and self._templates:
                fields.append(pa.field(HEADER, self._header_type()))
            fields += [pa.field(self._names[number], _struct_type(one)) for number, one in self._templates.items()]
        if self.options.on_error == "null":
            fields += [pa.field(ERROR, plain), pa.field(ERROR_AT, pa.int64()), pa.field(RAW, pa.binary())]
        names = [one.name for one in fields]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise UsageError(f"two columns are named {', '.join(sorted(twice))}; on_error='drop' or 'fail' adds none")
        self._plain = names
        schema = pa.schema(fields)
        schema = exploded_schema(schema, self._explode) if self._explode else schema
        if self._columns is None:
            return schema
        for name in self._columns:
            if name not in schema.names:
                of_message = () if self.message is None else self._registry.find(self.message)[1].names
                known = list(dict.fromkeys([*of_message, *schema.names]))
                raise UsageError(
                    f"columns: there is no column '{name}'; there are {', '.join(known)}{nearest(name, known)}"
                )
        return pa.schema([one for one in schema if one.name in self._columns])

    def _header_type(self) -> pa.DataType:
        types = {one.columns[HEADER].type for one in self._templates.values() if HEADER in one.columns}
        if len(types) > 1:
            raise UsageError("header: the schemas have headers of different members; leave it out, or choose a message")
        return types.pop() if types else pa.null()

    # -- decoding ----------------------------------------------------------------------------------------------------------

    def decode(self, payloads: pa.Array | pa.ChunkedArray | Sequence[bytes]) -> pa.RecordBatch:
        """The messages of binary payloads, in order, one row each, as `arrow_schema`. A null payload has no row.

        DecodeError: a message that can't be decoded, or a value that an option treats as an error. UsageError: more than one
        batch holds; fewer payloads may be decoded, or `decode_parts` takes all.
        """
        return self.decode_rows(payloads).batch

    def decode_rows(self, payloads: pa.Array | pa.ChunkedArray | Sequence[bytes]) -> Rows:
        """As `decode`, with each row's payload and the counts of messages without a row."""
        content, found, valid = self._found(payloads)
        rows = self._rows(content, found)
        return rows if valid is None else replace(rows, payload=valid[rows.payload], is_one_each=False)

    def decode_parts(self, payloads: pa.Array | pa.ChunkedArray | Sequence[bytes]) -> Iterator[Rows]:
        """As `decode_rows`, in as many parts, one after the other, as bounded memory needs: one, except of unusual messages.

        A few bytes may say that a group has many entries of no bytes. A message's rows are the same in any part.
        """
        content, found, valid = self._found(payloads)
        waiting = [found]
        while waiting:
            part = waiting.pop()
            try:
                rows = self._rows(content, part)
            except BatchTooLargeError:
                if len(part.starts) <= 1:
                    raise
                waiting += reversed(part.halves())
                continue
            if part is not found or valid is not None:
                payload = rows.payload if valid is None else valid[rows.payload]
                rows = replace(rows, payload=payload, is_one_each=False)
            yield rows

    def _found(
        self, payloads: pa.Array | pa.ChunkedArray | Sequence[bytes]
    ) -> tuple[pa.Buffer | None, Frames, np.ndarray | None]:
        """Bytes, the messages in them, and which payloads are not null; None: all."""
        array = _binary(payloads)
        valid = np.flatnonzero(np.asarray(array.is_valid())) if array.null_count else None
        array = array.drop_null() if valid is not None else array
        offsets, content = _parts(array)
        header = self._registry.schemas[0].header.composite.size
        return content, cut(self._how, content, offsets, self._skip, self._consumed, header=header), valid

    def template_numbers(self, payloads: pa.Array) -> np.ndarray:
        """Of binary payloads without framing: each one's template, by its number in the schemas, -1 for an unknown one."""
        offsets, content = _parts(_binary(payloads))
        return self._registry.numbers(
            content, cut(named("none"), content, offsets, self._skip, self._consumed, header=0)
        )

    def _rows(self, content: pa.Buffer | None, found: Frames) -> Rows:
        skipped = 0
        each = found.payload
        counts = _Counts()
        if self.message is not None:
            found, skipped, run, columns = self._run_only(content, found)
            errors, ends = run.found_errors, run.found_ends
            self._complain(run)
            counts.add(run)
        else:
            columns, errors, ends = self._union(content, found, self._registry.numbers(content, found), counts)
        if found.errors is not None:
            errors = np.where(found.errors > 0, found.errors, 0 if errors is None else errors).astype(np.uint8)
            ends = np.where(found.errors > 0, 0, 0 if ends is None else ends)
        batch, rows, dropped = self._with_errors(content, found, columns, errors, ends, reasons=counts.reasons)
        if self._explode:
            batch, parents = explode(batch, self._explode, ERROR)
            rows = rows[parents]
        if self._columns is not None:
            batch = batch.select(self.arrow_schema.names)
        return Rows(
            batch=batch, payload=rows, dropped=dropped, skipped=skipped, lost=counts.lost, short_fields=counts.short_fields,
            unread_bytes=counts.unread_bytes, is_one_each=rows is each and not self._how.size,
        )  # fmt: skip

    def _run_only(self, content: pa.Buffer | None, found: Frames) -> tuple[Frames, int, Run, list[pa.Array]]:
        """Messages without those that are skipped, how many these are, and the columns.

        To the walk, each message of another template is an error. So they are looked for first only while there are some.
        """
        skipped = 0
        if self._has_others:
            found, skipped = self._without_others(content, found)
            self._has_others = skipped > 0
        run, columns = self._only.run(content, found.starts, found.ends)
        if run.error_count and not skipped and self.options.others == "skip":
            found, skipped = self._without_others(content, found)
            if skipped:
                self._has_others = True
                run, columns = self._only.run(content, found.starts, found.ends)
        return found, skipped, run, columns

    def _without_others(self, content: pa.Buffer | None, found: Frames) -> tuple[Frames, int]:
        numbers = self._registry.numbers(content, found)
        others = (numbers >= 0) & (numbers != next(iter(self._templates)))
        skipped = int(others.sum())
        return (found.take(~others) if skipped else found), skipped

    def _complain(self, run: Run) -> None:
        if self.options.on_error == "fail" and run.lost:
            raise DecodeError("LOST_VALUE", 0, f"{run.lost} values do not fit the types of their columns")

    def _with_errors(
        self, content: pa.Buffer | None, found: Frames, columns: list[pa.Array], errors: np.ndarray | None,
        ends: np.ndarray | None, *, reasons: Mapping[int, str],
    ) -> tuple[pa.RecordBatch, np.ndarray, int]:  # fmt: skip
        names = self._plain
        count, rows = len(found.starts), found.payload
        bad = np.flatnonzero(errors) if errors is not None else _NO_ROWS
        if not len(bad) or errors is None or ends is None:
            if self.options.on_error == "null":
                columns = [*columns, *self._no_errors(count)]
            return _batch(columns, names, count), rows, 0
        if self.options.on_error == "fail":
            row = int(bad[0])
            text = f"message {row}, of payload {int(rows[row])}, as {self.message or 'any template'}"
            reason = f": {reasons[row]}" if row in reasons else ""
            raise DecodeError(ERRORS[errors[row]], int(ends[row]), text + reason)
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
        """Columns of nulls, sliced from cached ones, because nearly every batch has them."""
        kept = self._nulls
        if len(kept[0]) < count:
            self._nulls = kept = [pa.nulls(2 * count, kind) for kind in self._error_types()]
        return [one.slice(0, count) for one in kept]

    def _error_types(self) -> tuple[pa.DataType, ...]:
        return (pa.string() if self.options.spark else NAMES), pa.int64(), pa.binary()

    def _union(
        self, content: pa.Buffer | None, found: Frames, numbers: np.ndarray, counts: _Counts
    ) -> tuple[list[pa.Array], np.ndarray, np.ndarray]:
        count = len(numbers)
        errors, ends = np.zeros(count, np.uint8), np.zeros(count, np.int64)
        structs: list[pa.Array] = []
        headers = _Headers(count)
        order = np.full(count, -1, np.int16)
        if self._templates:
            # A message of no template gets its error by the walk of any template, of its own schema if that is known.
            numbers = np.where(numbers < 0, self._nearest(content, found), numbers)
        else:
            errors[:] = ERRORS.index("UNKNOWN_TEMPLATE")
        for number, template in self._templates.items():
            rows = np.flatnonzero(numbers == number)
            if not len(rows):
                structs.append(pa.nulls(count, _struct_type(template)))
                continue
            starts, stops = np.ascontiguousarray(found.starts[rows]), np.ascontiguousarray(found.ends[rows])
            run, columns = template.run(content, starts, stops)
            self._complain(run)
            counts.add(run, rows)
            good = np.ones(len(rows), bool)
            if run.found_errors is not None and run.found_ends is not None:
                errors[rows], ends[rows] = run.found_errors, run.found_ends
                good = run.found_errors == 0
            order[rows[good]] = number
            where = np.full(count, -1, np.int64)
            where[rows[good]] = np.flatnonzero(good)
            if HEADER in template.columns:
                headers.add(columns.pop(0), rows[good], np.flatnonzero(good))
            made = _as_struct(template, columns, len(rows))
            structs.append(made.take(pa.array(where, mask=where < 0)))
        named_by = pa.DictionaryArray.from_arrays(pa.array(order, mask=order < 0), pa.array(self._names, pa.string()))
        known = [_ids_or_null(self._registry.template_ids(content, found))]
        if len(self.schemas) > 1:
            known.insert(0, _ids_or_null(self._registry.schema_ids(content, found)))
        known.append(named_by.cast(pa.string()) if self.options.spark else named_by)
        if self.options.header and self._templates:
            known.append(headers.made(self._header_type()))
        return [*known, *structs], errors, ends

    def _nearest(self, content: pa.Buffer | None, found: Frames) -> np.ndarray:
        """A template for each message that is of none: that template's walk detects the error."""
        numbers = np.zeros(len(found.starts), np.int64)
        if len(self.schemas) > 1:
            ids = self._registry.schema_ids(content, found)
            for number, (schema, _) in enumerate(self._registry.messages.values()):
                numbers[ids == schema.id] = number
        return numbers

    def _consumed(self, content: pa.Buffer, start: int, end: int) -> tuple[int, int]:
        """Error and length of one message, of any template."""
        found = Frames(np.array([start]), np.array([end]), np.zeros(1, np.int64), None, np.array([end]))
        number = int(self._registry.numbers(content, found)[0])
        number = int(self._nearest(content, found)[0]) if number < 0 else number
        if number not in self._walked:
            return ERRORS.index("UNKNOWN_TEMPLATE"), 0
        run, _ = self._walked[number].run_once(content, found.starts, found.ends)
        if run.found_errors is not None:
            return int(run.found_errors[0]), 0
        return 0, run.first_end


class _Headers:
    """Builds one column from the headers of a union's messages, template by template."""

    def __init__(self, count: int) -> None:
        self._parts: list[pa.Array] = []
        self._where = np.full(count, -1, np.int64)
        self._length = 0

    def add(self, headers: pa.Array, rows: np.ndarray, indexes: np.ndarray) -> None:
        self._parts.append(headers)
        self._where[rows] = self._length + indexes
        self._length += len(headers)

    def made(self, of: pa.DataType) -> pa.Array:
        whole = pa.concat_arrays(self._parts) if self._parts else pa.nulls(0, of)
        return whole.take(pa.array(self._where, mask=self._where < 0))


def _ids_or_null(ids: np.ndarray) -> pa.Array:
    return pa.array(ids, pa.int64(), mask=ids < 0)


def _restored(schemas: tuple[Schema, ...], message: str | None, options: dict[str, Any]) -> Decoder:
    return Decoder(schemas, message, **options)


def _struct_type(template: _Template) -> pa.DataType:
    return pa.struct([pa.field(name, one.type) for name, one in template.columns.items() if name != HEADER])


def _as_struct(template: _Template, columns: list[pa.Array], count: int) -> pa.Array:
    return pa.Array.from_buffers(_struct_type(template), count, [None], 0, children=columns)


def _batch(columns: list[pa.Array], names: list[str], count: int) -> pa.RecordBatch:
    """Makes a batch that keeps its row count even without columns."""
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
    if narrow:
        wide = np.frombuffer(allocate(8 * len(offsets)), np.int64)
        np.copyto(wide, offsets)
        offsets = wide
    return offsets, array.buffers()[2]


_NOTHING = np.zeros(1, np.int64)
_NO_ROWS = np.zeros(0, np.int64)
