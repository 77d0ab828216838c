"""Rows of Real-Time Mode: time from a message's publication to its row, within a batch, as a histogram."""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from aeron_spark.spark import jvm
from tests.bench.pairs import Row, measure
from tests.bench.spark_rows import FEW_PAIRS, trickle
from tests.spark.session import JAR, build_session

#: Of a batch; the first messages of it find a JVM that is not warm, or wait for its plan.
SECONDS, LEFT_OUT = 20, 1000
#: Milliseconds by quantile, on two cores with nothing else to do.
TARGETS = {50: 10.0, 99: 30.0}
EDGES_MS = (1, 2, 5, 10, 20, 30, 50, 100, 1000)


def latencies_ms(spark: SparkSession, folder: Path) -> np.ndarray:
    """Of one batch, in the order of its messages. The clock of the row is read where the row is made for the sink."""
    stream = spark.readStream.format("aeron").options(startingPositions="latest").load(str(folder))
    rows = stream.selectExpr("reserved_value AS sent", "bigint(reflect('java.lang.System', 'nanoTime')) AS arrived")
    name = f"latencies_{time.monotonic_ns()}"
    writer = rows.writeStream.format("memory").queryName(name).outputMode("update")
    query = jvm.real_time(writer.option("checkpointLocation", tempfile.mkdtemp()), f"{SECONDS} seconds").start()
    try:
        while query.lastProgress is None and query.isActive:
            time.sleep(0.1)
        if query.exception() is not None:
            raise query.exception()  # type: ignore[misc]
        times = spark.table(name).toPandas()
    finally:
        query.stop()
    return np.asarray((times["arrived"] - times["sent"])[LEFT_OUT:] / 1e6)


def run() -> list[Row]:
    """A message every 2 ms in one recording."""
    if not JAR:
        return []
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark__sql__streaming__realTimeMode__allowlistCheck": "false"}  # for the sink
    spark = build_session("aeron-spark-bench-real-time", **JAR, **settings)
    runs: list[np.ndarray] = []
    again = itertools.count(1)  # behind the run that warms up
    details: dict[str, object] = {}

    def quantile(percent: int) -> float:
        """The first row makes the runs, of which the others are."""
        if percent != min(TARGETS):
            return float(np.percentile(runs[next(again)], percent))
        runs.append(latencies_ms(spark, folder))
        counts, _ = np.histogram(np.concatenate(runs[1:] or runs), (0, *EDGES_MS, np.inf))
        names = [*(f"< {edge}" for edge in EDGES_MS), "more"]
        details["histogram_ms"] = dict(zip(names, counts.tolist(), strict=True))
        return float(np.percentile(runs[-1], percent))

    try:
        with (
            tempfile.TemporaryDirectory() as work,
            trickle(Path(work) / "archive", 1, clock=time.monotonic_ns) as folder,
        ):
            return [
                measure(
                    f"real_time_p{percent}",
                    "ms",
                    lambda percent=percent: quantile(percent),  # type: ignore[misc]
                    lambda most=most: most,  # type: ignore[misc]
                    peer_name="its target",
                    target=1.0,
                    higher_is_better=False,
                    ours_config={"recordings": 1, "messages_per_second": 500, "batch_seconds": SECONDS},
                    peer_config={},
                    details=details,
                    pairs=FEW_PAIRS,
                    warm=percent == min(TARGETS),
                )
                for percent, most in TARGETS.items()
            ]
    finally:
        spark.stop()
