"""`aeron-spark cat`: messages of recordings or of a live stream, printed."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import Any

from aeron_spark.cli.common import add_verb
from aeron_spark.cli.messages import add_arguments, chosen, print_all

SOURCE = (
    "an archive's folder, a store's folder (s3://bucket/folder), or a running archive's control channel "
    "(aeron:udp?endpoint=host:8010)"
)
EXAMPLES = """\
  aeron-spark cat recordings
  aeron-spark cat recordings 3 --last 5 --position
  aeron-spark cat recordings 3 --follow --format json
  aeron-spark cat recordings 3 --sbe prices.xml --where "price >= 10.5 and symbol = 'ABC'"
  aeron-spark cat recordings --from-time 2026-11-20T09:00 --to-time 2026-11-20T09:05 --format csv
  aeron-spark cat 'aeron:udp?endpoint=archive-host:8010' 3 --format arrow > three.arrows
  aeron-spark cat --channel aeron:ipc --stream 1001 --format hex"""


def add_to(verbs: Any) -> None:
    """Add the verb."""
    verb = add_verb(verbs, "cat", run, about="print messages of recordings or of a live stream", examples=EXAMPLES)
    verb.add_argument("source", metavar="SOURCE", nargs="?", help=SOURCE)
    verb.add_argument("recordings", metavar="RECORDING", nargs="*", help="ids of recordings (default: all)")
    add_arguments(verb)


def run(options: argparse.Namespace) -> int:
    """Print them all."""
    with ExitStack() as held:
        print_all(options, chosen(options, [options.source, *options.recordings] if options.source else [], held))
    return 0
