"""What is missing: a skip that says what and why on a developer's machine, a failure under `CI=true`."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(reason: str) -> NoReturn:
    """End the test that needs something absent; `reason` names it and the remedy."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"needed under CI=true: {reason}", pytrace=False)
    pytest.skip(reason)
