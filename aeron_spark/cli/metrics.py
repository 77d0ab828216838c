"""`aeron-spark metrics`: what drivers and archives count, for Prometheus, or pushed by OTLP."""

from __future__ import annotations

import argparse
import gc
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from aeron_spark.cli.common import MOST_SECONDS, add_directories, add_verb, at_least, chosen_dirs, whole

EXAMPLES = """\
  aeron-spark metrics --once
  aeron-spark metrics --listen 127.0.0.1:9464 --dir /dev/shm/aeron-demo --archive-dir /data/archive
  aeron-spark metrics --dir /dev/shm/aeron-a --dir /dev/shm/aeron-b
  aeron-spark metrics --otlp http://127.0.0.1:4318 --interval 10
  aeron-spark metrics --table"""

LISTEN = "127.0.0.1:9464"
INTERVAL_S = 15


def add_to(verbs: Any) -> None:
    """Add the verb."""
    verb = add_verb(verbs, "metrics", run, about="serve or push the metrics of drivers and archives", examples=EXAMPLES)
    add_directories(verb)
    verb.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help=f"where Prometheus asks (default: {LISTEN}, but nowhere with --otlp alone)",
    )
    verb.add_argument(
        "--otlp", metavar="URL", help="push to this collector of OpenTelemetry, by OTLP over HTTP; /v1/metrics is added"
    )
    verb.add_argument(
        "--interval",
        metavar="S",
        type=whole(1, MOST_SECONDS),
        default=INTERVAL_S,
        help=f"seconds from push to push (default: {INTERVAL_S})",
    )
    verb.add_argument("--once", action="store_true", help="print the metrics, or push them with --otlp, and end")
    verb.add_argument("--table", action="store_true", help="print the table of all metrics, in Markdown, and end")
    verb.add_argument(
        "--max-series",
        metavar="N",
        type=at_least(1),
        default=50_000,
        help="at most so many series of a directory; aeron_series_left_out tells how many more there were (default: 50000)",
    )


def run(options: argparse.Namespace) -> int:
    """Serve and push until Ctrl-C, or once."""
    if options.table:
        from aeron_spark.metrics.table import markdown  # noqa: PLC0415 - what follows needs more

        print(markdown(), end="")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        return (_once if options.once else _serve)(options)
    except ModuleNotFoundError as error:  # a package that not all have
        print(f"{options.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def _once(options: argparse.Namespace) -> int:
    if options.otlp is not None:
        return 0 if _pusher(options).push() else 1
    from aeron_spark.metrics.exposition import Exposition  # noqa: PLC0415 - a package that not all have

    text, _ = Exposition().text(_scrape(options)())
    sys.stdout.flush()
    sys.stdout.buffer.write(text)
    return 0


def _serve(options: argparse.Namespace) -> int:
    """The main thread serves, or pushes where nothing is served."""
    pusher: Any = None if options.otlp is None else _pusher(options)
    listen = options.listen or (LISTEN if pusher is None else None)
    server: Any = None if listen is None else _server(listen, options)
    # What is imported stays: looking through it for garbage would cost more than a scrape.
    gc.collect()
    gc.freeze()
    shown = ", ".join([*map(str, chosen_dirs(options)), *options.archive_dir])
    if pusher is not None:
        _tell(options, f"pushes {shown} to {pusher.url} every {options.interval} s")
        if server is None:
            pusher.run()
        threading.Thread(target=pusher.run, name="aeron_spark push", daemon=True).start()
    with server:
        _tell(options, f"serves {shown} at {server.url}")
        server.serve_forever()
    return 0


def _tell(options: argparse.Namespace, line: str, file: Any = None) -> None:
    print(f"{options.command}: {line}", file=file, flush=True)


def _scrape(options: argparse.Namespace) -> Callable[[], Any]:
    """A scraper's, which is of one thread: the server and the pusher have their own."""
    from aeron_spark.metrics.scrape import Scraper  # noqa: PLC0415 - only this verb's needs

    return Scraper(chosen_dirs(options), options.archive_dir, max_series=options.max_series).scrape


def _pusher(options: argparse.Namespace) -> Any:
    from aeron_spark.metrics.push import Pusher  # noqa: PLC0415 - a package that not all have

    return Pusher(options.otlp, _scrape(options), options.interval, lambda line: _tell(options, line, file=sys.stderr))


def _server(listen: str, options: argparse.Namespace) -> Any:
    from aeron_spark.metrics.server import MetricsServer  # noqa: PLC0415 - a package that not all have

    return MetricsServer(listen, _scrape(options))
