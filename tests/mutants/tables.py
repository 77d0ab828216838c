"""The tables of mutants: each `*.toml` beside this file lists single breakages of the product and the test that must notice.

    [[mutant]]
    name = "limit-ignored"             # unique over all tables
    breaks = "A publisher writes beyond its limit."
    file = "driver_native/src/client/publication.c"
    old = '''exact text, once in the file'''
    new = '''what stands there instead; it compiles'''
    killed_by = "ctest c_client_test_streams"

`killed_by` names one test, as quick as can be: `ctest NAME`, `pytest NODE-ID`, or `sim` or `sim_archive` for a simulation, some
seed of which must fail. A mutant is text and not a patch, so it survives changes of the lines around it, and needs no tool.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

TABLES = Path(__file__).resolve().parent
ROOT = TABLES.parents[1]
# Executable of each simulation: its folder in tests/simulation.
SIMULATIONS = {"sim": "transport", "sim_archive": "archive"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One breakage of one file, and the test that must fail with it."""

    name: str
    breaks: str
    file: str
    old: str
    new: str
    killed_by: str

    @property
    def runner(self) -> str:
        """`ctest`, `pytest`, `sim` or `sim_archive`."""
        return self.killed_by.split(" ", 1)[0]

    @property
    def test(self) -> str:
        """Name of the test for its runner; empty for a simulation."""
        return self.killed_by.partition(" ")[2]

    def apply_to(self, text: str) -> str:
        """Return the text with the breakage; ValueError where the old text does not occur exactly once."""
        count = text.count(self.old)
        if count != 1:
            raise ValueError(
                f"mutant {self.name}: its old text occurs {count} times in {self.file}; write the entry anew"
            )
        return text.replace(self.old, self.new)

    def check(self, root: Path = ROOT) -> None:
        """Raise ValueError where the entry does not fit the sources or names no test."""
        if self.runner not in {"ctest", "pytest", *SIMULATIONS} or (self.runner in SIMULATIONS) == bool(self.test):
            raise ValueError(
                f"mutant {self.name}: killed_by = {self.killed_by!r} is none of: ctest NAME, pytest ID, sim, sim_archive"
            )
        if self.old == self.new or not self.breaks:
            raise ValueError(f"mutant {self.name}: it changes nothing, or does not say what it breaks")
        self.apply_to((root / self.file).read_text(encoding="utf-8"))


def load() -> list[Mutant]:
    """All mutants of all tables by name; ValueError for a name that occurs twice."""
    found: dict[str, Mutant] = {}
    for table in sorted(TABLES.glob("*.toml")):
        for entry in tomllib.loads(table.read_text(encoding="utf-8"))["mutant"]:
            mutant = Mutant(**entry)
            if mutant.name in found:
                raise ValueError(f"mutant {mutant.name} stands twice, again in {table.name}")
            found[mutant.name] = mutant
    return [found[name] for name in sorted(found)]
