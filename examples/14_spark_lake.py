"""From the recording into a table of Parquet files: typed columns, each message once, a newer schema, a view with what is live.

python examples/14_spark_lake.py
spark-submit examples/14_spark_lake.py
"""

from __future__ import annotations

import tempfile
import time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from common import CHANNEL, session
from pyspark.sql import SparkSession

from aeron_spark import Archive, ArchivingMediaDriver
from aeron_spark.sbe import Encoder
from aeron_spark.spark.lake import Landing

STREAM_ID = 1001
SCHEMA = Path(__file__).with_name("prices.xml")
SETTINGS = {"aeron.archive.segment.file.length": "1m"}
LOT = '<field name="lot" id="6" type="uint16" presence="optional" sinceVersion="2"/>'


def options(folder: Path, schema: Path, *added: str) -> dict[str, str]:
    """Of the query and of the view: quotes as columns, and what is no quote as a row with the error and the bytes."""
    columns = ("recording_id", "position", "next_position", "timestamp", "symbol", "bid", "ask", "venue", *added)
    return {
        "path": str(folder / "archive"),
        "payload": "sbe",
        "sbeSchema": str(schema),
        "sbeMessage": "Quote",
        "sbeOthers": "error",
        "onSbeError": "null",
        "columns": ",".join((*columns, "sbe_error", "sbe_error_at", "sbe_raw")),
    }


def newer_schema(folder: Path) -> Path:
    """Version 2: a quote has the size of its lot, too."""
    text = SCHEMA.read_text("utf-8").replace('version="1"', 'version="2"', 1)
    newer = folder / "prices-2.xml"
    newer.write_text(text.replace('sinceVersion="1"/>', f'sinceVersion="1"/>{LOT}', 1), "utf-8")
    return newer


def quotes(schema: Path, count: int, **added: int) -> list[bytes]:
    """Messages of a version of the schema."""
    price = pa.array([Decimal(10_000 + number % 100) / 100 for number in range(count)], pa.decimal128(19, 4))
    at = pa.array(range(count), pa.timestamp("us", "UTC"))
    columns = {"time": at, "symbol": ["ABC"] * count, "bid": price, "ask": price, "venue": [3] * count}
    rows = columns | {name: [value] * count for name, value in added.items()}
    return list(Encoder(schema, "Quote").encode(pa.RecordBatch.from_pydict(rows)).to_pylist())


def record(archive: Archive, messages: list[bytes]) -> None:
    """A recording of its own, which is stopped at the end."""
    with archive.add_recorded_exclusive_publication(CHANNEL, STREAM_ID) as publication:
        publication.wait_connected(10)
        recording_id = archive.wait_recording("aeron:ipc", STREAM_ID, publication.session_id)
        archive.wait_position(recording_id, publication.offer_batch(messages))
    while archive.stop_position(recording_id) is None:
        time.sleep(0.01)


def land(spark: SparkSession, table: Landing, folder: Path, read: dict[str, str]) -> None:
    """All that is recorded, in micro-batches; with the same checkpoint it goes on where it ended."""
    limits = {"startingPositions": "earliest", "maxBytesPerTrigger": "512k"}
    messages = spark.readStream.format("aeron").options(**read, **limits).load()
    writer = messages.writeStream.foreachBatch(table.land).option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


def main() -> None:
    """Land, compact, land a newer version, and look at table and recordings as one."""
    spark = session("lake")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = Landing(folder / "quotes")
        with (
            ArchivingMediaDriver(folder / "archive", folder / "aeron", settings=SETTINGS) as servers,
            Archive(aeron_dir=servers.aeron_dir) as archive,
        ):
            record(archive, [*quotes(SCHEMA, 20_000), b"no quote"])
            first = options(folder, SCHEMA)
            land(spark, table, folder, first)
            print(f"{table.table(spark).count()} quotes have landed")
            dead = table.dead_letters(spark)
            if dead is not None:
                dead.select("recording_id", "position", "sbe_error", "sbe_raw").show()
            print(f"{table.compact(spark)} folders became one, {table.table(spark).count()} quotes")

            # Publishers have a newer schema: the query continues with it; rows from before have nulls.
            newer = newer_schema(folder)
            record(archive, quotes(newer, 5_000, lot=10))
            second = options(folder, newer, "lot")
            land(spark, table, folder, second)
            table.table(spark).groupBy("lot").count().orderBy("lot").show()

            # What has landed may be deleted. What comes now is in the view, and lands later.
            for recording_id, end in table.bounds().items():
                recording = archive.recording(recording_id)
                base = recording.segment_base(end)
                deleted = archive.purge_segments(recording_id, base) if base > recording.start_position else 0
                print(f"recording {recording_id} is in the table up to position {end}: {deleted} segments deleted")
            record(archive, quotes(newer, 2_000, lot=20))
            view = table.view(spark, second)
            print(f"{view.count()} quotes in the view, {table.table(spark).count()} in the table")
            land(spark, table, folder, second)
            print(f"{view.count()} quotes in the view, {table.table(spark).count()} in the table")
    spark.stop()


if __name__ == "__main__":
    main()
