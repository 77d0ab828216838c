"""`spark-submit` of an example to a standalone master with one worker, all on loopback; nothing of it stays running.

Spec: 09 §7.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.processes import Process
from tests.kit.submit import ENVIRONMENT, SPARK_HOME
from tests.kit.wait import wait_until
from tests.system.test_spark_examples import EXAMPLES, PRINTED

ROOT = Path(__file__).resolve().parents[2]


def session_members(leader: int) -> list[str]:
    """Processes of a leader's session that are alive: executors and their Python workers stay in it."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text(encoding="ascii", errors="replace").rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(name)
    return found


def server(name: str, arguments: list[str], folder: Path) -> Process:
    command = [SPARK_HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1"]
    return Process(name, [*command, "--port", "0", "--webui-port", "0", *arguments], env=ENVIRONMENT, cwd=folder)


def end(process: Process) -> None:
    process.stop(timeout=30)
    wait_until(
        lambda: not session_members(process.pid), 30, "its children to end", state=lambda: session_members(process.pid)
    )


@pytest.fixture
def master_url(tmp_path: Path) -> Iterator[str]:
    """A master, and a worker that has registered with it."""
    master = server("master.Master", [], tmp_path)
    try:
        started = wait_until(
            lambda: (
                master.returncode is not None or re.search(r"Starting Spark master at (spark://\S+)", master.stderr())
            ),
            60,
            "the master",
        )
        assert isinstance(started, re.Match), master.report()
        url = started[1]
        worker = server(
            "worker.Worker", ["--cores", "2", "--memory", "1100m", "--work-dir", str(tmp_path / "work"), url], tmp_path
        )
        try:
            wait_until(
                lambda: "Successfully registered with master" in worker.stderr(), 60, "the worker", state=worker.report
            )
            yield url
        finally:
            end(worker)
    finally:
        end(master)


def test_an_example_runs_on_a_standalone_cluster(master_url: str, tmp_path: Path) -> None:
    example = "05_spark_write_back.py"
    submit = Process(
        "spark-submit",
        [
            *["spark-submit", "--master", master_url],
            *["--properties-file", ROOT / "conf" / "spark-defaults.conf"],
            EXAMPLES / example,
        ],
        env=ENVIRONMENT,
        cwd=tmp_path,
    )
    assert submit.wait_end(timeout=240) == 0, submit.report()
    assert re.search(PRINTED[example], submit.stdout()), submit.report()
    applications = list((tmp_path / "work").glob("app-*/*/stderr"))
    assert applications, "the executor ran in the worker, not in the submitting process"
    wait_until(lambda: not session_members(submit.pid), 30, "the application to be gone")


LOOK = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print(spark.read.format("aeron").load("/nowhere").schema)
"""


def test_spark_is_told_its_python_by_the_environment_and_not_by_a_setting(tmp_path: Path) -> None:
    """As docs/spark.md has it: without the activated environment, `spark.pyspark.python` alone finds no format."""
    (tmp_path / "look.py").write_text(LOOK, "utf-8")
    bare = {**ENVIRONMENT, "SPARK_HOME": str(SPARK_HOME), "PATH": f"{SPARK_HOME / 'bin'}:/usr/local/bin:/usr/bin:/bin"}
    command = ["spark-submit", "--master", "local[1]"]
    setting = ["--conf", f"spark.pyspark.python={sys.executable}"]
    by_variable = {**bare, "PYSPARK_PYTHON": sys.executable}
    with (
        Process("by a setting", [*command, *setting, "look.py"], env=bare, cwd=tmp_path) as alone,
        Process("by the variable", [*command, "look.py"], env=by_variable, cwd=tmp_path) as told,
    ):
        assert alone.wait_end(timeout=240) != 0, alone.report()
        assert "[DATA_SOURCE_NOT_FOUND]" in alone.stdout(), alone.report()
        assert told.wait_end(timeout=240) == 0, told.report()
        assert "StructField('value', BinaryType(), False)" in told.stdout(), told.report()
