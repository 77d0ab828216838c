"""The form of the product's C code, where no formatter holds it (docs/decisions/41-form-of-c.md).

Method: the sources are read as text. Width is compared without rulers, comments that only divide a file.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.arch.test_rooms import c_files, text_of

FILES = c_files(under=("driver_native", "archive", "aeron_spark"))
WIDTH = 140  # 130 is the measure; an expression or a text may pass it where a break reads worse
RULER = re.compile(r"-{10,} \*/$")
INCLUDES = re.compile(r"(?:^#include [^\n]+\n)+", re.MULTILINE)
NAME = re.compile(r'[<"]([^>"]+)')
# A block that opens on the line of its condition. Initialisers do: their brace follows "=", ")" of a cast, "return" or a comma.
OPENED = re.compile(r"^\s*(?:(?:if|for|while|switch) \(.*\)|else|do|(?:enum|union|struct)(?: \w+)?) \{$|^\w[^=]*\) \{$")
# The order of these is the system's: a header needs those before it.
OWN_ORDER = {Path("driver_native/src/base/thread.c")}


def lines(path: Path) -> list[tuple[int, str]]:
    """Numbered lines of a file."""
    return list(enumerate(text_of(path).splitlines(), 1))


def test_there_is_something_to_check() -> None:
    assert len(FILES) > 300


@pytest.mark.parametrize("what", ["too wide", "a tab", "a space at the end", "a block on the line of its condition"])
def test_no_line_has(what: str) -> None:
    has = {
        "too wide": lambda line: len(line) > WIDTH and not RULER.search(line),
        "a tab": lambda line: "\t" in line,
        "a space at the end": lambda line: line != line.rstrip(),
        "a block on the line of its condition": lambda line: OPENED.search(line) is not None,
    }[what]
    assert [f"{path}:{number}" for path in FILES for number, line in lines(path) if has(line)] == []


def test_files_end_with_one_newline() -> None:
    assert [str(path) for path in FILES if not text_of(path).endswith("\n") or text_of(path).endswith("\n\n")] == []


def test_includes_are_in_order() -> None:
    """Within each paragraph; the first one of a source file is its own header."""
    wrong = []
    for path in set(FILES) - OWN_ORDER:
        for block in INCLUDES.findall(text_of(path)):
            names = [found[1] for line in block.splitlines() if (found := NAME.search(line))]
            if names != sorted(names):
                wrong.append((str(path), names))
    assert wrong == []
