"""The demonstration itself: `python -m aeron_spark.demo.work AERON_DIR ARCHIVE_DIR SECONDS`, started by `__main__.py`.

Publishes and records telemetry, reads it with a streaming query while it goes on, replays the recording with a batch
query, and fails unless both saw exactly what was published.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import platform
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from aeron_spark import Archive, ArchivingMediaDriver, ChannelUri, Client
from aeron_spark.cli.common import print_table
from aeron_spark.demo import chart
from aeron_spark.demo.result import RESULT, Device, Result, Sample
from aeron_spark.demo.telemetry import Feed
from aeron_spark.errors import AeronError, WaitTimeoutError

# With the driver's 48 MB its log fits into the 64 MB of /dev/shm that a container has unless it asks for more.
CHANNEL = ChannelUri.ipc(term_length="4m", alias="telemetry")
STREAM_ID = 1001
INTERVAL_S = 0.01
SAMPLE_S = 0.1
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

STILL_S = 5.0
"""How long a step may print nothing before a line says that it still runs."""

_begun = time.monotonic()


def report(text: str) -> None:
    """One line of progress."""
    print(f"[{time.monotonic() - _begun:5.1f} s] {text}", flush=True)


def explain(text: str) -> None:
    """What the last step means, below it."""
    print(f"          {text}", flush=True)


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """While it lasts, a line every few seconds says that it still does."""
    done = threading.Event()

    def remind() -> None:
        while not done.wait(STILL_S):
            report(f"still {what}")

    reminder = threading.Thread(target=remind, name="reminder", daemon=True)
    reminder.start()
    try:
        yield
    finally:
        done.set()
        reminder.join()


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
        explain(
            "The driver moves messages through shared memory and UDP, the archive writes them to disk. No JVM so far."
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
                explain(
                    f"CPUs, memory, network, disks, {round(1 / INTERVAL_S)} times a second; a message is a device's counters."
                )
                with Curve(feed) as curve:
                    report("Spark starts; meanwhile the archive records what no query has read yet")
                    with waiting("starting Spark"):
                        spark = session()
                    try:
                        report(f"Spark {spark.version} runs")
                        follow(spark, archive_dir, curve, seconds)
                        feed.stop()
                        archive.wait_position(recording_id, publication.position)
                        curve.progress.follow(lambda: curve.progress.position >= feed.position)
                        curve.end()
                        report(f"feed ended after {feed.messages:,} messages, the query has read them all")
                        curve.progress.end()
                        archive.stop_recording_by_identity(recording_id)
                        return compare(spark, archive_dir, curve)
                    finally:
                        spark.stop()


def follow(spark: Any, archive_dir: Path, curve: Curve, seconds: float) -> None:
    """Start the streaming query, and follow it until it has caught up and so long."""
    progress = curve.progress
    report("a streaming query reads the recording while it grows, a micro-batch a second:")
    explain("The first one catches up with all that was recorded before; then the query stays close to the feed.")
    with waiting("starting the query, and reading what was recorded so far"):
        progress.begin(start_stream(spark, archive_dir))
        print("          batch      rows    rows/s  up to position   behind the feed", flush=True)
        progress.follow(lambda: progress.position > 0)
    enough = time.monotonic() + seconds
    progress.follow(lambda: time.monotonic() >= enough)


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
        # On a busy machine the first worker takes longer than Spark's 15 s.
        .config("spark.python.authenticate.socketTimeout", "2m")
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

    def __init__(self, feed: Feed) -> None:
        self.position = 0
        self.rate = 0.0
        self._query: Any = None
        self._feed = feed
        self._shown = -1

    def begin(self, query: Any) -> None:
        """From now on this query is followed."""
        self._query = query

    def end(self) -> None:
        """Stop the query."""
        self._query.stop()

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
        self.rate = progress.processedRowsPerSecond
        behind = self._feed.behind(self.position)
        print(
            f"{progress.batchId:15}  {progress.numInputRows:8,}  {self.rate:8,.0f}  {self.position:14,}  {behind:14.1f} s",
            flush=True,
        )


class Curve:
    """Samples how much is published and read, and how far behind the query is, from the feed's beginning on."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.progress = Progress(feed)
        self.samples: list[Sample] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="curve", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Take no more samples."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(SAMPLE_S):
            self.samples.append(
                Sample(
                    seconds=time.monotonic() - self.feed.begun,
                    published=self.feed.messages,
                    rate=self.progress.rate,
                    behind=self.feed.behind(self.progress.position),
                )
            )


def compare(spark: Any, archive_dir: Path, curve: Curve) -> int:
    """Replay the recording with a batch query; 0 when it, the stream and the feed agree."""
    feed = curve.feed
    report("a batch query reads the same recording again, from its first byte")
    begun = time.monotonic()
    with waiting("reading the recording"):
        recorded = decoded(spark.read.format("aeron").option("streamId", STREAM_ID).load(str(archive_dir)))
        recorded.createOrReplaceTempView("recorded")
        replayed = spark.sql(SUMMARY.format(source="recorded")).collect()
        taken = time.monotonic() - begun
        streamed = spark.sql(SUMMARY.format(source="live")).collect()
    counts = [sum(row.messages for row in rows) for rows in (streamed, replayed)]
    if counts != [feed.messages] * 2 or streamed != replayed:
        print_table(("published", "streamed", "replayed"), [(feed.messages, *counts)])
        print("aeron_spark demo: the queries disagree with what was published", file=sys.stderr)
        return 1
    devices = [
        Device(row.kind, row.name, row.messages, describe(row.kind, row.first, row.last, row.seconds))
        for row in replayed
    ]
    report(f"it took {taken:.1f} s, and says of each device what the streaming query said:")
    print_table(("kind", "device", "messages", "what happened"), [dataclasses.astuple(device) for device in devices])
    report(f"published, streamed and replayed agree: {feed.messages:,} rows")
    result = Result(
        machine=platform.node() or "this machine",
        spark=spark.version,
        began=datetime.fromtimestamp(time.time() - (time.monotonic() - feed.begun), UTC).isoformat(timespec="seconds"),
        rows=feed.messages,
        replay_seconds=taken,
        devices=devices,
        samples=curve.samples,
    )
    print("\n" + "\n".join(chart.terminal(result, width=min(shutil.get_terminal_size().columns, 100))), flush=True)
    Path(RESULT).write_text(result.to_json(), "utf-8")
    return 0


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
