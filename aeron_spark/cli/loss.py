"""`aeron-spark loss`: what network streams lost, by image."""

from __future__ import annotations

import argparse
from typing import Any

from aeron_spark.cli.common import Rate, add_counters_verb, show_rows, utc_time

EXAMPLES = """\
  aeron-spark loss
  aeron-spark loss --watch
  aeron-spark loss --json | jq .bytes_lost"""


def add_to(verbs: Any) -> None:
    """Add the verb."""
    add_counters_verb(verbs, "loss", run, about="print the loss report of a driver's directory", examples=EXAMPLES)


def run(options: argparse.Namespace) -> int:
    """Print the report once, or again and again."""
    return show_rows(
        options,
        lambda counters: counters.losses(),
        {
            "gaps": lambda entry: entry.count,
            "bytes lost": lambda entry: entry.bytes_lost,
            "a second": Rate(
                figure=lambda entry: entry.bytes_lost,
                key=lambda entry: (entry.session_id, entry.stream_id, entry.channel, entry.source, entry.first_ms),
                at_first=0,
            ),
            "first": lambda entry: utc_time(entry.first_ms),
            "last": lambda entry: utc_time(entry.last_ms),
            "stream": lambda entry: str(entry.stream_id),
            "session": lambda entry: str(entry.session_id),
            "source": lambda entry: entry.source,
            "channel": lambda entry: entry.channel,
        },
        counted="streams lost data.",
    )
