"""UDP ports for tests."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A UDP port of the loopback interface that was free a moment ago."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
