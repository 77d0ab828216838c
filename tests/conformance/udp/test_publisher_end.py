"""Scenarios 17-23 and 36: how a stream loses its receivers and ends.

The driver's conductor timer is 100 ms here, a tenth of the default, and lingers are short where the scenario keeps its
meaning: what is bounded by timer ticks is told from what waits for a linger by the default linger of 5 s.
"""

from __future__ import annotations

import time
from contextlib import ExitStack

import pytest

from tests.conformance.udp import raw
from tests.conformance.udp.conftest import Drivers
from tests.conformance.udp.driver import IMPATIENT, PUBLICATIONS_REVOKED, SND_POS, Driver, Publishing

CHANNEL = "aeron:udp?endpoint={}|term-length=64k"
# What the driver does at once or within a few ticks comes before this, half of any timeout that it could have waited for.
SOON_S = 2.5
TRIES = 5


@pytest.fixture
def stream(driver: Driver, q: raw.Socket, opened: ExitStack) -> Publishing:
    """A publication to Q without an answer yet."""
    return opened.enter_context(Publishing(driver, CHANNEL.format(q.endpoint)))


def beats(came: list[raw.Datagram]) -> list[raw.Data]:
    """The heartbeats among datagrams."""
    return [one.frame for one in came if isinstance(one.frame, raw.Data) and one.frame.is_heartbeat]


def sent_and_closed(stream: Publishing, q: raw.Socket) -> float:
    """Send 100 bytes, consume them, close; returns when it was closed."""
    stream.connect(q)
    end = stream.offer(100)
    q.expect(raw.Data, lambda one: not one.is_heartbeat)
    q.send(stream.status(end))
    closed = time.time()
    stream.close()
    return closed


def lingering(
    driver: Driver, q: raw.Socket, opened: ExitStack, params: str, linger: float
) -> tuple[Publishing, list[raw.Datagram]]:
    """A stream that was closed, and what came until it had gone.

    It comes every 100 ms from soon after the close to the end of the linger, and then no more. The best of a few tries: for a
    machine that stood still meanwhile, the time was over before much was sent.
    """
    seen = []
    for _ in range(TRIES):
        stream = opened.enter_context(Publishing(driver, CHANNEL.format(q.endpoint) + params))
        closed = sent_and_closed(stream, q)
        stream.await_gone()
        came = q.drain()
        q.silence(0.25)
        at = [one.at - closed for one in came]
        seen.append([round(one * 1000) for one in at])
        if len(at) > linger / 0.2 and at[0] < SOON_S and at[-1] >= linger - 0.15:
            return stream, came
    raise AssertionError(f"ms after the close: {seen}")


def test_s17_silence_disconnects(drivers: Drivers, q: raw.Socket, opened: ExitStack) -> None:
    """Without SMs for the connection timeout (here 0.6 s) the client is not connected; heartbeats go on."""
    driver = drivers(IMPATIENT)
    stream = opened.enter_context(Publishing(driver, CHANNEL.format(q.endpoint)))
    stream.connect(q)
    for _ in range(TRIES):
        sent = [q.send(stream.status())]
        for _ in range(4):  # kept alive beyond the timeout
            q.collect(0.2)
            sent.append(q.send(stream.status()))
        if max(raw.intervals(sent)) < 0.5:  # else this machine stood still
            break
    stream.await_disconnected()
    assert time.time() - sent[-1] >= 0.6
    q.drain()
    assert len(beats(q.take(3))) == 3
    q.send(stream.status())
    stream.await_connected()


def test_s18_eos_status_disconnects_at_once(stream: Publishing, q: raw.Socket) -> None:
    """An SM with the EOS flag disconnects at once, not after 5 s of silence."""
    stream.connect(q)
    sent = q.send(stream.status(flags=raw.STATUS_EOS))
    stream.await_disconnected()
    assert time.time() - sent < SOON_S


