"""Messages of a recording for the page: a list from a position or time on, and one of them as bytes, SBE tree and row."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from aeron_spark.archive.search import tail_position
from aeron_spark.archive.segments import Extent, Folder
from aeron_spark.archive.text_values import time_texts, with_float_texts, with_time_texts
from aeron_spark.archive.time_text import parse_time_ns
from aeron_spark.errors import AeronError, UsageError
from aeron_spark.sbe import DecodeError, Schema, decode, parse
from aeron_spark.tables import scan
from aeron_spark.ui.answers import whole

__all__ = ["MAX_SCHEMA_BYTES", "Chosen", "listed", "shown"]

MAX_LISTED = 50
MAX_SCHEMA_BYTES = 1 << 20
MAX_HEX_BYTES = 16 << 10
MAX_NODES = 2000
#: Longer messages are shown as bytes alone, as a hostile one has as many values as bytes.
MAX_SBE_BYTES = 64 << 10
MAX_TEXT = 500
_PREVIEW_BYTES = 24
_MAX_ENTRIES = 100
_MAX_EMPTY = 10_000
_MAX_DOUBTS = 5
_COLUMNS = ("position", "next_position", "value")
_HEX_WIDTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A schema that the user dropped in, and how messages lie in a payload."""

    schema: str = ""
    framing: str = "none"
    skip: int = 0


def listed(folder_path: str, recording_id: int, query: Mapping[str, str]) -> dict[str, Any]:
    """Messages from `position` on, from a `time` on, the `last` ones, or those `before` a position.

    What is damaged ends the list with an error. AeronError: the recording can't be read; UsageError: a wrong question.
    """
    with Folder(folder_path) as folder:
        extent = folder.extent(recording_id)
        start, limit = _start(folder, recording_id, extent, query)
        rows: list[dict[str, Any]] = []
        doubts: list[str] = []
        error = ""
        try:
            rows = _rows(folder, recording_id, (start, limit, extent.limit_position), doubts)
        except AeronError as failure:
            error = str(failure)
        return {
            "recording_id": str(recording_id),
            "start_position": str(extent.start_position),
            "limit_position": str(extent.limit_position),
            "from": str(start),
            "rows": rows,
            "next": rows[-1]["next"] if rows else str(start),
            "doubts": doubts[:_MAX_DOUBTS],
            "error": error,
        }


def _start(folder: Folder, recording_id: int, extent: Extent, query: Mapping[str, str]) -> tuple[int, int]:
    """Where the list begins, and what it ends before."""
    begin, limit = extent.start_position, extent.limit_position
    if "time" in query:
        return folder.position_at(recording_id, parse_time_ns("time", query["time"][:MAX_TEXT])).position, limit
    if "last" in query:
        return tail_position(folder, recording_id, extent, MAX_LISTED), limit
    if "before" in query:
        end = min(max(whole("before", query["before"]), begin), limit)
        until = Extent(
            start_position=begin, limit_position=folder.align(recording_id, end, limit, back=True), is_active=False
        )
        return tail_position(folder, recording_id, until, MAX_LISTED), until.limit_position
    at = min(max(whole("position", query.get("position", str(begin))), begin), limit)
    return folder.align(recording_id, at, limit, back=True), limit


def _rows(folder: Folder, recording_id: int, part: tuple[int, int, int], doubts: list[str]) -> list[dict[str, Any]]:
    start, end, limit = part
    batches = folder.read(
        recording_id, start, end, limit=limit, columns=_COLUMNS, row_capacity=MAX_LISTED, on_doubt=doubts.append
    )  # fmt: skip
    batch = next(iter(batches), None)
    if batch is None:
        return []
    ends = [one - 1 for one in batch.column("next_position").to_pylist()]
    times = time_texts(folder.index_times_at(recording_id, ends)).to_pylist()
    return [
        {
            "position": str(row["position"]),
            "next": str(row["next_position"]),
            "time": when or "",
            "length": f"{len(row['value']):,}",
            "preview": _printable(row["value"][:_PREVIEW_BYTES]),
            "hex": row["value"][:_PREVIEW_BYTES].hex(" "),
        }
        for row, when in zip(batch.to_pylist(), times, strict=True)
    ]


