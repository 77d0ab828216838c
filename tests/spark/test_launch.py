"""Goal: tasks start a driver whatever other users of the machine have put into its shared memory, and use none of theirs.

Method: a folder stands for the shared memory, with what a stranger may have made there: links, open and foreign directories
(those given away where root runs this), and a lock on all of it. No Spark: what its tasks call.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from aeron_spark import Client, MediaDriver, UsageError, WaitTimeoutError
from aeron_spark.driver import is_driver_active
from aeron_spark.spark import launch
from tests.kit import dirs

STRANGER = 65534
NAME = f"aeron-spark-{os.geteuid()}"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with dirs.fresh("shared") as folder:
        monkeypatch.setattr(launch, "SHARED_MEMORY", folder)
        yield folder


def test_a_folder_of_ones_own(shared: Path) -> None:
    folder = launch.own_folder()
    assert folder == shared / NAME == launch.own_folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("lack", ["none", "too little"])
def test_without_shared_memory_it_is_a_temporary_folder(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lack: str
) -> None:
    monkeypatch.setattr(launch.tempfile, "gettempdir", lambda: str(tmp_path))
    if lack == "none":
        monkeypatch.setattr(launch, "SHARED_MEMORY", shared / "none")
    else:
        monkeypatch.setattr(launch, "LEAST_SHARED_MEMORY_BYTES", 1 << 62)
    assert launch.own_folder() == tmp_path / NAME


@pytest.mark.parametrize("what", ["link", "file", "open", pytest.param("foreign", marks=needs_root)])
def test_a_name_that_was_taken_first(shared: Path, tmp_path: Path, what: str) -> None:
    taken = shared / NAME
    if what == "link":
        taken.symlink_to(tmp_path)
    elif what == "file":
        taken.touch()
    else:
        taken.mkdir(0o700)
        taken.chmod(0o777 if what == "open" else 0o700)
        if what == "foreign":
            os.chown(taken, STRANGER, STRANGER)
    folder = launch.own_folder()
    assert folder != taken
    assert folder.parent == shared
    assert folder == launch.own_folder(), "every process finds the same"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_lock_on_shared_memory_stops_nothing(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "LOCK_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setenv("AERON_DIR", str(shared / "none"))
    handle = os.open(shared, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        where = launch.ensure_driver(None, application="test", may_launch=True)
        assert where == str(shared / NAME / "test")
        with Client(where) as client:
            assert client.client_id >= 0
    finally:
        os.close(handle)


def test_a_link_to_a_live_driver_is_not_used(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = shared / "link"
    with dirs.fresh("aeron") as aeron_dir, MediaDriver(aeron_dir):
        assert is_driver_active(aeron_dir)
        link.symlink_to(aeron_dir)
        _check_refused(link, "symbolic link", monkeypatch)


@needs_root
def test_a_strangers_driver_is_not_used(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with dirs.fresh("aeron") as aeron_dir, MediaDriver(aeron_dir):
        os.chown(aeron_dir, STRANGER, STRANGER)
        _check_refused(aeron_dir, "AERON_SPARK_DIR_OWNER", monkeypatch)
        monkeypatch.setenv("AERON_SPARK_DIR_OWNER", str(STRANGER))
        assert launch.ensure_driver(None, application="test", may_launch=False) == str(aeron_dir)
        Client(aeron_dir).close()


def _check_refused(default: Path, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the default it is passed over, by its name it is refused; a client refuses both."""
    monkeypatch.setenv("AERON_DIR", str(default))
    assert not is_driver_active(default)
    for call in (
        lambda: launch.ensure_driver(None, application="test", may_launch=False),
        lambda: launch.ensure_driver(str(default), application="test", may_launch=True),
        lambda: Client(default),
        Client,
    ):
        with pytest.raises(UsageError, match=why):
            call()
    assert launch.ensure_driver(None, application="test", may_launch=True) == str(launch.own_folder() / "test")


def test_one_process_at_a_time_starts_drivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "own_folder", lambda: tmp_path)
    monkeypatch.setattr(launch, "LOCK_TIMEOUT_SECONDS", -1.0)
    for _ in range(2):
        with (
            launch._locked(),
            pytest.raises(WaitTimeoutError, match="another process has held the lock"),
            launch._locked(),
        ):
            pass
