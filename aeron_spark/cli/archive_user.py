"""`aeron-spark archive user`: the line of a user for an archive's credentials file."""

from __future__ import annotations

import argparse
import getpass
from typing import Any

from aeron_spark.archive.users import GROUPS, ITERATIONS, user_line
from aeron_spark.cli.common import add_verb, int64, standard_input
from aeron_spark.errors import UsageError

EXAMPLES = """\
  aeron-spark archive user alice --allow query,record >> archive.users
  aeron-spark archive user reader --allow replay < password.txt"""


def add_to(verbs: Any) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs, "user", run, about="ask for a password, print a user's line for a credentials file", examples=EXAMPLES
    )
    verb.add_argument("name", metavar="NAME", help="the user's name")
    verb.add_argument(
        "--allow", metavar="ACTIONS", required=True, help=f"with commas: {', '.join(GROUPS)}, or requests by name"
    )
    verb.add_argument(
        "--iterations",
        metavar="COUNT",
        type=int64,
        default=ITERATIONS,
        help="how dear a guess is (default %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Print the line; the password comes from the terminal, or is the first line of standard input."""
    print(user_line(options.name, _password(), options.allow.split(","), iterations=options.iterations))
    return 0


def _password() -> str:
    if not standard_input().isatty():
        return standard_input().readline().rstrip("\n")
    password = getpass.getpass("password: ")
    if getpass.getpass("again: ") != password:
        raise UsageError("the two passwords differ")
    return password
