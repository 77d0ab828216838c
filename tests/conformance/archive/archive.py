"""The archive under test with its driver, and what can be seen of it from outside.

What it offers:

- `PEER`: "ours" or "stock-java", from the environment (`make conformance PEER=...`).
- `ours(reason)`: marks a test of what the stock archive does otherwise: expected to fail there, and an error if it passes.
- `Archive`: driver and archive in one process (as the stock ArchivingMediaDriver), or in two (`apart=True`) where the archive
  is to be killed and started again; a client of ours on the driver; counters, error log and folder through the tests' own
  readers (`tests.kit.cnc`, `tests.conformance.archive.folder`).

Settings go by their stock property names. The fixture `archives` (conftest) starts one process for each set of them and keeps
it for the session, so tests use streams, ports and recordings of their own; what kills or ends its archive makes one itself.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from aeron_spark.client import Client
from aeron_spark.closing import Closing
from tests.conformance.archive import folder
from tests.kit import dirs, mark, native, service_log, stock
from tests.kit.cnc import Cnc, Counter
from tests.kit.ports import free_port
from tests.kit.processes import Process, archive_ready
from tests.kit.wait import wait_until

PEERS = ("ours", "stock-java")
PEER = os.environ.get("PEER", "ours")
assert PEER in PEERS, f"PEER={PEER} is none of {PEERS}"
IS_OURS = PEER == "ours"

TERM, SEGMENT, MTU = 65_536, 131_072, 1408
LOCAL_CONTROL, CONTROL_STREAM, EVENTS_STREAM = "aeron:ipc?term-length=64k", 10, 30

# Counter types. Spec: 08 §3.
REC_POS, ERRORS, CONTROL_SESSIONS, MAX_CYCLE, CYCLES_EXCEEDED = 100, 101, 102, 103, 104
WRITE_MAX_NS, WRITE_BYTES, WRITE_NS, READ_MAX_NS, READ_BYTES, READ_NS = 105, 106, 107, 108, 109, 110
RECORDING_SESSIONS, REPLAY_SESSIONS, CONTROL_SESSION = 111, 112, 113

# Conductor timers ten times as fast as the default, so that what waits for a tick waits 0.1 s; limits that sharing tests
# do not meet; publications that linger briefly, so that a replay's end is seen soon.
DRIVER_SETTINGS: Mapping[str, str] = {
    "aeron.threading.mode": "SHARED",
    "aeron.shared.idle.strategy": "backoff",
    "aeron.ipc.term.buffer.length": "64k",
    "aeron.term.buffer.length": "64k",
    "aeron.timer.interval": "100ms",
    "aeron.driver.timeout": "5000",
    "aeron.spies.simulate.connection": "true",
    "aeron.publication.linger.timeout": "200ms",
    "aeron.dir.delete.on.start": "true",
}
ARCHIVE_SETTINGS: Mapping[str, str] = {
    "aeron.archive.threading.mode": "SHARED",
    "aeron.archive.segment.file.length": str(SEGMENT),
    "aeron.archive.max.concurrent.recordings": "1000",
    "aeron.archive.max.concurrent.replays": "100",
    "aeron.archive.recording.events.enabled": "true",
    "aeron.archive.recording.events.channel": "aeron:ipc",
    "aeron.archive.recording.events.stream.id": str(EVENTS_STREAM),
    "aeron.archive.replication.channel": "aeron:udp?endpoint=127.0.0.1:0",
    "aeron.archive.replay.linger.timeout": "200ms",
    "aeron.archive.low.storage.space.threshold": "1m",
}
# For what must time out: the archive's timeouts 0.6 s instead of 5 s.
IMPATIENT: Mapping[str, str] = {"aeron.archive.connect.timeout": "600ms"}


def ours(reason: str, *, hangs: bool = False) -> pytest.MarkDecorator:
    """A test of what only our archive does, on purpose; the stock archive passing it is an error.

    `hangs`: it is not run there, because the stock archive would serve nobody any more.
    """
    return pytest.mark.xfail(not IS_OURS, reason=f"{PEER}: {reason}", strict=True, run=not hangs)


def tool(archive_dir: Path, *arguments: str, answers: str = "") -> stock.ToolResult:
    """The stock ArchiveTool on a folder, for each archive under test; skips with the reason without a JDK."""
    return stock.archive_tool(archive_dir, *arguments, answers=answers)


class Archive(Closing):
    """An archive under test on a folder, with its driver, and a client of ours on that driver.

    `settings` go to both. `archive_dir`: an existing folder, else a fresh one that goes with the archive. `apart`: driver and
    archive are two processes, `driver` and `process`; else both are `process`. `control_port` is that of the control channel.
    `peer`: another than the one under test, where two are mixed.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        archive_dir: Path | None = None,
        apart: bool = False,
        control: bool = True,
        peer: str = PEER,
    ) -> None:
        self._stack = ExitStack()
        self.aeron_dir = self._stack.enter_context(dirs.fresh("aeron"))
        self.archive_dir = archive_dir or self._stack.enter_context(dirs.fresh("archive"))
        self.apart = apart
        self.is_ours = peer == "ours"
        self.control_port = free_port() if control else 0
        self.settings = {**ARCHIVE_SETTINGS, **self._control(), **(settings or {})}
        self._driver_settings = {**DRIVER_SETTINGS, **(settings or {})}
        self.driver: Process | None = None
        try:
            self.driver = self._start_driver() if apart else None
            self.process = self._start()
        except BaseException:
            if self.driver is not None:
                self.driver.stop()
            self._stack.close()
            raise
        self.client = Client(self.aeron_dir, timeout=30, on_error=lambda _: None)
        self.cnc = Cnc(self.aeron_dir)

    def _control(self) -> dict[str, str]:
        if not self.control_port:
            return {"aeron.archive.control.channel.enabled": "false"}
        return {
            "aeron.archive.control.channel.enabled": "true",
            "aeron.archive.control.channel": f"aeron:udp?endpoint=127.0.0.1:{self.control_port}",
        }

    def _start_driver(self) -> Process:
        if self.is_ours:
            return native.driver(self.aeron_dir, self._driver_settings)
        return stock.driver(self.aeron_dir, threading="SHARED", settings=self._stock(self._driver_settings))

    def _start(self) -> Process:
        both = self.settings if self.apart else {**self._driver_settings, **self.settings}
        if not self.is_ours:
            return stock.archive(
                self.aeron_dir, self.archive_dir, with_driver=not self.apart, settings=self._stock(both)
            )
        if self.apart:
            return native.archive(self.aeron_dir, self.archive_dir, both)
        named = {**both, "aeron.dir": str(self.aeron_dir), "aeron.archive.dir": str(self.archive_dir)}
        command = [native.executable("aeron-spark-archive"), *(f"-D{name}={value}" for name, value in named.items())]
        process = Process("aeron-spark-archive", command)
        return process.wait_ready(archive_ready(process, self.archive_dir))

    @staticmethod
    def _stock(settings: Mapping[str, str]) -> dict[str, str]:
        """The same for stock Java, which wants a class name for an idle strategy."""
        return {name: value for name, value in settings.items() if not name.endswith("idle.strategy")}

    # -- seen from outside ---------------------------------------------------------------------------------------------------

    @property
    def control_channel(self) -> str:
        """The network control channel."""
        return f"aeron:udp?endpoint=127.0.0.1:{self.control_port}"

    def counters(self, type_id: int) -> list[Counter]:
        """The allocated counters of a type."""
        return [counter for counter in self.cnc.counters() if counter.type_id == type_id]

    def counter(self, type_id: int) -> int:
        """Value of the one counter of a type."""
        (found,) = self.counters(type_id)
        return found.value

    def recording_counter(self, recording_id: int) -> Counter | None:
        """The position counter of an active recording."""
        key = struct.pack("<q", recording_id)
        return next((counter for counter in self.counters(REC_POS) if counter.key[:8] == key), None)

    def session_counter(self, control_session_id: int) -> Counter | None:
        """The counter of a control session."""
        key = struct.pack("<q", control_session_id)
        return next((counter for counter in self.counters(CONTROL_SESSION) if counter.key[8:16] == key), None)

    def await_counter(self, type_id: int, value: int, *, timeout: float = 10.0) -> None:
        """Wait until the one counter of a type is exactly that."""
        await_value(lambda: self.counter(type_id), value, f"counter of type {type_id}", timeout=timeout)

    def errors(self) -> list[str]:
        """What the archive has logged: its own error log, the driver's (the stock archive uses that one), and stderr."""
        printed = service_log.problems(self.process.stderr())  # first: what is printed there is in the log by then
        return [*folder.mark_errors(self.archive_dir), *self.cnc.errors(), *printed]

    def report(self) -> str:
        """What archive and driver have printed and logged, and whether they live."""
        processes = [process for process in (self.process, self.driver) if process is not None]
        return "\n".join([*(process.report() for process in processes), "--- error logs", *self.errors()])

    def await_error(self, text: str, *, timeout: float = 10.0) -> str:
        """Wait until something with that text is logged."""
        return wait_until(
            lambda: next((one for one in self.errors() if text in one), None),
            timeout,
            f"{text!r} in the error log",
            state=self.errors,
        )

    def catalog(self) -> folder.Catalog:
        """The catalog file as it is now."""
        return folder.Catalog.read(self.archive_dir)

    # -- life ----------------------------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """Kill -9 the archive; with `apart` its driver lives on."""
        self.process.kill()

    def stop(self) -> None:
        """Let the archive end by SIGTERM."""
        self.process.stop()

    def start(self, settings: Mapping[str, str] | None = None) -> None:
        """Start it again on the same folder, after `kill` or `stop`; `settings` change some.

        Without `apart` the driver of before is gone as well, so the client is a new one.
        """
        self.settings = {**self.settings, **(settings or {})}
        if mark.read(self.archive_dir) is not None and mark.is_live(self.archive_dir):
            mark.age(self.archive_dir)
        if not self.apart:
            self.client.close()
        self.process = self._start()
        if not self.apart:
            self.client = Client(self.aeron_dir, timeout=30, on_error=lambda _: None)

    def close(self) -> None:
        """End client, archive and driver, and remove what they left."""
        self.client.close()
        try:
            self.process.stop()
            if self.driver is not None:
                self.driver.stop()
        finally:
            self._stack.close()


def await_value(read: Callable[[], Any], value: Any, what: str, *, timeout: float = 10.0) -> None:
    """Wait until `read` gives exactly `value`."""
    wait_until(lambda: read() == value, timeout, f"{what} to be {value}", state=read)
