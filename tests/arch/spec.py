"""The chapters of docs/spec, and the citations of them all over the tree.

The form is in docs/spec/README.md: `Spec: 04 §8.1, §9-11, 05 §3` and, for items of chapter 11, `Spec: 11 N5, D9`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "docs" / "spec"
PRODUCT = ("driver_native", "archive", "aeron_spark", "examples", "conf")
OTHERS = ("tests", "docs", "ARCHITECTURE.md", "CHANGELOG.md", "README.md", "SECURITY.md")
SUFFIXES = {".c", ".h", ".py", ".md", ".java", ".toml", ".txt", ".conf", ".properties", ".service"}

_HEADING = re.compile(r"^(#{2,3}) (?:(\d+(?:\.\d+)*)\.?|([A-Z]\d+)) (.+)$")
_NUMBERED_PARAGRAPH = re.compile(r"^(\d+(?:\.\d+)+) ")
_RULE = re.compile(r"\bR(\d+(?:\.\d+){2})\b")
_SCENARIO = re.compile(r"\*\*(D\d+)\*\*")
_ROW = re.compile(r"^\| ([A-Z]\d+) \|")
_TRAP = re.compile(r"(?:^|(?<=[.;] ))(T\d+) ")

# Between two words of a citation: blanks, or the end of a line with the next line's comment sign.
_GAP = r"(?:[ \t]|\n[ \t]*(?:\*(?!/)|//|#)?[ \t]*)+"
_NUMBER = r"\d+(?:\.\d+)*"
_SECTION = re.compile(rf"§({_NUMBER})(?:-({_NUMBER}))?((?:{_GAP}[A-Z]\d+\b)?)")
_ITEM = re.compile(r"([NTACD]\d+)(?:-([NTACD]\d+))?\b")
_CHAPTER = re.compile(r"(\d\d)\b(?!\.)")
_START = re.compile(rf"\bSpec:{_GAP}(?=\d\d\b)")
_COMMA = re.compile(rf",{_GAP}")
_BLANK = re.compile(_GAP)
_NEXT = re.compile(r"\d\d (?:§|[NTACD]\d)")
_LIKE = re.compile(r"(?i)\bspec(?:ification)?\b:?\s*(?=\d\d\b)|\b(?:0[1-9]|1[01]) §(?=\d)|§(?=\d)")
_ELSEWHERE = re.compile(r"RFC \d+\s*$")  # sections of other documents


@dataclass(frozen=True)
class Section:
    """A heading of a chapter. Its items are headings, scenarios and rows with a letter and a number."""

    id: str
    title: str
    line: int
    text: str


@dataclass
class Chapter:
    number: str
    path: Path
    sections: dict[str, Section] = field(default_factory=dict)
    paragraphs: dict[str, int] = field(default_factory=dict)
    items: dict[str, dict[str, Section]] = field(default_factory=dict)  # of each section

    def resolves(self, section: str, item: str | None = None) -> bool:
        if section not in self.sections and section not in self.paragraphs:
            return False
        return item is None or item in self.items.get(section, {}) or f"{section}.{item[1:]}" in self.paragraphs

    def holder(self, item: str) -> Section | None:
        """The item of this id, whichever section has it; None if none or several."""
        found = [items[item] for items in self.items.values() if item in items]
        return found[0] if len(found) == 1 else None


@dataclass(frozen=True)
class Citation:
    """One section or item that a line names; `last` where it is a range."""

    path: Path
    line: int
    chapter: str
    section: str | None = None
    last: str | None = None
    item: str | None = None

    def __str__(self) -> str:
        section = f" §{self.section}" if self.section else ""
        item = f" {self.item}" if self.item else ""
        return f"{self.chapter}{section}{'-' + self.last if self.last else ''}{item}"

    @property
    def place(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"

    def names(self) -> list[str]:
        """The sections or items of the range, one by one."""
        first = self.section or self.item
        if first is None or self.last is None:
            return [first] if first else []
        split = re.compile(r"^(.*?)(\d+)$")
        (head, low), (tail, high) = (split.match(text).groups() for text in (first, self.last))  # type: ignore[union-attr]
        if head != tail:
            return [first, self.last]
        return [f"{head}{number}" for number in range(int(low), int(high) + 1)]


@dataclass(frozen=True)
class Malformed:
    """Text that looks like a citation and is none."""

    path: Path
    line: int
    text: str

    @property
    def place(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"


@cache
def chapters() -> dict[str, Chapter]:
    return {path.name[:2]: read_chapter(path) for path in sorted(SPEC.glob("[0-9][0-9]-*.md"))}


def read_chapter(path: Path) -> Chapter:
    chapter = Chapter(path.name[:2], path)
    lines = path.read_text("utf-8").splitlines()
    heads = [(number, match) for number, line in enumerate(lines) if (match := _HEADING.match(line))]
    section = ""
    for (start, match), end in zip(heads, [*(number for number, _ in heads[1:]), len(lines)], strict=True):
        text = "\n".join(lines[start + 1 : end])
        if match[2]:
            section = match[2]
            chapter.sections[section] = Section(section, match[4], start + 1, text)
        else:
            chapter.items.setdefault(section, {})[match[3]] = Section(match[3], match[4], start + 1, text)
        for number, line in enumerate(lines[start + 1 : end] if section else [], start + 2):
            _read_line(chapter, section, number, line)
    return chapter


def _read_line(chapter: Chapter, section: str, number: int, line: str) -> None:
    paragraph = _NUMBERED_PARAGRAPH.match(line)
    if paragraph and paragraph[1].startswith(f"{section}."):
        chapter.paragraphs[paragraph[1]] = number
    for rule in _RULE.finditer(line):
        chapter.paragraphs.setdefault(rule[1], number)
    traps = (_TRAP,) if "Traps" in chapter.sections[section].title else ()
    for pattern in (_SCENARIO, _ROW, *traps):
        for match in pattern.finditer(line):
            end = next((m.start() for m in pattern.finditer(line, match.end())), len(line))
            item = Section(match[1], "", number, line[match.end() : end])
            chapter.items.setdefault(section, {}).setdefault(match[1], item)


def files() -> Iterator[Path]:
    for name in (*PRODUCT, *OTHERS):
        top = ROOT / name
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            if path.is_file() and path.suffix in SUFFIXES and "golden" not in path.relative_to(ROOT).parts:
                yield path


def citations(path: Path, text: str) -> Iterator[Citation | Malformed]:
    """What a text cites, in order. In the specification itself the word `Spec:` is left out."""
    inside = SPEC in path.parents
    ends = []
    for start in re.finditer(r"\b(?=(?:0[1-9]|1[01]) §)", text) if inside else _START.finditer(text):
        end = start.end()
        for citation, end in _run(path, text, start.end()):  # noqa: B007 - the end of the last one is wanted
            yield citation
        ends.append((start.start(), end))
    for like in [] if inside else _LIKE.finditer(text):
        at = like.start()
        elsewhere = _ELSEWHERE.search(text[max(0, at - 20) : at])
        if not elsewhere and not any(low <= at < high for low, high in ends):
            yield Malformed(path, text.count("\n", 0, at) + 1, text[at : at + 30].split("\n", 1)[0])


def _run(path: Path, text: str, at: int) -> Iterator[tuple[Citation, int]]:
    chapter = None
    while True:
        line = text.count("\n", 0, at) + 1
        number = _CHAPTER.match(text, at)
        if number:
            chapter = number[1]
            blank = _BLANK.match(text, number.end())
            after = blank.end() if blank else number.end()
            if not _SECTION.match(text, after) and not _ITEM.match(text, after):
                yield Citation(path, line, chapter), number.end()
                at = number.end()
            else:
                at = after
        if chapter is None:
            return
        if match := _SECTION.match(text, at):
            item = match[3].split()[-1] if match[3] else None
            yield Citation(path, line, chapter, match[1], match[2], item), match.end()
            at = match.end()
        elif match := _ITEM.match(text, at):
            yield Citation(path, line, chapter, None, match[2], match[1]), match.end()
            at = match.end()
        elif not number:
            return
        comma = _COMMA.match(text, at)
        if not comma:
            return
        at = comma.end()
        if not (_SECTION.match(text, at) or _ITEM.match(text, at) or _NEXT.match(text, at)):
            return


def fault(citation: Citation) -> str | None:
    """Why a citation leads nowhere."""
    chapter = chapters().get(citation.chapter)
    if chapter is None:
        return f"there is no chapter {citation.chapter}"
    for name in citation.names():
        if citation.section is None:
            if chapter.holder(name) is None:
                return f"chapter {citation.chapter} has no {name}"
        elif not chapter.resolves(name):
            return f"chapter {citation.chapter} has no §{name}"
    if citation.section and citation.item and not chapter.resolves(citation.section, citation.item):
        return f"{citation.chapter} §{citation.section} has no {citation.item}"
    return None
