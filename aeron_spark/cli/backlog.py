"""`aeron-spark backlog`: who is how far behind whom, stream by stream."""

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
from aeron_spark.cli.streams import add_stream_filter
from aeron_spark.streams import BacklogRow, backlog

EXAMPLES = """\
  aeron-spark backlog
  aeron-spark backlog --stream 1001 --watch 2
  aeron-spark backlog --json | jq 'select(.role == "subscriber") | .behind'"""


def add_to(verbs: Any) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs, "backlog", run, about="print how many bytes each party of a stream is behind", examples=EXAMPLES
    )
    add_dir(verb)
    add_json(verb)
    add_stream_filter(verb)
    add_watch(verb)


def run(options: argparse.Namespace) -> int:
    """Print once, or again and again."""

    def show(rows: list[BacklogRow], before: Before | None) -> None:
        if options.json:
            for row in rows:
                print_json(dataclasses.asdict(row))
            return
        then = {} if before is None else {_party(row): row.position for row in before.value}
        print_table(
            (
                *("stream", "session", "who", "id", "position"),
                *(() if before is None else ("bytes a second",)),
                *("bytes behind", "window left", "channel"),
            ),
            (
                (
                    str(row.stream_id),
                    str(row.session_id),
                    row.role,
                    str(row.registration_id),
                    row.position,
                    *(() if before is None else (before.rate(row.position, then.get(_party(row))),)),
                    "-" if row.behind is None else row.behind,
                    "-" if row.window is None else row.window,
                    row.channel,
                )
                for row in rows
            ),
        )

    return show_counters(
        options,
        lambda counters: [
            row for row in backlog(counters.rows()) if options.stream is None or row.stream_id == options.stream
        ],
        show,
    )


def _party(row: BacklogRow) -> tuple[object, ...]:
    return row.role, row.registration_id, row.session_id
