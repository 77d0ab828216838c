"""The table of figures at the end of a session that attacked."""

from __future__ import annotations

import pytest

from tests.attack import figures


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print it."""
    lines = figures.table()
    if lines:
        terminalreporter.section("attacks")
        for line in lines:
            terminalreporter.line(line)
