"""The table scenario > tests > who passes, made from the tests themselves.

    python -m tests.conformance.archive.scenarios > tests/conformance/archive/SCENARIOS.md

A test is a function `test_sNN_...` (or `test_sNNN_...`) here or in the folders of `ELSEWHERE`. Who passes stands in the
`ours(...)` marks: a marked test that passes against the stock archive is an error of that run, so the runs keep the table true.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
TESTS = HERE.parents[1]
# Scenarios of the client's constructs, whose subject is the client.
ELSEWHERE = ("interop", "python", "system")
LAST = 105

TITLE = """# Scenarios of Spec: 08 §19

`make conformance PEER=ours|stock-java`. Made by `python -m tests.conformance.archive.scenarios`; do not edit. A test that is
ours alone is expected to fail against the stock archive.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A test of a scenario: what it shows, and why the stock archive does otherwise."""

    scenario: int
    name: str
    file: str
    sentence: str
    ours_because: str | None
    is_here: bool


def tests() -> list[Test]:
    """All tests of scenarios, in the order of their files."""
    paths = [(path, True) for path in sorted(HERE.glob("test_*.py"))]
    paths += [(path, False) for name in ELSEWHERE for path in sorted((TESTS / name).glob("test_*.py"))]
    return [test for path, is_here in paths for test in _of(path, is_here)]


def _of(path: Path, is_here: bool) -> list[Test]:
    functions = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
    return [
        Test(
            scenario=int(match[1]),
            name=node.name,
            file=path.name if is_here else f"{path.parent.name}/{path.name}",
            sentence=" ".join((ast.get_docstring(node) or "").split()),
            ours_because=_reason(node),
            is_here=is_here,
        )
        for node in functions
        if (match := re.match(r"test_s(\d{2,3})_", node.name))
    ]


def _reason(node: ast.FunctionDef) -> str | None:
    for mark in node.decorator_list:
        if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "ours":
            return str(ast.literal_eval(mark.args[0]))
    return None


def c_tests() -> dict[int, list[str]]:
    """Names of the C tests by scenario."""
    found: dict[int, list[str]] = {}
    for path in sorted((TESTS / "c" / "archive").glob("*.c")):
        for name in re.findall(r"^static void (s\d{2,3}_\w+)\(void\)", path.read_text(), re.MULTILINE):
            found.setdefault(int(name[1:].split("_")[0]), []).append(f"{path.stem}: {name}")
    return found


def table() -> str:
    """The table as Markdown."""
    all_tests, in_c = tests(), c_tests()
    lines = [TITLE, "| | shown | test | C | stock-java |", "|---|---|---|---|---|"]
    for number in range(1, LAST + 1):
        mine = [test for test in all_tests if test.scenario == number]
        shown = "<br>".join(test.sentence for test in mine)
        where = "<br>".join(f"{test.file}: {test.name}" for test in mine)
        cells = (str(number), shown or "not tested yet", where, "<br>".join(in_c.get(number, [])), _stock(mine))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _stock(mine: list[Test]) -> str:
    alone = [f"ours alone: {test.name}: {test.ours_because}" for test in mine if test.ours_because is not None]
    if alone or not mine:
        return "<br>".join(alone)
    return "passes" if all(test.is_here for test in mine) else "with stock peers in the test itself"


if __name__ == "__main__":
    sys.stdout.write(table())
