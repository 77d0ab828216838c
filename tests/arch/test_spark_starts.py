"""A start of Spark costs ten seconds: tests share the session of `tests/spark/conftest.py`, and what starts another says why.

Method: text of the files. Benchmarks start what they measure.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
STARTS = re.compile(
    r"build_session\(|SparkSession\.builder|\"spark-(submit|class)\"|SparkConnectServer|\"aeron_spark\.demo\"|EXAMPLES / name"
)
OWN = {
    "tests/kit/spark_jvm.py": "it writes the file by which the others start quickly",
    "tests/python/test_demo.py": "the whole command of `make run`, ended at each stage by Ctrl-C",
    "tests/spark/compat/carried.py": "a query of another pyspark",
    "tests/spark/conftest.py": "the one that all share",
    "tests/spark/crash_loop.py": "it is killed with its JVM",
    "tests/spark/engine_restarts.py": "it is killed with its JVM",
    "tests/spark/exactly_once.py": "it is killed with its JVM",
    "tests/spark/lake_kills.py": "it is killed with its JVM",
    "tests/spark/lake_view.py": "the long form, a program of its own",
    "tests/spark/session.py": "what the others call",
    "tests/spark/test_habits.py": "other workers: not reused, of another Python",
    "tests/system/cluster/job.py": "submitted to a cluster",
    "tests/system/spark_crashes.py": "a master that repeats tasks whose workers are killed",
    "tests/system/test_cluster.py": "a cluster of machines without shared memory",
    "tests/system/test_managed.py": "machines without the package",
    "tests/system/test_spark_connect.py": "a Connect server, as the documentation starts it",
    "tests/system/test_spark_examples.py": "examples are whole programs",
    "tests/system/test_submit.py": "spark-submit to a standalone cluster",
    "tests/system/wheel.py": "the wheel, installed alone",
}


def test_files_that_start_a_spark_of_their_own_say_why() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("*.py")
        if "bench" not in path.parts and path.name != Path(__file__).name and STARTS.search(path.read_text("utf-8"))
    }
    assert found == OWN.keys()
