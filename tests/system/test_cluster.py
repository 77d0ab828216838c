"""A standalone cluster whose machines share nothing but a network: archive, master with the submitting program, two workers.

Each has a network namespace and shared memory of its own, the archive's folder is in the archive's, so everything goes over
UDP. A worker's machine is killed in mid-batch. Once with the package installed on the workers, once with an environment that is
sent to them.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyspark
import pytest

import aeron_spark
from tests.kit import hosts
from tests.kit.hosts import Host
from tests.kit.processes import Process
from tests.kit.wait import wait_until

ROOT = Path(__file__).resolve().parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
JOB = Path(__file__).parent / "cluster" / "job.py"
MESSAGES = 20_000


class Cluster(NamedTuple):
    """Addresses and machines of a cluster that runs."""

    archive: Host
    edge: Host
    workers: list[Host]
    master_url: str
    folder: Path


def environment(host: Host, python: str = sys.executable) -> dict[str, str]:
    return {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": host.address,
        "SPARK_LOCAL_HOSTNAME": host.address,
        "SPARK_WORKER_DIR": "",
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }


def server(host: Host, name: str, *arguments: str | Path, folder: Path) -> Process:
    spark_class = SPARK_HOME / "bin" / "spark-class"
    command = [*host.alone, spark_class, f"org.apache.spark.deploy.{name}", "--host", host.address, "--webui-port", "0"]
    return Process(name, [*command, *arguments], env=environment(host), cwd=folder)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with hosts.several(4) as (archive, edge, *workers):
        archiving = Process(
            "archive host",
            [*archive.alone, sys.executable, "-m", "tests.system.cluster.archive_host", archive.address, str(MESSAGES)],
            env=environment(archive),
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
            yield Cluster(archive, edge, workers, f"spark://{edge.address}:7077", folder)
        finally:
            for process in (archiving, master, *running):
                process.kill()


def submit(cluster: Cluster, what: str, *options: str | Path, python: str = sys.executable) -> Process:
    command = [*cluster.edge.alone, SPARK_HOME / "bin" / "spark-submit", "--master", cluster.master_url]
    settings = {
        "spark.driver.host": cluster.edge.address,
        "spark.driver.bindAddress": cluster.edge.address,
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.executorEnv.PYTHONPATH": str(ROOT),
    }
    flags = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    properties = ("--properties-file", ROOT / "conf" / "spark-defaults.conf")
    return Process(
        f"spark-submit {what}",
        [*command, *properties, *flags, *options, JOB, cluster.archive.address, cluster.folder, what],
        env=environment(cluster.edge, python),
        cwd=cluster.folder,
    )


def packed_environment(folder: Path) -> Path:
    """A virtual environment that can be moved, with what the wheel and its requirements install; packed."""
    site = Path(aeron_spark._native._lib.__file__).parents[2]  # type: ignore[attr-defined]
    home = folder / "environment"
    packages = home / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    packages.mkdir(parents=True)
    (home / "bin").mkdir()
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    (home / "bin" / "python").symlink_to(base)
    (home / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n", "utf-8")
    for name in ("aeron-spark-driver", "aeron-spark-archive"):
        shutil.copy2(Path(sys.executable).parent / name, home / "bin" / name)
    without = shutil.ignore_patterns("__pycache__", "tests", "include", "*.c", "*.h", "kernels")
    shutil.copytree(ROOT / "aeron_spark", packages / "aeron_spark", ignore=without)
    shutil.copytree(site / "aeron_spark", packages / "aeron_spark", ignore=without, dirs_exist_ok=True)
    for name in ("pyspark_aeron.py", *(found.name for found in site.glob("aeron_spark-*.dist-info"))):
        copy = shutil.copytree if (site / name).is_dir() else shutil.copy2
        copy(site / name, packages / name)
    for pattern in ("pyarrow", "numpy", "numpy.libs", "cffi", "_cffi_backend*"):
        for found in site.glob(pattern):
            (packages / found.name).symlink_to(found)
    # Not a plain .tar: Spark unpacks that in Java, which refuses links to the outside and forgets what is executable.
    packed = folder / "environment.tar.gz"
    with tarfile.open(packed, "w:gz", compresslevel=1) as archive:
        for entry in sorted(home.iterdir()):
            archive.add(entry, arcname=entry.name)
    return packed


def test_an_installed_package_reads_by_replay_and_writes_back_while_a_worker_dies(cluster: Cluster) -> None:
    job = submit(cluster, "whole")
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
    logs = [path.read_text("utf-8") for path in cluster.folder.glob("work-*/app-*/*/stderr")]
    assert sum("access=replay" in log for log in logs) == 2, "both workers read"


def test_a_packed_environment_reads_by_replay(cluster: Cluster) -> None:
    packed = packed_environment(cluster.folder)
    job = submit(cluster, "count", "--archives", f"{packed}#environment", python="./environment/bin/python")
    assert job.wait_end(timeout=300) == 0, job.report()
    assert f"read: Row(count(n)={MESSAGES}" in job.stdout(), job.report()
    assert list(cluster.folder.glob("work-1/app-*/*/environment/bin/python")), "it was sent"
