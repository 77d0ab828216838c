"""The short form of tests/spark/crash_loop.py: a query killed between offset log and commit log, and at a random instant."""

from __future__ import annotations

import random

import pytest

from tests.spark.crash_loop import crash_loop

pytestmark = pytest.mark.more


def test_killed_query_loses_and_repeats_nothing(rng: random.Random) -> None:
    assert crash_loop(kills=2, rate=5000, seed=rng.randrange(1 << 31)) == 0
