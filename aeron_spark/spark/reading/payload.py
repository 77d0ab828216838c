"""Payloads other than a binary column: text, the rows of an Arrow stream, or the fields of an SBE message.

A payload gives columns of its own; each returns the message of every row, so that the columns of the message repeat with it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Protocol

import numpy as np
import pyarrow as pa

from aeron_spark.errors import DataLossError, UsageError
from aeron_spark.names import nearest
from aeron_spark.sbe import DecodeError, Decoder, Rows
from aeron_spark.sbe.registry import Registry
from aeron_spark.spark.log import LOG, facts
from aeron_spark.spark.planning.sbe_options import SbeOptions
from aeron_spark.spark.reading.arrow_types import in_microseconds, spark_type

__all__ = ["ArrowPayload", "Payload", "SbePayload"]

#: What a decoder's columns are called here.
_OURS = {"sbe_schema_id": "schema_id", "sbe_template_id": "template_id", "sbe_template": "template"}


class Payload(Protocol):
    """Decodes messages to columns."""

    schema: pa.Schema

    def rows(self, values: pa.BinaryArray, wanted: set[str]) -> Iterator[tuple[pa.RecordBatch, np.ndarray]]:
        """Columns, at least the wanted ones, and the index of each row's message; in parts."""
        ...

    def for_jvm(self) -> dict[str, object] | str:
        """JSON of how the JVM decodes messages, or what it cannot do."""
        ...


