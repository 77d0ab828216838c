"""Rows of the archive: ours with our driver beside the stock Java archive with its driver.

The load is the same program for both, `bench_archive` over our client, so that only archive and driver differ; so is the client
that merges, as a merge of the stock client would tell of a JVM's client. Recordings lie where the tests' directories do, in
memory: what is compared is the archives and not a disk. The machine's own limit, two threads with a log buffer and files
between them (`log_limit.c`), is measured beside each pair. As much as is measured is recorded before: by then the stock
side's code is compiled, and the pages of the log buffers are there, whose clearing takes as long as recording them.
"""

from __future__ import annotations

import functools
import json
import os
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from aeron_spark import Archive, Client, SourceLocation
from aeron_spark.archive import ReplayMerge
from tests.bench.pairs import BEFORE, Limit, Row, measure
from tests.kit import dirs, native, stock, stock_c
from tests.kit.ports import free_port
from tests.kit.processes import Process
from tests.kit.wait import wait_until

SETTINGS = {
    "aeron.threading.mode": "SHARED",
    "aeron.shared.idle.strategy": "backoff",
    "aeron.ipc.term.buffer.length": "16m",
    "aeron.archive.threading.mode": "SHARED",
    "aeron.archive.segment.file.length": "128m",
    "aeron.archive.control.channel.enabled": "false",
    "aeron.archive.max.concurrent.recordings": "64",
    "aeron.archive.max.concurrent.replays": "64",
    "aeron.spies.simulate.connection": "true",
}
PAIRS = 3
CATALOG_PAIRS = 7  # a listing is a fraction of a second
STREAM_ID = 7001
RECORD_BYTES = 400_000_000
WARMUP_BYTES = RECORD_BYTES
MERGE_BYTES = 50_000_000
MESSAGE_BYTES = 1024
CATALOG_RECORDINGS = 100_000
PURGED_SEGMENTS = 10_000
SEGMENT = 65536
#: Of the machine's limit, that is near enough (docs/decisions/52-recording-at-the-speed-of-a-copy.md).
RECORD_SHARE = 0.75
TIMEOUT_S = 60.0

Figures = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Whose driver and archive."""

    driver: Callable[[Path], Process]
    archive: Callable[[Path, Path], Process]


OURS = Side(
    driver=lambda aeron_dir: native.driver(aeron_dir, SETTINGS),
    archive=lambda aeron_dir, archive_dir: native.archive(aeron_dir, archive_dir, SETTINGS),
)
STOCK = Side(
    driver=lambda aeron_dir: stock.driver(aeron_dir, settings=SETTINGS, options=()),
    archive=lambda aeron_dir, archive_dir: stock.archive(aeron_dir, archive_dir, settings=SETTINGS, options=()),
)
EARLIER = Side(
    driver=lambda aeron_dir: native.driver(aeron_dir, SETTINGS, folder=BEFORE),
    archive=lambda aeron_dir, archive_dir: native.archive(aeron_dir, archive_dir, SETTINGS, folder=BEFORE),
)
PEER = STOCK if BEFORE is None else EARLIER


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A side at work."""

    process: Process
    client: Client
    archive: Archive
    aeron_dir: Path
    archive_dir: Path
    start_s: float

    def start_load(self, mode: str, **options: object) -> Process:
        """The load program, at work."""
        named = {name.replace("_", "-"): value for name, value in options.items()}
        command = stock_c.load_command(native.bench_program("bench_archive"), mode, self.aeron_dir, **named)
        return Process(f"archive load {mode}", command)

    def load(self, mode: str, **options: object) -> Figures:
        """Run the load program to its end and return its figures."""
        return ended(self.start_load(mode, **options))

    def record(self, channel: str, size: int, *, streams: int = 1, total: int = RECORD_BYTES) -> Figures:
        """Record so many bytes of messages, and as many before the clock runs."""
        location = SourceLocation.REMOTE if "udp" in channel else SourceLocation.LOCAL
        for index in range(streams):
            self.archive.start_recording(channel, STREAM_ID + index, source=location)
        messages = total // size // streams
        counts = {"streams": streams, "messages": messages, "warmup": messages * WARMUP_BYTES // RECORD_BYTES}
        return self.load("record", channel=channel, stream=STREAM_ID, length=size, pid=self.process.pid, **counts)


@contextmanager
def world(side: Side, prepare: Callable[[Path], None] = lambda _: None) -> Iterator[World]:
    """Driver, archive and a control session; the folder is prepared before the archive starts."""
    with ExitStack() as stack:
        aeron_dir = stack.enter_context(dirs.fresh("aeron"))
        archive_dir = stack.enter_context(dirs.fresh("archive"))
        prepare(archive_dir)
        stack.enter_context(side.driver(aeron_dir))
        started = time.monotonic()
        process = stack.enter_context(side.archive(aeron_dir, archive_dir))
        client = stack.enter_context(Client(aeron_dir))
        archive = stack.enter_context(Archive(client, timeout=TIMEOUT_S))
        start_s = time.monotonic() - started
        yield World(
            process=process,
            client=client,
            archive=archive,
            aeron_dir=aeron_dir,
            archive_dir=archive_dir,
            start_s=start_s,
        )


def ended(process: Process) -> Figures:
    """What a load program printed, once it has ended."""
    code = process.wait_end(timeout=3 * TIMEOUT_S)
    assert code == 0, process.report()
    return stock_c.figures(process)


# -- recording and replaying ----------------------------------------------------------------------------------------------


class Recording:
    """Runs of a side that record: MB/s of payload, and the archive's seconds of core for a GB."""

    def __init__(self, side: Side, size: int, *, streams: int = 1, is_udp: bool = False) -> None:
        self._side = side
        self._size = size
        self._streams = streams
        self._is_udp = is_udp
        self._cpu_s: list[float] = []

    def mb(self) -> float:
        """From the first offer until all is recorded."""
        channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}" if self._is_udp else "aeron:ipc"
        with world(self._side) as at:
            figures = at.record(channel, self._size, streams=self._streams)
        self._cpu_s.append(figures["core_seconds"] / (RECORD_BYTES / 1e9))
        return figures["bytes_per_second"] / 1e6

    def cpu_s(self) -> float:
        """Of the runs, in their order."""
        return self._cpu_s.pop(0)


