"""The checker of sent frames refuses what Aeron 1.53 refuses (Spec: 11 §2), and accepts valid frames."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tests.conformance.udp import raw
from tests.conformance.udp.judge import Judge

STREAM: dict[str, Any] = {"session_id": 1, "stream_id": 2}
SETUP = raw.Setup(**STREAM, initial_term_id=7, active_term_id=7)
MESSAGE = raw.Data(**STREAM, term_id=7, payload=bytes(32)).encode()
BEAT = raw.Data(**STREAM, term_id=7, length=0).encode()
NEXT = raw.Data(**STREAM, term_id=7, term_offset=64, payload=bytes(32)).encode()
LAST = raw.Data(**STREAM, term_id=7, term_offset=65_472, payload=bytes(32)).encode()
PAD = raw.Pad(**STREAM, term_id=7, term_offset=64, length=1024).encode()


def put(data: bytes, at: int, layout: str, value: int) -> bytes:
    """The bytes with one field changed."""
    changed = bytearray(data)
    struct.pack_into(layout, changed, at, value)
    return bytes(changed)


def status(offset: int, window: int) -> bytes:
    """A status message."""
    return raw.Status(**STREAM, term_id=7, term_offset=offset, window=window).encode()


def nak(offset: int, gap: int) -> bytes:
    """A NAK."""
    return raw.Nak(**STREAM, term_id=7, term_offset=offset, gap=gap).encode()


RIGHT = {
    "setup": SETUP.encode(),
    "message": MESSAGE,
    "two messages": MESSAGE + NEXT,
    "the term's last frame": LAST,
    "padding at the end": MESSAGE + PAD,
    "heartbeat": BEAT,
    "half a term": status(65_504, 32_768),
    "nothing to be had": status(0, 0),
    "nak to the end": nak(64, 65_472),
    "error": raw.Error(**STREAM, text=b"x" * 1023).encode(),
    "round trip": raw.Rttm(**STREAM, echo=1).encode(),
    "response setup": raw.ResponseSetup(**STREAM, response_session_id=3).encode(),
}
WRONG = {
    "no frame": MESSAGE[:7],
    "version": put(MESSAGE, 4, "<B", 1),
    "negative length": put(MESSAGE, 0, "<i", -1),
    "unknown type": put(MESSAGE, 6, "<H", 15),
    "odd length": MESSAGE[:39],
    "bytes behind": MESSAGE + bytes(32),
    "cut off": put(MESSAGE, 0, "<i", 96),
    "another offset": MESSAGE + put(NEXT, 8, "<i", 96),
    "no data": MESSAGE + put(NEXT, 6, "<H", 2),
    "nothing in the middle": put(MESSAGE, 0, "<i", 0) + NEXT,
    "beyond the term": put(MESSAGE, 8, "<i", 65_504),
    "heartbeat at the term's end": put(BEAT, 8, "<i", 65_536),
    "heartbeat off the grid": put(BEAT, 8, "<i", 40),
    "padding, then more": MESSAGE + PAD + MESSAGE,
    "setup at the term's end": put(SETUP.encode(), 8, "<i", 65_536),
    "setup of odd terms": put(SETUP.encode(), 28, "<i", 65_537),
    "setup of short terms": put(SETUP.encode(), 28, "<i", 32_768),
    "setup without an MTU": put(SETUP.encode(), 32, "<i", 0),
    "short setup": SETUP.encode()[:39],
    "window beyond half a term": status(0, 32_769),
    "window below none": status(0, -1),
    "status off the grid": status(4, 0),
    "status at the term's end": status(65_536, 0),
    "status that tells more": put(status(0, 0), 0, "<i", 44),
    "nak beyond the term": nak(0, 65_568),
    "nak off the grid": nak(16, 64),
    "nak of less than nothing": nak(0, -1),
    "long error": raw.Error(**STREAM, text=b"x" * 1024).encode(),
    "error that tells more": raw.Error(**STREAM, text_length=5).encode(),
    "short response setup": raw.ResponseSetup(**STREAM, response_session_id=3).encode()[:16],
}


@pytest.fixture
def judge() -> Judge:
    """One that knows the stream's terms of 64 KiB."""
    judge = Judge()
    judge.learn(SETUP.encode())
    return judge


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_taken(judge: Judge, name: str) -> None:
    assert judge.refusal(RIGHT[name]) is None


@pytest.mark.parametrize("name", WRONG)
def test_what_can_not_be_is_refused(judge: Judge, name: str) -> None:
    assert judge.refusal(WRONG[name]) is not None
