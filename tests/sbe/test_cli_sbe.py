"""`aeron-spark sbe`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aeron_spark.cli.__main__ import main
from aeron_spark.errors import UsageError
from aeron_spark.sbe import decode, load
from tests.sbe.test_schema import schema as schema_text
from tests.sbe.vectors import GOLDEN, messages


def test_decode_prints_an_object_a_message(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    lines = messages("car/car_v0")
    file = tmp_path / "cars.txt"
    file.write_text("\n".join(line["hex"] for line in lines), encoding="ascii")
    assert main(["sbe", "decode", "--schema", str(GOLDEN / "car/example-schema.xml"), "--hex", str(file)]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    keys = ("message", "template_id", "version", "consumed", "values")
    assert printed == [{key: line[key] for key in keys} for line in lines]


def test_decode_of_a_binary_file_and_its_errors(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    payload = bytes.fromhex(messages("car/car_v0")[0]["hex"])
    file = tmp_path / "cars.bin"
    file.write_bytes(payload + payload[:20])
    arguments = [
        "sbe",
        "decode",
        "--schema",
        str(GOLDEN / "car/example-schema.xml"),
        "--framing",
        "messages",
        str(file),
    ]
    assert main(arguments) == 1
    good, bad = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert good["consumed"] == len(payload)
    assert (bad["error"], bad["offset"]) == ("SHORT_BLOCK", 8)


def test_decode_says_what_it_can_not_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    schema = str(GOLDEN / "car/example-schema.xml")
    assert main(["sbe", "decode", "--schema", schema, str(tmp_path / "none")]) == 1
    assert "No such file" in capsys.readouterr().err
    (tmp_path / "text").write_text("zz", encoding="ascii")
    assert main(["sbe", "decode", "--schema", schema, "--hex", str(tmp_path / "text")]) == 2
    assert "line 1" in capsys.readouterr().err
    assert main(["sbe", "decode", "--schema", str(tmp_path / "none.xml"), str(tmp_path / "text")]) == 1
    assert "SCHEMA_XML" in capsys.readouterr().err
    (tmp_path / "text").write_text("00\n\n00 0", encoding="ascii")
    assert main(["sbe", "decode", "--schema", schema, "--hex", str(tmp_path / "text")]) == 2
    told = capsys.readouterr()
    assert "line 3" in told.err
    assert "has 3 hexadecimal digits" in told.err
    error = json.loads(told.out)
    assert (error["error"], error["line"]) == ("SHORT_HEADER", 1)
    with pytest.raises(SystemExit) as failed:
        main(["sbe", "decode", "--schema", schema, "--skip", "-22", str(tmp_path / "text")])
    assert failed.value.code == 2
    assert "-22 is below 0" in capsys.readouterr().err
    with pytest.raises(UsageError, match="below 0"):
        list(decode(load(schema), b"", skip=-3))


def test_standard_input_that_is_closed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert main(["sbe", "decode", "--schema", str(GOLDEN / "car/example-schema.xml"), "-"]) == 2
    assert "standard input is closed" in capsys.readouterr().err


def test_names_that_the_terminal_can_not_show(tmp_path: Path) -> None:
    file = tmp_path / "x.xml"
    file.write_text(
        schema_text("", '<message name="M" id="1"><field name="é" id="1" type="no"/></message>'), encoding="utf-8"
    )
    done = subprocess.run(
        [sys.executable, "-m", "aeron_spark.cli", "sbe", "check", str(file)],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "field[\\xe9]" in done.stdout


def test_check_prints_the_verdict_first(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cases = {case["name"]: case["schema"] for case in messages("checks/schemas")}
    for name, code, verdict in (
        ("no_package.xml", 0, "OK"),
        ("null_range.xml", 0, "OK_WARN"),
        ("unknown_type.xml", 1, "SCHEMA_TYPE"),
    ):
        file = tmp_path / name
        file.write_text(cases[name], encoding="utf-8")
        assert main(["sbe", "check", str(file)]) == code
        assert capsys.readouterr().out.split()[0] == verdict
        assert main(["sbe", "check", "--json", str(file)]) == code
        told = json.loads(capsys.readouterr().out)
        assert told["verdict"] == verdict
        assert bool(told["findings"]) == (verdict != "OK")
