"""History first, then live, by one query: a backfill that ends by itself, micro-batches into Parquet, a restart.

python examples/04_spark_backfill_then_live.py
spark-submit examples/04_spark_backfill_then_live.py
"""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path

from common import CHANNEL, session
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from aeron_spark import Archive, ArchivingMediaDriver, ExclusivePublication

STREAM_ID = 1001
HISTORY = 100_000


class Sensor(threading.Thread):
    """Publishes 100 readings every 20 ms until told to end."""

    def __init__(self, publication: ExclusivePublication) -> None:
        super().__init__()
        self.publication = publication
        self.ending = threading.Event()
        self.count = 0

    def publish(self, count: int) -> None:
        """Numbered readings, so that a lost or doubled one would show."""
        self.publication.offer_batch([b"%d" % number for number in range(self.count, self.count + count)])
        self.count += count

    def run(self) -> None:
        """Publish while the query runs, and while it does not."""
        while not self.ending.wait(0.02):
            self.publish(100)


def query(spark: SparkSession, archive_dir: Path, folder: Path) -> DataStreamWriter:
    """The same query each time; where it begins is told by the checkpoint, and by `startingPositions` if there is none."""
    readings = (
        spark.readStream.format("aeron")
        .option("startingPositions", "earliest")
        .option("maxBytesPerTrigger", "4m")
        .load(str(archive_dir))
        .selectExpr("position", "CAST(CAST(value AS STRING) AS BIGINT) AS number")
    )
    return (
        readings.writeStream.format("parquet")
        .option("path", str(folder / "readings"))
        .option("checkpointLocation", str(folder / "checkpoint"))
    )


def stop_between_batches(live: StreamingQuery) -> None:
    """Stop it at any time: nothing is lost. But of a micro-batch that is interrupted Spark prints a page of Java traces."""
    latest = time.monotonic() + 20
    while live.isActive and live.status["isTriggerActive"] and time.monotonic() < latest:
        time.sleep(0.01)
    live.stop()


def main() -> None:
    """Backfill, follow, stop, start again; publishing goes on all the time."""
    spark = session("backfill-then-live")
    with tempfile.TemporaryDirectory() as name:
        folder, archive_dir = Path(name), Path(name, "archive")
        with (
            ArchivingMediaDriver(archive_dir, folder / "aeron") as servers,
            Archive(aeron_dir=servers.aeron_dir) as archive,
        ):
            archive.start_recording(CHANNEL, STREAM_ID)
            with archive.client.add_exclusive_publication(CHANNEL, STREAM_ID) as publication:
                publication.wait_connected(10)
                recording_id = archive.wait_recording("aeron:ipc", STREAM_ID, publication.session_id)
                sensor = Sensor(publication)
                sensor.publish(HISTORY)
                archive.wait_position(recording_id, publication.position)
                sensor.start()

                # What is there now, in batches of four megabytes, and no further.
                backfill = query(spark, archive_dir, folder).trigger(availableNow=True).start()
                backfill.awaitTermination()
                batches = len(backfill.recentProgress)
                history = spark.read.parquet(str(folder / "readings")).count()
                print(f"backfill: {history} messages in {batches} batches")

                # The same checkpoint: it goes on where the backfill ended.
                live = query(spark, archive_dir, folder).trigger(processingTime="2 seconds").start()
                while len(live.recentProgress) < 3 and live.isActive:
                    time.sleep(0.1)
                stop_between_batches(live)
                print(f"live: {spark.read.parquet(str(folder / 'readings')).count() - history} more, then stopped")

                sensor.ending.set()
                sensor.join()
                archive.wait_position(recording_id, publication.position)
            query(spark, archive_dir, folder).trigger(availableNow=True).start().awaitTermination()

        readings = spark.read.parquet(str(folder / "readings"))
        print(f"{sensor.count} messages published")
        print(f"{readings.count()} messages read, {readings.select('number').distinct().count()} different ones")
    spark.stop()


if __name__ == "__main__":
    main()
