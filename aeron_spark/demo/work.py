"""The demonstration itself: `python -m aeron_spark.demo.work AERON_DIR ARCHIVE_DIR SECONDS`, started by `__main__.py`.

Publishes and records telemetry, reads it with a streaming query while it goes on, replays the recording with a batch
query, and fails unless both saw exactly what was published.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aeron_spark import Archive, ArchivingMediaDriver, ChannelUri, Client
from aeron_spark.cli.common import print_table
from aeron_spark.demo.telemetry import Feed
from aeron_spark.errors import AeronError, WaitTimeoutError

CHANNEL = ChannelUri.ipc(term_length="16m", alias="telemetry")
STREAM_ID = 1001
INTERVAL_S = 0.01
SETTINGS = {
    "aeron.threading.mode": "SHARED",
    "aeron.archive.threading.mode": "SHARED",
    "aeron.archive.segment.file.length": "16m",
    # Should even the supervisor be killed, they end by themselves.
    "aeron.spark.driver.exit.when.idle": "20s",
    "aeron.spark.archive.exit.when.idle": "20s",
}
SCHEMA = "kind string, name string, values map<string, bigint>"

# First and last counters of each device, in order of position.
SUMMARY = """
    select kind, name, count(*) as messages, min_by(values, position) as first, max_by(values, position) as last,
           (max(reserved_value) - min(reserved_value)) / 1e6 as seconds
    from {source} group by kind, name order by kind, name
