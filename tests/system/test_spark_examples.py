"""Each example that needs Spark runs alone, as a plain program, in a minute on an idle machine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import require
from tests.kit.processes import Process

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
AVRO = "11_spark_formats.py"
# In `make test`; the others, of `make test-more`, use what tests/spark has shown.
FIRST = {"03_spark_batch.py", "07_spark_exactly_once.py"}
# What each prints, shortest proof that it did what it says.
PRINTED = {
    "03_spark_batch.py": r"45000 of 50000 messages are trades(.|\n)*A\| 50000\|  103\.0(.|\n)*25000 messages from position",
    "04_spark_backfill_then_live.py": r"backfill: \d{6,} messages in (?!1 )\d+ batches(.|\n)*live: [1-9]\d* more(.|\n)*"
    r"^(?P<all>\d+) messages published\n(.|\n)*(?P=all) messages read, (?P=all) different",
    "05_spark_write_back.py": r"1250 of 20000 messages became alarms(.|\n)*too hot: 99\|  250",
    "07_spark_exactly_once.py": r"25000 messages published, 20000 committed, 20000 different, sum 399980000",
    "08_sbe_candles.py": r"ABC\|2026-01-30 09:00:00\|100\.0000\|100\.9900\| ?99\.9100\|100\.8800\| +4789\|(.|\n)*"
    r"10 candles of 2 symbols, volume 47974",
    "09_spark_time_range.py": r"1800 messages of three minutes(.|\n)*30\|     600\|1000\|1006\|(.|\n)*32\|     600"
    r"(.|\n)*36000 messages were recorded by then, 0 later",
    "10_spark_export.py": r"100000 messages in the file, their sum is 4999950000(.|\n)*\n0 messages of the recording are not",
    "14_spark_lake.py": r"20000 quotes have landed(.|\n)*UNKNOWN_SCHEMA(.|\n)*\d folders became one, 20000 quotes(.|\n)*"
    r"NULL\|20000\|(.|\n)*10\| 5000\|(.|\n)*position 1920128: 1 segments deleted(.|\n)*"
    r"27000 quotes in the view, 25000 in the table\n"
    r"27000 quotes in the view, 27000 in the table",
    AVRO: r"20000 messages of Avro, 1\d bytes each\n0 differ(.|\n)*D\| 25000",
}


def avro_jar() -> Path:
    """Spark's package for Avro, from the registry or as it was fetched before; the newest that registries have."""
    require.beyond("Spark's package for Avro, which Maven brings,")
    folder, version = ROOT / "build" / "avro", "4.1.1"
    jar = folder / f"spark-avro_2.13-{version}.jar"
    if not jar.exists():
        artifact = f"-Dartifact=org.apache.spark:spark-avro_2.13:{version}:jar"
        copy = ["mvn", "-q", "-B", "dependency:copy", artifact, f"-DoutputDirectory={folder}"]
        done = subprocess.run(copy, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            require.missing(f"Spark's package for Avro can't be fetched by mvn: {done.stdout}")
    return jar


def test_every_spark_example_is_here() -> None:
    elsewhere = {"12_spark_connect.py"}  # test_spark_connect.py
    assert {*PRINTED, *elsewhere} == {
        path.name for path in EXAMPLES.glob("[0-9]*.py") if "pyspark" in path.read_text("utf-8")
    }


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in FIRST else [pytest.mark.more]) for name in PRINTED if name != AVRO],
)
def test_example(name: str, tmp_path: Path) -> None:
    run_example(name, tmp_path)


@pytest.mark.interop
def test_example_of_avro(tmp_path: Path) -> None:
    # Spark's package for Avro, which spark-submit --packages would fetch.
    run_example(AVRO, tmp_path, f"--jars {avro_jar()} pyspark-shell")


def run_example(name: str, tmp_path: Path, options: str | None = None) -> None:
    environment = {"PYSPARK_PYTHON": None, "PYSPARK_SUBMIT_ARGS": options}
    program = Process(name, [sys.executable, EXAMPLES / name], env=environment, cwd=tmp_path)
    assert program.wait_end(timeout=240) == 0, program.report()
    assert re.search(PRINTED[name], program.stdout(), re.MULTILINE), program.report()
    # Where each batch takes longer than its trigger, there is no time between batches to stop a query in.
    assert "\tat org.apache.spark" not in program.stderr() or "falling behind" in program.stderr(), program.report()
