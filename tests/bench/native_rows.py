"""Rows of the transport: ours in C beside stock Aeron in Java, one driver process each, the same settings."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Mapping, Sequence

import pyarrow as pa

from aeron_spark.client import Client
from tests.bench.pairs import Row, measure
from tests.kit import dirs, native, stock

# Two cores for a driver's conductor, a publisher and a subscriber: the conductor must sleep when it has nothing to do.
SETTINGS = {
    "aeron.threading.mode": "SHARED",
    "aeron.shared.idle.strategy": "backoff",
    "aeron.ipc.term.buffer.length": "64m",
    "aeron.driver.timeout": "10000",
    "aeron.archive.threading.mode": "SHARED",
    "aeron.archive.segment.file.length": "128m",
    "aeron.archive.control.channel.enabled": "false",
}
STREAM_ID = 1001
IPC_MESSAGES = {32: 20_000_000, 288: 6_000_000}


def _last_json(command: Sequence[object]) -> dict[str, float]:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True, timeout=300)
    parsed: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return parsed


def our_ipc(size: int) -> float:
    """Messages a second: publisher and subscriber of ours in C on our driver."""
    with dirs.fresh("aeron") as aeron_dir, native.driver(aeron_dir, SETTINGS):
        figures = _last_json(
            [
                native.bench_program("bench_load"),
                "stream",
                "--dir",
                aeron_dir,
                "--length",
                size,
                "--messages",
                IPC_MESSAGES[size],
                "--warmup",
                1_000_000,
            ]
        )
        return figures["messages_per_second"]


def stock_ipc(size: int) -> float:
    """Messages a second: stock Java publisher and subscriber on the stock Java driver."""
    with dirs.fresh("aeron") as aeron_dir, stock.driver(aeron_dir, settings=SETTINGS, options=()):
        load = ["--dir", aeron_dir, "--count", IPC_MESSAGES[size], "--warmup", 2_000_000]
        subscriber = subprocess.Popen(
            [str(part) for part in stock.peers(["ipc-sub", *load])], stdout=subprocess.PIPE, text=True
        )
        assert subscriber.stdout is not None
        assert subscriber.stdout.readline().strip() == "READY"
        _last_json(stock.peers(["ipc-pub", *load, "--size", size]))
        out, _ = subscriber.communicate(timeout=300)
        figures: dict[str, float] = json.loads(out.strip().splitlines()[-1])
        return figures["messages_per_second"]


def python_ipc(size: int) -> float:
    """Messages a second: Arrow batches published and polled from Python, each on a thread of its own."""
    import time

    count, batch = IPC_MESSAGES[size], 65_536
    warmup = batch * 8
    with dirs.fresh("aeron") as aeron_dir, native.driver(aeron_dir, SETTINGS), Client(aeron_dir) as client:
        with (
            client.add_subscription("aeron:ipc", STREAM_ID) as subscription,
            client.add_exclusive_publication("aeron:ipc", STREAM_ID) as publication,
        ):
            bodies = pa.array([bytes(size)] * batch, type=pa.binary())

            def publish() -> None:
                left = count + warmup
                while left > 0:
                    publication.offer_batch(bodies.slice(0, min(left, batch)), timeout=60)
                    left -= batch

            publisher = threading.Thread(target=publish)
            publisher.start()
            received = 0
            started = 0.0
            measured_from = 0
            while received < count + warmup:
                rows = subscription.poll_batch(timeout=10)
                assert rows.num_rows, "the stream went quiet"
                received += rows.num_rows
                if not started and received >= warmup:
                    started, measured_from = time.monotonic(), received
            seconds = time.monotonic() - started
            publisher.join()
            return (received - measured_from) / seconds


def run() -> list[Row]:
    """All rows of the transport beside stock Java."""
    config: Mapping[str, object] = SETTINGS
    rows = [
        measure(
            f"ipc_{size}",
            "messages/s",
            lambda size=size: our_ipc(size),
            lambda size=size: stock_ipc(size),
            peer_name=f"stock Java driver and client {stock.version()}",
            target=1.0,
            ours_config={**config, "messages": IPC_MESSAGES[size]},
            peer_config={**config, "messages": IPC_MESSAGES[size]},
        )
        for size in IPC_MESSAGES
    ]
    rows.append(
        measure(
            "ipc_python_288",
            "messages/s",
            lambda: python_ipc(288),
            lambda: our_ipc(288),
            peer_name="our own C client",
            target=0.5,
            ours_config={**config, "batch_rows": 65_536},
            peer_config=config,
        )
    )
    return rows
