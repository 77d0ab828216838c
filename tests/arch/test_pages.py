"""ARCHITECTURE, CONTRIBUTING and the decision pages stay short, name what exists, and lose no page.

Method: the pages are read as text. Every path in backquotes that begins at the root must exist, and the target of every link.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.arch.test_rooms import ROOT, rooms, text_of

LINES, COLUMNS = 120, 130
DECISIONS = ROOT / "docs/decisions"
PAGES = [
    Path(name)
    for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "SECURITY.md", "tests/README.md")
    if (ROOT / name).exists()
] + [path.relative_to(ROOT) for path in sorted((ROOT / "docs").rglob("*.md")) if "spec" not in path.parts]
# `[ch]` and `{a,b}` as a shell reads them; a name with a placeholder is none.
AT_ROOT = re.compile(r"`((?:aeron_spark|archive|driver_native|tests|docs|conf|examples)/[\w./\[\]{},*-]*)`")


def expanded(name: str) -> list[str]:
    """Names that a shell makes of one with a brace."""
    brace = re.search(r"\{([\w,]+)\}", name)
    return [name.replace(brace[0], one) for one in brace[1].split(",")] if brace else [name]


def test_the_overview_is_two_screens() -> None:
    lines = text_of(Path("ARCHITECTURE.md")).splitlines()
    assert len(lines) <= LINES
    assert [line for line in lines if len(line) > COLUMNS] == []


def test_the_overview_has_every_module() -> None:
    overview = text_of(Path("ARCHITECTURE.md"))
    named = {one for name in re.findall(r"^\| `([^`]+)` \|", overview, re.MULTILINE) for one in expanded(name)}
    assert named >= {
        str(folder) for room in rooms() for folder in room.folders if not folder.is_relative_to("aeron_spark")
    }


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_what_a_page_names_exists(page: Path) -> None:
    text = text_of(page)
    missing = [one for name in AT_ROOT.findall(text) for one in expanded(name) if not any(ROOT.glob(one.rstrip("/")))]
    links = re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", text)
    missing += [link for link in links if not (ROOT / page.parent / link).exists()]
    assert missing == []


def test_decisions_are_numbered_and_listed() -> None:
    pages = sorted(path.name for path in DECISIONS.glob("[0-9]*.md"))
    assert [name[:2] for name in pages] == [f"{number:02}" for number in range(1, len(pages) + 1)]
    listed = re.findall(r"^\| \[(\d\d)\]\((\S+)\) \| (.+) \|$", text_of(Path("docs/decisions/README.md")), re.MULTILINE)
    assert [name for _, name, _ in listed] == pages
    for _, name, title in listed:
        text = text_of(Path("docs/decisions") / name)
        assert text.startswith(f"# {title}\n\n## Context\n"), name
        assert "\n## Choice\n" in text, name
