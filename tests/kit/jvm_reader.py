"""The JVM's reader of planned partitions without Spark, beside Python's: what a task gives, as rows or as an error.

`JvmReader` runs `java/ReadPlanned.java`, whose classes are compiled against the jar, with the real reader, unpickler and C
library in it. `jar` builds that library under sanitizers. Needs a JDK.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

import pyarrow as pa
from pyspark.sql.types import StructType

from aeron_spark._native.build_jar import spark_jars
from aeron_spark.errors import AeronError
from aeron_spark.spark import jvm
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.reading.batch import AeronBatchReader, RangesPartition
from aeron_spark.spark.reading.rows import read_schema
from tests.kit import require

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).parent / "java" / "ReadPlanned.java"
SANITIZED = ROOT / "build" / "jvm-address"
COMPILER = "gcc"
ALL = 1 << 30
#: As Spark's programs open them.
OPENS = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.lang", "java.nio", "sun.nio.ch", "java.util")]
#: Heap and compiled code do not grow after some tasks, so that what grows is ours.
SIZES = ["-Xms96m", "-Xmx96m", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
JAVA = ["java", *SIZES, "-XX:-CreateCoredumpOnCrash", *OPENS]


@dataclass(frozen=True)
class Verdict:
    """How a task ended: rows with a digest of their text, or the first line of an error."""

    rows: int = 0
    digest: str = ""
    error: str = ""


class JvmEndedError(AssertionError):
    """The JVM has ended: what no input may do."""


def jar(*, is_sanitized: bool) -> Path:
    """The installed jar, or one whose library is built with the address and undefined sanitizers."""
    if not is_sanitized:
        return jvm.jar()
    flags = [
        "-DAERON_SPARK_SANITIZE=address,undefined",
        "-DAERON_SPARK_JVM=ON",
        f"-DPython_EXECUTABLE={sys.executable}",
    ]
    for command in (
        ["cmake", "-S", str(ROOT), "-B", str(SANITIZED), "-G", "Ninja", f"-DCMAKE_C_COMPILER={COMPILER}", *flags],
        ["cmake", "--build", str(SANITIZED), "--target", "aeron_spark_jar"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout[-3000:]}{done.stderr[-3000:]}")
    return SANITIZED / "aeron_spark" / "_native" / "jvm" / jvm.NAME


class JvmReader:
    """A JVM with one task at a time. `tmp` is where it keeps its files, and its library while it loads it."""

    def __init__(
        self,
        tmp: Path,
        *,
        is_sanitized: bool = False,
        options: Iterable[str] = (),
        env: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._errors = tmp / "jvm.log"
        class_path = os.pathsep.join([str(jar(is_sanitized=is_sanitized)), f"{spark_jars()}/*"])
        compiler = shutil.which("javac") or require.missing("a JDK of Java 17 or newer: openjdk-17-jdk-headless")
        subprocess.run([compiler, "-proc:none", "-cp", class_path, "-d", str(tmp), str(SOURCE)], check=True)
        command = [*JAVA, f"-Djava.io.tmpdir={tmp}", f"-XX:ErrorFile={tmp}/hs_err.log", *options, "-cp"]
        command += [f"{class_path}{os.pathsep}{tmp}", "aeronspark.ReadPlanned"]
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **(_preloaded() if is_sanitized else {}), **env},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, **command: object) -> Verdict:
        """A command's answer; JvmEndedError with what the JVM said if it is no more."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            said = self._errors.read_text("utf-8", "replace")
            raise JvmEndedError(f"the JVM ended with {self._process.wait()}, saying {said[-6000:]}")
        found = Verdict(**json.loads(line))
        return Verdict(error=named(found.error)) if found.error else found

    def open(self, partition: object, schema: StructType) -> Verdict:
        pickled = base64.b64encode(pickle.dumps(partition)).decode("ascii")
        return self.ask(do="open", partition=pickled, schema=schema.json())

    def read(self, batches: int = ALL, *, has_texts: bool = True) -> Verdict:
        """Batches at most; without texts there is no digest of the rows."""
        return self.ask(do="read", batches=batches, texts=has_texts)

    def read_again(self) -> Verdict:
        """The last batch, as it is now."""
        return self.ask(do="read again")

    def close(self) -> Verdict:
        return self.ask(do="close")

    def verdict(self, partition: object, schema: StructType) -> Verdict:
        """Of a task that reads all."""
        opened = self.open(partition, schema)
        verdict = opened if opened.error else self.read()
        closed = self.close()
        return closed if closed.error else verdict


class PythonReader:
    """Python's reader with the same options, and what both need: schema and partitions."""

    def __init__(self, folder: Path, **options: str) -> None:
        parsed = ReadOptions.parse({"path": str(folder), **options}, streaming=False)
        self.schema = read_schema(parsed)
        self._reader = AeronBatchReader(parsed, self.schema)

    def partitions(self) -> list[RangesPartition]:
        return list(self._reader.partitions())  # type: ignore[arg-type]

    def verdict(self, partition: RangesPartition) -> Verdict:
        """Of a task that reads all."""
        digest, rows = hashlib.sha256(), 0
        try:
            for batch in self._reader.read(partition):
                for row in zip(*(_texts(column) for column in batch.columns), strict=True):
                    digest.update("".join(f"{text}," for text in row).encode() + b"\n")
                rows += batch.num_rows
        except AeronError as error:
            return Verdict(error=f"aeron_spark.errors.{type(error).__name__}: {error}".splitlines()[0])
        return Verdict(rows, digest.hexdigest())


def named(text: str) -> str:
    """Our error within one of Spark's; what else it is, whole."""
    at = text.find("aeron_spark.errors.")
    return text[max(at, 0) :].splitlines()[0].removesuffix(" SQLSTATE: 38000")


def memory(pid: int) -> int:
    """Bytes that a process has for itself."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(status.split("RssAnon:")[1].split()[0]) << 10


def open_files(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def _texts(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return [value.hex() if isinstance(value, bytes) else value for value in column.to_pylist()]


def _preloaded() -> Mapping[str, str]:
    """For a JVM that loads a library with the sanitizers: it handles signals itself, and keeps what it has to its end."""
    command = [COMPILER, "-print-file-name=libasan.so"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    options = "detect_leaks=0:handle_segv=0:allow_user_segv_handler=1:abort_on_error=1:allocator_may_return_null=1"
    return {"LD_PRELOAD": found.stdout.strip(), "ASAN_OPTIONS": options}
