"""`aeron-spark cat` and `grep`: what they print of recordings, archives, stores and live channels, and how they end.

Method: the verbs run in this process with standard output as a file, a pipe or a terminal; a child where the end of a pipe or
a signal matters. What is printed is compared with what was published.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from aeron_spark.archive.text_values import time_texts, with_time_texts
from aeron_spark.cli import subscribe
from aeron_spark.cli.__main__ import main
from aeron_spark.cli.archive_export import time_ns
from aeron_spark.cli.messages import Printer
from aeron_spark.testing import RecordedFolder, Servers, wait_until
from tests.kit import hiding, moments
from tests.kit.market import SCHEMA, quote, trade


@pytest.fixture(scope="module")
def recorded() -> Iterator[tuple[Servers, RecordedFolder, Path]]:
    """0: lines of text; 1: quotes and trades; the schema's file."""
    with Servers() as servers:
        folder = RecordedFolder(servers)
        folder.write([f"line {number}" for number in range(100)])
        folder.write([trade(number) if number % 5 == 4 else quote(number) for number in range(100)], stream_id=7)
        schema = folder.path / "prices.xml"
        schema.write_text(SCHEMA, "utf-8")
        yield servers, folder, schema


class Terminal(io.BytesIO):
    """Bytes of a file that some tests take for a terminal."""


class Capture(io.TextIOWrapper):
    """Standard output whose bytes are kept."""

    def __init__(self) -> None:
        self.bytes = Terminal()
        super().__init__(self.bytes, "utf-8", write_through=True)


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> tuple[int, bytes]:
    out = Capture()
    monkeypatch.setattr(sys, "stdout", out)
    code = main([str(word) for word in words])
    return code, out.bytes.getvalue()


Recorded = tuple[Servers, RecordedFolder, Path]


