"""What `make` says while it installs and builds: `aeron_spark/_native/build_steps.py`, which is no part of the package."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "aeron_spark" / "_native" / "build_steps.py"
PIP = r"""
Collecting cmake
  Downloading cmake-4.1.2-py3-none-manylinux_2_17_x86_64.whl (28.9 MB)
Requirement already satisfied: wheel in ./lib
Collecting ninja
  Downloading https://index/packages/ninja-1.13.0-py3-none-any.whl (180 kB)
  Using cached numpy-2.3.4-cp311-cp311-manylinux_2_28_x86_64.whl (16.6 MB)
  Downloading pyspark-4.2.0.tar.gz (434.2 MB)
  Building wheel for pyspark (setup.py): started
  Building wheel for pyspark (setup.py): still running...
  Building editable for aeron-spark (pyproject.toml): started
  Building editable for aeron-spark (pyproject.toml): finished with status 'done'
Installing collected packages: cmake, ninja, pyspark
Installing collected packages: aeron-spark
Successfully installed cmake-4.1.2
"""


def steps(*command: str, begun: float | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-I",
            str(SCRIPT),
            str(time.time() if begun is None else begun),
            "installing the tools",
            *command,
        ],
        capture_output=True,
        text=True,
        check=False,
    )


def test_steps_of_pip_in_plain_words() -> None:
    done = steps(sys.executable, "-c", f"print({PIP!r})", begun=time.time() - 75)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [re.fullmatch(r"\[ *(\d+) s\] (.*)", line) for line in done.stdout.splitlines()]
    assert all(line is not None and int(line[1]) >= 75 for line in lines)
    assert [line[2] for line in lines if line] == [
        "installing the tools",
        "fetching cmake 4.1.2, 28.9 MB",
        "taking from pip's cache numpy 2.3.4, 16.6 MB",
        "fetching pyspark 4.2.0, 434.2 MB",
        "building the package pyspark",
        "building aeron_spark and its C code",
        "unpacking 3 packages",
        "unpacking aeron-spark",
    ]


def test_a_step_that_fails_shows_what_the_command_said() -> None:
    done = steps(sys.executable, "-c", "import sys; print('one'); print('two', file=sys.stderr); sys.exit(3)")
    assert done.returncode == 3
    assert sorted(done.stderr.splitlines()) == ["one", "two"]


def test_a_long_step_says_that_it_goes_on(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script = runpy.run_path(str(SCRIPT))
    script["run"].__globals__["STILL_S"] = 0.01
    # The command goes on, and prints what is no step, until that was said.
    gate = tmp_path / "gate"
    tell, told = sys.stdout.write, []

    def write(text: str) -> int:
        told.append(text)
        if "still" in text:
            gate.touch()
        return tell(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.stdout, "write", write)
        waiting = f"import pathlib\nwhile not pathlib.Path({str(gate)!r}).exists(): print('satisfied', flush=True)"
        assert script["run"](time.time(), "waiting", [sys.executable, "-c", waiting]) == 0
    assert "still waiting" in "".join(told)


def test_nothing_that_takes_long_is_silent_in_the_makefile() -> None:
    """Each pip, and each build without output, runs through the program that prints its steps."""
    text = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    recipes = [line for line in text.splitlines() if line.startswith("\t")]
    long = [line for line in recipes if re.search(r"PIP_INSTALL|/pip |venv \.venv|cmake --build .*target sim", line)]
    assert len(long) >= 7
    assert [line for line in long if "$(STEP)" not in line] == []
    assert not re.search(r"pip\b.* -q\b", text)
