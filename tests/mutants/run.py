"""Proves the tests: each mutant of the tables beside this file breaks the product, and the test it names must fail.

The sources are copied to build/mutants and built there once. Every named test must pass on them first. Then one mutant after
the other is put in, what it touches is built, and its test runs. A mutant that survives, does not fit the sources or does not
build is a failure; so is a test that fails without one. Prints a table.

    run.py [NAME ...] [--sample N] [--seed N] [--jobs N]

--sample N takes N of them, chosen by --seed (default: by the commit, so that CI sees all of them in the course of time).
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.mutants import tables  # noqa: E402
from tests.mutants.tables import Mutant  # noqa: E402

SCRATCH = ROOT / "build" / "mutants"
SOURCE = SCRATCH / "source"
NATIVE = SCRATCH / "native"
TOOLS = Path(sys.executable).parent
PYTHON = SCRATCH / "venv" / "bin" / "python"
SEEDS_OF_A_SIMULATION = 1500
TEST_TIMEOUT_S = 300
SEED = "1"  # of random tests: a mutant that one seed lets live would fail a run by chance
# What a test may find at the top of the tree, beside folders; the rest of the top is what builds made.
NOT_COPIED = {"build", "dist", "__pycache__", ".git", ".venv", "*.so", ".*_cache"}
TOP_LEVEL = ("pyspark_aeron.py", "pytest_aeron_spark.py")
JVM = "aeron_spark/_native/jvm"
JAR = "aeron-spark.jar"
EXECUTABLES = ("driver_native/aeron-spark-driver", "archive/aeron-spark-archive")


def run(command: Sequence[str | Path], *, timeout_s: float | None = None) -> tuple[bool, str]:
    """Whether a command succeeded, and what it printed; one that takes longer than its time failed."""
    # Compiled Python is recognised by size and second: a mutant of the same length could run as what stood there before.
    # And executables are looked for where the package was installed: they would be those of the sources before.
    environment = os.environ | {
        "PYTHONDONTWRITEBYTECODE": "1",
        "TEST_SEED": SEED,
        "AERON_SPARK_BIN": str(PYTHON.parent),
        "PATH": os.pathsep.join([str(PYTHON.parent), str(TOOLS), os.environ["PATH"]]),
    }
    try:
        done = subprocess.run(
            command, cwd=SOURCE, env=environment, capture_output=True, text=True, check=False, timeout=timeout_s
        )
    except subprocess.TimeoutExpired:
        return False, f"no end within {timeout_s} s"
    return done.returncode == 0, done.stdout + done.stderr


def copy_sources() -> None:
    """Make the scratch equal to the sources; what did not change keeps its time, so that little is built again."""
    skip = shutil.ignore_patterns(*NOT_COPIED)
    fresh = SCRATCH / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(ROOT, fresh, ignore=skip, symlinks=True)
    for path in (path for path in fresh.rglob("*") if path.is_file()):
        before = SOURCE / path.relative_to(fresh)
        if before.is_file() and before.read_bytes() == path.read_bytes():
            shutil.copystat(before, path)
        else:
            path.touch()
    shutil.rmtree(SOURCE, ignore_errors=True)
    fresh.rename(SOURCE)


def configure() -> None:
    """Configure the scratch build, the extension of the Python package included."""
    generator = ["-G", "Ninja"] if (TOOLS / "ninja").exists() else []
    ok, text = run(
        ["cmake", "-S", SOURCE, "-B", NATIVE, *generator, "-DAERON_SPARK_TESTS=ON", f"-DPython_EXECUTABLE={sys.executable}",
         "-DSKBUILD=ON", "-DSKBUILD_SABI_COMPONENT=Development.SABIModule", "-DSKBUILD_SCRIPTS_DIR=scripts"]
    )  # fmt: skip
    if not ok:
        sys.exit(text)


def make_environment() -> None:
    """Make an interpreter that has this one's packages, and the scratch's `aeron_spark` instead of the installed one.

    Folders that a .pth file names are searched, but their own .pth files are not read: the installed package's hook is absent.
    """
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", PYTHON.parents[1]], check=True)
    packages = next((PYTHON.parents[1] / "lib").glob("python*/site-packages"))
    theirs = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "mutants.pth").write_text("\n".join([str(SOURCE), *theirs]) + "\n", encoding="utf-8")
    command = PYTHON.with_name("aeron-spark")
    program = "import sys\nfrom aeron_spark.cli.__main__ import main\nsys.exit(main())\n"
    command.write_text(f"#!{PYTHON}\n{program}", encoding="utf-8")
    command.chmod(0o755)


def build(targets: Sequence[str], jobs: int) -> str | None:
    """Build targets; the compiler's words if it can't."""
    ok, text = run(["cmake", "--build", NATIVE, "--target", *targets, "-j", str(jobs)])
    return None if ok else text


def is_of_jvm(mutant: Mutant) -> bool:
    """Whether its test needs the jar of the engine in Spark's JVM."""
    return mutant.file.startswith(JVM)


def targets_of(mutant: Mutant) -> list[str]:
    """What has to be built before the test of a mutant can run."""
    if mutant.runner == "pytest":
        return ["_lib", *(Path(name).name for name in EXECUTABLES), *(["aeron_spark_jar"] if is_of_jvm(mutant) else [])]
    return [mutant.test or mutant.runner]


