"""Read a recorded stream, change it, and write it back exactly once, though the query is stopped and started again.

python examples/07_spark_exactly_once.py
spark-submit examples/07_spark_exactly_once.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from common import CHANNEL, record, session
from pyspark.sql import functions as F

from aeron_spark import Archive, ArchivingMediaDriver

RAW, DOUBLED = 1001, 1002
MESSAGES = 20_000


def main() -> None:
    """Record; run the query, then once more from the same checkpoint; read what is committed."""
    spark = session("exactly-once")
    with tempfile.TemporaryDirectory() as folder:
        archive_dir = Path(folder, "archive")
        with (
            ArchivingMediaDriver(archive_dir, Path(folder, "aeron")) as servers,
            Archive(aeron_dir=servers.aeron_dir) as archive,
        ):
            record(archive, RAW, [b"%d" % number for number in range(MESSAGES)])
            numbers = (
                spark.readStream.format("aeron")
                .option("streamId", RAW)
                .option("startingPositions", "earliest")
                .option("maxMessagesPerTrigger", MESSAGES // 4)
                .load(str(archive_dir))
            )
            query = (
                numbers.select((F.col("value").cast("string").cast("long") * 2).cast("string").alias("value"))
                .writeStream.format("aeron")
                .option("channel", CHANNEL)
                .option("streamId", DOUBLED)
                .option("recordTo", str(archive_dir))
                .option("guarantee", "exactly-once")
                .option("checkpointLocation", f"{folder}/checkpoint")
                .trigger(availableNow=True)
            )
            query.start().awaitTermination()
            # As after a crash between the sink's commit and Spark's own: the last batch runs again.
            commits = Path(folder, "checkpoint", "commits")
            last = max(int(path.name) for path in commits.glob("[0-9]*"))
            for name in (f"{last}", f".{last}.crc"):
                Path(commits, name).unlink()
            query.start().awaitTermination()

            doubled = spark.read.format("aeron").option("streamId", DOUBLED)
            published = doubled.load(str(archive_dir)).count()
            committed = doubled.option("isolation", "read_committed").load(str(archive_dir))
            value = F.col("value").cast("string").cast("long")
            row = committed.agg(F.count("*"), F.countDistinct("value"), F.sum(value)).first()
            print(f"{published} messages published, {row[0]} committed, {row[1]} different, sum {row[2]}")
    spark.stop()


if __name__ == "__main__":
    main()
