"""The tables of spark-pipeline.yml, which says how to run them."""

from __future__ import annotations

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

spark = SparkSession.active()


@dp.table
def prices() -> DataFrame:
    """Every message of stream 1001 once, as columns."""
    messages = (
        spark.readStream.format("aeron")
        .option("streamId", 1001)
        .option("startingPositions", "earliest")
        .load(os.environ["RECORDINGS"])
    )
    fields = F.from_json(F.col("value").cast("string"), "symbol STRING, price INT, size INT")
    return messages.select("position", fields.alias("trade")).select("position", "trade.*")


@dp.materialized_view
def volumes() -> DataFrame:
    """How much of each symbol was traded."""
    return spark.read.table("prices").groupBy("symbol").agg(F.count("*").alias("trades"), F.sum("size").alias("volume"))
