"""`aeron-spark archive import`: a capture of packets to recordings."""

from __future__ import annotations

import argparse
import dataclasses
import os
from contextlib import suppress
from typing import Any

from aeron_spark.captures import CAPTURED, import_capture
from aeron_spark.captures.importing import DEFAULT_SEGMENT_LENGTH
from aeron_spark.cli.common import add_json, add_verb, at_least, print_json, print_table
from aeron_spark.cli.progress import Work

EXAMPLES = """\
  aeron-spark archive import session.pcap recordings
  aeron-spark archive import feed.pcapng.zst recordings --as udp --framing cme-udp --port 14310
  aeron-spark archive import orders.pcap.gz recordings --as tcp --framing sofh --json"""
_MOST_PRINTED = 10
_HEADERS = ("recording", "stream", "session", "start", "end", "channel", "source")
_FIELDS = ("recording_id", "stream_id", "session_id", "start_position", "stop_position", "channel", "source")


def add_to(parts: Any) -> None:
    """Add the verb."""
    part = add_verb(
        parts,
        "import",
        run,
        about="write the streams of a capture to recordings. Exit code 1: something is missing in the capture",
        examples=EXAMPLES,
    )
    part.add_argument("capture", metavar="CAPTURE", help="pcap or pcapng file, also compressed by gzip or zstd")
    part.add_argument("path", metavar="FOLDER", help="the archive's folder, made if absent; no archive may run on it")
    part.add_argument(
        "--as",
        dest="captured",
        choices=CAPTURED,
        default="aeron",
        help="aeron (default): Aeron streams, as an archive records them; udp: a message a datagram, or by "
        "--framing; tcp: messages of connections by --framing",
    )
    part.add_argument("--framing", metavar="NAME", default="none", help="as of sbe decode; not messages")
    part.add_argument(
        "--port",
        metavar="PORT",
        type=at_least(1),
        action="append",
        help="only what goes to this UDP or TCP port; repeatable",
    )
    part.add_argument(
        "--term-length",
        metavar="BYTES",
        type=at_least(1),
        help="of Aeron streams whose setup frame was not captured, with --initial-term-id",
    )
    part.add_argument("--initial-term-id", metavar="ID", type=int, help="see --term-length; with or without its sign")
    part.add_argument(
        "--segment-length",
        metavar="BYTES",
        type=at_least(1),
        default=DEFAULT_SEGMENT_LENGTH,
        help=f"of the recordings' files (default {DEFAULT_SEGMENT_LENGTH:,})",
    )
    part.add_argument("--progress", action="store_true", help="report progress even without a terminal")
    add_json(part)


def run(options: argparse.Namespace) -> int:
    """Import, and print what came of it."""
    total = 0
    with suppress(OSError):
        total = os.stat(options.capture).st_size  # noqa: PTH116
    work = Work("imported", total, unit="packets", always=options.progress)
    report = import_capture(
        options.capture,
        options.path,
        captured=options.captured,
        ports=options.port,
        framing=options.framing,
        term_length=options.term_length,
        initial_term_id=options.initial_term_id,
        segment_length=options.segment_length,
        on_progress=work.at,
    )
    work.end()
    problems = list(report.problems)
    if not report.recordings:
        problems.append(
            f"there is nothing to import as {options.captured} in {options.capture}: {report.packets:,} packets, none of them "
            "that; see --as and --port"
        )
    if options.json:
        print_json({"capture": options.capture, **dataclasses.asdict(report) | {"problems": problems}})
    else:
        print_table(_HEADERS, ([str(getattr(one, name)) for name in _FIELDS] for one in report.recordings))
        print(
            f"{report.packets:,} packets: {report.imported:,} imported, {report.repeated:,} repeated, {report.other:,} other, "
            f"{report.cut:,} cut, {report.malformed:,} malformed, {report.incomplete_fragments:,} with fragments missing"
        )
        for gap in report.gaps[:_MOST_PRINTED]:
            print(f"gap: {gap.stream}, {gap.start:,} to {gap.end:,}")
        if report.gap_count > _MOST_PRINTED:
            print(f"{report.gap_count:,} gaps in all; --json lists them")
        for text in problems:
            print(f"problem: {text}")
    return 1 if problems or report.gap_count or report.incomplete_fragments else 0
