"""How `make bench` judges: what other programs took of the machine, and rows that they disturbed. Method: a /proc of files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.bench import jvm_rows, pairs
from tests.bench.machine import DISTURBED, Watch
from tests.kit import require
from tests.spark.session import JAR

US, CHILD, OTHER, THREAD = 10, 11, 20, 30
TICKS = os.sysconf("SC_CLK_TCK")


def test_what_the_benchmarks_give_to_the_jvm_compiles() -> None:
    """It uses the engine's own vectors, which change."""
    if not JAR:
        require.missing("the jar of Spark's JVM, which `make build` makes where there is a JDK of Java 17 or newer")
    assert jvm_rows.jars().keys() == {"spark__jars"}


def write(proc: Path, tasks: dict[int, tuple[int, float, float]], *, stolen_s: float = 0) -> None:
    """Seconds that the hypervisor took, and of each process by id: its parent, its own and its ended children's."""
    shutil.rmtree(proc, ignore_errors=True)
    proc.mkdir()
    (proc / "stat").write_text(f"cpu  9999 0 0 7 7 7 7 {round(stolen_s * TICKS)} 0 0\ncpu0 9999\n", "ascii")
    for pid, (parent, own, ended) in tasks.items():
        (proc / str(pid)).mkdir()
        fields = ["S", parent, *[0] * 9, round(own * TICKS), 0, round(ended * TICKS), 0]
        (proc / str(pid) / "stat").write_text(f"{pid} (a ) b) {' '.join(map(str, fields))} 0 0\n", "ascii")


CALM = {1: (0, 2, 3), US: (1, 5, 0), CHILD: (US, 100, 0), OTHER: (1, 20, 0), THREAD: (2, 3, 0)}


@pytest.mark.parametrize(
    ("changes", "stolen_s", "others_s"),
    [
        ({US: (1, 9, 2), CHILD: (US, 111, 4), THREAD: (2, 6, 0)}, 0, 0),
        ({OTHER: (1, 28, 0)}, 0, 8),
        ({OTHER: (1, 20, 8)}, 0, 8),  # a program that it began and waited for
        ({OTHER: None, 1: (0, 2, 31)}, 0, 8),
        ({21: (1, 8, 0)}, 0, 8),
        ({CHILD: None, US: (1, 5, 100)}, 0, 0),
        ({CHILD: None}, 0, 0),  # its parent ignored SIGCHLD, and got no time of it
        ({}, 8, 8),
    ],
)
def test_others_are_who_is_neither_ours_nor_the_kernels(
    changes: dict[int, tuple[int, float, float] | None], stolen_s: float, others_s: float, tmp_path: Path
) -> None:
    proc = tmp_path / "proc"
    write(proc, CALM)
    watch = Watch(proc, US)
    write(proc, {pid: task for pid, task in {**CALM, **changes}.items() if task}, stolen_s=stolen_s)
    cores = os.cpu_count() or 1
    unsure = 2 / TICKS * cores
    assert watch.share(elapsed_s=40) == pytest.approx(max(0, others_s - unsure) / 40 / cores)


def row(**changes: object) -> pairs.Row:
    plain: dict[str, object] = {
        "name": "a", "unit": "s", "ours": 1.0, "peer": 1.0, "peer_name": "stock", "ratio": 1.0, "target": 2.0, "runs": 5,
        "spread": 0.0, "ours_config": {}, "peer_config": {}, "machine": "", "commit": "",
    }  # fmt: skip
    return pairs.Row(**{**plain, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "is_below", "shown"),
    [
        ({}, True, "below target"),
        ({"ratio": 2.0}, False, ""),
        ({"others": 2 * DISTURBED}, False, "not judged"),
        ({"others": 2 * DISTURBED, "ratio": 9.0}, False, "not judged"),
        ({"others": 2 * DISTURBED, "failure": "pair 1"}, True, "failed"),
        ({"others": DISTURBED}, True, "below target"),
    ],
)
def test_a_disturbed_row_is_not_judged(
    changes: dict[str, object], is_below: bool, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = row(**changes)
    assert made.is_below() == is_below
    pairs.print_table([made])
    line = capsys.readouterr().out.splitlines()[-1]
    assert all((text in line) == (text == shown) for text in ("below target", "not judged", "failed"))
    assert ("disturbed" in line) == made.is_disturbed()


def test_a_row_says_how_busy_the_machine_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "RESULTS", tmp_path / "bench.jsonl")
    monkeypatch.setattr(Watch, "share", lambda _self: 0.25)

    def measured(before: pairs.Row | None = None) -> pairs.Row:
        runs = (lambda: 1.0, lambda: 1.0)
        return pairs.measure("a", "s", *runs, peer_name="b", target=0.5, ours_config={}, peer_config={}, runs_of=before)

    assert measured().others == 0.25
    assert measured(row(others=0.5)).others == 0.5, "its figures are of that row's runs"
    assert '"others": 0.25' in (tmp_path / "bench.jsonl").read_text("utf-8")


def test_a_machine_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pairs.commit() == "unknown"
