"""The server of `aeron-spark ui` in this process, over real directories or a fixed moment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from aeron_spark.doctor import Finding
from aeron_spark.live.facts import Facts
from aeron_spark.ui.server import UiServer
from aeron_spark.ui.watch import Watch
from tests.kit import live_scene

GONE = live_scene.GONE
FINDINGS = [
    Finding(level="error", about="driver", text=f"no driver runs in {GONE}", remedy=f"aeron-spark driver --dir {GONE}"),
    Finding(
        level="warn",
        about="sockets",
        text="net.core.rmem_max is 212992, less than aeron.socket.so_rcvbuf",
        remedy="sysctl -w net.core.rmem_max=2097152",
    ),
    Finding(level="ok", about="versions", text="package and native library are of one version"),
]


class Scene(Watch):
    """Says what a fixed moment is, by default that of `live_scene`; real folders of archives are read."""

    def __init__(self, moment: Facts | None = None, archive_dirs: tuple[str, ...] = ()) -> None:
        super().__init__([], archive_dirs)
        self.moment = live_scene.moment() if moment is None else moment

    def facts(self) -> Facts:
        return self.moment

    def findings(self) -> list[Finding]:
        return FINDINGS


@contextmanager
def served(watch: Watch, listen: str = "127.0.0.1:0", token: str | None = None) -> Iterator[UiServer]:
    """A server that answers until the block ends."""
    with UiServer(listen, watch, token) as server:
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            yield server
        finally:
            server.close()
            thread.join(30)
            assert not thread.is_alive(), "the server did not end"
