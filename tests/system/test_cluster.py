"""A standalone cluster whose machines share nothing but a network: archive, master with the submitting program, two workers.

Each has a network namespace and shared memory of its own, the archive's folder is in the archive's, so everything goes over
UDP. A worker's machine is killed in mid-batch. Once with the wheel installed on the workers, once with an environment that is
packed by venv-pack and sent to them. Nothing there imports the package from the source tree.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyspark
import pytest

from tests.kit import hosts, wheel
from tests.kit.hosts import Host
from tests.kit.processes import Process
from tests.kit.wait import wait_until

ROOT = Path(__file__).resolve().parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
JOB = Path(__file__).parent / "cluster" / "job.py"
MESSAGES = 20_000

pytestmark = pytest.mark.interop


class Cluster(NamedTuple):
    """Addresses and machines of a cluster that runs."""

    archive: Host
    edge: Host
    workers: list[Host]
    master_url: str
    folder: Path
    python: Path


def environment(host: Host, folder: Path, python: str | Path = sys.executable) -> dict[str, str]:
    return {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": host.address,
        "SPARK_LOCAL_HOSTNAME": host.address,
        "SPARK_WORKER_DIR": "",
        "PYSPARK_PYTHON": str(python),
        "PYTHONPATH": str(folder / "lib"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }


def server(host: Host, name: str, *arguments: str | Path, folder: Path) -> Process:
    spark_class = SPARK_HOME / "bin" / "spark-class"
    command = [*host.alone, spark_class, f"org.apache.spark.deploy.{name}", "--host", host.address, "--webui-port", "0"]
    return Process(name, [*command, *arguments], env=environment(host, folder), cwd=folder)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    python = wheel.environment(wheel.build(folder), folder / "installed")
    # The job's imports, without the package beside them.
    (folder / "lib").mkdir()
    (folder / "lib" / "tests").symlink_to(ROOT / "tests")
    with hosts.several(4) as (archive, edge, *workers):
        archiving = Process(
            "archive host",
            [*archive.alone, python, "-m", "tests.system.cluster.archive_host", archive.address, str(MESSAGES)],
            env=environment(archive, folder),
            cwd=folder,
        )
        master = server(edge, "master.Master", "--port", "7077", folder=folder)
        running = []
        for number, worker in enumerate(workers):
            sizes = ("--cores", "1", "--memory", "700m", "--work-dir", folder / f"work-{number}")
            running.append(server(worker, "worker.Worker", *sizes, f"spark://{edge.address}:7077", folder=folder))
        archiving.wait_ready(lambda: "ready" in archiving.stdout())
        for process, word in (
            (master, "New state: ALIVE"),
            *((worker, "Successfully registered") for worker in running),
        ):
            process.wait_ready(lambda process=process, word=word: word in process.stderr(), timeout=180)
        try:
            yield Cluster(archive, edge, workers, f"spark://{edge.address}:7077", folder, python)
        finally:
            for process in (archiving, master, *running):
                process.kill()


def submit(cluster: Cluster, what: str, *options: str | Path, python: str | Path) -> Process:
    command = [*cluster.edge.alone, SPARK_HOME / "bin" / "spark-submit", "--master", cluster.master_url]
    settings = {
        "spark.driver.host": cluster.edge.address,
        "spark.driver.bindAddress": cluster.edge.address,
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.executorEnv.PYTHONPATH": str(cluster.folder / "lib"),
    }
    flags = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    properties = ("--properties-file", ROOT / "conf" / "spark-defaults.conf")
    return Process(
        f"spark-submit {what}",
        [*command, *properties, *flags, *options, JOB, cluster.archive.address, cluster.folder, what],
        env=environment(cluster.edge, cluster.folder, python),
        cwd=cluster.folder,
    )


def packages(printed: str) -> set[str]:
    """The environments in which program and tasks found the package."""
    return {path.partition("/lib/python")[0] for path in re.findall(r"package: (\S+)", printed)}


def test_an_installed_wheel_reads_by_replay_and_writes_back_while_a_worker_dies(cluster: Cluster) -> None:
    job = submit(cluster, "whole", python=cluster.python)
    busy = {cluster.folder / f"busy-{number}" for number in range(2)}
    wait_until(
        lambda: job.returncode is not None or all(path.exists() for path in busy), 300, "both tasks", state=job.report
    )
    assert job.returncode is None, job.report()
    cluster.workers[0].kill_all()
    (cluster.folder / "go").touch()
    assert job.wait_end(timeout=300) == 0, job.report()
    printed = job.stdout()
    assert re.search(r"segments: .*archive's folder /dev/shm/archive is not visible on host", printed), job.report()
    assert re.search(rf"read: Row\(count\(n\)={MESSAGES}, .*={MESSAGES}\)", printed), job.report()
    back = re.search(r"back: Row\(.*=(\d+), .*=(\d+), .*=(\d+)\)", printed)
    assert back is not None, job.report()
    # At least once: a task that died is repeated, and what it had published stays.
    assert int(back[1]) >= MESSAGES
    assert (int(back[2]), int(back[3])) == (MESSAGES, MESSAGES - 1)
    assert packages(printed) == {str(cluster.python.parents[1])}, job.report()
    logs = [path.read_text("utf-8") for path in cluster.folder.glob("work-*/app-*/*/stderr")]
    assert sum("access=replay" in log for log in logs) == 2, "both workers read"


def test_a_packed_environment_reads_by_replay(cluster: Cluster) -> None:
    packed = wheel.packed(cluster.python.parents[1])
    here = cluster.folder / "environment"
    here.mkdir()
    subprocess.run(["tar", "-xf", packed, "-C", here], check=True)  # noqa: S607
    job = submit(cluster, "count", "--archives", f"{packed}#environment", python="./environment/bin/python")
    assert job.wait_end(timeout=300) == 0, job.report()
    assert f"read: Row(count(n)={MESSAGES}" in job.stdout(), job.report()
    here_and_there = {str(path) for path in cluster.folder.glob("work-*/app-*/*/environment")}
    assert packages(job.stdout()) == {str(here)} | here_and_there, job.report()
    assert here_and_there, "it was sent"
