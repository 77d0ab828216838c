"""What `cat` and `grep` share: which messages, and how they are printed."""

from __future__ import annotations

import argparse
import base64
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from aeron_spark.archive.text_values import ENCODERS, hex_text, time_texts, with_float_texts, with_time_texts
from aeron_spark.batch import FIELDS, RECORDING_ID
from aeron_spark.cli.archive_export import time_ns
from aeron_spark.cli.common import add_dir, at_least, int32, recording_ids, seconds
from aeron_spark.client import Client
from aeron_spark.errors import UsageError
from aeron_spark.tables import Scan, scan
from aeron_spark.texts import escaped_bytes, harmless

FORMATS = ("text", "hex", "json", "sbe", "csv", "arrow")
#: Formats that print a line a message, which may begin with where it is.
_LINES = ("text", "hex", "sbe")
#: Control characters that JSON need not escape, and json.dumps does not.
_JSON_CONTROL = re.compile("[\x7f-\x9f]")
_PURPLE, _GREEN, _RED, _PLAIN = b"\x1b[35m", b"\x1b[32m", b"\x1b[1;31m", b"\x1b[0m"


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """Which messages, and how they are printed."""
    part = verb.add_argument_group("which messages")
    part.add_argument("--channel", metavar="URI", help="a live channel instead of SOURCE; with --stream")
    part.add_argument("--stream", metavar="ID", type=int32, help="stream id of --channel")
    part.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=10.0, help="wait for a publisher this long (default 10)"
    )
    part.add_argument("--from", dest="start", metavar="POSITION", type=at_least(0), help="that begin here or later")
    part.add_argument("--to", dest="end", metavar="POSITION", type=at_least(0), help="that begin before it")
    for name, what in (("from-time", "of this time or later"), ("to-time", "before it")):
        part.add_argument(
            f"--{name}",
            metavar="TIME",
            type=time_ns,
            help=f"{what}: 2026-11-20T09:00 (local, or with zone), or ns since 1970",
        )
    part.add_argument(
        "--timestamp",
        metavar="OF",
        default="index",
        help="what a message's time is: index (of the archive's folder, the default), reserved(ns), sbe:FIELD",
    )
    part.add_argument(
        "--last", metavar="N", type=at_least(0), help="no more than the last N of each recording before --to"
    )
    part.add_argument(
        "--where",
        metavar="EXPRESSION",
        help="by columns and SBE fields: \"price >= 10.5 and symbol = 'ABC'\"; times in UTC, or with zone",
    )
    part.add_argument("-m", "--max", metavar="N", type=at_least(0), help="end after N messages")
    part.add_argument(
        "-f", "--follow", action="store_true", help="go on with what comes later, until Ctrl-C or its end"
    )
    part = verb.add_argument_group("SBE")
    part.add_argument("--sbe", metavar="X.xml", help="schema of the messages")
    part.add_argument("--message", metavar="NAME", help="only messages of this name")
    part.add_argument(
        "--framing", metavar="NAME", default="none", help="how messages lie in a payload, as of sbe decode"
    )
    part.add_argument(
        "--on-error",
        choices=("fail", "null", "drop"),
        default="fail",
        help="a message that cannot be decoded: fail (default), print sbe_error, or leave it out",
    )
    part = verb.add_argument_group("output")
    part.add_argument(
        "--format",
        choices=FORMATS,
        help="text: the bytes and a line end; hex: digits, for sbe decode --hex; json: an object a line; sbe: its fields; csv; "
        "arrow: an IPC stream (default: text, with --sbe sbe)",
    )
    part.add_argument("--json", dest="format", action="store_const", const="json", help="the same as --format json")
    part.add_argument("--columns", metavar="NAMES", help="of json, csv and arrow: position,timestamp,value,...")
    part.add_argument(
        "--value", choices=tuple(ENCODERS), default="base64", help="messages' bytes in csv (default base64)"
    )
    part.add_argument("-n", "--position", action="store_true", help="begin lines with recording:position:")
    part.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="colours (default: on a terminal)"
    )
    add_dir(verb)


