"""`aeron-spark metrics`: what drivers and archives count, for Prometheus, whatever bytes their directories hold.

Method: real servers with traffic, compared with what their own readers say; counters forged into shared memory. The text is
judged by prometheus_client's parsers. CPU time is the thread's own, not the clock's.
"""

from __future__ import annotations

import http.client
import math
import os
import random
import re
import shlex
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parsed_open_metrics
from prometheus_client.parser import text_string_to_metric_families as parsed_plain

from aeron_spark import Archive, Client, Counters, MediaDriver
from aeron_spark.cli.__main__ import parser
from aeron_spark.errors import StorageError, UsageError
from aeron_spark.listening import parse_address
from aeron_spark.live.compare import facts
from aeron_spark.live.reader import Reader
from aeron_spark.metrics.archive import ArchiveMetrics, Forecast
from aeron_spark.metrics.driver import error_code
from aeron_spark.metrics.exposition import Exposition
from aeron_spark.metrics.samples import LABEL_MAX_CHARACTERS, Samples
from aeron_spark.metrics.scrape import Scraper
from aeron_spark.metrics.server import MetricsServer
from aeron_spark.metrics.table import TABLE, Kind, markdown
from aeron_spark.ui.watch import Watch
from tests.kit import dirs, native
from tests.kit.forged_counters import Forged, forged, set_heartbeat_back, stream_key
from tests.kit.processes import Process
from tests.kit.wait import wait_until

SHARED = {"aeron.threading.mode": "SHARED"}
CHANNEL = "aeron:ipc?term-length=64k"
ROOT = Path(__file__).parents[2]


def families(samples: Samples) -> dict[str, Metric]:
    """What Prometheus would read."""
    text, kind = Exposition().text(samples)
    assert kind.startswith("application/openmetrics-text; version=1.0.0")
    return {one.name: one for one in parsed_open_metrics(text.decode())}


def value(found: dict[str, Metric], name: str, **labels: str) -> float:
    """The one sample with these labels; not a number if the metric is not there."""
    if name not in found:
        return math.nan
    (sample,) = [one for one in found[name].samples if labels.items() <= one.labels.items()]
    return float(sample.value)


def test_a_driver_and_an_archive_with_traffic(aeron_dir: Path, archive_dir: Path) -> None:
    with native.driver(aeron_dir), native.archive(aeron_dir, archive_dir), Client(aeron_dir) as client:
        scraper = Scraper([aeron_dir], [archive_dir])
        with Archive(aeron_dir=aeron_dir) as archive, client.add_publication(CHANNEL, 1001) as publication:
            archive.start_recording(CHANNEL, 1001)
            publication.wait_connected(10)
            with client.add_subscription(CHANNEL, 1001) as subscription, subscription.wait_image(10):
                publication.offer_batch([bytes(100)] * 10)
                wait_until(
                    lambda: value(families(scraper.scrape()), "aeron_recording_position_bytes") == publication.position,
                    10,
                    "the recording",
                )
                found = families(scraper.scrape())
                stream = {"dir": str(aeron_dir), "stream_id": "1001", "session_id": str(publication.session_id)}
                assert value(found, "aeron_up", dir=str(aeron_dir), kind="driver") == 1
                assert value(found, "aeron_up", dir=str(archive_dir), kind="archive") == 1
                wait_until(
                    lambda: (
                        value(families(scraper.scrape()), "aeron_publisher_position_bytes", **stream)
                        == publication.position
                    ),
                    10,
                    "the publisher's position",
                )
                wait_until(
                    lambda: value(families(scraper.scrape()), "aeron_archive_written_bytes") == publication.position,
                    10,
                    "the bytes to be counted",
                )
                found = families(scraper.scrape())
                behind = [
                    one.value
                    for one in found["aeron_subscriber_behind_bytes"].samples
                    if stream.items() <= one.labels.items()
                ]
                assert sorted(behind) == [0, publication.position], (
                    "the recorder has read all, the subscription nothing"
                )
                assert value(found, "aeron_recording_behind_bytes", **stream) == 0
                assert value(found, "aeron_publisher_window_bytes", **stream) > 0
                assert value(found, "aeron_archive_recording_sessions") == 1
                assert value(found, "aeron_archive_control_sessions") == 1
                assert value(found, "aeron_archive_written_bytes") == publication.position
                assert value(found, "aeron_driver_version_info", version="1.52.0") == 1

                def names() -> set[str]:
                    found = families(scraper.scrape())
                    return {one.labels["name"] for one in found["aeron_client_heartbeat_age_seconds"].samples}

                # A client completes the label of its heartbeat some time after the driver has made it.
                wait_until(lambda: "archive" in names(), 10, "the archive's name", state=names)
                assert all(0 <= one.value < 60 for one in found["aeron_client_heartbeat_age_seconds"].samples)

        def recordings() -> dict[str, float]:
            # Catalog and files are looked at again by a new scraper at once.
            found = families(Scraper([], [archive_dir]).scrape())
            return {one.labels["state"]: one.value for one in found["aeron_archive_recordings"].samples}

        stopped = {"active": 0, "unfinished": 0, "stopped": 1, "invalid": 0}
        wait_until(lambda: recordings() == stopped, 10, "the recording's end")
        found = families(Scraper([], [archive_dir]).scrape())
        assert value(found, "aeron_archive_segment_files") == 1
        assert value(found, "aeron_archive_disk_bytes") > 0
        assert value(found, "aeron_archive_free_bytes") <= value(found, "aeron_archive_file_system_bytes")
        assert value(found, "aeron_archive_heartbeat_age_seconds") < 60


