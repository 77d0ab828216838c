"""What is logged in a task of Spark says for which query and batch; a program of the user is not printed into."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from aeron_spark.spark.log import LOG, facts
from tests.kit import dirs
from tests.kit.processes import Process
from tests.spark import recorded

STREAM = 1001


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    archive_dir = tmp_path_factory.mktemp("log") / "archive"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, archive_dir) as archive:
        archive.recorded(STREAM, 10, [8])
    return archive_dir


def test_a_task_logs_its_query_and_batch(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """Method: a function of the query logs as the reader does, in Spark's worker, and keeps what a handler gets."""
    kept = tmp_path / "kept"

    def logs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        class Keep(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                line = LOG.handlers[0].format(record)
                with kept.open("a") as file:
                    file.write(json.dumps({"aeron": vars(record)["aeron"], "line": line}) + "\n")

        keep = Keep()
        LOG.addHandler(keep)
        for batch in batches:
            LOG.warning("recording %d: seen", 0, extra=facts(recording_id=0, position=64))
            yield batch
        LOG.removeHandler(keep)

    frame = (
        spark.readStream.format("aeron")
        .options(startingPositions="earliest", maxMessagesPerTrigger="5")
        .load(str(folder))
    )
    query = (
        frame.select("position").mapInArrow(logs, "position long").writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    seen = [json.loads(line) for line in kept.read_text().splitlines()]
    assert {one["aeron"]["batch_id"] for one in seen} == {0, 1}
    for one in seen:
        batch_id = one["aeron"]["batch_id"]
        assert one["aeron"] == {"recording_id": 0, "position": 64, "query_id": str(query.id), "batch_id": batch_id}
        assert one["line"].endswith(f"recording 0: seen (query_id={query.id} batch_id={batch_id})")


def test_a_program_has_the_facts_and_is_not_printed_into() -> None:
    program = """
import logging, sys
from aeron_spark.spark.log import LOG, facts
kept = []
class Keep(logging.Handler):
    def emit(self, record):
        kept.append(record)
LOG.addHandler(Keep())
LOG.info("below the level of logging")
LOG.warning("recording %d", 3, extra=facts(recording_id=3))
(record,) = kept
assert record.aeron == {"recording_id": 3}
assert "pyspark" not in sys.modules
"""
    process = Process("program", [sys.executable, "-c", program])
    assert process.wait_end() == 0, process.report()
    assert (process.stdout(), process.stderr()) == ("", "")
