"""`aeron-spark metrics --otlp`: what a collector of OpenTelemetry gets, and what happens while it takes nothing.

Method: a small HTTP server that decodes each push by the protocol's own messages; what it got is compared with a scrape.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parsed_open_metrics

from aeron_spark import Client, MediaDriver
from aeron_spark.errors import UsageError
from aeron_spark.metrics.exposition import Exposition
from aeron_spark.metrics.push import Pusher, checked_url
from aeron_spark.metrics.samples import Samples
from aeron_spark.metrics.scrape import Scraper
from aeron_spark.metrics.table import TABLE
from tests.kit.ports import free_port
from tests.kit.processes import Process
from tests.kit.wait import wait_until

SHARED = {"aeron.threading.mode": "SHARED"}
#: How long the exporter tries a push again: longer than until its second try.
TRIES = ("OTEL_EXPORTER_OTLP_TIMEOUT", "2")
COMMAND = [sys.executable, "-m", "aeron_spark", "metrics"]

# Family, labels, value.
Series = set[tuple[str, frozenset[tuple[str, str]], float]]


class Collector(ThreadingHTTPServer):
    """Takes pushes, or answers with another status."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.status = 200
        self.pushes: list[ExportMetricsServiceRequest] = []
        self.paths: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def metrics(self) -> list[Metric]:
        """Of the last push."""
        (of_resource,) = self.pushes[-1].resource_metrics
        (of_scope,) = of_resource.scope_metrics
        return list(of_scope.metrics)


class _Handler(BaseHTTPRequestHandler):
    server: Collector
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.headers["Content-Type"] == "application/x-protobuf"
        self.server.paths.add(self.path)
        if self.server.status == 200:
            self.server.pushes.append(ExportMetricsServiceRequest.FromString(body))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@contextmanager
