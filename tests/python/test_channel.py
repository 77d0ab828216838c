"""Channel URIs as text."""

from __future__ import annotations

import pytest

from aeron_spark import ChannelUri, UsageError


def test_build_and_parse_give_the_same() -> None:
    uri = ChannelUri.ipc(term_length="64k", sparse=True, session_id=-5)
    assert str(uri) == "aeron:ipc?term-length=64k|sparse=true|session-id=-5"
    assert ChannelUri.parse(str(uri)) == uri


def test_udp_and_spy() -> None:
    uri = ChannelUri.udp("localhost:40123", mtu=1408)
    assert str(uri.spy()) == "aeron-spy:aeron:udp?endpoint=localhost:40123|mtu=1408"
    assert ChannelUri.parse(str(uri.spy())).is_spy


def test_parameters_are_set_and_removed() -> None:
    uri = ChannelUri.parse("aeron:ipc?alias=a|linger=5s")
    assert str(uri.with_params(linger=None, tether=False)) == "aeron:ipc?alias=a|tether=false"


def test_an_equals_sign_may_stand_in_a_parsed_value() -> None:
    assert ChannelUri.parse("aeron:ipc?alias=a=b").params["alias"] == "a=b"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ipc",
        "aeron:tcp",
        "udp://x",
        "aeron:ipc?",
        "aeron:ipc?alias",
        "aeron:ipc?=x",
        "aeron:ipc?alias=",
        "aeron:ipc?a=1||b=2",
    ],
)
def test_wrong_text(text: str) -> None:
    if text == "aeron:ipc?":
        assert str(ChannelUri.parse(text)) == "aeron:ipc"
        return
    with pytest.raises(UsageError):
        ChannelUri.parse(text)


def test_too_long() -> None:
    with pytest.raises(UsageError, match="longer than 4095"):
        ChannelUri.ipc(alias="x" * 4096)