def replay_mb(side: Side, streams: int) -> float:
    """MB/s of payload out of a recording, by as many replays at once, each of several log buffers."""
    total = RECORD_BYTES if streams == 1 else RECORD_BYTES // 4
    with world(side) as at:
        at.record("aeron:ipc", MESSAGE_BYTES, total=total)
        recorded = at.archive.recordings()[0]
        end = wait_until(lambda: at.archive.stop_position(recorded.recording_id), TIMEOUT_S, "the recording's end")
        messages = total // MESSAGE_BYTES
        messages += messages * WARMUP_BYTES // RECORD_BYTES
        reader = at.start_load(
            "replay",
            channel="aeron:ipc",
            stream=STREAM_ID + 100,
            streams=streams,
            length=MESSAGE_BYTES,
            messages=messages,
        )
        reader.wait_ready(lambda: "READY" in reader.stdout())
        for index in range(streams):
            at.archive.start_replay(recorded.recording_id, "aeron:ipc", STREAM_ID + 100 + index, length=end)
        return ended(reader)["bytes_per_second"] / 1e6


def machine_limit(mode: str, streams: int) -> Figures:
    """What two threads reach that only move the bytes."""
    with dirs.fresh("limit") as folder:
        command = [native.bench_program("log_limit"), mode, folder, str(2 * RECORD_BYTES), str(streams)]
        return cast("Figures", json.loads(subprocess.run(command, check=True, capture_output=True).stdout))


def limit_mb(mode: str, streams: int) -> float:
    """MB/s of them."""
    return machine_limit(mode, streams)["bytes_per_second"] / 1e6


