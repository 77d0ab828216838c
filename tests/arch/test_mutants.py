"""The tables of mutants fit the tree: each old text stands once in its file, and each test that is named exists.

A change of the code that makes an entry stale fails here, in milliseconds, and not in the hour of `make mutants`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants import tables
from tests.mutants.tables import Mutant

ROOT = Path(__file__).parents[2]
MUTANTS = tables.load()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_entry_fits_the_sources(mutant: Mutant) -> None:
    mutant.check()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_named_test_exists(mutant: Mutant) -> None:
    if mutant.test.startswith("fuzz_"):
        assert (ROOT / "tests" / "fuzz" / f"{mutant.test}.c").is_file()
    elif mutant.runner == "ctest":
        folder, _, name = mutant.test.removeprefix("c_").partition("_test_")
        assert (ROOT / "tests" / "c" / folder / f"test_{name}.c").is_file()
    elif mutant.runner == "pytest":
        path, *names = mutant.test.split("[")[0].split("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert all(f"def {name}(" in text or f"class {name}" in text for name in names)


def test_a_stale_entry_is_refused() -> None:
    some = MUTANTS[0]
    with pytest.raises(ValueError, match="occurs 0 times"):
        some.apply_to("another text")
    with pytest.raises(ValueError, match="occurs 2 times"):
        some.apply_to(some.old * 2)
