"""`aeron-spark loss`: what network streams lost, by image."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from aeron_spark.cli.common import (
    Before,
    add_dir,
    add_json,
    add_verb,
    add_watch,
    print_json,
    print_table,
    show_counters,
    utc_time,
)
from aeron_spark.counters import LossEntry

EXAMPLES = """\
  aeron-spark loss
  aeron-spark loss --watch
  aeron-spark loss --json | jq .bytes_lost"""


def add_to(verbs: Any) -> None:
    """Add the verb."""
    verb = add_verb(verbs, "loss", run, about="print the loss report of a driver's directory", examples=EXAMPLES)
    add_dir(verb)
    add_json(verb)
    add_watch(verb)


def run(options: argparse.Namespace) -> int:
    """Print the report once, or again and again."""

    def show(entries: list[LossEntry], before: Before | None) -> None:
        if options.json:
            for entry in entries:
                print_json(dataclasses.asdict(entry))
            return
        then = {} if before is None else {_image(entry): entry.bytes_lost for entry in before.value}
        headers = ("gaps", "bytes lost", *(() if before is None else ("a second",)), "first", "last")
        print_table(
            (*headers, "stream", "session", "source", "channel"),
            (
                (
                    entry.count,
                    entry.bytes_lost,
                    *(() if before is None else (before.rate(entry.bytes_lost, then.get(_image(entry), 0)),)),
                    utc_time(entry.first_ms),
                    utc_time(entry.last_ms),
                    str(entry.stream_id),
                    str(entry.session_id),
                    entry.source,
                    entry.channel,
                )
                for entry in entries
            ),
        )
        print(f"{len(entries)} streams lost data.")

    return show_counters(options, lambda counters: counters.losses(), show)


def _image(entry: LossEntry) -> tuple[object, ...]:
    return entry.session_id, entry.stream_id, entry.channel, entry.source, entry.first_ms
