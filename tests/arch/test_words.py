"""Code, tests and pages use the field's words: words that the project once had for them do not come back.

Method: text search, whole words, in all folders and pages but the specification, this file, and bytes that tests read.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("driver_native", "archive", "aeron_spark", "docs", "conf", "examples", "tests")
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")
SUFFIXES = (".c", ".h", ".py", ".md", ".properties", ".toml", ".java", ".rs")
EXCEPT = (Path(__file__), ROOT / "docs/spec", ROOT / "tests/golden", ROOT / "tests/fuzz/corpus")
# What was written, and what the field says.
INSTEAD = {
    r"rotas?": "round-robin schedule",
    r"mail(?:s|box(?:es)?)?(?!to:)": "command, command queue",
    r"hand_over\w*": "intrusive queue",
    r"looker": "snapshot cache",
    r"placed_?entry": "offset entry",
    r"outlets?": "pooled publication",
    r"patience": "deadline, timeout, backoff",
    r"under way": "in flight",
    r"in vain": "timed out",
    r"has its turn": "runs, is scheduled",
    r"the house": "the project",
    r"the spine": "the frame walker",
}
WORDS = re.compile("|".join(rf"\b{word}\b" for word in INSTEAD), re.IGNORECASE)


def pages() -> list[Path]:
    """Files whose words count."""
    found = [ROOT / one for one in PAGES]
    for folder in FOLDERS:
        found += [one for one in sorted((ROOT / folder).rglob("*")) if one.suffix in SUFFIXES and one.is_file()]
    return [one for one in found if not any(one == apart or apart in one.parents for apart in EXCEPT)]


def test_the_words_are_the_fields() -> None:
    assert len(pages()) > 700
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match.group()}"
        for path in pages()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        for match in WORDS.finditer(line)
    ]
    assert not found, f"say it in the field's words ({INSTEAD}):\n" + "\n".join(found)


@pytest.mark.parametrize("text", ["one rota", "by Mailbox", "asi: hand_over_put", "a call under way"])
def test_a_former_word_is_found(text: str) -> None:
    assert WORDS.search(text)
