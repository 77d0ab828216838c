"""The table scenario > tests > who passes, made from the tests themselves.

    python -m tests.conformance.udp.scenarios > tests/conformance/udp/SCENARIOS.md

The C tests of the driver run the same scenario in simulated time.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.conformance.scenarios import Test, ours_alone, rows, tests_of

HERE = Path(__file__).parent
STOCK = ("stock-java", "stock-c")
LAST = 68

TITLE = f"""# Scenarios of Spec: 04 §25

Against sockets, `make conformance PEER=ours|stock-java|stock-c`; in C, `ctest`, in simulated time. Made by
`python -m tests.conformance.udp.scenarios`; do not edit. A test that is ours alone is expected to fail against the stock peer.

| | shown | sockets | C | {" | ".join(STOCK)} |
|---|---|---|---|---|---|
"""


def socket_tests() -> list[Test]:
    """All socket tests, in the order of their files."""
    return tests_of(sorted(HERE.glob("test_*.py")))


def table() -> str:
    """The table as Markdown."""
    return TITLE + rows(HERE, LAST, socket_tests(), "driver", "net", "rx", "tx", results=_results)


def _results(mine: list[Test]) -> list[str]:
    failing = {peer: [test for test in mine if test.ours_because and peer not in test.but] for peer in STOCK}
    return [ours_alone(tests) or ("passes" if mine else "") for tests in failing.values()]


if __name__ == "__main__":
    sys.stdout.write(table())
