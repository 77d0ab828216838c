"""`make wheel`: installs a wheel into a clean environment without compilers on PATH and runs the demonstration from it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUILD_STEPS = Path(__file__).resolve().parents[2] / "aeron_spark" / "_native" / "build_steps.py"
COMPILERS = {"gcc", "cc", "g++", "c++", "clang", "c99", "c89", "make", "cmake", "ninja", "ld", "as"}


def path_without_compilers(folder: Path) -> str:
    """A PATH whose one folder links to every command there is, except those that build."""
    tools = folder / "tools"
    tools.mkdir()
    for entry in os.environ["PATH"].split(":"):
        for command in Path(entry).glob("*") if Path(entry).is_dir() else ():
            link = tools / command.name
            if (
                command.is_file()
                and command.name not in COMPILERS
                and not command.name.startswith(("gcc-", "x86_64-", "python"))
                and not link.is_symlink()
            ):
                link.symlink_to(command)
    return str(tools)


def main() -> int:
    """Return the exit code of the demonstration."""
    (wheel,) = [Path(name).resolve() for name in sys.argv[1:]]
    with tempfile.TemporaryDirectory(prefix="aeron-spark-wheel-") as name:
        folder = Path(name)
        base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
        python = folder / "env" / "bin" / "python"
        environment = {**os.environ, "PATH": path_without_compilers(folder), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        environment.pop("AERON_SPARK_BIN", None)
        extras = "spark" if shutil.which("java") or "JAVA_HOME" in environment else "spark,java"
        steps = [
            [
                *(sys.executable, "-I", BUILD_STEPS, str(time.time()), "making a clean environment"),
                *(base, "-m", "venv", folder / "env"),
            ],
            [
                *(
                    sys.executable,
                    "-I",
                    BUILD_STEPS,
                    str(time.time()),
                    "installing the wheel and Spark, without a compiler",
                ),
                *(python, "-m", "pip", "install", "--progress-bar=off", "--only-binary=:all:", "--no-binary=pyspark"),
                f"{wheel}[{extras}]",
            ],
            [python, "-m", "aeron_spark.demo", "--seconds", "2"],
        ]
        for step in steps:
            code = subprocess.run([str(part) for part in step], env=environment, cwd=folder, check=False).returncode
            if code:
                return code
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, installed without a compiler, demonstration passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
