"""A query that goes on from a checkpoint until it has read what is there, in a session of its own.

    python -m tests.spark.compat.carried FOLDER CHECKPOINT

prints the pyspark that ran it, and the batches that it took: JSON of batch id to values in hexadecimal.
"""

from __future__ import annotations

import json
import sys

import pyspark
from pyspark.sql import DataFrame, SparkSession

from tests.spark.session import build_session

Taken = dict[str, list[str]]


def go_on(spark: SparkSession, folder: str, checkpoint: str) -> Taken:
    """The batches from the checkpoint on."""
    taken: Taken = {}

    def keep(frame: DataFrame, batch_id: int) -> None:
        rows = frame.orderBy("recording_id", "position").select("value").collect()
        taken[str(batch_id)] = [bytes(row.value).hex() for row in rows]

    stream = spark.readStream.format("aeron").option("startingPositions", "earliest").load(folder)
    writer = stream.writeStream.foreachBatch(keep).option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination(120)
    assert query.exception() is None
    return taken


def main() -> None:
    """Run it."""
    spark = build_session("carried")
    print(json.dumps([pyspark.__version__, go_on(spark, *sys.argv[1:])]))
    spark.stop()


if __name__ == "__main__":
    main()
