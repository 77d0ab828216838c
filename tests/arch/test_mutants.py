"""The tables of mutants fit the tree: each old text stands once in its file, and each test that is named exists.

A change of the code that makes an entry stale fails here, in milliseconds, and not in the hour of `make mutants`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.mutants import run, tables
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


def test_what_a_test_starts_is_built_from_the_broken_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package that is installed has servers and a command, too, and they are whole."""
    names = ["aeron-spark-driver", "aeron-spark-archive", "aeron-spark"]
    for name in names:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setattr(run, "PYTHON", tmp_path / "python")
    monkeypatch.setattr(run, "SOURCE", ROOT)
    program = f"""
import shutil
from aeron_spark.config import executable
from tests.kit import native
names = {names}
print(*map(executable, names[:2]), *map(native.executable, names[:2]), *map(shutil.which, names))
"""
    ok, text = run.run([sys.executable, "-c", program])
    assert ok, text
    assert text.split() == [str(tmp_path / name) for name in (*names[:2], *names[:2], *names)]
