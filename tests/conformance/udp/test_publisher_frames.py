"""Scenarios 24-27 and 35: what a publisher makes of RTTM, ERR and malformed frames, and where it may begin."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import pytest

from tests.conformance.udp import raw
from tests.conformance.udp.driver import (
    ERRORS_RECEIVED,
    INVALID_PACKETS,
    STATUS_RECEIVED,
    STATUS_REJECTED,
    Driver,
    Publishing,
    ours,
)
from tests.kit.wait import wait_until

CHANNEL = "aeron:udp?endpoint={}|term-length=64k"


@pytest.fixture
def stream(driver: Driver, q: raw.Socket, opened: ExitStack) -> Publishing:
    """A publication to Q without an answer yet."""
    return opened.enter_context(Publishing(driver, CHANNEL.format(q.endpoint)))


def test_s24_rttm_is_answered(stream: Publishing, q: raw.Socket) -> None:
    """An RTTM with the request flag is echoed with flags 0 and delta 0, before the first receiver, too; one without is not."""

    def asked(echo: int) -> raw.Frame:
        request = raw.Rttm(
            session_id=stream.session_id,
            stream_id=stream.stream_id,
            echo=echo,
            delta=77,
            receiver_id=-4711,
            flags=raw.RTTM_REQUEST,
        )
        q.send(request)
        reply, _ = q.expect(raw.Rttm)
        assert reply == raw.Rttm(
            length=40,
            session_id=stream.session_id,
            stream_id=stream.stream_id,
            echo=echo,
            delta=0,
            receiver_id=-4711,
        )
        return reply

    q.expect(raw.Setup, lambda frame: frame.session_id == stream.session_id)
    asked(-0x123456789ABCDEF)
    stream.connect(q)
    q.send(asked(0x123456789ABCDEF))
    q.silence(0.15, raw.Rttm)


def test_s25_error_reaches_the_client_once(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """An ERR of a live receiver reaches the client once; a second without a new SM is only counted."""
    stream.connect(q, receiver_id=4711)
    before = driver.system(ERRORS_RECEIVED)
    error = raw.Error(
        session_id=stream.session_id, stream_id=stream.stream_id, receiver_id=4711, tag=5, text=b"no thanks, no more"
    )
    registration = stream.publication.constants.registration_id
    expected = (registration, stream.session_id, stream.stream_id, raw.IMAGE_REJECTED, "no thanks, no more")
    q.send(error)
    wait_until(lambda: expected in driver.publication_errors, 10, "the error at the client")
    q.send(error)
    driver.await_system(ERRORS_RECEIVED, before + 2)
    stream.await_disconnected()
    q.send(stream.status(receiver_id=4711))
    stream.await_connected()
    assert driver.publication_errors.count(expected) == 1
    q.send(error)
    wait_until(lambda: driver.publication_errors.count(expected) == 2, 10, "the second error at the client")


def test_s26_what_is_no_frame_is_counted(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """7 bytes or version 1 are invalid packets; type 0x0C is not answered."""
    stream.connect(q)
    before = driver.system(INVALID_PACKETS)
    q.send(bytes([8, 0, 0, 0, 0, 0, 3]))
    driver.await_system(INVALID_PACKETS, before + 1)
    q.send(bytes([8, 0, 0, 0, 1, 0, 3, 0]))
    driver.await_system(INVALID_PACKETS, before + 2)
    received = driver.system(STATUS_RECEIVED)
    q.drain()
    q.send(bytes([8, 0, 0, 0, 0, 0, 12, 0]))
    q.send(stream.status())
    driver.await_system(STATUS_RECEIVED, received + 1)
    q.silence(0.05, raw.Setup, raw.Rttm)


@ours("Spec: 11 N1; Aeron before 1.53 passes over it")
def test_s26_a_type_that_is_none_is_counted(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """Type 0x0C is an invalid packet."""
    stream.connect(q)
    before = driver.system(INVALID_PACKETS)
    q.send(bytes([8, 0, 0, 0, 0, 0, 12, 0]))
    driver.await_system(INVALID_PACKETS, before + 1)


@ours("Spec: 04 §23 row 2 - the Java driver checks no lengths", but=("stock-c",))
def test_s27_short_status_messages_are_counted(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """An SM of 35 bytes, or of 36 with a frame length of 44, is an invalid packet and connects no receiver."""
    q.expect(raw.Setup)
    before = driver.system(INVALID_PACKETS)
    status = stream.status()
    q.send(status.encode()[:35])
    driver.await_system(INVALID_PACKETS, before + 1, timeout=3)
    q.send(replace(status, length=44))
    driver.await_system(INVALID_PACKETS, before + 2, timeout=3)
    assert not stream.publication.is_connected


def test_s35_start_position_shows_in_setup(driver: Driver, q: raw.Socket, opened: ExitStack) -> None:
    """SETUP carries an explicit start position; SMs more than half a term away from it are rejected."""
    stream = opened.enter_context(
        Publishing(driver, CHANNEL.format(q.endpoint) + "|init-term-id=7|term-id=8|term-offset=128")
    )
    setup, _ = q.expect(raw.Setup)
    assert (setup.initial_term_id, setup.active_term_id, setup.term_offset) == (7, 8, 128)
    before = driver.system(STATUS_REJECTED)
    q.send(stream.status(0))
    driver.await_system(STATUS_REJECTED, before + 1)
    assert not stream.publication.is_connected
    q.send(stream.status(raw.TERM_LENGTH + 128))
    stream.await_connected()
    beat, _ = q.expect(raw.Data)
    assert (beat.length, beat.term_id, beat.term_offset) == (0, 8, 128)