def test_every_counter_of_a_driver_is_exported_or_known(aeron_dir: Path) -> None:
    """Of the system counters; those of streams are in the test above."""
    with MediaDriver(aeron_dir, settings=SHARED), Counters(aeron_dir) as counters:
        found = families(Scraper([aeron_dir]).scrape())
        exported = sum(len(one.samples) for name, one in found.items() if name.startswith("aeron_driver_"))
        of_system = [row for row in counters.rows() if row.type_id == 0]
        not_counters = {
            "start_time_seconds",
            "heartbeat_age_seconds",
            "free_shared_memory_bytes",
            "shared_memory_bytes",
        }
        assert exported - len(not_counters) == len(of_system) - 2, "but idle strategy and protocol version"
        assert value(found, "aeron_driver_mapped_bytes") > 0
        assert {one.labels["agent"] for one in found["aeron_driver_max_cycle_seconds"].samples} == {
            "conductor",
            "sender",
            "receiver",
        }


def test_errors_are_counted_by_code(aeron_dir: Path) -> None:
    with MediaDriver(aeron_dir, settings=SHARED), Client(aeron_dir) as client:
        for _ in range(3):
            with pytest.raises(Exception, match="invalid"):
                client.add_publication("aeron:udp?endpoint=nowhere.invalid:40123", 7)
        found = families(Scraper([aeron_dir]).scrape())
        assert sum(one.value for one in found["aeron_driver_logged_errors"].samples) == 3
        assert all(one.labels["code"].lstrip("-").isdecimal() for one in found["aeron_driver_logged_errors"].samples)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("(-9) unknown host\nmore (22) ", "-9"),
        ("(22) Invalid argument\nbad channel", "22"),
        ("io.aeron.archive.client.ArchiveException: ERROR - no such recording, errorCode=5", "5"),
        ("java.lang.IllegalStateException: closed\n\tat x.Y", "IllegalStateException"),
        ("ERROR - max control sessions reached 1", "error"),
        ("WARN - slow", "warn"),
        ("", "other"),
        ("(12345678901234567890) x", "other"),
        ("x" * 10_000, "other"),
    ],
)
def test_the_code_of_an_error(text: str, code: str) -> None:
    assert error_code(text) == code


