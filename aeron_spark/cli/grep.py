"""`aeron-spark grep`: the messages in which a pattern is found, or whose fields are as asked. Exit codes are those of grep."""

from __future__ import annotations

import argparse
import re
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from aeron_spark.cli.cat import SOURCE
from aeron_spark.cli.common import add_verb
from aeron_spark.cli.messages import add_arguments, chosen, print_all
from aeron_spark.errors import UsageError

EXAMPLES = """\
  aeron-spark grep 'timeout|refused' recordings
  aeron-spark grep -c ERROR recordings 3 --from-time 2026-11-20T09:00
  aeron-spark grep -i error recordings --follow --position
  aeron-spark grep --where "symbol = 'ABC' and price >= 10" recordings 3 --sbe prices.xml
  aeron-spark grep -e ABC --channel aeron:ipc --stream 1001"""
CODES = "exit codes: 0 found, 1 nothing found, 2 failed or wrong usage"


def add_to(verbs: Any) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs, "grep", run, about="print the messages in which a pattern is found", examples=EXAMPLES, codes=CODES
    )
    verb.set_defaults(failure_code=2)
    verb.add_argument(
        "first",
        metavar="PATTERN",
        nargs="?",
        help="a regular expression (RE2) of messages' bytes; not with -e or --where",
    )
    verb.add_argument("source", metavar="SOURCE", nargs="?", help=SOURCE)
    verb.add_argument("recordings", metavar="RECORDING", nargs="*", help="ids of recordings (default: all)")
    part = verb.add_argument_group("what is found")
    part.add_argument(
        "-e", "--pattern", metavar="PATTERN", help="the pattern, where no SOURCE follows or it begins with -"
    )
    part.add_argument("-F", "--fixed", action="store_true", help="the pattern is text, not an expression")
    part.add_argument("-i", "--ignore-case", action="store_true", help="letters in either case")
    part.add_argument("-v", "--invert", action="store_true", help="messages in which it is not found")
    part.add_argument("-c", "--count", action="store_true", help="print only how many")
    part.add_argument("-q", "--quiet", action="store_true", help="print nothing, and end with the first")
    add_arguments(verb)


def run(options: argparse.Namespace) -> int:
    """Print what is found."""
    words = [word for word in (options.first, options.source, *options.recordings) if word is not None]
    pattern = options.pattern
    if pattern is None and options.where is None:
        if not words:
            raise UsageError("name a PATTERN, or fields by --where")
        pattern = words.pop(0)
    with ExitStack() as held:
        table = chosen(options, words, held)
        shown = None
        if pattern is not None:
            table = table.filter(_expression(options, pattern, table.own("value")))
            shown = _shown(options, pattern)
        if options.quiet:
            options.max = 1
            found = table.head(1).num_rows
        elif options.count:
            found = _counted(options, table)
            print(found)
        else:
            found = print_all(options, table, pattern=shown)
    return 0 if found else 1


def _counted(options: argparse.Namespace, table: Any) -> int:
    found = 0
    try:
        with table.select(table.schema.names[:1]).batches() as batches:
            for batch in batches:
                found += batch.num_rows
                if options.max is not None and found >= options.max:
                    return int(options.max)
    except KeyboardInterrupt:
        pass
    return found


def _expression(options: argparse.Namespace, pattern: str, column: str) -> pc.Expression:
    matches = pc.match_substring if options.fixed else pc.match_substring_regex
    try:
        matches(pa.array([b""]), pattern, ignore_case=options.ignore_case)
    except pa.ArrowInvalid as error:
        raise UsageError(f"{pattern!r} is no regular expression: {error}; -F takes it as text") from None
    found = matches(pc.field(column), pattern, ignore_case=options.ignore_case)
    return ~found if options.invert else found


def _shown(options: argparse.Namespace, pattern: str) -> re.Pattern[bytes] | None:
    """What to colour; Python's expressions are nearly RE2's, and what they are not is not coloured."""
    text = pattern.encode()
    try:
        made = re.compile(re.escape(text) if options.fixed else text, re.IGNORECASE if options.ignore_case else 0)
    except re.error:
        return None
    return None if options.invert or made.match(b"") else made