def test_s19_close_ends_with_eos_status(stream: Publishing, q: raw.Socket) -> None:
    """After a close come heartbeats 0xE0 at the final position; an EOS SM silences them long before the linger of 5 s."""
    closed = sent_and_closed(stream, q)
    beat, datagram = q.expect(raw.Data, lambda one: one.is_heartbeat and one.is_eos)
    assert (beat.flags, beat.position(stream.initial_term_id)) == (raw.EOS_HEARTBEAT, 160)
    assert datagram.at - closed < SOON_S
    sent = q.send(stream.status(160, flags=raw.STATUS_EOS))
    stream.await_gone()
    came = q.drain()
    assert all(one.at - sent < SOON_S for one in came)
    assert {one.flags for one in beats(came)} <= {raw.EOS_HEARTBEAT}
    q.silence(0.25)


def test_s20_close_lingers(driver: Driver, q: raw.Socket, opened: ExitStack) -> None:
    """Without an EOS SM the heartbeats 0xE0 go on for the linger (here 0.8 s) and stop."""
    stream, came = lingering(driver, q, opened, "|linger=800ms", 0.8)
    ended = [one for one in came if one.frame.is_heartbeat and one.frame.is_eos]
    raw.assert_period(ended, 0.1)
    assert {one.frame.position(stream.initial_term_id) for one in ended} == {160}


def test_s21_eos_can_be_off(driver: Driver, q: raw.Socket, opened: ExitStack) -> None:
    """With eos=false heartbeats keep 0xC0 until the linger ends."""
    _, came = lingering(driver, q, opened, "|linger=500ms|eos=false", 0.5)
    assert {one.flags for one in beats(came)} == {raw.UNFRAGMENTED}


def test_s22_eos_waits_for_what_is_unsent(stream: Publishing, q: raw.Socket) -> None:
    """A close with unsent data and a live receiver of window 0: no EOS until a window is granted and the data is sent."""
    stream.connect(q, window=0)
    end = stream.offer(100)
    stream.close()
    for _ in range(5):
        q.send(stream.status(0, 0))
        came = q.collect(0.1)
        assert {one.flags for one in beats(came)} <= {raw.UNFRAGMENTED}
        assert len(beats(came)) == len(came)
    q.send(stream.status())
    came = []
    data, _ = q.expect(raw.Data, lambda one: not one.is_heartbeat, passing=came)
    assert data.length == 132
    beat, _ = q.expect(raw.Data, lambda one: one.is_eos, passing=came)
    assert not [one for one in beats(came) if one.is_eos]
    assert (beat.flags, beat.position(stream.initial_term_id)) == (raw.EOS_HEARTBEAT, end)
    q.send(stream.status(end, flags=raw.STATUS_EOS))
    stream.await_gone()


def test_s23_revoke_shows_in_heartbeats(driver: Driver, stream: Publishing, q: raw.Socket) -> None:
    """A revoked publication's heartbeats are 0xF0, and Publications Revoked grows by one."""
    stream.connect(q)
    stream.offer(100)
    before = driver.system(PUBLICATIONS_REVOKED)
    revoked = time.time()
    stream.publication.revoke()
    beat, datagram = q.expect(raw.Data, lambda one: one.is_heartbeat and one.flags == raw.REVOKED_HEARTBEAT)
    assert beat.position(stream.initial_term_id) == 160
    assert datagram.at - revoked < SOON_S
    driver.await_system(PUBLICATIONS_REVOKED, before + 1)


def test_s36_ended_stream_answers_no_setup_request(stream: Publishing, q: raw.Socket) -> None:
    """A closed and fully sent publication, its EOS heartbeats running, gives no SETUP to an SM that asks for one."""
    sent_and_closed(stream, q)
    q.expect(raw.Data, lambda one: one.is_eos)
    stream.await_counter(SND_POS, 160)
    q.send(stream.send_setup())
    q.silence(0.3, raw.Setup)
    q.send(stream.status(160, flags=raw.STATUS_EOS))
    stream.await_gone()
