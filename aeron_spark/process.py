"""Native servers as child processes: start, wait until ready, stop."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence

from aeron_spark.config import Settings, environment_name, executable, known_names, text
from aeron_spark.errors import AeronError, PeerError, WaitTimeoutError

STOP_TIMEOUT_S = 10.0


class ChildProcess:
    """A running `aeron-spark-driver` or `aeron-spark-archive`.

    In a process group of its own, so that Ctrl-C at a terminal reaches it only through its owner. What it writes goes to a
    file, whose end is reported when it fails. Settings go by the environment, which other users can't see: they can see
    `arguments`.
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        *,
        arguments: Sequence[str],
        is_ready: Callable[[int], bool],
        timeout: float,
    ) -> None:
        """Start it and wait until `is_ready(pid)`; an AeronError of that function means "not yet".

        `settings` may hold those of the other server: they are not passed on.
        """
        self.name = name
        # What it says is for the error of a failed start, unless the settings want more.
        settings = {"aeron.spark.log.level": "warning", **settings}
        is_archive = name == "aeron-spark-archive"
        known = set(map(environment_name, known_names(of_driver=not is_archive, of_archive=is_archive)))
        given = {environment_name(key): text(value) for key, value in settings.items()}
        environment = {**os.environ, **{key: value for key, value in given.items() if key in known}}
        with tempfile.TemporaryFile() as output:
            self._output = os.dup(output.fileno())
            self._process = subprocess.Popen(  # noqa: S603 - our own executable
                [str(executable(name)), *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        try:
            self._wait_ready(is_ready, timeout)
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """Process id, also after the end."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """False once it has ended."""
        return self._process.poll() is None

    def output(self) -> str:
        """End of what it has written so far."""
        size = os.fstat(self._output).st_size
        return os.pread(self._output, 4096, max(0, size - 4096)).decode("utf-8", "replace").strip()

    def stop(self) -> None:
        """Ask it to end, kill it when it does not; again is harmless."""
        if self._output < 0:
            return
        try:
            if self.is_running:
                self._process.send_signal(signal.SIGTERM)
                self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        finally:
            os.close(self._output)
            self._output = -1

    def _wait_ready(self, is_ready: Callable[[int], bool], timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while True:
            try:
                if is_ready(self.pid):
                    return
                reason = "it is not ready"
            except AeronError as failure:
                reason = str(failure)
            if not self.is_running:
                code = self._process.returncode
                raise PeerError(f"{self.name} ended with exit code {code}: {self.output() or 'no output'}", code=code)
            if time.monotonic() >= deadline:
                raise WaitTimeoutError(f"{self.name} was not ready within {timeout} s: {reason}; {self.output()}")
            time.sleep(0.005)
