"""Builds the fuzz targets with libFuzzer and shares a time among them: `make fuzz FUZZ_S=600`.

Each target first reads its committed corpus, then makes inputs of its own for its share; two targets run at a time. Printed of
each: runs, edges covered, inputs kept. A finding is kept in build/fuzz/findings with the command that replays it; the exit code
then is 1. MERGE=1 then writes the inputs that cover most with least back to the corpora.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "fuzz"
CORPORA = ROOT / "tests" / "fuzz" / "corpus"
FINDINGS = BUILD / "findings"
COMPILER = "clang-14"
INPUT_LENGTH = 1024
PARALLEL = 2


@dataclass(frozen=True)
class Result:
    """What one target came to."""

    name: str
    runs: int
    edges: int
    inputs: int
    failure: str


def build() -> list[str]:
    """Names of the targets, built."""
    if shutil.which(COMPILER) is None:
        sys.exit(f"make fuzz needs {COMPILER} with libFuzzer: apt-get install clang-14 libclang-rt-14-dev")
    configure = ["cmake", "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", f"-DCMAKE_C_COMPILER={COMPILER}"]
    flags = ["-DAERON_SPARK_FUZZ=ON", "-DAERON_SPARK_SANITIZE=address,undefined"]
    if subprocess.run([*configure, *flags], stdout=subprocess.DEVNULL, check=False).returncode != 0:
        sys.exit("cmake failed; libFuzzer is in: apt-get install clang-14 libclang-rt-14-dev")
    names = sorted(path.stem for path in (ROOT / "tests" / "fuzz").glob("fuzz_*.c"))
    compile_all = ["cmake", "--build", str(BUILD), "-j2", "--target", *names]
    if subprocess.run(compile_all, stdout=subprocess.DEVNULL, check=False).returncode != 0:
        sys.exit("the fuzz targets do not build; libFuzzer is in: apt-get install clang-14 libclang-rt-14-dev")
    return names


def corpus_of(name: str) -> Path:
    """The committed corpus of a target."""
    return CORPORA / name.removeprefix("fuzz_")


def number(pattern: str, text: str) -> int:
    """The last number that follows `pattern`, 0 if there is none."""
    found = re.findall(pattern + r"\s*(\d+)", text)
    return int(found[-1]) if found else 0


def fuzz(name: str, seconds: int) -> Result:
    """Runs one target for its share of the time."""
    work = BUILD / "work" / name
    work.mkdir(parents=True, exist_ok=True)
    prefix = FINDINGS / f"{name}-"
    command = [
        str(BUILD / "tests" / "fuzz" / name),
        f"-max_total_time={seconds}",
        f"-max_len={INPUT_LENGTH}",
        "-timeout=20",
    ]
    command += [
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
        f"-artifact_prefix={prefix}",
        str(work),
        str(corpus_of(name)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    log = done.stdout + done.stderr
    (BUILD / f"{name}.log").write_text(log)
    failure = log[-3000:] if done.returncode != 0 else ""
    return Result(
        name, number("stat::number_of_executed_units:", log), number("cov:", log), len(list(work.iterdir())), failure
    )


def merge(name: str) -> None:
    """Writes back the inputs that together cover what is covered."""
    merged = BUILD / "merged" / name
    shutil.rmtree(merged, ignore_errors=True)
    merged.mkdir(parents=True)
    target = str(BUILD / "tests" / "fuzz" / name)
    command = [
        target,
        "-set_cover_merge=1",
        f"-max_len={INPUT_LENGTH}",
        str(merged),
        str(corpus_of(name)),
        str(BUILD / "work" / name),
    ]
    subprocess.run(command, capture_output=True, check=True)
    shutil.rmtree(corpus_of(name), ignore_errors=True)
    shutil.copytree(merged, corpus_of(name))


def main() -> int:
    """All targets, or those named by arguments."""
    targets = build()
    names = sys.argv[1:] or targets
    if not set(names) <= set(targets):
        sys.exit(
            f"no fuzz target is called {', '.join(sorted(set(names) - set(targets)))}; there are {', '.join(targets)}"
        )
    FINDINGS.mkdir(parents=True, exist_ok=True)
    share = max(2, int(os.environ.get("FUZZ_S", "60")) * PARALLEL // len(names))
    with ThreadPoolExecutor(PARALLEL) as pool:
        results = list(pool.map(lambda name: fuzz(name, share), names))
    print(f"{'target':18} {'runs':>10} {'edges':>7} {'corpus':>7}   {share} s each")
    for result in results:
        print(
            f"{result.name:18} {result.runs:10} {result.edges:7} {result.inputs:7}   {'FOUND' if result.failure else ''}"
        )
    for result in results:
        if result.failure:
            kept = sorted(FINDINGS.glob(f"{result.name}-*"))
            print(f"\n{result.failure}\n{result.name}: replay with")
            for path in kept:
                print(f"  build/fuzz/tests/fuzz/{result.name} {path.relative_to(ROOT)}")
    if os.environ.get("MERGE") == "1":
        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(merge, names))
    return 1 if any(result.failure for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
