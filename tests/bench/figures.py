"""Writes the figures of the README and of docs/performance.md from the results of `make bench`: python -m tests.bench.figures.

The README takes rows that were measured against stock Aeron, did not fail and were not disturbed by other programs. The page
has every row, with what must be said of it; groups that the results lack keep the figures of an earlier run.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.pairs import RESULTS, ROOT, Row

README = ROOT / "README.md"
PAGE = ROOT / "docs" / "performance.md"
BEGIN = "<!-- figures{}: written by `make bench-figures`, not by hand -->"
END = "<!-- end of figures -->"
MILLION, HUNDRED = 1e6, 100
#: Rows of the README in its order, and what they are in words; the results have more.
ROWS = {
    "ipc_stream_32": "shared memory, messages of 32 bytes",
    "ipc_stream_288": "shared memory, messages of 288 bytes",
    "udp_stream_288": "UDP on loopback, messages of 288 bytes",
    "udp_stream_1344": "UDP on loopback, messages of 1,344 bytes",
    "udp_rtt_p50": "UDP round trip, median",
    "udp_rtt_p99": "UDP round trip, 99th percentile",
    "record_1k": "recording, messages of 1,024 bytes",
    "replay_1k": "replay, messages of 1,024 bytes",
}


def readme_block(rows: Sequence[Row], measured: str) -> str | None:
    """The lines between the marks; None where rows are missing: a run of some groups leaves the README as it is."""
    sound = [row for row in rows if not row.failure and not row.is_disturbed()]
    known = {row.name: row for row in sound if row.peer_name.startswith("stock")}
    chosen = [known[name] for name in ROWS if name in known]
    if len(chosen) < len(ROWS):
        return None
    lines = [_made(chosen, measured), "", "| | aeron_spark | stock Aeron | ratio |", "|---|---:|---:|---:|"]
    lines += [
        f"| {ROWS[row.name]} | {_figure(row.ours, row.unit)} | {_figure(row.peer, row.unit)} "
        f"({row.peer_name.removeprefix('stock ')}) | {row.ratio:.2f} |"
        for row in chosen
    ]
    return "\n".join(lines)


def page_block(rows: Sequence[Row], measured: str) -> str:
    """A group of rows on the page."""
    lines = [
        _made(rows, measured),
        "",
        "| row | aeron_spark | beside | ratio | spread | |",
        "|---|---:|---|---:|---:|---|",
    ]
    for row in rows:
        if row.failure:
            lines.append(f"| `{row.label()}` | | {row.peer_name} | | | failed |")
        else:
            lines.append(
                f"| `{row.label()}` | {_figure(row.ours, row.unit)} | {_figure(row.peer, row.unit)}, {row.peer_name} | "
                f"{row.ratio:.2f} | {row.spread:.0%} | {_remark(row)} |"
            )
    return "\n".join(lines)


def _made(rows: Sequence[Row], measured: str) -> str:
    least, most = min(row.runs for row in rows), max(row.runs for row in rows)
    runs = str(least) if least == most else f"{least} to {most}"
    return f"{rows[0].machine}; {measured}, commit {rows[0].commit}. Medians of {runs} pairs of runs."


def _remark(row: Row) -> str:
    """The row's target, whether it is met, and its share of what the machine can do."""
    target = "" if row.target is None else f"target {row.target:.2g}"
    verdict = (
        "" if row.target is None else "not judged" if row.is_disturbed() else "**missed**" if row.is_below() else ""
    )
    others = f"others {row.others:.0%}" if row.is_disturbed() else ""
    limit = row.details.get("limit")
    share = f"{limit['share']:.0%} of the machine's limit" if isinstance(limit, dict) else ""
    return ", ".join(filter(None, (target, verdict, others, share)))


def _figure(value: float, unit: str) -> str:
    """With three digits that count; a ratio says more than the rest."""
    if value >= MILLION:
        return f"{value / MILLION:.3g} million {unit}"
    return f"{value:,.0f} {unit}" if value >= HUNDRED else f"{value:.3g} {unit}"


def replaced(path: Path, of: str, text: str) -> None:
    """Put these lines between a file's marks."""
    begin = BEGIN.format(of)
    marked = re.compile(f"{re.escape(begin)}.*?{re.escape(END)}", re.DOTALL)
    found, count = marked.subn(lambda _: f"{begin}\n\n{text}\n\n{END}", path.read_text("utf-8"))
    if count != 1:
        sys.exit(f"{path} needs one block between {begin} and {END}")
    path.write_text(found, "utf-8")


def main(results: Path = RESULTS, readme: Path = README, page: Path = PAGE) -> None:
    """Write the blocks."""
    if not results.exists():
        sys.exit(f"{results} is not there: run `make bench` first")
    rows = [Row(**json.loads(line)) for line in results.read_text("utf-8").splitlines()]
    measured = datetime.fromtimestamp(results.stat().st_mtime, UTC).strftime("%-d %B %Y")
    if any("driver of " in row.peer_name for row in rows):
        sys.exit(f"{results} compares with another checkout: run `make bench` without BEFORE")
    block = readme_block(rows, measured)
    if block is None:
        print(
            f"the README keeps its figures: not all of {', '.join(ROWS)} were measured undisturbed against stock Aeron"
        )
    else:
        replaced(readme, "", block)
    for group in dict.fromkeys(row.group for row in rows):
        replaced(page, f" of {group}", page_block([row for row in rows if row.group == group], measured))


if __name__ == "__main__":
    main()
