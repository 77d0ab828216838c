"""Writes the README's block of figures from the results of `make bench`: python -m tests.bench.readme.

Takes rows that were measured against stock Aeron, did not fail and were not disturbed by other programs.
"""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench.machine import DISTURBED
from tests.bench.pairs import RESULTS, ROOT

README = ROOT / "README.md"
BEGIN = "<!-- figures: written by `make bench-readme`, not by hand -->"
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


def block(rows: list[dict[str, Any]], measured: str) -> str:
    """The lines between the marks; SystemExit where there is nothing to show."""
    sound = [row for row in rows if not row["failure"] and row["others"] <= DISTURBED]
    known = {row["name"]: row for row in sound if row["peer_name"].startswith("stock")}
    chosen = [known[name] for name in ROWS if name in known]
    if not chosen:
        sys.exit(
            f"{RESULTS} has no row that was measured undisturbed against stock Aeron: run `make bench` without BEFORE"
        )
    lines = [
        f"{chosen[0]['machine']}; {measured}, commit {chosen[0]['commit']}. Medians of {_runs(chosen)} pairs of runs.",
        "",
        "| | aeron_spark | stock Aeron | ratio |",
        "|---|---:|---:|---:|",
    ]
    lines += [
        f"| {ROWS[row['name']]} | {_figure(row['ours'], row['unit'])} | {_figure(row['peer'], row['unit'])} "
        f"({row['peer_name'].removeprefix('stock ')}) | {row['ratio']:.2f} |"
        for row in chosen
    ]
    return "\n".join(lines)


def _runs(rows: list[dict[str, Any]]) -> str:
    least, most = min(row["runs"] for row in rows), max(row["runs"] for row in rows)
    return str(least) if least == most else f"{least} to {most}"


def _figure(value: float, unit: str) -> str:
    """With three digits that count; a ratio says more than the rest."""
    if value >= MILLION:
        return f"{value / MILLION:.3g} million {unit}"
    return f"{value:,.0f} {unit}" if value >= HUNDRED else f"{value:.3g} {unit}"


def replaced(readme: str, text: str) -> str:
    """The README with these lines between its marks."""
    marked = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    found, count = marked.subn(lambda _: f"{BEGIN}\n\n{text}\n\n{END}", readme)
    if count != 1:
        sys.exit(f"README.md needs one block between {BEGIN} and {END}")
    return found


def main(results: Path = RESULTS, readme: Path = README) -> None:
    """Write the block."""
    if not results.exists():
        sys.exit(f"{results} is not there: run `make bench` first")
    rows = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    measured = datetime.fromtimestamp(results.stat().st_mtime, UTC).strftime("%-d %B %Y")
    readme.write_text(replaced(readme.read_text("utf-8"), block(rows, measured)), "utf-8")


if __name__ == "__main__":
    main()
