"""Metrics of streaming queries for Prometheus, out of their progress, served as `aeron-spark metrics` serves the servers'.

listener = MetricsListener("recordings", listen="127.0.0.1:9465")
spark.streams.addListener(listener)
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from aeron_spark.archive.segments import Folder
from aeron_spark.closing import Closing
from aeron_spark.errors import AeronError
from aeron_spark.extras import missing
from aeron_spark.metrics.samples import Samples, cut
from aeron_spark.spark.ledger import read_entries
from aeron_spark.spark.listener import Lag, lag, total
from aeron_spark.spark.log import LOG, facts
from aeron_spark.spark.planning.options import local_folder

try:
    from pyspark.sql.streaming.listener import StreamingQueryListener
except ModuleNotFoundError as error:
    raise missing(error, "spark") from None

__all__ = ["MetricsListener"]

_MAX_QUERIES = 100


@dataclass(slots=True, kw_only=True)
class _Query:
    """What is known of a query since the listener was added."""

    name: str
    is_active: bool = True
    batches: int = 0
    rows: int = 0
    batch_seconds: float = 0.0
    last_batch_seconds: float = 0.0
    last_batch_time: float = 0.0
    lags: dict[int, Lag] = field(default_factory=dict)


class MetricsListener(StreamingQueryListener, Closing):
    """Keeps figures of every query of the session and, with `listen`, serves them until `close`.

    With the archive's `folder`: lag in seconds, also in the first micro-batch after a restart, and the entries of each query in
    the ledger of exactly-once writes. Spark's thread for listeners reads what is new there after each micro-batch. Of queries
    that have ended, the last hundred are kept.
    """

    def __init__(self, folder: str | Path | None = None, *, listen: str | None = None) -> None:
        self._folder = folder
        self._queries: dict[str, _Query] = {}
        self._entries: dict[str, int] = {}
        self._entries_after: dict[int, int] = {}
        self._lock = threading.Lock()
        self._server: Any = None
        if listen is not None:
            from aeron_spark.metrics.server import MetricsServer  # needs a package that not all have

            self._server = MetricsServer(listen, self.samples)
            threading.Thread(target=self._server.serve_forever, name="aeron_spark metrics", daemon=True).start()

    @property
    def url(self) -> str | None:
        """Where Prometheus finds the figures; None without `listen`."""
        return None if self._server is None else str(self._server.url)

    def close(self) -> None:
        """End serving. Remove the listener from the session first."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def onQueryStarted(self, event: Any) -> None:
        """A query runs, perhaps again."""
        with self._lock:
            query = self._queries.setdefault(str(event.id), _Query(name=event.name or str(event.id)))
            query.is_active = True
            self._forget()

    def onQueryProgress(self, event: Any) -> None:
        """A micro-batch has ended, or there was nothing to do."""
        progress = event.progress
        try:
            lags = lag(progress, self._folder)
            self._read_ledger()
        except AeronError as error:
            LOG.warning(
                "query %s: its lag is unknown: %s", progress.name or progress.id, error,
                extra=facts(query_id=str(progress.id), batch_id=progress.batchId),
            )  # fmt: skip
            lags = {}
        seconds = progress.batchDuration / 1e3
        with self._lock:
            query = self._queries.setdefault(str(progress.id), _Query(name=progress.name or str(progress.id)))
            query.lags = lags
            if progress.numInputRows > 0:
                query.batches += 1
                query.rows += progress.numInputRows
                query.batch_seconds += seconds
                query.last_batch_seconds, query.last_batch_time = seconds, time.time()

    def onQueryIdle(self, event: Any) -> None:
        """Nothing new."""

    def onQueryTerminated(self, event: Any) -> None:
        """A query has ended."""
        with self._lock:
            if str(event.id) in self._queries:
                self._queries[str(event.id)].is_active = False

    def samples(self) -> Samples:
        """The figures now. Any thread."""
        found = Samples()
        with self._lock:
            for query_id, query in self._queries.items():
                of = (cut(query.name), query_id)
                found.add("aeron_spark_query_active", of, int(query.is_active))
                found.add("aeron_spark_batches", of, query.batches)
                found.add("aeron_spark_rows", of, query.rows)
                found.add("aeron_spark_batch_seconds", of, query.batch_seconds)
                if query.batches > 0:
                    found.add("aeron_spark_last_batch_seconds", of, query.last_batch_seconds)
                    found.add("aeron_spark_last_batch_time_seconds", of, query.last_batch_time)
                for recording_id, one in query.lags.items():
                    if one.bytes is not None:
                        found.add("aeron_spark_lag_bytes", (*of, str(recording_id)), one.bytes)
                behind = total(query.lags).seconds
                if behind is not None:
                    found.add("aeron_spark_lag_seconds", of, behind)
                if self._folder is not None:
                    found.add("aeron_spark_committed_entries", of, self._entries.get(query_id, 0))
        return found

    def _read_ledger(self) -> None:
        """Count what is new in the ledger. A batch has one entry: writers append no second one."""
        if self._folder is None:
            return
        with Folder(local_folder("folder", str(self._folder))) as folder:
            for one in read_entries(folder, self._entries_after):
                query_id = str(UUID(bytes=one.entry.query.bytes))
                self._entries[query_id] = self._entries.get(query_id, 0) + 1
                self._entries_after[one.recording_id] = one.next_position

    def _forget(self) -> None:
        ended = [query_id for query_id, query in self._queries.items() if not query.is_active]
        for query_id in ended[:-_MAX_QUERIES]:
            del self._queries[query_id]
