"""Each example that needs Spark runs alone, as a plain program, in a minute on an idle machine."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.kit.processes import Process

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# What each prints, shortest proof that it did what it says.
PRINTED = {
    "03_spark_batch.py": r"45000 of 50000 messages are trades(.|\n)*A\| 50000\|  103\.0(.|\n)*25000 messages from position",
    "04_spark_stream.py": r"stopped after \d+ messages(.|\n)*(?P<all>\d+) messages published\n(.|\n)*"
    r"(?P=all) messages read, (?P=all) different",
    "07_spark_exactly_once.py": r"25000 messages published, 20000 committed, 20000 different, sum 399980000",
    "05_spark_write_back.py": r"1250 of 20000 messages became alarms(.|\n)*too hot: 99\|  250",
}


def test_every_spark_example_is_here() -> None:
    assert sorted(PRINTED) == sorted(
        path.name for path in EXAMPLES.glob("*.py") if "pyspark" in path.read_text("utf-8")
    )


@pytest.mark.parametrize("name", PRINTED)
def test_example(name: str, tmp_path: Path) -> None:
    program = Process(name, ["env", "-u", "PYSPARK_PYTHON", sys.executable, EXAMPLES / name], cwd=tmp_path)
    assert program.wait_end(timeout=240) == 0, program.report()
    assert re.search(PRINTED[name], program.stdout()), program.report()