def test_hostile_counters_neither_break_nor_flood_a_scrape(aeron_dir: Path, rng: random.Random) -> None:
    evil = b'x"} 1\n# EOF\naeron_up{dir="\\\x00\xff\x1b[2J' + b"y" * 300
    hostile = [
        Forged(type_id=12, key=stream_key(1, 2, 3, evil[:80]), label=b"pub-pos: 1 2 3 " + evil),
        Forged(type_id=12, key=struct.pack("<qiii", 1, 2, 3, -5), label=evil, label_length=2**31 - 1),
        Forged(
            type_id=100, key=struct.pack("<qii", 1, 2, 2**31 - 1), label=b"rec-pos: 1 2 99999999999999999999 " + evil
        ),
        Forged(type_id=100, key=struct.pack("<qii", 1, 2, -(2**31)), label=b"rec-pos: "),
        Forged(type_id=6, key=struct.pack("<i", 2**31 - 1) + evil[:100]),
        Forged(type_id=11, label=evil, value=-(2**63)),
        Forged(type_id=0, key=struct.pack("<i", 34), value=-1),
        Forged(type_id=0, key=struct.pack("<i", 0), value=-1),
        Forged(type_id=101, label=evil, label_length=-1),
        Forged(type_id=4242, label=evil),
        *(
            Forged(
                type_id=rng.choice([*range(25), *range(99, 118), rng.randrange(-(2**31), 2**31)]),
                key=rng.randbytes(112),
                label=rng.randbytes(380),
                value=rng.randrange(-(2**63), 2**63),
                registration_id=rng.randrange(-(2**63), 2**63),
                reference_id=rng.choice([0, 1]),
                label_length=rng.choice([380, rng.randrange(-(2**31), 2**31)]),
            )
            for _ in range(2000)
        ),
    ]
    with MediaDriver(aeron_dir, settings=SHARED), forged(aeron_dir, hostile):
        scraper = Scraper([aeron_dir])
        for _ in range(2):
            found = families(scraper.scrape())
            assert value(found, "aeron_up") == 1
            assert value(found, "aeron_series_left_out") >= 1, "the second counter 0"
            samples = [sample for one in found.values() for sample in one.samples]
            assert all(len(text) <= LABEL_MAX_CHARACTERS for one in samples for text in one.labels.values())
            assert all(text.isprintable() for one in samples for text in one.labels.values())
            assert {one.name for one in found.values()} <= set(TABLE)
        text, _ = Exposition().text(scraper.scrape(), "text/plain")
        assert len(list(parsed_plain(text.decode()))) >= len(found) - 1
        few = families(Scraper([aeron_dir], max_series=10).scrape())
        assert sum(len(one.samples) for one in few.values()) == 10 + 2
        assert value(few, "aeron_series_left_out") > 0


def test_series_beyond_the_limit_are_counted_and_those_of_servers_kept(aeron_dir: Path) -> None:
    """Counters that are exported as nothing of their own take no place."""
    with MediaDriver(aeron_dir, settings=SHARED):
        own = sum(len(one.samples) for one in families(Scraper([aeron_dir]).scrape()).values()) - 2
        quiet = [Forged(type_id=10, label=b"rcv-local-sockaddr: x") for _ in range(20)]
        applications = [Forged(type_id=2000, label=b"app", registration_id=number) for number in range(500)]
        key = stream_key(9, 1, 7, b"aeron:ipc")
        ends = [Forged(type_id=kind, key=key, registration_id=9, value=at) for kind, at in ((1, 200), (12, 80))]
        with forged(aeron_dir, [*quiet, *applications, *ends]):
            found = families(Scraper([aeron_dir], max_series=own + 10).scrape())
    assert value(found, "aeron_publisher_window_bytes") == 120
    assert len(found["aeron_counter_value"].samples) == 10 - 3
    assert value(found, "aeron_series_left_out") == 500 - (10 - 3)


def test_long_names_of_directories_are_whole(tmp_path: Path) -> None:
    """Two that begin alike were one."""
    deep = tmp_path / ("d" * 150) / ("e" * 150)
    folders = [deep / "one", deep / "two"]
    found = families(Scraper(folders, folders).scrape())
    assert {one.labels["dir"] for one in found["aeron_up"].samples} == {str(one) for one in folders}
    assert len(found["aeron_up"].samples) == 4
    shown = facts(Reader(folders, folders).snapshot())
    assert len({(one.kind, one.path) for one in shown.servers}) == 4
    assert Watch([], [str(one) for one in folders]).archives == [str(one) for one in folders]


