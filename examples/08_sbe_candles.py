"""Market data by SBE to candles: recorded messages become typed columns, and these open, high, low and close of each minute.

python examples/08_sbe_candles.py
spark-submit examples/08_sbe_candles.py
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from common import record, session
from pyspark.sql import functions as F

from aeron_spark import Archive, ArchivingMediaDriver
from aeron_spark.sbe import Encoder

STREAM_ID = 1001
SCHEMA = Path(__file__).with_name("prices.xml")
SYMBOLS, MINUTES, PER_MINUTE = ("ABC", "XYZ"), 5, 200
OPENING = datetime(2026, 1, 30, 9, 0, tzinfo=UTC)


def day(encoder: Encoder) -> pa.Array:
    """Trades of some minutes, each message with one to three; the last message has none and tells that time went on."""
    rows = []
    for number in range(MINUTES * PER_MINUTE):
        at = OPENING + timedelta(minutes=1) * number / PER_MINUTE
        for index, symbol in enumerate(SYMBOLS):
            prices = [
                Decimal(10_000 * (index + 1) + number * 7 % 100 - 5 * part) / 100 for part in range(1 + number % 3)
            ]
            trades = [{"side": "Buy", "price": price, "size": 10 + number % 5} for price in prices]
            rows.append({"time": at, "symbol": symbol, "trades": trades, "note": ""})
    rows.append({"time": OPENING + timedelta(hours=1), "symbol": "", "trades": [], "note": "end of session"})
    entry = pa.struct([("side", pa.string()), ("price", pa.decimal128(19, 4)), ("size", pa.int64())])
    types = {"time": pa.timestamp("us", "UTC"), "symbol": pa.string(), "trades": pa.list_(entry), "note": pa.string()}
    return encoder.encode(pa.RecordBatch.from_pylist(rows, schema=pa.schema(list(types.items()))))


def main() -> None:
    """Record a session, stream it into candles, show them."""
    spark = session("candles")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    with tempfile.TemporaryDirectory() as folder:
        archive_dir = Path(folder, "archive")
        with (
            ArchivingMediaDriver(archive_dir, Path(folder, "aeron")) as servers,
            Archive(aeron_dir=servers.aeron_dir) as archive,
        ):
            record(archive, STREAM_ID, day(Encoder(SCHEMA, "Trades")).to_pylist())

        messages = (
            spark.readStream.format("aeron")
            .option("payload", "sbe")
            .option("sbeSchema", str(SCHEMA))
            .option("sbeMessage", "Trades")
            .option("startingPositions", "earliest")
            .option("columns", "time,symbol,trades,position")
            .load(str(archive_dir))
        )
        order = F.struct("time", "position")
        candles = (
            messages.withWatermark("time", "10 seconds")
            .groupBy("symbol", F.window("time", "1 minute"))
            .agg(
                F.min_by(F.expr("get(trades, 0).price"), order).alias("open"),
                F.max(F.expr("array_max(trades.price)")).alias("high"),
                F.min(F.expr("array_min(trades.price)")).alias("low"),
                F.max_by(F.expr("try_element_at(trades, -1).price"), order).alias("close"),
                F.sum(F.expr("aggregate(trades.size, 0L, (all, size) -> all + size)")).alias("volume"),
            )
            .select("symbol", F.col("window.start").alias("minute"), "open", "high", "low", "close", "volume")
        )
        query = (
            candles.writeStream.format("parquet")
            .option("path", f"{folder}/candles")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

        made = spark.read.parquet(f"{folder}/candles")
        made.orderBy("symbol", "minute").show()
        row = made.agg(F.count("*"), F.sum("volume")).first()
        print(f"{row[0]} candles of {len(SYMBOLS)} symbols, volume {row[1]}")
    spark.stop()


if __name__ == "__main__":
    main()
