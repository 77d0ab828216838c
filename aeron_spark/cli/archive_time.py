"""`aeron-spark archive time` and `index`: positions by time, times by position, and the time indexes that know."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from aeron_spark.archive.segments import Folder
from aeron_spark.archive.time_text import parse_time_ns
from aeron_spark.archive.times import TimeIndexInfo
from aeron_spark.cli.common import add_dir, add_json, add_verb, int64, print_json, print_table, utc_time, with_times
from aeron_spark.errors import UsageError

TIME_EXAMPLES = """\
  aeron-spark archive time recordings 3 2026-01-31T12:00:00Z
  aeron-spark archive time recordings 3 --position 65536"""
INDEX_EXAMPLES = """\
  aeron-spark archive index describe recordings
  aeron-spark archive index rebuild recordings 3"""


def add_to(parts: Any) -> None:
    """Add both to the verbs of `archive`."""
    time = add_verb(
        parts,
        "time",
        find,
        about="where to read from for a time, or when a position was written",
        examples=TIME_EXAMPLES,
    )
    time.add_argument("path", metavar="PATH", help="the archive's folder")
    time.add_argument("recording_id", metavar="RECORDING", type=int64, help="recording id")
    time.add_argument(
        "when", metavar="TIME", nargs="?", help="ISO 8601, local without a zone, or nanoseconds since 1970"
    )
    time.add_argument("--position", metavar="POSITION", type=int64, help="print when this byte was written instead")
    time.add_argument(
        "--reserved",
        metavar="UNIT",
        choices=("ns", "us", "ms"),
        help="exactly, by the reserved value of the messages, a time in this unit",
    )
    add_dir(time)
    add_json(time)

    index = add_verb(parts, "index", describe, about="time indexes of recordings", examples=INDEX_EXAMPLES)
    verbs = index.add_subparsers(title="verbs", dest="index_verb", required=True, metavar="VERB")
    for name, run, about, example in (
        ("describe", describe, "what is in them", INDEX_EXAMPLES.splitlines()[0]),
        (
            "rebuild",
            rebuild,
            "rebuild them from segments where they are missing",
            INDEX_EXAMPLES.splitlines()[1],
        ),
    ):
        part = add_verb(verbs, name, run, about=about, examples=example)
        part.add_argument("path", metavar="PATH", help="the archive's folder")
        part.add_argument(
            "recording_ids", metavar="RECORDING", type=int64, nargs="*", help="recording ids (default: all)"
        )
        add_dir(part)
        add_json(part)


def find(options: argparse.Namespace) -> int:
    """Print a position, or a time."""
    if (options.when is None) == (options.position is None):
        raise UsageError("give either a TIME or --position POSITION")
    recording_id = options.recording_id
    when = 0 if options.when is None else parse_time_ns("TIME", options.when, zone=None, unit="ns")
    with Folder(options.path, aeron_dir=options.dir) as folder:
        if options.position is not None:
            _check_written(folder, recording_id, options.position)
            found = folder.time_at(recording_id, options.position)
            answer: dict[str, object] = with_times({"position": options.position, "time_ns": found})
        elif options.reserved is not None:
            position = folder.position_at_reserved(recording_id, when, unit=options.reserved)
            answer = {"position": position, "is_rebuilt": False}
        else:
            answer = dataclasses.asdict(folder.position_at(recording_id, when))
    if options.json:
        print_json({"recording_id": recording_id, **answer})
    elif options.position is not None:
        print(answer["time"])
    else:
        print(f"{answer['position']}{' (rebuilt: up to a segment early)' if answer['is_rebuilt'] else ''}")
    return 0


def _check_written(folder: Folder, recording_id: int, position: int) -> None:
    """UsageError where there is no byte: a lookup would answer with the time of bytes before it."""
    extent = folder.extent(recording_id)
    if not extent.start_position <= position < extent.limit_position:
        raise UsageError(
            f"recording {recording_id} goes from {extent.start_position} to {extent.limit_position}: nothing was written "
            f"at --position {position}, give one before its end and not before its start"
        )


def describe(options: argparse.Namespace) -> int:
    """Print what time indexes hold."""
    with Folder(options.path, aeron_dir=options.dir) as folder:
        _print(options, [(chosen, folder.time_index(chosen)) for chosen in _chosen(folder, options)])
    return 0


def rebuild(options: argparse.Namespace) -> int:
    """Rebuild time indexes and print what they hold; recordings that run are left out unless they were named."""
    with Folder(options.path, aeron_dir=options.dir) as folder:
        done = []
        for chosen in _chosen(folder, options):
            if options.recording_ids or not folder.extent(chosen).is_active:
                folder.rebuild_time_index(chosen)
                done.append((chosen, folder.time_index(chosen)))
        _print(options, done)
    return 0


def _chosen(folder: Folder, options: argparse.Namespace) -> list[int]:
    return options.recording_ids or [recording.recording_id for recording in folder.recordings()]


def _print(options: argparse.Namespace, rows: list[tuple[int, TimeIndexInfo]]) -> None:
    if options.json:
        for recording_id, info in rows:
            print_json({"recording_id": recording_id, **dataclasses.asdict(info)})
        return
    print_table(
        ("recording", "entries", "rebuilt", "broken", "bytes", "of", "file", "first", "last", "state"),
        (
            (
                recording_id,
                info.run_count,
                info.rebuilt_count,
                info.broken_count,
                info.indexed_bytes,
                info.recording_bytes,
                info.file_length,
                _time(info.first_ns),
                _time(info.last_ns),
                "good" if info.is_believed else "outdated" if info.exists else "none",
            )
            for recording_id, info in rows
        ),
    )


def _time(ns: int | None) -> str:
    return "-" if ns is None else utc_time(ns, 10**9)
