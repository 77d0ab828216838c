"""Which tests show a scenario of the specification, for the tables `SCENARIOS.md`.

A test is a function `test_sNN_...` (or `test_sNNN_...`), in C `sNN_...`. What stock peers do otherwise stands in its
`ours(...)` mark: a marked test that passes against a stock peer is an error of that run, so the runs keep the tables true.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A test of a scenario: what it shows, why stock peers do otherwise, and which of them do not."""

    scenario: int
    name: str
    path: Path
    sentence: str
    ours_because: str | None
    but: tuple[str, ...]


def tests_of(paths: Iterable[Path]) -> list[Test]:
    """The tests of these files, in their order."""
    found = []
    for path in paths:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and (match := re.match(r"test_s(\d{2,3})_", node.name)):
                reason, but = _mark(node)
                found.append(
                    Test(
                        scenario=int(match[1]),
                        name=node.name,
                        path=path,
                        sentence=" ".join((ast.get_docstring(node) or "").split()),
                        ours_because=reason,
                        but=but,
                    )
                )
    return found


def _mark(node: ast.FunctionDef) -> tuple[str | None, tuple[str, ...]]:
    for mark in node.decorator_list:
        if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "ours":
            but = next((ast.literal_eval(keyword.value) for keyword in mark.keywords if keyword.arg == "but"), ())
            return str(ast.literal_eval(mark.args[0])), but
    return None, ()


def c_tests(*folders: str) -> dict[int, list[str]]:
    """Names of the C tests by scenario, with their files below `tests/c`."""
    found: dict[int, list[str]] = {}
    for path in (path for folder in folders for path in sorted((TESTS / "c" / folder).glob("*.c"))):
        for name in re.findall(r"^static void (s\d{2,3}_\w+)\(", path.read_text(), re.MULTILINE):
            number = int(name[1:].split("_")[0])
            found.setdefault(number, []).append(f"{path.parent.name}/{path.stem}: {name}")
    return found


def rows(
    here: Path, last: int, tests: list[Test], *c_folders: str, results: Callable[[list[Test]], Iterable[str]]
) -> str:
    """A row a scenario: what is shown, by which tests, and what `results` makes of them. Files of `here` go by name alone."""
    in_c = c_tests(*c_folders)
    lines = []
    for number in range(1, last + 1):
        mine = [test for test in tests if test.scenario == number]
        cells = (
            str(number),
            "<br>".join(test.sentence for test in mine),
            "<br>".join(f"{_file(test.path, here)}: {test.name}" for test in mine),
            "<br>".join(in_c.get(number, [])),
            *results(mine),
        )
        lines.append(f"| {' | '.join(cells)} |\n")
    return "".join(lines)


def _file(path: Path, here: Path) -> str:
    return path.name if path.parent == here else f"{path.parent.name}/{path.name}"


def ours_alone(tests: Iterable[Test]) -> str:
    """Why our own alone pass these."""
    return "<br>".join(f"ours alone: {test.name}: {test.ours_because}" for test in tests)
