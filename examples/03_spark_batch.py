"""Record a stream, then ask Spark about it: filter by position, decode the messages, aggregate.

python examples/03_spark_batch.py
spark-submit examples/03_spark_batch.py
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from aeron_spark import Archive, ArchivingMediaDriver

CHANNEL = "aeron:ipc?term-length=1m"
STREAM_ID = 1001
TRADES = 50_000


def record(archive_dir: Path, aeron_dir: Path) -> int:
    """Publish trades as JSON and record them; returns where the second half begins."""
    trades = [
        json.dumps({"symbol": "ABCD"[number % 4], "price": 100 + number % 7, "size": number % 10}).encode()
        for number in range(TRADES)
    ]
    with ArchivingMediaDriver(archive_dir, aeron_dir) as servers, Archive(aeron_dir=servers.aeron_dir) as archive:
        archive.start_recording(CHANNEL, STREAM_ID)
        with archive.client.add_exclusive_publication(CHANNEL, STREAM_ID) as publication:
            publication.wait_connected(10)
            recording_id = archive.wait_recording("aeron:ipc", STREAM_ID, publication.session_id)
            middle = publication.offer_batch(trades[: TRADES // 2])
            archive.wait_position(recording_id, publication.offer_batch(trades[TRADES // 2 :]))
    return middle


def main() -> None:
    """Record, then read the folder: no server has to run for that."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers need the Python that has aeron_spark
    spark = SparkSession.builder.appName("batch").config("spark.ui.enabled", "false").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        archive_dir = Path(folder, "archive")
        middle = record(archive_dir, Path(folder, "aeron"))

        messages = spark.read.format("aeron").load(str(archive_dir))
        trades = messages.select(
            "position", F.from_json(F.col("value").cast("string"), "symbol STRING, price INT, size INT").alias("trade")
        ).select("position", "trade.*")
        print(f"{trades.where('size > 0').count()} of {trades.count()} messages are trades with a size")
        (
            trades.where("size > 0")
            .groupBy("symbol")
            .agg(F.sum("size").alias("volume"), F.round(F.expr("sum(price * size) / sum(size)"), 3).alias("average"))
            .orderBy("symbol")
            .show()
        )

        # A range of the stream: only its bytes are read.
        later = spark.read.format("aeron").option("startingPositions", f'{{"0": {middle}}}').load(str(archive_dir))
        print(f"{later.count()} messages from position {middle} on")
    spark.stop()


if __name__ == "__main__":
    main()
