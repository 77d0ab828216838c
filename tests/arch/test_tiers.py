"""`make test` needs what `make run` needs; what needs more is marked, and `make interop` says what to install.

Method: this test carries no mark and tries each way of the kit to something more; the command runs where nothing is.
"""

from __future__ import annotations

import itertools
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit import hosts, needs, require, small_disk, stock, stock_c, stock_sbe

ROOT = Path(__file__).parents[2]
WAYS: dict[str, Callable[[], object]] = {
    "stock Aeron in Java": stock.class_path_or_skip,
    "stock Aeron in C": stock_c.programs_or_skip,
    "the SBE reference tool": stock_sbe.class_path_or_skip,
    "a network namespace": lambda: hosts.two().__enter__(),
    "a file system of the test's own": lambda: small_disk.mounted(Path("nowhere"), "1m").__enter__(),
}


@pytest.mark.parametrize("what", WAYS)
def test_more_is_refused_without_the_mark(what: str) -> None:
    with pytest.raises(pytest.fail.Exception, match=f"^{what} .* mark this test with pytest.mark.{require.MARK}"):
        WAYS[what]()


def files_of(command: str) -> list[Path]:
    """What a command of pytest is given and does not ignore."""
    words = shlex.split(command)
    ignored = [ROOT / name for option, name in itertools.pairwise(words) if option == "--ignore"]
    given = [ROOT / word for word in words if word.split("/")[0] == "tests" and ROOT / word not in ignored]
    found = [file for path in given for file in ([path] if path.is_file() else path.rglob("test_*.py"))]
    return [file for file in found if not {*file.parents} & {*ignored}]


@pytest.mark.parametrize("ci", [{}, {"CI": "true"}], ids=["at a desk", "under CI"])
def test_the_make_targets_divide_all_tests(ci: dict[str, str]) -> None:
    """Under CI, `make test` gives them to two commands, each file to one."""
    env = {name: value for name, value in os.environ.items() if name != "CI"} | ci
    everything = sorted((ROOT / "tests").rglob("test_*.py"))
    for target, chosen in (
        ("test", f"not {require.MARK} and not more"),
        ("test-more", f"more and not {require.MARK}"),
        ("interop", require.MARK),
    ):
        command = ["make", "-n", target]
        made = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout
        commands = [line for line in made.splitlines() if "pytest" in line and f'-m "{chosen}"' in line]
        given = [file for line in commands for file in files_of(line)]
        assert sorted(given) == everything, target


def test_what_is_missing_is_said_in_one_line() -> None:
    command = [sys.executable, "-S", "-m", "tests.kit.needs"]
    done = subprocess.run(command, cwd=ROOT, env={"PATH": ""}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "apt install openjdk-17-jdk-headless maven " in line
    assert "cargo" in line
    assert done.stdout == ""


def test_ci_installs_what_is_needed() -> None:
    """But for Java and cargo, which its image has."""
    installed = (ROOT / ".ci" / "run").read_text("utf-8")
    assert all(name in installed for name in needs.PACKAGES if name not in {"openjdk-17-jdk-headless", "maven"})
