"""Debian's Prometheus takes what `aeron-spark metrics` serves, and the rules and the board that come with it.

Method: promtool checks rules and configuration, and runs the rules over recorded series (prometheus/alerts.test.yml). Then
Prometheus scrapes real servers with traffic, ours or with `--subject` stock ones, and answers each query of board and rules.
Chromium shows the board's panels with these answers, drawn by `tests/kit/board.py`, as there is no Grafana: a picture in
build/pictures, to be looked at. `python -m tests.interop.test_prometheus` writes that of the documentation, in a minute.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from aeron_spark import Archive, Client
from aeron_spark.cli.__main__ import parser
from aeron_spark.metrics.table import TABLE
from aeron_spark.testing import Servers
from aeron_spark.types import SourceLocation
from tests.kit import board, needs, require
from tests.kit.browser import PROGRAM, Browser
from tests.kit.ports import free_port
from tests.kit.processes import Process
from tests.kit.subject import Subject
from tests.kit.wait import wait_until

pytestmark = pytest.mark.interop

ROOT = Path(__file__).parents[2]
RULES = ROOT / "conf" / "prometheus" / "aeron-spark.rules.yml"
CONFIG = ROOT / "conf" / "prometheus" / "prometheus.yml"
BOARD = ROOT / "conf" / "grafana" / "aeron-spark.json"
RUNBOOK = ROOT / "docs" / "alerts.md"
RECORDED = Path(__file__).parent / "prometheus" / "alerts.test.yml"
NAME = re.compile(r"\baeron_\w+")
# Without a loss report, a disk that fills, a firing alert, or a Spark query these have no data.
EMPTY_IN_HEALTH = re.compile(r"aeron_image_|aeron_archive_full_seconds|ALERTS|aeron_spark_")

# A test machine may be short of CPU, memory or disk.
OF_THE_MACHINE = {"AeronStalls", "AeronSharedMemoryLow", "AeronDiskAlmostFull", "AeronDiskFullSoon"}


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def queries() -> list[str]:
    """Those of the board, as they are sent."""
    panels = json.loads(BOARD.read_text("utf-8"))["panels"]
    return [sent(target["expr"]) for panel in panels for target in panel.get("targets", ())]


def sent(query: str) -> str:
    """A query of the board as Grafana would send it with its defaults."""
    return query.replace("$__rate_interval", "10s").replace("$dir", ".*")


@pytest.fixture(autouse=True)
def prometheus() -> None:
    for program in ("prometheus", PROGRAM):
        if absent := needs.absent(program):
            require.missing(f"install {' '.join(absent)}, to scrape servers and look at the board")


@pytest.mark.parametrize("check", [("check", "rules", RULES), ("check", "config", CONFIG), ("test", "rules", RECORDED)])
def test_promtool(check: tuple[str, str, Path]) -> None:
    done = subprocess.run(["promtool", *map(str, check)], capture_output=True, text=True, check=False)  # noqa: S607
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_notices_broken_rules(tmp_path: Path) -> None:
    """The recorded series are the rules' test: each alert that can never fire fails it."""
    text = RULES.read_text("utf-8")
    for rule in rules():
        changed = text.replace(f"expr: {rule['expr']}\n", f"expr: ({rule['expr']}) and (vector(1) == 0)\n")
        assert changed != text, rule["alert"]
        text = changed
    (tmp_path / RULES.name).write_text(text)
    (tmp_path / RECORDED.name).write_text(RECORDED.read_text("utf-8").replace("../../../conf/prometheus/", ""))
    command = ["promtool", "test", "rules", str(tmp_path / RECORDED.name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    failed = set(re.findall(r"alertname: (\w+)", done.stdout + done.stderr))
    assert failed == {rule["alert"] for rule in rules()}


def test_names_in_rules_and_board_are_exported() -> None:
    known = {one.sample for one in TABLE.values()}
    used = {name for text in [*queries(), *(rule["expr"] for rule in rules())] for name in NAME.findall(text)}
    assert used - known == set()


def test_each_alert_has_its_runbook() -> None:
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", RUNBOOK.read_text("utf-8"), re.DOTALL | re.MULTILINE))
    assert [name for name in sections if name.startswith("Aeron")] == [rule["alert"] for rule in rules()]
    for rule in rules():
        assert rule["annotations"]["runbook_url"] == f"docs/alerts.md#{rule['alert'].lower()}"
        text = sections[rule["alert"]]
        assert re.findall(r"^\*\*(.*?)\*\*", text, re.MULTILINE) == ["Means", "Look at", "Do"], rule["alert"]


def test_the_commands_of_the_runbook_exist() -> None:
    text = RUNBOOK.read_text("utf-8")
    lines = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
    ]
    lines += re.findall(r"`(aeron-spark [^`]+)`", text)
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("aeron-spark ")]
    assert len(commands) > 25
    for command in commands:
        if command == ["metrics"]:
            continue
        parsed = vars(parser().parse_args(command))
        # Who names a folder has named its driver, too; who names nothing would look at that of `AERON_DIR`.
        assert "dir" not in parsed or parsed["dir"] or parsed.get("path"), command
    others = {shlex.split(line)[0] for line in lines} - {"aeron-spark"}
    assert others == {"promtool", "prometheus", "df"}
    assert all(shutil.which(one) for one in others)


