"""Alternating pairs: ours, peer, ours, peer, and so on, so that a machine whose speed drifts drifts for both.

A row's figure is the median over the runs; its ratio is the median of the pairs' ratios, above 1 where ours is better; its
spread is the distance of the ratios' quartiles, relative to their median. A row says how busy the machine was with other things
(`machine.py`); where that was too much, it is shown and not judged.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.bench.machine import DISTURBED, Watch

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "bench.jsonl"
PAIRS = 5
GROUP = "AERON_SPARK_BENCH_GROUP"  # of the rows that this process measures
LEAST_PAIRS = "AERON_SPARK_BENCH_PAIRS"  # of every row; `make bench PAIRS=9` sets it
# The build folder of another checkout of this tree; `make bench BEFORE=...` makes it the peer, and shows what a change cost.
BEFORE = Path(os.environ["AERON_SPARK_BENCH_BEFORE"]) if os.environ.get("AERON_SPARK_BENCH_BEFORE") else None
BEFORE_TARGET = 0.97


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the results file."""

    name: str
    unit: str
    ours: float
    peer: float
    peer_name: str
    ratio: float
    target: float | None
    runs: int
    spread: float
    ours_config: Mapping[str, object]
    peer_config: Mapping[str, object]
    machine: str
    commit: str
    details: Mapping[str, object] = field(default_factory=dict)
    failure: str = ""  # what ended the row instead of figures
    others: float = 0.0  # share of the cores that other programs took meanwhile
    group: str = ""

    def label(self) -> str:
        """Its name, and what tells it from others of the name."""
        told = {key: value for key, value in self.details.items() if key in ("partitions", "delay_ms")}
        return self.name + "".join(f" {key}={value}" for key, value in told.items())

    def is_disturbed(self) -> bool:
        """Whether other programs took so much that the figures prove nothing."""
        return self.others > DISTURBED

    def is_below(self) -> bool:
        """Whether the row misses its target: the ratio, or where there is one a share of the machine's limit."""
        limit = self.details.get("limit")
        near = isinstance(limit, dict) and limit["enough"] is not None and limit["share"] >= limit["enough"]
        is_short = self.target is not None and self.ratio < self.target and not near
        return bool(self.failure) or (is_short and not self.is_disturbed())


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What the machine can do at best: `of` measures it anew for each pair.

    Our figure times `scale`, which counts what the limit counts, meets the row's target from `share` of the limit on; where
    less is better, where the limit is at least that share of it. None: the limit is shown only.
    """

    of: Callable[[], float]
    scale: float
    share: float | None


def machine() -> str:
    """Processor, cores and kernel."""
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    cores = len(
        [1 for line in Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines() if line.startswith("processor")]
    )
    return f"{model}, {cores} cores, Linux {platform.release()}"


def commit() -> str:
    """Commit of the tree, with + where it has changes; "unknown" outside of a clone and without git."""
    if shutil.which("git") is None:
        return "unknown"
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--abbrev=10"],  # noqa: S607 - as the user's shell finds it
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"


def measure(
    name: str,
    unit: str,
    ours: Callable[[], float],
    peer: Callable[[], float],
    *,
    peer_name: str,
    target: float | Callable[[float], float] | None,
    higher_is_better: bool = True,
    ours_config: Mapping[str, object],
    peer_config: Mapping[str, object],
    details: Mapping[str, object] | None = None,
    pairs: int = PAIRS,
    limit: Limit | None = None,
    warm: bool = True,
    runs_of: Row | None = None,
) -> Row:
    """Runs the pairs, one warm-up each if `warm`, prints progress and the row, appends it to the results.

    What fails is told, too, and the rows behind it are measured all the same. A target may depend on the peer's figure.
    `details` are taken at the end: what runs may add to them. `runs_of` is the row whose runs have left this one its figures.
    """
    target = target if BEFORE is None else BEFORE_TARGET
    pairs = max(pairs, int(os.environ.get(LEAST_PAIRS, "0")))
    started = time.monotonic()
    watch = Watch()
    our_figures: list[float] = []
    peer_figures: list[float] = []
    ratios: list[float] = []
    limits: list[float] = []
    failure = ""
    try:
        if warm:
            ours(), peer()
        for pair in range(pairs):
            our_figures.append(ours())
            peer_figures.append(peer())
            limits += [limit.of()] if limit else []
            ratio = our_figures[-1] / peer_figures[-1]
            ratios.append(ratio if higher_is_better else 1 / ratio)
            print(f"  {name}: pair {pair + 1} of {pairs}, ratio {ratios[-1]:.2f}", file=sys.stderr, flush=True)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and the other rows matter
        traceback.print_exc()
        failure = f"pair {len(ratios) + 1} of {pairs}: {type(error).__name__}: {error}".splitlines()[0]
    if callable(target):
        target = None if failure else target(statistics.median(peer_figures))
    shown = dict(details or {})
    if limit and not failure:
        best = statistics.median(limits)
        share = statistics.median(our_figures) * limit.scale / best
        share = share if higher_is_better else 1 / share
        shown["limit"] = {"figure": float(f"{best:.4g}"), "share": round(share, 3), "enough": limit.share}
    middle = 0.0 if failure else statistics.median(ratios)
    quartiles = [0.0] * 3 if failure else statistics.quantiles(ratios, n=4)
    row = Row(
        name=name,
        unit=unit,
        ours=0.0 if failure else statistics.median(our_figures),
        peer=0.0 if failure else statistics.median(peer_figures),
        peer_name=peer_name,
        ratio=middle,
        target=target,
        runs=len(ratios),
        spread=0.0 if failure else (quartiles[2] - quartiles[0]) / middle,
        ours_config=ours_config,
        peer_config=peer_config,
        machine=machine(),
        commit=commit(),
        details={**shown, "seconds": round(time.monotonic() - started, 1)},
        failure=failure,
        others=runs_of.others if runs_of else round(watch.share(), 3),
        group=os.environ.get(GROUP, ""),
    )
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as results:
        results.write(json.dumps(asdict(row)) + "\n")
    print("  ".join(_cells(row)), flush=True)
    return row


def print_table(rows: list[Row]) -> None:
    """The results as people read them."""
    print(f"\n{machine()}; commit {commit()}; medians of alternating pairs, ratio above 1: ours is better")
    header = ("row", "ours", "peer", "unit", "ratio", "target", "spread", "others", "peer is")
    lines = [header, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cells(row: Row) -> tuple[str, ...]:
    """A row of the table."""
    target = "shown" if row.target is None else f"{row.target:.2f}"
    is_unjudged = row.target is not None and row.is_disturbed()
    verdict = (
        "  failed" if row.failure else "  not judged" if is_unjudged else "  below target" if row.is_below() else ""
    )
    return (
        row.label(),
        _figure(row.ours),
        _figure(row.peer),
        row.unit,
        f"{row.ratio:.2f}",
        target + verdict,
        f"{row.spread:.0%}",
        f"{row.others:.0%}" + (" disturbed" if row.is_disturbed() else ""),
        row.failure or row.peer_name + _note(row),
    )


def _note(row: Row) -> str:
    """Remarks on the figures of some rows."""
    names = ("limit", "idle_stream_ns_per_duty_cycle", "system_calls_per_gb", "memory_mb", "without_purge_ms")
    return "".join(f"; {name} {row.details[name]}" for name in names if name in row.details)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
