"""Rows of the archive: ours with our driver beside the stock Java archive with its driver; the load is our client for both.

Recordings lie where the tests' directories do, in memory: what is compared is the archives and not a disk. The file system's
own limit, the same bytes written in blocks of 1 MiB, is measured beside each pair.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from aeron_spark import Archive, Client, ExclusivePublication, Folder, Replay, SourceLocation
from tests.bench.pairs import Limit, Row, measure
from tests.bench.transport_rows import cpu_s
from tests.kit import dirs, native, stock
from tests.kit.ports import free_port
from tests.kit.processes import Process

SETTINGS = {
    "aeron.threading.mode": "SHARED",
    "aeron.shared.idle.strategy": "backoff",
    "aeron.ipc.term.buffer.length": "16m",
    "aeron.archive.threading.mode": "SHARED",
    "aeron.archive.segment.file.length": "128m",
    "aeron.archive.control.channel.enabled": "false",
    "aeron.archive.max.concurrent.recordings": "64",
    "aeron.archive.max.concurrent.replays": "64",
}
PAIRS = 3
STREAM_ID = 7001
RECORD_BYTES = 400_000_000
BATCH_BYTES = 4_000_000
CATALOG_RECORDINGS = 100_000
PURGED_SEGMENTS = 10_000
SEGMENT = 65536
BLOCK = 1 << 20
SEARCHES = 20


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


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A side at work."""

    process: Process
    client: Client
    archive: Archive
    archive_dir: Path
    start_s: float


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
        archive = stack.enter_context(Archive(client, timeout=60))
        start_s = time.monotonic() - started
        yield World(process=process, client=client, archive=archive, archive_dir=archive_dir, start_s=start_s)


