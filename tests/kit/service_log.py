"""The servers' service log on standard error."""

from __future__ import annotations

import re

_INFORMATION = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO (?:driver|archive): .*")


def problems(stderr: str) -> list[str]:
    """All lines but those that only inform: errors, warnings, and what is not of the log."""
    return [line for line in stderr.splitlines() if not _INFORMATION.fullmatch(line)]
