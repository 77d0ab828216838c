"""Each example that needs no Spark runs alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import ports

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("[0-9]*.py"))


@pytest.mark.parametrize(
    "example", [path for path in EXAMPLES if "pyspark" not in path.read_text("utf-8")], ids=lambda path: path.name
)
def test_example(example: Path, tmp_path: Path) -> None:
    program = tmp_path / example.name
    program.write_text(ports.own(example.read_text("utf-8")), "utf-8")
    result = subprocess.run(
        [sys.executable, "-W", "error", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
    assert " messages" in result.stdout
    assert result.stderr == ""
