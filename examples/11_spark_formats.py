"""Messages as JSON and as Avro: Spark's own from_json and from_avro of the column `value`.

Avro is a package of Spark's: give it the version of yours.

spark-submit --packages org.apache.spark:spark-avro_2.13:4.2.0 examples/11_spark_formats.py
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from common import record, session
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro, to_avro

from aeron_spark import Archive, ArchivingMediaDriver

JSON_STREAM, AVRO_STREAM = 1001, 1002
AVRO_SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Trade",
        "fields": [
            {"name": "symbol", "type": ["string", "null"]},
            {"name": "price", "type": ["double", "null"]},
            {"name": "size", "type": ["int", "null"]},
        ],
    }
)


def main() -> None:
    """JSON is read, published again as Avro, and that is read."""
    spark = session("formats")
    trades = [
        json.dumps({"symbol": "ABCD"[number % 4], "price": 100 + number % 7 / 2, "size": number % 10}).encode()
        for number in range(20_000)
    ]
    with tempfile.TemporaryDirectory() as folder:
        archive_dir = Path(folder, "archive")
        with (
            ArchivingMediaDriver(archive_dir, Path(folder, "aeron")) as servers,
            Archive(aeron_dir=servers.aeron_dir) as archive,
        ):
            record(archive, JSON_STREAM, trades)
            messages = spark.read.format("aeron").option("streamId", JSON_STREAM).load(str(archive_dir))
            trade = F.from_json(F.col("value").cast("string"), "symbol STRING, price DOUBLE, size INT")
            from_json = messages.select(trade.alias("trade"))
            (
                from_json.select(to_avro("trade", AVRO_SCHEMA).alias("value"))
                .write.format("aeron")
                .option("streamId", AVRO_STREAM)
                .option("recordTo", str(archive_dir))
                .mode("append")
                .save()
            )

        messages = spark.read.format("aeron").option("streamId", AVRO_STREAM).load(str(archive_dir))
        lengths = messages.agg(F.avg(F.length("value"))).first()[0]
        from_avro_again = messages.select(from_avro("value", AVRO_SCHEMA).alias("trade")).select("trade.*")
        print(f"{from_avro_again.count()} messages of Avro, {lengths:.0f} bytes each")
        print(f"{from_json.select('trade.*').exceptAll(from_avro_again).count()} differ from those of JSON")
        from_avro_again.groupBy("symbol").agg(F.sum("size").alias("volume")).orderBy("symbol").show()
    spark.stop()


if __name__ == "__main__":
    main()
