"""Goal: stock servers as processes start, end orderly at SIGTERM, survive nothing at kill -9, and are reported.

Method: the kit's own functions on stock servers, watched through the kit's readers of `cnc.dat` and the mark file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit import mark, stock
from tests.kit.cnc import Cnc
from tests.kit.processes import Process
from tests.kit.wait import DeadlineError


def test_a_stock_driver_and_archive_end_orderly_at_sigterm(aeron_dir: Path, archive_dir: Path) -> None:
    with stock.archive(aeron_dir, archive_dir, with_driver=True) as server:
        assert Cnc(aeron_dir).is_live()
        assert server.returncode is None
    seen = mark.read(archive_dir)
    assert seen is not None
    assert seen.activity_ms == mark.CLEAN_END, "an archive that ended orderly says so in its mark file"
    assert not (aeron_dir / "cnc.dat").exists()


def test_a_killed_driver_leaves_a_directory_that_another_takes_over(
    aeron_dir: Path, peer: Any, opened: Callable[[Any], Any]
) -> None:
    first = stock.driver(aeron_dir)
    header = Cnc(aeron_dir).header()
    assert header is not None
    assert header.pid == first.pid
    first.kill()
    assert first.returncode == -9
    assert Cnc(aeron_dir).heartbeat_ms() > 0, "no one was there to write the clean end"
    with stock.driver(aeron_dir) as second:
        opened(peer.client(str(aeron_dir)))
        now = Cnc(aeron_dir).header()
        assert now is not None
        assert now.pid == second.pid


def test_a_child_that_ends_instead_of_becoming_ready_is_an_error_with_its_output() -> None:
    child = Process("child", [sys.executable, "-c", "import sys; sys.exit('no such luck')"])
    with pytest.raises(AssertionError, match="no such luck"):
        child.wait_ready(lambda: False)


def test_a_child_that_is_late_is_killed() -> None:
    child = Process("child", [sys.executable, "-c", "import time; time.sleep(600)"])
    with pytest.raises(DeadlineError, match="child to be ready"):
        child.wait_ready(lambda: False, timeout=0.05)
    assert child.returncode == -9
