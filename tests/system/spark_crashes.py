"""A Spark application whose Python workers are killed with -9 while they read or publish: run by test_spark_crashes.py.

    python -m tests.system.spark_crashes read ARCHIVE_DIR
    python -m tests.system.spark_crashes write AERON_DIR

Its master allows four attempts of each task. Prints one JSON object: the workers killed, and what the query gave.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.kit.cnc import Cnc
from tests.kit.wait import wait_until
from tests.spark.session import build_session
from tests.system.crashes import CHANNEL, STREAM

ROWS, PARTITIONS, KILLS = 100_000, 2, 2


def held(prefix: str) -> dict[int, str]:
    """Newest file, of those that begin so, that each worker of this application's tasks has open or mapped."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(process.name)) != os.getsid(0):
                continue
            # Planning runs in workers as well, of other daemons; Spark does not repeat that.
            if not (process / "cmdline").read_bytes().endswith(b"pyspark.worker\0"):
                continue
            files = [str(link.readlink()) for link in (process / "fd").iterdir()]
            files += (process / "maps").read_text(encoding="utf-8", errors="replace").split()
        except OSError:
            continue
        files = [file for file in files if file.startswith(prefix)]
        if files:
            found[int(process.name)] = files[-1]
    return found


class Killer(threading.Thread):
    """Kills a worker when `is_time` says so of it and the file it holds; then another one."""

    def __init__(self, prefix: str, is_time: Callable[[int, str], bool]) -> None:
        super().__init__(daemon=True)
        self._prefix = prefix
        self._is_time = is_time
        self.killed: list[int] = []

    def _victims(self) -> list[int]:
        return [pid for pid, file in held(self._prefix).items() if pid not in self.killed and self._is_time(pid, file)]

    def run(self) -> None:
        """All kills."""
        while len(self.killed) < KILLS:
            (victim, *_) = wait_until(self._victims, 120, f"a worker with a file {self._prefix}*")
            os.kill(victim, signal.SIGKILL)
            self.killed.append(victim)


def read(spark: SparkSession, archive_dir: str) -> dict[str, object]:
    """All messages, in a few partitions, while workers are killed that have come to a second segment file."""
    first: dict[int, str] = {}
    killer = Killer(f"{archive_dir}/0-", lambda pid, file: first.setdefault(pid, file) != file)
    frame = spark.read.format("aeron").option("minPartitions", "4").load(archive_dir)
    killer.start()
    row = frame.agg(
        F.count("*").alias("count"),
        F.countDistinct("position").alias("positions"),
        F.sum(F.crc32("value")).alias("crc"),
        F.sum("reserved_value").alias("reserved"),
    ).first()
    killer.join()
    assert row is not None
    return {"killed": killer.killed, **row.asDict()}


def write(spark: SparkSession, aeron_dir: str) -> dict[str, object]:
    """Numbered rows, while workers are killed that have published a megabyte of their share."""
    cnc = Cnc(Path(aeron_dir))

    def is_under_way(_: int, file: str) -> bool:
        key = struct.pack("<q", int(Path(file).stem))  # the publication's registration id
        return any(
            c.label.startswith("pub-pos") and c.key.startswith(key) and c.value > 1 << 20 for c in cnc.counters()
        )

    killer = Killer(f"{aeron_dir}/publications/", is_under_way)
    killer.start()
    rows = spark.range(0, ROWS, 1, PARTITIONS).select(
        F.rpad(F.col("id").cast("string"), 1000, ".").alias("value"), F.col("id").alias("reserved_value")
    )
    options = {"channel": str(CHANNEL), "streamId": str(STREAM), "aeronDir": aeron_dir, "launchDriver": "false"}
    rows.write.format("aeron").options(**options).mode("append").save()
    killer.join()
    return {"killed": killer.killed}


def main() -> int:
    """Run one of the two."""
    what, directory = sys.argv[1:]
    spark = build_session("crashes", master="local[2,4]")
    print(json.dumps({"read": read, "write": write}[what](spark, directory)))
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
