"""The lowest versions that pyproject.toml names of what users have already, for pip: `python -m tests.kit.lowest`."""

from __future__ import annotations

import tomllib
from pathlib import Path

#: Extras whose libraries a user brings along.
EXTRAS = ("pandas", "polars", "duckdb")


def lowest() -> list[str]:
    """Requirements of these versions alone."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = project["dependencies"] + [one for extra in EXTRAS for one in project["optional-dependencies"][extra]]
    return [one.replace(">=", "==") for one in named]


if __name__ == "__main__":
    print(*lowest(), sep="\n")