def in_file(size: int) -> float:
    """Bytes in a segment for a byte of payload, with frames of the IPC default MTU."""
    per_frame = 1408 - 32
    whole, rest = divmod(size, per_frame)
    return (whole * 1408 + (-(-(rest + 32) // 32) * 32 if rest else 0)) / size


def merge_s(side: Side) -> float:
    """Seconds that a client takes through a recording's past into its live stream, over UDP."""
    port, count = free_port(), MERGE_BYTES // MESSAGE_BYTES
    channel = f"aeron:udp?control=127.0.0.1:{port}|control-mode=dynamic|term-length=16m"
    with world(side) as at, ExitStack() as stack:
        at.archive.start_recording(channel, STREAM_ID, source=SourceLocation.LOCAL)
        publication = stack.enter_context(at.client.add_exclusive_publication(channel, STREAM_ID))
        publication.wait_connected(TIMEOUT_S)
        recording_id = at.archive.wait_recording("aeron", STREAM_ID, publication.session_id)
        end = publication.offer_batch([bytes(MESSAGE_BYTES)] * count, timeout=TIMEOUT_S)
        at.archive.wait_position(recording_id, end, timeout=TIMEOUT_S)
        session = f"session-id={publication.session_id}"
        before = time.monotonic()
        subscription = stack.enter_context(
            at.client.add_subscription(f"aeron:udp?control-mode=manual|{session}", STREAM_ID)
        )
        merge = stack.enter_context(
            ReplayMerge(
                at.archive,
                subscription,
                replay_channel=f"aeron:udp?{session}",
                replay_destination="aeron:udp?endpoint=127.0.0.1:0",
                live_destination=f"aeron:udp?endpoint=127.0.0.1:0|control=127.0.0.1:{port}",
                recording_id=recording_id,
            )
        )
        read = 0
        while not merge.is_merged:
            read += merge.poll_batch(0.001, columns=["position"]).num_rows
            if read == count:
                publication.offer_batch([bytes(MESSAGE_BYTES)], timeout=TIMEOUT_S)  # the stream lives on
                count += 1
        assert read in (count, count - 1), f"{read} messages came of {count}"
        return time.monotonic() - before


# -- large catalogs -----------------------------------------------------------------------------------------------------


def catalog(path: Path, count: int, *, segments: int = 0) -> None:
    """A catalog of stopped recordings, as an archive writes it; the last one with so many segments, full of nothing."""
    records = [struct.pack("<iiqi11xb", 0x00030100, 32, count, 64, 0)]
    for index in range(count):
        stop = segments * SEGMENT if index == count - 1 else 0
        texts = b"".join(
            struct.pack("<I", len(text)) + text
            for text in (b"aeron:ipc?alias=%d" % index, b"aeron:ipc?alias=%d|mtu=1408" % index, b"aeron:ipc")
        )
        body = (
            struct.pack("<7q6i", 0, 0, index, 1, 2, 0, stop, 0, SEGMENT, SEGMENT, 1408, index + 1, 1 + index % 100)
            + texts
        )
        length = -(-(32 + len(body)) // 64) * 64
        records.append((struct.pack("<iii19xb", length - 32, 1, 0, 0) + body).ljust(length, b"\0"))
    (path / "archive.catalog").write_bytes(b"".join(records) + bytes(1 << 20))
    for index in range(segments):
        with (path / f"{count - 1}-{index * SEGMENT}.rec").open("wb") as segment:
            segment.truncate(SEGMENT)


def resident_mb(process: Process) -> float:
    """Memory of a process."""
    pages = int(Path(f"/proc/{process.pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class LargeCatalog:
    """Runs of a side with a large catalog: each gives the figures of three rows."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._list_s: list[float] = []
        self._find_s: list[float] = []
        self.memory_mb: list[int] = []

    def start_s(self) -> float:
        """Seconds until a session is accepted; the others are measured meanwhile."""
        with world(self._side, lambda path: catalog(path, CATALOG_RECORDINGS)) as at:
            figures = at.load("catalog", messages=CATALOG_RECORDINGS)
            self._list_s.append(figures["list_seconds"])
            self._find_s.append(figures["find_seconds"])
            self.memory_mb.append(round(resident_mb(at.process)))
            return at.start_s

    def list_s(self) -> float:
        """Of the runs, in their order."""
        return self._list_s.pop(0)

    def find_s(self) -> float:
        """Of the runs, in their order."""
        return self._find_s.pop(0)


class Purge:
    """Runs of a side that purges 10,000 segments while it records, a batch at a time."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self.before_ms: list[float] = []

    def stall_ms(self) -> float:
        """Longest time until a batch is recorded; the same before the purge is kept, as what the machine itself does."""
        with world(self._side, lambda path: catalog(path, 1, segments=PURGED_SEGMENTS)) as at:
            last_file = at.archive_dir / f"0-{(PURGED_SEGMENTS - 1) * SEGMENT}.rec"
            at.archive.start_recording("aeron:ipc", STREAM_ID)
            live = at.start_load("stall", stream=STREAM_ID, length=MESSAGE_BYTES, file=last_file)
            live.wait_ready(lambda: "READY" in live.stdout())
            at.archive.purge_recording(0)
            figures = ended(live)
        self.before_ms.append(round(figures["longest_before_ns"] / 1e6, 3))
        return figures["longest_ns"] / 1e6


# -- rows -----------------------------------------------------------------------------------------------------------------


def _row(
    name: str,
    unit: str,
    figures: tuple[Callable[[], float], Callable[[], float]],
    *,
    target: float,
    higher_is_better: bool = True,
    pairs: int = PAIRS,
    limit: Limit | None = None,
    details: dict[str, object] | None = None,
    runs_of: Row | None = None,
) -> Row:
    return measure(
        name,
        unit,
        *figures,
        peer_name=f"stock Java archive and driver {stock.version()}"
        if BEFORE is None
        else f"archive and driver of {BEFORE}",
        target=target,
        higher_is_better=higher_is_better,
        ours_config=SETTINGS,
        peer_config=SETTINGS,
        pairs=pairs,
        warm=False,
        limit=limit,
        details=details,
        runs_of=runs_of,
    )


def records() -> Iterator[Row]:
    """Into recordings, and what that costs."""
    rows: tuple[tuple[str, int, int, bool], ...] = (
        ("record_64", 64, 1, False),
        ("record_1k", 1024, 1, False),
        ("record_16k", 16384, 1, False),
        ("record_udp_1k", 1024, 1, True),
        ("record_8_streams", 1024, 8, False),
    )
    for name, size, streams, is_udp in rows:
        ours, peer = (Recording(side, size, streams=streams, is_udp=is_udp) for side in (OURS, PEER))
        limit = Limit(of=functools.partial(limit_mb, "record", streams), scale=in_file(size), share=RECORD_SHARE)
        row = _row(name, "MB/s", (ours.mb, peer.mb), target=1.5, limit=limit)
        yield row
        if name == "record_1k":
            figures = (ours.cpu_s, peer.cpu_s)
            core_s = lambda: machine_limit("record", 1)["core_seconds_per_gb"]  # noqa: E731
            limit = Limit(of=core_s, scale=1 / in_file(size), share=RECORD_SHARE)
            yield _row("archive_cpu_per_gb", "s", figures, target=1.5, higher_is_better=False, limit=limit, runs_of=row)


def replays() -> Iterator[Row]:
    """Out of recordings."""
    for name, streams in (("replay_1k", 1), ("replay_8_streams", 8)):
        limit = Limit(of=functools.partial(limit_mb, "replay", streams), scale=in_file(MESSAGE_BYTES), share=None)
        figures = (lambda streams=streams: replay_mb(OURS, streams), lambda streams=streams: replay_mb(PEER, streams))
        yield _row(name, "MB/s", figures, target=1.3, limit=limit)
    yield _row("merge_time", "s", (lambda: merge_s(OURS), lambda: merge_s(PEER)), target=1.0, higher_is_better=False)


def large_catalog() -> Iterator[Row]:
    """Start, listing and searching with 100,000 recordings."""
    ours, peer = LargeCatalog(OURS), LargeCatalog(PEER)
    memory: dict[str, object] = {"memory_mb": {"ours": ours.memory_mb, "peer": peer.memory_mb}}
    first: Row | None = None
    for name, figures, target in (
        ("start_100k_recordings", (ours.start_s, peer.start_s), 2.0),
        ("list_100k", (ours.list_s, peer.list_s), 2.0),
        # Nearly all of it is the pause of an idle archive, 1 ms in both: a search that looks at one recording takes as long.
        ("find_last_100k", (ours.find_s, peer.find_s), 1.0),
    ):
        row = _row(
            name,
            "s",
            figures,
            target=target,
            higher_is_better=False,
            pairs=CATALOG_PAIRS,
            details=memory,
            runs_of=first,
        )
        first = first or row
        yield row


def purges() -> Iterator[Row]:
    """Beside a purge."""
    ours, peer = Purge(OURS), Purge(PEER)
    details: dict[str, object] = {"without_purge_ms": {"ours": ours.before_ms, "peer": peer.before_ms}}
    figures = (ours.stall_ms, peer.stall_ms)
    yield _row("purge_stall", "ms", figures, target=10.0, higher_is_better=False, details=details)


def run() -> list[Row]:
    """All rows of the archive."""
    return [row for part in (records, replays, large_catalog, purges) for row in part()]
