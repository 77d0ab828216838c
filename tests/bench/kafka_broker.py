"""A Kafka broker in one plain Java process (KRaft, no ZooKeeper), and the jars of Spark's connector; all from Maven.

The class path is built once into build/kafka, offline if that is possible.
"""

from __future__ import annotations

import os
import socket
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.pairs import ROOT
from tests.kit.processes import Process

POM = Path(__file__).parent / "kafka" / "pom.xml"
BUILD = ROOT / "build" / "kafka"
#: What Spark's connector needs beside Spark.
CONNECTOR_JARS = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
    "num.partitions": "2",
    "log.retention.ms": "-1",
}


def class_path() -> list[str]:
    """Jars of broker and connector; CalledProcessError with what Maven said."""
    found = BUILD / "classpath.txt"
    if not found.exists() or found.stat().st_mtime < POM.stat().st_mtime:
        BUILD.mkdir(parents=True, exist_ok=True)
        command = ["mvn", "-B", "-q", "-f", str(POM), "dependency:build-classpath", f"-Dmdep.outputFile={found}"]
        offline = subprocess.run([*command, "-o"], check=False, capture_output=True)
        if offline.returncode != 0:
            subprocess.run(command, check=True)
    return found.read_text("utf-8").strip().split(os.pathsep)


def connector_jars() -> str:
    """Value of spark.jars."""
    return ",".join(jar for jar in class_path() if Path(jar).name.startswith(CONNECTOR_JARS))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """A broker that keeps its logs in a folder; gives its address."""
    port, controller = _free_port(), _free_port()
    settings = {
        **SETTINGS,
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "log.dirs": str(folder / "logs"),
    }
    properties = folder / "server.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), "utf-8")
    java = ["java", "-Xmx1g", "-cp", os.pathsep.join(class_path())]
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    subprocess.run(
        [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)],
        check=True,
        capture_output=True,
    )
    with Process("kafka broker", [*java, "kafka.Kafka", str(properties)]) as process:

        def is_ready() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        process.wait_ready(is_ready, timeout=120)
        yield f"127.0.0.1:{port}"
        process.kill()
