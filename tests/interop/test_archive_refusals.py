"""Ours and the stock archive answer each refused, or only just taken, control request alike: codes and texts are protocol.

Both get the requests of `refusal_rows`, on the same recordings; an answer of ours that differs must stand in its `DIFFERENCES`
with the reason. What stock leaves without an answer, because its decoder throws, ours does, too.

Spec: 07 §9.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.interop.refusal_rows import DIFFERENCES, GROUPS
from tests.interop.refusals import World
from tests.kit import stock


@pytest.fixture(scope="module")
def worlds() -> Iterator[tuple[World, World]]:
    """Ours and the stock archive."""
    stock.class_path_or_skip()
    with World("ours") as ours, World("stock-java") as theirs:
        yield ours, theirs


@pytest.fixture(scope="module")
def needed() -> set[str]:
    """The differences that were met."""
    return set()


@pytest.mark.parametrize("group", GROUPS)
def test_refusals_like_stock(worlds: tuple[World, World], needed: set[str], group: str) -> None:
    """What is not in the table of differences is equal, to the letter."""
    unlike = []
    for row in GROUPS[group]():
        ours, theirs = (world.provoke(row) for world in worlds)
        if ours != theirs:
            known = [pattern for pattern in DIFFERENCES if re.fullmatch(pattern, row.name)]
            needed.update(known)
            if not known:
                unlike.append((row.name, ours, theirs))
    assert unlike == []


@pytest.mark.parametrize("value", [2, -1])
@pytest.mark.parametrize(
    ("request_name", "enum", "fields"),
    [
        ("StartRecordingRequest", "sourceLocation", {}),
        ("StartRecordingRequest2", "autoStop", {}),
        ("ExtendRecordingRequest2", "sourceLocation", {"recordingId": 1}),
        ("ListRecordingSubscriptionsRequest", "applyStreamId", {"subscriptionCount": 5}),
    ],
)
def test_values_outside_enums_like_stock(
    worlds: tuple[World, World], request_name: str, enum: str, fields: dict[str, int], value: int
) -> None:
    """No answer comes."""
    for world in worlds:
        session = world.session
        session.barrier()
        session.inbox.clear()
        asked = session.request(request_name, **{"channel": "aeron:ipc", "streamId": 1002, enum: value}, **fields)
        session.barrier()
        assert [it for it in session.inbox if it.fields.get("correlationId") == asked] == []


def test_each_difference_is_one(needed: set[str]) -> None:
    """The table of differences holds no more than there are."""
    assert set(DIFFERENCES) - needed == set()
