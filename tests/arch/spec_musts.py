"""Who proves what the specification demands: each section and item with the product's and the tests' files that cite it.

    python -m tests.arch.spec_musts            all of it
    python -m tests.arch.spec_musts uncited    only what no test cites

A requirement is a numbered section of docs/spec with text of its own, or an item of chapter 11 (`N1`, `A4`, `D12`). Its MUSTs
are numbered in order. A citation of a section is one of its subsections, too; items are cited by their own names. What no test
cites is explained, a line each, in docs/spec/unproved.md.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.arch import spec

UNPROVED = spec.SPEC / "unproved.md"
_MUST = re.compile(r"\bMUST\b")
_LINE = re.compile(r"^\| (\d\d (?:§[\d.]+|[A-Z]\d+)) \| (.+) \|$", re.MULTILINE)
_OURSELVES = spec.ROOT / "tests" / "arch"
_WITHOUT_ITEMS = ("04", "03", "05")  # their traps repeat rules of the sections, and are cited with their section


@dataclass
class Requirement:
    id: str
    title: str
    musts: list[str]
    product: set[str] = field(default_factory=set)
    tests: set[str] = field(default_factory=set)


def requirements() -> dict[str, Requirement]:
    """All of them with who cites them, in the order of the chapters."""
    found = {one.id: one for chapter in spec.chapters().values() for one in _of(chapter)}
    for path in spec.files():
        if path.suffix == ".md" or _OURSELVES in path.parents:
            continue
        name = str(path.relative_to(spec.ROOT))
        for citation in spec.citations(path, path.read_text("utf-8")):
            if isinstance(citation, spec.Citation):
                for one in _cited(found, citation):
                    (one.tests if name.startswith("tests/") else one.product).add(name)
    return found


def _of(chapter: spec.Chapter) -> Iterator[Requirement]:
    for section in chapter.sections.values():
        if section.text.strip():
            yield Requirement(f"{chapter.number} §{section.id}", section.title, _musts(section.text))
        if chapter.number not in _WITHOUT_ITEMS:
            for item in chapter.items.get(section.id, {}).values():
                yield Requirement(f"{chapter.number} {item.id}", item.title or _short(item.text), _musts(item.text))


def _musts(text: str) -> list[str]:
    begins = ((match.start(), text.rfind("\n", 0, match.start()) + 1) for match in _MUST.finditer(text))
    return [_short(text[max(line, at - 50) :]) for at, line in begins]


def _short(text: str) -> str:
    return text.strip().split("\n", 1)[0][:110]


def _cited(found: dict[str, Requirement], citation: spec.Citation) -> Iterator[Requirement]:
    for name in citation.names():
        sign = "§" if citation.section else ""
        whole = f"{citation.chapter} {sign}{name}"
        for key, one in found.items():
            if key == whole or (sign and key.startswith(f"{whole}.")):
                yield one
        # A numbered paragraph is part of the heading above it.
        if sign and whole not in found and not any(key.startswith(f"{whole}.") for key in found):
            above = found.get(f"{citation.chapter} §{name.rpartition('.')[0]}")
            if above:
                yield above


def unproved(path: Path = UNPROVED) -> dict[str, str]:
    """The requirements that docs/spec/unproved.md explains, each with its reason."""
    return dict(_LINE.findall(path.read_text("utf-8")))


def report(found: dict[str, Requirement], only_uncited: bool) -> Iterator[str]:
    reasons = unproved()
    for one in found.values():
        if only_uncited and one.tests:
            continue
        yield f"{one.id}  {one.title}"
        for number, text in enumerate(one.musts, 1):
            yield f"    M{number}  {text}"
        yield f"    product  {' '.join(sorted(one.product)) or '-'}"
        explained = f"none: {reasons[one.id]}" if one.id in reasons else "-"
        yield f"    tests    {' '.join(sorted(one.tests)) or explained}"
    musts = sum(len(one.musts) for one in found.values())
    cited = sum(bool(one.tests) for one in found.values())
    yield f"{len(found)} sections and items with {musts} MUSTs: {cited} cited by tests, {len(reasons)} explained in unproved.md"


if __name__ == "__main__":
    print("\n".join(report(requirements(), sys.argv[1:] == ["uncited"])))
