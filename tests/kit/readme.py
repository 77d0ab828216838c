"""The README's programs and commands, for the tests that run them here and where nothing of the source tree is."""

from __future__ import annotations

import re
from pathlib import Path

TEXT = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")
#: Numbers that the programs print, by themselves on a line: rows that a stream wrote, and that the sink committed.
COUNTS = ["100000", "1000"]


def blocks(language: str) -> list[str]:
    """Blocks of a language, in their order."""
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def program(aeron_dir: Path) -> str:
    """The snippets as one program, since each needs what those before it have made, with a driver in this directory."""
    return "".join(blocks("python")).replace("/dev/shm/aeron-example", str(aeron_dir))  # noqa: S108


def commands() -> list[str]:
    """Lines for the shell."""
    return "".join(blocks("sh")).splitlines()
