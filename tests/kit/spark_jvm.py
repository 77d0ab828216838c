"""How tests start Spark's JVM: they start dozens of them, each for seconds.

CPU seconds of a session and a first query: 20 by Java's defaults, 11 with the quick compiler and one thread of the collector, 5
with the classes from a file that a JVM before it has written. That file is made once for a pyspark, by `make` or this program:

    python -m tests.kit.spark_jvm

A JVM that the file does not fit, as another Java, is as slow as without it and says nothing. What Spark does stays the same.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from aeron_spark.demo import java

ROOT = Path(__file__).resolve().parents[2]
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def environment() -> dict[str, str]:
    """Variables by which the JVMs of sessions, and of a cluster's masters and workers, start quickly."""
    classes = _classes()
    options = f"{QUICK_START} -XX:SharedArchiveFile={classes} -Xlog:disable" if classes.exists() else QUICK_START
    return {"SPARK_SUBMIT_OPTS": options, "SPARK_DAEMON_JAVA_OPTS": options}


def _classes() -> Path:
    return ROOT / "build" / f"pyspark-{importlib.metadata.version('pyspark')}.jsa"


def main() -> int:
    """Write the classes of a session that reads, streams and writes; a Java that cannot do that is none to complain about."""
    if "--session" in sys.argv:
        _session()
        return 0
    classes = _classes()
    classes.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tests.kit.spark_jvm", "--session"]
    with tempfile.TemporaryDirectory(dir=classes.parent) as folder:
        fresh = Path(folder) / classes.name
        options = f"{QUICK_START} -XX:ArchiveClassesAtExit={fresh} -Xlog:disable"
        of_spark = {"SPARK_SUBMIT_OPTS": options, "SPARK_LOCAL_HOSTNAME": "localhost", "PYSPARK_PYTHON": sys.executable}
        env = {**os.environ, **java.environment(Path(folder)), **of_spark}
        done = subprocess.run(command, cwd=ROOT, env=env, check=False)
        if done.returncode == 0 and fresh.exists():
            fresh.replace(classes)
    return done.returncode


def _session() -> None:
    from pyspark.sql import functions as F

    from tests.kit import dirs
    from tests.spark import recorded
    from tests.spark.session import build_session

    spark = build_session("classes")
    jvm = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as folder, tempfile.TemporaryDirectory() as checkpoint:
        with recorded.archive(aeron_dir, folder) as archive:
            archive.recorded(1, 100, [100])
            archive.control.start_recording(recorded.CHANNEL, 2)
            rows = spark.read.format("aeron").load(str(folder)).select("value", "reserved_value")
            options = {"channel": recorded.CHANNEL, "streamId": "2", "aeronDir": str(aeron_dir)}
            rows.write.format("aeron").options(**options).mode("append").save()
            rows.groupBy((F.col("reserved_value") % 3).alias("key")).agg(F.count("*"), F.max("value")).orderBy(
                "key"
            ).collect()
        stream = (
            spark.readStream.format("aeron")
            .options(startingPositions="earliest", columns="timestamp,value")
            .load(str(folder))
        )
        counted = stream.withWatermark("timestamp", "1 second").groupBy(F.window("timestamp", "1 second")).count()
        writer = counted.writeStream.format("memory").queryName("counted").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()
    spark.sparkContext._gateway.shutdown()  # type: ignore[union-attr]
    jvm.stdin.close()  # by which Spark's JVM ends
    jvm.wait()


if __name__ == "__main__":
    sys.exit(main())
