"""`aeron-spark ui`: a page in the browser over drivers, archives and their messages."""

from __future__ import annotations

import argparse
import signal
import sys
from typing import Any

from aeron_spark.cli.common import add_directories, add_verb, chosen_dirs
from aeron_spark.ui import LISTEN

EXAMPLES = """\
  aeron-spark ui
  aeron-spark ui --dir /dev/shm/aeron-a --dir /dev/shm/aeron-b --archive-dir /data/archive
  aeron-spark ui --archive-dir /backup/archive --listen 127.0.0.1:9000
  aeron-spark ui --listen 10.0.0.7:8321 --token-file /etc/aeron-spark/ui.token"""


def add_to(verbs: Any) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs, "ui", run, about="serve a page: streams, recordings, messages, findings, disks", examples=EXAMPLES
    )
    add_directories(verb)
    verb.add_argument(
        "--listen",
        metavar="HOST:PORT",
        default=LISTEN,
        help=f"where the browser asks; what is not loopback wants a token (default: {LISTEN})",
    )
    verb.add_argument(
        "--token-file",
        metavar="FILE",
        help="file with the token that the page wants (default: none on loopback, elsewhere one made up and printed)",
    )


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    try:
        from aeron_spark.ui.server import UiServer, read_token  # noqa: PLC0415 - a package that not all have
    except ModuleNotFoundError as error:
        print(f"{options.command}: {error}", file=sys.stderr)
        return 1
    from aeron_spark.ui.watch import Watch  # noqa: PLC0415 - as above

    dirs = chosen_dirs(options)
    token = read_token(options.token_file) if options.token_file is not None else None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with UiServer(options.listen, Watch(dirs, options.archive_dir), token) as server:
        print(f"{options.command}: shows {', '.join([*dirs, *options.archive_dir])} at {server.url}", flush=True)
        try:
            server.run()
        except KeyboardInterrupt:
            return 0
    return 0
