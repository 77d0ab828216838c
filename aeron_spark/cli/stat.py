"""`aeron-spark stat`: the counters of a driver's directory."""

from __future__ import annotations

import argparse
import dataclasses
import time
from typing import Any

from aeron_spark.cli.common import Rate, add_counters_verb, show_rows
from aeron_spark.counters import CounterRow

EXAMPLES = """\
  aeron-spark stat
  aeron-spark stat --dir /dev/shm/aeron-demo --match rec-pos
  aeron-spark stat --watch 1
  aeron-spark stat --json | jq .value"""


def add_to(verbs: Any) -> None:
    """Add the verb."""
    verb = add_counters_verb(verbs, "stat", run, about="print the counters of a driver's directory", examples=EXAMPLES)
    verb.add_argument("--match", metavar="TEXT", default="", help="only counters whose label contains this")


def run(options: argparse.Namespace) -> int:
    """Print once, or again and again."""
    return show_rows(
        options,
        lambda counters: [row for row in counters.rows() if options.match in row.label],
        {
            "id": lambda row: row.counter_id,
            "value": lambda row: row.value,
            "a second": Rate(figure=lambda row: row.value, key=lambda row: (row.counter_id, row.registration_id)),
            "label": lambda row: row.label,
        },
        as_json=_with_time,
    )


def _with_time(row: CounterRow) -> dict[str, Any]:
    return {**dataclasses.asdict(row), "key": row.key.hex(), "time_ms": int(time.time() * 1000)}