def chosen(options: argparse.Namespace, words: Sequence[str], held: ExitStack) -> Scan:
    """The messages, as a scan of the columns that the format takes; what was opened for it is in `held`."""
    options.format = options.format or ("text" if options.sbe is None else "sbe")
    _check(options, words)
    live = options.channel is not None
    choice: dict[str, Any] = {"timestamp": options.timestamp, "follow": options.follow, "filter": options.where}
    if options.sbe is not None:
        sbe_options = {"on_error": options.on_error, "framing": options.framing}
        choice |= {"sbe": options.sbe, "message": options.message, "sbe_options": sbe_options}
    elif options.message is not None or options.format == "sbe":
        raise UsageError("--message and --format sbe need the schema: --sbe X.xml")
    if live:
        client = held.enter_context(Client(options.dir, name="aeron-spark cat"))
        source: Any = held.enter_context(client.add_subscription(options.channel, options.stream))
        if not options.follow:
            source.wait_image(options.timeout).close()
    else:
        source = words[0]
        choice |= {
            "recordings": recording_ids(words[1:]) or None,
            "start": options.start,
            "end": options.end,
            "last": options.last,
            "aeron_dir": options.dir,
        }
    table = scan(source, **choice)
    for when, compare in ((options.from_time, pc.greater_equal), (options.to_time, pc.less)):
        if when is not None:
            table = table.filter(compare(pc.field(table.own("timestamp")), pa.scalar(when, pa.timestamp("ns", "UTC"))))
    return table.select(_columns(options, table, live=live))


def _check(options: argparse.Namespace, words: Sequence[str]) -> None:
    if (options.channel is None) != (options.stream is None) or (options.channel is None) != bool(words):
        raise UsageError(
            "name a SOURCE (folder, store, or control channel), or --channel and --stream of a live stream"
        )
    if options.format in _LINES and options.columns is not None:
        raise UsageError(f"--columns is for json, csv and arrow, not for {options.format}: choose one by --format")
    if options.channel is not None and {options.start, options.end, options.last} != {None}:
        raise UsageError("--from, --to and --last are of recordings, and --channel is a live stream: leave them out")
    if options.format == "arrow" and sys.stdout.isatty():
        raise UsageError("an Arrow stream is no text for a terminal: send it to a file or a program")


def _columns(options: argparse.Namespace, table: Scan, *, live: bool) -> list[str]:
    if options.columns is not None:
        return [name.strip() for name in options.columns.split(",")]
    if options.format not in _LINES:
        return list(table.schema.names)
    where = [table.own("session_id" if live else "recording_id"), table.own("position")]
    if options.format != "sbe":
        return [*where, table.own("value")]
    left_out = {table.own(name) for name in (RECORDING_ID.name, *FIELDS, "timestamp")}
    if options.message is None:
        left_out.add("sbe_template_id")
    return [*where, *(name for name in table.schema.names if name not in left_out)]


