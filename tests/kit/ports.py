"""UDP ports for tests.

They lie below those that the system chooses itself (`ip_local_port_range`); no port is given twice in a process: a stream of
an earlier test that lingers at its port, or asks for a reader there, would be heard by a later one that got the same.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
import socket
from collections.abc import Iterator

LOWEST, HIGHEST = 10_000, 32_000


def _candidates() -> Iterator[int]:
    # A start of its own for each process, so that two test runs on one machine seldom meet.
    start = random.Random(os.getpid()).randrange(LOWEST, HIGHEST)
    return itertools.chain(range(start, HIGHEST), range(LOWEST, start))


_ports = _candidates()


def bind_free(probe: socket.socket, host: str) -> int:
    """Bind a UDP socket to a port that this process never used, and return it."""
    for port in _ports:
        try:
            probe.bind((host, port))
        except OSError as failure:
            if failure.errno != errno.EADDRINUSE:
                raise
        else:
            return port
    raise AssertionError(f"every port from {LOWEST} to {HIGHEST} was used or is taken")


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
