"""`aeron-spark stat`: the counters of a driver's directory."""

from __future__ import annotations

import argparse
import dataclasses
import time
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
from aeron_spark.counters import CounterRow

EXAMPLES = """\
  aeron-spark stat
  aeron-spark stat --dir /dev/shm/aeron-demo --match rec-pos
  aeron-spark stat --watch 1
  aeron-spark stat --json | jq .value"""


def add_to(verbs: Any) -> None:
    """Add the verb."""
    verb = add_verb(verbs, "stat", run, about="print the counters of a driver's directory", examples=EXAMPLES)
    add_dir(verb)
    add_json(verb)
    verb.add_argument("--match", metavar="TEXT", default="", help="only counters whose label contains this")
    add_watch(verb)


def run(options: argparse.Namespace) -> int:
    """Print once, or again and again."""

    def show(rows: list[CounterRow], before: Before | None) -> None:
        if options.json:
            for row in rows:
                print_json({**dataclasses.asdict(row), "key": row.key.hex(), "time_ms": int(time.time() * 1000)})
        elif before is None:
            print_table(("id", "value", "label"), ((row.counter_id, row.value, row.label) for row in rows))
        else:
            then = {(row.counter_id, row.registration_id): row.value for row in before.value}
            print_table(
                ("id", "value", "a second", "label"),
                (
                    (
                        row.counter_id,
                        row.value,
                        before.rate(row.value, then.get((row.counter_id, row.registration_id))),
                        row.label,
                    )
                    for row in rows
                ),
            )

    return show_counters(options, lambda counters: [row for row in counters.rows() if options.match in row.label], show)
