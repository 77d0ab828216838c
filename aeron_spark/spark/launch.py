"""The media driver (and, where asked, the archive) beside an executor.

Where no driver runs, the first task of an application on a host starts one in a directory of the application. Tasks race for
that, so a file lock guards the check and the start. The lock and the directories are in a folder of the user in the host's
shared memory, which is never on a network: other users can neither hold the lock nor take the name first. Only that folder
remains, empty. A host without shared memory, or with too little for a stream, has the folder where temporary files are. The
driver stops by itself some seconds after its last client is gone, even if the executor was killed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aeron_spark.archive.segments import Folder, FolderInfo
from aeron_spark.config import default_aeron_dir
from aeron_spark.config import executable as native_executable
from aeron_spark.driver import check_aeron_dir, is_driver_active
from aeron_spark.errors import AeronError, PeerError, StorageError, UsageError, WaitTimeoutError

__all__ = ["application_identity", "ensure_archive", "ensure_driver", "live_archive", "own_folder"]

#: A driver of ours ends this long after its last client: long enough to bridge the gap between two micro-batches.
IDLE_EXIT = "10s"
START_TIMEOUT_SECONDS = 20.0
#: Whoever holds the lock starts a server or gives up; several may stand before us.
LOCK_TIMEOUT_SECONDS = 60.0
#: Longer than a dead archive seems alive. One whose driver timeout is longer may live on without its driver.
ORPHAN_TIMEOUT_SECONDS = 12.0
#: Recordings at a time of an archive of ours: each task of the sink has one. The stock default is 20.
MAX_CONCURRENT_RECORDINGS = 1000
#: Where Aeron directories belong: their files are memory that processes share.
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108
#: Less cannot hold the logs of a stream, three terms of 16 MiB, besides those of the archive's answers.
LEAST_SHARED_MEMORY_BYTES = 100 << 20
_POLL_SECONDS = 0.01


def application_identity() -> str:
    """Text that is the same in all processes of one Spark application on its driver's host, and in no other application.

    Planning runs in Python workers of the Spark driver's JVM: the oldest ancestor that is a JVM, by process id and start time.
    """
    pid = os.getpid()
    jvm = f"{pid}"
    while pid > 1:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
            command = Path(f"/proc/{pid}/comm").read_text(encoding="ascii", errors="replace").strip()
        except OSError:
            break
        if command == "java":
            jvm = f"{pid}:{fields[19]}"
        pid = int(fields[1])
    return hashlib.sha256(f"{os.uname().nodename}:{jvm}".encode()).hexdigest()[:12]


def ensure_driver(aeron_dir: str | None, *, application: str, may_launch: bool) -> str:
    """Directory of a live driver: the one named, else the default one if it lives, else one started for the application.

    Raises UsageError where no driver runs and none may be started, and for a directory of a stranger's that was named,
    WaitTimeoutError when one does not come up.
    """
    if aeron_dir is not None:
        check_aeron_dir(aeron_dir)
        if is_driver_active(aeron_dir):
            return aeron_dir
        if not may_launch:
            raise UsageError(
                f"no media driver runs in {aeron_dir}: start one with `aeron-spark driver --dir {shlex.quote(aeron_dir)}`, "
                f"or set launchDriver=true"
            )
        return _start_driver(aeron_dir)
    default = str(default_aeron_dir())
    if is_driver_active(default):
        return default
    if not may_launch:
        check_aeron_dir(default)
        raise UsageError(
            f"no media driver runs in {default}: start one with 'aeron-spark driver', name its directory by the option "
            f"aeronDir, or set launchDriver=true"
        )
    return _start_driver(str(own_folder() / application))


def _start_driver(aeron_dir: str) -> str:
    executable = native_executable("aeron-spark-driver")
    with _locked():
        if is_driver_active(aeron_dir):
            return aeron_dir
        command = [
            str(executable),
            f"-Daeron.dir={aeron_dir}",
            "-Daeron.dir.delete.on.shutdown=true",
            "-Daeron.threading.mode=SHARED",
            f"-Daeron.spark.driver.exit.when.idle={IDLE_EXIT}",
            "-Daeron.spark.log.level=warning",
        ]
        _start_and_wait(command, what=f"media driver in {aeron_dir}", is_ready=lambda: is_driver_active(aeron_dir))
    return aeron_dir


def live_archive(folder: str) -> FolderInfo | None:
    """The archive that is alive on a folder; None where there is none. An archive that was killed counts as alive for 10 s.

    One without a live driver ends, or was killed with it: another cannot start until its last heartbeat is old enough, and
    heartbeats are up to a second apart, so that may be a second after the driver's. This waits for it.
    """
    deadline = time.monotonic() + ORPHAN_TIMEOUT_SECONDS
    while True:
        try:
            with Folder(folder) as opened:
                info = opened.info()
        except AeronError:
            return None  # no archive was here yet; if the folder is damaged, the archive to be started reports it
        if not info.is_live or info.aeron_dir is None:
            return None
        if is_driver_active(info.aeron_dir) or time.monotonic() > deadline:
            return info
        time.sleep(_POLL_SECONDS)


def ensure_archive(folder: str, aeron_dir: str) -> FolderInfo:
    """The archive that is alive on that folder, else one started beside the driver; the mark file refuses a second.

    An archive of ours takes control sessions on a stream of its folder's own: several may share one driver, and a request
    must not reach two.
    """
    executable = native_executable("aeron-spark-archive")
    with _locked():
        info = live_archive(folder)
        if info is not None:
            return info
        command = [
            str(executable),
            "--beside-driver",
            f"-Daeron.dir={aeron_dir}",
            f"-Daeron.archive.dir={folder}",
            "-Daeron.archive.control.channel.enabled=false",
            "-Daeron.archive.threading.mode=SHARED",
            f"-Daeron.archive.local.control.stream.id={_control_stream_of(folder)}",
            f"-Daeron.archive.max.concurrent.recordings={MAX_CONCURRENT_RECORDINGS}",
            f"-Daeron.spark.archive.exit.when.idle={IDLE_EXIT}",
            "-Daeron.spark.log.level=warning",
        ]

        def is_ready() -> bool:
            started = live_archive(folder)
            return started is not None and str(started.aeron_dir) == aeron_dir

        _start_and_wait(command, what=f"archive on {folder}", is_ready=is_ready)
        info = live_archive(folder)
        if info is None:
            raise PeerError(f"the archive on {folder} ended as soon as it was ready: see the error log of {aeron_dir}")
        return info


def _control_stream_of(folder: str) -> int:
    """31 bits of the folder's name, far from the small numbers that people choose."""
    return int.from_bytes(hashlib.sha256(os.path.realpath(folder).encode()).digest()[:4], "big") >> 1 | 1 << 30


