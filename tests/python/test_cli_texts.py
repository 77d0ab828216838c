"""What the console command says to a person: sizes, rates, times, and what is wrong with a command line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from aeron_spark.cli.__main__ import main
from aeron_spark.cli.common import print_json, utc_time
from aeron_spark.cli.progress import Progress, Work, number, size
from tests.kit import native


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"), (0.25, "0.2 bytes"), (1, "1 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (24_576, "24.6 kB"),
        (1e6, "1.0 MB"), (1_234_567_890, "1,234.6 MB"),
    ],
)  # fmt: skip
def test_sizes_have_a_unit_in_which_there_is_something_to_see(count: float, text: str) -> None:
    assert size(count) == text


def test_little_is_not_nothing() -> None:
    assert (number(0), number(0.3), number(3.0), number(12.4), number(12_345)) == ("0", "0.3", "3", "12", "12,345")
    few = Progress("received")
    few.messages, few.bytes = 3, 120
    few._started -= 10
    assert "0.3 messages and " in few.summary()
    assert "bytes a second" in few.summary()
    slow = Work("copied", 24_576)
    slow.bytes = 2048
    assert slow.line(slow._started + 2) == "copied: 2.0 kB of 24.6 kB, 1.0 kB a second, 0:00:22 left"


def test_the_last_line_of_a_progress_is_its_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    progress = Progress("received")
    progress.add(3, 120)
    progress.end()
    assert capsys.readouterr().err.startswith("\r3 messages received, 120 bytes in ")


@pytest.mark.parametrize(
    ("arguments", "usage", "words"),
    [
        (["stat", "--jsn"], "usage: aeron-spark stat ", "--jsn; did you mean --json?"),
        (["archive", "list", "x", "--dri", "y"], "usage: aeron-spark archive list ", "--dri y; did you mean --dir?"),
        (
            ["sbe", "decode", "--schema", "x", "y", "--frame=z"],
            "usage: aeron-spark sbe decode ",
            "did you mean --framing?",
        ),
        (["archive", "list", "x", "y"], "usage: aeron-spark archive list ", "unrecognized arguments: y"),
        (["subscrib"], "usage: aeron-spark ", "there is no 'subscrib', there are driver, archive, "),
        (["subscrib"], "usage: aeron-spark ", "did you mean subscribe?"),
        (["archive", "lsit"], "usage: aeron-spark archive ", "did you mean list?"),
        (["sbe", "decod"], "usage: aeron-spark sbe ", "did you mean decode?"),
    ],
)
def test_a_wrong_word_is_told_by_the_verb_it_is_wrong_for(
    capsys: pytest.CaptureFixture[str], arguments: list[str], usage: str, words: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith(usage)
    assert words in told


def test_times_are_iso_8601_in_utc(capsys: pytest.CaptureFixture[str]) -> None:
    assert utc_time(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    assert utc_time(1_700_000_000_000_000_007, 10**9) == "2023-11-14T22:13:20.000000007Z"
    assert utc_time(2**63 - 1) == f"{2**63 - 1} ms since 1970"
    print_json({"count": 1, "first_ms": 0, "stop_timestamp_ms": None, "client_liveness_timeout_ns": 10})
    assert json.loads(capsys.readouterr().out) == {
        "count": 1, "first_ms": 0, "first": "1970-01-01T00:00:00.000Z", "stop_timestamp_ms": None, "stop_timestamp": None,
        "client_liveness_timeout_ns": 10,
    }  # fmt: skip


def test_a_failure_shows_the_bytes_of_others_and_the_terminal_obeys_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = tmp_path / "x\x1b]0;owned\x07\x9b\naeron-spark: all is well"
    assert main(["stat", "--dir", str(name)]) == 1
    told = capsys.readouterr().err
    assert "x\\u001b]0;owned\\u0007\\u009b\n  aeron-spark: all is well" in told
    assert all(line.isprintable() for line in told.splitlines())


@pytest.mark.parametrize("program", ["aeron-spark-driver", "aeron-spark-archive"])
def test_servers_tell_their_version(program: str) -> None:
    path = str(native.executable(program))
    told = {
        flag: subprocess.run([path, flag], capture_output=True, text=True, check=True).stdout
        for flag in ("-v", "--version")
    }
    assert "<aeron_spark version=" in told["--version"]
    assert told["--version"] == told["-v"]
    wrong = subprocess.run([path, "--versoin"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("unknown option --versoin\nusage: ")
