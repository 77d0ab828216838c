"""A driver with 1,000 publications and 1,000 subscriptions stays within the memory that docs/operate.md names, and frees it.

Method: a driver process and a client here; the driver's memory is read from /proc, its shared memory from the files. What
one stream may cost stands below and in docs/operate.md, "Memory"; a change of either is a change of both.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from aeron_spark import Client
from tests.kit import native
from tests.kit.cnc import Cnc
from tests.kit.ports import free_port
from tests.kit.processes import Process
from tests.kit.wait import wait_until

STREAMS = 1000
CLIENTS = 100
PAGE = 4096
TERM = 64 * 1024
LOG = 3 * TERM + PAGE
CLIENT_HEARTBEAT = 11

SETTINGS = {
    "aeron.term.buffer.length": "64k",
    "aeron.ipc.term.buffer.length": "64k",
    "aeron.publication.linger.timeout": "200ms",
    "aeron.image.liveness.timeout": "8s",  # longer than a busy machine stands still: an image that ends loses its messages
    "aeron.timer.interval": "100ms",
    "aeron.counters.free.to.reuse.timeout": "0",
}

# Private memory of the driver process, bytes: alone, for each IPC stream, for each UDP stream (both ends here), and for
# each UDP endpoint (both ends here).
ALONE, IPC_STREAM, UDP_STREAM, UDP_ENDPOINT = 2_000_000, 2_000, 12_000, 40_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Of the streams under test: their channel, how many logs each has, and its limit of private memory."""

    name: str
    channel: str
    logs: int
    private: int
    has_sparse_logs: bool

    def channels(self) -> list[str]:
        """One for each stream."""
        if "PORT" not in self.channel:
            return [self.channel] * STREAMS
        return [self.channel.replace("PORT", str(free_port())) for _ in range(STREAMS)]


KINDS = [
    Kind(name="ipc", channel="aeron:ipc", logs=1, private=IPC_STREAM, has_sparse_logs=False),
    Kind(
        name="udp",
        channel=f"aeron:udp?endpoint=127.0.0.1:{free_port()}",
        logs=2,
        private=UDP_STREAM,
        has_sparse_logs=False,
    ),
    Kind(
        name="udp-sparse-endpoint-each",
        channel="aeron:udp?endpoint=127.0.0.1:PORT",
        logs=2,
        private=UDP_STREAM + UDP_ENDPOINT,
        has_sparse_logs=True,
    ),
]


def private_bytes(process: Process) -> int:
    """Memory of a process that is neither a file's nor shared."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


def log_bytes(aeron_dir: Path) -> tuple[int, int]:
    """Length of all logs, and how much of it is really there."""
    length = allocated = 0
    for path in [*(aeron_dir / "publications").iterdir(), *(aeron_dir / "images").iterdir()]:
        with suppress(FileNotFoundError):  # the driver may be at deleting them
            found = path.stat()
            length += found.st_size
            allocated += found.st_blocks * 512
    return length, allocated


def counter_labels(aeron_dir: Path) -> list[str]:
    """What is counted in a directory, save the heartbeats of clients: those come when they like."""
    return [counter.label for counter in Cnc(aeron_dir).counters() if counter.type_id != CLIENT_HEARTBEAT]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_thousand_streams_stay_in_their_memory_and_give_it_back(aeron_dir: Path, kind: Kind) -> None:
    settings = {**SETTINGS, "aeron.term.buffer.sparse.file": str(kind.has_sparse_logs).lower()}
    with native.driver(aeron_dir, settings) as driver, Client(aeron_dir, timeout=60) as client:
        before, mapped = counter_labels(aeron_dir), Cnc(aeron_dir).value_of("Bytes currently mapped")
        assert private_bytes(driver) < ALONE
        assert log_bytes(aeron_dir) == (0, 0)
        with ExitStack() as streams:
            channels = kind.channels()
            subscriptions = [
                streams.enter_context(client.add_subscription(channel, index)) for index, channel in enumerate(channels)
            ]
            publications = [
                streams.enter_context(client.add_publication(channel, index)) for index, channel in enumerate(channels)
            ]
            for publication in publications:
                publication.wait_connected(60)
            for index, publication in enumerate(publications):
                publication.offer_batch([b"%d" % index], timeout=60)
            for index, subscription in enumerate(subscriptions):
                assert subscription.poll_batch(60).column("value").to_pylist() == [b"%d" % index]
            length, allocated = log_bytes(aeron_dir)
            assert length == STREAMS * kind.logs * LOG
            # Of a sparse log the page of metadata is there and the pages that were written: here one.
            assert allocated <= (STREAMS * kind.logs * 2 * PAGE if kind.has_sparse_logs else length)
            assert private_bytes(driver) < ALONE + STREAMS * kind.private
        wait_until(lambda: log_bytes(aeron_dir) == (0, 0), 60, "the logs to go", state=lambda: log_bytes(aeron_dir))
        wait_until(lambda: counter_labels(aeron_dir) == before, 30, "the counters to go")
        wait_until(lambda: Cnc(aeron_dir).value_of("Bytes currently mapped") == mapped, 30, "the bytes to be unmapped")


def test_a_hundred_clients_come_and_go(aeron_dir: Path) -> None:
    with native.driver(aeron_dir, SETTINGS) as driver:
        before = counter_labels(aeron_dir)
        with ExitStack() as clients:
            for index in range(CLIENTS):
                client = clients.enter_context(Client(aeron_dir, timeout=60))
                subscription = clients.enter_context(client.add_subscription("aeron:ipc", index))
                publication = clients.enter_context(client.add_exclusive_publication("aeron:ipc", index))
                publication.wait_connected(60)
                publication.offer_batch([b"hello"], timeout=60)
                assert subscription.poll_batch(60).num_rows == 1
            assert log_bytes(aeron_dir)[0] == CLIENTS * LOG
            assert private_bytes(driver) < ALONE + CLIENTS * IPC_STREAM
        wait_until(lambda: counter_labels(aeron_dir) == before, 30, "the counters to go")
        assert log_bytes(aeron_dir) == (0, 0)