"""

_begun = time.monotonic()


def report(text: str) -> None:
    """One line of progress."""
    print(f"[{time.monotonic() - _begun:5.1f} s] {text}", flush=True)


def main() -> int:
    """Run everything and clean up."""
    aeron_dir, archive_dir, seconds = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
    try:
        return demonstrate(aeron_dir, archive_dir, seconds)
    except KeyboardInterrupt:
        return 130
    except AeronError as failure:
        print(f"aeron_spark demo: {failure}", file=sys.stderr)
        return 1


def demonstrate(aeron_dir: Path, archive_dir: Path, seconds: float) -> int:
    """Servers, feed, streaming query, batch query; 0 when both queries saw all that was published."""
    with ArchivingMediaDriver(archive_dir, aeron_dir, settings=SETTINGS, embedded=False) as servers:
        report(
            f"media driver (pid {servers.driver.pid}) and archive (pid {servers.archive.pid}) run, native, in {aeron_dir}"
        )
        with Client(aeron_dir, name="telemetry") as client, Archive(client) as archive:
            archive.start_recording(CHANNEL, STREAM_ID)
            with client.add_exclusive_publication(CHANNEL, STREAM_ID) as publication:
                publication.wait_connected(10.0)
                recording_id = archive.wait_recording("aeron:ipc", STREAM_ID, publication.session_id)
                feed = Feed(publication, interval=INTERVAL_S)
                report(
                    f"telemetry of this machine goes to {CHANNEL} stream {STREAM_ID} and is recorded as {recording_id}"
                )
                spark = session()
                report(f"Spark {spark.version} runs")
                try:
                    query = start_stream(spark, archive_dir)
                    report("streaming query over the growing recording:")
                    print("          batch      rows    rows/s  up to position  behind the feed", flush=True)
                    progress = Progress(query, feed)
                    progress.follow(lambda: progress.position > 0)
                    enough = time.monotonic() + seconds
                    progress.follow(lambda: time.monotonic() >= enough)
                    feed.stop()
                    archive.wait_position(recording_id, publication.position)
                    progress.follow(lambda: progress.position >= feed.position)
                    report(f"feed ended after {feed.messages:,} messages, the query has read them all")
                    query.stop()
                    archive.stop_recording_by_identity(recording_id)
                    return compare(spark, archive_dir, feed.messages)
                finally:
                    spark.stop()


def session() -> Any:
    """A local Spark session that keeps its files below the current folder."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - seconds to import: the feed runs already

    here = Path.cwd()
    spark = (
        SparkSession.builder.appName("aeron_spark demo")
        .master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", str(here))
        .config("spark.sql.warehouse.dir", f"{here}/warehouse")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.extraJavaOptions", f"-Djava.io.tmpdir={here} -XX:-UsePerfData")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    spark.conf.set("spark.sql.streaming.checkpointLocation", f"{here}/checkpoint")
    return spark


def decoded(messages: Any) -> Any:
    """Rows of format("aeron") with the telemetry's fields."""
    from pyspark.sql.functions import col, from_json  # noqa: PLC0415

    return messages.select(
        "position", "reserved_value", from_json(col("value").cast("string"), SCHEMA).alias("m")
    ).select("position", "reserved_value", "m.*")


def start_stream(spark: Any, archive_dir: Path) -> Any:
    """A streaming query over the recording as it grows, from its beginning."""
    messages = (
        spark.readStream.format("aeron")
        .option("startingPositions", "earliest")
        .option("streamId", STREAM_ID)
        .load(str(archive_dir))
    )
    return decoded(messages).writeStream.format("memory").queryName("live").trigger(processingTime="1 second").start()


class Progress:
    """What a streaming query has done, printed as it goes on."""

    def __init__(self, query: Any, feed: Feed) -> None:
        self.position = 0
        self._query = query
        self._feed = feed
        self._shown = -1

    def follow(self, is_enough: Callable[[], bool], timeout: float = 120.0) -> None:
        """Print each micro-batch until `is_enough`; raises what ended the query, and WaitTimeoutError when it is late."""
        deadline = time.monotonic() + timeout
        while not is_enough():
            if self._query.exception() is not None:
                raise self._query.exception()
            if time.monotonic() >= deadline:
                raise WaitTimeoutError(f"the streaming query is at {self.position} and came no further in {timeout} s")
            self._query.awaitTermination(0.1)
            for progress in self._query.recentProgress:
                if progress.batchId > self._shown:
                    self._shown = progress.batchId
                    self._show(progress)

    def _show(self, progress: Any) -> None:
        if not progress.numInputRows:
            return
        positions: dict[str, int] = json.loads(progress.sources[0].endOffset)["positions"]
        self.position = max(positions.values())
        rate = progress.processedRowsPerSecond
        behind = self._feed.position - self.position
        print(
            f"{progress.batchId:15}  {progress.numInputRows:8,}  {rate:8,.0f}  {self.position:14,}  {behind:9,} bytes",
            flush=True,
        )


def compare(spark: Any, archive_dir: Path, published: int) -> int:
    """Replay the recording with a batch query; 0 when it, the stream and the feed agree."""
    begun = time.monotonic()
    recorded = decoded(spark.read.format("aeron").option("streamId", STREAM_ID).load(str(archive_dir)))
    recorded.createOrReplaceTempView("recorded")
    replayed = spark.sql(SUMMARY.format(source="recorded")).collect()
    taken = time.monotonic() - begun
    streamed = spark.sql(SUMMARY.format(source="live")).collect()

    report("result of the streaming query:")
    show(streamed)
    report(f"result of the batch query over the same recording, read in {taken:.1f} s:")
    show(replayed)
    counts = [sum(row.messages for row in rows) for rows in (streamed, replayed)]
    print_table(("published", "streamed", "replayed"), [(published, *counts)])
    if counts == [published, published] and streamed == replayed:
        report(f"all agree: {published:,} rows")
        return 0
    print("aeron_spark demo: the queries disagree with what was published", file=sys.stderr)
    return 1


def show(rows: list[Any]) -> None:
    """Counters of each device as a table."""
    print_table(
        ("kind", "device", "messages", "what happened"),
        [(row.kind, row.name, row.messages, describe(row.kind, row.first, row.last, row.seconds)) for row in rows],
    )


def describe(kind: str, first: dict[str, int], last: dict[str, int], seconds: float) -> str:
    """What a device did between its first and last counters."""
    change = {name: last[name] - first[name] for name in first}
    per_second = 1 / seconds if seconds else 0.0
    if kind == "cpu":
        busy = sum(change.values()) - change["idle"] - change["iowait"]
        return f"{100 * busy / max(1, sum(change.values())):.0f} % busy"
    if kind == "memory":
        return f"{last['MemAvailable'] / 2**20:.1f} of {last['MemTotal'] / 2**20:.1f} GiB available"
    if kind == "network":
        return f"{change['rx_bytes'] * per_second / 1024:.1f} KiB/s in, {change['tx_bytes'] * per_second / 1024:.1f} KiB/s out"
    return f"{change['sectors_read'] / 2048:.1f} MiB read, {change['sectors_written'] / 2048:.1f} MiB written"


if __name__ == "__main__":
    sys.exit(main())
