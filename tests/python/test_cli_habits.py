"""Habits that every verb of `aeron-spark` has, found by walking the tree of its parsers: a new verb has them, or fails here.

`WHOLE` has a command line of each verb that its parser takes; a verb that is not in it fails.
"""

from __future__ import annotations

import argparse
import functools
import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from aeron_spark import Client
from aeron_spark.cli import publish, subscribe
from aeron_spark.cli.__main__ import main, parser
from aeron_spark.cli.completion import commands
from aeron_spark.cli.parser import EXIT_CODES

STREAM = "--channel aeron:ipc --stream 1001"
#: Of a folder, FOLDER, which needs no running archive.
OF_FOLDER = {
    "cat": "FOLDER",
    "grep": "pattern FOLDER",
    "archive list": "FOLDER",
    "archive describe": "FOLDER",
    "archive describe-all": "FOLDER",
    "archive verify": "FOLDER",
    "archive checksum": "FOLDER --checksum crc-32",
    "archive compact": "FOLDER",
    "archive delete-orphans": "FOLDER",
    "archive migrate": "FOLDER",
    "archive mark-invalid": "FOLDER 0",
    "archive mark-valid": "FOLDER 0",
    "archive count-entries": "FOLDER",
    "archive pid": "FOLDER",
    "archive errors": "FOLDER",
    "archive dump": "FOLDER",
    "archive export": "FOLDER --out -  --format jsonl",
    "archive retain": "FOLDER --older-than 7d",
    "archive backup": "FOLDER DEST",
    "archive time": "FOLDER 0 2026-11-20T09:00",
    "archive index describe": "FOLDER",
    "archive index rebuild": "FOLDER",
}
#: Of a driver, or of the archive beside it, in the directory DIR.
OF_DRIVER = {
    "archive record": f"--dir DIR {STREAM}",
    "archive replay": "--dir DIR 0",
    "archive start": f"--dir DIR {STREAM}",
    "archive stop": f"--dir DIR {STREAM}",
    "archive stop-replay": "--dir DIR 0",
    "archive truncate": "--dir DIR 0 --to 64",
    "archive purge": "--dir DIR 0",
    "archive purge-segments": "--dir DIR 0 --to 65536",
    "archive detach": "--dir DIR 0 --to 65536",
    "archive delete-detached": "--dir DIR 0",
    "archive attach": "--dir DIR 0",
    "archive replicate": "--dir DIR 0 --source aeron:udp?endpoint=localhost:8010",
    "archive update-channel": "--dir DIR 0 aeron:ipc",
    "archive migrate-segments": "--dir DIR 0 1",
    "stat": "--dir DIR",
    "errors": "--dir DIR",
    "logs": "--dir DIR",
    "loss": "--dir DIR",
    "streams": "--dir DIR",
    "backlog": "--dir DIR",
    "top": "--dir DIR --once",
    "publish": f"--dir DIR {STREAM}",
    "subscribe": f"--dir DIR {STREAM}",
}
#: Of a schema, SCHEMA.
OF_SCHEMA = {"sbe check": "SCHEMA", "sbe decode": "--schema SCHEMA payload", "sbe wireshark": "SCHEMA"}
#: These print no answer of their own: four become servers, one prints a line for a file, the last a script.
WITHOUT_JSON = {
    "driver": "",
    "archive run": "--archive-dir FOLDER",
    "metrics": "--dir DIR",
    "ui": "--dir DIR",
    "archive user": "--allow all alice",
    "completion": "bash",
}
#: Of a capture, CAPTURE, to a folder.
OF_CAPTURE = {"archive import": "CAPTURE FOLDER"}
WHOLE = {
    **OF_CAPTURE,
    **OF_FOLDER,
    **OF_DRIVER,
    **OF_SCHEMA,
    **WITHOUT_JSON,
    "doctor": "",
    "archive restore": "DEST FOLDER",
}
#: Prints JSON lines anyway, or a program.
JSON_ALWAYS = {"sbe decode", "sbe wireshark"}

PARSER = parser()
#: By their own names; an alias is the same verb.
VERBS = {
    verb.prog.removeprefix("aeron-spark").strip(): verb
    for _, verb in commands(PARSER)
    if not any(isinstance(action, argparse._SubParsersAction) for action in verb._actions)
}


def line(verb: str, **values: object) -> list[str]:
    """The words of a whole command line, with these values in it."""
    text = f"{verb} {WHOLE[verb]}"
    for name, value in values.items():
        text = text.replace(name, str(value))
    return shlex.split(text)


def long_options(verb: argparse.ArgumentParser) -> Iterator[str]:
    return (flag for action in verb._actions for flag in action.option_strings if flag.startswith("--"))


def test_every_verb_is_known_here() -> None:
    assert VERBS.keys() == WHOLE.keys()


