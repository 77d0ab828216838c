"""Goal: the stock tools for a driver's directory read the one of the driver under test.

Method: each tool runs as a process on a live directory with one stream; what it prints is compared with what the kit's
own reader of `cnc.dat` sees.

Spec: 05 §16, 11 C6.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.interop.test_driver_ipc import IPC, TIMEOUT_MS
from tests.kit import stock
from tests.kit.cnc import Cnc
from tests.kit.subject import Subject
from tests.kit.wait import wait_until

Opened = Callable[[Any], Any]


def test_aeron_stat_prints_every_counter(client: Any, driver_dir: Path, stream: int, opened: Opened) -> None:
    opened(client.subscription(IPC, stream))
    publication = opened(client.publication(IPC, stream))
    assert publication.awaitConnected(TIMEOUT_MS)
    # A stock client adds name and version to its heartbeat's label some time after it has begun.
    wait_until(
        lambda: all("commit=" in one.label for one in Cnc(driver_dir).counters() if "client-heartbeat" in one.label),
        timeout=TIMEOUT_MS / 1000,
        what="the client's name in its heartbeat's label",
    )
    result = stock.driver_tool("AeronStat", driver_dir, "watch=false")
    assert result.code == 0, result.out
    header = Cnc(driver_dir).header()
    assert header is not None
    assert re.search(rf"Aeron Stat \(CnC v0\.2\.0\), pid {header.pid}, heartbeat age \d+ms", result.out)
    shown = dict(re.findall(r"^ *(\d+): +-?[\d,]+ - (.*)$", result.out, re.MULTILINE))
    assert shown == {str(counter.id): counter.label for counter in Cnc(driver_dir).counters()}


def test_stream_stat_finds_the_stream(client: Any, driver_dir: Path, stream: int, opened: Opened) -> None:
    opened(client.subscription(IPC, stream))
    publication = opened(client.publication(IPC, stream))
    result = stock.driver_tool("StreamStat", driver_dir)
    assert result.code == 0, result.out
    assert f"sessionId={publication.raw().sessionId()} streamId={stream} channel={IPC}" in result.out


def test_error_and_loss_reports_are_readable_and_empty(driver_dir: Path) -> None:
    errors = stock.driver_tool("ErrorStat", driver_dir)
    assert errors.code == 0, errors.out
    assert "0 distinct errors observed" in errors.out
    losses = stock.driver_tool("LossStat", driver_dir)
    assert losses.code == 0, losses.out
    assert "0 loss entries" in losses.out


def test_driver_tool_tells_the_pid_and_ends_the_driver(subject: Subject, aeron_dir: Path) -> None:
    driver = subject.driver(aeron_dir, subject.allow_termination)
    assert stock.driver_tool("DriverTool", aeron_dir, "pid").out.strip().endswith(str(driver.pid))
    assert stock.driver_tool("DriverTool", aeron_dir, "terminate").code == 0
    assert driver.wait_end() == 0
