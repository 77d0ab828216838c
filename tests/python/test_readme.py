"""Every command and program of the README, run in its order in one folder; those of CONTRIBUTING name what exists."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench import figures
from tests.bench.run import GROUPS
from tests.kit import readme
from tests.mutants import tables

ROOT = Path(__file__).resolve().parents[2]
README = readme.TEXT
PAGE = (ROOT / "docs" / "performance.md").read_text("utf-8")


def activated() -> dict[str, str]:
    """The environment's programs are on the PATH, as after its activation."""
    kept = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    return {**kept, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def run(command: list[str], folder: Path, *, timeout: float = 300) -> str:
    result = subprocess.run(
        command, cwd=folder, env=activated(), capture_output=True, text=True, timeout=timeout, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def make_has(targets: list[str]) -> None:
    """In one call, as each reads the whole Makefile; it names the target that it lacks."""
    run(["make", "-n", *sorted(set(targets))], ROOT)


def test_snippets_and_commands_in_their_order(tmp_path: Path, aeron_dir: Path) -> None:
    """The programs are one: what a snippet needs, an earlier one has made."""
    assert len(readme.blocks("python")) == 4  # record, read, stream, sink
    out = run([sys.executable, "-c", readme.program(aeron_dir)], tmp_path).splitlines()
    assert [line for line in out if line.isdecimal()] == readme.COUNTS
    for line in readme.commands():
        if line.startswith("make "):  # looked up only: one of them runs this test
            run(["make", "-n", *line.split()[1:]], ROOT)
        elif line.startswith("python -m "):  # tests/python/test_demo.py runs it whole
            run(["sh", "-ec", f"{line} --help"], tmp_path)
        elif line.startswith("aeron-spark "):
            run(["sh", "-ec", line], tmp_path)
        else:  # tests/system/wheel.py installs the wheel
            assert line == "pip install 'aeron-spark[spark]'"
    assert (tmp_path / "messages.parquet").exists()


def test_figures_are_written_never_typed(tmp_path: Path) -> None:
    row = {
        "name": "udp_stream_288", "unit": "MB/s", "ours": 1234.5, "peer": 617.25, "peer_name": "stock C driver 1.52.0",
        "ratio": 2.0, "target": 2.5, "spread": 0.07, "runs": 5, "machine": "A processor, 2 cores", "commit": "abc",
        "group": "udp", "details": {}, "ours_config": {}, "peer_config": {}, "failure": "", "others": 0.02,
    }  # fmt: skip
    rows = [
        row,
        *({**row, "name": name} for name in figures.ROWS if name not in ("udp_stream_288", "record_1k")),
        {**row, "name": "udp_loss_1", "failure": "pair 1"},
        {**row, "name": "udp_loss_5", "others": 0.2},
        {
            **row,
            "name": "record_1k",
            "group": "archive",
            "details": {"limit": {"share": 0.83, "enough": 0.8, "figure": 1}},
        },
    ]
    results, readme, page = (tmp_path / name for name in ("bench.jsonl", "README.md", "performance.md"))

    def write(*rows: object) -> str:
        results.write_text("".join(f"{json.dumps(one)}\n" for one in rows), "utf-8")
        figures.main(results, readme, page)
        return page.read_text("utf-8")

    def unmarked(text: str) -> str:
        return re.sub(r"(<!-- figures).*?(?=<!-- end of figures)", r"\1", text, flags=re.DOTALL)

    readme.write_text(README, "utf-8")
    page.write_text(PAGE, "utf-8")
    for _ in range(2):
        found = write(*rows)
    text = readme.read_text("utf-8")
    assert "A processor, 2 cores; " in text
    assert (
        text.count("| UDP on loopback, messages of 288 bytes | 1,234 MB/s | 617 MB/s (C driver 1.52.0) | 2.00 |") == 1
    )
    assert text.count("| UDP round trip, median | 1,234 MB/s |") == 1
    beside = "1,234 MB/s | 617 MB/s, stock C driver 1.52.0 | 2.00 | 7% |"
    for line in (
        f"| `udp_stream_288` | {beside} target 2.5, **missed** |",
        "| `udp_loss_1` | | stock C driver 1.52.0 | | | failed |",
        f"| `udp_loss_5` | {beside} target 2.5, not judged, others 20% |",
        f"| `record_1k` | {beside} target 2.5, 83% of the machine's limit |",
    ):
        assert found.count(line) == 1, line
    assert (unmarked(text), unmarked(found)) == (unmarked(README), unmarked(PAGE))
    # A group that was not run keeps its figures, and so does the README without all of its rows.
    again = write({**rows[-1], "ours": 9.0})
    assert "| `udp_stream_288` | 1,234 MB/s |" in again
    assert "| `record_1k` | 9 MB/s |" in again
    assert readme.read_text("utf-8") == text
    with pytest.raises(SystemExit, match="without BEFORE"):
        write({**row, "peer_name": "driver of ../before/build/native"})


def test_each_group_of_benchmarks_has_its_place_on_the_page() -> None:
    assert re.findall(r"<!-- figures of ([a-z-]+):", PAGE) == list(GROUPS)


def test_commands_in_the_text_exist() -> None:
    text = README
    for path in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (ROOT / path).exists(), path
    for extra in re.findall(r"aeron-spark\[(\w+)\]", text):
        assert f"\n{extra} = [" in (ROOT / "pyproject.toml").read_text("utf-8"), extra
    make_has(re.findall(r"`make ([a-z-]+)", text))
    for verb in set(re.findall(r"`aeron-spark ([a-z]+(?: run)?)`", text)):
        subprocess.run(
            [sys.executable, "-m", "aeron_spark.cli", *verb.split(), "--help"], check=True, capture_output=True
        )
    for name in re.findall(r"`([A-Za-z./]+(?:/|\.md|LICENSE))`", text):
        assert (ROOT / name).exists(), name


def test_commands_of_contributing_exist() -> None:
    """They build, or run for minutes: here, that each target, test, file and mutant that they name is there."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    lines = [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    makes = [line.split()[1:] for line in lines if line.startswith("make ")]
    assert {"build", "lint", "test", "sim", "mutants", "release"} <= {words[0] for words in makes}
    make_has([*re.findall(r"`make ([a-z-]+)", text), *(word for words in makes for word in words if "=" not in word)])
    others = "\n".join(line for line in lines if not line.startswith("make "))
    for room, name in re.findall(r"\bc_([a-z]+)_(test_\w+)", text):
        assert (ROOT / "tests/c" / room / f"{name}.c").exists(), name
    for path in re.findall(r"tests/[\w/]+\.py", others):
        assert (ROOT / path).exists(), path
    for option in re.findall(r"-D(\w+)", others):
        assert option in (ROOT / "CMakeLists.txt").read_text("utf-8"), option
    headers = "".join(path.read_text("utf-8") for path in (ROOT / "driver_native/src").rglob("*.h"))
    for function in re.findall(r"break (\w+)'", others):
        assert function in headers
    known = {mutant.name for mutant in tables.load()}
    assert known.issuperset(re.findall(r"NAMES=(\S+)", others))
