"""Pushes metrics to a collector of OpenTelemetry, by OTLP over HTTP: the families and labels of a scrape, in another form.

A push that is not taken is given up, as the next one has newer figures: nothing is kept, so a collector that is down costs
neither memory nor more than a line a minute.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import NoReturn
from urllib.parse import urlsplit

import aeron_spark
from aeron_spark.errors import UsageError
from aeron_spark.extras import missing
from aeron_spark.metrics.samples import Labels, Samples, cut
from aeron_spark.metrics.table import TABLE, Family, Kind

try:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics.export import (
        AggregationTemporality,
        Gauge,
        Metric,
        MetricExportResult,
        MetricsData,
        NumberDataPoint,
        ResourceMetrics,
        ScopeMetrics,
        Sum,
    )
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
except ModuleNotFoundError as error:
    raise missing(error, "otlp") from None

_PATH = "/v1/metrics"
_EXAMPLE = "http://127.0.0.1:4318"
_TELL_S = 60.0
_I64_END = 1 << 63


def checked_url(text: str) -> str:
    """Where to push: the path of the protocol where `text` has none. UsageError: it is no such URL, or has a login in it."""
    try:
        parts = urlsplit(text)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        has_host = False
    if not has_host or parts.scheme not in {"http", "https"}:
        raise UsageError(f"{text!r} is no URL of a collector, for example {_EXAMPLE}")
    if "@" in parts.netloc:
        raise UsageError("a URL in a command line is no place for a login: put it into OTEL_EXPORTER_OTLP_HEADERS")
    return parts._replace(path=_PATH if parts.path in {"", "/"} else parts.path, fragment="").geturl()


def metrics_data(samples: Samples, resource: Resource, time_ns: int) -> MetricsData:
    """All samples as one push. Since when a counter counts is its server's matter, so the start is unknown: 0."""
    found = [_metric(TABLE[name], values, time_ns) for name, values in samples.by_family.items() if values]
    scope = InstrumentationScope("aeron_spark", aeron_spark.__version__)
    of_scope = ScopeMetrics(scope=scope, metrics=found, schema_url="")
    return MetricsData([ResourceMetrics(resource=resource, scope_metrics=[of_scope], schema_url="")])


def _metric(family: Family, values: dict[Labels, float], time_ns: int) -> Metric:
    points = [
        NumberDataPoint(
            attributes=dict(zip(family.labels, labels, strict=True)),
            start_time_unix_nano=0,
            time_unix_nano=time_ns,
            # A difference of two positions that are not true may have more bits than the protocol's whole numbers.
            value=value if -_I64_END <= value < _I64_END else float(value),
        )
        for labels, value in values.items()
    ]
    data = (
        Sum(data_points=points, aggregation_temporality=AggregationTemporality.CUMULATIVE, is_monotonic=True)
        if family.kind == Kind.COUNTER
        else Gauge(data_points=points)
    )
    # The name has the unit.
    return Metric(name=family.name, description=family.help, unit="", data=data)


def _resource() -> Resource:
    """What sends: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say it better."""
    own = Resource({"service.name": "aeron-spark", "service.version": aeron_spark.__version__})
    return own.merge(OTELResourceDetector().detect())


class _Why(logging.Handler):
    """Keeps what the exporter logged first of a push, instead of a line for each of its tries."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        causes = [one for one in record.args or () if isinstance(one, Exception)]
        self.text = self.text or (_root(causes[0]) if causes else record.getMessage())


def _root(error: BaseException) -> str:
    """What the system said, below what libraries have made of it."""
    while (deeper := error.__cause__ or error.__context__) is not None:
        error = deeper
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


class Pusher:
    """Pushes what `scrape` returns; `tell` gets a line where pushes fail, and where they go on. One thread."""

    def __init__(
        self,
        url: str,
        scrape: Callable[[], Samples],
        interval_s: float,
        tell: Callable[[str], object],
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = checked_url(url)
        """Where it pushes."""
        self._scrape, self._interval_s, self._tell, self._monotonic_s = scrape, interval_s, tell, monotonic_s
        self._exporter = OTLPMetricExporter(endpoint=self.url)
        self._resource = _resource()
        self._lost = 0
        self._is_told = False
        self._tell_at_s = 0.0
        self._why = _Why()
        logger = logging.getLogger(OTLPMetricExporter.__module__)
        logger.addHandler(self._why)
        logger.propagate = False

    def run(self) -> NoReturn:
        """Push every interval; one that took longer is followed at once."""
        due_s = self._monotonic_s()
        while True:
            self.push()
            now_s = self._monotonic_s()
            due_s = max(due_s + self._interval_s, now_s)
            time.sleep(due_s - now_s)

    def push(self) -> bool:
        """Push what there is now; whether it was taken. The exporter tries for OTEL_EXPORTER_OTLP_TIMEOUT seconds (10)."""
        data = metrics_data(self._scrape(), self._resource, time.time_ns())
        self._why.text = ""
        try:
            is_taken = self._exporter.export(data) == MetricExportResult.SUCCESS
        except OSError as error:  # those of the exporter's HTTP library are such
            is_taken, self._why.text = False, _root(error)
        if is_taken:
            self._taken()
        else:
            self._failed()
        return is_taken

    def close(self) -> None:
        """Give the connection back."""
        self._exporter.shutdown()
        logging.getLogger(OTLPMetricExporter.__module__).removeHandler(self._why)

    def _taken(self) -> None:
        if self._is_told:
            self._tell(f"{self._shown} takes metrics again, after {self._lost} pushes that it did not take")
        self._lost, self._is_told = 0, False

    def _failed(self) -> None:
        self._lost += 1
        now_s = self._monotonic_s()
        if now_s >= self._tell_at_s:
            self._tell(
                f"{self._shown} did not take metrics: {cut(self._why.text)} (pushes lost: {self._lost}); check that a "
                f"collector receives OTLP over HTTP there; the next push is due {self._interval_s:g} s after this one"
            )
            self._tell_at_s, self._is_told = now_s + _TELL_S, True

    @property
    def _shown(self) -> str:
        return self.url.partition("?")[0]
