"""Drivers embedded and as child processes, and what can be seen of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from aeron_spark import (
    ArchivingMediaDriver,
    Client,
    ClosedError,
    Counters,
    MediaDriver,
    PeerError,
    StorageError,
    UsageError,
    WaitTimeoutError,
)
from aeron_spark.counters import request_termination
from aeron_spark.driver import is_driver_active
from tests.kit import native
from tests.kit.wait import wait_until
from tests.python.conftest import SETTINGS


@pytest.mark.parametrize("embedded", [True, False])
def test_life_of_a_driver(aeron_dir: Path, *, embedded: bool) -> None:
    settings = {**SETTINGS, "aeron.dir.delete.on.shutdown": True}
    assert not is_driver_active(aeron_dir)
    with MediaDriver(aeron_dir, settings=settings, embedded=embedded) as driver:
        assert is_driver_active(aeron_dir)
        assert driver.is_running
        assert (driver.pid == os.getpid()) is embedded
        with Counters(aeron_dir) as counters:
            assert counters.driver().pid == driver.pid
            assert counters.row(0) is not None
            assert counters.row(999) is None
            assert [row.counter_id for row in counters.rows()] == sorted(row.counter_id for row in counters.rows())
        with (
            Client(aeron_dir, name="somebody") as client,
            client.add_subscription("aeron:ipc", 1),
            Counters(aeron_dir) as counters,
        ):
            wait_until(lambda: any("somebody" in row.label for row in counters.rows()), 5, "the client in the counters")
            assert client.client_id >= 0
    assert not driver.is_running
    assert not aeron_dir.exists()


def test_a_second_driver_is_refused(driver: MediaDriver) -> None:
    for embedded, error in ((True, UsageError), (False, PeerError)):
        with pytest.raises(error, match=str(driver.aeron_dir)):
            MediaDriver(driver.aeron_dir, settings=SETTINGS, embedded=embedded)
    assert driver.is_running


def test_termination_by_a_client(driver: MediaDriver) -> None:
    request_termination(driver.aeron_dir)
    assert driver.wait_terminated(10)
    assert not driver.is_running


def test_the_death_of_the_driver_is_told(aeron_dir: Path) -> None:
    failures: list[Exception] = []
    driver = MediaDriver(aeron_dir, settings=SETTINGS, embedded=False)
    with Client(aeron_dir, timeout=1.0, on_error=failures.append) as client:
        os.kill(driver.pid, signal.SIGKILL)
        wait_until(lambda: client.is_closed and bool(failures), 20, "the client to notice and to tell")
    driver.close()


def test_what_was_made_from_a_client_tells_the_death_of_its_driver(aeron_dir: Path) -> None:
    driver = MediaDriver(aeron_dir, settings=SETTINGS)
    with Client(aeron_dir, keepalive_interval=0.05, on_error=lambda _: None) as client:
        counter = client.add_counter(1234, "mine")
        counter.value = 41
        publication = client.add_publication("aeron:ipc", 1)
        subscription = client.add_subscription("aeron:ipc", 1)
        publication.wait_connected(10)
        image = subscription.wait_image(10)
        made = (counter, publication, subscription, image)
        assert not any(one.is_closed for one in made)
        driver.close()
        wait_until(lambda: client.is_closed, 20, "the client to notice")
        assert all(one.is_closed for one in made)
        for call in (
            lambda: counter.value,
            lambda: setattr(counter, "value", 42),
            lambda: counter.add(1),
            lambda: publication.position,
            lambda: publication.position_limit,
            lambda: subscription.poll(lambda *_: None),
            lambda: subscription.wait_image(0),
            lambda: subscription.image(1),
            subscription.images,
            lambda: subscription.resolved_endpoint,
            lambda: image.poll(lambda *_: None),
            image.poll_batch,
            lambda: image.is_ended,
            lambda: image.reject("late"),
        ):
            with pytest.raises(ClosedError, match="the media driver has been shut down"):
                call()
        assert not publication.is_connected
        assert not subscription.is_connected
        assert image.position == 0


def test_an_image_that_has_ended_has_ended_also_when_the_driver_dies(aeron_dir: Path) -> None:
    driver = MediaDriver(aeron_dir, settings=SETTINGS)
    with Client(aeron_dir, keepalive_interval=0.05, on_error=lambda _: None) as client:
        with client.add_subscription("aeron:ipc", 1) as subscription:
            with client.add_exclusive_publication("aeron:ipc", 1) as publication:
                image = subscription.wait_image(10)
                publication.offer_batch([b"x"])
            assert image.poll_batch(10).num_rows == 1
            wait_until(lambda: image.is_ended, 20, "the end of the stream")
            driver.close()
            wait_until(lambda: client.is_closed, 20, "the client to notice")
            assert image.is_ended
            image.close()


def test_what_is_closed_waits_for_no_other_call_of_its_client(aeron_dir: Path) -> None:
    with native.driver(aeron_dir) as driver, Client(aeron_dir) as client:
        subscription = client.add_subscription("aeron:ipc", 1)
        publication = client.add_publication("aeron:ipc", 1)
        image = subscription.wait_image(10)
        publication.revoke()
        wait_until(lambda: image.is_closed, 20, "the image to be closed")
        driver.pause()
        adding = threading.Thread(target=lambda: client.add_counter(1234, "mine").close())
        adding.start()
        wait_until(lambda: is_taken(client), 20, "the call to wait for the driver")
        assert image.poll(lambda *_: None) == 0
        assert adding.is_alive(), "the poll has waited for it"
        driver.resume()
        adding.join()


def is_taken(client: Client) -> bool:
    """Whether another thread is in a call of it."""
    is_free = client._lock.acquire(blocking=False)
    if is_free:
        client._lock.release()
    return not is_free


def test_an_image_whose_publisher_has_gone_is_closed_and_no_error(driver: MediaDriver) -> None:
    with Client(driver.aeron_dir) as client, client.add_subscription("aeron:ipc", 1) as subscription:
        publication = client.add_publication("aeron:ipc", 1)
        with subscription.wait_image(10) as image:
            publication.revoke()
            wait_until(lambda: image.is_closed, 20, "the image to be closed")
            assert image.poll(lambda *_: None) == 0
            assert not subscription.is_closed


def test_errors_are_logged(client: Client) -> None:
    with pytest.raises(PeerError):
        client.add_publication("aeron:ipc?mtu=1", 1)
    with Counters(client.aeron_dir) as counters:
        entries = counters.errors()
        assert len(entries) == 1
        assert entries[0].count == 1
        assert abs(entries[0].last_ms - time.time() * 1000) < 60_000
        assert counters.errors(since_ms=entries[0].last_ms + 1) == []


def test_directories_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=str(tmp_path)):
        Counters(tmp_path / "absent")
    with pytest.raises(WaitTimeoutError, match="absent"):
        Client(tmp_path / "absent", timeout=0.1)


def test_ctrl_c_during_a_long_call_is_not_late(driver: MediaDriver) -> None:
    code = (
        "import sys, aeron_spark\n"
        "with aeron_spark.Client(sys.argv[1]) as client:\n"
        "    subscription = client.add_subscription('aeron:ipc', 1)\n"
        "    print('ready', flush=True)\n"
        "    subscription.poll_batch(600.0)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, driver.aeron_dir], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors


def test_a_misspelt_setting_is_warned_of(aeron_dir: Path, archive_dir: Path) -> None:
    settings = {**SETTINGS, "aeron.threading.mod": "SHARED", "aeron.archive.segment.file.lenght": "64k", "my.own": "1"}
    with (
        pytest.warns(UserWarning, match="is no setting") as told,
        ArchivingMediaDriver(archive_dir, aeron_dir, settings=settings),
    ):
        pass
    assert [str(one.message) for one in told] == [
        "aeron.threading.mod is no setting and has no effect, did you mean aeron.threading.mode?",
        "aeron.archive.segment.file.lenght is no setting and has no effect, did you mean aeron.archive.segment.file.length?",
    ]
