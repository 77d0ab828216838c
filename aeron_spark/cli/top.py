"""`aeron-spark top`: what drivers and archives do now, on one live screen."""

from __future__ import annotations

import argparse
import dataclasses
import signal
import sys
import time
from typing import Any

from aeron_spark.cli.common import (
    add_directories,
    add_json,
    add_verb,
    chosen_dirs,
    open_counters,
    print_json,
    print_table,
    seconds,
    standard_input,
)
from aeron_spark.errors import DataLossError, UsageError

EXAMPLES = """\
  aeron-spark top
  aeron-spark top --dir /dev/shm/aeron-a --dir /dev/shm/aeron-b --archive-dir /data/archive
  aeron-spark top --once
  aeron-spark top --once --json | jq '.streams[] | select(.flow == "blocked") | .holder'"""

_LEAST_S = 0.1


def add_to(verbs: Any) -> None:
    """Add the verb."""
    verb = add_verb(verbs, "top", run, about="watch streams, recordings, servers, clients, errors", examples=EXAMPLES)
    add_directories(verb)
    verb.add_argument(
        "--interval",
        metavar="SECONDS",
        type=seconds,
        default=1.0,
        help="between two looks; rates are over it (default: 1)",
    )
    verb.add_argument("--once", action="store_true", help="look twice, print all tables, and end")
    add_json(verb)


def run(options: argparse.Namespace) -> int:
    """Show the screen until a key ends it; with --once print what it would show."""
    if not options.interval >= _LEAST_S:
        raise UsageError(f"--interval takes seconds, at least {_LEAST_S:g}, not {options.interval:g}")
    if options.json and not options.once:
        raise UsageError("--json prints what is there once: add --once")
    dirs = chosen_dirs(options)
    for directory in dirs:
        try:
            with open_counters(directory):
                pass  # one that is not there ends the verb with what to do
        except DataLossError:
            continue  # the screen says what is wrong with it
    from aeron_spark.live.compare import facts  # noqa: PLC0415 - what imports Arrow, after the checks
    from aeron_spark.live.reader import Reader  # noqa: PLC0415 - as above

    reader = Reader(dirs, options.archive_dir)
    if options.once:
        before = reader.snapshot()
        time.sleep(options.interval)
        return _print(facts(reader.snapshot(), before), as_json=options.json)
    try:
        from aeron_spark.top import terminal  # noqa: PLC0415 - a package that not all have
    except ModuleNotFoundError as error:
        print(f"{options.command}: {error}", file=sys.stderr)
        return 1
    if not (standard_input().isatty() and sys.stdout.isatty()):
        raise UsageError("the screen needs a terminal; --once prints the tables, --once --json JSON")
    last = None

    def read() -> Any:
        nonlocal last
        before, last = last, reader.snapshot()
        return facts(last, before)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    terminal.run(read, options.interval, terminal.Terminal())
    return 0


def _print(found: Any, *, as_json: bool) -> int:
    """All tables; 1 if a server is not readable or dead."""
    from aeron_spark.live.snapshot import ServerState  # noqa: PLC0415 - as above
    from aeron_spark.top.views import VIEWS  # noqa: PLC0415 - as above

    if as_json:
        print_json(dataclasses.asdict(found))
    else:
        for view in VIEWS.values():
            rows = view.rows(found)
            print(f"{len(rows)} {view.title}")
            if rows:
                print_table(
                    [column.title for column in view.columns],
                    ([column.show(row) for column in view.columns] for row in rows),
                )
            print()
        for what, count in found.left_out.items():
            print(f"{count:,} {what} left out")
    return int(any(one.state in {ServerState.UNREADABLE, ServerState.DEAD} for one in found.servers))
