"""Stock Aeron for the tests and benchmarks: built once, run as processes or through one py4j gateway.

The Java peers live in tests/interop/java. The release they use is the one of its pom.xml, the one that the product
is compatible with. `AERON_SPARK_STOCK_VERSION` sets another, for a machine whose registry lacks it; the version that
really runs is printed in the header of the test session and stands in each JSON line of a load.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JJavaError

from aeron_spark.closing import Closing
from tests.kit import require
from tests.kit.processes import Process, archive_ready, driver_ready

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "tests" / "interop" / "java"
BUILD = ROOT / "build" / "interop"

JVM_OPTIONS = (
    "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-opens=java.base/java.util.zip=ALL-UNNAMED",
    "-XX:+UseSerialGC",
    "-Xmx1g",
)
# Compile quickly rather than well: right for tests, wrong for measuring.
QUICK_START = ("-XX:TieredStopAtLevel=1",)

# The stock counterparts of tests.kit.native's settings.
DRIVER_SETTINGS: Mapping[str, str] = {
    "aeron.ipc.term.buffer.length": "64k",
    "aeron.driver.timeout": "5000",
    "aeron.dir.delete.on.start": "true",
    "aeron.dir.delete.on.shutdown": "true",
}
ARCHIVE_SETTINGS: Mapping[str, str] = {
    "aeron.archive.segment.file.length": "131072",
    "aeron.archive.control.channel.enabled": "false",
}


class BuildError(Exception):
    """The peers could not be built; the text names the reason and the remedy."""


class ReleaseAbsentError(BuildError):
    """The registry answered that it does not have this release."""


def releases() -> list[str]:
    """Stock releases that will do, best first: the environment's choice, else those of the pom."""
    chosen = os.environ.get("AERON_SPARK_STOCK_VERSION")
    return [chosen] if chosen else _pom_releases()


def _wanted() -> str:
    """The release that the product is compatible with."""
    return _pom_releases()[0]


def _pom_releases() -> list[str]:
    pom = ET.parse(SOURCES / "pom.xml").getroot()  # noqa: S314 - our own file
    found = [pom.find(f"{{*}}properties/{{*}}{name}") for name in ("aeron.version", "aeron.version.older")]
    assert all(element is not None and element.text for element in found), "pom.xml lost its Aeron releases"
    return [str(element.text) for element in found if element is not None]


def version() -> str:
    """The stock release that is used: the first of `releases` that the registry had."""
    return next((release for release in releases() if not _absent(release).exists()), releases()[-1])


def shortfall() -> str | None:
    """What a session must say at its end where the stock release it ran was not the one to be compatible with."""
    used = version()
    if _build_once.cache_info().currsize == 0 or used == _wanted():
        return None
    return f"stock Aeron {used} was used; nothing in this session was tested against {_wanted()}"


def _absent(release: str) -> Path:
    """Marks a release that the registry does not have, so that it is asked for once in a build folder's life."""
    return BUILD / release / "absent"


def ensure_built() -> str:
    """Build the peers once and return their class path.

    Safe to call from many processes at a time; a build that is up to date costs a hash of a few small files.

    Raises:
        BuildError: No java or mvn on PATH, or no release could be fetched and compiled against.
    """
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise BuildError(f"{tool} is not on PATH; install a JDK 17 and Maven to test against stock Aeron")
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        candidates = [release for release in releases() if not _absent(release).exists()] or releases()[-1:]
        for release in candidates:
            try:
                return _build(release)
            except ReleaseAbsentError:
                if release == candidates[-1]:
                    raise
                _absent(release).touch()
    raise AssertionError("unreachable: the last release was built or raised")


def _build(release: str) -> str:
    folder = BUILD / release
    folder.mkdir(parents=True, exist_ok=True)
    wanted = _source_hash(release)
    stamp, class_path = folder / "stamp", folder / "classpath.txt"
    if not (stamp.exists() and stamp.read_text() == wanted and _all_exist(class_path)):
        stamp.unlink(missing_ok=True)
        _maven(release, folder, class_path)
        stamp.write_text(wanted)
    return os.pathsep.join([str(folder / "interop-peers-1.jar"), class_path.read_text().strip()])


