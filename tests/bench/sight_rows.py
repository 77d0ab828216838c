"""Rows of what an operator looks with: what that costs servers under full load, and what a backup costs beside plain copying.

**Beside**: one recording by driver, archive and load runs for all pairs, each at its full speed. A pair is a window of it with
the viewers (`metrics` scraped each second, `logs --follow`, `ui` asked each second what an open page asks) and one while they
are stopped by SIGSTOP, so that both windows have the same processes, memory and files. On two cores such a load leaves no core
free, so there are two rows: `apart` gives servers and load one core and the viewers the other, which leaves what the servers
themselves feel (locks, caches, system calls); `shared` pins nothing, which adds the time of the cores that the viewers take.
That time is in `viewers_ms_per_s`. Two more rows have the archive's seconds of core for a GB in the same windows: where
neighbours take the cores, throughput is theirs, but what a byte costs the archive stays.

**Backup**: a folder of 2 GB in segments of 16 MB, in memory, so that reading it costs both sides the same; the target lies on
the disk of the build folder. Plain copying is the system's copy of each file and an fsync of it, four files at a time as in the
backup, and an fsync of the folder. Then one more recording is made, of 1 % of the bytes, and the next backup copies it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from aeron_spark.archive.backup import WORKERS, BackupReport, backup
from aeron_spark.archive.backup_store import open_backup
from tests.bench.archive_rows import MESSAGE_BYTES, OURS, SETTINGS, STREAM_ID, TIMEOUT_S, Side, World, world
from tests.bench.machine import tasks
from tests.bench.pairs import ROOT, Row, measure
from tests.kit import native
from tests.kit.ports import free_port
from tests.kit.processes import Process
from tests.kit.wait import wait_until

WINDOW_S = 2
WINDOW_PAIRS = 20
ENDLESS = 1 << 50
BESIDE_TARGET = 0.99

SEGMENT_BYTES = 16 << 20
FOLDER_BYTES = 2_000_000_000
CHANGE = 0.01
BACKUP_PAIRS = 5
BACKUP_TARGET, INCREMENTAL_TARGET = 0.8, 20.0

Cores = frozenset[int]


# -- beside a load --------------------------------------------------------------------------------------------------------


@contextmanager
def on(cores: Cores) -> Iterator[None]:
    """What this thread starts meanwhile, and the thread itself, run on these cores alone."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def viewer(verb: str, at: World, *arguments: str) -> Process:
    """A verb of the command line over both directories."""
    directories = ("--dir", at.aeron_dir, "--archive-dir", at.archive_dir)
    return Process(verb, [sys.executable, "-m", "aeron_spark", verb, *arguments, *directories])


