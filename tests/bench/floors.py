"""What the machine alone takes for a part of the work that no implementation can leave out."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def copied_s(folder: Path, threads: int) -> float:
    """Seconds in which the kernel copies the segments of recording 0, by so many threads."""

    def copy(files: list[Path]) -> None:
        block = bytearray(1 << 20)
        for path in files:
            with path.open("rb", buffering=0) as file:
                while file.readinto(block):
                    pass

    segments = sorted(folder.glob("0-*.rec"))
    started = time.monotonic()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(copy, [segments[task::threads] for task in range(threads)]))
    return time.monotonic() - started
