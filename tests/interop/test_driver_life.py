"""Goal: the driver under test lives and dies as a stock client and a stock driver expect.

Method: drivers with short timeouts of their own; clients that fall silent (an invoked conductor that no one invokes, or
a process killed with -9), termination requests, signals, and a second driver on a directory that is taken.

Spec: 01 §1.7.
"""

# ruff: noqa: PLR0917 - fixtures are arguments
from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.interop.archiving import QUICK_LIVENESS
from tests.interop.test_driver_ipc import FRAGMENTED, IPC, TIMEOUT_MS, assert_read, wait_event
from tests.kit import native, stock
from tests.kit.cnc import CLEAN_END, Cnc
from tests.kit.processes import Process
from tests.kit.subject import Subject
from tests.kit.wait import wait_until

TIMEOUTS = "Client liveness timeouts"

Opened = Callable[[Any], Any]


def test_a_client_that_falls_silent_is_timed_out_and_told(
    subject: Subject, peer: Any, aeron_dir: Path, stream: int, opened: Opened
) -> None:
    with subject.driver(aeron_dir, QUICK_LIVENESS):
        watcher = opened(peer.client(str(aeron_dir)))
        silent = opened(peer.invokedClient(str(aeron_dir)))
        subscription = opened(watcher.subscription(IPC, stream))
        publication = silent.exclusivePublication(IPC, stream)
        session, client_id = publication.raw().sessionId(), silent.aeron().clientId()
        publication.awaitConnected(TIMEOUT_MS)
        publication.publish(stream, 0, 10, [100], TIMEOUT_MS)
        heartbeat = next(c for c in Cnc(aeron_dir).counters() if c.type_id == 11 and c.registration_id == client_id)
        assert heartbeat.label.startswith(f"client-heartbeat: id={client_id}")

        wait_until(lambda: Cnc(aeron_dir).value_of(TIMEOUTS) == 1, 30, "the client to be timed out")
        wait_event(watcher, f"unavailable-counter id={heartbeat.id} registration={client_id}")
        assert_read(opened(subscription.read(10, None)), stream, 10, [100])
        wait_event(watcher, f"unavailable-image session={session} ")
        wait_until(
            lambda: not any(c.owner_id == client_id for c in Cnc(aeron_dir).counters()), 10, "its counters to go"
        )

        def woken_and_closed() -> bool:
            silent.invoke()
            return bool(publication.raw().isClosed())

        wait_until(woken_and_closed, 10, "the client to learn of it")
        error = wait_event(silent, "error ")
        assert "TimeoutException" in error


def test_a_client_killed_with_9_is_reaped_and_its_reader_gets_what_it_wrote(
    subject: Subject, peer: Any, aeron_dir: Path, stream: int, opened: Opened
) -> None:
    with subject.driver(aeron_dir, QUICK_LIVENESS):
        watcher = opened(peer.client(str(aeron_dir)))
        subscription = opened(watcher.subscription(IPC, stream))
        load = stock.peers(
            ["ipc-pub", "--dir", aeron_dir, "--stream", str(stream), "--warmup", "10", "--count", "1000000000"]
        )
        victim = Process("publisher", load)
        reading = opened(subscription.read(1000, None))
        assert reading.awaitEnd(20_000)
        wait_event(watcher, "available-image ")
        victim.kill()
        wait_until(lambda: Cnc(aeron_dir).value_of(TIMEOUTS) == 1, 30, "the client to be timed out")
        drained = opened(subscription.read(1_000_000_000, None))
        wait_event(watcher, "unavailable-image ")
        assert drained.seen() > 0


@pytest.mark.parametrize("allowed", [True, False])
def test_a_termination_request_is_subject_to_the_validator(
    subject: Subject, peer: Any, aeron_dir: Path, stream: int, opened: Opened, *, allowed: bool
) -> None:
    driver = subject.driver(aeron_dir, subject.allow_termination if allowed else None)
    assert peer.requestTermination(str(aeron_dir), "token")
    if allowed:
        assert driver.wait_end() == 0
    else:
        # Commands are taken in order: an answer to a later one proves that the request was turned down.
        opened(opened(peer.client(str(aeron_dir))).publication(IPC, stream))
        assert driver.returncode is None
        driver.stop()


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_driver_orderly(
    subject: Subject, peer: Any, aeron_dir: Path, stream: int, signum: signal.Signals
) -> None:
    driver = subject.driver(aeron_dir, {"aeron.dir.delete.on.shutdown": "false"})
    client = peer.client(str(aeron_dir))
    client.publication(IPC, stream)
    assert list((aeron_dir / "publications").iterdir())
    code = driver.stop(signum)
    assert Cnc(aeron_dir).heartbeat_ms() == CLEAN_END
    assert not list((aeron_dir / "publications").iterdir()), "log buffers are deleted at an orderly end"
    wait_event(client, "error DriverTimeoutException")
    client.close()
    if not subject.is_java:
        assert code == signum, driver.report()


def test_a_directory_is_deleted_at_the_end_where_told_so(subject: Subject, aeron_dir: Path) -> None:
    subject.driver(aeron_dir, {"aeron.dir.delete.on.shutdown": "true"}).stop()
    assert not aeron_dir.exists()


