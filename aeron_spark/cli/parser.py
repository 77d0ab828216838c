"""Arguments of the command line: errors show the verb's usage and the nearest right word."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from aeron_spark.names import nearest

EXIT_CODES = "exit codes: 0 done, 1 failed or something found, 2 wrong usage"


class Parser(argparse.ArgumentParser):
    """argparse's, whose verbs pass on flags that they do not know, so that the error shows the usage of the whole command."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Everything is known: what is left over is an error of this verb."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            flags = [flag for action in self._actions for flag in action.option_strings]
            unknown = next((one for one in rest if one.startswith("-")), rest[0])
            closest = nearest(unknown.partition("=")[0], flags) if unknown.startswith("--") else ""
            self.error(f"unrecognized arguments: {' '.join(rest)}{closest}")
        return found, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known: Sequence[str] = [str(one) for one in action.choices]
            raise argparse.ArgumentError(
                action, f"there is no {value!r}, there are {', '.join(known)}{nearest(str(value), known)}"
            )
