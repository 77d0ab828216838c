"""The threads of both servers have the names that `aeron.thread.naming` gives them (Spec: 11 T3, D19)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit import native
from tests.kit.processes import Process
from tests.kit.wait import wait_until

# Where the classic names hold, the driver's conductor runs on the main thread, which keeps the program's name.
OF_DRIVER = {"classic": {"sender", "receiver"}, "new": {"aeron-md-cnd", "aeron-md-snd", "aeron-md-rcv"}}
OF_ARCHIVE = {
    "classic": {"archive-cond", "archive-rec", "archive-rep"},
    "new": {"aeron-ar-cnd", "aeron-ar-rec", "aeron-ar-rep"},
}


def assert_named(process: Process, names: dict[str, set[str]], naming: str) -> None:
    """All of the names come, and none of the other naming is there."""

    def named() -> set[str]:
        return {path.read_text().strip() for path in Path(f"/proc/{process.pid}/task").glob("*/comm")}

    wait_until(lambda: names[naming] <= named(), 10, f"the names of {process.name}", state=named)
    other = next(names[one] for one in names if one != naming)
    assert named().isdisjoint(other)


@pytest.mark.parametrize("naming", ["classic", "new"])
def test_threads_are_named(aeron_dir: Path, archive_dir: Path, naming: str) -> None:
    setting = {"aeron.thread.naming": naming}
    with native.driver(aeron_dir, {**setting, "aeron.threading.mode": "DEDICATED"}) as driver:
        with native.archive(
            aeron_dir, archive_dir, {**setting, "aeron.archive.threading.mode": "DEDICATED"}
        ) as archive:
            assert_named(archive, OF_ARCHIVE, naming)
        assert_named(driver, OF_DRIVER, naming)
        assert "WARNING" not in driver.stderr()


def test_another_value_is_warned_of_once(aeron_dir: Path) -> None:
    settings = {"aeron.thread.naming": "bogus", "aeron.threading.mode": "DEDICATED"}
    with native.driver(aeron_dir, settings) as driver:
        assert_named(driver, OF_DRIVER, "classic")
        assert driver.stderr().count("WARNING: aeron.thread.naming=bogus") == 1
