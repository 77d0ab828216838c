"""The parts of the Spark source import each other one way: planning, then reading and writing, then the source on top.

Method: imports are read from the syntax tree, those inside functions and for type checkers included.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SPARK = Path(__file__).parents[2] / "aeron_spark" / "spark"
#: What the modules of a part, or a module beside the parts, may not import.
FORBIDDEN = {
    "planning": ("reading", "writing", "source", "listener"),
    "reading": ("writing", "source", "listener"),
    "writing": ("reading", "source", "listener"),
    "access.py": ("planning", "reading", "writing", "source", "listener"),
    "features.py": ("reading", "writing", "source", "listener", "access", "planning.options", "planning.planner"),
    "launch.py": ("planning", "reading", "writing", "source", "listener", "access"),
    "log.py": ("planning", "reading", "writing", "source", "listener", "access", "features", "launch", "ledger"),
    "ledger.py": ("planning", "reading", "writing", "source", "listener", "access"),
}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("part", FORBIDDEN)
def test_a_part_imports_only_what_lies_below(part: str) -> None:
    files = [SPARK / part] if part.endswith(".py") else sorted((SPARK / part).glob("*.py"))
    assert files
    found = {
        f"{path.relative_to(SPARK)} imports {name}"
        for path in files
        for name in imports(path)
        for other in FORBIDDEN[part]
        if f"{name}.".startswith(f"aeron_spark.spark.{other}.")
    }
    assert not found


def test_nothing_uses_what_is_for_tests() -> None:
    """The package runs without it; only the fixtures import pytest."""
    package, fixtures = SPARK.parent, "pytest_aeron_spark.py"
    found = {
        f"{path.relative_to(package)} imports {name}"
        for path in package.rglob("*.py")
        if path.name != fixtures
        for name in imports(path)
        if name.split(".")[0] in ("pytest", "tests")
        or (f"{name}.".startswith("aeron_spark.testing.") and package / "testing" not in path.parents)
    }
    assert not found
