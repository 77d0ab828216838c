"""`aeron-spark errors`: the distinct errors that a driver and its peers logged."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from aeron_spark.cli.common import Before, add_counters_verb, observed, print_json, show_counters
from aeron_spark.counters import ErrorEntry

EXAMPLES = """\
  aeron-spark errors
  aeron-spark errors --watch 5
  aeron-spark errors --dir /dev/shm/aeron-demo --json"""


def add_to(verbs: Any) -> None:
    """Add the verb."""
    add_counters_verb(verbs, "errors", run, about="print the error log of a driver's directory", examples=EXAMPLES)


def run(options: argparse.Namespace) -> int:
    """Print every distinct error; watching, those that are new or came again."""

    def show(entries: list[ErrorEntry], before: Before | None) -> None:
        for entry in entries:
            if before is not None and entry in before.value:
                continue
            if options.json:
                print_json(dataclasses.asdict(entry))
            else:
                print(observed(entry))
        if not options.json:
            print(f"{len(entries)} distinct errors observed.")

    return show_counters(options, lambda counters: counters.errors(), show)
