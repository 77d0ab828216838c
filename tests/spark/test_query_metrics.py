"""Metrics of queries: what the listener exports of real micro-batches, their lag and their entries in the ledger.

Method: a query copies recordings exactly once into the same archive, is ended and started again on its checkpoint.
"""

from __future__ import annotations

import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

from aeron_spark.metrics.exposition import Exposition
from aeron_spark.spark.metrics import MetricsListener
from tests.kit.wait import wait_until
from tests.spark import recorded


def figures(text: str) -> dict[str, float]:
    """By sample: of one query there is one each; lags of recordings are added up."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0) + sample.value
    return found


def test_a_query_and_its_restart(spark: SparkSession, aeron_dir: Path, archive_dir: Path, tmp_path: Path) -> None:
    with (
        recorded.archive(aeron_dir, archive_dir) as archive,
        MetricsListener(archive_dir, listen="127.0.0.1:0") as listener,
    ):
        assert listener.url is not None
        archive.recorded(1001, 1000, [100])

        def served() -> dict[str, float]:
            with urllib.request.urlopen(str(listener.url), timeout=10) as answer:  # noqa: S310 - our own
                assert answer.status == 200
            return figures(Exposition().text(listener.samples())[0].decode())

        def run() -> None:
            stream = spark.readStream.format("aeron").option("startingPositions", "earliest")
            query = (
                stream.option("maxMessagesPerTrigger", "400")
                .option("streamId", "1001")
                .load(str(archive_dir))
                .select("value")
                .writeStream.format("aeron")
                .option("recordTo", str(archive_dir))
                .option("channel", "aeron:ipc?term-length=64k")
                .option("streamId", "2002")
                .option("guarantee", "exactly-once")
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .queryName("copy")
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()

        spark.streams.addListener(listener)
        try:
            run()
            wait_until(lambda: served().get("aeron_spark_query_active") == 0, 30, "the query's end")
            found = served()
            assert found["aeron_spark_rows_total"] == 1000
            assert found["aeron_spark_batches_total"] == 3
            assert found["aeron_spark_committed_entries_total"] == 3
            assert 0 < found["aeron_spark_last_batch_seconds"] <= found["aeron_spark_batch_seconds_total"]
            assert found["aeron_spark_lag_bytes"] == 0
            assert found["aeron_spark_lag_seconds"] == 0
            archive.recorded(1001, 100, [100])
            run()
            wait_until(lambda: served()["aeron_spark_rows_total"] == 1100, 30, "the second run")
            assert served()["aeron_spark_committed_entries_total"] == 4
        finally:
            spark.streams.removeListener(listener)


@pytest.mark.parametrize("folder", [None, "/nowhere/archive"])
def test_what_is_not_known_is_not_exported(folder: str | None, caplog: pytest.LogCaptureFixture) -> None:
    listener = MetricsListener(folder)
    assert listener.url is None
    listener.onQueryStarted(SimpleNamespace(id="1", name=None))
    source = SimpleNamespace(
        endOffset='{"archive":{"0":7},"positions":{"0":64},"starts":{"0":0},"version":1}', latestOffset=None
    )
    progress = SimpleNamespace(name=None, id="1", batchId=1, numInputRows=5, batchDuration=2500, sources=[source])
    listener.onQueryProgress(SimpleNamespace(progress=progress))
    found = figures(Exposition().text(listener.samples())[0].decode())
    assert found["aeron_spark_query_active"] == 1
    assert found["aeron_spark_rows_total"] == 5
    assert found["aeron_spark_last_batch_seconds"] == 2.5
    assert "aeron_spark_lag_bytes" not in found, "unknown is not 0"
    assert "aeron_spark_lag_seconds" not in found
    assert ("aeron_spark_committed_entries_total" in found) == (folder is not None)
    assert ("its lag is unknown" in caplog.text) == (folder is not None)
    for query in range(300):
        listener.onQueryStarted(SimpleNamespace(id=f"q{query}", name="x"))
        listener.onQueryTerminated(SimpleNamespace(id=f"q{query}"))
    assert len(listener.samples().by_family["aeron_spark_query_active"]) <= 102
    listener.close()
