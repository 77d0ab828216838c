"""The scripts of `aeron-spark completion`, in the shells themselves."""

from __future__ import annotations

import os
import pty
import select
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from aeron_spark.cli.__main__ import main

LINES = [
    ("aeron-spark arch", ["archive"]),
    ("aeron-spark archive pur", ["purge", "purge-segments"]),
    ("aeron-spark archive truncate 3 --t", ["--timeout", "--to"]),
    ("aeron-spark archive replay 3 --form ", ["hex", "json", "lines", "raw"]),
    ("aeron-spark archive index re", ["rebuild"]),
    ("aeron-spark archive list rec", ["recordings"]),
    ("aeron-spark completion ", ["bash", "fish", "zsh"]),
]


@pytest.fixture
def script(tmp_path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> Path:
    """Of the shell that the test's name ends in, beside a folder `recordings`."""
    (tmp_path / "recordings").mkdir()
    shell = request.node.originalname.rpartition("_")[2]
    assert main(["completion", shell]) == 0
    path = tmp_path / ("_aeron-spark" if shell == "zsh" else f"script.{shell}")
    path.write_text(capsys.readouterr().out, "utf-8")
    return path


@pytest.mark.parametrize(("line", "words"), [*LINES, ("aeron-spark archive replay 3 --form=h", ["hex"])])
def test_bash(script: Path, line: str, words: list[str]) -> None:
    # As Readline splits it: "=" is a word of its own.
    given = shlex.split(line.replace("=", " = ")) + ([""] if line.endswith(" ") else [])
    program = (
        f"source {script}; COMP_WORDS=({' '.join(map(shlex.quote, given))}); COMP_CWORD={len(given) - 1}; "
        '_aeron_spark; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", program],  # noqa: S607 - as the user's PATH finds it
        cwd=script.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (sorted(done.stdout.split()), done.stderr) == (words, "")


@pytest.mark.interop
@pytest.mark.parametrize(("line", "words"), LINES)
def test_fish(script: Path, line: str, words: list[str]) -> None:
    program = f"source {script}; complete -C {shlex.quote(line)}"
    environment = {**os.environ, "HOME": str(script.parent)}
    done = subprocess.run(
        ["fish", "--no-config", "-c", program],  # noqa: S607
        cwd=script.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(one.partition("\t")[0].rstrip("/") for one in done.stdout.splitlines()) == words


@pytest.mark.interop
def test_zsh(script: Path) -> None:
    """Zsh completes at a terminal only: what it types for the one word that fits."""
    at = [(line, words[0]) for line, words in LINES if len(words) == 1]
    command = ["zsh", "-f", "-i"]
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(script.parent)
        os.environ |= {"TERM": "dumb", "PS1": "> ", "HOME": str(script.parent)}
        os.execvp(command[0], command)  # noqa: S606
    os.write(
        terminal,
        f"fpath=({script.parent} $fpath); autoload -U compinit; compinit -u -D; echo ready-$((40+2))\n".encode(),
    )
    _read_until(terminal, "ready-42")
    for line, word in at:
        os.write(terminal, f"{line}\t".encode())
        _read_until(terminal, line[: line.rindex(" ") + 1] + word)
        os.write(terminal, b"\x15")  # the line is not run
    os.close(terminal)
    os.waitpid(process, 0)


def _read_until(terminal: int, text: str) -> None:
    seen = ""
    deadline = time.monotonic() + 60
    while text not in seen:
        assert select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0], seen
        seen += os.read(terminal, 65536).decode("utf-8", "replace")
