"""A job over `format("aeron")`: the last price of each symbol in the recordings of a folder."""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def last_prices(spark: SparkSession, folder: str) -> DataFrame:
    """One row per symbol, by name; messages are JSON: `{"symbol": "ABC", "price": 101}`."""
    messages = spark.read.format("aeron").option("columns", "recording_id,position,value").load(folder)
    trades = messages.select(
        "position", F.from_json(F.col("value").cast("string"), "symbol STRING, price INT").alias("trade")
    )
    last = trades.groupBy("trade.symbol").agg(F.max_by("trade.price", "position").alias("price"))
    return last.orderBy("symbol")


if __name__ == "__main__":
    last_prices(SparkSession.builder.getOrCreate(), sys.argv[1]).show()
