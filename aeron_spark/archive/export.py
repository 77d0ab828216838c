"""Exports recordings from a folder to one Parquet, CSV or JSON lines file, batch by batch, without Spark.

The file gets its name when it is complete. Until then, only `.<name>.<random>.part` exists; it is removed after a
failure. Both are writable by their owner and readable by the group, as an archive's files are; symbolic links are not
followed. Memory is bounded by a batch of rows, for Parquet by a row group. Python processes no message individually.
Thread rule: one call, one thread; the source serialises its own calls.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from aeron_spark.archive.ranges import Range
from aeron_spark.archive.segments import READ_COLUMNS, OnDoubt
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.archive.text_values import ENCODERS, json_lines
from aeron_spark.batch import FIELDS, RECORDING_ID, with_column
from aeron_spark.errors import DataLossError, StorageError, UsageError
from aeron_spark.names import check_columns
from aeron_spark.small_files import FILE_MODE, sync_path
from aeron_spark.texts import harmless

__all__ = ["FORMATS", "ExportReport", "Range", "export", "verify_export"]

FORMATS = ("parquet", "csv", "jsonl")
COMPRESSIONS = ("zstd", "snappy", "gzip", "lz4", "brotli", "none")
DEFAULT_ROW_GROUP_ROWS = 1_000_000
# A row group is written when its values reach this many bytes, even with few rows; this bounds the memory.
ROW_GROUP_BYTES = 64 << 20
# When a message was written, by the archive's clock: computed from the time index, for exports only.
TIME = pa.field("time", pa.timestamp("ns", "UTC"), nullable=False)
COLUMNS = (RECORDING_ID.name, *FIELDS, TIME.name)
# Metadata key of the file; its value lists the recordings.
METADATA_KEY = b"aeron_spark.recordings"
# Few distinct values per file: a dictionary reduces the size. For the other columns it costs time without benefit.
_DICTIONARY = ("recording_id", "session_id", "stream_id", "term_id", "flags")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """Result of an export.

    `values_sha256` is the SHA-256 of the concatenated message bytes, in the file's order, independent of their
    encoding; `file_sha256` that of the file. `damage` lists recordings that end early, with `keep_going`. `doubts`
    lists rows that look damaged but may be valid; these were written.
    """

    rows: int
    value_bytes: int
    values_sha256: str
    file_bytes: int
    file_sha256: str
    damage: tuple[str, ...]
    doubts: tuple[str, ...]


# Arguments: the bytes of positions and the rows completed so far.
OnProgress = Callable[[int, int], object]


def export(
    source: RecordingSource,
    ranges: Sequence[Range],
    target: Path | None,
    *,
    file_format: str = "parquet",
    columns: Sequence[str] = READ_COLUMNS,
    value: str = "base64",
    compression: str = "zstd",
    row_group_rows: int = DEFAULT_ROW_GROUP_ROWS,
    overwrite: bool = False,
    keep_going: bool = False,
    on_progress: OnProgress | None = None,
) -> ExportReport:
    """Write the messages of `ranges`, in their order, to `target` (None: standard output).

    `value` is the encoding of message bytes in CSV and JSON lines: base64, hex, utf8. With `keep_going` a damaged
    recording ends where the damage is, and the next follows; otherwise the export raises DataLossError and leaves no
    file. UsageError: incompatible options, or the target exists; StorageError: the target can't be written.
    """
    _check(file_format, columns, value, compression, row_group_rows, target)
    if target is not None and not overwrite and os.path.lexists(target):
        raise UsageError(f"{target} exists: give another name, or --overwrite")
    schema = _schema(source, ranges, columns)
    values = hashlib.sha256()
    rows = value_bytes = done = 0
    damage: list[str] = []
    doubts: list[str] = []
    with _sink(target) as sink:
        with _writer(sink, schema, file_format, value=value, compression=compression, rows=row_group_rows) as writer:
            for part in ranges:
                try:
                    for batch in _batches(source, part, columns, doubts.append):
                        writer.write(batch)
                        rows += batch.num_rows
                        if (data := _value_data(batch)) is not None:
                            value_bytes += len(data)
                            values.update(data)
                        if on_progress is not None:
                            on_progress(done + batch.column("next_position")[-1].as_py() - part.start, rows)
                except DataLossError as failure:
                    if not keep_going:
                        raise
                    damage.append(str(failure))
                done += part.end - part.start
                if on_progress is not None:
                    on_progress(done, rows)
        sink.commit()
    return ExportReport(
        rows=rows,
        value_bytes=value_bytes,
        values_sha256=values.hexdigest() if "value" in columns else "",
        file_bytes=sink.bytes,
        file_sha256=sink.digest.hexdigest(),
        damage=tuple(damage),
        doubts=tuple(doubts),
    )


def verify_export(target: Path, report: ExportReport) -> None:
    """Read the file again; DataLossError where its bytes, or a Parquet file's messages, do not match the report."""
    digest = hashlib.sha256()
    with target.open("rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    if digest.hexdigest() != report.file_sha256:
        raise DataLossError(
            f"{target}: SHA-256 is {digest.hexdigest()}, {report.file_sha256} was written; export it again"
        )
    if target.suffix != ".parquet" or not report.values_sha256:
        return
    values = hashlib.sha256()
    rows = 0
    with pq.ParquetFile(target) as parquet:
        for batch in parquet.iter_batches(batch_size=65_536, columns=["value"]):
            rows += batch.num_rows
            values.update(_value_data(batch) or b"")
    if (rows, values.hexdigest()) != (report.rows, report.values_sha256):
        raise DataLossError(
            f"{target}: its {rows} messages are not the {report.rows} that were exported; export it again"
        )


def _check(  # noqa: PLR0917 - the options of export
    file_format: str, columns: Sequence[str], value: str, compression: str, row_group_rows: int, target: Path | None
) -> None:
    if file_format not in FORMATS:
        raise UsageError(f"format {file_format!r} is none of {', '.join(FORMATS)}")
    check_columns(columns, COLUMNS)
    if value not in ENCODERS:
        raise UsageError(f"value {value!r} is none of {', '.join(ENCODERS)}")
    if compression not in COMPRESSIONS:
        raise UsageError(f"compression {compression!r} is none of {', '.join(COMPRESSIONS)}")
    if row_group_rows < 1:
        raise UsageError(f"a row group has at least one row, not {row_group_rows}")
    if target is None and file_format == "parquet":
        raise UsageError("Parquet goes to a file, not to standard output: its footer locates its parts")


def _schema(source: RecordingSource, ranges: Sequence[Range], columns: Sequence[str]) -> pa.Schema:
    """Fields of the file, and the recordings it holds."""
    recordings = [
        {
            **dataclasses.asdict(source.recording(part.recording_id)),
            "from_position": part.start,
            "to_position": part.end,
        }
        for part in ranges
    ]
    fields = [{**FIELDS, TIME.name: TIME}.get(name, RECORDING_ID) for name in columns]
    return pa.schema(fields, metadata={METADATA_KEY: json.dumps(recordings).encode()})


def _batches(
    source: RecordingSource, part: Range, columns: Sequence[str], on_doubt: OnDoubt
) -> Iterator[pa.RecordBatch]:
    """Batches of the columns and of `next_position`, the progress."""
    wanted = [name for name in columns if name not in {"next_position", TIME.name}] + ["next_position"]
    for batch in source.read(
        part.recording_id, part.start, part.end, limit=part.limit, columns=wanted, on_doubt=on_doubt
    ):
        if TIME.name in columns:
            last_bytes = pc.subtract(batch.column("next_position"), 1)
            yield with_column(batch, TIME, source.times_at(part.recording_id, last_bytes))
        else:
            yield batch


def _value_data(batch: pa.RecordBatch) -> memoryview | None:
    """The concatenated bytes of a batch's values."""
    if "value" not in batch.schema.names:
        return None
    column = batch.column("value")
    offsets, data = column.buffers()[1:]
    if len(column) == 0 or data is None:
        return memoryview(b"")
    ends = memoryview(offsets).cast("i")
    return memoryview(data)[ends[column.offset] : ends[column.offset + len(column)]]


# -- output file -----------------------------------------------------------------------------------------------------------


class _Sink(io.RawIOBase):
    """A file that is written once, sequentially, hashed during the write, and renamed at the end."""

    def __init__(self, file: BinaryIO, target: Path | None, part: Path | None = None) -> None:
        super().__init__()
        self._file = file
        self._target = target
        self._part = part
        self.digest = hashlib.sha256()
        self.bytes = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._file.write(data)
        self.digest.update(data)
        count = memoryview(data).nbytes
        self.bytes += count
        return count

    def commit(self) -> None:
        """Make the file durable, rename it to its final name, and make that durable."""
        self._file.flush()
        if self._target is not None and self._part is not None:
            os.fsync(self._file.fileno())
            self._part.replace(self._target)
            sync_path(self._target.parent)


@contextlib.contextmanager
def _sink(target: Path | None) -> Iterator[_Sink]:
    if target is None:
        yield _Sink(harmless(sys.stdout.buffer), None)
        return
    # Others with write access to the folder could create a file under a predictable name, so the name is random.
    part = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
        try:
            with open(handle, "wb") as file:  # noqa: PTH123 - a descriptor
                yield _Sink(file, target, part)
        finally:
            part.unlink(missing_ok=True)
    except OSError as failure:
        raise StorageError(
            f"cannot write {target}: {failure.strerror or failure}", code=failure.errno or 0
        ) from failure


class _Writer(Protocol):
    def write(self, batch: pa.RecordBatch) -> None: ...


class _Parquet:
    """Collects batches into row groups."""

    def __init__(self, sink: _Sink, schema: pa.Schema, *, compression: str, rows: int) -> None:
        self._schema = schema
        self._rows = rows
        self._held: list[pa.RecordBatch] = []
        self._writer = pq.ParquetWriter(
            pa.PythonFile(sink, "w"),
            schema,
            compression=compression.upper(),
            use_dictionary=[name for name in _DICTIONARY if name in schema.names],
            write_statistics=[name for name in schema.names if name != "value"],
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        if kind is None:
            self._flush()
        self._writer.close()

    def write(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch.select(self._schema.names))
        held_rows = sum(held.num_rows for held in self._held)
        if held_rows >= self._rows or sum(held.nbytes for held in self._held) >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._held:
            table = pa.Table.from_batches(self._held).cast(self._schema)
            self._writer.write_table(table, row_group_size=self._rows)
            self._held.clear()


class _Csv:
    def __init__(self, sink: _Sink, schema: pa.Schema, *, value: str) -> None:
        self._names = schema.names
        self._encode = ENCODERS[value]
        fields = [pa.field(field.name, pa.large_string() if field.name == "value" else field.type) for field in schema]
        self._schema = pa.schema(fields)
        self._writer = pyarrow.csv.CSVWriter(pa.PythonFile(sink, "w"), self._schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        self._writer.close()

    def write(self, batch: pa.RecordBatch) -> None:
        arrays = [self._encode(batch) if name == "value" else batch.column(name) for name in self._names]
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))


class _JsonLines:
    def __init__(self, sink: _Sink, schema: pa.Schema, *, value: str) -> None:
        self._sink = sink
        self._names = schema.names
        self._value = value

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        return None

    def write(self, batch: pa.RecordBatch) -> None:
        self._sink.write(json_lines(batch, self._names, value=self._value))


def _writer(
    sink: _Sink, schema: pa.Schema, file_format: str, *, value: str, compression: str, rows: int
) -> contextlib.AbstractContextManager[_Writer]:
    if file_format == "parquet":
        return _Parquet(sink, schema, compression=compression, rows=rows)
    return _Csv(sink, schema, value=value) if file_format == "csv" else _JsonLines(sink, schema, value=value)
