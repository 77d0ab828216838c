"""Builds the rows of a query from the columns that C fills: only columns of its schema are built and sent.

Made when a read is planned, pickled into its tasks.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from aeron_spark.archive.search import reserved_times
from aeron_spark.archive.segments import Recording
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.errors import DataLossError, UsageError
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.planning.sbe_times import times_of
from aeron_spark.spark.planning.selection import open_folder, select_recordings
from aeron_spark.spark.reading import schema as columns

if TYPE_CHECKING:
    from aeron_spark.spark.reading.payload import Payload

__all__ = ["Interval", "Rows", "read_schema"]

_MAX_INT64 = (1 << 63) - 1
_MICROSECONDS = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class Interval:
    """Which values of a column a query asks for; bounds included, None is no bound, ``members`` None is any."""

    low: int | None = None
    high: int | None = None
    members: frozenset[int] | None = None

    def __contains__(self, value: int) -> bool:
        return (
            (self.low is None or value >= self.low)
            and (self.high is None or value <= self.high)
            and (self.members is None or value in self.members)
        )

    def both(self, other: Interval) -> Interval:
        """What is in both."""
        members = other.members if self.members is None else self.members
        if self.members is not None and other.members is not None:
            members = self.members & other.members
        lows = [low for low in (self.low, other.low) if low is not None]
        highs = [high for high in (self.high, other.high) if high is not None]
        return Interval(max(lows, default=None), min(highs, default=None), members)

    @property
    def bounds(self) -> tuple[int | None, int | None]:
        """Least and largest value that can be in it."""
        if self.members is None:
            return self.low, self.high
        inside = [value for value in self.members if value in self]
        return (min(inside), max(inside)) if inside else (1, 0)

    def mask(self, column: pa.Array) -> pa.Array:
        """Rows whose value is in it; times count in microseconds."""
        if (self.low is not None and self.low > _MAX_INT64) or (self.high is not None and self.high < -_MAX_INT64 - 1):
            return pa.repeat(pa.scalar(value=False), len(column))
        import pyarrow.compute as pc

        numbers = column.cast(pa.int64())
        found = pc.is_valid(numbers)
        if self.low is not None:
            found = pc.and_(found, pc.greater_equal(numbers, self.low))
        if self.high is not None:
            found = pc.and_(found, pc.less_equal(numbers, self.high))
        if self.members is not None:
            found = pc.and_(found, pc.is_in(numbers, value_set=pa.array(sorted(self.members), pa.int64())))
        return found.fill_null(False)  # noqa: FBT003 - pyarrow takes it so


def _payload(options: ReadOptions, schema: StructType | None) -> Payload | None:
    if options.payload not in ("sbe", "arrow"):
        return None
    from aeron_spark.spark.reading.payload import ArrowPayload, SbePayload

    if options.payload == "sbe" and options.sbe is not None:
        return SbePayload(options.sbe)
    if options.payload == "arrow":
        if schema is None:
            return ArrowPayload(_first_stream_schema(options))
        ours = columns.message_fields("binary")
        given = columns.arrow_schema(StructType([field for field in schema.fields if field.name not in ours]))
        return ArrowPayload(pa.schema([pa.field(field.name, field.type) for field in given]))
    return None


def _first_stream_schema(options: ReadOptions) -> pa.Schema:
    """Of the first message there is."""
    with open_folder(options) as folder:
        for recording in select_recordings(folder, options, allow_none=False):
            for batch in folder.read(recording.recording_id, columns=("value",), row_capacity=1):
                from aeron_spark.spark.reading.payload import ArrowPayload

                return ArrowPayload.stream_schema(batch.column(0)[0].as_py())
    raise UsageError(f"payload=arrow: {options.path} holds no message yet to take the columns from")


def _available(options: ReadOptions, payload: Payload | None) -> dict[str, pa.Field]:
    """Every column there is: of the message, and of its payload. A field of SBE hides one of ours, one of Arrow is hidden."""
    known = columns.message_fields("string" if options.payload == "string" else "binary")
    of_payload = {} if payload is None else {field.name: field for field in payload.schema}
    return of_payload | known if options.payload == "arrow" else known | of_payload


def read_schema(options: ReadOptions) -> StructType:
    """Schema of a read for which the user gave none."""
    payload = _payload(options, None)
    known = _available(options, payload)
    names = options.columns
    if names is None:
        names = columns.DEFAULT_COLUMNS
        if payload is not None:
            is_arrow = options.payload == "arrow"
            hidden = set(columns.message_fields("binary")) if is_arrow else {"sbe_error", "sbe_error_at", "sbe_raw"}
            kept = [name for name in names if name != "value" and (is_arrow or name not in payload.schema.names)]
            names = (*kept, *(name for name in payload.schema.names if name not in hidden))
            if options.payload == "sbe" and options.sbe is not None and options.sbe.on_error == "null":
                # A payload of several messages would be there once for each of them.
                is_framed = options.sbe.framing != "none"
                names = (*names, *(("sbe_error", "sbe_error_at", "sbe_raw") if is_framed else ("value", "sbe_error")))
    for name in names:
        if name not in known:
            raise UsageError(f"option columns: column {name!r} does not exist, choose among {', '.join(known)}")
    return columns.spark_schema(known[name] for name in names)


class Rows:
    """Makes the batches of a schema."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._payload = _payload(options, schema)
        columns.check_schema(schema, _available(options, self._payload))
        if options.columns is not None and list(options.columns) != schema.names:
            raise UsageError(f"option columns={','.join(options.columns)} is not the schema's {','.join(schema.names)}")
        self.target = columns.arrow_schema(schema)
        self._times_of = times_of(options)
        self._names = set(schema.names)
        self._of_payload = {name for name in self._names if not self.is_of_message(name)}
        self._has_times = bool({"timestamp", "timestamp_ns"} & (self._names - self._of_payload))
        needed = [name for name in schema.names if name in columns.NATIVE and name not in self._of_payload]
        if self._payload is not None:
            needed.append("value")
        if self._has_times:
            needed.append({"index": "next_position", "reserved": "reserved_value"}.get(self._source, "value"))
        # A query of constant columns only still needs one column to count rows by.
        self.native_columns: tuple[str, ...] = tuple(dict.fromkeys(needed)) or ("position",)
        self._is_native = tuple(schema.names) == self.native_columns

    def for_jvm(self) -> dict[str, object] | str | None:
        """How the JVM makes columns of payloads, or what it cannot do; None if they are columns as they are."""
        return None if self._payload is None else self._payload.for_jvm()

    @property
    def _source(self) -> str:
        return self._options.timestamp_from.kind

    def is_of_message(self, name: str) -> bool:
        """The column is one of the message, not hidden by one of its payload."""
        is_hidden = self._options.payload == "arrow" and name in columns.message_fields("binary")
        return self._payload is None or is_hidden or name not in self._payload.schema.names

    def make(
        self, folder: RecordingSource, recording: Recording, batch: pa.RecordBatch, pushed: Mapping[str, Interval]
    ) -> Iterator[pa.RecordBatch]:
        """Rows of a batch of messages: one batch of them as a rule, none if there is no row."""
        is_as_wanted = self._is_native and self._options.payload != "string"
        for made in [batch] if is_as_wanted else self._build(folder, recording, batch):
            found = self._narrowed(made, pushed)
            if found.num_rows:
                yield found

    def _narrowed(self, batch: pa.RecordBatch, pushed: Mapping[str, Interval]) -> pa.RecordBatch:
        """The rows within the intervals, with the types of the schema."""
        for name, interval in pushed.items():
            if name in batch.schema.names:
                batch = batch.filter(interval.mask(batch.column(name)))
        if batch.num_rows == 0 or batch.schema.equals(self.target):
            return batch
        arrays = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(batch.columns, self.target, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.target)

    def _build(self, folder: RecordingSource, recording: Recording, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        values = batch.column("value") if "value" in batch.schema.names else None
        made: dict[str, pa.Array] = {
            name: batch.column(name) for name in batch.schema.names if name in self._names - self._of_payload
        }
        texts = {"channel": recording.original_channel, "source_identity": recording.source_identity}
        for name in texts.keys() & (self._names - self._of_payload):
            made[name] = pa.repeat(pa.scalar(texts[name]), batch.num_rows)
        if self._has_times:
            times = self._times(folder, recording, batch)
            for name in {"timestamp", "timestamp_ns"} & (self._names - self._of_payload):
                made[name] = times if name == "timestamp_ns" else _microseconds(times)
        if self._options.payload == "string" and "value" in made:
            made["value"] = self._texts(recording, batch)
        names = self.target.names
        if self._payload is None or values is None:
            yield pa.RecordBatch.from_arrays([made[name] for name in names], names=names)
            return
        for rows, source in self._payload.rows(values, self._of_payload):
            of_rows = made
            if len(source) != batch.num_rows or not np.array_equal(source, np.arange(batch.num_rows)):
                of_rows = {name: column.take(pa.array(source)) for name, column in made.items()}
            whole = of_rows | {name: rows.column(name) for name in self._of_payload}
            yield pa.RecordBatch.from_arrays([whole[name] for name in names], names=names)

    def _times(self, folder: RecordingSource, recording: Recording, batch: pa.RecordBatch) -> pa.Array:
        """Nanoseconds since 1970-01-01 UTC, null where they are not known."""
        if self._source == "index":
            import pyarrow.compute as pc

            ends = pc.subtract(batch.column("next_position"), 1)
            return folder.index_times_at(recording.recording_id, ends).cast(pa.int64())
        if self._source == "sbe":
            assert self._times_of is not None  # noqa: S101 - options have been checked
            return self._times_of(batch.column("value"))
        return reserved_times(batch.column("reserved_value"), self._options.timestamp_from.unit)

    def _texts(self, recording: Recording, batch: pa.RecordBatch) -> pa.Array:
        values = batch.column("value")
        try:
            return values.cast(pa.string())
        except pa.ArrowInvalid:
            for row, value in enumerate(values):
                try:
                    value.as_py().decode("utf-8")
                except UnicodeDecodeError as error:
                    where = f"message {row} of a batch"
                    if "position" in batch.schema.names:
                        where = f"the message at position {batch.column('position')[row]}"
                    raise DataLossError(
                        f"payload=string: {where} of recording {recording.recording_id} is no UTF-8 ({error}); read it with "
                        f"payload=binary"
                    ) from None
            raise


def _microseconds(times: pa.Array) -> pa.Array:
    """Rounded down, also before 1970."""
    numbers = times.fill_null(0).to_numpy()
    return pa.array(np.floor_divide(numbers, 1000), pa.int64(), mask=~np.asarray(times.is_valid())).cast(_MICROSECONDS)


#: Intervals of Spark's filters, by name: bounds from a number.
_FILTERS = {
    "EqualTo": lambda value: Interval(members=frozenset([value])),
    "EqualNullSafe": lambda value: Interval(members=frozenset([value])),
    "GreaterThan": lambda value: Interval(low=value + 1),
    "GreaterThanOrEqual": lambda value: Interval(low=value),
    "LessThan": lambda value: Interval(high=value - 1),
    "LessThanOrEqual": lambda value: Interval(high=value),
}

#: Columns by which reading can be narrowed.
FILTERED = ("recording_id", "session_id", "stream_id", "position", "timestamp", "timestamp_ns", "template_id")


def intervals(filters: Iterable[object]) -> dict[str, Interval]:
    """Intervals that filters joined by AND imply for the columns that can narrow a read. Other filters are ignored."""
    found: dict[str, Interval] = {}
    for one in filters:
        kind = type(one).__name__
        attribute: tuple[str, ...] = getattr(one, "attribute", ())
        if len(attribute) != 1 or attribute[0] not in FILTERED:
            continue
        value = getattr(one, "value", None)
        if kind == "In":
            numbers = [_number(item) for item in cast("Iterable[object]", value) if item is not None]
            interval = None if None in numbers else Interval(members=frozenset(cast("list[int]", numbers)))
        else:
            number = _number(value)
            interval = _FILTERS[kind](number) if kind in _FILTERS and number is not None else None
        if interval is not None:
            found[attribute[0]] = found.get(attribute[0], Interval()).both(interval)
    return found


def _number(value: object) -> int | None:
    """Whole number of a literal: itself, or microseconds of a time."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        delta = value - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        return (delta.days * 86_400 + delta.seconds) * 10**6 + delta.microseconds
    return value if isinstance(value, int) and not isinstance(value, bool) else None
