"""A service manager's end of sd_notify: what servers report to the socket that NOTIFY_SOCKET names."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from aeron_spark.closing import Closing

REPORT_TIMEOUT_S = 20.0


class Manager(Closing):
    """What servers started from now on report to, as to one that waits a tenth of a second for their reports."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(folder / "notify"))
        self._socket.settimeout(REPORT_TIMEOUT_S)
        patch.setenv("NOTIFY_SOCKET", str(folder / "notify"))
        patch.setenv("WATCHDOG_USEC", "100000")

    def reports(self, last: str) -> list[str]:
        """Reports up to the first of which `last` is a line."""
        found: list[str] = []
        while not found or last not in found[-1].splitlines():
            found.append(self._socket.recv(65536).decode())
        return found

    def close(self) -> None:
        """Later reports find nobody."""
        self._socket.close()
