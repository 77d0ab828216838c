"""Export a recording to Parquet with the command line, without Spark or a running archive; then let Spark read the file.

python examples/10_spark_export.py
spark-submit examples/10_spark_export.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from common import record, session
from pyspark.sql import functions as F

from aeron_spark import Archive, ArchivingMediaDriver


def main() -> None:
    """Record, export, and compare the file with what the source gives."""
    spark = session("export")
    with tempfile.TemporaryDirectory() as folder:
        archive_dir, parquet = Path(folder, "archive"), Path(folder, "readings.parquet")
        with (
            ArchivingMediaDriver(archive_dir, Path(folder, "aeron")) as servers,
            Archive(aeron_dir=servers.aeron_dir) as archive,
        ):
            recording_id = record(archive, 1001, [b"%d" % number for number in range(100_000)])

        # aeron-spark archive export archive 0 --out readings.parquet --columns position,time,value --verify
        command = [sys.executable, "-m", "aeron_spark.cli", "archive", "export", str(archive_dir), str(recording_id)]
        options = ["--out", str(parquet), "--columns", "position,time,value", "--verify"]
        subprocess.run([*command, *options], check=True)  # noqa: S603 - our own command

        # Times have nanoseconds, which Spark has no type for: it takes them as numbers.
        spark.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
        exported = spark.read.parquet(str(parquet)).withColumn("time", F.timestamp_micros(F.expr("time div 1000")))
        exported.printSchema()
        total = exported.agg(F.sum(F.col("value").cast("string").cast("long"))).first()[0]
        print(f"{exported.count()} messages in the file, their sum is {total}")
        recorded = spark.read.format("aeron").load(str(archive_dir)).select("position", "value")
        difference = recorded.exceptAll(exported.select("position", "value")).count()
        print(f"{difference} messages of the recording are not in it")
    spark.stop()


if __name__ == "__main__":
    main()
