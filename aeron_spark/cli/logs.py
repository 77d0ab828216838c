"""`aeron-spark logs`: what drivers and archives logged, merged by time."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from aeron_spark.cli.common import add_directories, add_json, add_verb, chosen_dirs, open_counters
from aeron_spark.logs import ErrorLogs, json_line, text_line
from aeron_spark.texts import escaped

EXAMPLES = """\
  aeron-spark logs
  aeron-spark logs --dir /dev/shm/aeron-demo --archive-dir /data/archive --follow
  aeron-spark logs --archive-dir /data/archive --json | jq .message"""

_INTERVAL_S = 0.5


def add_to(verbs: Any) -> None:
    """Add the verb."""
    about = "print what drivers and archives logged, merged by time"
    verb = add_verb(verbs, "logs", run, about=about, examples=EXAMPLES)
    add_directories(verb)
    verb.add_argument("--follow", action="store_true", help="go on with what is new or comes again, until Ctrl-C")
    add_json(verb)


def run(options: argparse.Namespace) -> int:
    """Print once, or again and again. Following, a directory that is not there now is waited for."""
    dirs = chosen_dirs(options)
    for directory in dirs:
        with open_counters(directory):
            pass  # one that is not there ends the verb with what to do
    logs = ErrorLogs(dirs=[Path(one) for one in dirs], archive_dirs=[Path(one) for one in options.archive_dir])
    logs.read()  # as does a folder
    line = json_line if options.json else text_line
    lost: set[Path] = set()
    try:
        while True:
            for one in logs.news():
                print(line(one), flush=True)
            if not options.follow:
                return 0
            for path in logs.troubles.keys() - lost:
                why = escaped(f"{path} cannot be read: {logs.troubles[path]}")
                print(f"{options.command}: {why}; its log follows when it can", file=sys.stderr, flush=True)
            lost = set(logs.troubles)
            time.sleep(_INTERVAL_S)
    except KeyboardInterrupt:
        return 0
