"""Our own executables, `aeron-spark-driver` and `aeron-spark-archive`, as test processes.

They are taken from the folder of `AERON_SPARK_BIN` where that is set, else looked for beside the console command
`aeron-spark` of the running Python, then in `build/native` of the repository and its subfolders; a test that needs them
skips aloud where there are none, and fails under `CI=true`.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.kit import require
from tests.kit.processes import Process, archive_ready, driver_ready

ROOT = Path(__file__).resolve().parents[2]

# Small enough for tests, and one agent thread: the machine may have two cores.
DRIVER_SETTINGS: Mapping[str, str] = {
    "aeron.threading.mode": "SHARED",
    "aeron.shared.idle.strategy": "backoff",
    "aeron.ipc.term.buffer.length": "64k",
    "aeron.driver.timeout": "5000",
    "aeron.dir.delete.on.start": "true",
}
ARCHIVE_SETTINGS: Mapping[str, str] = {
    "aeron.archive.control.channel.enabled": "false",
    "aeron.archive.segment.file.length": "131072",
    "aeron.archive.threading.mode": "SHARED",
}


def executable(name: str, folder: Path | None = None) -> Path:
    """Full path of one of our executables, of the build in `folder` if one is given; skips or fails where it is absent."""
    named = os.environ.get("AERON_SPARK_BIN") if folder is None else str(folder)
    built = ROOT / "build" / "native"
    # A folder that was named is the only one: a test of another build than the one asked for would mislead.
    roots = [Path(named)] if named else [Path(sysconfig.get_path("scripts")), built]
    folders = [*roots, *sorted(roots[-1].glob("*/"))]
    found = next((folder / name for folder in folders if os.access(folder / name, os.X_OK)), None)
    if found is None:
        looked = ", ".join(str(folder) for folder in folders)
        require.missing(f"{name} is in none of: {looked}; build it, or name its folder in AERON_SPARK_BIN")
    return found


def bench_program(name: str, folder: Path | None = None) -> Path:
    """Full path of a load program of ours; it is built beside the executables and never installed."""
    return executable(name, folder)


def _defines(settings: Mapping[str, str]) -> list[str]:
    return [f"-D{name}={value}" for name, value in settings.items()]


def driver(
    aeron_dir: Path,
    settings: Mapping[str, str] | None = None,
    *,
    prefix: Sequence[str] = (),
    folder: Path | None = None,
) -> Process:
    """Start our driver in `aeron_dir`, by a command behind `prefix`, and wait until it is ready. `folder`: of another build."""
    process = Process(
        "aeron-spark-driver",
        [
            *prefix,
            executable("aeron-spark-driver", folder),
            *_defines({**DRIVER_SETTINGS, "aeron.dir": str(aeron_dir), **(settings or {})}),
        ],
    )
    return process.wait_ready(driver_ready(process, aeron_dir))


def archive(
    aeron_dir: Path, archive_dir: Path, settings: Mapping[str, str] | None = None, *, folder: Path | None = None
) -> Process:
    """Start our archive beside a running driver and wait until its mark file is live. `folder`: of another build."""
    process = Process(
        "aeron-spark-archive",
        [
            executable("aeron-spark-archive", folder),
            "--beside-driver",
            *_defines(
                {
                    **ARCHIVE_SETTINGS,
                    "aeron.dir": str(aeron_dir),
                    "aeron.archive.dir": str(archive_dir),
                    **(settings or {}),
                }
            ),
        ],
    )
    return process.wait_ready(archive_ready(process, archive_dir))