def collecting(port: int = 0) -> Iterator[Collector]:
    with Collector(port) as collector:
        thread = threading.Thread(target=collector.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield collector
        finally:
            collector.shutdown()
            thread.join()


def pushed(metrics: list[Metric]) -> Series:
    found: Series = set()
    for metric in metrics:
        data = metric.sum if metric.HasField("sum") else metric.gauge
        for point in data.data_points:
            labels = frozenset((one.key, one.value.string_value) for one in point.attributes)
            value = point.as_int if point.HasField("as_int") else point.as_double
            found.add((metric.name, labels, float(value)))
    return found


def scraped(samples: Samples) -> Series:
    """By Prometheus' parser."""
    text, _ = Exposition().text(samples)
    return {
        (family.name, frozenset(one.labels.items()), float(one.value))
        for family in parsed_open_metrics(text.decode())
        for one in family.samples
    }


def test_a_push_is_a_scrape(aeron_dir: Path) -> None:
    channel = "aeron:ipc?term-length=64k"
    with (
        MediaDriver(aeron_dir, settings=SHARED),
        Client(aeron_dir) as client,
        client.add_publication(channel, 1001),
        client.add_subscription(channel, 1001) as subscription,
        subscription.wait_image(10),
        collecting() as collector,
    ):
        samples = Scraper([aeron_dir]).scrape()
        # A difference of forged positions: more than the 64 bits of the protocol's whole numbers.
        samples.add("aeron_sender_behind_bytes", (str(aeron_dir), "1", "2", "aeron:ipc", "3"), 1 << 63)
        with closing(Pusher(collector.url, lambda: samples, 1, pytest.fail)) as pusher:
            assert pusher.push()
            assert pusher.push()
        assert collector.paths == {"/v1/metrics"}
        metrics = collector.metrics()
        assert pushed(metrics) == scraped(samples)
        assert len(pushed(metrics)) == samples.count
        assert {"aeron_up", "aeron_driver_sent_bytes", "aeron_publisher_limit_bytes"} <= {one.name for one in metrics}
        for metric in metrics:
            assert metric.description == TABLE[metric.name].help
            assert metric.HasField("sum") == (TABLE[metric.name].kind == "counter"), metric.name
            if metric.HasField("sum"):
                assert metric.sum.is_monotonic
                assert metric.sum.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
        first, second = (one.resource_metrics[0].scope_metrics[0].metrics[0] for one in collector.pushes)
        assert first.gauge.data_points[0].time_unix_nano < second.gauge.data_points[0].time_unix_nano
        of = {one.key: one.value.string_value for one in collector.pushes[0].resource_metrics[0].resource.attributes}
        assert of["service.name"] == "aeron-spark"


def test_a_collector_that_takes_nothing_costs_a_line_a_minute(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(*TRIES)
    told: list[str] = []
    now_s = 100.0
    with (
        collecting() as collector,
        closing(Pusher(f"{collector.url}/x?key=secret", Samples, 0.1, told.append, lambda: now_s)) as pusher,
    ):
        collector.status = 400
        for _ in range(5):
            assert not pusher.push()
        assert len(told) == 1
        assert told[0].startswith(f"{collector.url}/x did not take metrics: ")
        assert "400" in told[0]
        assert told[0].endswith("the next push is due 0.1 s after this one")
        now_s += 61
        collector.status = 503  # one that may be tried again
        assert not pusher.push()
        assert len(told) == 2
        assert "Service Unavailable" in told[1]
        assert "(pushes lost: 6)" in told[1]
        collector.status = 200
        assert pusher.push()
        assert told[2:] == [f"{collector.url}/x takes metrics again, after 6 pushes that it did not take"]
        assert pusher.push()
        assert len(told) == 3
    assert capfd.readouterr() == ("", ""), "the exporter's own lines"


def test_the_command_goes_on_without_its_collector(aeron_dir: Path, archive_dir: Path) -> None:
    port = free_port()
    with MediaDriver(aeron_dir, settings=SHARED):
        arguments = ["--dir", aeron_dir, "--archive-dir", archive_dir, "--otlp", f"http://127.0.0.1:{port}"]
        arguments += ["--interval", "1", "--listen", "127.0.0.1:0"]
        with Process("metrics", [*COMMAND, *arguments], env=dict([TRIES])) as process:
            wait_until(lambda: "did not take" in process.stderr(), 30, "a failed push", state=process.report)
            (line,) = process.stderr().splitlines()
            assert line.startswith(
                f"aeron-spark metrics: http://127.0.0.1:{port}/v1/metrics did not take metrics: Connection refused ("
            )
            with collecting(port) as collector:
                wait_until(lambda: len(collector.pushes) >= 2, 30, "two pushes", state=process.report)
                up = {(labels, value) for name, labels, value in pushed(collector.metrics()) if name == "aeron_up"}
            assert {(dict(labels)["kind"], value) for labels, value in up} == {("driver", 1), ("archive", 0)}
            first, second = process.stdout().splitlines()
            shown = f"{aeron_dir}, {archive_dir}"
            assert first == (f"aeron-spark metrics: pushes {shown} to http://127.0.0.1:{port}/v1/metrics every 1 s")
            assert second.startswith(f"aeron-spark metrics: serves {shown} at http://127.0.0.1:")
            assert process.stop() == 0


def run(*arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_one_push(aeron_dir: Path) -> None:
    with collecting() as collector:
        done = run("--once", "--otlp", collector.url, "--dir", aeron_dir)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert len(collector.pushes) == 1
        collector.status = 404
        assert run("--once", "--otlp", collector.url, "--dir", aeron_dir).returncode == 1
    for text in ("collector:4318", "ftp://collector", "http://", "http://host:x"):
        done = run("--otlp", text)
        assert done.returncode == 2
        assert f"{text!r} is no URL of a collector, for example http://127.0.0.1:4318" in done.stderr


def test_the_missing_extra_is_named(tmp_path: Path) -> None:
    package = tmp_path / "opentelemetry"
    package.mkdir()
    (package / "__init__.py").write_text("raise ModuleNotFoundError('no', name='opentelemetry')\n")
    done = run("--otlp", "http://127.0.0.1:4318", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == (
        "aeron-spark metrics: this needs opentelemetry, which is not installed here: pip install 'aeron-spark[otlp]'\n"
    )


def test_where_to_push() -> None:
    assert checked_url("https://collector") == "https://collector/v1/metrics"
    assert checked_url("http://[::1]:4318/") == "http://[::1]:4318/v1/metrics"
    assert checked_url("http://collector/otlp/v1/metrics?x=1#y") == "http://collector/otlp/v1/metrics?x=1"
    with pytest.raises(UsageError, match="OTEL_EXPORTER_OTLP_HEADERS"):
        checked_url("http://user:secret@collector")