class Server:
    """A Prometheus with its own data, asked over its interface."""

    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}/api/v1/"

    def ask(self, path: str, **query: str) -> Any:
        with urllib.request.urlopen(f"{self.base}{path}?{urllib.parse.urlencode(query)}", timeout=30) as answer:  # noqa: S310 - our own
            return json.load(answer)["data"]

    def data(self, query: str) -> list[Any]:
        found: list[Any] = self.ask("query", query=query)["result"]
        return found

    def is_ready(self) -> bool:
        try:
            return bool(self.ask("targets")["activeTargets"])
        except OSError:
            return False


@contextmanager
def scraping(target: str, port: int, folder: Path, rules: Path = RULES) -> Iterator[Server]:
    """Prometheus with the rules and the configuration of conf/, quicker, and with this target."""
    config = yaml.safe_load(CONFIG.read_text("utf-8"))
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(rules)]
    config["scrape_configs"][0]["static_configs"][0]["targets"] = [target]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    server = Server(port)
    command = ["prometheus", "--config.file", folder / "prometheus.yml", "--storage.tsdb.path", folder / "data"]
    with Process("prometheus", [*command, "--web.listen-address", f"127.0.0.1:{port}"]) as process:
        process.wait_ready(server.is_ready)
        yield server


def test_prometheus_scrapes_a_run(subject: Subject, aeron_dir: Path, archive_dir: Path, tmp_path: Path) -> None:
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}|term-length=64k"
    listen = f"127.0.0.1:{free_port()}"
    begun_s = time.time()
    exporter_command = [sys.executable, "-m", "aeron_spark", "metrics", "--listen", listen, "--dir", aeron_dir]
    with (
        subject.driver(aeron_dir),
        subject.archive(aeron_dir, archive_dir),
        Archive(aeron_dir=aeron_dir) as archive,
        Client(aeron_dir) as client,
        Process("exporter", [*exporter_command, "--archive-dir", archive_dir]) as exporter,
        scraping(listen, free_port(), tmp_path) as server,
    ):
        archive.start_recording(channel, 7, source=SourceLocation.REMOTE)
        with client.add_publication(channel, 7) as publication:
            publication.wait_connected(10)

            def has_data(query: str) -> bool:
                publication.offer_batch([bytes(200)] * 10)
                assert exporter.returncode is None
                return bool(server.data(query))

            for query in queries():
                if not EMPTY_IN_HEALTH.search(query):
                    wait_until(lambda query=query: has_data(query), 30, f"data of {query}")  # type: ignore[misc]
                else:
                    server.data(query)
            # A rule's data: what is left of it without comparisons.
            for rule in rules():
                for name in NAME.findall(rule["expr"]):
                    # A scrape that a machine is too slow for leaves all without data until the next one.
                    wait_until(
                        lambda name=name: EMPTY_IN_HEALTH.search(name) or server.data(name),  # type: ignore[misc]
                        30,
                        f"data of {name} in {rule['alert']}",
                    )
            wait_until(lambda: all(one["health"] == "ok" for one in _evaluated(server)), 30, "all rules")
            firing = {one["name"] for one in _evaluated(server) if one["state"] == "firing"}
            assert firing <= OF_THE_MACHINE
            lost = "aeron_up == 0 or up == 0 or aeron_series_left_out > 0"
            wait_until(lambda: server.data(lost) == [], 30, "a whole scrape", state=lambda: server.data(lost))
            with Browser(tmp_path / "browser") as browser:
                drawn = draw(server, browser, tmp_path / "board.html", begun_s)
                browser.picture(ROOT / "build" / "pictures" / "board.png")
                assert browser.complaints() == []
                assert browser.overflow() == 0
                shown, sections = (
                    browser.value(f"document.querySelectorAll('{one}').length") for one in ("polyline", "section")
                )
            assert sections == len(json.loads(BOARD.read_text("utf-8"))["panels"])
            assert shown == sum(len(one.series) for one in drawn if one.kind == "timeseries")
            empty = {one.title for one in drawn if one.kind != "row" and not one.series}
            assert empty <= {"Disk is full in", "Alerts", "Lost, by image", "Rows", "Lag", "Last batch"}


