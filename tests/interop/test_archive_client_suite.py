"""Goal: the C archive client gets the same answers from a stock archive as from ours.

Method: the C suite `tests/c/archive/test_client_archive.c`, which `ctest` runs against our archive, is run against a
stock one; each of its checks is a contract that both archives keep.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.kit import native, stock

SUITE = "archive/c_archive_test_client_archive"
SUITE_TIMEOUT_S = 120


def test_the_c_suite_passes_against_a_stock_archive(aeron_dir: Path, archive_dir: Path) -> None:
    suite = native.executable(SUITE)
    with stock.archive(aeron_dir, archive_dir, with_driver=True):
        done = subprocess.run(
            [suite, "--aeron-dir", aeron_dir],
            capture_output=True,
            text=True,
            timeout=SUITE_TIMEOUT_S,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok an_own_aeron_client_serves_as_well" in done.stdout