def bodies(size: int) -> pa.Array:
    """A batch of messages of one size."""
    return pa.array([bytes(size)] * max(1, BATCH_BYTES // size), type=pa.binary())


def publish(publications: Sequence[ExclusivePublication], size: int, total: int) -> list[int]:
    """Bytes of messages, in turn on each publication; where each ends."""
    batch = bodies(size)
    ends = [0] * len(publications)
    for turn in range(max(1, total // (len(batch) * size))):
        index = turn % len(publications)
        ends[index] = publications[index].offer_batch(batch, timeout=60)
    return ends


@contextmanager
def recording(at: World, channels: Sequence[str]) -> Iterator[tuple[list[ExclusivePublication], list[int]]]:
    """Publications that are being recorded, and their recordings."""
    with ExitStack() as stack:
        publications, ids = [], []
        for index, channel in enumerate(channels):
            location = SourceLocation.REMOTE if "udp" in channel else SourceLocation.LOCAL
            at.archive.start_recording(channel, STREAM_ID + index, source=location)
            publication = stack.enter_context(at.client.add_exclusive_publication(channel, STREAM_ID + index))
            publication.wait_connected(20)
            ids.append(at.archive.wait_recording("aeron", STREAM_ID + index, publication.session_id))
            publications.append(publication)
        yield publications, ids
        for index, channel in enumerate(channels):
            at.archive.stop_recording(channel, STREAM_ID + index)


def record_mb(side: Side, channels: Callable[[], Sequence[str]], size: int, *, by_cpu: bool = False) -> float:
    """MB/s of payload from the first offer until all is recorded; or seconds of the archive's CPU for a GB."""
    with world(side) as at, recording(at, channels()) as (publications, ids):
        for publication, recording_id in zip(publications, ids, strict=True):
            at.archive.wait_position(recording_id, publish([publication], size, BATCH_BYTES)[0], timeout=60)
        before, used = time.monotonic(), cpu_s(at.process)
        for recording_id, end in zip(ids, publish(publications, size, RECORD_BYTES), strict=True):
            at.archive.wait_position(recording_id, end, timeout=60)
        seconds, used = time.monotonic() - before, cpu_s(at.process) - used
    return used / (RECORD_BYTES / 1e9) if by_cpu else RECORD_BYTES / 1e6 / seconds


def file_system_mb() -> float:
    """MB/s that the file system takes in blocks, into files that are set to their length first."""
    block, files = bytes(BLOCK), RECORD_BYTES // (128 * BLOCK) + 1
    with dirs.fresh("limit") as folder:
        before = time.monotonic()
        for index in range(files):
            fd = os.open(folder / f"{index}", os.O_RDWR | os.O_CREAT)
            os.ftruncate(fd, 128 * BLOCK)
            for offset in range(0, min(128 * BLOCK, RECORD_BYTES - index * 128 * BLOCK), BLOCK):
                os.pwrite(fd, block, offset)
            os.close(fd)
        return RECORD_BYTES / 1e6 / (time.monotonic() - before)


def in_file(size: int) -> float:
    """Bytes in a segment for a byte of payload, with frames of the IPC default MTU."""
    per_frame = 1408 - 32
    whole, rest = divmod(size, per_frame)
    return (whole * 1408 + (-(-(rest + 32) // 32) * 32 if rest else 0)) / size


def replay_mb(side: Side, streams: int) -> float:
    """MB/s of payload out of a recording, by as many replays at once."""
    total = RECORD_BYTES // streams
    with world(side) as at:
        with recording(at, ["aeron:ipc"]) as (publications, ids):
            end = publish(publications, 1024, total)[0]
            at.archive.wait_position(ids[0], end, timeout=60)
        before = time.monotonic()
        with ExitStack() as stack:
            replays: list[Replay] = [
                stack.enter_context(at.archive.replay(ids[0], "aeron:ipc", STREAM_ID + 100 + index, length=end))
                for index in range(streams)
            ]
            images = [replay.wait_image(60) for replay in replays]
            while any(image.position < end for image in images):
                for replay in replays:
                    replay.subscription.poll_batch(timeout=0.001, columns=["value"])
            return streams * total / 1e6 / (time.monotonic() - before)


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
        self.side = side
        self.memory_mb: list[int] = []
        self.list_s: list[float] = []
        self.find_s: list[float] = []

    def start(self) -> float:
        """Seconds until a session is accepted; the others are measured on the way."""
        with world(self.side, lambda path: catalog(path, CATALOG_RECORDINGS)) as at:
            before = time.monotonic()
            assert len(at.archive.recordings()) == CATALOG_RECORDINGS
            self.list_s.append(time.monotonic() - before)
            before = time.monotonic()
            for _ in range(SEARCHES):
                assert at.archive.find_last_matching_recording("alias=0|", 1, 1) == 0
            self.find_s.append((time.monotonic() - before) / SEARCHES)
            self.memory_mb.append(round(resident_mb(at.process)))
            return at.start_s


def purge_stall_ms(side: Side) -> float:
    """Longest time that a batch of a live recording takes to be recorded while 10,000 segments are purged, in ms."""
    batch = bodies(1024).slice(0, 16)
    with (
        world(side, lambda path: catalog(path, 1, segments=PURGED_SEGMENTS)) as at,
        recording(at, ["aeron:ipc"]) as (publications, ids),
        Folder(at.archive_dir) as folder,
    ):
        last_file = at.archive_dir / f"0-{(PURGED_SEGMENTS - 1) * SEGMENT}.rec"
        longest, until = 0.0, None
        at.archive.purge_recording(0)
        while until is None or time.monotonic() < until:
            before = time.monotonic()
            end = publications[0].offer_batch(batch, timeout=60)
            while folder.extent(ids[0]).limit_position < end:  # the counter, which asks nothing of the archive
                pass
            longest = max(longest, time.monotonic() - before)
            if until is None and not last_file.exists():
                until = time.monotonic() + 0.1
        return longest * 1000


# -- rows -----------------------------------------------------------------------------------------------------------------


def _row(
    name: str,
    unit: str,
    figure: Callable[[Side], float],
    *,
    target: float,
    higher_is_better: bool = True,
    limit: Limit | None = None,
    details: dict[str, object] | None = None,
) -> Row:
    return measure(
        name,
        unit,
        lambda: figure(OURS),
        lambda: figure(STOCK),
        peer_name=f"stock Java archive and driver {stock.version()}",
        target=target,
        higher_is_better=higher_is_better,
        ours_config=SETTINGS,
        peer_config=SETTINGS,
        pairs=PAIRS,
        warm=False,
        limit=limit,
        details=details,
    )


def records() -> Iterator[Row]:
    """Into recordings."""
    rows: tuple[tuple[str, int, Callable[[], list[str]]], ...] = (
        ("record_64", 64, lambda: ["aeron:ipc"]),
        ("record_1k", 1024, lambda: ["aeron:ipc"]),
        ("record_16k", 16384, lambda: ["aeron:ipc"]),
        ("record_udp_1k", 1024, lambda: [f"aeron:udp?endpoint=127.0.0.1:{free_port()}"]),
        ("record_8_streams", 1024, lambda: ["aeron:ipc"] * 8),
    )
    for name, size, channels in rows:
        yield _row(
            name,
            "MB/s",
            lambda side, size=size, channels=channels: record_mb(side, channels, size),
            target=1.5,
            limit=Limit(of=file_system_mb, scale=in_file(size), share=0.8),
        )
    yield _row(
        "archive_cpu_per_gb",
        "s",
        lambda side: record_mb(side, lambda: ["aeron:ipc"], 1024, by_cpu=True),
        target=1.5,
        higher_is_better=False,
    )


def large_catalog() -> Iterator[Row]:
    """Start, listing and searching with 100,000 recordings."""
    sides = {side: LargeCatalog(side) for side in (OURS, STOCK)}
    memory: dict[str, object] = {
        f"{name}_memory_mb": sides[side].memory_mb for name, side in (("our", OURS), ("peer", STOCK))
    }
    figures: tuple[tuple[str, Callable[[Side], float]], ...] = (
        ("start_100k_recordings", lambda side: sides[side].start()),
        ("list_100k", lambda side: sides[side].list_s.pop(0)),
        ("find_last_100k", lambda side: sides[side].find_s.pop(0)),
    )
    for name, figure in figures:
        yield _row(name, "s", figure, target=2.0, higher_is_better=False, details=memory)


def run() -> list[Row]:
    """All rows of the archive."""
    return [
        *records(),
        _row("replay_1k", "MB/s", lambda side: replay_mb(side, 1), target=2.0),
        _row("replay_8_streams", "MB/s", lambda side: replay_mb(side, 8), target=2.0),
        *large_catalog(),
        _row("purge_stall", "ms", purge_stall_ms, target=10.0, higher_is_better=False),
    ]