def install(mutant: Mutant) -> None:
    """Put the extension, the executables and the modules by which Spark and pytest find us where the tests find them.

    The jar only for its own mutants: it is not built for the others, and may be that of a mutant before.
    """
    built = next((NATIVE / "aeron_spark" / "_native").glob("_lib*.so"))
    for source, folder in (
        (built, SOURCE / "aeron_spark" / "_native"),
        *((NATIVE / name, PYTHON.parent) for name in EXECUTABLES),
    ):
        target = folder / source.name
        target.unlink(missing_ok=True)
        shutil.copy2(source, target)
    jar = SOURCE / "aeron_spark" / "spark" / JAR
    jar.unlink(missing_ok=True)
    if is_of_jvm(mutant):
        shutil.copy2(NATIVE / JVM / JAR, jar)
    for name in TOP_LEVEL:
        shutil.copy2(SOURCE / "aeron_spark" / name, SOURCE)


def test_passes(mutant: Mutant, jobs: int) -> tuple[bool, str]:
    """Run the test of a mutant; whether it passed, and in a word what failed."""
    if mutant.runner == "ctest":
        return run(
            [
                "ctest",
                "--test-dir",
                NATIVE,
                "-R",
                f"^{mutant.test}$",
                "--no-tests=error",
                "--timeout",
                str(TEST_TIMEOUT_S),
            ]
        )
    if mutant.runner == "pytest":
        install(mutant)
        command = [PYTHON, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--seed", SEED, *mutant.test.split()]
        return run(command, timeout_s=TEST_TIMEOUT_S)
    program = NATIVE / "tests" / "simulation" / tables.SIMULATIONS[mutant.runner] / mutant.runner
    ok, text = run([program, "--seeds", f"1-{SEEDS_OF_A_SIMULATION}", "--jobs", str(jobs)])
    seed = re.search(r"FAILED seed (\d+)", text)
    return ok or seed is None, f"seed {seed[1]}" if seed else f"no seed of {SEEDS_OF_A_SIMULATION}"


def sound(mutants: Sequence[Mutant], jobs: int) -> list[str]:
    """Build everything, run each named test without a mutant; those that fail. `make test` runs the simulations."""
    text = build(sorted({target for mutant in mutants for target in targets_of(mutant)}), jobs)
    if text is not None:
        sys.exit(text)
    tests = {mutant.killed_by: mutant for mutant in mutants if mutant.runner not in tables.SIMULATIONS}
    failed = []
    for killed_by, mutant in sorted(tests.items()):
        ok, text = test_passes(mutant, jobs)
        if not ok:
            print(text)
            failed.append(killed_by)
    return failed


def judge(mutant: Mutant, jobs: int) -> str | None:
    """Put a mutant in, build, run its test, take it out; what is wrong, or None where the test failed as it must."""
    path = SOURCE / mutant.file
    whole = path.read_text(encoding="utf-8")
    path.write_text(mutant.apply_to(whole), encoding="utf-8")
    try:
        is_python = mutant.file.endswith(".py")
        if (text := None if is_python else build(targets_of(mutant), jobs)) is not None:
            print(text)
            return "does not build"
        ok, _ = test_passes(mutant, jobs)
        return "SURVIVED" if ok else None
    finally:
        path.write_text(whole, encoding="utf-8")


def choose(names: Sequence[str], sample: int, seed: int) -> list[Mutant]:
    """The mutants to run: those named, or a sample, or all; neighbours share a test where they can."""
    mutants = tables.load()
    unknown = set(names) - {mutant.name for mutant in mutants}
    if unknown:
        sys.exit(f"no such mutant: {', '.join(sorted(unknown))}")
    if names:
        mutants = [mutant for mutant in mutants if mutant.name in names]
    if 0 < sample < len(mutants):
        mutants = random.Random(seed).sample(mutants, sample)
    return sorted(mutants, key=lambda mutant: (mutant.file.endswith(".py"), mutant.killed_by, mutant.name))


def seed_of_commit() -> int:
    """A seed that another commit changes."""
    git = shutil.which("git")
    told = (
        git and subprocess.run([git, "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    )
    return int(told[:8], 16) if told else 0


def main() -> int:
    """Run the chosen mutants."""
    parser = argparse.ArgumentParser(description="Each test must fail with the breakage that it is to notice.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--sample", type=int, default=0, help="how many, chosen by the seed; 0: all")
    parser.add_argument("--seed", type=int, default=None, help="repeats a sample; by default the commit decides")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    seed = seed_of_commit() if arguments.seed is None else arguments.seed
    chosen = choose(arguments.names, arguments.sample, seed)
    SCRATCH.mkdir(parents=True, exist_ok=True)
    copy_sources()
    for mutant in tables.load():
        mutant.check(SOURCE)
    configure()
    make_environment()
    print(
        f"{len(chosen)} mutants, seed {seed}; building them and running their tests without a mutant first", flush=True
    )
    unsound = sound(chosen, arguments.jobs)
    print(f"{'mutant':44} {'seconds':>7}  {'killed by'}")
    problems = 0
    for number, mutant in enumerate(chosen, 1):
        start = time.monotonic()
        wrong = "its test fails without it" if mutant.killed_by in unsound else judge(mutant, arguments.jobs)
        problems += wrong is not None
        took = time.monotonic() - start
        print(f"{mutant.name:44} {took:7.1f}  {wrong or mutant.killed_by}  ({number} of {len(chosen)})", flush=True)
    print(f"{len(chosen) - problems} passed, {problems} failed")
    return 0 if problems == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