class Printer:
    """Prints batches to a file of bytes, by the options; `pattern` is what is coloured in text."""

    def __init__(
        self, options: argparse.Namespace, schema: pa.Schema, out: BinaryIO, pattern: re.Pattern[bytes] | None
    ) -> None:
        self._options = options
        self._schema = schema
        self._out = out
        is_terminal = out.isatty()
        self._has_colours = options.color == "always" or (options.color == "auto" and is_terminal)
        self._is_terminal = is_terminal
        self._pattern = pattern if self._has_colours else None
        self._print: Callable[[pa.RecordBatch], object] = getattr(self, f"_{options.format}", self._lines)
        self._writer: Any = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Print it, and let it be seen."""
        self._print(batch)
        self._out.flush()

    def close(self) -> None:
        """Write what ends a file of the format, also where there was nothing."""
        if self._options.format in {"csv", "arrow"}:
            self._print(pa.RecordBatch.from_pylist([], schema=self._schema))
            self._writer.close()
            self._out.flush()

    def _lines(self, batch: pa.RecordBatch) -> None:
        bodies = self._sbe_lines(batch) if self._options.format == "sbe" else self._value_lines(batch)
        if not (self._options.position or self._options.format == "sbe"):
            self._out.writelines(b"%b\n" % body for body in bodies)
            return
        first, position = (column.to_pylist() for column in batch.columns[:2])
        form = b"%d:%d:%b\n"
        if self._has_colours:
            form = _PURPLE + b"%d" + _PLAIN + b":" + _GREEN + b"%d" + _PLAIN + b":%b\n"
        self._out.writelines(form % line for line in zip(first, position, bodies, strict=True))

    def _value_lines(self, batch: pa.RecordBatch) -> Iterator[bytes]:
        values = batch.column(2)
        if self._options.format == "hex":
            yield from (text.as_py().encode() for text in hex_text(values))
            return
        for value in values.to_pylist():
            # A recording must not command the terminal.
            shown = escaped_bytes(value) if self._is_terminal else value
            yield shown if self._pattern is None else self._pattern.sub(_RED + rb"\g<0>" + _PLAIN, shown)

    def _sbe_lines(self, batch: pa.RecordBatch) -> Iterator[bytes]:
        template = self._options.message is None
        for row in with_time_texts(batch.select(batch.schema.names[2:])).to_pylist():
            name = row.pop("sbe_template", None) if template else self._options.message
            fields = row.pop(name, None) or {} if template and name in row else row
            known = {
                **fields,
                **{key: value for key, value in row.items() if key.startswith("sbe_") and value is not None},
            }
            text = " ".join(f"{key}={_plain(value)}" for key, value in known.items())
            line = f"{name or '?'} {text}".encode("utf-8", "backslashreplace")
            yield escaped_bytes(line)

    def _json(self, batch: pa.RecordBatch) -> None:
        for row in with_time_texts(batch).to_pylist():
            self._out.write(_JSON_CONTROL.sub(_code, _json_text(_json_row(row))).encode("utf-8", "replace") + b"\n")

    def _csv(self, batch: pa.RecordBatch) -> None:
        columns, fields = [], []
        for field, column in zip(batch.schema, batch.columns, strict=True):
            if pa.types.is_nested(field.type):
                raise UsageError(
                    f"column {field.name} is {field.type}, which has no form in CSV: choose --message, or json"
                )
            made = column.cast(field.type.value_type) if pa.types.is_dictionary(field.type) else time_texts(column)
            if pa.types.is_binary(field.type) or pa.types.is_fixed_size_binary(field.type):
                # The encoders know no nulls.
                values = pa.record_batch([column.cast(pa.binary()).fill_null(b"")], ["value"])
                made = pc.if_else(column.is_valid(), ENCODERS[self._options.value](values), None)
            columns.append(made)
            fields.append(pa.field(field.name, made.type))
        if self._writer is None:
            self._writer = pyarrow.csv.CSVWriter(harmless(self._out), pa.schema(fields))
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)))

    def _arrow(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._out, self._schema)
        self._writer.write_batch(batch)


def _json_row(row: dict[str, Any]) -> dict[str, Any]:
    """The message's bytes as text where they are UTF-8."""
    value = row.get("value")
    if isinstance(value, bytes):
        try:
            row["value"] = value.decode()
        except UnicodeDecodeError:
            del row["value"]
            row["value_base64"] = base64.b64encode(value).decode()
    return row


def _code(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _json_text(value: Any, separators: tuple[str, str] | None = None) -> str:
    form: dict[str, Any] = {"default": _plain, "ensure_ascii": False, "separators": separators, "allow_nan": False}
    try:
        return json.dumps(value, **form)
    except ValueError:  # a NaN or an infinity; looking for them in each row would cost more than the rows
        return json.dumps(with_float_texts(value), **form)


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict | list):
        return _json_text(value, (",", ":"))
    return "" if value is None else str(with_float_texts(value))


def print_all(options: argparse.Namespace, table: Scan, *, pattern: re.Pattern[bytes] | None = None) -> int:
    """Print the messages of a scan, no more than --max; returns how many. Ctrl-C ends it, as the end does."""
    printer = Printer(options, table.schema, sys.stdout.buffer, pattern)
    count = 0
    try:
        with table.batches() as batches:
            for batch in batches:
                part = batch if options.max is None else batch.slice(0, options.max - count)
                printer.write(part)
                count += part.num_rows
                if options.max is not None and count >= options.max:
                    break
    except KeyboardInterrupt:
        pass
    printer.close()
    return count
