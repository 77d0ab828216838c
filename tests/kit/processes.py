"""Real processes of tests: start, wait until ready, stop, kill, and never leave one behind.

Every process gets its own process group and dies with the session at the latest (`end_all`, called by conftest).
Standard output and error go to files, so that a talkative child never blocks and a failed test can show them.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.kit import mark, wait
from tests.kit.cnc import Cnc

READY_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 15.0

_started: list[Process] = []


class Process:
    """A child process; a context manager that stops it. A variable of `env` that is None is not set for it."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.name = name
        self.command = [str(part) for part in command]
        # Kept by name: a descriptor for each would, after hundreds of processes, be more than select() takes.
        self._folder = Path(tempfile.mkdtemp(prefix="output-"))
        with (self._folder / "out").open("wb") as out, (self._folder / "err").open("wb") as err:
            self._popen = subprocess.Popen(
                self.command,
                env={key: value for key, value in {**os.environ, **(env or {})}.items() if value is not None},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        _started.append(self)

    @property
    def pid(self) -> int:
        """Process id, also after the end."""
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        """Exit code, negative for a signal, None while it runs."""
        return self._popen.poll()

    def stdout(self) -> str:
        """Its standard output so far."""
        return (self._folder / "out").read_bytes().decode("utf-8", "replace")

    def stderr(self) -> str:
        """Its standard error so far."""
        return (self._folder / "err").read_bytes().decode("utf-8", "replace")

    def wait_ready(self, is_ready: Callable[[], bool], *, timeout: float = READY_TIMEOUT_S) -> Self:
        """Wait until `is_ready`; a child that ends instead, or is late, is an error with all it said."""

        def ready_or_ended() -> bool:
            return self.returncode is not None or is_ready()

        try:
            wait.wait_until(ready_or_ended, timeout, f"{self.name} to be ready")
        except wait.DeadlineError as error:
            self.kill()
            raise wait.DeadlineError(f"{error}\n{self.report()}") from None
        if self.returncode is not None:
            raise AssertionError(f"{self.name} ended instead of becoming ready\n{self.report()}")
        return self

    def wait_end(self, *, timeout: float = STOP_TIMEOUT_S) -> int:
        """Wait until it ends by itself and return the exit code."""
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise wait.DeadlineError(f"{self.name} did not end in {timeout} s\n{self.report()}") from None

    def stop(self, signum: int = signal.SIGTERM, *, timeout: float = STOP_TIMEOUT_S) -> int:
        """Ask it to end and return its exit code; ended already is fine, not ending is an error."""
        if self.returncode is None:
            self._popen.send_signal(signum)
        return self.wait_end(timeout=timeout)

    def kill(self) -> None:
        """Kill -9, the whole group, and reap it."""
        if self.returncode is None:
            os.killpg(self._popen.pid, signal.SIGKILL)
            self._popen.wait()

    def pause(self) -> None:
        """SIGSTOP: alive and silent."""
        self._popen.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._popen.send_signal(signal.SIGCONT)

    def remove_output(self) -> None:
        """Give the output back to the system; it cannot be read any more."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def report(self) -> str:
        """Command, exit code and output, for error texts."""
        return (
            f"command: {' '.join(self.command)}\nexit code: {self.returncode}\n"
            f"--- stdout\n{self.stdout()}\n--- stderr\n{self.stderr()}"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.kill()
        else:
            self.stop()


def driver_ready(process: Process, aeron_dir: Path) -> Callable[[], bool]:
    """A predicate: the process, and not one that was killed there before, is the live driver of the directory."""
    cnc = Cnc(aeron_dir)

    def ready() -> bool:
        header = cnc.header()
        return header is not None and header.pid == process.pid and cnc.is_live()

    return ready


def archive_ready(process: Process, archive_dir: Path) -> Callable[[], bool]:
    """A predicate: the process is the live archive of the folder."""

    def ready() -> bool:
        seen = mark.read(archive_dir)
        return seen is not None and seen.pid == process.pid and seen.is_live()

    return ready


def end_all() -> list[str]:
    """Kill what still runs; returns the names, for the leak check."""
    running = [process for process in _started if process.returncode is None]
    for process in running:
        process.kill()
    for process in _started:
        process.remove_output()
    _started.clear()
    return [f"{process.name} (pid {process.pid})" for process in running]
