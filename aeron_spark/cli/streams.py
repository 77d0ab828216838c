"""`aeron-spark streams`: the counters of each stream, side by side."""

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
)
from aeron_spark.streams import StreamRow, streams

EXAMPLES = """\
  aeron-spark streams
  aeron-spark streams --stream 1001 --watch
  aeron-spark streams --json | jq 'select(.name == "rcv-pos")'"""


def add_to(verbs: Any) -> None:
    """Add the verb."""
    verb = add_verb(verbs, "streams", run, about="print the positions and counts of each stream", examples=EXAMPLES)
    add_dir(verb)
    add_json(verb)
    add_stream_filter(verb)
    add_watch(verb)


def add_stream_filter(verb: argparse.ArgumentParser) -> None:
    """Option --stream."""
    verb.add_argument("--stream", metavar="ID", type=int, help="only streams of this id")


def run(options: argparse.Namespace) -> int:
    """Print once, or again and again."""

    def show(rows: list[StreamRow], before: Before | None) -> None:
        if options.json:
            for row in rows:
                print_json(dataclasses.asdict(row))
            return
        then = {} if before is None else {_counter(row): row.value for row in before.value}
        print_table(
            (
                *("stream", "session", "counter", "id", "value"),
                *(() if before is None else ("a second",)),
                "channel",
            ),
            (
                (
                    str(row.stream_id),
                    str(row.session_id),
                    row.name,
                    str(row.registration_id),
                    row.value,
                    *(() if before is None else (before.rate(row.value, then.get(_counter(row))),)),
                    row.channel,
                )
                for row in rows
            ),
        )

    return show_counters(
        options,
        lambda counters: [
            row for row in streams(counters.rows()) if options.stream is None or row.stream_id == options.stream
        ],
        show,
    )


def _counter(row: StreamRow) -> tuple[int, ...]:
    return row.type_id, row.registration_id, row.reference_id
