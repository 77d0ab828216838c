"""The short form of tests/spark/exactly_once.py: each step once, mostly against the process that takes it."""

from __future__ import annotations

import pytest

from tests.spark.exactly_once import STEPS, exactly_once

pytestmark = pytest.mark.more


def test_what_is_read_committed_is_the_input() -> None:
    """The query dies with the entry written, where doubles would come from: the last order, as it takes a second Spark."""
    others = {"before-entry": "archive", "after-entry": "query"}
    orders = sorted(((name, others.get(name, "self")) for name in STEPS), key=lambda order: order[1] == "query")
    assert exactly_once(orders) == 0


@pytest.mark.usefixtures("with_jar")
def test_so_it_is_where_the_jvm_gathers_the_rows() -> None:
    """The task dies while the JVM sends it rows, and when it has them all."""
    assert exactly_once([("task-half", "self"), ("task-done", "self")], engine="jvm") == 0
