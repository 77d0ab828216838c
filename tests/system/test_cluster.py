"""A standalone cluster whose machines share nothing but a network: archive, master with the submitting program, two workers.

Each has a network namespace and shared memory of its own, the archive's folder is in the archive's, so everything goes over
UDP. A worker's machine is killed in mid-batch. Once with the wheel installed on the workers, once with an environment that is
packed by venv-pack and sent to them. What is submitted, and how, is taken from `docs/cluster.md`; the machines have nothing set
that is not told there, and nothing imports the package from the source tree.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyspark
import pytest

from tests.kit import hosts, pages, wheel
from tests.kit.hosts import Host
from tests.kit.processes import Process
from tests.kit.wait import wait_until

ROOT = Path(__file__).resolve().parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
PROGRAMS = Path(__file__).parent / "cluster"
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


def environment(host: Host) -> dict[str, str | None]:
    """A machine with a Spark of its own and an address for a name; its python3 is the system's, which has no package."""
    places = [place for place in os.environ["PATH"].split(":") if Path(place) != Path(sys.executable).parent]
    return {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": host.address,
        "SPARK_LOCAL_HOSTNAME": host.address,
        "SPARK_WORKER_DIR": None,
        "PYSPARK_PYTHON": None,
        "PYTHONPATH": None,
        "PATH": ":".join([str(SPARK_HOME / "bin"), *places]),
    }


def server(host: Host, name: str, *arguments: str | Path, folder: Path) -> Process:
    spark_class = SPARK_HOME / "bin" / "spark-class"
    command = [*host.alone, spark_class, f"org.apache.spark.deploy.{name}", "--host", host.address, "--webui-port", "0"]
    return Process(name, [*command, *arguments], env=environment(host), cwd=folder)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    python = wheel.environment(wheel.build(folder), folder / "installed")
    (folder / "conf").symlink_to(ROOT / "conf")
    with hosts.several(4) as (archive, edge, *workers):
        archiving = Process(
            "archive host",
            [*archive.alone, python, PROGRAMS / "archive_host.py", archive.address, str(MESSAGES)],
            env=environment(archive),
            cwd=folder,
        )
        master = server(edge, "master.Master", "--port", "7077", folder=folder)
        running = []
        for number, worker in enumerate(workers):
            sizes = ("--cores", "1", "--memory", "1100m", "--work-dir", folder / f"work-{number}")
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


def submit(cluster: Cluster, name: str, commands: str, **places: object) -> Process:
    """Commands of the page on the submitting machine, in a folder of its own."""
    script = pages.placed(commands, {"spark://master:7077": cluster.master_url, **places})
    command = [*cluster.edge.alone, "bash", "-euc", script]
    return Process(f"spark-submit {name}", command, env=environment(cluster.edge), cwd=cluster.folder)


def packages(printed: str) -> set[str]:
    """The environments in which program and tasks found the package."""
    return {path.partition("/lib/python")[0] for path in re.findall(r"package: (\S+)", printed)}


def test_an_installed_wheel_reads_by_replay_and_writes_back_while_a_worker_dies(cluster: Cluster) -> None:
    recipe = pages.block("cluster.md", "sh", "/opt/aeron")
    # The lines before have been done, with links for the large packages.
    commands = recipe[recipe.index("PYSPARK_PYTHON=") :]
    job_py = f"{PROGRAMS / 'job.py'} {cluster.archive.address} {cluster.folder}"
    job = submit(cluster, "whole", commands, **{"/opt/aeron": cluster.python.parents[1], "job.py": job_py})
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


#: Around the lines of the page: the session that they need, and what they read and wrote with.
PROGRAM = """
import os
from pyspark.sql import SparkSession, functions as F
import aeron_spark

spark = SparkSession.builder.appName("page").getOrCreate()
{page}
place = F.udf(lambda _: os.path.realpath(aeron_spark.__file__), "string", useArrow=False)
there = spark.range(8, numPartitions=4).select(place("id")).distinct().collect()
for path in {{os.path.realpath(aeron_spark.__file__), *(row[0] for row in there)}}:
    print("package:", path)
print("read:", messages.count())
spark.stop()
"""


def test_a_packed_environment_runs_the_lines_of_the_page(cluster: Cluster) -> None:
    page = pages.placed(
        pages.block("cluster.md", "python", "controlChannel"), {"archive-host": cluster.archive.address}
    )
    (cluster.folder / "job.py").write_text(PROGRAM.format(page=page), "utf-8")
    wheel.packed(cluster.python.parents[1]).rename(cluster.folder / "environment.tar.gz")
    recipe = pages.block("cluster.md", "sh", "venv-pack")
    job = submit(cluster, "packed", recipe[recipe.index("mkdir environment") :])
    assert job.wait_end(timeout=300) == 0, job.report()
    assert f"read: {MESSAGES}" in job.stdout(), job.report()
    here = cluster.folder / "environment"
    here_and_there = {str(path) for path in cluster.folder.glob("work-*/app-*/*/environment")}
    assert packages(job.stdout()) == {str(here)} | here_and_there, job.report()
    assert here_and_there, "it was sent"