def test_text_and_hex_are_lines(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    _, folder, _ = recorded
    lines = [f"line {number}\n".encode() for number in range(100)]
    assert run(monkeypatch, "cat", folder, 0) == (0, b"".join(lines))
    assert run(monkeypatch, "cat", folder, 0, "--last", 2) == (0, b"".join(lines[98:]))
    assert run(monkeypatch, "cat", folder, 0, "-m", 3) == (0, b"".join(lines[:3]))
    assert run(monkeypatch, "cat", folder, 0, "--from", 64, "--to", 192) == (0, b"".join(lines[1:3]))
    assert run(monkeypatch, "cat", folder, 0, "-m", 2, "-n") == (0, b"0:0:line 0\n0:64:line 1\n")
    assert run(monkeypatch, "cat", folder, 0, "-m", 1, "--format", "hex") == (0, b"line 0".hex().encode() + b"\n")
    assert run(monkeypatch, "cat", folder, 0, "--to-time", "2001-01-01T00:00Z") == (0, b"")
    assert run(monkeypatch, "cat", folder, 0, "--from-time", "2001-01-01T00:00Z", "--last", 1) == (0, lines[-1])


def test_times_of_options_count_to_their_last_digit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `cat` prints as a message's time, given back, selects that message, in every verb."""
    first = 1_700_000_000_000_000_000
    with Servers() as servers:
        folder = RecordedFolder(servers)
        folder.write([b"%d" % n for n in range(10)], reserved_values=[first + n * 100 for n in range(10)])
        cat = ("cat", folder, 0, "--timestamp", "reserved(ns)")
        code, out = run(monkeypatch, *cat, "--json")
        when = json.loads(out.splitlines()[5])["timestamp"]
        assert (code, when) == (0, "2023-11-14T22:13:20.000000500Z")
        assert run(monkeypatch, *cat, "--from-time", when)[1].split() == [b"5", b"6", b"7", b"8", b"9"]
        assert run(monkeypatch, *cat, "--to-time", when)[1].split() == [b"0", b"1", b"2", b"3", b"4"]
        for same in (when, first + 500):
            assert run(monkeypatch, "archive", "time", folder, 0, same, "--reserved", "ns") == (0, b"320\n")
        for wrong, reason in (
            (f"{when[:-1]}1Z", "finer than nanoseconds"),
            ("20231114", "a date or a number of ns: write 2023-11-14, or 20231114ns"),
        ):
            capsys.readouterr()
            with pytest.raises(SystemExit):
                main([str(word) for word in (*cat, "--from-time", wrong)])
            assert main(["archive", "time", str(folder), "0", wrong]) == 2
            assert capsys.readouterr().err.count(reason) == 2
        monkeypatch.setenv("TZ", "America/New_York")
        time.tzset()
        try:
            assert time_ns("2023-11-14T17:13:20.000000500") == first + 500  # local, as the help says
        finally:
            monkeypatch.undo()
            time.tzset()


def test_last_counts_what_begins_before_to(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    _, folder, _ = recorded
    for words, lines in (
        (("--to", 192), [1, 2]), (("--to", 200), [2, 3]), (("--to", 64), [0]),
        (("--from", 64, "--to", 128), [1]), (("--to", 0), []),
    ):  # fmt: skip
        expected = b"".join(b"line %d\n" % line for line in lines)
        assert run(monkeypatch, "cat", folder, 0, "--last", 2, *words) == (0, expected)
    assert run(monkeypatch, "cat", folder, 0, "--last", 0, "--to", 192) == (0, b"")


def test_nulls_of_bytes_are_no_texts_in_csv() -> None:
    batch = pa.RecordBatch.from_pydict({"key": pa.array([None, b"", b"a"], pa.binary()), "n": pa.array([None, 1, 2])})
    for value, of_a in (("base64", "YQ=="), ("hex", "61"), ("utf8", "a")):
        out = io.BytesIO()
        options = argparse.Namespace(format="csv", color="never", position=False, message=None, value=value)
        Printer(options, batch.schema, out, None).write(batch)
        assert out.getvalue().decode() == f'"key","n"\n,\n"",1\n"{of_a}",2\n'


def test_sbe_json_csv_and_arrow(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    _, folder, schema = recorded
    fields = ("cat", folder, 1, "--sbe", schema)
    assert run(monkeypatch, *fields, "--last", 2) == (
        0,
        b"1:6272:Quote number=98 price=148 side=BUY symbol=LONG\n1:6336:Trade number=99 size=0\n",
    )
    code, out = run(monkeypatch, *fields, "--message", "Trade", "--where", "size > 7", "--format", "json")
    assert code == 0
    assert [json.loads(line)["number"] for line in out.splitlines()] == [n for n in range(4, 100, 5) if n % 9 > 7]
    code, out = run(monkeypatch, *fields, "--message", "Quote", "-m", 1, "--format", "csv", "--columns", "number,side")
    assert (code, out) == (0, b'"number","side"\n0,"BUY"\n')
    code, out = run(monkeypatch, "cat", folder, "--format", "arrow")
    assert code == 0
    assert pa.ipc.open_stream(out).read_all().num_rows == 200
    code, out = run(monkeypatch, "cat", folder, 0, "--where", "position = 10", "--format", "arrow")
    assert pa.ipc.open_stream(out).read_all().num_rows == 0
    code, out = run(monkeypatch, "cat", folder, 1, "-m", 5, "--format", "json", "--columns", "value")
    assert [set(json.loads(line)) <= {"value", "value_base64"} for line in out.splitlines()] == [True] * 5
    code, out = run(monkeypatch, "cat", folder, 0, "-m", 1, "--format", "csv", "--columns", "value", "--value", "hex")
    assert out == b'"value"\n"' + b"line 0".hex().encode() + b'"\n'


@pytest.fixture(scope="module")
def of_moments() -> Iterator[tuple[RecordedFolder, Path]]:
    """0: messages of `tests.kit.moments`, the time of each in its reserved value; their schema's file."""
    with Servers() as servers:
        folder = RecordedFolder(servers)
        folder.write(moments.MESSAGES, reserved_values=[1_700_000_000_123_456_789, -1])
        schema = folder.path / "moments.xml"
        schema.write_text(moments.SCHEMA, "utf-8")
        yield folder, schema


@pytest.fixture(scope="module")
def of_hiding() -> Iterator[tuple[RecordedFolder, Path]]:
    """0: messages of `tests.kit.hiding`; their schema's file."""
    with Servers() as servers:
        folder = RecordedFolder(servers)
        folder.write(hiding.MESSAGES, reserved_values=[1, 2, 3])
        schema = folder.path / "hiding.xml"
        schema.write_text(hiding.SCHEMA, "utf-8")
        yield folder, schema


HIDING = [
    b"price=7 position=9 timestamp=-7 value=47 flags=3 recording_id=77 reserved_value=5 sbe_template=6",
    b"price=8 position= timestamp=-8 value=48 flags=3 recording_id=77 reserved_value=5 sbe_template=6",
    b"price=9 position=0 timestamp=-9 value=49 flags=3 recording_id=77 reserved_value=5 sbe_template=6",
]


@pytest.mark.parametrize("more", [[], ["--message", "Row"]])
def test_fields_with_names_of_columns(
    of_hiding: tuple[RecordedFolder, Path], monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    """Every field is printed, positions are the stream's, times are the archive's and bytes are the message's."""
    folder, schema = of_hiding
    fields = (folder, 0, "--sbe", schema, *more)
    lines = [b"0:%d:Row %b\n" % (hiding.LENGTH * number, text) for number, text in enumerate(HIDING)]
    assert run(monkeypatch, "cat", *fields) == (0, b"".join(lines))
    since = ("--from-time", "2001-01-01T00:00Z")
    assert run(monkeypatch, "cat", *fields, *since) == (0, b"".join(lines))
    assert run(monkeypatch, "cat", *fields, "--to-time", "2001-01-01T00:00Z") == (0, b"")
    price = "price" if more else "Row.price"
    assert run(monkeypatch, "cat", *fields, *since, "--where", f"{price} > 7") == (0, b"".join(lines[1:]))
    digits = b"".join(one.hex().encode() + b"\n" for one in hiding.MESSAGES)
    assert run(monkeypatch, "cat", *fields, "--format", "hex") == (0, digits)
    assert run(monkeypatch, "cat", *fields, "--format", "text") == (0, b"".join(m + b"\n" for m in hiding.MESSAGES))
    assert run(monkeypatch, "grep", "-c", *since, "\\x{08}", *fields) == (0, b"1\n")


def no_json(text: str) -> Any:
    raise AssertionError(f"{text} is no JSON")


def test_times_that_python_has_not_and_numbers_that_json_has_not(
    of_moments: tuple[RecordedFolder, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, schema = of_moments
    fields = ("cat", folder, "--sbe", schema, "--message", "Moment")
    code, out = run(monkeypatch, *fields, "--json", "--columns", ",".join(moments.FIELDS[0]))
    assert (code, [json.loads(line, parse_constant=no_json) for line in out.splitlines()]) == (0, moments.FIELDS)
    code, out = run(monkeypatch, *fields)
    assert code == 0
    assert b"exact=2023-11-14T22:13:20.123456789Z day=2023-11-14 clock=09:30:00.123456789 price=1.5" in out
    assert b" price=NaN size=-Infinity " in out
    code, out = run(monkeypatch, *fields, "--format", "csv", "--columns", "at,day,clock,key", "--value", "hex")
    shown = [",".join(f'"{row[name]}"' for name in ("at", "day", "clock", "key")) for row in moments.FIELDS]
    assert (code, out.decode().splitlines()[1:]) == (0, shown)


def test_time_texts_of_parts_of_columns() -> None:
    """Slices, nulls and nesting keep their places."""
    days = pa.array([[0], None, [1, None, 2], []], pa.list_(pa.date32()))
    both = pa.StructArray.from_arrays(
        [days, pa.array([1, 2, 3, 4])], ["days", "n"], mask=pa.array([False] * 3 + [True])
    )
    batch = pa.RecordBatch.from_arrays([both], ["both"]).slice(1)
    assert with_time_texts(batch).column("both").to_pylist() == [
        {"days": None, "n": 2},
        {"days": ["1970-01-02", None, "1970-01-03"], "n": 3},
        None,
    ]
    edges = pa.array([-719_163, -719_162, 2_932_896, 2_932_897], pa.date32())
    assert time_texts(edges).to_pylist() == [
        "-719163 days since 1970",
        "0001-01-01",
        "9999-12-31",
        "2932897 days since 1970",
    ]


def test_nanoseconds_need_no_pandas(of_moments: tuple[RecordedFolder, Path], tmp_path: Path) -> None:
    folder, _ = of_moments
    (tmp_path / "pandas.py").write_text("raise ImportError('no pandas')", "utf-8")
    command = [sys.executable, "-m", "aeron_spark", "cat", folder, "--timestamp", "reserved(ns)", "--json"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == ""
    times = [json.loads(line)["timestamp"] for line in done.stdout.splitlines()]
    assert times == ["2023-11-14T22:13:20.123456789Z", "1969-12-31T23:59:59.999999999Z"]


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (["line 9[0-3]"], 0, [90, 91, 92, 93]),
        (["-F", "line 9["], 1, []),
        (["-i", "LINE 77"], 0, [77]),
        (["-v", "line [0-8]"], 0, [9, *range(90, 100)]),
        (["-m", "2", "line"], 0, [0, 1]),
        (["nothing"], 1, []),
        (["-e", "line 5$"], 0, [5]),
        (["--where", "position < 128"], 0, [0, 1]),
        (["--where", "position < 128", "-e", "1"], 0, [1]),
        (["-q", "line"], 0, []),
        (["-q", "nothing"], 1, []),
    ],
)
def test_grep_finds(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, expected: list[int]
) -> None:
    _, folder, _ = recorded
    lines = b"".join(f"line {number}\n".encode() for number in expected)
    assert run(monkeypatch, "grep", *words, folder, 0) == (code, lines)
    if "-q" not in words:
        assert run(monkeypatch, "grep", "-c", *words, folder, 0) == (code, f"{len(expected)}\n".encode())


def test_grep_in_fields_and_bytes_of_sbe(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    _, folder, schema = recorded
    code, out = run(monkeypatch, "grep", "--where", "Quote.price = 107", folder, 1, "--sbe", schema)
    assert code == 0
    assert out.splitlines() == [
        b"1:448:Quote number=7 price=107 side=SELL symbol=XYZ",
        b"1:3648:Quote number=57 price=107 side=SELL symbol=ABC",
    ]
    long = sum(number % 3 == 2 and number % 5 != 4 for number in range(100))
    assert run(monkeypatch, "grep", "-c", "LONG", folder, 1) == (0, b"%d\n" % long)
    # Of recording 0, whose texts are no SBE messages, none is found, so none is decoded.
    assert run(monkeypatch, "grep", "-c", "LONG", folder, "--sbe", schema, "--message", "Quote") == (0, b"%d\n" % long)
    assert run(monkeypatch, "grep", "-c", "line", folder, "--sbe", schema, "--message", "Quote")[0] == 2


@pytest.mark.parametrize(
    "case",
    [
        (["cat"], 2, "name a SOURCE"),
        (["cat", "{folder}", "x"], 2, "a recording is a number"),
        (["cat", "{folder}", "77"], 2, "77"),
        (["cat", "{folder}", "--channel", "aeron:ipc", "--stream", "5"], 2, "name a SOURCE"),
        (["cat", "--channel", "aeron:ipc"], 2, "--channel and --stream"),
        (["cat", "--channel", "aeron:ipc", "--stream", "5", "--from", "0"], 2, "--channel is a live stream"),
        (["cat", "--channel", "aeron:ipc", "--stream", "5", "--to", "0"], 2, "--channel is a live stream"),
        (["grep", "x", "--channel", "aeron:ipc", "--stream", "5", "--last", "1"], 2, "--channel is a live stream"),
        (["cat", "{folder}", "--columns", "value"], 2, "not for text"),
        (["cat", "{folder}", "--format", "sbe"], 2, "--sbe X.xml"),
        (["cat", "{folder}", "--from", "0"], 2, "name it"),
        (["cat", "{folder}", "--where", "prise = 1"], 2, "no column 'prise'"),
        (["cat", "{folder}/none"], 1, "no archive folder"),
        (["cat", "{folder}", "1", "--sbe", "{schema}", "--format", "csv"], 2, "choose --message, or json"),
        (["cat", "{folder}", "0", "--sbe", "{schema}"], 1, "recording 0: the message at position 0 cannot be decoded"),
        (["grep"], 2, "name a PATTERN"),
        (["grep", "(", "{folder}"], 2, "no regular expression"),
        (["grep", "x", "{folder}/none"], 2, "no archive folder"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_the_code(
    recorded: Recorded,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    case: tuple[list[str], int, str],
) -> None:
    _, folder, schema = recorded
    words, code, reason = case
    given = [word.format(folder=folder, schema=schema) for word in words]
    assert run(monkeypatch, *given)[0] == code
    assert reason in capfd.readouterr().err


def test_a_remote_archive_is_printed_as_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    control = Servers.udp_channel()
    settings = {"aeron.archive.control.channel": control, "aeron.archive.control.channel.enabled": "true"}
    with Servers(settings=settings) as servers:
        folder = RecordedFolder(servers)
        folder.write([f"line {number}" for number in range(10)])
        near = run(monkeypatch, "cat", folder, 0, "-n")
        assert near[1].count(b"\n") == 10
        assert run(monkeypatch, "cat", control, 0, "-n", "--dir", servers.aeron_dir) == near
        assert run(monkeypatch, "cat", control, 0, "-n", "--last", 1, "--dir", servers.aeron_dir)[1] == near[1][-13:]


def of_terminal(*, color: str = "auto", is_terminal: bool = True, **more: Any) -> bytes:
    """What a printer writes of a message that holds an escape sequence."""
    out: Any = type("Terminal", (io.BytesIO,), {"isatty": lambda _self: is_terminal})()
    options = argparse.Namespace(format="text", color=color, position=True, message=None, value="hex", **more)
    batch = pa.RecordBatch.from_pydict(
        {"recording_id": [3], "position": [64], "value": pa.array([b"a\x1b[2Jb\n\xc2\x9b"], pa.binary())}
    )
    Printer(options, batch.schema, out, re.compile(b"b")).write(batch)
    return bytes(out.getvalue())


def test_a_message_does_not_command_the_terminal() -> None:
    plain = b"3:64:a\\x1b[2Jb\\x0a\\xc2\\x9b\n"
    assert of_terminal(color="never") == plain
    coloured = of_terminal()
    assert b"\x1b[35m3\x1b[0m:\x1b[32m64\x1b[0m:" in coloured
    assert b"\x1b[1;31mb\x1b[0m" in coloured
    assert re.sub(rb"\x1b\[[\d;]*m", b"", coloured) == plain
    assert of_terminal(is_terminal=False) == b"3:64:a\x1b[2Jb\n\xc2\x9b\n"


ESCAPES = b"a\x1b]0;pwned\x07b\xc2\x9bc"


def test_json_and_csv_command_no_terminal() -> None:
    """JSON stays JSON."""
    batch = pa.RecordBatch.from_pydict({"value": pa.array([ESCAPES, b"\x7f"], pa.binary())})
    for form, value in (("json", "base64"), ("csv", "utf8")):
        out: Any = type("Terminal", (io.BytesIO,), {"isatty": lambda _self: True})()
        options = argparse.Namespace(format=form, color="never", position=False, message=None, value=value)
        Printer(options, batch.schema, out, None).write(batch)
        shown = out.getvalue()
        assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", shown)
        if form == "json":
            assert [json.loads(line)["value"].encode() for line in shown.splitlines()] == [ESCAPES, b"\x7f"]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_message_does_not_command_the_terminal_of_other_verbs(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Capture, "isatty", lambda _self: is_terminal)
    monkeypatch.setattr(Terminal, "isatty", lambda _self: is_terminal)
    shown = b"a\\x1b]0;pwned\\x07b\\xc2\\x9bc" if is_terminal else ESCAPES
    with Servers() as servers:
        folder = RecordedFolder(servers)
        folder.write([ESCAPES])
        replay = ("archive", "replay", 0, "--dir", servers.aeron_dir)
        assert run(monkeypatch, *replay) == (0, shown + b"\n")
        assert run(monkeypatch, *replay, "--form", "raw") == (0, shown)
        export = ("archive", "export", folder, "--out", "-", "--format", "csv", "--value", "utf8", "--columns", "value")
        assert run(monkeypatch, *export) == (0, b'"value"\n"' + shown + b'"\n')
    out = Capture()
    monkeypatch.setattr(sys, "stdout", out)
    subscribe._print(pa.RecordBatch.from_pydict({"value": pa.array([ESCAPES], pa.binary())}), as_json=False)
    assert out.bytes.getvalue() == shown + b"\n"


def test_a_reader_that_leaves_ends_it_quietly(recorded: Recorded) -> None:
    _, folder, _ = recorded
    command = f"{sys.executable} -m aeron_spark cat {folder} 0 --follow --format json | head -1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, check=False, timeout=60)  # noqa: S607
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["value"] == "line 0"


def test_live_messages_are_printed_until_the_publisher_leaves(recorded: Recorded, tmp_path: Path) -> None:
    servers, _, _ = recorded
    out = tmp_path / "out"
    command = [
        sys.executable,
        "-m",
        "aeron_spark",
        "cat",
        "--channel",
        "aeron:ipc",
        "--stream",
        "55",
        "--dir",
        servers.aeron_dir,
    ]
    with out.open("wb") as file, servers.client.add_exclusive_publication("aeron:ipc", 55) as publication:
        child = subprocess.Popen(command, stdout=file)
        try:
            publication.wait_connected(20)
            publication.offer_batch([b"one", b"two"])
            wait_until(lambda: out.read_bytes() == b"one\ntwo\n", 20, "what is printed")
            publication.close()
            assert child.wait(20) == 0
        finally:
            child.kill()
            child.wait()