class Beside:
    """A recording that goes on, and viewers that are stopped but in windows with them."""

    def __init__(self, stack: ExitStack, servers: Cores, viewers: Cores) -> None:
        with on(servers):
            self._at = stack.enter_context(world(OURS))
            self._at.archive.start_recording("aeron:ipc", STREAM_ID)
            load = {"channel": "aeron:ipc", "stream": STREAM_ID, "length": MESSAGE_BYTES, "messages": ENDLESS}
            self._load = self._at.start_load("record", **load)
            stack.callback(self._load.kill)
        archive = self._at.archive
        (found,) = wait_until(archive.recordings, TIMEOUT_S, "the recording")
        self._recording_id, self._segment = found.recording_id, found.segment_file_length
        metrics, ui = free_port(), free_port()
        with on(viewers):
            self._viewers = {
                "metrics": viewer("metrics", self._at, "--listen", f"127.0.0.1:{metrics}"),
                "logs": viewer("logs", self._at, "--follow"),
                "ui": viewer("ui", self._at, "--listen", f"127.0.0.1:{ui}"),
            }
            for one in self._viewers.values():
                stack.callback(one.kill)
            page = f"http://127.0.0.1:{ui}/api/"
            self._urls = (f"http://127.0.0.1:{metrics}/metrics", f"{page}overview", f"{page}streams?start=0&count=20")
            self._asker = stack.enter_context(ThreadPoolExecutor(1))
            self._asker.submit(os.sched_setaffinity, 0, viewers).result()
        for verb in ("metrics", "ui"):
            self._viewers[verb].wait_ready(lambda verb=verb: "http://" in self._viewers[verb].stdout())  # type: ignore[misc]
        self._ask()
        self._stop()
        self._awake_s = 0.0
        self._used_s = dict.fromkeys(self._viewers, 0.0)
        self._with_cpu_s: list[float] = []
        self._without_cpu_s: list[float] = []

    def with_mb(self) -> float:
        """MB/s of a window while all look."""
        self._purge()
        before = self._core_s()
        for one in self._viewers.values():
            one.resume()
        asked = self._asker.submit(self._ask_each_second)
        mb = self._window_mb(self._with_cpu_s)
        asked.result()
        self._stop()
        self._awake_s += WINDOW_S
        for verb, used_s in self._core_s().items():
            self._used_s[verb] += used_s - before[verb]
        return mb

    def without_mb(self) -> float:
        """MB/s of a window while none looks."""
        self._purge()
        return self._window_mb(self._without_cpu_s)

    def viewers_ms_per_s(self) -> Mapping[str, float]:
        """Of core, for each second awake."""
        return {verb: round(1e3 * used_s / self._awake_s, 1) for verb, used_s in self._used_s.items()}

    def with_cpu_s(self) -> float:
        """The archive's seconds of core for a GB, of the windows in their order."""
        return self._with_cpu_s.pop(0)

    def without_cpu_s(self) -> float:
        """The same of the others."""
        return self._without_cpu_s.pop(0)

    def _purge(self) -> None:
        """Give back what was recorded, and wait until it is gone: deleting takes the archive's time."""
        archive = self._at.archive
        recorded = archive.recording_position(self._recording_id)
        assert recorded is not None, self._load.report()
        start = recorded // self._segment * self._segment
        if start > self._first_segment():
            archive.purge_segments(self._recording_id, start)
        wait_until(lambda: self._first_segment() >= start, TIMEOUT_S, "the purged files to be gone")

    def _first_segment(self) -> int:
        """Where the oldest file of the recording begins."""
        return min(int(file.stem.partition("-")[2]) for file in self._at.archive_dir.glob("*.rec"))

    def _window_mb(self, cpu_s: list[float]) -> float:
        begin_s, begin_cpu_s, begin = self._look()
        time.sleep(WINDOW_S)
        end_s, end_cpu_s, end = self._look()
        cpu_s.append((end_cpu_s - begin_cpu_s) / ((end - begin) / 1e9))
        return (end - begin) / 1e6 / (end_s - begin_s)

    def _look(self) -> tuple[float, float, int]:
        """The time, the archive's seconds of core, and what is recorded."""
        position = self._at.archive.recording_position(self._recording_id)
        assert position is not None, self._load.report()
        threads = Path(f"/proc/{self._at.process.pid}/task").iterdir()
        used_ns = sum(int((one / "schedstat").read_text("ascii").split()[0]) for one in threads)
        return time.monotonic(), used_ns / 1e9, position

    def _ask_each_second(self) -> None:
        begin_s = time.monotonic()
        for second in range(WINDOW_S):
            time.sleep(max(0.0, begin_s + second - time.monotonic()))
            self._ask()

    def _ask(self) -> None:
        for url in self._urls:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:  # noqa: S310 - our own
                text = answer.read()
            assert "/api/" not in url or "error" not in json.loads(text), text

    def _stop(self) -> None:
        for one in self._viewers.values():
            assert one.returncode is None, one.report()
            one.pause()

    def _core_s(self) -> Mapping[str, float]:
        found = tasks()
        return {verb: found[one.pid].own_s for verb, one in self._viewers.items()}


def beside() -> Iterator[Row]:
    """A recording with viewers beside it."""
    cores = sorted(os.sched_getaffinity(0))
    everywhere = frozenset(cores)
    layouts: tuple[tuple[str, Cores, Cores], ...] = (
        ("apart", frozenset(cores[:-1]), frozenset(cores[-1:])),
        ("shared", everywhere, everywhere),
    )
    for name, servers, viewers in layouts:
        with ExitStack() as stack:
            run = Beside(stack, servers, viewers)
            used: dict[str, object] = {}

            def looked_at(run: Beside = run, used: dict[str, object] = used) -> float:
                mb = run.with_mb()
                used["viewers_ms_per_s"] = run.viewers_ms_per_s()
                return mb

            config = {**SETTINGS, "servers": sorted(servers), "viewers": sorted(viewers)}
            first = measure(
                f"record_beside_viewers_{name}",
                "MB/s",
                looked_at,
                run.without_mb,
                peer_name="the same recording, nobody looking",
                target=BESIDE_TARGET,
                ours_config=config,
                peer_config=config,
                details=used,
                pairs=WINDOW_PAIRS,
                warm=False,
            )
            yield first
            yield measure(
                f"archive_cpu_beside_viewers_{name}",
                "s/GB",
                run.with_cpu_s,
                run.without_cpu_s,
                peer_name="the same recording, nobody looking",
                target=BESIDE_TARGET,
                higher_is_better=False,
                ours_config=config,
                peer_config=config,
                pairs=WINDOW_PAIRS,
                warm=False,
                runs_of=first,
            )


