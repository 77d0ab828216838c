"""A driver and an archive for one test."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from aeron_spark.archive.client import Archive
from aeron_spark.archive.server import ArchivingMediaDriver
from aeron_spark.client import Client
from aeron_spark.closing import Closing
from aeron_spark.config import Settings
from aeron_spark.errors import AeronError
from aeron_spark.testing.ports import free_port

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where Aeron directories belong
# One agent thread each and small files: several tests run at a time. Servers whose test was killed end by themselves.
DEFAULTS: Settings = {
    "aeron.threading.mode": "SHARED",
    "aeron.archive.threading.mode": "SHARED",
    "aeron.archive.control.channel.enabled": False,
    "aeron.archive.segment.file.length": "1m",
    "aeron.dir.delete.on.shutdown": True,
    "aeron.spark.driver.exit.when.idle": "10s",
    "aeron.spark.archive.exit.when.idle": "10s",
}


class Servers(Closing):
    """A media driver and an archive as child processes, with a client and a control session on them.

    Both have new directories, below `/dev/shm` and the folder for temporary files, which `close` removes; the end of a
    `with` block closes. `settings` are of both servers, by their stock names, and replace `DEFAULTS`. The archive accepts
    control over IPC. Servers whose owner is killed end within a minute.

    Errors are those of `ArchivingMediaDriver`, with a note that says where to look. Thread rule: any thread.
    """

    aeron_dir: Path
    archive_dir: Path
    client: Client
    archive: Archive

    def __init__(self, *, settings: Settings | None = None) -> None:
        with ExitStack() as stack:
            self.aeron_dir = _directory(stack, SHARED_MEMORY)
            self.archive_dir = _directory(stack, Path(tempfile.gettempdir()))
            try:
                stack.enter_context(
                    ArchivingMediaDriver(
                        self.archive_dir, self.aeron_dir, settings={**DEFAULTS, **(settings or {})}, embedded=False
                    )
                )
                self.client = stack.enter_context(Client(self.aeron_dir))
                self.archive = stack.enter_context(Archive(self.client))
            except AeronError as failure:
                failure.add_note(
                    f"The test's driver and archive did not start in {self.aeron_dir} and {self.archive_dir}: check free "
                    f"space in both (df {SHARED_MEMORY} {self.archive_dir.parent}), and this machine by `aeron-spark doctor`"
                )
                raise
            self._stack = stack.pop_all()

    @staticmethod
    def udp_channel() -> str:
        """A channel of 127.0.0.1 at a UDP port that no other test process uses."""
        return f"aeron:udp?endpoint=127.0.0.1:{free_port()}"

    def close(self) -> None:
        """End client, archive and driver, then remove their directories; repeated calls are harmless."""
        self._stack.close()

    def __repr__(self) -> str:
        return f"<Servers {self.aeron_dir} {self.archive_dir}>"


def _directory(stack: ExitStack, parent: Path) -> Path:
    path = Path(tempfile.mkdtemp(prefix=f"aeron-spark-testing-{os.getpid()}-", dir=parent))
    stack.callback(_remove, path)
    return path


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    # A driver that fails writes its error log beside its directory.
    for log in path.parent.glob(f"{path.name}-*-error.log"):
        log.unlink(missing_ok=True)
