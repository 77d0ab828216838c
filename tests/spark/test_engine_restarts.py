"""The short form of tests/spark/engine_restarts.py: each engine continues a batch that the other one left."""

from __future__ import annotations

import random

import pytest

from tests.kit import require
from tests.spark.engine_restarts import engine_restarts
from tests.spark.session import JAR


@pytest.mark.more
def test_engines_in_turn_give_each_row_once(rng: random.Random) -> None:
    if not JAR:
        require.missing("the jar of Spark's JVM, which `make build` makes where there is a JDK of Java 17 or newer")
    assert engine_restarts(4, rng.randrange(1 << 31)) == 0
