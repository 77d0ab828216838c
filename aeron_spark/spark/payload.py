"""What a message's bytes become besides a binary column: text, the rows of an Arrow stream, or the fields of an SBE message.

A payload gives columns of its own; each says which message every row is of, so that the columns of the message repeat with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import pyarrow as pa

from aeron_spark.errors import DataLossError, UsageError
from aeron_spark.sbe import Schema
from aeron_spark.spark.arrow_types import spark_type
from aeron_spark.spark.loss import LOG
from aeron_spark.spark.sbe_values import ADDED, fields_of, template_ids

__all__ = ["ArrowPayload", "Payload", "SbePayload"]

TEMPLATE_ID = pa.field("template_id", pa.int32())
TEMPLATE = pa.field("template", pa.string())
ERROR = pa.field("sbe_error", pa.string())


class Payload(Protocol):
    """Columns out of messages."""

    schema: pa.Schema

    def rows(self, values: pa.BinaryArray, wanted: set[str]) -> tuple[pa.RecordBatch, np.ndarray]:
        """Columns, at least the wanted ones, and of each row the index of its message."""
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

    def rows(self, values: pa.BinaryArray, wanted: set[str]) -> tuple[pa.RecordBatch, np.ndarray]:
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
        return batch, np.repeat(np.arange(len(values)), counts)

    @staticmethod
    def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
        """Only times may lose digits."""
        try:
            return column.cast(spark_type(column.type), safe=False).cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise UsageError(
                f"payload=arrow: column {field.name} is {column.type} in a message and {field.type} in the schema: {error}"
            ) from None


class SbePayload:
    """Each message is one SBE message: the fields of one template, or a struct per template.

    ``on_error``: what cannot be decoded, or has a template that the schema does not know, fails the task, is a row whose
    columns are null and whose ``sbe_error`` says why, or is dropped and counted in the log. Messages of other templates than
    the one chosen are not read.
    """

    def __init__(self, schema: Schema, message: str | None, on_error: str) -> None:
        self._schema = schema
        self._message = message
        self._on_error = on_error
        self._decoders: dict[str, Callable[[pa.Array], pa.RecordBatch]] = {}
        self._templates = {one.id: one.name for one in schema.messages.values()}
        if message is not None and message not in self._templates.values():
            raise UsageError(
                f"option sbeMessage={message!r}: there is no such message in the schema; it has "
                f"{', '.join(self._templates.values())}"
            )
        if message is None:
            structs = [pa.field(name, pa.struct(list(self._fields(name)))) for name in self._templates.values()]
            self.schema = pa.schema([TEMPLATE_ID, TEMPLATE, *structs, ERROR])
        else:
            self.schema = pa.schema([*self._fields(message), ERROR])

    def __getstate__(self) -> dict[str, object]:
        """Plans of a decoder are of this process; a task makes its own."""
        return {key: value for key, value in self.__dict__.items() if key != "_decoders"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._decoders = {}

    def _decode(self, values: pa.Array, name: str) -> pa.RecordBatch:
        if name not in self._decoders:
            self._decoders[name] = fields_of(self._schema, name)
        return self._decoders[name](values)

    def _fields(self, name: str) -> list[pa.Field]:
        empty = self._decode(pa.array([], pa.binary()), name)
        return [pa.field(field.name, spark_type(field.type)) for field in empty.schema if field.name not in ADDED]

    def rows(self, values: pa.BinaryArray, wanted: set[str]) -> tuple[pa.RecordBatch, np.ndarray]:
        """A row for each message, without those of other templates and those that are dropped."""
        ids = template_ids(self._schema, values)
        numbers = ids.fill_null(-1).to_numpy()
        errors = np.full(len(values), None, object)
        errors[~np.isin(numbers, list(self._templates))] = "UNKNOWN_TEMPLATE"
        errors[numbers < 0] = "SHORT_HEADER"
        chosen = {key: name for key, name in self._templates.items() if self._message in (None, name)}
        parts = {name: self._of_template(values, numbers == key, name, errors) for key, name in chosen.items()}
        keep = np.isin(numbers, list(chosen)) | (errors != None)  # noqa: E711 - elementwise
        self._tell(errors, numbers)
        if self._on_error == "drop":
            keep &= errors == None  # noqa: E711
        columns = {TEMPLATE_ID.name: ids, ERROR.name: pa.array(errors, pa.string())}
        if self._message is None:
            columns[TEMPLATE.name] = pa.array([self._templates.get(number) for number in numbers.tolist()], pa.string())
            columns |= {
                name: _spread(
                    pa.StructArray.from_arrays(part.columns, fields=list(part.schema)), where, ok, len(values)
                )
                for name, (part, where, ok) in parts.items()
                if name in wanted
            }
        else:
            part, where, ok = parts[self._message]
            columns |= {
                field.name: _spread(part.column(field.name), where, ok, len(values))
                for field in part.schema
                if field.name in wanted
            }
        schema = pa.schema([field for field in self.schema if field.name in columns])
        batch = pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
        rows = np.flatnonzero(keep)
        return (batch if len(rows) == len(values) else batch.take(pa.array(rows))), rows

    def _of_template(
        self, values: pa.BinaryArray, mask: np.ndarray, name: str, errors: np.ndarray
    ) -> tuple[pa.RecordBatch, np.ndarray, np.ndarray]:
        """The template's messages, where they stand among all, and which could be decoded."""
        where = np.flatnonzero(mask)
        found = self._decode(values if len(where) == len(values) else values.take(pa.array(where)), name)
        why = found.column(ERROR.name).cast(pa.string())
        errors[where] = why.to_numpy(zero_copy_only=False)
        names = [field.name for field in found.schema if field.name not in ADDED]
        columns = [found.column(one).cast(spark_type(found.column(one).type), safe=False) for one in names]
        return pa.RecordBatch.from_arrays(columns, names=names), where, np.asarray(why.is_null())

    def _tell(self, errors: np.ndarray, numbers: np.ndarray) -> None:
        bad = np.flatnonzero(errors != None)  # noqa: E711 - elementwise
        if not len(bad):
            return
        first = f"message {bad[0]} of a batch, template {numbers[bad[0]]}: {errors[bad[0]]}"
        if self._on_error == "fail":
            raise DataLossError(
                f"payload=sbe: {first}; {len(bad)} of {len(errors)} cannot be decoded by the schema; "
                f"onSbeError=null keeps them as nulls with value and sbe_error, drop leaves them out"
            )
        if self._on_error == "drop":
            LOG.warning("payload=sbe: dropped %d of %d messages, the first: %s", len(bad), len(errors), first)


def _spread(array: pa.Array, where: np.ndarray, ok: np.ndarray, count: int) -> pa.Array:
    """The array's items at their rows of ``count``, null elsewhere and where they are not ok."""
    if len(where) == count and ok.all():
        return array
    found = np.full(count, -1, np.int64)
    found[where[ok]] = np.flatnonzero(ok)
    return array.take(pa.array(found, mask=found < 0))
