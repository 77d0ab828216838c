"""How busy the machine is with other things: what processes took that neither this program nor its descendants are.

It is the sum over these processes. The kernel's total of the machine without ours would be wrong: pyspark's daemon ignores
SIGCHLD, so nobody is given the times of its workers that end, and all that such a worker ever took looked like others'.
A program that comes and goes is counted by its parent. Work of the kernel's threads counts as nobody's, since it is mostly
ours, as are interrupts. Time that a hypervisor took counts as other.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
KERNEL_THREADS = 2  # their parent
#: Above this share of the cores a figure says more of the others than of what is measured.
DISTURBED = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")
#: Times are told in whole ticks: so much of each core accuses nobody, or one tick would disturb a row of 30 ms.
_UNSURE_S = 2 / _TICKS


@dataclass(frozen=True, slots=True)
class Task:
    """A process: its parent, its seconds of core, and those of children that have ended and that it has waited for."""

    parent: int
    own_s: float
    ended_s: float


def tasks(proc: Path = PROC) -> dict[int, Task]:
    """All processes by id."""
    found = {}
    for folder in proc.iterdir():
        if folder.name.isdigit():
            with suppress(FileNotFoundError, ProcessLookupError):  # ended meanwhile
                fields = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
                user, system, ended_user, ended_system = (int(field) / _TICKS for field in fields[11:15])
                found[int(folder.name)] = Task(int(fields[1]), user + system, ended_user + ended_system)
    return found


def _is_below(found: Mapping[int, Task], pid: int, ancestor: int) -> bool:
    while pid in found and pid != ancestor:
        pid = found[pid].parent
    return pid == ancestor


class Watch:
    """Begins when it is made."""

    def __init__(self, proc: Path = PROC, pid: int | None = None) -> None:
        self._proc = proc
        self._pid = os.getpid() if pid is None else pid
        self._began = time.monotonic()
        self._at_begin = self._others_s()

    def share(self, elapsed_s: float | None = None) -> float:
        """Of the cores' time since the begin, what others took."""
        elapsed = time.monotonic() - self._began if elapsed_s is None else elapsed_s
        cores = os.cpu_count() or 1
        taken = self._others_s() - self._at_begin - _UNSURE_S * cores
        return max(0.0, taken) / max(elapsed * cores, 1 / _TICKS)

    def _others_s(self) -> float:
        found = tasks(self._proc)
        others = sum(
            task.own_s + task.ended_s
            for pid, task in found.items()
            if KERNEL_THREADS not in {pid, task.parent} and not _is_below(found, pid, self._pid)
        )
        stolen = (self._proc / "stat").read_text("ascii").split(maxsplit=9)[8]
        return others + int(stolen) / _TICKS
