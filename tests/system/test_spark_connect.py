"""Spark Connect: a server as it is started by hand, a client without Java, and a declarative pipeline run against it.

The commands are those of `docs/spark.md`, on a port of the test's.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aeron_spark import Archive, ArchivingMediaDriver
from tests.kit import pages
from tests.kit.ports import free_port
from tests.kit.processes import Process
from tests.kit.submit import ENVIRONMENT
from tests.system.test_spark_examples import EXAMPLES

#: Server, client and pipeline.
COMMANDS = pages.block("spark.md", "sh", "SparkConnectServer").splitlines()
# What a client asks of the tables that a pipeline made.
LOOK = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
print([tuple(row) for row in spark.table("volumes").orderBy("symbol").collect()])
"""


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Connect server."""
    port, folder = free_port(), tmp_path_factory.mktemp("connect")
    port_of_ours = f"--conf spark.connect.grpc.binding.port={port} spark-internal"
    command = pages.placed(COMMANDS[0], {"spark-internal": port_of_ours})
    server = Process("connect server", ["bash", "-ec", f"exec {command}"], env=ENVIRONMENT, cwd=folder)
    try:
        server.wait_ready(lambda: "Spark Connect server started" in server.stderr(), timeout=180)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.kill()


def run(name: str, command: list[str | Path], folder: Path, **environment: str) -> str:
    if not (folder / "examples").exists():
        (folder / "examples").symlink_to(EXAMPLES)
    process = Process(name, command, env={**ENVIRONMENT, **environment}, cwd=folder)
    assert process.wait_end(timeout=280) == 0, process.report()
    return process.stdout() + process.stderr()


def record(archive_dir: Path, aeron_dir: Path) -> None:
    """A thousand trades, in a recording of their own."""
    channel, stream = "aeron:ipc?term-length=64k", 1001
    trades = [b'{"symbol": "%c", "price": %d, "size": 2}' % (65 + n % 2, 100 + n) for n in range(1000)]
    with ArchivingMediaDriver(archive_dir, aeron_dir) as servers, Archive(aeron_dir=servers.aeron_dir) as archive:
        archive.start_recording(channel, stream)
        with archive.client.add_exclusive_publication(channel, stream) as publication:
            publication.wait_connected(10)
            recording_id = archive.wait_recording("aeron:ipc", stream, publication.session_id)
            archive.wait_position(recording_id, publication.offer_batch(trades))


def test_a_client_reads_and_streams(remote: str, tmp_path: Path) -> None:
    command = pages.placed(COMMANDS[1], {"sc://localhost:15002": remote})
    out = run("client", ["bash", "-ec", command], tmp_path, JAVA_HOME="/nowhere")
    assert "20000 messages read by pyspark.sql.connect.session, their sum is 199990000" in out
    assert "20000 messages by a streaming query" in out


def test_a_pipeline_takes_in_what_was_recorded_since(remote: str, tmp_path: Path, aeron_dir: Path) -> None:
    shutil.copytree(EXAMPLES / "pipeline", tmp_path / "examples" / "pipeline")
    spec = tmp_path / "examples" / "pipeline" / "spark-pipeline.yml"
    text, count = re.subn("file:///tmp/prices-pipeline", f"file://{tmp_path}/storage", spec.read_text("utf-8"))
    assert count == 1
    spec.write_text(text, "utf-8")
    places = {"sc://localhost:15002": remote, "/path/of/the/archive": tmp_path / "archive"}
    command = pages.placed(COMMANDS[2], places)
    for _ in range(2):
        record(tmp_path / "archive", aeron_dir)
        assert "Run is COMPLETED" in run("pipeline", ["bash", "-ec", command], tmp_path)
    # With a run that began anew, or one that missed what came since, these were 1,500 or 500.
    assert "[('A', 1000, 2000), ('B', 1000, 2000)]" in run("look", [sys.executable, "-c", LOOK, remote], tmp_path)
