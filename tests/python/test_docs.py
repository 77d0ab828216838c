"""Every block of docs/ runs, page by page and in its order; tables of options, columns and errors are those of the code."""

from __future__ import annotations

import codeop
import contextlib
import os
import re
import shutil
import signal
import sys
import tomllib
from pathlib import Path

import pytest

from aeron_spark import errors
from aeron_spark.sbe.options import CHOICES as SBE_CHOICES
from aeron_spark.sbe.options import Options as SbeOptions
from aeron_spark.spark.planning import engine
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.reading import batch, schema
from aeron_spark.spark.writing.options import WriteOptions
from tests.kit import ports
from tests.kit.processes import Process
from tests.release.build import TARGETS

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE_DIR = "/dev/shm/aeron-docs"  # noqa: S108 - of the pages; the tests put one of their own in its place
PAGES = {path.name: path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
WITH_PYTHON = sorted(
    path for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")) if "```python\n" in path.read_text("utf-8")
)
SOURCES = [
    re.sub(r'"\s*\n\s*f?"', "", path.read_text("utf-8"))
    for folder in ("aeron_spark", "driver_native", "archive")
    for path in (ROOT / folder).rglob("*.*")
    if path.suffix in {".py", ".c", ".h", ".java"}
]


def program(page: str, language: str) -> str:
    """The blocks of one language, each at its own line, so that a failure names the page's line."""
    lines = [""] * (PAGES[page].count("\n") + 1)
    for block in re.finditer(rf"^```{language}\n(.*?)^```", PAGES[page], re.DOTALL | re.MULTILINE):
        first = PAGES[page].count("\n", 0, block.start(1))
        text = block[1].splitlines()
        lines[first : first + len(text)] = text
    return "\n".join(lines)


def run(command: list[str], folder: Path, *, timeout: float) -> str:
    """In the activated environment, where the command is searched; a named Python runs without it."""
    path = os.environ["PATH"] if command[0] == sys.executable else f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {"PYSPARK_PYTHON": None, "PYTHONUNBUFFERED": "1", "PATH": path}
    process = Process(command[-1][-40:], command, env=environment, cwd=folder)
    try:
        assert process.wait_end(timeout=timeout) == 0, process.report()
    finally:
        _end_group(process)
    return process.stdout()


def _end_group(process: Process) -> None:
    """Servers that a failed script started in the background."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def own_program(page: str, language: str, aeron_dir: Path) -> str:
    """`program` with a directory and ports of its own."""
    return ports.own(program(page, language).replace(EXAMPLE_DIR, str(aeron_dir)))


def run_python(page: str, folder: Path, aeron_dir: Path, *, timeout: float) -> str:
    script = folder / page.replace(".md", ".py")
    script.write_text(own_program(page, "python", aeron_dir), "utf-8")
    return run([sys.executable, str(script)], folder, timeout=timeout)


@pytest.mark.parametrize("page", [str(path.relative_to(ROOT)) for path in WITH_PYTHON])
def test_blocks_can_be_pasted_into_the_prompt(page: str) -> None:
    """Python's prompt ends a block at an empty line, and only there."""
    compiler, pending = codeop.CommandCompiler(), ""
    for block in re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.DOTALL | re.MULTILINE):
        for line in [*block.splitlines(), ""]:
            pending += line + "\n"
            # The prompt asks for more lines until the statement is whole: a compound one by an empty line.
            if compiler(pending if line == "" else pending.removesuffix("\n"), page, "single") is not None:
                pending = ""
        assert not pending.strip(), block


def test_python_page(tmp_path: Path, aeron_dir: Path) -> None:
    assert PAGES["python.md"].count("```python") == 10
    out = run_python("python.md", tmp_path, aeron_dir, timeout=60).splitlines()
    assert out == [
        "[b'one', b'two', b'three']",
        "[b'hello', b'world']",
        "50000",
        *out[3:-5],
        "timestamp[ns, tz=UTC]",
        "3 LIVE 192",
        "2 MERGED",
        "[True, True, True]",
        "True",
    ]
    assert out[3].startswith("0 1001 0 ")
    assert sum(map(int, out[4:-5])) == 50_000
    assert not aeron_dir.exists()


def test_spark_page(tmp_path: Path, aeron_dir: Path) -> None:
    out = run_python("spark.md", tmp_path, aeron_dir, timeout=200)
    printed = [line for line in out.splitlines() if line.isdecimal()]
    assert printed == re.findall(r"^print\(.*\)  # (\d+)$", program("spark.md", "python"), re.MULTILINE)
    assert not aeron_dir.exists()


def test_spark_sink_page(tmp_path: Path, aeron_dir: Path) -> None:
    try:
        out = run_python("spark-sink.md", tmp_path, aeron_dir, timeout=200)
        assert not aeron_dir.exists()
        assert not Path(f"{aeron_dir}-remote").exists()
    finally:
        shutil.rmtree(f"{aeron_dir}-remote", ignore_errors=True)
    printed = [line for line in out.splitlines() if line.isdecimal()]
    assert printed == re.findall(r"^print\(.*\)  # (\d+)$", program("spark-sink.md", "python"), re.MULTILINE)


def test_operate_page(tmp_path: Path, aeron_dir: Path) -> None:
    script = "set -euo pipefail\n" + own_program("operate.md", "sh", aeron_dir)
    out = run(["bash", "-c", script], tmp_path, timeout=60)
    assert "1,000 messages published" in out
    assert f"{aeron_dir}: driver pid" in out
    assert "0 distinct errors observed." in out
    assert '"recording_id": 0' in out


def test_archive_tools_page(tmp_path: Path, aeron_dir: Path) -> None:
    script = "set -euo pipefail\n" + own_program("archive-tools.md", "sh", aeron_dir)
    out = run(["bash", "-c", script], tmp_path, timeout=90)
    assert re.search(r"recording 1: [\d,]+ bytes, from 0 to \d+", out)
    assert "read again: equal" in out
    assert "would delete" in out
    assert "ERR" not in out
    assert "deleted 1 records" in out
    assert (tmp_path / "part.bin").read_bytes().endswith(b"10000")
    assert not aeron_dir.exists()


def test_pages_in_one_folder_leave_each_other_alone() -> None:
    """Who follows page after page works in one folder: what one deletes or counts is its own."""
    assert not re.search(r" recordings\b", program("archive-tools.md", "sh"))
    streams = [
        set(re.findall(r"(?:streamId\W{1,3}|stream_id in \()(\d+)", program(page, "python")))
        for page in ("spark.md", "spark-sink.md")
    ]
    assert all(streams)
    assert streams[0].isdisjoint(streams[1])


def test_sbe_page(tmp_path: Path) -> None:
    script = tmp_path / "sbe.py"
    script.write_text(program("sbe.md", "python"), "utf-8")
    run([sys.executable, str(script)], ROOT, timeout=60)
    commands = "set -euo pipefail\n" + program("sbe.md", "sh").replace(EXAMPLE_DIR, str(tmp_path))
    out = run(["bash", "-c", commands], ROOT, timeout=60)
    assert "OK schema_id=100 version=1 messages=2" in out
    assert '"message": "Quote"' in out
    assert '"symbol": "ABC"' in out


def test_sbe_options_are_those_of_the_code() -> None:
    told = {name.strip("`"): row[1] for row in rows("sbe.md", "What values become") for name in row[0].split(", ")}
    for name, choices in SBE_CHOICES.items():
        if name in told:
            assert told[name].strip("| ") == ", ".join(f"`{one}`" for one in choices), name
    in_text = {"on_error", "others"}
    assert {name.strip(" `|") for name in told} | in_text == set(SbeOptions.__dataclass_fields__)


def test_submit_commands_name_what_is_there() -> None:
    """They run for long, or need servers: tests/system runs their like."""
    for line in program("spark.md", "sh").split("\n"):
        words = [word for word in line.split() if not re.match("[A-Z_]+=", word)]
        assert not words or shutil.which(words[0], path=Path(sys.executable).parent), line
        for name in re.findall(r"\S+/\S+\.(?:py|conf|yml)", line):
            assert (ROOT / name).exists(), name


def test_cluster_page_says_what_the_cluster_test_does(tmp_path: Path) -> None:
    """Its commands need several machines: tests/system/test_cluster.py runs their like. Here: that they can be."""
    compile(program("cluster.md", "python"), "cluster.md", "exec")
    known = {*ReadOptions.NAMES, *WriteOptions.NAMES}
    options = re.findall(r'option\(\s*"(\w+)"', program("cluster.md", "python"))
    assert {"controlChannel", "streamId", "channel"} == set(options)
    assert known.issuperset(options)
    run(["bash", "-n", "-c", program("cluster.md", "sh")], tmp_path, timeout=20)
    for text in (row[0].split("`")[1] for row in rows("cluster.md", "When it does not work")[1:]):
        assert text.startswith("[") or any(text in source for source in SOURCES), text  # Spark's own, or ours


def rows(page: str, heading: str) -> list[list[str]]:
    """Cells of the first table under a heading, without its head."""
    section = PAGES[page].split(f"## {heading}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[0].splitlines()[2:]]


@pytest.mark.parametrize(
    ("heading", "names"), [("Options of reading", ReadOptions.NAMES), ("Options of writing", WriteOptions.NAMES)]
)
def test_option_tables_are_complete(heading: str, names: tuple[str, ...]) -> None:
    told = [row[0].strip("`| ") for row in rows("spark.md", heading)]
    meant = {"both", heading.removeprefix("Options of ")}
    told += [row[0].strip("`| ") for row in rows("sbe.md", "Options in Spark") if row[1] in meant]
    assert sorted(told) == sorted(names)


def test_defaults_are_those_of_the_code() -> None:
    told = {row[0].strip("`| "): row[1].strip("`") for row in rows("spark.md", "Options of reading")}
    read = ReadOptions.parse({"path": "/p"}, streaming=True)
    assert told["rowsPerBatch"] == str(read.rows_per_batch)
    assert read.bytes_per_batch is None
    assert told["bytesPerBatch"] == f"{batch.BATCH_BYTES >> 20}m`, in the JVM `{engine.BATCH_BYTES >> 20}m"
    assert told["recordChecksum"] == read.record_checksum
    assert told["endingPositions"] == read.ending_positions.word
    assert read.starting_positions.word == "latest"
    assert ReadOptions.parse({"path": "/p"}, streaming=False).starting_positions.word == "earliest"
    told = {row[0].strip("`| "): row[1].strip("`") for row in rows("spark.md", "Options of writing")}
    write = WriteOptions.parse({"streamId": "1"})
    assert told["channel"] == write.channel
    assert told["publishTimeout"] == f"{write.publish_timeout:.0f}s"
    assert told["guarantee"] == write.guarantee
    assert told["syncLevel"] == str(write.sync_level)
    assert told["linger"] == f"{write.linger:.0f}s"
    assert told["launchDriver"] == str(write.launch_driver).lower()


def test_column_table_is_the_schema() -> None:
    table = [(row[0].strip("`| "), row[1]) for row in rows("spark.md", "Read a table")]
    assert table == [
        (field.name, field.dataType.simpleString())
        for field in schema.spark_schema(schema.message_fields("binary").values())
    ]


def test_error_classes_are_all_told() -> None:
    known = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert {row[0].strip("`| ") for row in rows("python.md", "Errors")} == known - {"AeronError"}


@pytest.mark.parametrize("page", ["spark.md", "operate.md"])
def test_error_texts_are_those_of_the_code(page: str) -> None:
    for row in rows(page, "Errors and remedies"):
        text = row[0].strip("| ").strip("`")
        if text.startswith("["):
            continue  # Spark's own
        for part in text.split("…"):
            assert any(part.strip() in source for source in SOURCES), part


def test_settings_have_the_defaults_of_the_property_files() -> None:
    told = "".join((ROOT / "conf" / f"{name}.properties").read_text("utf-8") for name in ("driver", "archive"))
    for name, default, _ in (row[:3] for row in rows("operate.md", "Settings")):
        value = default.strip("`")
        expected = "" if value == "none" or "<user>" in value else value
        assert f"#{name.strip('`| ')}={expected}\n" in told, name


def test_files_that_are_named_exist() -> None:
    for page, text in PAGES.items():
        for name in re.findall(r"`((?:conf|examples|tests)/[\w./]*)`", text):
            assert (ROOT / name).exists(), f"{page}: {name}"


def test_the_tests_that_hold_a_promise_exist() -> None:
    """In the tables of docs/security.md: a C program, and behind it those of its tests that are meant."""
    held_by = re.findall(r"\|([^|\n]*)\|\n", PAGES["security.md"])
    named = [found for cell in held_by for found in re.findall(r"`c_([a-z]+)_(test_\w+)`((?: \w+,?)*)", cell)]
    assert len(named) > 40
    for module, program_name, tests in named:
        text = (ROOT / "tests" / "c" / module / f"{program_name}.c").read_text("utf-8")
        for name in re.findall(r"\w+_\w+", tests):
            assert f"static void {name}(" in text, f"{program_name}: {name}"


def test_the_page_on_installing_names_each_wheel_and_the_extras_of_users() -> None:
    page = PAGES["install.md"]
    assert re.findall(r"^\| `((?:many|musl)linux\w+)` \|", page, re.MULTILINE) == list(TARGETS)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    ours = {"test", "lint", "lint-c", "docs", "manifests", "release"}
    named = re.findall(r"^\| `(\w+)` \|", page.partition("## Wheels")[0], re.MULTILINE)
    assert set(named) == extras.keys() - ours
