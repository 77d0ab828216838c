"""Every command and program of the README, run in its order in one folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
