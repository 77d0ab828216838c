"""Makes the jar of the engine in Spark's JVM: the same bytes of the same sources, by the same JDK. CMake calls this.

python build_jar.py --spark-jars
python build_jar.py --javac JAVAC --sources FOLDER --library FILE --version VERSION --output JAR
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import tempfile
import zipfile
from pathlib import Path

_DATE = (1980, 1, 1, 0, 0, 0)
_SERVICE = "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider"
#: The Java that Spark needs at least.
_RELEASE = "17"
#: Warnings off: annotations of others' classes, and class paths that their manifests name.
_LINT = "-Xlint:all,-processing,-classfile,-path"


def spark_jars() -> Path | None:
    """The folder of pyspark's jars, None without pyspark; which is not imported for it."""
    found = importlib.util.find_spec("pyspark")
    folder = None if found is None or found.origin is None else Path(found.origin).parent / "jars"
    return folder if folder is not None and any(folder.glob("spark-sql_*.jar")) else None


def members(javac: Path, sources: Path, library: Path, version: str) -> dict[str, bytes]:
    """What the jar holds, by name."""
    jars = spark_jars()
    if jars is None:
        raise SystemExit("pyspark is not installed, whose classes the jar's are compiled with")
    files = sorted(map(str, sources.glob("aeronspark/*.java")))
    with tempfile.TemporaryDirectory() as folder:
        command: list[str | Path] = [
            javac,
            "--release",
            _RELEASE,
            _LINT,
            "-Werror",
            "-cp",
            f"{jars}/*",
            "-d",
            folder,
            *files,
        ]
        subprocess.run(command, check=True)  # noqa: S603 - CMake has found the compiler
        classes = {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*.class")}
    return {
        **classes,
        _SERVICE: b"aeronspark.Extensions\n",
        "aeronspark/version": version.encode(),
        "aeronspark/libaeron_spark_jni.so": library.read_bytes(),
    }


def main() -> None:
    """Print pyspark's folder of jars, or make the jar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spark-jars", action="store_true")
    parser.add_argument("--javac", type=Path)
    parser.add_argument("--sources", type=Path)
    parser.add_argument("--library", type=Path)
    parser.add_argument("--version")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    if options.spark_jars:
        print(spark_jars() or "")  # noqa: T201 - for CMake
        return
    made = members(options.javac, options.sources, options.library, options.version)
    with zipfile.ZipFile(options.output, "w") as jar:
        for name in sorted(made):
            jar.writestr(zipfile.ZipInfo(name, _DATE), made[name], zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    main()