def class_path_or_skip() -> str:
    """`ensure_built` for a test: skips with the reason where something is missing, and fails under `CI=true`."""
    require.beyond("stock Aeron in Java")
    try:
        return _build_once()
    except BuildError as error:
        require.missing(str(error))


@functools.cache
def _build_once() -> str:
    return ensure_built()


def _source_hash(release: str) -> str:
    digest = hashlib.sha256(release.encode())
    for path in sorted([SOURCES / "pom.xml", *SOURCES.rglob("*.java")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _all_exist(class_path: Path) -> bool:
    if not class_path.exists():
        return False
    return all(Path(entry).exists() for entry in class_path.read_text().strip().split(os.pathsep))


def _maven(release: str, folder: Path, class_path: Path) -> None:
    """Offline first, which is quick and needs no network once the local repository is filled."""
    command = [
        "mvn",
        "-B",
        "-q",
        "-f",
        str(SOURCES / "pom.xml"),
        f"-Daeron.version={release}",
        f"-Dpeers.build.directory={folder}",
        "package",
        "dependency:build-classpath",
        f"-Dmdep.outputFile={class_path}",
    ]
    log = ""
    for extra in (["-o"], []):
        done = subprocess.run([*command, *extra], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        log = done.stdout + done.stderr
    kind = ReleaseAbsentError if _is_absence(log, release) else BuildError
    raise kind(
        f"the stock peers with Aeron {release} did not build; if the registry lacks that release, "
        f"AERON_SPARK_STOCK_VERSION sets another one. Maven said:\n{_errors(log)}"
    )


def _is_absence(log: str, release: str) -> bool:
    """Whether the registry answered that there is no such release; a missing network or a compile error does not count."""
    plain = " ".join(log.split())
    return f"Could not find artifact io.aeron:aeron-all:jar:{release}" in plain or (
        f"io.aeron:aeron-all:jar:{release} was not found in" in plain
    )


def _errors(log: str) -> str:
    """What Maven blamed, without its colours and its advice on how to run Maven."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", log)
    lines = [line for line in plain.splitlines() if line.startswith("[ERROR] ") and "-run Maven" not in line]
    lines = [line for line in lines if len(line) > len("[ERROR] ")]
    return "\n".join(lines[:8]) or plain[-2000:]


def java(arguments: Sequence[object], *, options: Sequence[str] = ()) -> list[str]:
    """The command that runs a peers' program or a stock tool: `java([class or subcommand, ...])`."""
    return [
        "java",
        *JVM_OPTIONS,
        *options,
        "-cp",
        class_path_or_skip(),
        *(str(part) for part in arguments),
    ]


def peers(arguments: Sequence[object], *, options: Sequence[str] = ()) -> list[str]:
    """As `java`, for a subcommand of the peers' own program."""
    return java(["peers.Main", *arguments], options=options)


def _flags(values: Mapping[str, object]) -> list[str]:
    return [part for name, value in values.items() if value is not None for part in (f"--{name}", str(value))]


def _defines(settings: Mapping[str, str]) -> list[str]:
    return [f"-D{name}={value}" for name, value in settings.items()]


def driver(
    aeron_dir: Path,
    *,
    threading: str | None = None,
    idle: str | None = None,
    settings: Mapping[str, str] | None = None,
    options: Sequence[str] = QUICK_START,
    prefix: Sequence[str] = (),
) -> Process:
    """A stock driver as a process of its own, ready; `threading` and `idle` win over their properties in `settings`.

    The command stands behind `prefix`.
    """
    defines = _defines({**DRIVER_SETTINGS, **(settings or {})})
    command = peers(
        ["driver", *_flags({"dir": aeron_dir, "threading": threading, "idle": idle})],
        options=[*options, *defines],
    )
    process = Process("stock driver", [*prefix, *command])
    return process.wait_ready(driver_ready(process, aeron_dir))


def archive(
    aeron_dir: Path,
    archive_dir: Path,
    *,
    with_driver: bool = False,
    threading: str | None = None,
    idle: str | None = None,
    settings: Mapping[str, str] | None = None,
    options: Sequence[str] = QUICK_START,
) -> Process:
    """A stock archive, beside a driver or with its own, as a process, ready."""
    defines = _defines(
        {
            **(DRIVER_SETTINGS if with_driver else {}),
            **ARCHIVE_SETTINGS,
            **(settings or {}),
        }
    )
    flags = {
        "dir": aeron_dir,
        "archive-dir": archive_dir,
        "archive-threading": threading,
        "idle": idle,
        "with-driver": "true" if with_driver else None,
    }
    command = peers(
        ["archive", *_flags(flags)],
        options=[*options, *defines],
    )
    process = Process("stock archive", command)
    signed = archive_ready(process, archive_dir)
    # The mark file is signed before the catalog is read, and what is found there may end the start.
    return process.wait_ready(lambda: signed() and "READY" in process.stdout())


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """How a stock command line tool ended."""

    code: int
    out: str


def tool(name: str, *arguments: object, settings: Mapping[str, str] | None = None, answers: str = "") -> ToolResult:
    """Run a stock command line tool by its class name; `answers` go to its questions, one line each."""
    done = subprocess.run(
        java([name, *arguments], options=[*QUICK_START, *_defines(settings or {})]),
        input=answers,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ToolResult(code=done.returncode, out=done.stdout + done.stderr)


def archive_tool(archive_dir: Path, *arguments: str, answers: str = "") -> ToolResult:
    """Run the stock ArchiveTool on a folder."""
    return tool("io.aeron.archive.ArchiveTool", archive_dir, *arguments, answers=answers)


def driver_tool(name: str, aeron_dir: Path, *arguments: str) -> ToolResult:
    """Run a stock tool that reads a driver's directory: AeronStat, ErrorStat, LossStat, StreamStat, DriverTool."""
    return tool(f"io.aeron.samples.{name}", *arguments, settings={"aeron.dir": str(aeron_dir)})


@dataclass(slots=True)
class Raised:
    """The Java exception that `raises` met, after its block."""

    java: Any = None


@contextmanager
def raises(kind: str, text: str) -> Iterator[Raised]:
    """Expect a Java exception: regular expressions for its simple class name, whole, and for a part of its message."""
    met = Raised()
    try:
        yield met
    except Py4JJavaError as error:
        raised = met.java = error.java_exception
        found = f"{raised.getClass().getSimpleName()}: {raised.getMessage()}"
        assert re.fullmatch(kind, raised.getClass().getSimpleName()), found
        assert re.search(text, raised.getMessage() or ""), found
    else:
        raise AssertionError(f"no {kind} was raised")


class Gateway(Closing):
    """A JVM with stock Aeron in it, and the door to it.

    `gateway.peer` is the Java class `peers.Peer`, `gateway.jvm` has any class by its name.

    One serves a whole session of tests, used from one thread. It ends with its parent, whatever happens.
    """

    def __init__(self) -> None:
        token = secrets.token_hex(16)
        self._popen = subprocess.Popen(
            peers(["gateway"], options=QUICK_START),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PEERS_TOKEN": token},
            text=True,
        )
        assert self._popen.stdout is not None
        port = self._popen.stdout.readline()
        if not port:
            raise AssertionError(f"the gateway ended at its start with code {self._popen.wait()}")
        self._java = JavaGateway(
            gateway_parameters=GatewayParameters(port=int(port), auth_token=token, auto_convert=True)
        )
        self.peer: Any = self._java.entry_point
        self.jvm: Any = self._java.jvm

    def close(self) -> None:
        """End the JVM with all that was left open in it."""
        self._java.close()
        assert self._popen.stdin is not None
        self._popen.stdin.close()
        try:
            self._popen.wait(10)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        assert self._popen.stdout is not None
        self._popen.stdout.close()
