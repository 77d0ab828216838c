"""The driver under test, its counters, and the two roles that a raw socket plays against it.

What it offers:

- `PEER`: "ours", "stock-java" or "stock-c", from the environment (`make conformance PEER=...`).
- `Driver`: the process with a client of ours on it (a stock directory is the same shared memory). `system(id)` and
  `stream(type, session)` read counters through the tests' own reader; `await_...` wait with a deadline.
- `Publishing`: a publication of the driver to a socket Q. `connect()`, `status(position, window, flags)`, `nak(...)`.
- `ours(reason)`: marks what a stock peer does otherwise, on purpose; `but` names those that do it too.

Settings go by their stock property names; the fixture `drivers` (conftest) starts one driver for each set of them and keeps
it for the session, so tests use streams and ports of their own.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from aeron_spark.client import Client
from aeron_spark.closing import Closing
from aeron_spark.publication import Publication
from aeron_spark.types import Outcome
from tests.conformance.udp import raw
from tests.kit import native, stock, stock_c
from tests.kit.cnc import Cnc, Counter
from tests.kit.processes import Process
from tests.kit.wait import wait_until

PEERS = ("ours", "stock-java", "stock-c")
PEER = os.environ.get("PEER", "ours")
assert PEER in PEERS, f"PEER={PEER} is none of {PEERS}"

STREAM = 1001

# Types of stream counters. Spec: 01 §7.
PUB_LIMIT, SND_POS, RCV_HWM, SUB_POS, RCV_POS = 1, 2, 3, 4, 5
SND_CHANNEL, RCV_CHANNEL, SND_LIMIT, PUB_POS, SND_BPE, LOCAL_ADDRESS = 6, 7, 9, 12, 13, 14
FC_RECEIVERS, MDC_DESTINATIONS, SND_NAKS, RCV_NAKS = 17, 18, 19, 20

# System counters. Spec: 04 §22.
BYTES_SENT, BYTES_RECEIVED, NAKS_SENT, NAKS_RECEIVED, STATUS_SENT, STATUS_RECEIVED = 0, 1, 5, 6, 7, 8
HEARTBEATS_SENT, HEARTBEATS_RECEIVED, RETRANSMITS_SENT, UNDER_RUNS, OVER_RUNS = 9, 10, 11, 12, 13
INVALID_PACKETS, ERRORS, SHORT_SENDS, FLOW_CONTROL_LIMITS, GAP_FILLS = 14, 15, 16, 18, 23
RETRANSMITTED_BYTES, RETRANSMIT_OVERFLOW, ERRORS_RECEIVED, ERRORS_SENT = 36, 37, 38, 39
PUBLICATIONS_REVOKED, IMAGES_REVOKED, IMAGES_REJECTED, STATUS_REJECTED = 40, 41, 42, 44

# One agent thread, and conductor timers ten times as fast as the default: what waits for a tick waits 0.1 s.
BASE_SETTINGS: Mapping[str, str] = {
    "aeron.threading.mode": "SHARED",
    "aeron.shared.idle.strategy": "backoff",
    "aeron.term.buffer.length": "64k",
    "aeron.timer.interval": "100ms",
}


# A second driver, whose publications take silence for the end sooner than after 5 s.
IMPATIENT: Mapping[str, str] = {"aeron.publication.connection.timeout": "600ms"}


def ours(reason: str, *, but: tuple[str, ...] = ()) -> pytest.MarkDecorator:
    """A test of what only our driver (and those in `but`) does, on purpose; a stock peer that passes it is an error."""
    return pytest.mark.xfail(PEER not in ("ours", *but), reason=f"{PEER}: {reason}", strict=True)


def start(aeron_dir: Path, settings: Mapping[str, str]) -> Process:
    """The driver under test, ready."""
    if PEER == "ours":
        return native.driver(aeron_dir, settings)
    if PEER == "stock-c":
        return stock_c.driver(aeron_dir, settings)
    java = {name: value for name, value in settings.items() if not name.endswith(("threading.mode", "idle.strategy"))}
    return stock.driver(aeron_dir, threading="SHARED", settings=java)


class Driver:
    """A driver under test in a directory of its own, and a client on it."""

    def __init__(self, aeron_dir: Path, settings: Mapping[str, str]) -> None:
        self.aeron_dir = aeron_dir
        self.settings = {**BASE_SETTINGS, **settings}
        self.process = start(aeron_dir, self.settings)
        self.publication_errors: list[tuple[int, int, int, int, str]] = []
        self.client = Client(aeron_dir, timeout=30, on_error=lambda _: None, on_publication_error=self._on_error)
        self._cnc = Cnc(aeron_dir)

    def _on_error(self, registration: int, session: int, stream: int, code: int, text: str) -> None:
        self.publication_errors.append((registration, session, stream, code, text))

    def counters(self, type_id: int) -> list[Counter]:
        """The allocated counters of a type."""
        return [counter for counter in self._cnc.counters() if counter.type_id == type_id]

    def system(self, system_id: int) -> int:
        """Value of a system counter."""
        key = struct.pack("<i", system_id)
        return next(counter.value for counter in self.counters(0) if counter.key[:4] == key)

    def find(self, type_id: int, session_id: int, stream_id: int = STREAM) -> Counter | None:
        """The stream counter of a type, None if there is none."""
        key = struct.pack("<ii", session_id, stream_id)
        return next((counter for counter in self.counters(type_id) if counter.key[8:16] == key), None)

    def stream(self, type_id: int, session_id: int, stream_id: int = STREAM) -> int:
        """Value of a stream counter that is there."""
        found = self.find(type_id, session_id, stream_id)
        assert found is not None, f"no counter of type {type_id} for session {session_id} stream {stream_id}"
        return found.value

    def destinations(self, control: str) -> int:
        """`mdc-num-dest` of the channel that has this control address."""
        return next(one.value for one in self.counters(MDC_DESTINATIONS) if f"control={control}" in one.label)

    def await_system(self, system_id: int, value: int, *, timeout: float = 10.0) -> None:
        """Wait until a system counter is exactly that."""
        await_value(lambda: self.system(system_id), value, f"system counter {system_id}", timeout=timeout)

    def await_stream(self, type_id: int, session_id: int, value: int, *, stream_id: int = STREAM) -> None:
        """Wait until a stream counter is exactly that."""
        await_value(lambda: self.stream(type_id, session_id, stream_id), value, f"counter of type {type_id}")

    def close(self) -> None:
        """End client and driver."""
        self.client.close()
        self.process.stop()


def await_value(read: Callable[[], Any], value: Any, what: str, *, timeout: float = 10.0) -> None:
    """Wait until `read` gives exactly `value`."""
    wait_until(lambda: read() == value, timeout, f"{what} to be {value}", state=read)


class Publishing(Closing):
    """A publication of the driver under test, and the answers that Q gives it."""

    def __init__(self, driver: Driver, channel: str, stream_id: int = STREAM, *, exclusive: bool = True) -> None:
        add = driver.client.add_exclusive_publication if exclusive else driver.client.add_publication
        self.driver = driver
        self.publication: Publication = add(channel, stream_id)
        constants = self.publication.constants
        self.session_id = int(constants.session_id)
        self.stream_id = stream_id
        self.initial_term_id = constants.initial_term_id
        self.term_length = constants.term_length

    def status(self, position: int = 0, window: int = 32768, **fields: Any) -> raw.Status:
        """A status message of this stream at a position."""
        term, offset = divmod(position, self.term_length)
        return raw.Status(
            session_id=self.session_id,
            stream_id=self.stream_id,
            term_id=raw.wrap32(self.initial_term_id + term),
            term_offset=offset,
            window=window,
            **fields,
        )

    def send_setup(self, **fields: Any) -> raw.Status:
        """A status message that asks for a SETUP."""
        return raw.Status(session_id=self.session_id, stream_id=self.stream_id, flags=raw.SEND_SETUP, **fields)

    def nak(self, offset: int, length: int, *, term: int = 0) -> raw.Nak:
        """A NAK for a gap; terms count from the first."""
        return raw.Nak(
            session_id=self.session_id,
            stream_id=self.stream_id,
            term_id=raw.wrap32(self.initial_term_id + term),
            term_offset=offset,
            gap=length,
        )

    def counter(self, type_id: int) -> int:
        """Value of one of this stream's counters."""
        return self.driver.stream(type_id, self.session_id, self.stream_id)

    def await_counter(self, type_id: int, value: int) -> None:
        """Wait until a counter of the publication is exactly that."""
        await_value(lambda: self.counter(type_id), value, f"counter of type {type_id}")

    def connect(self, q: raw.Socket, window: int = 32768, position: int = 0, **fields: Any) -> raw.Setup:
        """Take a SETUP, answer by a status message, wait until the client sees it and the first heartbeat came."""
        setup, _ = q.expect(raw.Setup, lambda frame: frame.session_id == self.session_id)
        q.send(self.status(position, window, **fields))
        self.await_connected()
        q.expect(raw.Data, lambda frame: frame.session_id == self.session_id and frame.is_heartbeat)
        return setup

    def await_connected(self) -> None:
        """Wait until the client sees the publication connected."""
        wait_until(lambda: self.publication.is_connected, 10, "the publication to be connected")

    def await_disconnected(self) -> None:
        """Wait until the client sees that no receiver is connected."""
        wait_until(lambda: not self.publication.is_connected, 10, "the publication to be not connected")

    def await_gone(self, *, timeout: float = 10.0) -> None:
        """Wait until the driver's sender has let the stream go: its counters are freed."""
        wait_until(
            lambda: self.driver.find(SND_POS, self.session_id, self.stream_id) is None, timeout, "the stream to be gone"
        )

    def offer(self, *lengths: int) -> int:
        """Publish messages at once; the position after the last. Each byte of message i is i + 1."""
        position = 0
        for index, length in enumerate(lengths):
            position = int(self.publication.offer(bytes([(index + 1) & 0xFF]) * length))
            assert position > 0, f"offer {index}: {position}"
        return position

    def feed(self, q: raw.Socket, count: int, length: int = 1376, *, window: int = 32768) -> list[raw.Data]:
        """Publish equal messages; Q takes every frame and says so. All frames but heartbeats, in order."""
        frames: list[raw.Data] = []
        offered, end = 0, 0
        deadline = time.monotonic() + 20
        while offered < count or not frames or self._end(frames[-1]) < end:
            assert time.monotonic() < deadline, f"{offered} of {count} messages sent, {len(frames)} frames came"
            if offered < count:
                position = int(self.publication.offer(bytes([offered & 0xFF]) * length))
                assert position > 0 or position in (Outcome.BACK_PRESSURED, Outcome.ADMIN_ACTION), position
                offered, end = (offered + 1, position) if position > 0 else (offered, end)
            came = q.drain() or q.collect(0.001)
            new = [frame for one in came for frame in one.frames if isinstance(frame, raw.Data) and frame.length]
            frames += new
            if new:
                q.send(self.status(self._end(new[-1]), window))
        return frames

    def _end(self, frame: raw.Data) -> int:
        assert frame.length is not None
        return frame.position(self.initial_term_id, self.term_length) + raw.aligned(frame.length)

    def close(self) -> None:
        """Close the publication; closed already is fine."""
        self.publication.close()
