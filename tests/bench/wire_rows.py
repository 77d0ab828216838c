"""Rows of UDP between two hosts on a cable with a real MTU, and of many slow streams.

The hosts are network namespaces with a pair of virtual interfaces. With segmentation and coalescing these move large buffers,
as good interfaces do; without, each datagram goes alone. All share two cores and idle by backoff.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests.bench.pairs import Row, measure
from tests.bench.transport_rows import BACKOFF, OURS, PEER, PEER_NAME, Side, cpu_s, load, udp
from tests.kit import dirs, hosts, stock_c
from tests.kit.ports import free_port
from tests.kit.processes import Process

MTU = 1500
LENGTHS = {288: 800_000, 1344: 200_000}  # with messages of a run
OFFLOADS = ("tx-udp-segmentation", "gso", "tso", "gro", "tx")
SLOW_STREAMS, SLOW_SECONDS = 200, 4


@contextmanager
def cable(*, has_offloads: bool) -> Iterator[tuple[hosts.Host, hosts.Host]]:
    """Two hosts; without offloads their interfaces neither cut nor join datagrams."""
    if not has_offloads and shutil.which("ethtool") is None:
        raise RuntimeError("rows without offloads need ethtool: apt-get install ethtool")
    with hosts.two(mtu=MTU) as both:
        for host in both if not has_offloads else ():
            for name in OFFLOADS:
                command = [*host.prefix, "ethtool", "-K", "eth", name, "off"]
                subprocess.run(command, check=True, capture_output=True)
        yield both


def wire_mb(side: Side, length: int, *, has_offloads: bool) -> float:
    """MB/s of a stream from a driver on one host to another of the same kind on the other."""
    messages = LENGTHS[length]
    with cable(has_offloads=has_offloads) as (one, other), ExitStack() as stack:
        sending, receiving = (stack.enter_context(dirs.fresh("aeron")) for _ in range(2))
        for aeron_dir, host in ((sending, one), (receiving, other)):
            stack.enter_context(side.driver(aeron_dir, BACKOFF, prefix=host.prefix))
        channel = f"aeron:udp?endpoint={other.address}:{free_port()}"
        options = {"channel": channel, "length": length, "messages": messages, "warmup": messages // 10}
        subscriber = stack.enter_context(
            Process("load sub", stock_c.load_command(OURS.program(), "sub", receiving, **options))
        )
        subscriber.wait_ready(lambda: "READY" in subscriber.stdout())
        load(OURS, sending, "pub", **options)
        code = subscriber.wait_end(timeout=180)
        assert code == 0, subscriber.report()
        return stock_c.figures(subscriber)["bytes_per_second"] / 1e6


def wires() -> Iterator[Row]:
    """Throughput of one stream, with offloads and without."""
    for has_offloads in (True, False):
        for length in LENGTHS:
            config = {**BACKOFF, "client": "ours, bench_load pub and sub", "length": length, "mtu": MTU, "cores": "any"}
            yield measure(
                f"udp_wire_{length}" if has_offloads else f"udp_wire_alone_{length}",
                "MB/s",
                lambda length=length, has=has_offloads: wire_mb(OURS, length, has_offloads=has),
                lambda length=length, has=has_offloads: wire_mb(PEER, length, has_offloads=has),
                peer_name=PEER_NAME,
                target=1.0,
                ours_config=config,
                peer_config=config,
                details={"offloads": has_offloads},
                warm=False,
            )


def slow_streams_cpu(side: Side) -> float:
    """Seconds of core that a driver takes for a million messages of many slow streams over loopback, as they arrive."""
    with dirs.fresh("aeron") as aeron_dir, side.driver(aeron_dir, BACKOFF) as process, ExitStack() as stack:
        options = {"channel": f"{udp()}|term-length=64k", "idle-streams": SLOW_STREAMS, "length": 100}
        command = stock_c.load_command(OURS.program(), "paced", aeron_dir, **options, seconds=SLOW_SECONDS)
        client = stack.enter_context(Process("load paced", command))
        client.wait_ready(lambda: "READY" in client.stdout(), timeout=90)
        before = cpu_s(process)
        code = client.wait_end(timeout=180)
        spent = cpu_s(process) - before
        assert code == 0, client.report()
        return spent / stock_c.figures(client)["received"] * 1e6


def slow_streams() -> Iterator[Row]:
    """200 streams of 100 messages/s each."""
    config = {**BACKOFF, "client": "ours, bench_load paced", "streams": SLOW_STREAMS, "messages_per_second": 100}
    yield measure(
        "udp_200_slow_streams",
        "CPU s/M",
        lambda: slow_streams_cpu(OURS),
        lambda: slow_streams_cpu(PEER),
        peer_name=PEER_NAME,
        target=1.0,
        higher_is_better=False,
        ours_config=config,
        peer_config=config,
        warm=False,
    )


def run() -> list[Row]:
    """All rows of this module."""
    return [*wires(), *slow_streams()]
