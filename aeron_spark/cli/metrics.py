"""`aeron-spark metrics`: what drivers and archives count, for Prometheus."""

from __future__ import annotations

import argparse
import gc
import signal
import sys
from typing import Any

from aeron_spark.cli.common import add_directories, add_verb, at_least, chosen_dirs

EXAMPLES = """\
  aeron-spark metrics --once
  aeron-spark metrics --listen 127.0.0.1:9464 --dir /dev/shm/aeron-demo --archive-dir /data/archive
  aeron-spark metrics --dir /dev/shm/aeron-a --dir /dev/shm/aeron-b
  aeron-spark metrics --table"""

LISTEN = "127.0.0.1:9464"


def add_to(verbs: Any) -> None:
    """Add the verb."""
    verb = add_verb(verbs, "metrics", run, about="serve the metrics of drivers and archives", examples=EXAMPLES)
    add_directories(verb)
    verb.add_argument(
        "--listen", metavar="HOST:PORT", default=LISTEN, help=f"where Prometheus asks (default: {LISTEN})"
    )
    verb.add_argument("--once", action="store_true", help="print the metrics and end")
    verb.add_argument("--table", action="store_true", help="print the table of all metrics, in Markdown, and end")
    verb.add_argument(
        "--max-series",
        metavar="N",
        type=at_least(1),
        default=50_000,
        help="at most so many series of a directory; aeron_series_left_out tells how many more there were (default: 50000)",
    )


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C, or print once."""
    if options.table:
        from aeron_spark.metrics.table import markdown  # noqa: PLC0415 - what follows needs more

        print(markdown(), end="")
        return 0
    try:
        from aeron_spark.metrics.exposition import Exposition  # noqa: PLC0415 - a package that not all have
    except ModuleNotFoundError as error:
        print(f"aeron-spark metrics: {error}", file=sys.stderr)
        return 1
    from aeron_spark.metrics.scrape import Scraper  # noqa: PLC0415 - as above
    from aeron_spark.metrics.server import MetricsServer  # noqa: PLC0415 - as above

    dirs = chosen_dirs(options)
    scraper = Scraper(dirs, options.archive_dir, max_series=options.max_series)
    if options.once:
        sys.stdout.flush()
        sys.stdout.buffer.write(Exposition().text(scraper.scrape())[0])
        return 0
    server = MetricsServer(options.listen, scraper.scrape)
    # What is imported stays: looking through it for garbage would cost more than a scrape.
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        print(
            f"aeron-spark metrics: serves {', '.join([*map(str, dirs), *options.archive_dir])} at {server.url}",
            flush=True,
        )
        server.serve_forever()
    except KeyboardInterrupt:
        return 0
    finally:
        server.server_close()
    return 0
