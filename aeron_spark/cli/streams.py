"""`aeron-spark streams`: the counters of each stream, side by side."""

from __future__ import annotations

import argparse
from typing import Any

from aeron_spark.cli.common import Rate, add_counters_verb, int32, show_rows
from aeron_spark.streams import streams

EXAMPLES = """\
  aeron-spark streams
  aeron-spark streams --stream 1001 --watch
  aeron-spark streams --json | jq 'select(.name == "rcv-pos")'"""


def add_to(verbs: Any) -> None:
    """Add the verb."""
    verb = add_counters_verb(
        verbs, "streams", run, about="print the positions and counts of each stream", examples=EXAMPLES
    )
    add_stream_filter(verb)


def add_stream_filter(verb: argparse.ArgumentParser) -> None:
    """Option --stream."""
    verb.add_argument("--stream", metavar="ID", type=int32, help="only streams of this id")


def run(options: argparse.Namespace) -> int:
    """Print once, or again and again."""
    return show_rows(
        options,
        lambda counters: [row for row in streams(counters.rows()) if options.stream in {None, row.stream_id}],
        {
            "stream": lambda row: str(row.stream_id),
            "session": lambda row: str(row.session_id),
            "counter": lambda row: row.name,
            "id": lambda row: str(row.registration_id),
            "value": lambda row: row.value,
            "a second": Rate(
                figure=lambda row: row.value, key=lambda row: (row.type_id, row.registration_id, row.reference_id)
            ),
            "channel": lambda row: row.channel,
        },
    )
