"""Stock Aeron in C for the tests and benchmarks: the driver as a process, and a load program over the stock client.

They are built once from crates (tests/interop/stock_c), optimised, into build/interop/stock-c. The release is the one of
its Cargo.toml, the one that the product is compatible with.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.kit import needs, require
from tests.kit.processes import Process, driver_ready
from tests.kit.stock import BUILD, ROOT, BuildError

SOURCES = ROOT / "tests" / "interop" / "stock_c"
FOLDER = BUILD / "stock-c"
# Debian's packages that the build wants beside cargo and the environment's own CMake (3.30 at least).
PACKAGES = ("libclang-dev", "uuid-dev", "libbsd-dev")

# The stock counterparts of tests.kit.native's settings.
DRIVER_SETTINGS: Mapping[str, str] = {
    "aeron.threading.mode": "SHARED",
    "aeron.shared.idle.strategy": "backoff",
    "aeron.ipc.term.buffer.length": "64k",
    "aeron.driver.timeout": "5000",
    "aeron.dir.delete.on.start": "true",
    "aeron.dir.delete.on.shutdown": "true",
}


def version() -> str:
    """The stock release that the crates carry."""
    found = re.search(r'^libaeron-sys = \{ version = "=([\d.]+)"', (SOURCES / "Cargo.toml").read_text(), re.MULTILINE)
    assert found, "Cargo.toml lost its Aeron release"
    return found.group(1)


def ensure_built() -> Path:
    """Build the driver and the load program once and return their folder; safe to call from many processes at a time.

    Raises:
        BuildError: Something to build with is missing, or cargo failed.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        programs = FOLDER / "release"
        stamp, wanted = FOLDER / "stamp", _source_hash()
        built = all((programs / name).exists() for name in ("stock-c-driver", "stock-c-load"))
        if not (built and stamp.exists() and stamp.read_text() == wanted):
            stamp.unlink(missing_ok=True)
            _cargo()
            stamp.write_text(wanted)
    return programs


def programs_or_skip() -> Path:
    """`ensure_built` for a test: skips with the reason where something is missing, and fails under `CI=true`."""
    require.beyond("stock Aeron in C")
    try:
        return _build_once()
    except BuildError as error:
        require.missing(str(error))


@functools.cache
def _build_once() -> Path:
    return ensure_built()


def _source_hash() -> str:
    digest = hashlib.sha256()
    for path in sorted([SOURCES / "Cargo.toml", SOURCES / "Cargo.lock", *SOURCES.rglob("*.rs")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _cargo() -> None:
    if shutil.which("cargo") is None:
        raise BuildError("cargo is not on PATH; install Rust to test against the stock C driver and client")
    absent = needs.absent(*PACKAGES)
    tools = Path(sys.prefix) / "bin"
    done = subprocess.run(
        ["cargo", "build", "--release", "--locked", "-j2", "--manifest-path", str(SOURCES / "Cargo.toml")],  # noqa: S607
        env={
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "CMAKE_GENERATOR": "Ninja",
            "CARGO_TARGET_DIR": str(FOLDER),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        remedy = f"not found, maybe the cause: {' '.join(absent)} (Debian's packages)" if absent else "cargo said"
        raise BuildError(f"the stock C driver and client {version()} did not build; {remedy}:\n{_errors(done.stderr)}")


def _errors(log: str) -> str:
    """The lines that blame something; else the end of the log."""
    blamed = [line for line in log.splitlines() if re.search(r"\berror\b|CMake Error|panicked|not found", line)]
    return "\n".join(blamed[:8]) or log[-2000:]


def load_program() -> Path:
    """The load program over the stock C client; its head comment says its arguments."""
    return programs_or_skip() / "stock-c-load"


def driver(aeron_dir: Path, settings: Mapping[str, str] | None = None, *, prefix: Sequence[str] = ()) -> Process:
    """Start the stock C driver in `aeron_dir`, by a command behind `prefix`, and wait until it is ready.

    Settings are given by their property names.
    """
    defines = {**DRIVER_SETTINGS, "aeron.dir": str(aeron_dir), **(settings or {})}
    process = Process(
        "stock C driver",
        [*prefix, programs_or_skip() / "stock-c-driver", *(f"-D{name}={value}" for name, value in defines.items())],
    )
    return process.wait_ready(driver_ready(process, aeron_dir))


def load_process(mode: str, aeron_dir: Path, **options: object) -> Process:
    """Start the load program in the background; `figures` reads its line after the end."""
    return Process(f"stock C {mode}", load_command(load_program(), mode, aeron_dir, **options))


def load(mode: str, aeron_dir: Path, *, timeout: float = 120, **options: object) -> dict[str, float]:
    """Run the load program to its end and return its figures."""
    process = load_process(mode, aeron_dir, **options)
    code = process.wait_end(timeout=timeout)
    assert code == 0, process.report()
    return figures(process)


def load_command(program: Path, mode: str, aeron_dir: Path, **options: object) -> list[str]:
    """The command of a load program, of the stock client's or of ours: they take the same options."""
    flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    return [str(program), mode, "--dir", str(aeron_dir), *flags]


def figures(process: Process) -> dict[str, float]:
    """The JSON line that a load process printed last."""
    return parse_last(process.stdout())


def parse_last(text: str) -> dict[str, float]:
    """The JSON object of the last line."""
    parsed: dict[str, float] = json.loads(text.strip().splitlines()[-1])
    return parsed
