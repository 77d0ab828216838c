"""Goal: a stock AeronArchive client runs a whole day's life on the archive under test, and every byte is as published.

Method: tests/interop/archive_day.py, with recordings of 1 MiB; `make interop-long` has the same with 64 MiB.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from tests.interop.archive_day import Day
from tests.kit.subject import Subject


def test_a_day(subject: Subject, peer: Any) -> None:
    with ExitStack() as opened:
        day = Day(subject, peer, opened, messages=1024, timeout_ms=20_000)
        day.run()
        assert day.compared > 11 * 1024 * 992
