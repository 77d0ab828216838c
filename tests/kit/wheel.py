"""The wheel of what is built here, an environment it is installed in, and that one packed as `docs/cluster.md` says.

Large requirements are linked from the environment of the tests: a packed environment holds the wheel's own files and links.
"""

from __future__ import annotations

import fcntl
import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "native"
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
OF_C = re.compile(r"\.(a|h|pc|cmake)$|libaeron_spark|^(lib|include|share|cmake)/")
LINKED = ("pyarrow", "numpy", "numpy.libs", "cffi", "_cffi_backend*")
# What a Spark that somebody else has installed brings.
OF_SPARK = ("pyarrow", "numpy", "numpy.libs", "pandas", "pandas.libs", "dateutil", "six.py", "pytz", "tzdata")


def build(folder: Path) -> Path:
    """The wheel, made in the build folder of `make build` with its settings, so that little is left to do: one at a time."""
    tests = re.search(r"^AERON_SPARK_TESTS:BOOL=(\w+)$", (BUILD / "CMakeCache.txt").read_text("utf-8"), re.MULTILINE)
    settings = (f"build-dir={BUILD}", f"cmake.define.AERON_SPARK_TESTS={tests[1] if tests else 'OFF'}")
    flags = [part for setting in settings for part in ("-C", setting)]
    with (BUILD / "wheel.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _run(*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, *flags, ROOT)
    (wheel,) = folder.glob("aeron_spark-*.whl")
    with zipfile.ZipFile(wheel) as made:
        for_c = [name for name in made.namelist() if OF_C.search(name)]
    assert for_c == [], "what C programs use is installed by CMake, not by the wheel"
    return wheel


def environment(wheel: Path, home: Path) -> Path:
    """The Python of a new virtual environment with the wheel and nothing of the source tree."""
    python = without_package(home, LINKED)
    _run(*PIP, "--python", python, "install", "--no-deps", "--no-index", wheel)
    return python


def without_package(home: Path, linked: Sequence[str] = OF_SPARK) -> Path:
    """The Python of a new virtual environment with these requirements alone."""
    _run(sys.executable, "-m", "venv", "--without-pip", home)
    (packages,) = home.glob("lib/python*/site-packages")
    for pattern in linked:
        for found in Path(sysconfig.get_path("platlib")).glob(pattern):
            (packages / found.name).symlink_to(found)
    return home / "bin" / "python"


def packed(home: Path) -> Path:
    """The environment as `venv-pack` packs it."""
    out = home.parent / f"{home.name}.tar.gz"
    pack = Path(sys.executable).parent / "venv-pack"
    _run(pack, "--prefix", home, "--output", out, "--compress-level", "1", "--quiet")
    return out


def _run(*command: str | Path) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
