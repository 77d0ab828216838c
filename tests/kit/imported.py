"""What an imported capture's folder holds: messages of its recordings, and that they verify."""

from __future__ import annotations

from pathlib import Path

from aeron_spark.archive.tools import Catalog, VerifyOutcome
from aeron_spark.tables import scan

SEGMENT = 131_072


def values(folder: Path) -> dict[int, list[bytes]]:
    """Messages of each recording, by a table over the folder."""
    found: dict[int, list[bytes]] = {}
    table = scan(folder).to_table(columns=["recording_id", "value"])
    for row in table.to_pylist():
        found.setdefault(row["recording_id"], []).append(row["value"])
    return found


def verified(folder: Path, but: str | None = None) -> None:
    """Asserts that each recording verifies, but for reports with the text `but`."""
    with Catalog(folder) as catalog:
        reports = [catalog.verify(entry, all_segments=True) for entry in catalog.entries()]
    wrong = [report for report in reports if report.outcome != VerifyOutcome.OK]
    assert [report for report in wrong if but is None or but not in report.text] == []
