"""Rows of the transport, C to C: our driver beside the stock C driver, and over IPC our client beside the stock C client.

Over UDP both sides are driven by our client program, so that only the driver differs. The machine may have two cores. Where
throughput or time of flight is measured, the driver is one thread that spins on one core (SHARED) and the client is one
thread that spins on the other: two threads on two cores never wait for a core, so that a pair repeats best. With loss, a relay
works beside them, and for the cost per GB a driver must be able to sleep: there all may run anywhere, and idle by backoff.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.bench.pairs import BEFORE, Limit, Row, measure
from tests.kit import dirs, native, stock_c
from tests.kit.ports import free_port
from tests.kit.processes import Process
from tests.kit.wait import wait_until

BUFFERS = {
    "aeron.threading.mode": "SHARED",
    "aeron.term.buffer.length": "16m",
    "aeron.ipc.term.buffer.length": "64m",
    "aeron.socket.so_rcvbuf": "2m",
    "aeron.socket.so_sndbuf": "2m",
    "aeron.rcv.initial.window.length": "2m",
    "aeron.driver.timeout": "10000",
}
SPIN = {**BUFFERS, "aeron.shared.idle.strategy": "spin"}
BACKOFF = {**BUFFERS, "aeron.shared.idle.strategy": "backoff"}

STREAM_TARGETS = {"32": 1.3, "288": 2.0, "1344": 4.0, "64k": 4.0}
LENGTHS = {"32": 32, "288": 288, "1344": 1344, "64k": 65_536}
DATAGRAM_BYTES = 1408
HEADER_BYTES = 32
IPC_MESSAGES = {32: 20_000_000, 288: 6_000_000, 1344: 2_000_000, 64 << 10: 60_000, 1 << 20: 4_000}
IPC_PAIRS = 11  # who waits for whom changes from run to run, and with it the rate by half
ROUND_TRIPS = 200_000  # 20 of them are beyond p99.99
IPC_ROUND_TRIPS = 1_000_000
IDLE_STREAMS = 1000
GB = 1e9
LOSSES = {"01": 0.001, "1": 0.01, "5": 0.05}
DELAYS_MS = (1, 20)
LOSSY_LENGTH = 1344
#: Of what one lost datagram in each round trip leaves; and of our setting to stock, by loss.
ONE_GAP_SHARE, AHEAD_TARGETS = 0.9, {"01": 1.0, "1": 1.5, "5": 2.0}
DRIVER_CORE, CLIENT_CORE = 1, 0

Figures = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two that are compared: its driver, and the client program of its own."""

    driver: Callable[[Path, Mapping[str, str]], Process]
    program: Callable[[], Path]


OURS = Side(driver=native.driver, program=lambda: native.bench_program("bench_load"))
if BEFORE is None:
    PEER = Side(driver=stock_c.driver, program=stock_c.load_program)
    PEER_NAME = f"stock C driver {stock_c.version()}"
else:
    PEER = Side(
        driver=partial(native.driver, folder=BEFORE), program=partial(native.bench_program, "bench_load", folder=BEFORE)
    )
    PEER_NAME = f"driver of {BEFORE}"


@contextmanager
def on_core(core: int | None) -> Iterator[None]:
    """What is started in the block stays on that core, where there are two."""
    before = os.sched_getaffinity(0)
    if core is not None and {DRIVER_CORE, CLIENT_CORE} <= before:
        os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def load(side: Side, aeron_dir: Path, mode: str, **options: object) -> Figures:
    """Run a client program and return its figures."""
    named = {name.replace("_", "-"): value for name, value in options.items()}
    process = Process(f"load {mode}", stock_c.load_command(side.program(), mode, aeron_dir, **named))
    code = process.wait_end(timeout=180)
    assert code == 0, process.report()
    return stock_c.figures(process)