def draw(server: Server, browser: Browser, file: Path, begin_s: float) -> list[board.Panel]:
    """Show the board from then to now, all of it in one window.

    Prometheus answers for whole steps after the start, so the start is set that the last one is now: what came in the last
    second belongs to the picture.
    """
    end_s = time.time()
    begin_s = end_s - math.ceil(end_s - begin_s)
    times = {"start": f"{begin_s:.3f}", "end": f"{end_s:.3f}", "step": "1"}
    drawn = board.panels(
        json.loads(BOARD.read_text("utf-8")),
        lambda query: server.ask("query_range", query=sent(query), **times)["result"],
    )
    file.write_text(board.page(drawn, begin_s, end_s), "utf-8")
    browser.open(file.as_uri(), board.WIDTH_PX)
    height = browser.value("document.documentElement.scrollHeight")
    size = {"width": board.WIDTH_PX, "height": height}
    browser.call("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1, mobile=False)
    return drawn


def write(path: Path, seconds: int) -> None:
    """The picture of the documentation: three streams, of which one has a slow reader, and a replay."""
    with tempfile.TemporaryDirectory() as home, ExitStack() as opened:
        servers = opened.enter_context(Servers())
        listen = f"127.0.0.1:{free_port()}"
        where = ("--dir", servers.aeron_dir, "--archive-dir", servers.archive_dir)
        opened.enter_context(
            Process("exporter", [sys.executable, "-m", "aeron_spark", "metrics", "--listen", listen, *where])
        )
        server = opened.enter_context(scraping(listen, free_port(), Path(home)))
        client = opened.enter_context(Client(servers.aeron_dir, name="prices"))
        streams = []
        for stream in (1001, 1002, 1003):
            channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}|term-length=1m"
            servers.archive.start_recording(channel, stream, source=SourceLocation.REMOTE)
            subscription = opened.enter_context(client.add_subscription(channel, stream))
            publication = opened.enter_context(client.add_publication(channel, stream))
            publication.wait_connected(10)
            streams.append((publication, subscription))
        begun = time.monotonic()
        replayed = False
        pace = threading.Event()
        while (now := time.monotonic() - begun) < seconds:
            for index, (publication, subscription) in enumerate(streams):
                count = round(15 * (index + 1) * (1.5 + math.sin(now / (4 + 3 * index))))
                publication.offer_batch([bytes(200)] * count, timeout=10)
                if index < 2 or round(20 * now) % 4 == 0:
                    while subscription.poll_batch().num_rows:
                        pass
            if now > seconds / 2 and not replayed:
                replayed = True
                channel = "aeron:ipc?alias=again"
                replay = opened.enter_context(client.add_subscription(channel, 2001))
                servers.archive.start_replay(0, channel, 2001, position=0)
            if replayed:
                replay.poll_batch()
            pace.wait(0.05)
        with Browser(Path(home) / "browser") as browser:
            draw(server, browser, Path(home) / "board.html", time.time() - seconds)
            browser.picture(path)


def _evaluated(server: Server) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.ask("rules")["groups"][0]["rules"]
    return found


if __name__ == "__main__":
    write(ROOT / "docs" / "pictures" / "board.png", 90)