def _place() -> Path:
    """Where the folder of drivers is. By the size of the whole, not what is free, so that all processes agree."""
    try:
        found = os.statvfs(SHARED_MEMORY)
    except OSError:
        return Path(tempfile.gettempdir())
    is_large = found.f_blocks * found.f_frsize >= LEAST_SHARED_MEMORY_BYTES
    is_writable = not found.f_flag & os.ST_RDONLY and os.access(SHARED_MEMORY, os.W_OK)
    return SHARED_MEMORY if is_large and is_writable else Path(tempfile.gettempdir())


def own_folder() -> Path:
    """Folder in the host's shared memory that nobody else can write or open; made where there is none.

    Its name can be guessed and taken first, so this searches the names that begin with it.
    """
    name, place = f"aeron-spark-{os.geteuid()}", _place()
    while True:
        found = sorted(path for path in (place / name, *place.glob(f"{name}.*")) if _is_own(path))
        if found:
            return found[0]
        try:
            (place / name).mkdir(0o700)
        except FileExistsError:
            tempfile.mkdtemp(prefix=f"{name}.", dir=place)
        except OSError as failure:
            raise StorageError(
                f"can't make {place / name}, where media drivers are started: {failure.strerror}",
                code=failure.errno or 0,
            ) from failure


def _is_own(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


@contextmanager
def _locked() -> Iterator[None]:
    folder = own_folder()
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise WaitTimeoutError(
                        f"another process has held the lock on {folder} for {LOCK_TIMEOUT_SECONDS:.0f} s, under which "
                        f"media drivers are started: see who with 'lslocks'"
                    ) from None
                time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(handle)


def _start_and_wait(command: list[str], *, what: str, is_ready: Callable[[], bool]) -> None:
    # Its output goes to a file: a pipe would close with this process, and the server's next write would kill it.
    with tempfile.TemporaryFile() as errors:
        # Its own session: a signal to the executor's process group must not end what other tasks use.
        process = subprocess.Popen(  # noqa: S603 - our own executable
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
        )
        # Reaps it if it ends before this process.
        threading.Thread(target=process.wait, name=f"reap {what}", daemon=True).start()
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not is_ready():
            if process.poll() is not None:
                errors.seek(0)
                text = errors.read().decode(errors="replace").strip()
                raise StorageError(f"the {what} ended at once with exit code {process.returncode}: {text}")
            if time.monotonic() > deadline:
                process.kill()
                raise WaitTimeoutError(
                    f"the {what} was not ready after {START_TIMEOUT_SECONDS:.0f} s: {' '.join(command)}"
                )
            time.sleep(_POLL_SECONDS)
