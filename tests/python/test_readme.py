"""Every command and program of the README, run in its order in one folder; those of CONTRIBUTING name what exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants import tables

ROOT = Path(__file__).resolve().parents[2]
BLOCKS: list[tuple[str, str]] = re.findall(
    r"```(sh|python)\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


@pytest.mark.parametrize("index", range(len(BLOCKS)))
def test_block(index: int, folder: Path, aeron_dir: Path) -> None:
    language, text = BLOCKS[index]
    text = text.replace("/dev/shm/aeron-example", str(aeron_dir))  # noqa: S108
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"},
        # The activated environment.
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    commands = (
        [["sh", "-ec", line] for line in text.splitlines()] if language == "sh" else [[sys.executable, "-c", text]]
    )
    for command in commands:
        # The make targets are looked up only: one of them runs this test.
        if command[-1].startswith("make "):
            command = ["make", "-n", *command[-1].split()[1:]]  # noqa: PLW2901
        where = ROOT if command[0] == "make" else folder
        result = subprocess.run(
            command, cwd=where, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert result.returncode == 0, result.stdout + result.stderr
        if "archive list" in command[-1]:
            assert "stopped" in result.stdout
        if "num_rows" in command[-1]:
            assert result.stdout == "100000\n"


def test_commands_in_the_text_exist() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    for target in set(re.findall(r"`make ([a-z]+)", text)):
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)  # noqa: S607
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
    assert {"build", "lint", "test", "sim", "mutants", "wheel"} <= {words[0] for words in makes}
    for words in makes:
        subprocess.run(["make", "-n", *words], cwd=ROOT, check=True, capture_output=True)  # noqa: S607
    for target in set(re.findall(r"`make ([a-z-]+)", text)):
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)  # noqa: S607
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
