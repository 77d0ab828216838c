"""The short form of `python -m tests.system.ten_million`: under loss, each message arrives once, in order and unharmed."""

from __future__ import annotations

import pytest

from tests.kit import stock
from tests.system.ten_million import DIRECTIONS, run

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_messages_that_check_themselves_arrive_under_loss(direction: str) -> None:
    stock.class_path_or_skip()
    outcome = run(direction, 100_000, timeout=60)
    assert outcome.messages == 100_000
    assert outcome.bytes > 20_000_000
    assert outcome.naks > 0, "nothing was lost: the test showed nothing"
    assert outcome.retransmits > 0