def test_a_slash_at_the_end_names_no_other_directory(aeron_dir: Path, archive_dir: Path) -> None:
    """A shell adds it where it completes a name. Rules compare figures by their directory."""
    with MediaDriver(aeron_dir, settings=SHARED), native.archive(aeron_dir, archive_dir):
        twice, folders = [f"{aeron_dir}/", str(aeron_dir)], [f"{archive_dir}/", str(archive_dir)]
        found = families(Scraper(twice, folders).scrape())
        assert {sample.labels["dir"] for one in found.values() for sample in one.samples} == {twice[1], folders[1]}
        shown = facts(Reader(twice, folders).snapshot())
        assert [(one.kind, one.path) for one in shown.servers] == [("driver", twice[1]), ("archive", folders[1])]
        page = Watch(twice, folders)
        assert (page.dirs, page.archives) == ([twice[1]], [folders[1]])
        assert page.folder(0) == folders[1]


def test_directories_come_and_go(aeron_dir: Path, tmp_path: Path, rng: random.Random) -> None:
    garbage, pipe, gone = tmp_path / "garbage", tmp_path / "pipe", tmp_path / "gone"
    for one in (garbage, pipe):
        one.mkdir()
    (garbage / "cnc.dat").write_bytes(rng.randbytes(65536))
    (garbage / "archive.catalog").write_bytes(rng.randbytes(65536))
    os.mkfifo(pipe / "cnc.dat")
    os.mkfifo(pipe / "archive.catalog")
    bad = [garbage, pipe, gone]
    scraper = Scraper([aeron_dir, *bad], bad)

    def up() -> list[float]:
        found = families(scraper.scrape())
        down = [one.value for one in found["aeron_up"].samples if one.labels["dir"] != str(aeron_dir)]
        assert down == [0] * 6
        return [one.value for one in found["aeron_up"].samples if one.labels["dir"] == str(aeron_dir)]

    assert up() == [0]
    for _ in range(2):
        with native.driver(aeron_dir) as driver:
            assert up() == [1]
            driver.kill()
        set_heartbeat_back(aeron_dir, 20)
        assert up() == [0]
        left = families(scraper.scrape())
        assert "aeron_driver_sent_bytes" not in left, "the last figures of a dead driver"
        assert value(left, "aeron_driver_heartbeat_age_seconds", dir=str(aeron_dir)) >= 20
    dirs.remove(aeron_dir)
    assert up() == [0]


def streams(count: int) -> Iterator[Forged]:
    """Counters of network publications, six each, as a driver has them."""
    kinds = {
        1: b"pub-lmt",
        2: b"snd-pos",
        9: b"snd-lmt",
        12: b"pub-pos (concurrent)",
        13: b"snd-bpe",
        19: b"snd-naks-received",
    }
    channel = b"aeron:udp?endpoint=127.0.0.1:40123|term-length=64k"
    for index in range(count):
        party = 1000 + index // len(kinds)
        type_id = list(kinds)[index % len(kinds)]
        yield Forged(
            type_id=type_id,
            key=stream_key(party, party * 7919, party, channel),
            label=b"%s: %d %d %d %s" % (kinds[type_id], party, party * 7919, party, channel),
            value=index,
            registration_id=party,
        )


def test_a_scrape_costs_in_proportion_to_the_counters(aeron_dir: Path, record_property: pytest.RecordProperty) -> None:
    """The target is 100 ms of CPU for 10,000. A bound in seconds would judge the machine, and what measures the coverage."""

    def cpu_of_a_scrape(count: int) -> float:
        with forged(aeron_dir, streams(count)):
            scraper, exposition, took = Scraper([aeron_dir]), Exposition(), []
            for _ in range(5):
                begin = time.thread_time()
                text, _ = exposition.text(scraper.scrape())
                took.append(time.thread_time() - begin)
            assert text.count(b"\naeron_sender_behind_bytes{") == -(-count // 6)
            record_property(f"cpu_ms_{count}", [round(one * 1e3) for one in took])
            return min(took)

    with MediaDriver(aeron_dir, settings={**SHARED, "aeron.shared.idle.strategy": "sleep-ns"}):
        few, many = cpu_of_a_scrape(1_000), cpu_of_a_scrape(10_000)
    assert many < 20 * few


@contextmanager
def served(aeron_dir: Path, listen: str = "127.0.0.1:0") -> Iterator[MetricsServer]:
    server = MetricsServer(listen, Scraper([aeron_dir]).scrape)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def asked(server: MetricsServer, path: str, method: str = "GET", **headers: str) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=30)  # type: ignore[arg-type]
    connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, answer.headers["Content-Type"], body