def pinned(driver: Side, client: Side, settings: Mapping[str, str], mode: str, **options: object) -> Figures:
    """One run: a fresh driver on its core, a client on the other."""
    with dirs.fresh("aeron") as aeron_dir, ExitStack() as stack:
        with on_core(DRIVER_CORE):
            stack.enter_context(driver.driver(aeron_dir, settings))
        with on_core(CLIENT_CORE):
            return load(client, aeron_dir, mode, **options)


def udp(port: int | None = None) -> str:
    """A channel over the loopback interface."""
    return f"aeron:udp?endpoint=127.0.0.1:{port or free_port()}"


def limit_mb() -> float:
    """MB/s that this machine moves by UDP over loopback, with segmentation and coalescing, between two threads."""
    done = subprocess.run(
        [str(native.bench_program("udp_limit")), str(DATAGRAM_BYTES), "0.5"], capture_output=True, text=True, check=True
    )
    found: float = stock_c.parse_last(done.stdout)["bytes_per_second"]
    return found / 1e6


def on_the_wire(length: int) -> float:
    """Bytes in datagrams for a byte of payload: frames are aligned to 32 bytes and have 32 of header."""
    per_frame = DATAGRAM_BYTES - HEADER_BYTES
    whole, rest = divmod(length, per_frame)
    total = whole * DATAGRAM_BYTES + (-(-(rest + HEADER_BYTES) // 32) * 32 if rest else 0)
    return total / length


def udp_streams() -> Iterator[Row]:
    """Throughput of one stream for each length of message."""
    for name, length in LENGTHS.items():

        def rate(driver: Side, length: int = length) -> float:
            options = {"channel": udp(), "length": length, "seconds": 1, "warmup": max(200, 20_000_000 // length)}
            return pinned(driver, OURS, SPIN, "solo", **options)["bytes_per_second"] / 1e6

        config = {
            **SPIN,
            "client": "ours, bench_load solo",
            "length": length,
            "mtu": DATAGRAM_BYTES,
            "cores": "1 and 1",
        }
        yield measure(
            f"udp_stream_{name}",
            "MB/s",
            lambda rate=rate: rate(OURS),
            lambda rate=rate: rate(PEER),
            peer_name=PEER_NAME,
            target=STREAM_TARGETS[name],
            ours_config=config,
            peer_config=config,
            limit=Limit(of=limit_mb, scale=on_the_wire(length), share=0.6),
        )


QUANTILES = ("p50", "p99", "p999", "p9999")


class Quantiles:
    """Runs that each give several rows their figure: the first row's runs leave what the others read."""

    def __init__(self, run: Callable[[], Figures]) -> None:
        self._run = run
        self._left: dict[str, list[float]] = {quantile: [] for quantile in QUANTILES}
        self.histogram: dict[int, float] = {}  # trips by the power of two that they stay below, in ns

    def take(self, quantile: str) -> float:
        """The next run's quantile in us."""
        if quantile == QUANTILES[0]:
            figures = self._run()
            for name, left in self._left.items():
                left.append(figures[f"{name}_ns"] / 1e3)
            for name, count in figures.items():
                if name.startswith("below_"):
                    bound = int(name.split("_")[1])
                    self.histogram[bound] = self.histogram.get(bound, 0) + count
        return self._left[quantile].pop(0)


def print_histograms(what: str, ours: Quantiles, peer: Quantiles, peer_name: str) -> None:
    """All of all runs by their time, one side beside the other."""
    totals = [sum(side.histogram.values()) or 1 for side in (ours, peer)]
    print(f"  {what} by time, share of all: ours, {peer_name}")
    for bound in sorted({*ours.histogram, *peer.histogram}):
        shares = [side.histogram.get(bound, 0) / total for side, total in zip((ours, peer), totals, strict=True)]
        bars = "".join(f"  {share:9.5%}  {'#' * round(30 * share) or ('.' if share else ''):30}" for share in shares)
        print(f"  below {bound / 1e3:10,.2f} us{bars}".rstrip())


def round_trips() -> Iterator[Row]:
    """Round trip times over UDP and IPC: one client thread sends, echoes and waits, spinning."""
    for medium in ("udp", "ipc"):

        def run(side: Side, medium: str = medium) -> Figures:
            channel = udp() if medium == "udp" else "aeron:ipc"
            client = OURS if medium == "udp" else side
            trips = ROUND_TRIPS if medium == "udp" else IPC_ROUND_TRIPS
            settings = SPIN if medium == "udp" else BACKOFF
            return pinned(side, client, settings, "rtt", channel=channel, messages=trips, warmup=trips // 10)

        ours, peer = Quantiles(lambda run=run: run(OURS)), Quantiles(lambda run=run: run(PEER))
        config = {
            **(SPIN if medium == "udp" else BACKOFF),
            "client": "rtt, one thread",
            "length": 32,
            "cores": "1 and 1",
        }
        first: Row | None = None
        for quantile in QUANTILES:
            row = measure(
                f"{medium}_rtt_{quantile}",
                "us",
                lambda quantile=quantile, side=ours: side.take(quantile),
                lambda quantile=quantile, side=peer: side.take(quantile),
                peer_name=PEER_NAME if medium == "udp" else f"{PEER_NAME} and client",
                target=1.0,
                higher_is_better=False,
                ours_config={**config, "driver and client": "ours"},
                peer_config={**config, "driver and client": "stock, client ours" if medium == "udp" else "stock"},
                runs_of=first,
            )
            first = first or row
            yield row
        print_histograms(f"{medium} round trips", ours, peer, PEER_NAME)


def copied(length: int, messages: int) -> float:
    """Messages a second that two threads pass through a log buffer by copies alone, while a third zeroes what was taken."""
    command = [native.bench_program("log_limit"), "stream", str(length), str(length * messages)]
    return float(json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["messages_per_second"])


def ipc_streams() -> Iterator[Row]:
    """Throughput over IPC: equal programs over our client and over the stock C client, each on its own driver."""
    for length, messages in IPC_MESSAGES.items():

        def rate(side: Side, length: int = length, messages: int = messages) -> float:
            with dirs.fresh("aeron") as aeron_dir, side.driver(aeron_dir, BACKOFF):
                figures = load(side, aeron_dir, "stream", length=length, messages=messages, warmup=messages // 10)
                return figures["messages_per_second"]

        config = {**BACKOFF, "program": "stream: two threads", "length": length, "messages": messages, "cores": "any"}
        yield measure(
            f"ipc_stream_{length}",
            "messages/s",
            lambda rate=rate: rate(OURS),
            lambda rate=rate: rate(PEER),
            peer_name=f"{PEER_NAME} and client",
            target=1.2,
            ours_config={**config, "driver and client": "ours"},
            peer_config={**config, "driver and client": "stock"},
            pairs=IPC_PAIRS,
            limit=Limit(of=partial(copied, length, messages), scale=1.0, share=0.8),
        )


def idle_stream_ns(driver: Side) -> float:
    """Nanoseconds that an idle stream adds to a duty cycle of a driver that spins.

    Taken from the middle round trip time with and without them: a round trip of two messages waits for two duty cycles.
    """
    p50 = [
        pinned(
            driver,
            OURS,
            SPIN,
            "rtt",
            channel=udp(),
            messages=2000,
            warmup=200,
            idle_streams=streams,
            idle_channel=f"{udp()}|term-length=64k",
        )["p50_ns"]
        for streams in (0, IDLE_STREAMS)
    ]
    return round((p50[1] - p50[0]) / 2 / IDLE_STREAMS, 1)


def tasks(process: Process) -> list[Path]:
    """The threads of a process."""
    return list(Path(f"/proc/{process.pid}/task").iterdir())


def cpu_s(process: Process) -> float:
    """Seconds of core that a process has used, to the nanosecond."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks(process)) / 1e9


def thousand_streams() -> Iterator[Row]:
    """One busy stream beside a thousand that are connected and idle."""

    def rate(driver: Side) -> float:
        return (
            pinned(
                driver,
                OURS,
                SPIN,
                "solo",
                channel=udp(),
                length=1344,
                seconds=1,
                warmup=500,  # a driver that slows down with idle streams would take minutes for more
                drain=0,
                idle_streams=IDLE_STREAMS,
                idle_channel=f"{udp()}|term-length=64k",
            )["bytes_per_second"]
            / 1e6
        )

    config = {
        **SPIN,
        "client": "ours, bench_load solo",
        "length": 1344,
        "idle_streams": IDLE_STREAMS,
        "cores": "1 and 1",
    }
    yield measure(
        "udp_1000_streams",
        "MB/s",
        lambda: rate(OURS),
        lambda: rate(PEER),
        peer_name=PEER_NAME,
        target=1.5,
        ours_config=config,
        peer_config=config,
        details={"idle_stream_ns_per_duty_cycle": {"ours": idle_stream_ns(OURS), "peer": idle_stream_ns(PEER)}},
        warm=False,
    )


@contextmanager
def lossy_network(port: int, loss: float) -> Iterator[None]:
    """What is started in the block lives in a network of its own, where datagrams to the port are lost at random.

    Raises:
        PermissionError: Only root may make a network namespace.
    """
    new_network = 0x40000000
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/thread-self/ns/net").open("rb") as before:
        if libc.unshare(new_network) != 0:
            raise PermissionError(
                ctypes.get_errno(), "the rows of UDP with loss make a network of their own; run as root"
            )
        try:
            rule = f"INPUT -p udp --dport {port} -m statistic --mode random --probability {loss} -j DROP"
            for command in ("ip link set lo up", f"iptables -A {rule}"):
                subprocess.run(command.split(), check=True)
            yield
        finally:
            libc.setns(before.fileno(), new_network)


def lossy_rate(driver: Side, loss: float, delay_ms: int, settings: Mapping[str, str] = BACKOFF) -> float:
    """MB/s that arrive in order through the relay and the firewall."""
    target, entry = free_port(), free_port()
    with lossy_network(target, loss), dirs.fresh("aeron") as aeron_dir, driver.driver(aeron_dir, settings):
        relay = Process("relay", [native.bench_program("udp_relay"), str(entry), str(target), str(delay_ms * 1000)])
        relay.wait_ready(lambda: "READY" in relay.stdout())
        figures = load(
            OURS,
            aeron_dir,
            "stream",
            channel=udp(entry),
            sub_channel=udp(target),
            length=LOSSY_LENGTH,
            seconds=2
            * max(1, delay_ms // 6),  # each lost datagram costs a round trip, and some dozens are no measurement
            warmup=200,
            drain=0,
        )
        relay.stop()
        return figures["bytes_per_second"] / 1e6


def losses() -> Iterator[Row]:
    """Goodput under loss by a firewall rule at the receiver's port and a delay each way by one relay.

    A driver that asks for one gap at a time gets one lost datagram in a round trip: the limit of the first rows. Those of
    `ahead` have our setting by which a receiver asks for all gaps of a window.
    """
    for delay_ms in DELAYS_MS:
        for name, loss in LOSSES.items():
            one_gap = Limit(
                of=lambda loss=loss, delay_ms=delay_ms: LOSSY_LENGTH / loss / (2 * delay_ms * 1e-3) / 1e6,
                scale=1.0,
                share=ONE_GAP_SHARE,
            )
            for ahead, settings, target, limit in (
                ("", BACKOFF, 1.0, one_gap),
                ("_ahead", {**BACKOFF, "aeron.spark.driver.nak.ahead": "true"}, AHEAD_TARGETS[name], None),
            ):
                config = {
                    "client": "ours, bench_load stream",
                    "length": LOSSY_LENGTH,
                    "loss": loss,
                    "loss_by": "iptables statistic in a network namespace",
                    "delay_ms_each_way": delay_ms,
                    "delay_by": "udp_relay",
                    "cores": "any",
                }
                yield measure(
                    f"udp_loss_{name}{ahead}",
                    "MB/s",
                    lambda loss=loss, delay_ms=delay_ms, settings=settings: lossy_rate(OURS, loss, delay_ms, settings),
                    lambda loss=loss, delay_ms=delay_ms: lossy_rate(PEER, loss, delay_ms),
                    peer_name=PEER_NAME,
                    target=target,
                    ours_config={**settings, **config},
                    peer_config={**BACKOFF, **config},
                    details={"delay_ms": delay_ms},
                    warm=False,
                    limit=limit,
                )


def cost_run(driver: Side, messages: int, *, counted: bool) -> tuple[float, float]:
    """CPU seconds of the driver for a GB of payload, and its system calls where they are counted."""
    with dirs.fresh("aeron") as aeron_dir, driver.driver(aeron_dir, BACKOFF) as process:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            counter = stack.enter_context(Process("counter", counting(process, Path(folder)))) if counted else None
            if counter is not None:
                wait_until(lambda: is_counted(process, counter), 20, "the counter to attach")
            before = cpu_s(process)
            load(OURS, aeron_dir, "solo", channel=udp(), length=1344, messages=messages)
            spent = cpu_s(process) - before
            calls = 0.0
            if counter is not None:
                counter.stop(2)
                calls = counted_calls(Path(folder) / "calls")
    gigabytes = messages * 1344 / GB
    return spent / gigabytes, calls / gigabytes


def counting(process: Process, folder: Path) -> list[str]:
    """The command that counts the system calls of a process until SIGINT."""
    out = str(folder / "calls")
    if shutil.which("perf"):
        return ["perf", "stat", "-x,", "-e", "raw_syscalls:sys_enter", "-o", out, "-p", str(process.pid)]
    return ["strace", "-c", "-f", "-o", out, "-p", str(process.pid)]


def is_counted(process: Process, counter: Process) -> bool:
    """Whether strace holds every thread of the process, or perf has opened as many events."""
    threads = list(Path(f"/proc/{process.pid}/task").iterdir())
    held = sum("TracerPid:\t0\n" not in (thread / "status").read_text() for thread in threads)
    events = 0
    for fd in Path(f"/proc/{counter.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            events += "perf_event" in str(fd.readlink())
    return max(held, events) >= len(threads)


def counted_calls(path: Path) -> float:
    """The number in perf's line, or in strace's total."""
    for line in path.read_text().splitlines():
        if "raw_syscalls" in line:
            return float(line.split(",")[0])
        if line.endswith("total"):
            return float(line.split()[3])
    raise AssertionError(f"neither perf nor strace counted: {path.read_text()}")


def cost_per_gb() -> Iterator[Row]:
    """CPU seconds of the driver for a GB; its system calls are shown, counted in runs of their own."""
    config = {**BACKOFF, "client": "ours, bench_load solo", "length": 1344, "messages": 700_000, "cores": "any"}
    counts = None
    if shutil.which("perf") or shutil.which("strace"):
        counts = {
            name: round(cost_run(side, 200_000, counted=True)[1]) for name, side in (("ours", OURS), ("peer", PEER))
        }
    yield measure(
        "udp_cpu_per_gb",
        "CPU s/GB",
        lambda: cost_run(OURS, 700_000, counted=False)[0],
        lambda: cost_run(PEER, 700_000, counted=False)[0],
        peer_name=PEER_NAME,
        target=2.0,
        higher_is_better=False,
        ours_config=config,
        peer_config=config,
        details={"system_calls_per_gb": counts or "not counted: neither perf nor strace is installed"},
    )


def run_udp() -> list[Row]:
    """All rows of UDP, and round trips over IPC beside theirs."""
    for tool in ("ip", "iptables"):
        if shutil.which(tool) is None:
            raise SystemExit(f"the rows under loss need {tool}: install Debian's iproute2 and iptables")
    parts = (udp_streams, round_trips, thousand_streams, losses, cost_per_gb)
    return [row for part in parts for row in part()]


def run_ipc() -> list[Row]:
    """IPC, C to C."""
    return list(ipc_streams())