def test_every_verb_shows_examples_and_its_exit_codes() -> None:
    for path, verb in commands(PARSER):
        text = " ".join(verb.format_help().split())
        codes = "exit codes: 0 found" if path == "aeron-spark grep" else EXIT_CODES
        assert codes.lower() in text.lower(), path
        if path != "aeron-spark":
            assert "examples: " in text, path


def command_of(example: str) -> list[str]:
    """The words of our command in a line of the shell, which may have others beside it."""
    reader = shlex.shlex(example, posix=True, punctuation_chars=True)
    reader.whitespace_split, reader.commenters = True, "#"
    commands_of_line: list[list[str]] = [[]]
    for word in reader:
        if set(word) <= set("();<>|&"):
            commands_of_line.append([])
        else:
            commands_of_line[-1].append(word)
    ours = next(words for words in commands_of_line if "aeron-spark" in words)
    return ours[ours.index("aeron-spark") :]


def test_examples_are_command_lines() -> None:
    """Each is of its own verb, or of one of its verbs, and the parser takes it."""
    for prog, epilog in {
        verb.prog: verb.epilog or "" for path, verb in commands(PARSER) if path != "aeron-spark"
    }.items():
        _, *examples = epilog.partition("\n\n")[0].replace("\\\n", " ").splitlines()
        assert examples, prog
        for example in examples:
            words = command_of(example)
            assert shlex.join(words).startswith(prog), example
            PARSER.parse_args(words[1:])


@pytest.mark.parametrize("verb", VERBS)
def test_data_is_also_json(verb: str) -> None:
    assert ("--json" in long_options(VERBS[verb])) == (verb not in WITHOUT_JSON.keys() | JSON_ALWAYS)


@pytest.mark.parametrize("verb", VERBS)
def test_a_misspelt_option_names_the_right_one(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    for option in long_options(VERBS[verb]):
        wrong = option[:-2] + option[-1] + option[-2] if option[-1] != option[-2] else f"{option[:-1]}x"
        with pytest.raises(SystemExit) as ended:
            PARSER.parse_args([*line(verb), wrong])
        assert ended.value.code == 2
        told = capsys.readouterr().err
        assert told.startswith(f"usage: aeron-spark {verb} ")
        assert "did you mean --" in told, wrong


def test_a_misspelt_verb_names_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    for path in VERBS:
        *above, name = path.split()
        with pytest.raises(SystemExit) as ended:
            PARSER.parse_args([*above, f"{name}x"])
        assert ended.value.code == 2
        assert "did you mean " in capsys.readouterr().err, path


def test_a_position_where_something_ends_or_starts_is_named_to() -> None:
    named = {
        (path, *action.option_strings)
        for path, verb in VERBS.items()
        for action in verb._actions
        if action.metavar == "POSITION" and action.option_strings
    }
    assert {names[1] for names in named if names[0] != "archive time"} == {"--from", "--to"}


def test_a_missing_value_is_wrong_usage() -> None:
    for path, verb in VERBS.items():
        # argparse calls a positional of any number required.
        if any(action.required and action.nargs not in ("*", "?") for action in verb._actions):
            with pytest.raises(SystemExit) as ended:
                PARSER.parse_args(path.split())
            assert ended.value.code == 2, path


@pytest.mark.parametrize("verb", OF_FOLDER)
def test_a_folder_that_is_not_there(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error names the verb, the folder, the reason and what to do."""
    missing = tmp_path / "missing"
    assert main(line(verb, FOLDER=missing)) == (2 if verb == "grep" else 1)  # as grep's
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(
        f"aeron-spark {verb}: {missing} is no archive folder: there is no archive.catalog in it; give "
    )


@pytest.mark.parametrize("verb", OF_DRIVER)
def test_a_driver_that_is_not_there(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (publish, subscribe):
        monkeypatch.setattr(module, "Client", functools.partial(Client, timeout=0.2))
    missing = tmp_path / "missing"
    short = ["--timeout", "0.2"] if "--timeout" in long_options(VERBS[verb]) else []
    assert main([*line(verb, DIR=missing), *short]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"aeron-spark {verb}: no ")
    assert str(missing) in told.err
    assert "start " in told.err
    assert f"--dir {missing}" in told.err


@pytest.mark.parametrize("verb", OF_SCHEMA)
def test_a_schema_that_is_not_there(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "missing.xml"
    assert main(line(verb, SCHEMA=missing)) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == (
        f"aeron-spark {verb}: cannot read {missing}: No such file or directory; give the file of an SBE schema\n"
    )


def test_a_doctor_finds_no_driver(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--dir", str(tmp_path / "missing"), "--json"]) in (0, 1)
    found = {row["about"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert found["driver"]["remedy"] == f"aeron-spark driver --dir {tmp_path / 'missing'}"
