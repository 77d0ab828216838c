"""`aeron-spark sbe`."""

from __future__ import annotations

import gzip
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
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
    for number, (found, line) in enumerate(zip(printed, lines, strict=True), 1):
        assert {key: found.pop(key) for key in keys} == {key: line[key] for key in keys}
        header = {"blockLength": line["block_length"], "templateId": line["template_id"], "schemaId": 1, "version": 0}
        assert found == {"number": number, "line": number, "header": header}


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
    assert (good["number"], bad["number"]) == (1, 2)


def test_decode_says_what_it_can_not_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    schema = str(GOLDEN / "car/example-schema.xml")
    assert main(["sbe", "decode", "--schema", schema, str(tmp_path / "none")]) == 1
    assert "No such file" in capsys.readouterr().err
    (tmp_path / "text").write_text("zz", encoding="ascii")
    assert main(["sbe", "decode", "--schema", schema, "--hex", str(tmp_path / "text")]) == 2
    assert "line 1 of" in (told := capsys.readouterr().err)
    assert "has 'z' at character 1, which is no hexadecimal digit" in told
    (tmp_path / "text").write_bytes(b"00\n 0\xc3\xa9")
    assert main(["sbe", "decode", "--schema", schema, "--hex", str(tmp_path / "text")]) == 2
    assert "has the byte 0xc3 at character 3, which is no hexadecimal digit" in capsys.readouterr().err
    assert main(["sbe", "decode", "--schema", str(tmp_path / "none.xml"), str(tmp_path / "text")]) == 1
    assert "none.xml: No such file or directory; give the file of an SBE schema" in capsys.readouterr().err
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


SCHEMA = str(GOLDEN / "car/example-schema.xml")


@pytest.mark.parametrize("content", [None, b"", b"\n"])
def test_an_unknown_framing_whatever_the_input(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "messages"
    if content is not None:
        file.write_bytes(content)
    assert main(["sbe", "decode", "--schema", SCHEMA, "--framing", "cme", "--hex", str(file)]) == 2
    assert "framing 'cme' is not one of" in capsys.readouterr().err
    with pytest.raises(UsageError, match="framing 'cme'"):
        decode(load(SCHEMA), b"", framing="cme")


def test_input_without_a_message_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "none").write_bytes(b"\n \n")
    assert main(["sbe", "decode", "--schema", SCHEMA, "--hex", str(tmp_path / "none")]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "there is no message in" in told.err


def test_digits_with_colons_as_older_tools_print_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    payload = bytes.fromhex(messages("car/car_v0")[0]["hex"])
    (tmp_path / "hex").write_text(payload.hex(":"), encoding="ascii")
    assert main(["sbe", "decode", "--schema", SCHEMA, "--hex", str(tmp_path / "hex")]) == 0
    assert json.loads(capsys.readouterr().out)["message"] == "Car"


VENUE = schema_text(
    '<composite name="venue"><type name="length" primitiveType="uint16"/><type name="kind" primitiveType="uint16"/>'
    "</composite>",
    '<message name="M" id="7"><field name="n" id="1" type="uint32"/></message>',
)


def test_header_members_of_other_names(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "venue.xml").write_text(VENUE, encoding="utf-8")
    (tmp_path / "message").write_bytes(struct.pack("<HHI", 8, 7, 42))
    schema, file = str(tmp_path / "venue.xml"), str(tmp_path / "message")
    mapped = ["--header", "venue", "--header-map", "templateId:kind"]
    assert main(["sbe", "decode", "--schema", schema, *mapped, file]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["values"], found["header"]) == ({"n": 42}, {"length": 8, "kind": 7})
    assert main(["sbe", "check", *mapped, schema]) == 0
    assert main(["sbe", "decode", "--schema", schema, *mapped[:2], file]) == 1
    assert "has no member templateId, but length, kind" in capsys.readouterr().err
    for wrong, words in (("templateId", "templateId:messageTypeId"), ("template:kind", "did you mean templateId")):
        assert main(["sbe", "decode", "--schema", schema, *mapped[:2], "--header-map", wrong, file]) == 2
        assert words in capsys.readouterr().err


PCAP = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
CAPTURES = {
    "pcap": PCAP,
    "pcap, nanoseconds, big-endian": struct.pack(">IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1),
    "pcapng": struct.pack("<IIIHHq", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1) + struct.pack("<I", 28),
    "pcap, compressed by gzip": gzip.compress(PCAP),
    "pcap, compressed by zstd": pa.compress(PCAP, "zstd", asbytes=True),
}


@pytest.mark.parametrize("name", CAPTURES)
def test_a_capture_file_is_known_and_how_to_get_at_its_payloads(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    file = tmp_path / "a capture"
    file.write_bytes(CAPTURES[name])
    for more in ([], ["--hex"]):
        assert main(["sbe", "decode", "--schema", SCHEMA, "--framing", "cme-udp", *more, str(file)]) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert f"is a capture file ({name.replace(', nanoseconds, big-endian', '')})" in told.err
        assert (
            f"tshark -r '{file}' -Y udp.payload -T fields -e udp.payload | "
            f"aeron-spark sbe decode --schema {SCHEMA} --framing cme-udp --hex -\n"
        ) in told.err


def test_what_is_compressed_and_what_only_begins_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "messages"
    file.write_bytes(gzip.compress(bytes.fromhex(messages("car/car_v0")[0]["hex"])))
    assert main(["sbe", "decode", "--schema", SCHEMA, str(file)]) == 2
    assert "is compressed by gzip: decompress it first (gzip -dc)" in capsys.readouterr().err
    for begin in (b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\n\r\r\n", b"\xd4\xc3\xb2\xa1"):
        file.write_bytes(begin + bytes(20))
        assert main(["sbe", "decode", "--schema", SCHEMA, str(file)]) == 1
        assert "UNKNOWN_" in capsys.readouterr().out
