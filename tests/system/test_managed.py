"""A stand-in for a managed Spark: only Spark Connect leads to it, and it has nothing of ours but what a session brings.

A server with the Spark driver, a worker, and an archive have a network namespace each. Server and worker have a `/dev/shm` of
64 KiB, a home that cannot be written, and scratch folders that the other does not see, where all that they write goes. Their
Python lacks the package and cffi. What the client runs is `docs/managed-spark.md`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.kit import hosts, pages, spark_jvm, wheel
from tests.kit.hosts import Host
from tests.kit.processes import Process
from tests.system.test_cluster import MESSAGES, PROGRAMS, ROOT, SPARK_HOME, environment

pytestmark = pytest.mark.interop

#: In a mount namespace of a machine, before its command: shared memory, home and scratch folder.
PREPARE = """
mount -t tmpfs -o size=64k none /dev/shm
mount --bind home home
mount -o remount,bind,ro home
mount -t tmpfs none scratch
cd scratch
exec "$@"
"""
COUNT = "print(messages.count())\n"
#: Behind the blocks of the page, as the client has them.
AFTER = """
from pyspark.sql import functions as F

rows = spark.read.format("aeron").options(**archive, streamId="2002").load()
number = "CAST(substring_index(CAST(value AS STRING), char(0), 1) AS INT) AS n"
print("copied:", *rows.selectExpr(number).agg(F.count("*"), F.count_distinct("n"), F.max("n")).first())
back = spark.read.format("aeron").options(**archive, **sbe, streamId="2003").load()
print("quotes:", *back.agg(F.count("*"), F.sum("ask")).first())
spark.stop()
"""


def of_machine(host: Host, folder: Path, python: Path) -> dict[str, str | None]:
    scratch = str(folder / "scratch")
    return {
        **environment(host),
        "PYSPARK_PYTHON": str(python),
        "HOME": str(folder / "home"),
        "TMPDIR": scratch,
        "SPARK_LOCAL_DIRS": scratch,
    }


def test_a_session_brings_all_it_needs(tmp_path: Path) -> None:
    python = wheel.without_package(tmp_path / "bare")
    for name in ("home", "scratch", "client"):
        (tmp_path / name).mkdir()
    spark_class = SPARK_HOME / "bin" / "spark-class"

    def running(host: Host, name: str, *command: str | Path) -> Process:
        prefix = (*host.prefix, "sh", "-euc", PREPARE, "sh")
        return Process(name, [*prefix, *command], env=of_machine(host, tmp_path, python), cwd=tmp_path)

    with hosts.several(3) as (archive, edge, worker):
        host_py = [sys.executable, PROGRAMS / "archive_host.py", archive.address, str(MESSAGES)]
        archiving = Process("archive", [*archive.alone, *host_py], env={"PYTHONPATH": str(ROOT)}, cwd=tmp_path)
        deploy = "org.apache.spark.deploy"
        master_url = f"spark://{edge.address}:7077"
        master = running(
            edge, "master", spark_class, f"{deploy}.master.Master", "--host", edge.address, "--port", "7077"
        )
        processes = [archiving, master]
        try:
            archiving.wait_ready(lambda: "ready" in archiving.stdout())
            master.wait_ready(lambda: "New state: ALIVE" in master.stderr(), timeout=180)
            sizes = (
                "--cores",
                "2",
                "--memory",
                "1100m",
                "--webui-port",
                "0",
                "--host",
                worker.address,
                "--work-dir",
                tmp_path / "scratch",
            )
            working = running(worker, "worker", spark_class, f"{deploy}.worker.Worker", *sizes, master_url)
            connect = running(
                edge, "connect server", SPARK_HOME / "bin" / "spark-submit", "--master", master_url,
                "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
                "--conf", f"spark.connect.grpc.binding.address={edge.address}", "--conf", "spark.ui.enabled=false",
                "--conf", f"spark.executor.extraJavaOptions={spark_jvm.QUICK_START}", "--conf", "spark.executor.memory=1g",
                "spark-internal",
            )  # fmt: skip
            processes += [working, connect]
            connect.wait_ready(lambda: "Spark Connect server started" in connect.stderr(), timeout=180)
            places = {"archive-host": archive.address, "spark-host": edge.address}
            blocks = [pages.block("managed-spark.md", "python", word) for word in ("add_to", "readStream", "sbeSchema")]
            # The stream first: executors have nothing of the session yet.
            blocks[0], blocks[-1] = blocks[0].replace(COUNT, ""), blocks[-1] + COUNT
            program = pages.placed(
                "".join(blocks) + AFTER, {**places, "examples/prices.xml": ROOT / "examples/prices.xml"}
            )
            (tmp_path / "client.py").write_text(program, "utf-8")
            client = Process(
                "client", [*edge.prefix, sys.executable, tmp_path / "client.py"],
                env={"PYTHONPATH": str(ROOT), "JAVA_HOME": "/nowhere"}, cwd=tmp_path / "client",
            )  # fmt: skip
            report = client.wait_end(timeout=300) and f"{client.report()}\n{connect.report()}\n{working.report()}"
            assert not report, report
        finally:
            for process in processes:
                process.kill()
    printed = client.stdout().splitlines()
    assert printed[0] == str(MESSAGES)
    assert f"copied: {MESSAGES} {MESSAGES} {MESSAGES - 1}" in printed
    assert "quotes: 100 5050.0000" in printed
