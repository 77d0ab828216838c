"""The table of scenarios is the one that the tests make."""

from __future__ import annotations

from tests.conformance.archive import scenarios


def test_every_scenario_has_a_test() -> None:
    covered = {test.scenario for test in scenarios.tests()}
    assert sorted(set(range(1, scenarios.LAST + 1)) - covered) == []


def test_every_test_says_what_it_shows() -> None:
    assert [test.name for test in scenarios.tests() if not test.sentence] == []


def test_the_table_is_up_to_date() -> None:
    committed = (scenarios.HERE / "SCENARIOS.md").read_text()
    command = "python -m tests.conformance.archive.scenarios > tests/conformance/archive/SCENARIOS.md"
    assert committed == scenarios.table(), f"run {command}"
