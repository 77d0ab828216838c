"""`aeron-spark archive export`: recordings to Parquet, CSV or JSON lines, without Spark."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import Any

from aeron_spark.archive.addresses import open_source
from aeron_spark.archive.export import (
    COLUMNS,
    COMPRESSIONS,
    DEFAULT_ROW_GROUP_ROWS,
    FORMATS,
    Range,
    export,
    verify_export,
)
from aeron_spark.archive.segments import READ_COLUMNS
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.archive.text_values import ENCODERS
from aeron_spark.archive.time_text import parse_time_ns
from aeron_spark.cli.common import add_dir, add_json, add_verb, at_least, int64, print_json
from aeron_spark.cli.progress import Work
from aeron_spark.errors import UsageError
from aeron_spark.texts import escaped

EXAMPLES = """\
  aeron-spark archive export recordings --out all.parquet --verify
  aeron-spark archive export recordings 3 --out three.jsonl --value utf8 --columns position,value
  aeron-spark archive export recordings 3 --out part.csv --from 131072 --to 262144
  aeron-spark archive export recordings 3 --out hour.parquet --from-time 2026-11-20T09:00 --to-time 2026-11-20T10:00
  aeron-spark archive export recordings 3 --out - --format jsonl | jq .position
  aeron-spark archive export s3://bucket/folder 3 --out three.parquet
  aeron-spark archive export 'aeron:udp?endpoint=archive-host:8010' 3 --out three.parquet"""
_SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def add_to(parts: Any) -> None:
    """Add the verb."""
    part = add_verb(
        parts, "export", run, about="write messages to a Parquet, CSV or JSON lines file", examples=EXAMPLES
    )
    part.add_argument(
        "path",
        metavar="PATH",
        help="the archive's folder, a store's folder (s3://bucket/folder, also gs:, abfs:, hdfs:; credentials of the "
        "environment), or a running archive's control channel (aeron:udp?endpoint=host:8010), which replays to "
        "the driver of --dir",
    )
    part.add_argument("recording_id", metavar="RECORDING", type=int64, nargs="*", help="recording ids (default: all)")
    part.add_argument("--out", metavar="FILE", required=True, help="file to write, - for standard output")
    part.add_argument("--format", choices=FORMATS, help="default: by the file's suffix (.parquet, .csv, .jsonl)")
    part.add_argument(
        "--columns",
        metavar="NAMES",
        default=",".join(READ_COLUMNS),
        help=f"of {', '.join(COLUMNS)} (default: {','.join(READ_COLUMNS)})",
    )
    part.add_argument(
        "--value",
        choices=tuple(ENCODERS),
        default="base64",
        help="messages' bytes in CSV and JSON lines (default base64)",
    )
    part.add_argument("--compression", choices=COMPRESSIONS, default="zstd", help="of Parquet (default zstd)")
    part.add_argument(
        "--row-group-rows",
        metavar="N",
        type=at_least(1),
        default=DEFAULT_ROW_GROUP_ROWS,
        help=f"most rows of a row group of Parquet (default {DEFAULT_ROW_GROUP_ROWS:,})",
    )
    part.add_argument(
        "--from", dest="start", metavar="POSITION", type=at_least(0), help="messages that begin here or later"
    )
    part.add_argument("--to", dest="end", metavar="POSITION", type=at_least(0), help="messages that begin before it")
    for name, what in (("from-time", "first"), ("to-time", "end")):
        part.add_argument(
            f"--{name}",
            metavar="TIME",
            type=time_ns,
            help=f"{what} by the archive's clock: 2026-11-20T09:00 (local, or with zone), or ns since 1970; early by at most "
            "an interval of the time index",
        )
    part.add_argument("--overwrite", action="store_true", help="replace the file if it exists")
    part.add_argument(
        "--keep-going", action="store_true", help="end a damaged recording at the damage, and go on: exit code 1"
    )
    part.add_argument("--verify", action="store_true", help="read the file again and compare")
    part.add_argument("--progress", action="store_true", help="report progress even without a terminal")
    add_dir(part)
    add_json(part)


def time_ns(text: str) -> int:
    """ISO 8601, local without a zone, or ns since 1970; for argparse."""
    try:
        return parse_time_ns("TIME", text, zone=None, unit="ns")
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(options: argparse.Namespace) -> int:
    """Export and print what was written, with checksums."""
    target = None if options.out == "-" else Path(options.out)
    if target is None and options.verify:
        raise UsageError("--verify reads the file again: give --out a file")
    with open_source(options.path, aeron_dir=options.dir) as source:
        ranges = _ranges(source, options)
        work = Work("exported", sum(part.end - part.start for part in ranges), unit="messages", always=options.progress)
        report = export(
            source,
            ranges,
            target,
            file_format=_format(options, target),
            columns=[name.strip() for name in options.columns.split(",")],
            value=options.value,
            compression=options.compression,
            row_group_rows=options.row_group_rows,
            overwrite=options.overwrite,
            keep_going=options.keep_going,
            on_progress=work.at,
        )
        work.end()
    if target is not None and options.verify:
        verify_export(target, report)
    for damage in report.damage:
        print(f"ERR: {escaped(damage)}", file=sys.stderr)
    for doubt in report.doubts:
        print(f"WARNING: {escaped(doubt)}", file=sys.stderr)
    out = sys.stdout if target is not None else sys.stderr
    if options.json:
        print_json({"file": options.out, **dataclasses.asdict(report), "verified": options.verify}, file=out)
    else:
        print(
            f"{report.rows:,} messages with {report.value_bytes:,} bytes to {options.out}, {report.file_bytes:,} bytes\n"
            f"SHA-256 of the messages  {report.values_sha256 or '-'}\nSHA-256 of the file      {report.file_sha256}"
            + ("\nread again: equal" if options.verify else ""),
            file=out,
        )
    return 1 if report.damage else 0


def _format(options: argparse.Namespace, target: Path | None) -> str:
    if options.format is not None:
        return str(options.format)
    if target is None or target.suffix not in _SUFFIXES:
        raise UsageError(
            f"the format is not told by {options.out!r}: give --format, or a name that ends in {', '.join(_SUFFIXES)}"
        )
    return _SUFFIXES[target.suffix]


def _ranges(source: RecordingSource, options: argparse.Namespace) -> list[Range]:
    ids = options.recording_id or [recording.recording_id for recording in source.recordings()]
    if len(ids) != 1 and (options.start is not None or options.end is not None):
        raise UsageError("--from and --to are positions of one recording: name it")
    if (options.start is not None and options.from_time) or (options.end is not None and options.to_time):
        raise UsageError("give a begin and an end by position or by time, not by both")
    return [_range(source, recording_id, options) for recording_id in ids]


def _range(source: RecordingSource, recording_id: int, options: argparse.Namespace) -> Range:
    extent = source.extent(recording_id)
    first, limit = extent.start_position, extent.limit_position
    start = first if options.start is None else options.start
    end = limit if options.end is None else options.end
    if not first <= start <= end <= limit:
        raise UsageError(
            f"recording {recording_id} goes from {first} to {limit}: --from {start} --to {end} must be in it, in this order"
        )
    if options.from_time is not None:
        start = min(_at_time(source, recording_id, options.from_time), limit)
    if options.to_time is not None:
        end = min(_at_time(source, recording_id, options.to_time), limit)
    return Range(recording_id=recording_id, start=start, end=max(start, end), limit=limit)


def _at_time(source: RecordingSource, recording_id: int, when: int) -> int:
    found = source.position_at(recording_id, when)
    if found.is_rebuilt:
        print(
            f"recording {recording_id}: no time index there, times are those of whole segments: early by up to a segment",
            file=sys.stderr,
        )
    return found.position
