"""Media drivers: embedded in this process, or as a child process."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.callback import Callbacks
from aeron_spark._native.check import c_path, c_string, check
from aeron_spark._native.handle import Handle
from aeron_spark.config import Settings, default_aeron_dir, text, warn_misspelt
from aeron_spark.counters import Counters
from aeron_spark.errors import ClosedError, DataLossError, StorageError, UsageError, WaitTimeoutError
from aeron_spark.process import ChildProcess

START_TIMEOUT_S = 20.0


class MediaDriver(Handle):
    """A running media driver.

    `settings` go by their stock names ("aeron.threading.mode": "SHARED"); what they leave open comes from the environment
    (`AERON_THREADING_MODE`), then from the stock defaults. Embedded, the driver runs on native threads of this process,
    which do not need the GIL; otherwise as a child process `aeron-spark-driver`. A child outlives a parent that was
    killed, unless "aeron.spark.driver.exit.when.idle" (for an archive "aeron.spark.archive.exit.when.idle") is set.

    UsageError: a setting can't be, or a live driver owns the directory. A child that ends early raises PeerError with what
    it printed. Thread rule: any thread.
    """

    def __init__(
        self,
        aeron_dir: str | os.PathLike[str] | None = None,
        *,
        settings: Settings | None = None,
        embedded: bool = True,
    ) -> None:
        self.aeron_dir = Path(aeron_dir) if aeron_dir is not None else default_aeron_dir()
        warn_misspelt(settings or (), of_archive=False)
        self._terminated = threading.Event()
        all_settings: Settings = {**(settings or {}), "aeron.dir": self.aeron_dir}
        if embedded:
            self._callbacks = Callbacks(on_termination=self._terminated.set)
            pointer = _embedded(all_settings, self._callbacks)
            super().__init__(pointer, lib.as_driver_close, callbacks=self._callbacks)
        else:
            child = ChildProcess(
                "aeron-spark-driver",
                all_settings,
                arguments=[f"-Daeron.dir={self.aeron_dir}"],
                is_ready=self._is_driven_by,
                timeout=START_TIMEOUT_S,
            )
            super().__init__(child, ChildProcess.stop)

    @property
    def pid(self) -> int:
        """Process that the driver runs in."""
        with self._use() as driver:
            return driver.pid if isinstance(driver, ChildProcess) else os.getpid()

    @property
    def is_running(self) -> bool:
        """False once closed, once a child process has ended, or once an embedded driver was asked to terminate."""
        if self.is_closed or self._terminated.is_set():
            return False
        try:
            with self._use() as driver:
                return driver.is_running if isinstance(driver, ChildProcess) else True
        except ClosedError:
            return False

    def wait_terminated(self, timeout: float) -> bool:
        """Block until a client asked the embedded driver to end, at most `timeout` seconds; True if one did.

        The owner then closes it.
        """
        return self._terminated.wait(timeout)

    def _is_driven_by(self, pid: int) -> bool:
        with Counters(self.aeron_dir) as counters:
            driver = counters.driver()
        return driver.is_active and driver.pid == pid

    def __repr__(self) -> str:
        return f"<MediaDriver {self.aeron_dir}{' closed' if self.is_closed else ''}>"


def check_aeron_dir(aeron_dir: str | os.PathLike[str], *, owner: str | None = None, writers: str | None = None) -> None:
    """UsageError where clients of this process would use no driver in that directory: it is a stranger's, or he may write it.

    Oneself, root and `owner` are none, which is `AERON_SPARK_DIR_OWNER` where not given; `writers` goes by
    `AERON_SPARK_DIR_WRITERS`. What does not exist is fine.
    """
    texts = [ffi.NULL if given is None else c_string(given) for given in (owner, writers)]
    check(lib.as_check_aeron_dir(c_path(aeron_dir), *texts))


def is_driver_active(aeron_dir: str | os.PathLike[str]) -> bool:
    """True when a live driver that clients would use owns the directory; False where it is absent, stale, or a stranger's."""
    try:
        check_aeron_dir(aeron_dir)
        with Counters(aeron_dir) as counters:
            return counters.driver().is_active
    except (StorageError, DataLossError, UsageError, WaitTimeoutError):
        return False


def _embedded(settings: Settings, callbacks: Callbacks) -> Any:
    out = ffi.new("as_driver_config **")
    check(lib.as_driver_config_open(out))
    config = ffi.gc(out[0], lib.as_driver_config_close)
    check(lib.as_driver_config_load_environment(config))
    for name, value in settings.items():
        check(lib.as_driver_config_set(config, c_string(name), c_path(text(value))))
    driver = ffi.new("as_driver **")
    check(lib.as_driver_open(config, lib.asp_on_termination, callbacks.context, driver))
    result = lib.as_driver_start(driver[0])
    try:
        check(result)
    except BaseException:
        lib.as_driver_close(driver[0])
        raise
    return driver[0]
