"""The pages of the site's folders run as printed, its reference has all of the code, and its checks find what is wrong.

Method: a page is one program: its Python blocks, its commands between them as child processes. Values in comments behind
`print`, and blocks of text behind a block of its section, are what it must have printed. Only `make docs` builds the site.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import aeron_spark.archive
import aeron_spark.sbe
import aeron_spark.tables
import aeron_spark.testing
from aeron_spark._native._lib import ffi, lib
from aeron_spark.cli.__main__ import VERBS
from aeron_spark.spark import lake, listener
from aeron_spark.spark.planning import kafka_options
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.writing.options import WriteOptions
from tests.python.test_docs import EXAMPLE_DIR, ROOT, run
from tests.spark.session import JAR

DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(python|sh|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)
# Pages with nothing to run.
PROSE = {"explanation/exactly-once.md", "explanation/loss.md"}
#: Pages that need the jar, which is there where a JDK is.
OF_JAR = set() if JAR else {"how-to/jvm-engine.md", "how-to/real-time.md"}
PAGES = {
    str(path.relative_to(DOCS)): path.read_text("utf-8")
    for folder in ("tutorial", "how-to", "explanation")
    for path in sorted((DOCS / folder).glob("*.md"))
}


def program(page: str) -> str:
    """Python of a page, each block at its own line; commands are run by it."""
    lines = [""] * (PAGES[page].count("\n") + 1)
    for block in BLOCK.finditer(PAGES[page]):
        text = block[2].splitlines()
        if block[1] == "sh":
            commands = shlex.quote("set -euo pipefail\n" + block[2])
            text = [f"__import__('subprocess').run({['bash', '-c', shlex.split(commands)[0]]!r}, check=True)"]
        elif block[1] == "text":
            continue
        first = PAGES[page].count("\n", 0, block.start(2))
        lines[first : first + len(text)] = text
    return "\n".join(lines)


def printed(page: str) -> list[str]:
    """What a page says that it prints: comments of `print`, and blocks of text that follow what is run."""
    said = []
    for section in re.split(r"^## ", PAGES[page], flags=re.MULTILINE):
        ran = False
        for block in BLOCK.finditer(section):
            if block[1] == "text":
                said += block[2].splitlines() if ran else []
            else:
                said += re.findall(r"^ *print\(.*\)  # (.+)$", block[2], re.MULTILINE)
            ran = block[1] != "text"
    return said


# Those that start Spark use what tests/spark has shown.
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.more] if "SparkSession" in PAGES[page] else [])
        for page in sorted(set(PAGES) - PROSE - OF_JAR)
    ],
)
def test_page_runs_as_printed(page: str, tmp_path: Path, aeron_dir: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    script = tmp_path / "page.py"
    script.write_text(program(page).replace(EXAMPLE_DIR, str(aeron_dir)), "utf-8")
    out = iter(run(["python", str(script)], tmp_path, timeout=300).splitlines())
    for line in printed(page):
        assert any(line in found for found in out), f"{page} does not print {line!r}, or in another order"
    assert EXAMPLE_DIR not in PAGES[page] or not aeron_dir.exists()


def test_pages_of_prose_have_nothing_to_run() -> None:
    assert {page for page, text in PAGES.items() if not re.search("^```(python|sh)$", text, re.MULTILINE)} == PROSE


@pytest.mark.parametrize(
    ("heading", "habits", "names"),
    [
        ("Options of reading", kafka_options.READING, ReadOptions.NAMES),
        ("Options of writing", kafka_options.WRITING, WriteOptions.NAMES),
    ],
)
def test_kafka_options_are_all_told(heading: str, habits: dict[str, str], names: tuple[str, ...]) -> None:
    section = PAGES["how-to/from-kafka.md"].split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    known = {name for row in rows for name in re.findall(r"`([\w.]+)`", row[0])}
    assert set(habits) <= known <= {*habits, *names}
    for row in rows:
        ours = set(re.findall(r"`([a-z]+[A-Z]\w+|channel)`", row[1]))
        assert ours <= set(names), row
        for name in re.findall(r"`([\w.]+)`", row[0]):
            told = {one for one in names if re.search(rf"\b{one}\b", habits.get(name, ""))}
            assert told - {"topic"} <= ours | set(re.findall(r"\w+", row[1])), (name, told)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules of docs/site, which are no package."""
    monkeypatch.syspath_prepend(str(DOCS / "site"))
    yield
    for name in ("links", "reference"):
        sys.modules.pop(name, None)


@pytest.fixture
def links(site: None) -> ModuleType:
    import links

    return links


@pytest.fixture
def reference(site: None) -> ModuleType:
    import reference

    return reference


