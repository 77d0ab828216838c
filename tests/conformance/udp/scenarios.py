"""The table scenario > tests > who passes, made from the tests themselves.

    python -m tests.conformance.udp.scenarios > tests/conformance/udp/SCENARIOS.md

A test is a function `test_sNN_...` here, or `sNN_...` in the C tests of the driver, which run the same scenario in simulated
time. Who passes stands in the `ours(...)` marks: a marked test that passes against a stock peer is an error of that run, so
the runs keep the table true.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
C_TESTS = HERE.parents[1] / "c"
ROOMS = ("driver", "net", "rx", "tx")
STOCK = ("stock-java", "stock-c")
LAST = 68

TITLE = """# Scenarios of Spec: 04 §25

Against sockets, `make conformance PEER=ours|stock-java|stock-c`; in C, `ctest`, in simulated time. Made by
`python -m tests.conformance.udp.scenarios`; do not edit. A test that is ours alone is expected to fail against the stock peer.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A socket test: what it shows, and why stock peers do otherwise."""

    scenario: int
    name: str
    file: str
    sentence: str
    ours_because: str | None
    fails: tuple[str, ...]


def socket_tests() -> list[Test]:
    """All socket tests, in the order of their files."""
    found = []
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and (match := re.match(r"test_s(\d\d)_", node.name)):
                reason, but = _mark(node)
                found.append(
                    Test(
                        scenario=int(match[1]),
                        name=node.name,
                        file=path.name,
                        sentence=" ".join((ast.get_docstring(node) or "").split()),
                        ours_because=reason,
                        fails=tuple(peer for peer in STOCK if reason is not None and peer not in but),
                    )
                )
    return found


def _mark(node: ast.FunctionDef) -> tuple[str | None, tuple[str, ...]]:
    for mark in node.decorator_list:
        if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "ours":
            but = next((ast.literal_eval(keyword.value) for keyword in mark.keywords if keyword.arg == "but"), ())
            return ast.literal_eval(mark.args[0]), but
    return None, ()


def c_tests() -> dict[int, list[str]]:
    """Names of the C tests by scenario."""
    found: dict[int, list[str]] = {}
    for room in ROOMS:
        for path in sorted((C_TESTS / room).glob("*.c")):
            for name in re.findall(r"^static void (s\d\d_\w+)\(void\)", path.read_text(), re.MULTILINE):
                found.setdefault(int(name[1:3]), []).append(f"{room}/{path.stem}: {name}")
    return found


def table() -> str:
    """The table as Markdown."""
    sockets, in_c = socket_tests(), c_tests()
    lines = [TITLE, f"| | shown | sockets | C | {' | '.join(STOCK)} |", "|---|---|---|---|---|---|"]
    for number in range(1, LAST + 1):
        mine = [test for test in sockets if test.scenario == number]
        cells = [
            str(number),
            "<br>".join(test.sentence for test in mine),
            "<br>".join(f"{test.file}: {test.name}" for test in mine),
            "<br>".join(in_c.get(number, [])),
            *(_result(mine, peer) for peer in STOCK),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _result(tests: list[Test], peer: str) -> str:
    failing = [test for test in tests if peer in test.fails]
    if not tests:
        return ""
    if not failing:
        return "passes"
    return "<br>".join(f"ours alone: {test.name}: {test.ours_because}" for test in failing)


if __name__ == "__main__":
    sys.stdout.write(table())
