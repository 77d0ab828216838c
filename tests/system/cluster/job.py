"""What is submitted to the cluster: job.py ADDRESS FOLDER whole|count.

Program and tasks tell where they have the package from. `whole`: a read of the hidden folder fails; a read by replay is
published back, each task waiting in mid-batch until FOLDER/go is there; what was recorded of it is read again. `count`: the
read alone. FOLDER is a place that test and tasks share.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import aeron_spark
from tests.kit.wait import wait_until
from tests.system.cluster.archive_host import BACK_STREAM, FOLDER, STREAM


def told(frame: DataFrame) -> str:
    """How a query fails."""
    try:
        return f"gave {frame.count()} rows"
    except Exception as error:  # noqa: BLE001 - any kind; its text is what is looked at
        return " ".join(str(error).split())


def place(_: int = 0) -> str:
    """Where this process has the package from."""
    return os.path.realpath(aeron_spark.__file__)


def waiting(value: Column, folder: Path) -> Column:
    """The value, given out by each task when the test says go, and not before it has said that it is there."""

    def wait(number: str) -> str:
        context = TaskContext.get()
        if not (folder / "go").exists() and context is not None:
            (folder / f"busy-{context.partitionId()}").touch()
            wait_until((folder / "go").exists, 120, "the test to say go")
        return number

    return F.udf(wait, "string", useArrow=False)(value)


def main() -> None:
    address, folder = sys.argv[1], Path(sys.argv[2])
    spark = SparkSession.builder.appName("cluster").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    there = spark.range(8, numPartitions=4).select(F.udf(place, "string", useArrow=False)("id"))
    for path in {place(), *(row[0] for row in there.distinct().collect())}:
        print("package:", path)
    read = spark.read.format("aeron")
    if sys.argv[3] == "whole":
        print("segments:", told(read.option("access", "segments").load(FOLDER)), flush=True)
    far = spark.read.format("aeron").option("controlChannel", f"aeron:udp?endpoint={address}:8010")
    number = F.regexp_extract(F.col("value").cast("string"), r"^\d+", 0)
    messages = far.option("streamId", STREAM).option("minPartitions", 4).load()
    print("read:", messages.select(number.alias("n")).agg(F.count("n"), F.countDistinct("n")).first(), flush=True)
    if sys.argv[3] == "whole":
        (
            messages.select(waiting(number, folder).alias("value"))
            .write.format("aeron")
            .option("channel", f"aeron:udp?endpoint={address}:8020")
            .option("streamId", BACK_STREAM)
            .option("publishTimeout", "20s")
            .mode("append")
            .save()
        )
        back = far.option("streamId", BACK_STREAM).load().select(F.col("value").cast("string").alias("n"))
        print("back:", back.agg(F.count("n"), F.countDistinct("n"), F.max(F.col("n").cast("int"))).first(), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
