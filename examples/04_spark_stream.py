"""Follow a recording while it is made: micro-batches into Parquet, stopped in the middle and taken up from the checkpoint.

python examples/04_spark_stream.py
spark-submit examples/04_spark_stream.py
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter

from aeron_spark import Archive, ArchivingMediaDriver, ExclusivePublication

CHANNEL = "aeron:ipc?term-length=1m"
STREAM_ID = 1001


class Sensor(threading.Thread):
    """Publishes 100 readings every 20 ms until told to end."""

    def __init__(self, publication: ExclusivePublication) -> None:
        super().__init__()
        self.publication = publication
        self.ending = threading.Event()
        self.count = 0

    def run(self) -> None:
        """Numbered readings, so that a lost or doubled one would show."""
        while not self.ending.wait(0.02):
            self.publication.offer_batch([b"%d" % number for number in range(self.count, self.count + 100)])
            self.count += 100


def query(spark: SparkSession, archive_dir: Path, folder: Path) -> DataStreamWriter:
    """The same query at the first start and at each restart; the checkpoint decides where it begins."""
    readings = (
        spark.readStream.format("aeron")
        .option("startingPositions", "earliest")
        .option("maxBytesPerTrigger", "16m")
        .load(str(archive_dir))
        .selectExpr("position", "CAST(CAST(value AS STRING) AS BIGINT) AS number")
    )
    return (
        readings.writeStream.format("parquet")
        .option("path", str(folder / "readings"))
        .option("checkpointLocation", str(folder / "checkpoint"))
    )


def main() -> None:
    """Publish and record all the time; query, stop, publish on, query again."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers need the Python that has aeron_spark
    spark = SparkSession.builder.appName("stream").config("spark.ui.enabled", "false").getOrCreate()
    with tempfile.TemporaryDirectory() as name:
        folder, archive_dir = Path(name), Path(name, "archive")
        with (
            ArchivingMediaDriver(archive_dir, folder / "aeron") as servers,
            Archive(aeron_dir=servers.aeron_dir) as archive,
        ):
            archive.start_recording(CHANNEL, STREAM_ID)
            with archive.client.add_exclusive_publication(CHANNEL, STREAM_ID) as publication:
                publication.wait_connected(10)
                sensor = Sensor(publication)
                sensor.start()
                running = query(spark, archive_dir, folder).trigger(processingTime="1 second").start()
                while len(running.recentProgress) < 3 and running.isActive:
                    time.sleep(0.1)
                running.stop()
                first = spark.read.parquet(str(folder / "readings")).count()
                print(f"stopped after {first} messages, while publishing went on")

                sensor.ending.set()
                sensor.join()
                archive.wait_position(
                    archive.wait_recording("aeron:ipc", STREAM_ID, publication.session_id), publication.position
                )
            query(spark, archive_dir, folder).trigger(availableNow=True).start().awaitTermination()

        readings = spark.read.parquet(str(folder / "readings"))
        print(f"{sensor.count} messages published")
        print(f"{readings.count()} messages read, {readings.select('number').distinct().count()} different ones")
    spark.stop()


if __name__ == "__main__":
    main()
