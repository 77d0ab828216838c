"""Telemetry of this machine as messages: the kernel's counters of each CPU, memory, network interface and disk.

Left out is what a reader does not know as a device of this machine: partitions, compressed memory, loop devices, ends of
tunnels and of containers, and whatever has moved no byte since the machine started.

A message is one device's counters at one time, as JSON: `{"kind": "cpu", "name": "cpu0", "values": {"user": 12, ...}}`.
"""

from __future__ import annotations

import bisect
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from aeron_spark.publication import Publication

_CPU = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_MEMORY = ("MemTotal", "MemFree", "MemAvailable", "Cached", "SwapFree")
_PROC = Path("/proc")
_WHOLE_DISKS = Path("/sys/block")
_NO_DISKS = ("loop", "ram", "zram", "dm-", "md", "nbd", "fd", "sr")
_NO_INTERFACES = (
    "ifb",
    "dummy",
    "veth",
    "tunl",
    "gre",
    "erspan",
    "sit",
    "ip6",
    "ip_vti",
    "teql",
    "bond",
    "tap",
    "docker",
    "br-",
)


def sample() -> list[bytes]:
    """One message for each device, as the counters stand now."""
    return [
        json.dumps({"kind": kind, "name": name, "values": values}, separators=(",", ":")).encode()
        for kind, name, values in (*_cpus(), *_memory(), *_network(), *_disks())
    ]


class Feed:
    """A thread that samples and publishes a batch every `interval` seconds, from construction until `stop()`."""

    def __init__(self, publication: Publication, *, interval: float) -> None:
        self.messages = 0
        self.samples = 0
        self.position = 0
        self.begun = time.monotonic()
        self._ends: list[int] = []
        self._at: list[float] = []
        self._publication = publication
        self._interval = interval
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the feed; raises what made it fail."""
        self._stopping.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def behind(self, position: int) -> float:
        """Seconds since the first message that lies behind `position` was published; 0 if there is none yet."""
        index = bisect.bisect_right(self._ends, position)
        return time.monotonic() - self._at[index] if index < len(self._at) else 0.0

    def _run(self) -> None:
        try:
            due = time.monotonic()
            while not self._stopping.wait(max(0.0, due - time.monotonic())):
                batch = sample()
                taken_us = time.time_ns() // 1000
                self.position = self._publication.offer_batch(batch, reserved_values=[taken_us] * len(batch))
                self._at.append(time.monotonic())
                self._ends.append(self.position)
                self.samples += 1
                self.messages += len(batch)
                due += self._interval
        except BaseException as failure:  # noqa: BLE001 - raised by stop()
            self._failure = failure


def _lines(name: str) -> list[str]:
    try:
        return (_PROC / name).read_text("ascii", errors="replace").splitlines()
    except OSError:
        return []


def _cpus() -> Iterator[tuple[str, str, dict[str, int]]]:
    for line in _lines("stat"):
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu":
            yield "cpu", name, dict(zip(_CPU, map(int, fields), strict=False))


def _memory() -> Iterator[tuple[str, str, dict[str, int]]]:
    fields = dict(line.split(":", 1) for line in _lines("meminfo"))
    yield "memory", "ram", {name: int(fields[name].split()[0]) for name in _MEMORY if name in fields}


def _network() -> Iterator[tuple[str, str, dict[str, int]]]:
    for line in _lines("net/dev")[2:]:
        name, _, rest = line.partition(":")
        fields = [int(field) for field in rest.split()]
        if not name.strip().startswith(_NO_INTERFACES) and fields[0] + fields[8]:
            yield (
                "network",
                name.strip(),
                {"rx_bytes": fields[0], "rx_packets": fields[1], "tx_bytes": fields[8], "tx_packets": fields[9]},
            )


def _disks() -> Iterator[tuple[str, str, dict[str, int]]]:
    for line in _lines("diskstats"):
        _, _, name, *fields = line.split()
        is_whole = (_WHOLE_DISKS / name).exists() or not _WHOLE_DISKS.exists()
        if is_whole and not name.startswith(_NO_DISKS) and int(fields[0]) + int(fields[4]):
            yield (
                "disk",
                name,
                {"reads": int(fields[0]), "sectors_read": int(fields[2]), "sectors_written": int(fields[6])},
            )
