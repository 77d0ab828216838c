"""Proves the simulations: each patch beside this file breaks the driver or the client, each in tests/sim_archive the archive.

Some seed of the simulation must catch it.

The sources are copied to build/mutants, patched one after the other, built (the simulator alone, what a patch touches) and
run until a seed fails. A patch that does not apply or build any more, or that no seed catches, is a failure. Prints a table.

    run.py [NAME ...] [--seeds N] [--some N] [--jobs N]

--some N takes N of the patches, others for each commit, so that CI sees all of them in the course of time.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

MUTANTS = Path(__file__).resolve().parent
ROOT = MUTANTS.parents[2]
ARCHIVE_MUTANTS = ROOT / "tests" / "sim_archive" / "mutants"
SCRATCH = ROOT / "build" / "mutants"
COPIED = (
    "driver_native",
    "aeron_spark/_native/kernels",
    "archive",
    "examples",
    "tests/sim",
    "tests/sim_archive",
    "tests/c",
    "tests/bench",
    "tests/fuzz",
    "tests/kit",
)
FILES = ("CMakeLists.txt", "VERSION")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a mutant."""

    name: str
    seed: str
    check: str
    seconds: float

    @property
    def is_caught(self) -> bool:
        """Whether a check of the simulation failed."""
        return self.seed != "-"


def copy_sources() -> None:
    """Bring the scratch folder up to the sources; what did not change keeps its time, so that little is built."""
    for name in COPIED:
        for path in (ROOT / name).rglob("*"):
            if path.is_file() and path.suffix in {".c", ".h", ".txt", ".py"}:
                copy_file(path.relative_to(ROOT))
    for name in FILES:
        copy_file(Path(name))


def copy_file(path: Path) -> None:
    """Copy one file, unless the scratch has the same bytes."""
    target = SCRATCH / "source" / path
    if not target.exists() or target.read_bytes() != (ROOT / path).read_bytes():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, target)


def simulator_of(patch: Path) -> str:
    """Name of the simulation that must catch a patch."""
    return "sim_archive" if patch.parent == ARCHIVE_MUTANTS else "sim"


def build(simulator: str, jobs: int) -> str | None:
    """Build a simulator; the compiler's words if it can't."""
    configure = ["cmake", "-S", str(SCRATCH / "source"), "-B", str(SCRATCH / "build"), "-DAERON_SPARK_TESTS=ON"]
    make = ["cmake", "--build", str(SCRATCH / "build"), "--target", simulator, "-j", str(jobs)]
    for command in (configure, make):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return done.stdout + done.stderr
    return None


def apply(patch: Path, *, reverse: bool) -> bool:
    """Put a patch on the scratch sources, or take it off."""
    command = ["patch", "-p1", "--silent", "--no-backup-if-mismatch", *(["-R"] if reverse else []), "-i", str(patch)]
    return subprocess.run(command, cwd=SCRATCH / "source", capture_output=True, check=False).returncode == 0


def fits(patch: Path) -> bool:
    """Whether the scratch sources would take a patch: asked of all, so that a change of the code shows at once."""
    command = ["patch", "-p1", "--dry-run", "--silent", "-i", str(patch)]
    return subprocess.run(command, cwd=SCRATCH / "source", capture_output=True, check=False).returncode == 0


def judge(patch: Path, *, seeds: int, jobs: int) -> Verdict:
    """Build and run one mutant."""
    start = time.monotonic()

    def verdict(seed: str, check: str) -> Verdict:
        return Verdict(name=patch.stem, seed=seed, check=check, seconds=time.monotonic() - start)

    if not apply(patch, reverse=False):
        return verdict("-", "the patch no longer applies")
    try:
        if (words := build(simulator_of(patch), jobs)) is not None:
            print(words)
            return verdict("-", "the patched sources do not build")
        name = simulator_of(patch)
        simulator = SCRATCH / "build" / "tests" / name / name
        command = [str(simulator), "--seeds", f"1-{seeds}", "--jobs", str(jobs)]
        told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        seed = re.search(r"FAILED seed (\d+)", told)
        check = re.search(r"FAILED check=(\S+)", told)
        if seed is None or check is None:
            return verdict("-", f"no seed of {seeds} catches it")
        return verdict(seed[1], check[1].rstrip(":"))
    finally:
        apply(patch, reverse=True)


def all_patches() -> list[Path]:
    """All patches by name, those of the archive among the others."""
    return sorted([*MUTANTS.glob("*.patch"), *ARCHIVE_MUTANTS.glob("*.patch")], key=lambda patch: patch.stem)


def choose(names: list[str], some: int) -> list[Path]:
    """The patches to run, by name or a few by commit."""
    patches = all_patches()
    if names:
        patches = [patch for patch in patches if patch.stem in names]
    if some <= 0 or some >= len(patches):
        return patches
    git = [shutil.which("git") or "git", "rev-parse", "HEAD"]
    told = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    first = int(told.strip() or "0", 16) % len(patches)
    return [patches[(first + i) % len(patches)] for i in range(some)]


def main() -> int:
    """Run the chosen mutants."""
    parser = argparse.ArgumentParser(description="The simulation must catch each broken driver.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=1500)
    parser.add_argument("--some", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    shutil.rmtree(SCRATCH / "source", ignore_errors=True)
    copy_sources()
    patches = choose(arguments.names, arguments.some)
    print(f"{'mutant':28} {'seed':>5}  {'check':12} seconds")
    missed = 0 if patches else 1
    stale = [patch.stem for patch in all_patches() if not fits(patch)]
    if stale:
        print(f"no longer apply: {', '.join(stale)}")
        missed += 1
    for patch in patches:
        verdict = judge(patch, seeds=arguments.seeds, jobs=arguments.jobs)
        missed += 0 if verdict.is_caught else 1
        print(f"{verdict.name:28} {verdict.seed:>5}  {verdict.check:12} {verdict.seconds:.1f}", flush=True)
    print(f"{len(patches)} patches run, {missed} problems")
    return 0 if missed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
