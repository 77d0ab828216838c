"""The binary interface of the shared C library as libabigail tells it, and the baseline that it is compared with.

`make abi` writes the baseline anew. Needs Debian's abigail-tools, and a library with its debug information.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BASELINE = ROOT / "tests" / "golden" / "abi" / "libaeron_spark.abi"
# What differs from build to build stays out.
PLAIN = ("--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--no-elf-needed", "--no-write-default-sizes")
ONLY_PUBLIC = ("--exported-interfaces-only", "--drop-private-types", "--type-id-style", "hash")


def describe(library: Path, headers: Path, out: Path) -> None:
    """Write what a program can see of the library: functions, and the types that the headers define."""
    command = ["abidw", *PLAIN, *ONLY_PUBLIC, "--headers-dir", headers, "--out-file", out, library]
    subprocess.run([str(part) for part in command], check=True)
    out.write_text(out.read_text(encoding="utf-8").replace(f"{ROOT}/", ""), encoding="utf-8")  # where it was built


def difference(now: Path) -> str:
    """What changed since the baseline, additions included; empty if nothing did."""
    compared = subprocess.run(["abidiff", "--harmless", BASELINE, now], capture_output=True, text=True, check=False)  # noqa: S607
    return "" if compared.returncode == 0 else compared.stdout + compared.stderr


def main() -> None:
    """Install from the build folder, and write the baseline."""
    build = ROOT / "build" / "native"
    with tempfile.TemporaryDirectory() as name:
        prefix = Path(name)
        for component in ("library", "development"):
            command = ["cmake", "--install", build, "--prefix", prefix, "--component", component]
            subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
        BASELINE.parent.mkdir(exist_ok=True)
        describe((prefix / "lib" / "libaeron_spark.so").resolve(), prefix / "include", BASELINE)
    print(f"{BASELINE.relative_to(ROOT)}: {BASELINE.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
