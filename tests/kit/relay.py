"""A relay of UDP datagrams between a publisher's driver and a subscriber's: it loses some by seed and shows each."""

from __future__ import annotations

import random
import select
import socket
import threading
import time
from collections.abc import Callable

from aeron_spark.closing import Closing
from tests.kit.ports import bind_free

_LONGEST = 65536


class Relay(Closing):
    """Forwards datagrams of its endpoint to `target`, and answers to the source of the last datagram.

    `on_datagram(bytes, is_answer, at)` is called with each that comes, in the relay's own thread, before it may be lost.
    """

    def __init__(
        self,
        target: tuple[str, int],
        on_datagram: Callable[[bytes, bool, float], None],
        *,
        loss: float = 0.0,
        rng: random.Random | None = None,
    ) -> None:
        self._near, self._far = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        for one in (self._near, self._far):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * 1024 * 1024)
        self.port = bind_free(self._near, "127.0.0.1")
        bind_free(self._far, "127.0.0.1")
        self._target = target
        self._source: tuple[str, int] | None = None
        self._on_datagram = on_datagram
        self._loss = loss
        self._rng = rng or random.Random(0)
        self.passed = 0
        self.lost = 0
        self._is_open = True
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        """Where to publish to."""
        return f"127.0.0.1:{self.port}"

    def _run(self) -> None:
        while self._is_open:
            ready, _, _ = select.select([self._near, self._far], [], [], 0.1)
            for one in ready:
                data, source = one.recvfrom(_LONGEST)
                is_answer = one is self._far
                self._on_datagram(data, is_answer, time.time())
                if not is_answer:
                    self._source = source
                to = self._source if is_answer else self._target
                if to is None or self._rng.random() < self._loss:
                    self.lost += 1
                    continue
                self.passed += 1
                (self._near if is_answer else self._far).sendto(data, to)

    def close(self) -> None:
        """End it."""
        self._is_open = False
        self._thread.join()
        self._near.close()
        self._far.close()
