"""Timed replay at a million messages a second over IPC, to an archive that records it; and the merge of many recordings.

The first writes the picture of docs/how-to/replay-in-time.md; its peer is the error that is permitted. The second compares the
order of 10 million messages of 100 recordings with a stable sort of them all.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from aeron_spark.client import Client
from aeron_spark.tables import scan
from aeron_spark.tables.replay import Replay, Summary
from aeron_spark.testing import RecordedFolder, Servers, wait_until
from aeron_spark.timed import Spread
from tests.bench.pairs import ROOT, Row, measure

PICTURE = ROOT / "docs" / "how-to" / "replay-in-time.svg"
RECORDINGS = 4
MESSAGES = 5_000_000
LENGTH = 100
PERMITTED_US = 50.0
RATE = 1_000_000
MERGED, MANY = 10_000_000, 100
STREAM = 2000


def run() -> list[Row]:
    """The rows of group `replay`."""
    return [*timed_rows(), merged_row()]


def merged_row() -> Row:
    """The merge beside a stable sort in memory; they must agree."""
    rng = np.random.default_rng(7)
    each = MERGED // MANY
    with Servers(settings={"aeron.archive.segment.file.length": "16m"}) as servers:
        folder = RecordedFolder(servers)
        for number in range(MANY):
            # Recordings of different rates, with many equal times.
            times = 10**18 + np.sort(rng.integers(0, 5_000_000 // (1 + number % 7), each)) * 1000
            values = pa.array(np.arange(each) * MANY + number).view(pa.binary(8))
            folder.write(values, reserved_values=times, channel="aeron:ipc?term-length=8m")  # type: ignore[arg-type]
        messages = scan(
            folder.path, timestamp="reserved(ns)", columns=["recording_id", "position", "reserved_value", "value"]
        )

        def merged() -> pa.Table:
            with messages.by_time() as found:
                return pa.Table.from_batches(list(found), found.schema)

        def in_memory() -> pa.Table:
            table = messages.to_table().combine_chunks()
            return table.take(pa.array(np.argsort(table["reserved_value"].to_numpy(), kind="stable")))

        if not merged().equals(in_memory()):
            raise AssertionError("the merge is not the stable sort")
        return measure(
            "merge_100_recordings",
            "s",
            lambda: _seconds(merged),
            lambda: _seconds(in_memory),
            peer_name="reading all, and a stable sort",
            target=None,
            higher_is_better=False,
            ours_config={"messages": MERGED, "recordings": MANY},
            peer_config={},
        )


def _seconds(take: Callable[[], object]) -> float:
    started = time.perf_counter()
    take()
    return time.perf_counter() - started


def timed_rows() -> list[Row]:
    """The error of the intervals, and the picture of the last run."""
    with Servers() as servers:
        folder = RecordedFolder(servers)
        each = MESSAGES // RECORDINGS
        for number in range(RECORDINGS):
            times = 10**18 + np.arange(each) * (1000 * RECORDINGS) + number * 1000
            values = pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(LENGTH), each, [None, pa.py_buffer(bytes(LENGTH * each))]
            )
            folder.write(values, reserved_values=times, channel="aeron:ipc?term-length=64m")  # type: ignore[arg-type]
        found: list[Summary] = []

        def p99_us() -> float:
            found.append(replayed(servers, folder.path))
            return (found[-1].errors.below_ns(0.99) or 0) / 1000

        error = measure(
            "replay_interval_error_p99",
            "us",
            p99_us,
            lambda: PERMITTED_US,
            peer_name="permitted",
            target=1.0,
            higher_is_better=False,
            ours_config={"messages": MESSAGES, "length": LENGTH, "recordings": RECORDINGS, "rate": RATE},
            peer_config={},
        )
        # A replay that falls behind has small errors, too: it publishes without waits. So its rate counts as well.
        rates = iter([one.messages / one.seconds for one in found])
        rate = measure(
            "replay_rate",
            "1/s",
            lambda: next(rates),
            lambda: RATE,
            peer_name="asked",
            target=0.95,
            ours_config={"messages": MESSAGES, "length": LENGTH, "recordings": RECORDINGS},
            peer_config={},
        )
    PICTURE.write_text(picture(found[-1]), "utf-8")
    return [error, rate]


def replayed(servers: Servers, path: Path) -> Summary:
    """One replay of all, as fast as it was, while the archive records it."""
    messages = scan(path, list(range(RECORDINGS)), timestamp="reserved(ns)")
    archive = servers.archive
    subscription = archive.start_recording("aeron:ipc", STREAM)
    with Client(servers.aeron_dir) as client, client.add_exclusive_publication("aeron:ipc", STREAM) as publication:
        publication.wait_connected(20)
        summary = Replay(messages, lambda _: publication).run()
        recording_id = archive.wait_recording("", STREAM, publication.session_id)
        archive.wait_position(recording_id, publication.position, timeout=60)
    wait_until(lambda: archive.stop_position(recording_id) is not None, 60, "the recording to stop")
    archive.stop_recording_subscription(subscription)
    archive.purge_recording(recording_id)
    return summary


# -- the picture -------------------------------------------------------------------------------------------------------------

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 720, 280, 84, 48, 44
_FIRST, _LAST = 4, 31  # 16 ns to 2 s
_DECADES = 8
_STYLE = (
    "<style>text{font:12px sans-serif;fill:#555}.grid{stroke:#ccc}.errors{fill:#2a6fbb}.late{fill:#e08a2e}</style>"
    '<rect width="100%" height="100%" fill="#fff"/>'
)


def picture(summary: Summary) -> str:
    """Both histograms, a bar for each power of two; both axes are logarithmic."""
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">', _STYLE]
    tall, step = _HEIGHT - _TOP - _BOTTOM, (_WIDTH - _LEFT - 10) / (_LAST - _FIRST)
    floor = _HEIGHT - _BOTTOM
    for decade in range(0, _DECADES, 1):
        y = floor - tall * decade / (_DECADES - 1)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{y:.0f}" y2="{y:.0f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{10**decade:,}</text>')
    for octave in range(_FIRST, _LAST, 3):
        x = _LEFT + (octave - _FIRST) * step
        parts.append(f'<text x="{x:.0f}" y="{floor + 16}" text-anchor="middle">{_length(2**octave)}</text>')
    for number, (name, spread) in enumerate((("errors", summary.errors), ("late", summary.lateness))):
        for at, count in enumerate(octaves(spread)):
            if count:
                high = tall * math.log10(count) / (_DECADES - 1) + 1
                x = _LEFT + (at + 0.1 + number * 0.4) * step
                place = f'x="{x:.1f}" y="{floor - high:.1f}" width="{step * 0.4:.1f}" height="{high:.1f}"'
                parts.append(f'<rect class="{name}" {place}/>')
        words = ("error of the interval to the message before", "lateness of the message")[number]
        p99 = _length(spread.below_ns(0.99) or 0)
        y = 18 + number * 16
        parts.append(f'<rect class="{name}" x="{_LEFT}" y="{y - 9}" width="10" height="10"/>')
        parts.append(f'<text x="{_LEFT + 16}" y="{y}">{words}: 99 % below {p99}</text>')
    words = f"messages; {RATE:,} a second were asked for, {summary.messages / summary.seconds:,.0f} were published"
    parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{words}</text>')
    return "\n".join([*parts, "</svg>\n"])


def octaves(spread: Spread) -> Sequence[int]:
    """Counts by powers of two; the first and the last have all that are beyond."""
    found = [0] * (_LAST - _FIRST)
    for one in spread.bins:
        at = max(one.from_ns, 1).bit_length() - 1 - _FIRST
        found[min(max(at, 0), len(found) - 1)] += one.count
    return found


def _length(ns: int) -> str:
    for unit, name in ((10**9, "s"), (10**6, "ms"), (10**3, "us")):
        if ns >= unit:
            return f"{ns / unit:.0f} {name}" if ns >= 100 * unit else f"{ns / unit:.2g} {name}"
    return f"{ns} ns"
