"""The rows of `docs/compatibility.md`: tests that carry the mark `compat`, run once with each pyspark of the Makefile.

As a plugin of pytest (`-p tests.kit.compatibility`) it writes what a run has shown to `build/compat/<pyspark>.json`; as a
program it makes the page of these files, or with `--check` compares them with the page.

    python -m tests.kit.compatibility [--check]
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "compat"
PAGE = ROOT / "docs" / "compatibility.md"
MARK = "compat"
EXPLAINED = f"{MARK}(row, feature=None, instead=None): the test proves a row of docs/compatibility.md"
WORKS = "yes"

_KEY = pytest.StashKey[dict[str, str]]()


def cell(mark: pytest.Mark) -> str:
    """What the page says of a row whose test has passed with the running pyspark."""
    feature = mark.kwargs.get("feature")
    if feature is None or feature.is_offered:
        return WORKS
    return f"{mark.kwargs['instead']}; from {feature.since} on"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Collect what each test of the page has shown."""
    report: Any = yield
    found = item.get_closest_marker(MARK)
    if found is not None and (report.when == "call" or not report.passed):
        cells = item.config.stash.setdefault(_KEY, {})
        said = cell(found) if report.passed else "FAILS"
        if cells.get(found.args[0]) != "FAILS":
            cells[found.args[0]] = said
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write it, beside what another run with this pyspark has shown."""
    import pyspark

    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{pyspark.__version__}.json"
    before = json.loads(path.read_text("utf-8"))["rows"] if path.exists() else {}
    rows = {**before, **session.config.stash.get(_KEY, {})}
    python = ".".join(platform.python_version_tuple()[:2])
    path.write_text(json.dumps({"python": python, "rows": rows}, indent=1), "utf-8")


def results() -> dict[str, Any]:
    """What the runs have shown, by pyspark, in the order of versions."""
    found = {path.stem: json.loads(path.read_text("utf-8")) for path in RESULTS.glob("*.json")}
    return dict(sorted(found.items(), key=lambda item: [int(part) for part in item[0].split(".")]))


def makefile(name: str) -> list[str]:
    """A variable of the Makefile, as words."""
    match = re.search(rf"^{name} := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert match is not None, name
    return match[1].split()


#: How each Python is tested; the wheel's extension keeps to the limited API of the first one.
PYTHONS = {
    "3.11": "all tests, in CI",
    "3.12": "by hand, `make compat-pythons`: these rows with the newest pyspark, Python without Spark",
    "3.13": "by hand, `make compat-pythons`: the same",
    "3.14": "by hand, the same tests in a Debian forky",
}
HEAD = """\
# What works with which Spark

`make compat` runs the same tests with each pyspark and writes this page; it is not edited by hand. A cell says what a test
has shown: `yes`, or what happens instead and from which version the feature works.

"""
TESTED = """\

## What is tested how

| pyspark | tests |
|---|---|
"""
INTERPRETERS = """\

The newest patch of each release on PyPI is tested; other patches are expected to do the same. Features are detected, not
versions: a distribution of Spark with a later feature has it here, too. Spark Connect, pipelines, clusters and the stand-in for
a managed Spark ([managed-spark.md](managed-spark.md)) are tested with the newest pyspark alone, in CI.

One jar of the engine in the JVM ([spark.md](spark.md#engines)) serves all of them: where it was built, sessions of these tests
have it, and `engine=auto` takes it.

| Python | tests |
|---|---|
"""
TAIL = """\

The wheel's extension keeps to Python's limited API of 3.11, so one wheel is for 3.11 and all later ones; `abi3audit --strict`
checks at each release that it uses nothing else. Spark's own pages say which Python a pyspark supports.
"""


def page(found: dict[str, Any]) -> str:
    """The page of these results."""
    lowest, newest = makefile("PYSPARKS")[0], makefile("PYSPARKS")[-1]
    titles = dict.fromkeys(title for one in found.values() for title in one["rows"])
    how = {
        lowest: "`make test`, in CI",
        newest: "all tests of Spark (`make test test-more interop`), in CI within some commits",
    }
    features = [
        ["", *found],
        ["---"] * (len(found) + 1),
        *([title, *(one["rows"].get(title, "not run") for one in found.values())] for title in titles),
    ]
    tested = [(version, how.get(version, "by hand, `make compat`")) for version in found]
    return "".join([HEAD, _table(features), TESTED, _table(tested), INTERPRETERS, _table(PYTHONS.items()), TAIL])


def _table(rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def differences(found: dict[str, Any]) -> list[str]:
    """Where the page does not say what these results, of some versions and rows, have shown."""
    head, _, *rows = re.findall(r"^\|.*\|$", PAGE.read_text("utf-8").partition("## ")[0], re.MULTILINE)
    versions = [cell.strip() for cell in head.split("|")[2:-1]]
    told = {}
    for row in rows:
        title, *cells = (one.strip() for one in row.strip("|").split(" | "))
        told |= {(version, title): said for version, said in zip(versions, cells, strict=True)}
    return [
        f"{version}: {title}: {PAGE.name} says {told.get((version, title))!r}, shown is {said!r}"
        for version, one in found.items()
        for title, said in one["rows"].items()
        if told.get((version, title)) != said
    ]


def main() -> int:
    """Write the page, or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the page with what was run")
    found = results()
    if parser.parse_args().check:
        wrong = differences(found)
        print("\n".join(wrong) or f"{PAGE.name} says what was shown with {', '.join(found)}")
        return bool(wrong)
    PAGE.write_text(page(found), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