def test_a_stock_driver_refuses_the_directory_of_a_live_driver(
    subject: Subject, peer: Any, aeron_dir: Path, stream: int, opened: Opened
) -> None:
    with subject.driver(aeron_dir) as driver:
        with stock.raises("ActiveDriverException", "Active media driver detected"):
            peer.driver(str(aeron_dir), {"aeron.dir.delete.on.start": "false"})
        assert driver.returncode is None
        opened(opened(peer.client(str(aeron_dir))).publication(IPC, stream))


def test_the_driver_refuses_the_directory_of_a_live_stock_driver(
    subject: Subject, peer: Any, aeron_dir: Path, opened: Opened
) -> None:
    if subject.is_stock:
        return
    with stock.driver(aeron_dir):
        second = Process(
            "second driver",
            [
                native.executable("aeron-spark-driver"),
                f"-Daeron.dir={aeron_dir}",
                "-Daeron.dir.delete.on.start=false",
            ],
        )
        assert second.wait_end() == 1
        assert "ctive" in second.stderr()
        assert str(aeron_dir) in second.stderr()
        opened(peer.client(str(aeron_dir)))


def test_the_directory_of_a_killed_driver_is_taken_over(
    subject: Subject, peer: Any, aeron_dir: Path, stream: int, opened: Opened
) -> None:
    settings = {"aeron.driver.timeout": "500", "aeron.dir.delete.on.start": "false", "aeron.timer.interval": "100ms"}
    first = subject.driver(aeron_dir, settings)
    first.kill()
    wait_until(lambda: not Cnc(aeron_dir).is_live(within_ms=700), 10, "the heartbeat to grow old")
    with subject.driver(aeron_dir, settings):
        client = opened(peer.client(str(aeron_dir)))
        reading = opened(opened(client.subscription(IPC, stream)).read(10, None))
        publication = opened(client.publication(IPC, stream))
        assert publication.awaitConnected(TIMEOUT_MS)
        publication.publish(stream, 0, 10, [100], TIMEOUT_MS)
        assert_read(reading, stream, 10, [100])


@pytest.mark.parametrize("mode", ["DEDICATED", "SHARED_NETWORK", "SHARED", "INVOKER"])
@pytest.mark.parametrize("idle", ["yield", "sleep-ns"])
def test_every_threading_mode_serves(
    subject: Subject, peer: Any, aeron_dir: Path, stream: int, opened: Opened, mode: str, idle: str
) -> None:
    settings = {
        "aeron.threading.mode": mode,
        "aeron.conductor.idle.strategy": idle,
        "aeron.shared.idle.strategy": idle,
    }
    if subject.is_java and mode == "INVOKER":
        return  # The stock Java program has no thread to run an invoked driver on; the C one has.
    with subject.driver(aeron_dir, settings):
        client = opened(peer.client(str(aeron_dir)))
        reading = opened(opened(client.subscription(IPC, stream)).read(200, None))
        publication = opened(client.exclusivePublication(IPC, stream))
        assert publication.awaitConnected(TIMEOUT_MS)
        publication.publish(stream, 0, 200, FRAGMENTED, TIMEOUT_MS)
        assert_read(reading, stream, 200, FRAGMENTED)
        assert Cnc(aeron_dir).value_of(f"Conductor max cycle time doing its work in ns: {mode}") is not None


def test_an_abandoned_claim_is_unblocked(
    subject: Subject, peer: Any, aeron_dir: Path, stream: int, opened: Opened
) -> None:
    with subject.driver(aeron_dir, QUICK_LIVENESS):
        client = opened(peer.client(str(aeron_dir)))
        subscription = opened(client.subscription(IPC, stream))
        publication = opened(client.publication(IPC, stream))
        assert publication.awaitConnected(TIMEOUT_MS)
        publication.publish(stream, 0, 5, [100], TIMEOUT_MS)
        publication.claimAndAbandon(500)
        publication.publish(stream, 5, 5, [100], TIMEOUT_MS)
        assert_read(opened(subscription.read(10, None)), stream, 10, [100])
        wait_until(lambda: Cnc(aeron_dir).value_of("Unblocked Publications") == 1, 10, "it to be counted")


def test_an_untethered_subscriber_that_lags_is_left_behind_and_comes_back(
    subject: Subject, peer: Any, aeron_dir: Path, stream: int, opened: Opened
) -> None:
    with subject.driver(aeron_dir, QUICK_LIVENESS):
        client = opened(peer.client(str(aeron_dir)))
        lazy = opened(client.subscription(f"{IPC}?tether=false", stream))
        reading = opened(opened(client.subscription(IPC, stream)).read(1000, None))
        publication = opened(client.exclusivePublication(IPC, stream))
        wait_until(lambda: lazy.raw().imageCount() == 1, 10, "the image of the lazy one")
        assert publication.awaitConnected(TIMEOUT_MS)
        position = publication.publish(stream, 0, 1000, [1000], TIMEOUT_MS)
        assert_read(reading, stream, 1000, [1000])
        assert publication.backPressured() > 0, "it was waited for, for a while"
        wait_event(client, f"unavailable-image session={publication.raw().sessionId()} ")
        image = wait_until(lazy.image, 15, "the image to come back")
        assert image.joinPosition() == position
