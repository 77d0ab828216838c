"""UDP ports for tests, of this process alone. Thread rule: any thread.

They lie below those that the system chooses itself (`ip_local_port_range`). No port is given twice in a process: a stream of an
earlier test that lingers at its port, or asks for a reader there, would be heard by a later one that got the same. Nor in two
processes at a time, as a port that is free now may be the one that a session beside this one has given to a driver that starts.
"""

from __future__ import annotations

import atexit
import errno
import itertools
import os
import random
import socket
import threading
from collections.abc import Iterator

LOWEST, HIGHEST = 10_000, 32_000
BLOCK = 100
#: Of ports that documentation and tables of tests name.
NAMED_BLOCKS = {15_000, 20_100, *range(24_000, 25_000, BLOCK)}

_claims: list[socket.socket] = []


@atexit.register
def _give_back() -> None:
    for claim in _claims:
        claim.close()


def _claim(block: int) -> bool:
    """Whether a block of ports is this process's until it ends.

    The claim is an abstract socket: the kernel takes it back whatever ends the process, and a network namespace has names of
    its own for them, as it has ports.
    """
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"\0aeron-spark-test-ports-{block}")
    except OSError as failure:
        claim.close()
        if failure.errno != errno.EADDRINUSE:
            raise
        return False
    _claims.append(claim)
    return True


def _candidates() -> Iterator[int]:
    # A start of its own for each process: what an earlier one left in the kernel's queues is not met.
    blocks = [block for block in range(LOWEST, HIGHEST, BLOCK) if block not in NAMED_BLOCKS]
    start = random.Random(os.getpid()).randrange(len(blocks))  # noqa: S311 - no secret
    for block in itertools.chain(blocks[start:], blocks[:start]):
        if _claim(block):
            yield from range(block, block + BLOCK)


_ports = _candidates()
_one_at_a_time = threading.Lock()


def _take() -> int | None:
    """The next candidate, None if all were taken. A generator refuses a second thread while it runs for the first."""
    with _one_at_a_time:
        return next(_ports, None)


def bind_free(probe: socket.socket, host: str) -> int:
    """Bind a UDP socket to a port that this process never used, and return it."""
    while (port := _take()) is not None:
        try:
            probe.bind((host, port))
        except OSError as failure:
            if failure.errno != errno.EADDRINUSE:
                raise
        else:
            return port
    raise AssertionError(f"every port from {LOWEST} to {HIGHEST} was used, is taken, or belongs to tests beside these")


def free_port(host: str = "127.0.0.1") -> int:
    """A UDP port that was free a moment ago."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        return bind_free(probe, host)


def free_range(count: int) -> int:
    """The first of `count` UDP ports of 127.0.0.1 in a row that were free a moment ago."""
    first, following = 0, 0
    while following < count:
        port = free_port()
        first, following = (first, following + 1) if port == first + following else (port, 1)
    return first
