"""Goal: an operator who has the documentation alone keeps what was acknowledged: through a disk that fills, a kill and a wipe.

Method: driver and archive run under the rules of their units, the archive on a file system of a few megabytes. Prometheus
scrapes them with our rules, without their waiting times. The commands are those of docs/alerts.md and docs/operate, but for
places and sizes. All messages are numbered: each recorded one must be there, once, in order.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from aeron_spark import Archive, Client, Folder
from tests.interop.test_prometheus import RULES, Server, scraping
from tests.kit import mark, native, needs, pages, require, sandbox, small_disk
from tests.kit.cnc import Cnc
from tests.kit.manager import Manager
from tests.kit.payload import RESERVED_FACTOR
from tests.kit.ports import free_port
from tests.kit.processes import Process
from tests.kit.wait import wait_until
from tests.system.crashes import CHANNEL, STREAM, message

pytestmark = pytest.mark.interop

ALERT = "AeronDiskAlmostFull"
RATE = "rate(aeron_publisher_position_bytes_total[10s]) > 0"
MOST_MESSAGES = 1500  # of the last recording: the file system is small
SETTINGS = {"aeron.archive.low.storage.space.threshold": "0", "aeron.archive.catalog.capacity": "65536"}


@pytest.fixture(autouse=True)
def _needed() -> None:
    require.beyond("Prometheus, and a file system of the test's own")
    if needs.absent("prometheus"):
        require.missing("Prometheus: apt install prometheus")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk.mounted(tmp_path / "disk", "24m") as folder:
        (folder / "ballast").unlink()
        yield folder


def shell(commands: str, folder: Path) -> str:
    """The output of a page's commands, which succeed."""
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    command = ["bash", "-euo", "pipefail", "-c", commands]
    done = subprocess.run(command, cwd=folder, env={"PATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, commands + done.stdout + done.stderr
    return done.stdout


def firing(server: Server) -> set[str]:
    rules = server.ask("rules")["groups"][0]["rules"]
    return {rule["name"] for rule in rules if rule["state"] == "firing"}


def numbers_of(folder: Path, recording_id: int) -> list[int]:
    """Numbers of the recording's messages, from where it starts now."""
    with Folder(folder) as opened:
        rows = opened.read(recording_id, columns=["reserved_value"])
        return [value // RESERVED_FACTOR for batch in rows for value in batch.column("reserved_value").to_pylist()]


def digest(folder: Path, recording_id: int, work: Path) -> str:
    """The SHA-256 of all messages, as `export` prints it."""
    command = f"aeron-spark archive export {folder} {recording_id} --out {work}/all.csv --overwrite --json"
    return str(json.loads(shell(command, work))["values_sha256"])


class Load:
    """Publishes numbered messages, and waits until the archive has acknowledged them."""

    def __init__(self, client: Client, stream: int) -> None:
        self.archive = Archive(client)
        self.archive.start_recording(CHANNEL, stream)
        self._publication = client.add_exclusive_publication(str(CHANNEL), stream)
        self._publication.wait_connected(10)
        self.recording_id = self.archive.wait_recording("aeron:ipc", stream, self._publication.session_id)
        self.count = 0

    def publish(self, count: int) -> int:
        """Returns the position that the archive has acknowledged."""
        chosen = range(self.count, self.count + count)
        self.count += count
        reserved = [number * RESERVED_FACTOR for number in chosen]
        position = self._publication.offer_batch([message(one) for one in chosen], reserved_values=reserved, timeout=20)
        self.archive.wait_position(self.recording_id, position, timeout=20)
        return int(position)

    def close(self) -> None:
        self.archive.close()
        self._publication.close()


def fill_and_follow_the_runbook(load: Load, server: Server, folder: Path) -> None:
    """The disk fills; the alert fires while there is still room; its runbook ends it, and the recording goes on."""
    while shutil.disk_usage(folder).free > 0.045 * shutil.disk_usage(folder).total:
        load.publish(20)
    wait_until(lambda: ALERT in firing(server), 60, "the alert")
    assert shutil.disk_usage(folder).free > 0
    commands = pages.placed(pages.block("alerts.md", "sh", "--max-bytes"), {"/data/archive": folder, "500g": "8m"})
    assert "would delete" in shell(commands, folder.parent)
    assert "deleted" in shell(f"{commands.strip()} --yes", folder.parent)
    wait_until(lambda: ALERT not in firing(server), 60, "the end of the alert")
    load.publish(200)
    assert load.archive.stop_position(load.recording_id) is None


def back_up_under_load(load: Load, folder: Path, work: Path) -> None:
    """The page's commands, while the archive records on."""
    commands = pages.block("operate/backup.md", "sh", "archive verify backup --all-segments")
    ended = threading.Event()

    def back_up() -> None:
        try:
            assert "ERR" not in shell(pages.placed(commands, {"recordings": folder}), work)
        finally:
            ended.set()

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(back_up)
        while not ended.is_set() and load.count < MOST_MESSAGES:
            load.publish(5)
        done.result()


def test_the_operators_drill(disk: Path, aeron_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = disk / "archive"
    units = sandbox.folder(tmp_path / "units", {name: native.executable(name) for name in sandbox.PROGRAMS})
    rules = tmp_path / "rules.yml"
    rules.write_text(re.sub(r"^ +for: .*\n", "", RULES.read_text("utf-8"), flags=re.MULTILINE))
    listen = f"127.0.0.1:{free_port()}"
    metrics = [sys.executable, "-m", "aeron_spark", "metrics", "--listen", listen, "--dir", aeron_dir]
    quick = {"aeron.client.liveness.timeout": "5s", "aeron.publication.unblock.timeout": "8s"}
    with Manager(tmp_path, monkeypatch) as manager, native.driver(aeron_dir, quick, folder=units):
        assert manager.reports("READY=1")
        archiving = native.archive(aeron_dir, folder, SETTINGS, folder=units)
        assert "STATUS=records in" in manager.reports("READY=1")[-1]
        monkeypatch.delenv("NOTIFY_SOCKET")
        with (
            Process("metrics", [*metrics, "--archive-dir", folder]),
            scraping(listen, free_port(), tmp_path, rules) as server,
            Client(aeron_dir) as client,
        ):
            load = Load(client, STREAM)
            wait_until(lambda: load.publish(1) and server.data(RATE), 60, "a rate in Prometheus")
            assert ALERT not in firing(server)
            fill_and_follow_the_runbook(load, server, folder)

            told = load.publish(10)
            archiving.kill()
            load.close()
            reaped = Cnc(aeron_dir).value_of
            wait_until(lambda: reaped("Client liveness timeouts") == 1, 60, "the dead archive to be reaped")
            mark.age(folder)
            with native.archive(aeron_dir, folder, SETTINGS, folder=units):
                assert "OK" in shell(f"aeron-spark archive verify {folder} --all-segments", tmp_path)
                kept = numbers_of(folder, load.recording_id)
                assert kept == list(range(kept[0], load.count))
                later = Load(client, STREAM + 1)
                assert (later.archive.stop_position(load.recording_id) or 0) >= told
                later.publish(300)
                back_up_under_load(later, folder, tmp_path)
                later.close()
    ids = (load.recording_id, later.recording_id)
    before = [digest(tmp_path / "backup", one, tmp_path) for one in ids]
    shutil.rmtree(folder)
    restoring = pages.block("operate/backup.md", "sh", "archive restore backup recordings")
    assert "their digests compared" in shell(pages.placed(restoring, {"recordings": folder}), tmp_path)
    assert [digest(folder, one, tmp_path) for one in ids] == before
    assert numbers_of(folder, load.recording_id) == kept
    assert numbers_of(folder, later.recording_id)[:300] == list(range(300))
