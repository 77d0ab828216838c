"""Listener of the lag of streaming queries; ``lag`` and ``total`` are also for programs that ask (``planning/lag.py``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from aeron_spark.errors import AeronError
from aeron_spark.extras import missing
from aeron_spark.spark.log import LOG, facts
from aeron_spark.spark.planning.lag import Lag, lag, total

try:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryListener,
    )
except ModuleNotFoundError as error:
    raise missing(error, "spark") from None

__all__ = ["Lag", "LagListener", "lag", "total"]


class LagListener(StreamingQueryListener):
    """Logs a line for each micro-batch with how far its query is behind, and passes it on.

    ``spark.streams.addListener(LagListener(folder))``. ``on_lag`` is called with the query's id and the lag of each recording,
    in Spark's thread for listeners: it must not wait.
    """

    def __init__(
        self, folder: str | Path | None = None, on_lag: Callable[[str, dict[int, Lag]], object] | None = None
    ) -> None:
        self._folder = folder
        self._on_lag = on_lag

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing to report yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A micro-batch has ended, or there was nothing to do."""
        progress = event.progress
        try:
            found = lag(progress, self._folder)
        except AeronError as error:
            LOG.warning(
                "query %s: its lag is unknown: %s", progress.name or progress.id, error,
                extra=facts(query_id=str(progress.id), batch_id=progress.batchId),
            )  # fmt: skip
            return
        if not found:
            return
        LOG.info(
            "query %s: batch %d took %d rows, %s behind in %d recordings",
            progress.name or progress.id, progress.batchId, progress.numInputRows, total(found), len(found),
            extra=facts(
                query_id=str(progress.id), batch_id=progress.batchId, rows=progress.numInputRows,
                lags={recording_id: asdict(one) for recording_id, one in found.items()},
            ),
        )  # fmt: skip
        if self._on_lag is not None:
            self._on_lag(str(progress.id), found)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing new."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Spark logs the reason itself."""
