"""Read a recorded stream, change it, and publish the result as a stream that is recorded in turn.

python examples/05_spark_write_back.py
spark-submit examples/05_spark_write_back.py
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from aeron_spark import Archive, ArchivingMediaDriver

CHANNEL = "aeron:ipc?term-length=1m"
RAW, ALARMS = 1001, 1002
MESSAGES = 20_000


def record_raw(archive: Archive) -> None:
    """Temperatures as text; the reserved value of each message is its number."""
    archive.start_recording(CHANNEL, RAW)
    with archive.client.add_exclusive_publication(CHANNEL, RAW) as publication:
        publication.wait_connected(10)
        recording_id = archive.wait_recording("aeron:ipc", RAW, publication.session_id)
        temperatures = [b"%d" % (20 + number % 80) for number in range(MESSAGES)]
        archive.wait_position(recording_id, publication.offer_batch(temperatures, reserved_values=range(MESSAGES)))


def main() -> None:
    """Record, query into the sink, look at what the sink published."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers need the Python that has aeron_spark
    spark = SparkSession.builder.appName("write-back").config("spark.ui.enabled", "false").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        archive_dir = Path(folder, "archive")
        with (
            ArchivingMediaDriver(archive_dir, Path(folder, "aeron")) as servers,
            Archive(aeron_dir=servers.aeron_dir) as archive,
        ):
            record_raw(archive)
            archive.start_recording(CHANNEL, ALARMS)

            temperatures = (
                spark.readStream.format("aeron")
                .option("streamId", RAW)
                .option("startingPositions", "earliest")
                .load(str(archive_dir))
            )
            (
                temperatures.where(F.col("value").cast("string").cast("int") >= 95)
                .select(F.concat(F.lit("too hot: "), F.col("value").cast("string")).alias("value"), "reserved_value")
                .writeStream.format("aeron")
                .option("channel", CHANNEL)
                .option("streamId", ALARMS)
                .option("aeronDir", str(servers.aeron_dir))
                .option("checkpointLocation", f"{folder}/checkpoint")
                .trigger(availableNow=True)
                .start()
                .awaitTermination()
            )

        # The servers have ended, so everything published is recorded.
        alarms = spark.read.format("aeron").option("streamId", ALARMS).load(str(archive_dir))
        print(f"{alarms.count()} of {MESSAGES} messages became alarms")
        alarms.groupBy(F.col("value").cast("string").alias("alarm")).count().orderBy("alarm").show()
    spark.stop()


if __name__ == "__main__":
    main()
