"""Spark Connect: the program is a thin client without Java, the package is where Spark runs.

SPARK_REMOTE=sc://spark-host:15002 python examples/12_spark_connect.py

Without SPARK_REMOTE it starts a server of its own. Needs `pip install 'pyspark[connect]'`. The server and its workers need
aeron_spark in their Python (PYSPARK_PYTHON); the client needs it here only to record something.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from common import record
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from aeron_spark import Archive, ArchivingMediaDriver


def main() -> None:
    """Record; read a table, and run a streaming query, both in the server."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.remote(os.environ.get("SPARK_REMOTE", "local[2]")).getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        # Paths are the server's: on another machine give it a folder that it sees, or `controlChannel`.
        archive_dir = str(Path(folder, "archive"))
        with (
            ArchivingMediaDriver(archive_dir, Path(folder, "aeron")) as servers,
            Archive(aeron_dir=servers.aeron_dir) as archive,
        ):
            record(archive, 1001, [b"%d" % number for number in range(20_000)])

        messages = spark.read.format("aeron").load(archive_dir)
        number = F.col("value").cast("string").cast("long").alias("number")
        row = messages.select(number).agg(F.count("*"), F.sum("number")).first()
        print(f"{row[0]} messages read by {type(spark).__module__}, their sum is {row[1]}")

        stream = spark.readStream.format("aeron").option("startingPositions", "earliest").load(archive_dir)
        query = (
            stream.select("position", number)
            .writeStream.format("parquet")
            .option("path", f"{folder}/numbers")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        print(f"{spark.read.parquet(f'{folder}/numbers').count()} messages by a streaming query")
    spark.stop()


if __name__ == "__main__":
    main()
