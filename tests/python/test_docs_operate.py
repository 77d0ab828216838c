"""The pages of docs/operate, followed word for word.

Method: a page's commands run in their order in one shell. Before a section the test breaks what the section is about.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.kit import ports
from tests.python.test_docs import EXAMPLE_DIR, ROOT, run

FOLDER = ROOT / "docs" / "operate"
#: What happens before a section of a page.
ACCIDENTS = {
    "A segment is lost": "rm recordings/0-983040.rec",
    "The catalog is damaged": """
        kill -9 $archive; wait $archive || true
        rm recordings/archive-mark.dat  # as 10 s later
        head -c 100 /dev/urandom | dd of=recordings/archive.catalog bs=1 conv=notrunc status=none""",
}


def followed(page: str, aeron_dir: Path) -> str:
    """All commands of a page, and the accidents between."""
    lines = ["set -euo pipefail"]
    for part in re.split(r"^## ", (FOLDER / page).read_text("utf-8"), flags=re.MULTILINE):
        lines.append(ACCIDENTS.get(part.partition("\n")[0], ""))
        lines += re.findall(r"^```sh\n(.*?)^```", part, re.DOTALL | re.MULTILINE)
    return ports.own("\n".join(lines).replace(EXAMPLE_DIR, str(aeron_dir)))


@pytest.mark.parametrize(
    ("page", "told"),
    [
        (
            "backup.md",
            [
                r"1 recordings, \d files, .* in backup: copied \d files",
                r"2 recordings as of \S+: \d files, .*, their digests compared, to recordings$",
                r"^100000$",
            ],
        ),
        ("upgrade.md", [r"to recordings$", r"to moved$", "in backup-moved: copied"]),
        (
            "repair.md",
            [
                r"deleted \d+ segments up to position \d+",
                r"0-983040\.rec.*\n(.*\n)*.*a problem was found",
                r"1 recordings as of \S+: 1 files, .*, .* to recordings$",
                r"\(recordingId=1\) has segments in recordings, but is in no catalog",
            ],
        ),
    ],
)
def test_a_page_is_followed(page: str, told: list[str], tmp_path: Path, aeron_dir: Path) -> None:
    out = run(["bash", "-c", followed(page, aeron_dir)], tmp_path, timeout=200)
    for text in told:
        assert re.search(text, out, re.MULTILINE), (text, out)
    assert not aeron_dir.exists()


def test_every_page_is_followed() -> None:
    assert {path.name for path in FOLDER.glob("*.md")} == {"backup.md", "upgrade.md", "repair.md"}
