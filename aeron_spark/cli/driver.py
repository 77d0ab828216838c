"""`aeron-spark driver`: run a media driver in the foreground."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from aeron_spark.cli.common import add_dir, add_verb
from aeron_spark.config import executable, misspelt
from aeron_spark.doctor_facts import read_settings
from aeron_spark.errors import UsageError

EXAMPLES = """\
  aeron-spark driver --dir /dev/shm/aeron-demo
  aeron-spark driver -D aeron.threading.mode=SHARED -D aeron.ipc.term.buffer.length=16m
  aeron-spark driver low-latency.properties"""


def add_to(verbs: Any) -> None:
    """Add the verb."""
    verb = add_verb(verbs, "driver", run, about="run a media driver until Ctrl-C", examples=EXAMPLES)
    add_dir(verb)
    add_settings(verb)


def add_settings(verb: argparse.ArgumentParser) -> None:
    """Options of both native servers."""
    verb.add_argument(
        "-D",
        dest="define",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting by its stock name; repeatable",
    )
    verb.add_argument(
        "--exit-when-idle", metavar="DURATION", help="end when nobody used it for this long, for example 20s"
    )
    verb.add_argument("--log-format", choices=("text", "json"), help="form of the service log on standard error")
    verb.add_argument(
        "--log-level",
        choices=("info", "warning", "error", "off"),
        help="what the service log leaves out (default: info)",
    )
    verb.add_argument("properties", nargs="*", metavar="FILE", help="property files, read in order after -D")


def run(options: argparse.Namespace) -> NoReturn:
    """Become the native driver; its exit codes are those of aeronmd."""
    become(
        "aeron-spark-driver",
        options,
        {"aeron.dir": options.dir, "aeron.spark.driver.exit.when.idle": options.exit_when_idle},
    )


def become(
    name: str, options: argparse.Namespace, settings: dict[str, str | None], *, arguments: Sequence[str] = ()
) -> NoReturn:
    """Replace this process by a native server."""
    path = str(executable(name))
    with contextlib.suppress(UsageError):  # the server itself reports what it can't read
        for given, nearest in misspelt(read_settings(options.define, options.properties, {})).items():
            print(
                f"{options.command}: {given} is no setting and has no effect, did you mean {nearest}?",
                file=sys.stderr,
                flush=True,
            )
    log = {"aeron.spark.log.format": options.log_format, "aeron.spark.log.level": options.log_level}
    defines = [f"-D{key}={value}" for key, value in {**settings, **log}.items() if value is not None]
    defines += [f"-D{define}" for define in options.define]
    os.execv(path, [path, *arguments, *defines, *options.properties])  # noqa: S606 - our own executable
