"""Archives: embedded in this process, or as a child process; alone or together with their driver."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.check import c_path, c_string, check, string
from aeron_spark._native.handle import Handle
from aeron_spark.archive.segments import Folder
from aeron_spark.closing import Closing
from aeron_spark.config import Settings, default_aeron_dir, text, warn_misspelt
from aeron_spark.driver import START_TIMEOUT_S, MediaDriver
from aeron_spark.process import ChildProcess


class ArchiveServer(Handle):
    """A running archive beside the driver of `aeron_dir`, with its recordings in `archive_dir`.

    `settings` use their stock names ("aeron.archive.segment.file.length": "64m"). Missing ones are read from the
    environment, then from the stock defaults. Embedded, it runs on native threads of this process, otherwise as a child
    process `aeron-spark-archive`.

    UsageError: an invalid setting, or a live archive owns the folder; DataLossError: the folder's catalog is foreign or
    damaged; WaitTimeoutError: no driver. A child that ends early raises PeerError with its output.
    """

    def __init__(
        self,
        archive_dir: str | os.PathLike[str],
        aeron_dir: str | os.PathLike[str] | None = None,
        *,
        settings: Settings | None = None,
        embedded: bool = True,
    ) -> None:
        self.archive_dir = Path(archive_dir)
        self.aeron_dir = Path(aeron_dir) if aeron_dir is not None else default_aeron_dir()
        warn_misspelt(settings or (), of_archive=True)
        all_settings: Settings = {
            **(settings or {}),
            "aeron.dir": self.aeron_dir,
            "aeron.archive.dir": self.archive_dir,
        }
        if embedded:
            super().__init__(_embedded(all_settings), lib.as_archive_close)
        else:
            child = ChildProcess(
                "aeron-spark-archive",
                all_settings,
                arguments=[
                    "--beside-driver",
                    f"-Daeron.dir={self.aeron_dir}",
                    f"-Daeron.archive.dir={self.archive_dir}",
                ],
                is_ready=self._is_owned_by,
                timeout=START_TIMEOUT_S,
            )
            super().__init__(child, ChildProcess.stop)

    @property
    def pid(self) -> int:
        """Id of the process that the archive runs in."""
        with self._use() as archive:
            return archive.pid if isinstance(archive, ChildProcess) else os.getpid()

    @property
    def failure(self) -> str | None:
        """Why the archive has failed (driver gone, child ended), None while it is running."""
        with self._use() as archive:
            if isinstance(archive, ChildProcess):
                return None if archive.is_running else archive.output() or "the process has ended"
            return string(lib.as_archive_failure(archive)) if lib.as_archive_has_failed(archive) else None

    def _is_owned_by(self, pid: int) -> bool:
        with Folder(self.archive_dir) as folder:
            info = folder.info()
        return info.is_live and info.pid == pid

    def __repr__(self) -> str:
        return f"<ArchiveServer {self.archive_dir}{' closed' if self.is_closed else ''}>"


class ArchivingMediaDriver(Closing):
    """A media driver and an archive that start and stop together.

    `settings` are those of both. See `MediaDriver` and `ArchiveServer` for the exceptions.
    """

    def __init__(
        self,
        archive_dir: str | os.PathLike[str],
        aeron_dir: str | os.PathLike[str] | None = None,
        *,
        settings: Settings | None = None,
        embedded: bool = True,
    ) -> None:
        self.driver = MediaDriver(aeron_dir, settings=settings, embedded=embedded)
        try:
            self.archive = ArchiveServer(archive_dir, self.driver.aeron_dir, settings=settings, embedded=embedded)
        except BaseException:
            self.driver.close()
            raise
        self.aeron_dir = self.driver.aeron_dir
        self.archive_dir = self.archive.archive_dir

    def close(self) -> None:
        """Close the archive, then the driver; repeated calls are harmless."""
        try:
            self.archive.close()
        finally:
            self.driver.close()


def _embedded(settings: Settings) -> Any:
    out = ffi.new("as_archive_config **")
    check(lib.as_archive_config_open(out))
    config = ffi.gc(out[0], lib.as_archive_config_close)
    check(lib.as_archive_config_load_environment(config))
    for name, value in settings.items():
        check(lib.as_archive_config_set(config, c_string(name), c_path(text(value))))
    archive = ffi.new("as_archive **")
    check(lib.as_archive_open(config, archive))
    result = lib.as_archive_start(archive[0])
    try:
        check(result)
    except BaseException:
        lib.as_archive_close(archive[0])
        raise
    return archive[0]
