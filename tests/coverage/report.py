"""Which lines of the product's C code the C tests reach: `python -m tests.coverage.report BUILD [--least PERCENT]`.

BUILD is a build folder made with `--coverage` in which the tests have run (`make coverage`). Prints each file below 100 %, the
worst first, with the lines that no test reaches, and the whole as a figure; exits with 1 where that is below PERCENT.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = tuple(ROOT / one for one in ("driver_native/src", "archive/src"))
AT_ONCE = 64

Lines = dict[Path, dict[int, int]]


def measured(build: Path) -> Lines:
    """Executions of each line that has code, by file; a file that several libraries compile counts once, by its best."""
    data = [one for one in sorted(build.resolve().rglob("*.gcda")) if "_test_" not in one.parts[-2]]
    lines: Lines = defaultdict(dict)
    for start in range(0, len(data), AT_ONCE):
        command = ["gcov", "--json-format", "--stdout", *map(str, data[start : start + AT_ONCE])]
        text = subprocess.run(command, cwd=build, check=True, capture_output=True, text=True).stdout
        for answer in text.splitlines():
            for source in json.loads(answer)["files"]:
                path = (build / source["file"]).resolve()
                if not any(folder in path.parents for folder in PRODUCT):
                    continue
                for line in source["lines"]:
                    number = line["line_number"]
                    lines[path][number] = max(lines[path].get(number, 0), line["count"])
    return lines


def ranges(numbers: Iterable[int]) -> Iterator[str]:
    """Ranges of consecutive numbers."""
    for _, group in groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        yield str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}"


def main() -> int:
    """Print the report; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--least", type=float, default=0.0, help="percent of lines that must be reached")
    options = parser.parse_args()
    lines = measured(options.build)
    if not lines:
        print(f"{options.build} holds no coverage data: build it with --coverage and run its tests", file=sys.stderr)
        return 2
    rows = []
    for path, counts in lines.items():
        missed = [number for number, count in counts.items() if not count]
        rows.append((1 - len(missed) / len(counts), path.relative_to(ROOT), len(counts), missed))
    for share, path, count, missed in sorted(rows, key=lambda row: row[:2]):
        if missed:
            print(f"{100 * share:6.1f} %  {count:5d} lines  {path}: {', '.join(ranges(missed))}")
    total = sum(count for _, _, count, _ in rows)
    reached = 100 * (1 - sum(len(missed) for _, _, _, missed in rows) / total)
    print(f"{reached:.1f} % of {total} lines of C in {len(rows)} files")
    return int(reached < options.least)


if __name__ == "__main__":
    sys.exit(main())
