"""`aeron-spark backlog`: who is how far behind whom, stream by stream."""

from __future__ import annotations

import argparse
from typing import Any

from aeron_spark.cli.common import Rate, add_counters_verb, show_rows
from aeron_spark.cli.streams import add_stream_filter
from aeron_spark.streams import backlog

EXAMPLES = """\
  aeron-spark backlog
  aeron-spark backlog --stream 1001 --watch 2
  aeron-spark backlog --json | jq 'select(.role == "subscriber") | .behind'"""


def add_to(verbs: Any) -> None:
    """Add the verb."""
    verb = add_counters_verb(
        verbs, "backlog", run, about="print how many bytes each party of a stream is behind", examples=EXAMPLES
    )
    add_stream_filter(verb)


def run(options: argparse.Namespace) -> int:
    """Print once, or again and again."""
    return show_rows(
        options,
        lambda counters: [row for row in backlog(counters.rows()) if options.stream in {None, row.stream_id}],
        {
            "stream": lambda row: str(row.stream_id),
            "session": lambda row: str(row.session_id),
            "who": lambda row: row.role,
            "id": lambda row: str(row.registration_id),
            "position": lambda row: row.position,
            "bytes a second": Rate(
                figure=lambda row: row.position, key=lambda row: (row.role, row.registration_id, row.reference_id)
            ),
            "bytes behind": lambda row: "-" if row.behind is None else row.behind,
            "window left": lambda row: "-" if row.window is None else row.window,
            "channel": lambda row: row.channel,
        },
    )
