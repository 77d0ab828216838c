"""Checks what a test may use of the machine: what only tests marked `interop` may use, and what is missing."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

MARK = "interop"
# Whether the test that runs carries the mark. Programs that are no tests, as the benchmarks, may use all there is.
_is_marked = True


def mark(*, is_marked: bool) -> None:
    """Say whether the test that begins carries the mark."""
    global _is_marked  # noqa: PLW0603 - one test at a time
    _is_marked = is_marked


def beyond(what: str) -> None:
    """Refuse `what` to a test without the mark: it would fail where there is only what `make run` needs."""
    if not _is_marked:
        pytest.fail(f"{what} is more than `make test` may need: mark this test with pytest.mark.{MARK}", pytrace=False)


def missing(reason: str) -> NoReturn:
    """End a test that needs something absent: a skip, under `CI=true` a failure; `reason` names it and the remedy."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"needed under CI=true: {reason}", pytrace=False)
    pytest.skip(reason)