def test_reference_of_python_has_every_public_name() -> None:
    text = "".join(path.read_text("utf-8") for path in (DOCS / "reference").glob("python-*.md"))
    listed = re.findall(r"^::: (?:\w+\.)*(\w+)$", text, re.MULTILINE)
    public = {*aeron_spark.__all__, *aeron_spark.archive.__all__, *aeron_spark.sbe.__all__, *listener.__all__}
    public |= {*lake.__all__, *aeron_spark.testing.__all__, *aeron_spark.tables.__all__}
    assert public - {"__version__"} <= set(listed)
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize(
    ("server", "name_of"), [("driver", "as_driver_config_name"), ("archive", "as_archive_config_name")]
)
def test_reference_of_settings_has_every_setting(reference: ModuleType, server: str, name_of: str) -> None:
    told = getattr(reference, f"{server}_settings")("reference/settings.md")
    index, known = 0, set()
    while (name := getattr(lib, name_of)(index)) != ffi.NULL:
        known.add(ffi.string(name).decode())
        index += 1
    rows = [line for line in told.splitlines() if line.startswith("| `")]
    assert len(known) > 50
    assert known <= {name for row in rows for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])}
    assert [row for row in rows if not row.strip("| ").split(" | ")[2].strip()] == []
    assert "Reader:" not in told


def test_reference_of_options_has_every_option(reference: ModuleType) -> None:
    told = reference.spark_options("reference/spark-options.md")
    reading, writing = told.split("## Options of writing")
    for names, section in ((ReadOptions.NAMES, reading), (WriteOptions.NAMES, writing)):
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == sorted(names, key=str.lower)
    assert "[Access modes](../spark.md#access-modes)" in told


def test_reference_of_commands_has_every_verb(reference: ModuleType) -> None:
    told = reference.commands("reference/commands.md")
    for verb in VERBS:
        assert f"### aeron-spark {verb}\n" in told
    assert "### aeron-spark archive verify\n" in told


def test_reference_of_c_has_every_function(reference: ModuleType) -> None:
    told = reference.c_api("reference/c.md")
    code = "".join(re.findall(r"^```c\n(.*?)^```", told, re.DOTALL | re.MULTILINE))
    for header in reference.HEADERS:
        text = re.sub(r"/\*.*?\*/", "", (ROOT / header).read_text("utf-8"), flags=re.DOTALL)
        names = set(re.findall(r"\b(as_\w+)\(|^\} (as_\w+);", text, re.MULTILINE))
        assert names
        assert names <= set(re.findall(r"\b(as_\w+)\(|^\} (as_\w+);", code, re.MULTILINE)), header


def test_links_lead_to_the_same_file_in_the_site(links: ModuleType) -> None:
    text = "[a](../ARCHITECTURE.md) [b](spark.md#sql) [c](../conf/driver.properties) [d](https://aeron.io) `[e](x.md)`"
    assert links.rebased(text, "how-to.md", "how-to.md") == (
        "[a](repository/ARCHITECTURE.md) [b](spark.md#sql) [c](repository/conf/driver.properties.md) [d](https://aeron.io)"
        " `[e](x.md)`"
    )
    folder = "[decisions](docs/decisions), [tests](tests/README.md#kit-testskit)"
    assert links.rebased(folder, "repository/CONTRIBUTING.md", "repository/CONTRIBUTING.md") == (
        "[decisions](../decisions/README.md), [tests](tests/README.md#kit-testskit)"
    )


def test_placeholders_are_no_html(links: ModuleType) -> None:
    text = "port of <host><br>`<host>` <https://aeron.io> a <-> b\n```sh\n<host>\n```\n"
    assert links.without_html(text) == text.replace("<host><br>", "&lt;host><br>")


def test_check_of_a_built_site_finds_dead_links_and_what_is_outside(links: ModuleType, tmp_path: Path) -> None:
    good = '<h1 id="top">a</h1><a href="b.html#there">b</a><a href="https://aeron.io">c</a><img src="data:image/png,">'
    (tmp_path / "a.html").write_text(good)
    (tmp_path / "b.html").write_text('<p id="there">')
    (tmp_path / "site.css").write_text("a{background:url(data:image/svg+xml,x)}")
    assert list(links.problems(tmp_path)) == []
    (tmp_path / "a.html").write_text(
        good + '<a href="c.html">c</a><a href="b.html#gone">b</a><script src="//cdn/x.js"></script>'
        '<link rel="stylesheet" href="https://fonts/x.css">'
    )
    (tmp_path / "site.css").write_text('@import "https://fonts/y.css"')
    assert list(links.problems(tmp_path)) == [
        "a.html loads //cdn/x.js from outside",
        "a.html loads https://fonts/x.css from outside",
        "a.html: dead link b.html#gone, the page has no such anchor",
        "a.html: dead link c.html",
        "site.css loads https://fonts/y.css from outside",
    ]
