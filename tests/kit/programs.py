"""Small programs of Python that a test runs in a process of their own."""

from __future__ import annotations

import subprocess
import sys


def ended_well(program: str) -> None:
    """Run a program, which ends with success and says nothing."""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
