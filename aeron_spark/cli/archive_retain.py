"""`aeron-spark archive retain`: old segments and recordings deleted by a running archive, once or as a running policy."""

from __future__ import annotations

import argparse
import re
import sys
import time
from dataclasses import replace
from typing import Any

from aeron_spark.archive.recordings import is_ledger
from aeron_spark.archive.retain import Action, Done, Policy, apply, archive_settings, inventory, plan
from aeron_spark.archive.segments import Folder
from aeron_spark.cli.archive_session import add_control, connect
from aeron_spark.cli.common import add_dir, add_json, add_verb, at_least, int64, print_json, seconds, utc_time
from aeron_spark.errors import AeronError, UsageError
from aeron_spark.spark.ledger import batches_before
from aeron_spark.texts import escaped

EXAMPLES = """\
  aeron-spark archive retain recordings --older-than 7d
  aeron-spark archive retain recordings --older-than 7d --max-bytes 500g --yes
  aeron-spark archive retain recordings --keep-recordings 10 --every 10m --yes"""
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def add_to(parts: Any) -> None:
    """Add the verb."""
    part = add_verb(
        parts,
        "retain",
        run,
        about="have a running archive delete old segments and recordings; a dry run without --yes. The ledger of exactly-once "
        "writes is kept. Exit code 1: a replay, or an extension, holds something back",
        examples=EXAMPLES,
    )
    part.add_argument("path", metavar="PATH", help="the archive's folder")
    part.add_argument("--older-than", metavar="TIME", type=age, help="segments written longer ago go: 90m, 12h, 7d, 4w")
    part.add_argument("--max-bytes", metavar="SIZE", type=size, help="the oldest go until no more is used: 500g, 2t")
    part.add_argument(
        "--keep-recordings",
        metavar="N",
        type=at_least(0),
        help="so many of each channel and stream stay, the newest; active ones always do",
    )
    part.add_argument("--yes", action="store_true", help="do it; without, only print what would be done")
    part.add_argument("--every", metavar="TIME", type=duration, help="do it again and again, until Ctrl-C")
    add_dir(part)
    add_json(part)
    add_control(part)
    part.set_defaults(control_stream=None)


def age(text: str) -> float:
    """Seconds of a duration with its unit; for argparse. What is older is deleted, so nobody guesses what 7 is."""
    found = duration(text)
    if text[-1].isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is a time without a unit: write 90s, 10m, 12h, 7d or 4w")
    return found


def duration(text: str) -> float:
    """Seconds of 90s, 10m, 12h, 7d, 4w; for argparse."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw]?)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: write 90s, 10m, 12h, 7d or 4w")
    return seconds(str(float(found[1]) * _SECONDS[found[2] or "s"]))


def size(text: str) -> int:
    """Bytes of 1000, 64k, 500m, 10g, 2t; for argparse."""
    found = re.fullmatch(r"(\d+)([kmgt]?)", text.lower())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: write 1000, 64k, 500m, 10g or 2t")
    return int64(str(int(found[1]) * _BYTES[found[2]]))


def run(options: argparse.Namespace) -> int:
    """Once, or again and again; a failed round of a running policy is reported and the next one tried."""
    policy = Policy(
        older_than_s=options.older_than, max_bytes=options.max_bytes, keep_recordings=options.keep_recordings
    )
    if options.every is None:
        return _round(policy, options)
    if options.every <= 0:
        raise UsageError("--every takes a time above 0")
    try:
        while True:
            try:
                _round(policy, options)
            except (AeronError, OSError) as failure:
                print(
                    f"{utc_time(round(time.time() * 1000))} not done, next try in {options.every:g} s: {failure}",
                    file=sys.stderr,
                )
            sys.stdout.flush()
            time.sleep(options.every)
    except KeyboardInterrupt:
        return 0


def _round(policy: Policy, options: argparse.Namespace) -> int:
    with Folder(options.path, aeron_dir=options.dir) as folder:
        actions = _with_committed(folder, plan(policy, inventory(folder), now_ms=round(time.time() * 1000)))
        ledgers = [recording.recording_id for recording in folder.recordings() if is_ledger(recording)]
    if not options.yes:
        for action in actions:
            _print(options, action, None)
        if not options.json:
            for recording_id in ledgers:
                print(
                    f"(recordingId={recording_id}) stays whatever its age and size: the ledger of exactly-once writes"
                )
            print(f"would free {sum(action.bytes for action in actions):,} bytes; nothing was changed, --yes does it")
        return 0
    if not actions:
        return 0
    aeron_dir, control_stream = archive_settings(options.path)
    session = argparse.Namespace(**vars(options))
    session.dir = options.dir or aeron_dir
    session.control_stream = control_stream if options.control_stream is None else options.control_stream
    is_held = False
    with connect(session) as archive:
        for done in apply(archive, actions):
            is_held = is_held or bool(done.held)
            _print(options, done.action, done)
    return 1 if is_held else 0


def _with_committed(folder: Folder, actions: list[Action]) -> list[Action]:
    """The actions with how many committed batches lose rows by each."""
    if not actions or not any(map(is_ledger, folder.recordings())):
        return actions
    counts: dict[int, int | None]
    try:
        counts = dict(batches_before(folder, {action.recording_id: action.new_start for action in actions}))
    except AeronError as failure:
        print(f"which rows were committed is unknown: {escaped(str(failure))}", file=sys.stderr)
        counts = {action.recording_id: None for action in actions}
    return [replace(action, committed=counts[action.recording_id]) for action in actions]


def _print(options: argparse.Namespace, action: Action, done: Done | None) -> None:
    if options.json:
        print_json(
            {
                "recording_id": action.recording_id,
                "new_start_position": action.new_start,
                "segments": action.segments,
                "bytes": action.bytes,
                "reason": action.reason,
                "committed_batches": action.committed,
                "done": done is not None and not done.held,
                "deleted_segments": 0 if done is None else done.deleted,
                "held_back_by": "" if done is None else done.held,
            }
        )
        return
    what = "all of it" if action.new_start is None else f"{action.segments} segments up to position {action.new_start}"
    verb = (
        "would delete" if done is None else "deleted" if not done.held else f"held back after {done.deleted} segments"
    )
    rows = f"; rows of {action.committed} committed batches go with it" if action.committed else ""
    print(f"(recordingId={action.recording_id}) {verb} {what}, {action.bytes:,} bytes: {action.reason}{rows}")
    if done is not None and done.held:
        print(f"  held back by: {done.held}")
