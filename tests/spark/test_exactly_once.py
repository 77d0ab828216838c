"""The short form of tests/spark/exactly_once.py: a task, the query and the archive killed, one each."""

from __future__ import annotations

from tests.spark.exactly_once import exactly_once


def test_what_is_read_committed_is_the_input() -> None:
    """The commit's own process dies with the entry written, which is the step where doubles would come from."""
    orders = [("task-half", "self"), ("before-entry", "archive"), ("after-entry", "query")]
    assert exactly_once(orders) == 0
