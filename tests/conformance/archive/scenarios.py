"""The table scenario > tests > who passes, made from the tests themselves.

python -m tests.conformance.archive.scenarios > tests/conformance/archive/SCENARIOS.md
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.conformance.scenarios import TESTS, Test, ours_alone, rows, tests_of

HERE = Path(__file__).parent
# Scenarios of the client's constructs, whose subject is the client.
ELSEWHERE = ("interop", "python", "system")
LAST = 105

TITLE = """# Scenarios of Spec: 08 §19

`make conformance PEER=ours|stock-java`. Made by `python -m tests.conformance.archive.scenarios`; do not edit. A test that is
ours alone is expected to fail against the stock archive.

| | shown | test | C | stock-java |
|---|---|---|---|---|
"""


def tests() -> list[Test]:
    """All tests of scenarios, in the order of their files."""
    return tests_of(
        path for folder in (HERE, *(TESTS / name for name in ELSEWHERE)) for path in sorted(folder.glob("test_*.py"))
    )


def table() -> str:
    """The table as Markdown."""
    return TITLE + rows(HERE, LAST, tests(), "archive", results=lambda mine: [_stock(mine)])


def _stock(mine: list[Test]) -> str:
    if alone := [test for test in mine if test.ours_because is not None]:
        return ours_alone(alone)
    return "passes" if all(test.path.parent == HERE for test in mine) else "with stock peers in the test itself"


if __name__ == "__main__":
    sys.stdout.write(table())
