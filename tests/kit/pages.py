"""Commands of docs/ as tests run them: to the letter, but for the places that they name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def block(page: str, language: str, word: str) -> str:
    """The one block of a page and language that holds a word."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    (found,) = (text for text in blocks if word in text)
    return str(found)


def placed(text: str, places: Mapping[str, object]) -> str:
    """The text with the test's paths instead of the page's, each of which must occur."""
    for word, place in places.items():
        assert word in text, f"{word!r} is not in {text!r}"
        text = text.replace(word, str(place))
    return text
