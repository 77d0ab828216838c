"""The SBE reference tool and codecs that it generates: peers of the interop tests and benchmarks.

The tool comes by Maven; what it generates, and `tests/interop/sbe_java`, is compiled into `build/interop/sbe`.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.kit import require
from tests.kit.stock import JVM_OPTIONS, BuildError

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "tests" / "interop" / "sbe_java"
GOLDEN = ROOT / "tests" / "golden" / "sbe"
BUILD = ROOT / "build" / "interop" / "sbe"
SCHEMAS = (GOLDEN / "binance" / "stream_1_0.xml", GOLDEN / "cme" / "refresh.xml", GOLDEN / "car" / "example-schema.xml")


def _run(*command: object) -> None:
    done = subprocess.run([str(one) for one in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(
            f"the SBE reference did not build: {' '.join(map(str, command))[:200]}\n{(done.stdout + done.stderr)[-2000:]}"
        )


def _class_path() -> str:
    found = BUILD / "classpath.txt"
    if not found.exists() or not all(Path(one).exists() for one in found.read_text().strip().split(os.pathsep)):
        _run(
            "mvn", "-B", "-q", "-f", SOURCES / "pom.xml", f"-Dreference.build.directory={BUILD}",
            "dependency:build-classpath", f"-Dmdep.outputFile={found}",
        )  # fmt: skip
    return found.read_text().strip()


def ensure_built() -> str:
    """Build once and return the class path. BuildError: no java, javac or mvn, or no tool from Maven."""
    for tool in ("java", "javac", "mvn"):
        if shutil.which(tool) is None:
            raise BuildError(f"{tool} is not on PATH; install a JDK 17 and Maven to test against the SBE reference")
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = _class_path()
        sources = sorted(SOURCES.rglob("*.java"))
        digest = hashlib.sha256(path.encode())
        for one in [*sources, *SCHEMAS]:
            digest.update(one.read_bytes())
        stamp = BUILD / "stamp"
        if not stamp.exists() or stamp.read_text() != digest.hexdigest():
            generated = BUILD / "generated"
            shutil.rmtree(generated, ignore_errors=True)
            for schema in SCHEMAS:
                _run(
                    "java", *JVM_OPTIONS, f"-Dsbe.output.dir={generated}", "-Dsbe.target.language=Java",
                    "-Dsbe.java.generate.interfaces=false", "-Dsbe.generate.ir=true", "-Dsbe.xinclude.aware=true", "-cp", path,
                    "uk.co.real_logic.sbe.SbeTool", schema,
                )  # fmt: skip
            _run("javac", "-nowarn", "-d", BUILD / "classes", "-cp", path, *sorted(generated.rglob("*.java")), *sources)
            stamp.write_text(digest.hexdigest())
    return os.pathsep.join([str(BUILD / "classes"), path])


@functools.cache
def _built() -> str:
    return ensure_built()


def class_path_or_skip() -> str:
    """`ensure_built` for a test: skips with the reason where something is missing, and fails under `CI=true`."""
    require.beyond("the SBE reference tool")
    try:
        return _built()
    except BuildError as error:
        require.missing(str(error))


def ir_file(schema: str) -> Path:
    """The tool's own form of a schema, by the file's name."""
    return BUILD / "generated" / f"{schema}.sbeir"


def run(*arguments: object) -> dict[str, float]:
    """A program of `tests/interop/sbe_java`; its JSON."""
    command: Sequence[object] = ["java", *JVM_OPTIONS, "-cp", class_path_or_skip(), *arguments]
    done = subprocess.run([str(one) for one in command], capture_output=True, text=True, check=True, timeout=300)
    parsed: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return parsed
