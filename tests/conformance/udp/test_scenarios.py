"""The table of scenarios is the one that the tests make, and lacks none of them."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

from tests.conformance.udp import scenarios

TESTS = Path(__file__).parents[2]
LAST_OF_DELTA = 31


def test_every_scenario_has_a_test() -> None:
    covered = {test.scenario for test in scenarios.socket_tests()}
    assert sorted(set(range(1, scenarios.LAST + 1)) - covered) == []


def test_every_test_says_what_it_shows() -> None:
    assert [test.name for test in scenarios.socket_tests() if not test.sentence] == []


def test_the_table_is_up_to_date() -> None:
    committed = (scenarios.HERE / "SCENARIOS.md").read_text()
    assert committed == scenarios.table(), "run python -m tests.conformance.udp.scenarios > .../SCENARIOS.md"


def test_every_scenario_of_the_delta_names_tests_that_are_there() -> None:
    """DELTA.md is written by hand: a row for each scenario, and each file and each test of a row exists."""
    rows = [
        line.split("|")[1:-1]
        for line in (scenarios.HERE / "DELTA.md").read_text().splitlines()
        if line.startswith("| D")
    ]
    numbers = [list(map(int, re.findall(r"\d+", row[0]))) for row in rows]
    assert list(chain.from_iterable(range(one[0], one[-1] + 1) for one in numbers)) == list(range(1, LAST_OF_DELTA + 1))
    ours, stock = scenarios.HERE, TESTS / "interop"
    for name, _, in_c, sockets, with_stock in rows:
        for file in re.findall(r"`(\w+/\w+)`", in_c):
            assert (TESTS / "c" / f"{file}.c").exists(), f"{name}: {file}"
        for file in re.findall(r"`([\w/]+\.py)`", sockets + with_stock):
            assert any((folder / file).exists() for folder in (ours, stock, TESTS.parent)), f"{name}: {file}"
        for test in re.findall(r"delta: `(d\d\d)`", sockets):
            assert f"def test_{test}_" in (ours / "test_delta_1_53.py").read_text(), f"{name}: {test}"
        for test in re.findall(r"`(d\d\d)`", with_stock):
            found = "".join(path.read_text() for path in stock.glob("test_delta_1_53*.py"))
            assert f"def test_{test}_" in found, f"{name}: {test}"
        assert in_c.strip() or sockets.strip() or with_stock.strip(), name
