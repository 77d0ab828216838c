"""`aeron-spark publish`: lines of standard input as messages."""

from __future__ import annotations

import argparse
import itertools
from typing import Any

from aeron_spark.cli.common import add_dir, add_json, add_verb, at_least, int32, print_json, seconds, standard_input
from aeron_spark.cli.progress import Progress
from aeron_spark.client import Client

EXAMPLES = """\
  seq 1000000 | aeron-spark publish --channel 'aeron:udp?endpoint=localhost:40123' --stream 1001
  seq 1000000 | aeron-spark publish --channel aeron:ipc --stream 1001
  tail -f app.log | aeron-spark publish --channel aeron:ipc --stream 7 --batch 1"""


def add_to(verbs: Any) -> None:
    """Add the verb."""
    verb = add_verb(verbs, "publish", run, about="publish the lines of standard input as messages", examples=EXAMPLES)
    add_stream(verb)
    verb.add_argument(
        "--batch", metavar="N", type=at_least(1), default=1000, help="lines published at once (default 1000)"
    )


def add_stream(verb: argparse.ArgumentParser) -> None:
    """Options of both publish and subscribe."""
    add_dir(verb)
    add_json(verb)
    verb.add_argument(
        "--channel", metavar="URI", required=True, help="channel: aeron:ipc, aeron:udp?endpoint=localhost:40123, ..."
    )
    verb.add_argument("--stream", metavar="ID", type=int32, required=True, help="stream id")
    verb.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=10.0,
        help="wait this long for the other side (default 10)",
    )


def run(options: argparse.Namespace) -> int:
    """Publish until the end of the input."""
    progress = Progress("published")
    lines = (line.rstrip(b"\n") for line in standard_input().buffer)
    with (
        Client(options.dir, name="aeron-spark publish") as client,
        client.add_exclusive_publication(options.channel, options.stream) as publication,
    ):
        publication.wait_connected(options.timeout)
        progress.start()
        while batch := list(itertools.islice(lines, max(1, options.batch))):
            publication.offer_batch(batch, timeout=options.timeout)
            progress.add(len(batch), sum(map(len, batch)))
        position = publication.position
        progress.end()
        if options.json:
            print_json({"session_id": publication.session_id, "messages": progress.messages, "position": position})
        else:
            print(f"{progress.summary()}; session {publication.session_id}, position {position:,}")
    return 0