def test_it_serves_metrics_and_nothing_else(aeron_dir: Path) -> None:
    with served(aeron_dir) as server:
        assert server.url == f"http://127.0.0.1:{server.server_port}/metrics"
        status, kind, body = asked(server, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
        assert (status, kind.partition(";")[0]) == (200, "application/openmetrics-text")
        assert next(iter(parsed_open_metrics(body))).name == "aeron_up"
        status, kind, body = asked(server, "/metrics?x=1")
        assert (status, kind.partition(";")[0]) == (200, "text/plain")
        assert next(iter(parsed_plain(body))).name == "aeron_up"
        assert asked(server, "/")[0] == 200
        assert asked(server, "/metrics", "HEAD")[2] == ""
        for path in ("/metrics/", "/../etc/passwd", "/index.html"):
            assert asked(server, path)[0] == 404, path
        assert asked(server, "/metrics", "POST")[0] == 501
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", ""):
            assert asked(server, "/metrics", Host=host)[0] == 403, host
        for host in ("localhost", "localhost:9464", "127.0.0.1:1", "[::1]:9464"):
            assert asked(server, "/metrics", Host=host)[0] == 200, host
        # Clients that say nothing take no thread from others for ever, and are few.
        idle = [socket.create_connection(server.server_address[:2]) for _ in range(40)]  # type: ignore[arg-type]
        for one in idle:
            one.close()
        wait_until(lambda: _answers(server), 20, "an answer after idle clients")


def test_a_connection_that_stays_is_answered_at_once(aeron_dir: Path) -> None:
    """As Prometheus asks; an answer whose body waits for an acknowledgement takes 40 ms, each one."""
    with served(aeron_dir) as server:
        connection = http.client.HTTPConnection(*server.server_address[:2], timeout=30)  # type: ignore[arg-type]
        seconds = []
        for _ in range(20):
            begun = time.monotonic()
            connection.request("GET", "/")
            assert connection.getresponse().read()
            seconds.append(time.monotonic() - begun)
        connection.close()
    assert min(seconds[-10:]) < 0.03


def test_who_holds_all_connections_shuts_nobody_out(aeron_dir: Path) -> None:
    """Unfinished requests, finished ones on connections that stay, and nothing at all; unread answers, too."""
    with served(aeron_dir) as server:
        for begun in (b"GET /metrics HTTP/1.1\r\nX: ", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", b""):
            held = [socket.create_connection(server.server_address[:2]) for _ in range(16)]  # type: ignore[arg-type]
            for one in held:
                one.sendall(begun)
            for _ in range(20):
                assert asked(server, "/metrics")[0] == 200
            for one in held:
                one.close()


def test_a_scrape_loses_its_place_to_nobody() -> None:
    """The oldest of all connections is being answered while others come and go."""
    begun, others_came = threading.Event(), threading.Event()

    def scrape() -> Samples:
        begun.set()
        assert others_came.wait(30)
        return Samples()

    server = MetricsServer("127.0.0.1:0", scrape)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(asked, server, "/metrics")
            assert begun.wait(30)
            for _ in range(40):
                assert asked(server, "/")[0] == 200
            held = [socket.create_connection(server.server_address[:2]) for _ in range(40)]  # type: ignore[arg-type]
            assert asked(server, "/")[0] == 200
            others_came.set()
            assert first.result(30)[0] == 200
            for one in held:
                one.close()
    finally:
        others_came.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _answers(server: MetricsServer) -> bool:
    try:
        return asked(server, "/metrics")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def test_an_address_for_all_answers_to_any_name(aeron_dir: Path) -> None:
    with served(aeron_dir, "0.0.0.0:0") as server:
        assert asked(server, "/metrics", Host="metrics.example")[0] == 200


@pytest.mark.parametrize("text", ["", "9464", ":9464", "host", "host:", "host:x", "host:65536", "host:-1"])
def test_an_address_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no HOST:PORT to listen on, for example 127\.0\.0\.1:9464"):
        parse_address(text, "127.0.0.1:9464")


def test_an_address_in_use_is_told(aeron_dir: Path) -> None:
    with (
        served(aeron_dir) as server,
        pytest.raises(StorageError, match=r"cannot listen on 127\.0\.0\.1:\d+: Address already"),
    ):
        MetricsServer(f"127.0.0.1:{server.server_port}", Samples)


def command(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "aeron_spark", "metrics", *arguments],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_command(aeron_dir: Path, archive_dir: Path, tmp_path: Path) -> None:
    with MediaDriver(aeron_dir, settings=SHARED):
        once = command("--once", AERON_DIR=str(aeron_dir))
        assert once.returncode == 0
        assert value({one.name: one for one in parsed_open_metrics(once.stdout)}, "aeron_up", dir=str(aeron_dir)) == 1
        process = Process(
            "metrics",
            [sys.executable, "-m", "aeron_spark", "metrics", "--listen", "127.0.0.1:0", "--dir", aeron_dir, "--archive-dir",
             archive_dir],
        )  # fmt: skip
        wait_until(lambda: "/metrics" in process.stdout(), 20, "its address", state=process.report)
        line = process.stdout().strip()
        assert line.startswith(f"aeron-spark metrics: serves {aeron_dir}, {archive_dir} at http://127.0.0.1:")
        assert process.stop() == 0
        assert (process.stdout().strip(), process.stderr()) == (line, "")
    # Without the library: what to type.
    (tmp_path / "prometheus_client.py").write_text("raise ModuleNotFoundError('no', name='prometheus_client')\n")
    without = command("--once", PYTHONPATH=str(tmp_path))
    assert without.returncode == 1
    assert without.stderr == (
        "aeron-spark metrics: this needs prometheus_client, which is not installed here: pip install 'aeron-spark[metrics]'\n"
    )


def test_the_page_has_the_table_of_the_code() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text("utf-8")
    assert markdown() in page, "put what `aeron-spark metrics --table` prints into docs/metrics.md"
    assert command("--table").stdout == markdown()


def test_the_commands_of_the_page_exist() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text("utf-8")
    commands = re.findall(r"^(?:.*`)?aeron-spark (metrics [^`\n]+)", text, re.MULTILINE)
    assert len(commands) >= 2
    for one in commands:
        parser().parse_args(shlex.split(one))


def test_names_are_as_prometheus_wants_them() -> None:
    assert not [one.name for one in TABLE.values() if one.name.endswith("_total")]
    assert all(one.labels[0] in {"dir", "query"} for one in TABLE.values())
    assert all(one.sample.endswith("_total") == (one.kind == Kind.COUNTER) for one in TABLE.values())


def test_the_forecast_of_a_full_disk() -> None:
    forecast = Forecast()
    assert forecast.seconds(0, 1000) is None
    assert forecast.seconds(10, 900) is None, "too early to tell"
    assert forecast.seconds(100, 900) == 900
    assert forecast.seconds(150, 1000) is None, "nothing is used"
    assert forecast.seconds(750, 400) == pytest.approx(400 * 600 / 600), "since 150 s, when 1000 were free"


def test_the_catalog_is_not_read_at_each_scrape(aeron_dir: Path, archive_dir: Path) -> None:
    now = 0.0
    with native.driver(aeron_dir), native.archive(aeron_dir, archive_dir):
        metrics = ArchiveMetrics(archive_dir, monotonic_s=lambda: now)

        def files() -> float:
            samples = Samples()
            metrics.collect(samples)
            return samples.by_family["aeron_archive_segment_files"][str(archive_dir),]

        assert files() == 0
        (archive_dir / "7-0.rec").write_bytes(b"x")
        assert files() == 0
        now = 11
        assert files() == 1