class ArrowPayload:
    """Each message is an Arrow IPC stream; its rows are rows. All messages must have the columns of the schema."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = pa.schema([pa.field(field.name, spark_type(field.type)) for field in schema])

    @staticmethod
    def stream_schema(value: bytes) -> pa.Schema:
        """Schema of a message; DataLossError if it is no IPC stream."""
        try:
            with pa.ipc.open_stream(value) as stream:
                return stream.schema
        except (pa.ArrowInvalid, OSError) as error:
            raise DataLossError(f"payload=arrow: a message is no Arrow IPC stream: {error}") from None

    def rows(self, values: pa.BinaryArray, wanted: set[str]) -> Iterator[tuple[pa.RecordBatch, np.ndarray]]:
        """Rows of all messages, in order."""
        tables, counts = [], []
        names = [name for name in self.schema.names if name in wanted]
        for row, value in enumerate(values):
            try:
                with pa.ipc.open_stream(value.as_buffer()) as stream:
                    table = stream.read_all()
            except (pa.ArrowInvalid, OSError) as error:
                raise DataLossError(
                    f"payload=arrow: message {row} of a batch is no Arrow IPC stream: {error}"
                ) from None
            missing = [name for name in names if name not in table.column_names]
            if missing:
                raise UsageError(f"payload=arrow: a message has no column {missing[0]!r}, only {table.column_names}")
            columns = [self._cast(table.column(name), self.schema.field(name)) for name in names]
            tables.append(pa.table(columns, names=names))
            counts.append(table.num_rows)
        schema = pa.schema([self.schema.field(name) for name in names])
        whole = pa.concat_tables(tables) if tables else schema.empty_table()
        arrays = [column.combine_chunks() if column.num_chunks != 1 else column.chunk(0) for column in whole.columns]
        arrays = [array.chunk(0) if isinstance(array, pa.ChunkedArray) else array for array in arrays]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        yield batch, np.repeat(np.arange(len(values)), counts)

    def for_jvm(self) -> dict[str, object] | str:
        """The JVM does not read Arrow."""
        return "streams of Arrow"

    @staticmethod
    def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
        """Only times may lose digits."""
        try:
            chunks = [in_microseconds(chunk) for chunk in column.chunks or [pa.array([], column.type)]]
            return pa.chunked_array(chunks).cast(spark_type(column.type)).cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise UsageError(
                f"payload=arrow: column {field.name} is {column.type} in a message and {field.type} in the schema: {error}"
            ) from None


class SbePayload:
    """Each message holds SBE messages: rows of one template's fields, or a struct per template; by the options.

    ``onSbeError``: what cannot be decoded, or has a template that the schema does not know, fails the task, is a row whose
    columns are null and whose ``sbe_error`` holds the reason, or is dropped and counted in the log. Messages of other templates
    than the one chosen are not read, unless ``sbeOthers`` makes them errors.
    """

    def __init__(self, options: SbeOptions) -> None:
        self._options = options
        self._schemas = options.load()
        self._check_message()
        self._names: dict[str, str] = {}
        self._decoder_of: dict[frozenset[str], Decoder] = {}
        fields = self._decoder(None).arrow_schema
        names = {name: _OURS.get(name, name) for name in fields.names}
        if len(set(names.values())) < len(names):
            raise UsageError(
                "payload=sbe: a message of the schema is named as one of our columns: choose it by sbeMessage"
            )
        self._names = {ours: name for name, ours in names.items()}
        self.schema = pa.schema([pa.field(names[field.name], spark_type(field.type)) for field in fields])

    def _check_message(self) -> None:
        message, known = self._options.message, Registry(self._schemas).messages
        if message is not None and message not in known:
            raise UsageError(
                f"option sbeMessage={message!r}: there is no such message in the schema; it has {', '.join(known)}"
                f"{nearest(message, known)}"
            )

    def __getstate__(self) -> dict[str, object]:
        """Plans of a decoder are of this process; a task makes its own."""
        return {**self.__dict__, "_decoder_of": {}}

    def for_jvm(self) -> dict[str, object] | str:
        """JSON of how the JVM decodes messages (``SbeColumns.java``), or what it cannot do."""
        decoder = self._decoder(None)
        found = decoder.for_c()
        if isinstance(found, str):
            return found
        lacks = dict.fromkeys(found.lacks, "only Python makes values of this kind")
        for field in decoder.arrow_schema:
            if self.schema.field(_OURS.get(field.name, field.name)).type != field.type:
                lacks[field.name] = f"Spark has no {field.type}"
        return {
            "program": base64.b64encode(found.program).decode(),
            "columns": list(found.columns),
            "lacks": lacks,
        }

    def _decoder(self, wanted: frozenset[str] | None) -> Decoder:
        """For the columns that are wanted, by their names in Spark; None: all."""
        if wanted is None:
            return self._options.decoder(self._schemas)
        if wanted not in self._decoder_of:
            columns = [self._names[name] for name in wanted] + ["sbe_error"]
            if "template" in wanted:
                columns += [self._names[name] for name in ("schema_id", "template_id") if name in self._names]
            self._decoder_of[wanted] = self._options.decoder(self._schemas, columns)
        return self._decoder_of[wanted]

    def rows(self, values: pa.BinaryArray, wanted: set[str]) -> Iterator[tuple[pa.RecordBatch, np.ndarray]]:
        """A row for each message, or entry, without those of other templates and those that are dropped."""
        try:
            for found in self._decoder(frozenset(wanted)).decode_parts(values):
                yield self._made(values, found, wanted)
        except DecodeError as error:
            raise DataLossError(f"payload=sbe: {error}") from None

    def _made(self, values: pa.BinaryArray, found: Rows, wanted: set[str]) -> tuple[pa.RecordBatch, np.ndarray]:
        batch, rows = found.batch, found.payload
        errors = batch.column("sbe_error")
        self._log_counts(found, len(values))
        if errors.null_count < len(errors):
            bad = np.asarray(errors.is_valid())
            self._log_refused(values, rows, bad)
            if self._options.on_error == "drop":
                batch, rows = batch.filter(pa.array(~bad)), rows[~bad]
            elif "template" in wanted:
                batch = self._with_templates(batch, np.flatnonzero(bad))
        names = [_OURS.get(name, name) for name in batch.schema.names]
        columns = [
            column.cast(self.schema.field(name).type, safe=False)
            if column.type != self.schema.field(name).type
            else column
            for name, column in zip(names, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=names), rows

    def _with_templates(self, batch: pa.RecordBatch, bad: np.ndarray) -> pa.RecordBatch:
        """With the templates' names of messages that could not be decoded, where they are known."""
        known = {(schema.id, one.id): name for name, (schema, one) in Registry(self._schemas).messages.items()}
        at = batch.schema.get_field_index("sbe_template")
        names = batch.column(at).to_pylist()
        ids_of = batch.select([name for name in ("sbe_schema_id", "sbe_template_id") if name in batch.schema.names])
        for row, ids in zip(bad.tolist(), ids_of.take(pa.array(bad)).to_pylist(), strict=True):
            names[row] = known.get((ids.get("sbe_schema_id", self._schemas[0].id), ids["sbe_template_id"]))
        columns = [*batch.columns[:at], pa.array(names, pa.string()), *batch.columns[at + 1 :]]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def _log_refused(self, values: pa.BinaryArray, rows: np.ndarray, bad: np.ndarray) -> None:
        count, first = int(bad.sum()), int(rows[np.flatnonzero(bad)[0]])
        if self._options.on_error == "null":
            return
        what = f"message {first} of a batch, {self._reason(values[first].as_py())}"
        if self._options.on_error == "fail":
            raise DataLossError(
                f"payload=sbe: {what}; {count} of {len(bad)} cannot be decoded by the schema; "
                f"onSbeError=null keeps them as nulls with value and sbe_error, drop leaves them out"
            )
        LOG.warning(
            "payload=sbe: dropped %d of %d messages, the first: %s", count, len(bad), what,
            extra=facts(dropped=count, messages=len(bad)),
        )  # fmt: skip

    def _reason(self, payload: bytes) -> str:
        """In words: the first error of a payload."""
        union = self._options.decoder(self._schemas, message=None, explode=None, others="error")
        columns = ["sbe_template_id", "sbe_template", "sbe_error"]
        for found in union.decode_parts([payload]):
            for row in found.batch.select(columns).to_pylist():
                if row["sbe_error"] is not None:
                    return f"template {row['sbe_template_id']}: {row['sbe_error']}"
                if self._options.message not in (None, row["sbe_template"]):
                    return f"template {row['sbe_template_id']}: UNKNOWN_TEMPLATE"
        return "of which not all can be decoded"

    def _log_counts(self, found: Rows, count: int) -> None:
        if found.lost:
            text = f"payload=sbe: {found.lost} values of {count} messages do not fit the types of their columns"
            if self._options.on_error == "fail":
                raise DataLossError(f"{text}; choose other types (sbeUint64, sbeDecimals, ...), or onSbeError=null")
            LOG.warning("%s and are null", text, extra=facts(lost_values=found.lost, messages=count))
        if found.short_fields:
            LOG.warning(
                "payload=sbe: %d values of %d messages are null as their block is too short", found.short_fields, count,
                extra=facts(null_values=found.short_fields, messages=count),
            )  # fmt: skip
