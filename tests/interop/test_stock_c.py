"""The stock C driver and client as peers: ours and they move the same messages, whichever side is which."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit import native, stock_c, wait
from tests.kit.ports import free_port


@pytest.mark.parametrize("length", [32, 5_000], ids=["small", "fragmented"])
@pytest.mark.parametrize("transport", ["ipc", "udp"])
def test_a_stock_c_client_works_on_our_driver(aeron_dir: Path, transport: str, length: int) -> None:
    channel = "aeron:ipc" if transport == "ipc" else f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    with native.driver(aeron_dir, {"aeron.term.buffer.length": "256k"}):
        common = {"channel": channel, "length": length, "messages": 5_000, "verify": 1}
        subscriber = stock_c.load_process("sub", aeron_dir, **common)
        subscriber.wait_ready(lambda: "READY" in subscriber.stdout())
        sent = stock_c.load("pub", aeron_dir, **common)
        assert subscriber.wait_end(timeout=60) == 0, subscriber.report()
        received = stock_c.figures(subscriber)
    assert received["messages"] == sent["messages"] == 5_000
    assert received["checksum"] == sent["checksum"]


def test_a_stock_c_driver_runs_and_ends_as_told(aeron_dir: Path) -> None:
    with stock_c.driver(aeron_dir) as driver:
        figures = stock_c.load("rtt", aeron_dir, messages=1_000)
        assert figures["messages"] == 1_000
        assert driver.stop() == 15
    wait.wait_until(lambda: not (aeron_dir / "cnc.dat").exists(), 10, "the directory to be gone")
