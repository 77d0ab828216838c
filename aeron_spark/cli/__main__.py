"""Entry of `aeron-spark`. Exit codes: `EXIT_CODES`; the servers, which replace this process, have their own."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence

import aeron_spark
from aeron_spark.cli.parser import EXIT_CODES, Parser
from aeron_spark.errors import AeronError, UsageError
from aeron_spark.texts import escaped

#: Modules of `aeron_spark.cli`, in the order of the help.
VERBS = (
    *("driver", "archive", "doctor", "stat", "errors", "logs", "loss", "streams", "backlog", "top", "ui", "metrics"),
    *("publish", "subscribe", "cat", "grep", "sbe", "completion"),
)


def parser(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The command line with the verb that the first words name, by default and for other words with all.

    Only that verb's modules are imported, as Arrow alone takes half a second.
    """
    top = Parser(
        prog="aeron-spark",
        description="Aeron-compatible media driver and archive: run them, look at them, send and receive.",
        epilog=f"Each verb has its own --help with examples. {EXIT_CODES.capitalize()}.",
    )
    top.add_argument("--version", action="version", version=f"aeron-spark {aeron_spark.__version__}")
    verbs = top.add_subparsers(title="verbs", dest="verb", required=True, metavar="VERB")
    first, second = (*words, "", "")[:2]
    for verb in () if first == "--version" else (first,) if first in VERBS else VERBS:
        module = importlib.import_module(f"aeron_spark.cli.{verb}")
        module.add_to(verbs, *([second] if verb == "archive" else []))
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code."""
    argv = sys.argv[1:] if argv is None else argv
    options = argparse.Namespace(command="aeron-spark", verb="")  # until they are parsed
    try:
        _open_outputs()
        options = parser(argv).parse_args(argv)
        return int(options.run(options))
    except AeronError as failure:
        _print_failure(failure, options)
        return 2 if isinstance(failure, UsageError) else int(getattr(options, "failure_code", 1))
    except UnicodeDecodeError:
        raise  # of what was read, not of what was given
    except UnicodeError as failure:  # bytes that are no text, where only text will do, or no name of a host
        _print_failure(UsageError(f"what was given cannot be taken as text: {failure}"), options)
        return 2
    except KeyboardInterrupt:
        return 1
    except BrokenPipeError:
        # The reader of our output has left (`| head`); there is no one to report to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as failure:  # a folder or file that can't be read, written or deleted: its text names it
        _print_failure(failure, options)
        return int(getattr(options, "failure_code", 1))


def _open_outputs() -> None:
    """Have both outputs, and names in them that the terminal's charset lacks shown by their codes, not lost in an exception."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:  # closed by the caller, as by >&-: nobody reads it
            # Under its own number, also in a server that replaces this process, whose files must not get that number.
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            os.set_inheritable(number, True)  # noqa: FBT003 - has no names
            setattr(sys, name, open(number, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - a descriptor, until the end
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _print_failure(failure: Exception, options: argparse.Namespace) -> None:
    # Other processes and hosts write parts of such texts.
    text = "\n  ".join(escaped(line.rstrip().expandtabs(4)) for line in str(failure).rstrip().split("\n"))
    print(f"{options.command}: {text}", file=sys.stderr)
    from aeron_spark.cli.hints import hint  # noqa: PLC0415 - only failures need it, and what it imports

    remedy = hint(str(failure), options)
    if remedy:
        print(f"  -> {escaped(remedy)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