# -- backup ---------------------------------------------------------------------------------------------------------------


def copy_durably(source: Path, target: Path) -> None:
    """All files, in the target when this returns, whatever happens to the machine."""

    def copy(file: Path) -> None:
        sync(shutil.copyfile(file, target / file.name))

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(copy, source.iterdir()))
    sync(target)


def sync(path: Path) -> None:
    """Make a file or a folder durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def data_bytes(folder: Path) -> int:
    """Of all segments, without holes."""
    return sum(file.stat().st_blocks * 512 for file in folder.glob("*.rec"))


class Copies:
    """Copies of a live archive's folder, each into a place of its own."""

    def __init__(self, at: World) -> None:
        self._at = at
        at.archive.start_recording("aeron:ipc", STREAM_ID)
        self._incremental_s: list[float] = []
        self._full_s: list[float] = []
        self.incremental_bytes: list[int] = []

    def record(self, total: int) -> None:
        """One recording more; stopped, as its publisher ends."""
        counts = {"messages": total // MESSAGE_BYTES, "warmup": 1}
        self._at.load("record", channel="aeron:ipc", stream=STREAM_ID, length=MESSAGE_BYTES, **counts)
        archive = self._at.archive
        (last,) = archive.recordings()[-1:]
        wait_until(lambda: archive.stop_position(last.recording_id), TIMEOUT_S, "the recording's end")

    def backup_mb(self) -> float:
        """MB/s of a first backup; the next one, after a change, is timed for the other row."""
        size = data_bytes(self._at.archive_dir)
        with self._place() as place:
            full = self._back_up(place)
            self._full_s.append(full.seconds)
            self.record(int(FOLDER_BYTES * CHANGE))
            next_one = self._back_up(place)
            self._incremental_s.append(next_one.seconds)
            self.incremental_bytes.append(next_one.copied_bytes)
        return size / 1e6 / full.seconds

    def copy_mb(self) -> float:
        """MB/s of plain copying."""
        size = data_bytes(self._at.archive_dir)
        with self._place() as place:
            begin_s = time.monotonic()
            copy_durably(self._at.archive_dir, place)
            return size / 1e6 / (time.monotonic() - begin_s)

    def incremental_s(self) -> float:
        """Of the runs, in their order."""
        return self._incremental_s.pop(0)

    def full_s(self) -> float:
        """Of the runs, in their order."""
        return self._full_s.pop(0)

    def _back_up(self, place: Path) -> BackupReport:
        return backup(self._at.archive_dir, open_backup(str(place)), aeron_dir=str(self._at.aeron_dir))

    @contextmanager
    def _place(self) -> Iterator[Path]:
        """On disk; what others left to write is written first."""
        os.sync()
        with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
            yield Path(folder)


def backups() -> Iterator[Row]:
    """Of a folder in which nothing happens, and after a change."""
    settings = {**SETTINGS, "aeron.archive.segment.file.length": str(SEGMENT_BYTES)}
    side = Side(
        driver=OURS.driver,
        archive=lambda aeron_dir, archive_dir: native.archive(aeron_dir, archive_dir, settings),
    )
    with world(side) as at:
        copies = Copies(at)
        copies.record(FOLDER_BYTES)
        first = measure(
            "backup_full",
            "MB/s",
            copies.backup_mb,
            copies.copy_mb,
            peer_name=f"copying the same files durably, {WORKERS} at a time",
            target=BACKUP_TARGET,
            ours_config=settings,
            peer_config=settings,
            pairs=BACKUP_PAIRS,
        )
        yield first
        yield measure(
            "backup_incremental",
            "s",
            copies.incremental_s,
            copies.full_s,
            peer_name="the backup before it, of all",
            target=INCREMENTAL_TARGET,
            higher_is_better=False,
            ours_config=settings,
            peer_config=settings,
            details={"copied_bytes": copies.incremental_bytes, "change": CHANGE},
            pairs=BACKUP_PAIRS,
            runs_of=first,
        )


def run() -> list[Row]:
    """All rows of what an operator looks with."""
    return [row for part in (beside, backups) for row in part()]