def shown(folder_path: str, recording_id: int, position: int, chosen: Chosen) -> dict[str, Any]:
    """One message: bytes, tree and row. UsageError: no message begins there; SchemaError, AeronError: as their texts say."""
    schema = _schema(chosen.schema) if chosen.schema.strip() else None
    with Folder(folder_path) as folder:
        extent = folder.extent(recording_id)
        if not extent.start_position <= position < extent.limit_position:
            raise UsageError(
                f"recording {recording_id} has positions {extent.start_position} to {extent.limit_position}"
            )
        if folder.align(recording_id, position, extent.limit_position, back=True) != position:
            raise UsageError(f"no message begins at position {position}")
        part = (recording_id, position, position + 1)
        payload = next(iter(folder.read(*part, limit=extent.limit_position, columns=("value",)))).column(0)[0].as_py()
        is_long = schema is not None and len(payload) > MAX_SBE_BYTES
        if is_long:
            schema = None
        options = {"max_entries": _MAX_EMPTY, "framing": chosen.framing, "skip": chosen.skip, "on_error": "null"}
        messages = scan(
            folder,
            recording_id,
            start=position,
            end=position + 1,
            sbe=schema,
            sbe_options=None if schema is None else options,
            threads=1,
        )
        # The message's bytes are shown beside its row.
        table = messages.to_table(columns=[name for name in messages.schema.names if name != messages.own("value")])
    return {
        "position": str(position),
        "length": len(payload),
        "hex": _hex(payload[:MAX_HEX_BYTES]),
        "hex_left_out": max(0, len(payload) - MAX_HEX_BYTES),
        "tree": [_TOO_LONG] if is_long else None if schema is None else _tree(schema, payload, chosen),
        "rows": [
            _row(batch, number)
            for batch in map(with_time_texts, table.slice(0, MAX_LISTED).to_batches())
            for number in range(batch.num_rows)
        ],
    }


@functools.lru_cache(maxsize=4)
def _schema(text: str) -> Schema:
    return parse(text)


def _hex(payload: bytes) -> list[list[str]]:
    """Lines of offset, bytes and characters."""
    return [
        [f"{at:06x}", payload[at : at + _HEX_WIDTH].hex(" "), _printable(payload[at : at + _HEX_WIDTH])]
        for at in range(0, len(payload), _HEX_WIDTH)
    ]


def _printable(part: bytes) -> str:
    return "".join(chr(one) if 0x20 <= one < 0x7F else "." for one in part)  # noqa: PLR2004 - printable ASCII


def _row(batch: pa.RecordBatch, number: int) -> list[list[str]]:
    """Names and values of the columns that have one."""
    row = {name: _plain(batch.column(name)[number]) for name in batch.schema.names}
    return [[name, _text(value)] for name, value in row.items() if value is not None]


def _plain(scalar: pa.Scalar) -> Any:
    """A value of Arrow as Python's."""
    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.StructScalar):
        return {name: _plain(scalar[name]) for name in scalar}
    if isinstance(scalar, pa.ListScalar):
        return [_plain(one) for one in scalar.values[:_MAX_ENTRIES]]
    return scalar.as_py()


def _text(value: Any) -> str:
    """A value in a short text."""
    text = value[:MAX_TEXT].hex(" ") if isinstance(value, bytes) else str(with_float_texts(value))
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def _tree(schema: Schema, payload: bytes, chosen: Chosen) -> list[Mapping[str, Any]]:
    """The messages of a payload, as nodes with a name, and either a text or nodes below."""
    left = itertools.count()
    nodes: list[Mapping[str, Any]] = []
    for one in decode(schema, payload, framing=chosen.framing, skip=chosen.skip, max_entries=_MAX_EMPTY):
        if isinstance(one, DecodeError):
            nodes.append({"name": "error", "text": str(one)[:MAX_TEXT]})
            continue
        about = f"template {one.template_id}, schema {one.schema_id}, version {one.version}, {one.consumed} bytes"
        nodes.append({"name": one.message.name, "text": about, "nodes": list(_nodes(one.values, left))})
        if next(left) > MAX_NODES:
            nodes.append(_TOO_MANY)
            break
    return nodes


_TOO_LONG: Mapping[str, Any] = {
    "name": "…",
    "text": f"the message is longer than {MAX_SBE_BYTES} bytes: see `aeron-spark cat --sbe`",
}
_TOO_MANY: Mapping[str, Any] = {"name": "…", "text": f"more than {MAX_NODES} values: see `aeron-spark cat --sbe`"}


def _nodes(values: Any, left: Iterator[int]) -> Iterator[Mapping[str, Any]]:
    pairs = values.items() if isinstance(values, Mapping) else enumerate(values)
    for name, value in pairs:
        if next(left) > MAX_NODES:
            yield _TOO_MANY
            return
        if isinstance(value, Mapping) or (isinstance(value, list) and value and isinstance(value[0], Mapping | list)):
            yield {
                "name": str(name),
                "text": f"{len(value)} entries" if isinstance(value, list) else "",
                "nodes": list(_nodes(value, left)),
            }
        else:
            yield {"name": str(name), "text": _text(value)}
