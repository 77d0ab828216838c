"""docs/spec and what the tree says of it: each citation leads somewhere, and each requirement has a test or a reason for none.

Method: all files of the tree; broken citations of each kind, which must be told with file and line.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.arch import spec, spec_musts

HERE = Path(__file__)


def faults(path: Path, text: str) -> list[str]:
    """What is wrong with the citations of a text, each with file and line."""
    found = []
    for citation in spec.citations(path, text):
        if isinstance(citation, spec.Malformed):
            found.append(f"{citation.place}: not of the form `Spec: NN §S`: {citation.text}")
        elif reason := spec.fault(citation):
            found.append(f"{citation.place}: Spec: {citation}: {reason}")
    return found


def test_each_citation_leads_to_a_section() -> None:
    cited = 0
    wrong = []
    for path in spec.files():
        if path == HERE:
            continue
        text = path.read_text("utf-8")
        cited += sum(isinstance(one, spec.Citation) for one in spec.citations(path, text))
        wrong += faults(path, text)
    assert not wrong, "\n".join(wrong)
    assert cited > 1000


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Spec: 12 §1", "there is no chapter 12"),
        ("/* Spec: 04 §1, §31.\n */", "chapter 04 has no §31"),
        ("Spec: 04 §8.1, 03 §60", "chapter 03 has no §60"),
        ("Spec: 01 §3-13", "chapter 01 has no §12"),
        ("# Spec: 02 §1,\n# §99", "chapter 02 has no §99"),
        ("Spec: 04 §24 T99", "04 §24 has no T99"),
        ("Spec: 11 N5, D99", "chapter 11 has no D99"),
        ("Spec: 11 D30-D33", "chapter 11 has no D32"),
        ("spec 04 §8.1", "not of the form"),
        ("(04 §8.1)", "not of the form"),
        ("Spec: 04 §8.1 and §8.2", "not of the form"),
        ("Spec: 04 §8.1; 03 §6", "not of the form"),
        ("spec 06 section 4", "not of the form"),
    ],
)
def test_a_broken_citation_is_told_with_its_place(text: str, told: str) -> None:
    (fault, *_) = faults(HERE, f"first line\n{text}")
    assert told in fault
    assert re.match(r"tests/arch/test_spec\.py:[23]: ", fault)


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("Spec: 04 §8.1, §9-10, 03 §6", ["04 §8.1", "04 §9-10", "03 §6"]),
        ("/* Spec: 04 §1,\n *   §2 */", ["04 §1", "04 §2"]),
        ("Spec: 11 N5, D9-D10", ["11 N5", "11-D10 D9"]),
        ("Spec: 06 (storage), 07 (protocol)", ["06"]),
        ("Spec: 04 §24 T4 - not the window. RFC 7914 §11", ["04 §24 T4"]),
        ("Spec: 08 §7.1 row 10, then 16 bytes", ["08 §7.1"]),
    ],
)
def test_a_citation_is_understood(text: str, cited: list[str]) -> None:
    assert [str(citation) for citation in spec.citations(HERE, text)] == cited


def test_the_index_names_each_chapter() -> None:
    index = (spec.SPEC / "README.md").read_text("utf-8")
    for chapter in spec.chapters().values():
        title = chapter.path.read_text("utf-8").split("\n", 1)[0].removeprefix(f"# {chapter.number} — ")
        assert f"| [{chapter.number}]({chapter.path.name}) | {title}" in index


def test_each_chapter_has_the_one_form() -> None:
    assert sorted(spec.chapters()) == [f"{number:02}" for number in range(1, 12)]
    for chapter in spec.chapters().values():
        lines = chapter.path.read_text("utf-8").splitlines()
        assert lines[0].startswith(f"# {chapter.number} — ")
        assert lines[2].startswith("**Scope:** ")
        assert lines[4].startswith("**Reference:** ")
        tops = [int(number) for number in chapter.sections if "." not in number]
        assert tops == list(range(tops[0], len(tops) + tops[0]))


def test_what_no_test_cites_is_explained_and_nothing_else() -> None:
    """A requirement that a test cites now needs no line in unproved.md any more; a new one needs a test, or a line."""
    found = spec_musts.requirements()
    reasons = spec_musts.unproved()
    uncited = {one.id for one in found.values() if not one.tests}
    assert sorted(uncited - set(reasons)) == [], "no test cites these: see `make spec-report`"
    assert sorted(set(reasons) - uncited) == [], "explained in unproved.md, but cited by a test or not there"


def test_a_section_that_is_cited_counts_for_its_subsections() -> None:
    found = spec_musts.requirements()
    citation = spec.Citation(HERE, 1, "04", "8")
    assert {one.id for one in spec_musts._cited(found, citation)} >= {"04 §8.1", "04 §8.10"}
    assert {one.id for one in spec_musts._cited(found, spec.Citation(HERE, 1, "04", "8.1"))} == {"04 §8.1"}
    assert {one.id for one in spec_musts._cited(found, spec.Citation(HERE, 1, "04", "2.5"))} == {"04 §2"}
    assert {one.id for one in spec_musts._cited(found, spec.Citation(HERE, 1, "11", None, None, "D9"))} == {"11 D9"}
