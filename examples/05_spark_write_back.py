"""Read a recorded stream, change it, and publish the result as a stream that is recorded in turn.

python examples/05_spark_write_back.py
spark-submit examples/05_spark_write_back.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from common import CHANNEL, record, session
from pyspark.sql import functions as F

from aeron_spark import Archive, ArchivingMediaDriver

RAW, ALARMS = 1001, 1002
MESSAGES = 20_000


def main() -> None:
    """Record temperatures, numbered by the reserved value; query into the sink; look at what the sink published."""
    spark = session("write-back")
    with tempfile.TemporaryDirectory() as folder:
        archive_dir = Path(folder, "archive")
        with (
            ArchivingMediaDriver(archive_dir, Path(folder, "aeron")) as servers,
            Archive(aeron_dir=servers.aeron_dir) as archive,
        ):
            raw = [b"%d" % (20 + number % 80) for number in range(MESSAGES)]
            record(archive, RAW, raw, reserved_values=range(MESSAGES))
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
