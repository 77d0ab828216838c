"""`aeron-spark subscribe`: messages as lines of standard output."""

from __future__ import annotations

import argparse
import base64
import shlex
import sys
import time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from aeron_spark.cli.common import add_verb, at_least, print_json
from aeron_spark.cli.progress import Progress
from aeron_spark.cli.publish import add_stream
from aeron_spark.client import Client
from aeron_spark.texts import escaped_bytes

EXAMPLES = """\
  aeron-spark subscribe --channel 'aeron:udp?endpoint=localhost:40123' --stream 1001
  aeron-spark subscribe --channel aeron:ipc --stream 1001 > messages
  aeron-spark subscribe --channel aeron:ipc --stream 1001 --count 10 --json"""


def add_to(verbs: Any) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs, "subscribe", run, about="print messages of a stream as lines, until Ctrl-C", examples=EXAMPLES
    )
    add_stream(verb)
    verb.add_argument("--count", metavar="N", type=at_least(0), help="end after so many messages")


def run(options: argparse.Namespace) -> int:
    """Print messages until the count is reached, the publishers are gone, or nobody comes in time."""
    left = options.count if options.count is not None else sys.maxsize
    deadline = time.monotonic() + options.timeout
    seen = False
    # Messages on the terminal are progress enough.
    progress = Progress("received", quiet=sys.stdout.isatty())
    with (
        Client(options.dir, name="aeron-spark subscribe") as client,
        client.add_subscription(options.channel, options.stream) as subscription,
    ):
        try:
            while left > 0:
                batch = subscription.poll_batch(0.1, row_capacity=min(left, 10_000))
                _print(batch, as_json=options.json)
                if not seen and (subscription.is_connected or batch.num_rows > 0):
                    seen = True
                    progress.start()
                left -= batch.num_rows
                progress.add(batch.num_rows, pc.sum(pc.binary_length(batch.column("value"))).as_py() or 0)
                if batch.num_rows == 0 and not subscription.is_connected:
                    if seen:
                        break
                    if time.monotonic() > deadline:
                        print(_no_publisher(options), file=sys.stderr)
                        return 1
        except KeyboardInterrupt:
            pass
    progress.end()
    return 0 if options.count is None or left == 0 else 1


def _no_publisher(options: argparse.Namespace) -> str:
    at = f" --dir {shlex.quote(options.dir)}" if options.dir else ""
    channel = shlex.quote(options.channel)
    return (
        f"aeron-spark subscribe: no publisher within {options.timeout} s\n  -> start one in another terminal, aeron-spark "
        f"publish{at} --channel {channel} --stream {options.stream}: channel and stream of both sides must be "
        "equal, and a longer --timeout waits longer"
    )


def _print(batch: pa.RecordBatch, *, as_json: bool) -> None:
    if not as_json:
        # A message must not command the terminal.
        shown = escaped_bytes if sys.stdout.isatty() else bytes
        sys.stdout.buffer.writelines(b"%b\n" % shown(value) for value in batch.column("value").to_pylist())
        sys.stdout.flush()
        return
    for row in batch.to_pylist():
        value = row["value"]
        try:
            row["value"] = value.decode()
        except UnicodeDecodeError:
            del row["value"]
            row["value_base64"] = base64.b64encode(value).decode()
        print_json(row)
