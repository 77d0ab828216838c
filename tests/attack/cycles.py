"""How long cycles of the attacked driver and archive work, without the time in which their thread has no processor.

    python -m tests.attack.cycles DIRECTORY DRIVER_PID ARCHIVE_PID

The servers measure the whole time of a cycle. Where more of their threads are busy than the machine has processors, most of it
is the others' time: real-time priority shuts out other programs, not each other. And a virtual machine's host takes a processor
away for 100 ms when it was busy for long. The kernel counts both. So a hundred times a second the longest cycle since the last
look is taken and set back to 0, and what the thread has waited and the host has taken since before that cycle's begin is
subtracted; of the host's, also what it took of another processor. A thread that sleeps, or that waits for a lock or a file,
works by this figure.

A line of JSON for each thread and look: when it was, ms of work, ms in all.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import sys
import time
from collections import deque
from pathlib import Path

from tests.kit.cnc import Cnc

LOOK_EVERY_S = 0.01
TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
REMEMBERED = 1000  # looks: cycles of up to 10 s
# Beginnings of counters' labels, and of the names of the threads that write them.
DRIVER = {"Conductor": "aeron-spark-dri", "Sender": "sender", "Receiver": "receiver"}
ARCHIVE = {"archive-conductor": "archive-cond", "archive-recorder": "archive-rec", "archive-replayer": "archive-rep"}


def _thread(pid: int, name: str) -> Path:
    """Where the kernel's counts of that thread of a process are."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return next(one for one in tasks if (one / "comm").read_text().strip() == name) / "schedstat"


def stolen_ns() -> int:
    """What a host has taken of this machine's processors since it began."""
    total = Path("/proc/stat").read_text().splitlines()[0].split()
    return int(total[8]) * TICK_NS


class Watched:
    """One thread: its counter's place in the file, and when it had been without a processor for how long."""

    def __init__(self, name: str, thread: Path, at: int) -> None:
        self.name = name
        self.thread = thread
        self.at = at
        self.without: deque[tuple[float, int]] = deque(maxlen=REMEMBERED)

    def look(self, view: mmap.mmap, now: float) -> None:
        """Print the longest cycle since the last look."""
        (cycle_ns,) = struct.unpack_from("<q", view, self.at)
        struct.pack_into("<q", view, self.at, 0)
        without_ns = int(self.thread.read_text().split()[1]) + stolen_ns()
        if cycle_ns and self.without:
            # It may have ended right behind the last look.
            begin = self.without[-1][0] - cycle_ns / 1e9
            before = next((had for when, had in reversed(self.without) if when <= begin), self.without[0][1])
            work_ms = max(0, cycle_ns - (without_ns - before)) / 1e6
            print(
                json.dumps({"at": now, "thread": self.name, "work_ms": work_ms, "cycle_ms": cycle_ns / 1e6}), flush=True
            )
        self.without.append((now, without_ns))


def main(directory: str, driver_pid: int, archive_pid: int) -> None:
    """Look until whoever started this is gone."""
    cnc = Cnc(Path(directory))
    header = cnc.header()
    assert header is not None, f"no driver in {directory}"
    counters = [one for one in cnc.counters() if " max cycle time " in one.label]
    watched = [
        Watched(
            label.removeprefix("archive-").lower() if pid == driver_pid else label,
            _thread(pid, thread),
            header.value_at(next(one.id for one in counters if one.label.startswith(label))),
        )
        for pid, threads in ((driver_pid, DRIVER), (archive_pid, ARCHIVE))
        for label, thread in threads.items()
    ]
    parent = os.getppid()
    with cnc.path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        while os.getppid() == parent:
            for one in watched:
                one.look(view, time.monotonic())
            time.sleep(LOOK_EVERY_S)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
