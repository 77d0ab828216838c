"""Waiting for an event with a deadline: how a test passes time without sleeping.

The sleep between two looks is the polling step and never the proof: what ends the wait is the predicate.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_STEP_S = 0.005


class DeadlineError(AssertionError):
    """A condition did not come true in time; the text says which one and how things stood."""


def wait_until(
    predicate: Callable[[], T | None],
    timeout: float,
    what: str,
    *,
    state: Callable[[], object] | None = None,
) -> T:
    """Return the first truthy value of `predicate`.

    Args:
        predicate: Looked at about every 5 ms, at least once, and once more when the time is up.
        timeout: Seconds.
        what: Names the awaited event in the error.
        state: Describes how things stand, for the error.

    Raises:
        DeadlineError: The time was up.
    """
    deadline = time.monotonic() + timeout
    while True:
        late = time.monotonic() >= deadline
        value = predicate()
        if value:
            return value
        if late:
            now = "" if state is None else f"; now: {state()!r}"
            raise DeadlineError(f"timed out after {timeout} s waiting for {what}{now}")
        time.sleep(_STEP_S)
