"""Wireshark's judgement on a capture, by tshark with its own dissectors. Debian's package tshark."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.kit import needs, require

#: The dissector of Aeron knows its frames by their content, and follows streams, only where it is told to.
AERON = (
    *("--enable-heuristic", "aeron_udp"),
    *("-o", "aeron.sequence_analysis:TRUE", "-o", "aeron.stream_analysis:TRUE"),
    *("-o", "aeron.use_heuristic_subdissectors:TRUE", "-o", "aeron.reassemble_fragments:TRUE"),
)


def run(capture: Path, *arguments: str, script: Path | None = None) -> str:
    """What tshark prints of a capture; `script`: a dissector in Lua. An error of tshark or of the script fails."""
    require.beyond("tshark")
    if needs.absent("tshark"):
        require.missing("no tshark on PATH: install tshark")
    load = () if script is None else ("-X", f"lua_script:{script}")
    # As root it warns, and reads no script of a user's folder.
    done = subprocess.run(
        ["tshark", "-r", str(capture), "-n", *load, *arguments],  # noqa: S607
        capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    told = [line for line in done.stderr.splitlines() if not line.startswith("Running as user")]
    assert (done.returncode, told) == (0, [])
    return done.stdout


def table(capture: Path, *fields: str, where: str = "", more: Sequence[str] = AERON) -> list[list[str]]:
    """Rows of fields; a field that is in a packet several times has its values between commas."""
    chosen = [argument for field in fields for argument in ("-e", field)]
    text = run(capture, *more, *(("-Y", where) if where else ()), "-T", "fields", "-E", "occurrence=a", *chosen)
    return [line.split("\t") for line in text.splitlines()]


def trees(capture: Path, *, where: str = "", more: Sequence[str] = AERON, script: Path | None = None) -> list[Any]:
    """The layers of each packet; a name that is in a layer twice has a list."""
    text = run(capture, *more, *(("-Y", where) if where else ()), "-T", "json", "--no-duplicate-keys", script=script)
    return [packet["_source"]["layers"] for packet in json.loads(text)]
