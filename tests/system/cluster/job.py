"""What is submitted to the cluster: job.py ADDRESS FOLDER.

Program and tasks tell where they have the package from. A read of the hidden folder fails; a read by replay is published back,
each task waiting in mid-batch until FOLDER/go is there; what was recorded of it is read again. FOLDER is a place that test and
tasks share. It imports nothing of the tests: the workers have no more than `docs/cluster.md` tells.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import aeron_spark

#: As archive_host.py has them.
STREAM, BACK_STREAM = 1001, 2001
FOLDER = "/dev/shm/archive"  # noqa: S108 - the archive's own machine's


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
            deadline = time.monotonic() + 120
            while not (folder / "go").exists():
                if time.monotonic() > deadline:
                    raise TimeoutError("the test did not say go within 120 s")
                time.sleep(0.05)
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
    print("segments:", told(read.option("access", "segments").load(FOLDER)), flush=True)
    far = spark.read.format("aeron").option("controlChannel", f"aeron:udp?endpoint={address}:8010")
    number = F.regexp_extract(F.col("value").cast("string"), r"^\d+", 0)
    messages = far.option("streamId", STREAM).option("minPartitions", 4).load()
    print("read:", messages.select(number.alias("n")).agg(F.count("n"), F.countDistinct("n")).first(), flush=True)
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
