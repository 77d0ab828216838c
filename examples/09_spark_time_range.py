"""Replay a stretch of time: what the publisher's clock says, exactly, or what the archive's clock says.

python examples/09_spark_time_range.py
spark-submit examples/09_spark_time_range.py
"""

from __future__ import annotations

import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from common import record, session
from pyspark.sql import functions as F

from aeron_spark import Archive, ArchivingMediaDriver

STREAM_ID = 1001
OPENING = datetime(2026, 1, 30, 9, 0, tzinfo=UTC)
INTERVAL_MS = 100


def main() -> None:
    """An hour of prices, with the publisher's time in the reserved value of each message; then some minutes of it."""
    prices = [b"%d" % (1000 + number % 7) for number in range(36_000)]
    opening_ms = int(OPENING.timestamp() * 1000)
    times_ms = [opening_ms + number * INTERVAL_MS for number in range(len(prices))]
    spark = session("time-range")
    with tempfile.TemporaryDirectory() as folder:
        archive_dir = Path(folder, "archive")
        with (
            ArchivingMediaDriver(archive_dir, Path(folder, "aeron")) as servers,
            Archive(aeron_dir=servers.aeron_dir) as archive,
        ):
            record(archive, STREAM_ID, prices, reserved_values=times_ms)
            recorded_ns = time.time_ns()

        # From and to are found by halving, so a long recording costs no more than the part that is read.
        minutes = (
            spark.read.format("aeron")
            .option("timestampFrom", "reserved(ms)")
            .option("startingTimestamp", "2026-01-30T09:30:00Z")
            .option("endingTimestamp", "2026-01-30T09:33:00Z")
            .option("columns", "timestamp,value")
            .load(str(archive_dir))
        )
        print(f"{minutes.count()} messages of three minutes")
        price = F.col("value").cast("string").cast("int")
        (
            minutes.groupBy(F.window("timestamp", "1 minute").start.alias("minute"))
            .agg(F.count("*").alias("messages"), F.min(price).alias("low"), F.max(price).alias("high"))
            .orderBy("minute")
            .select(F.date_format("minute", "mm").alias("minute"), "messages", "low", "high")
            .show()
        )

        # Without times of the publisher, the archive's time index tells when it wrote what, to an interval of 10 ms.
        index = spark.read.format("aeron")
        before = index.option("endingTimestamp", f"{recorded_ns + 10**9} ns").load(str(archive_dir)).count()
        after = index.option("startingTimestamp", f"{recorded_ns + 10**9} ns").load(str(archive_dir)).count()
        print(f"{before} messages were recorded by then, {after} later")
    spark.stop()


if __name__ == "__main__":
    main()
