"""What to do about errors that a first try by hand runs into: a remedy for the text of an error."""

from __future__ import annotations

import argparse
import re
import shlex

from aeron_spark.cli.common import other_drivers
from aeron_spark.config import default_aeron_dir

_NO_DRIVER = "no live driver"
_HINTS: tuple[tuple[str, str], ...] = (
    (
        _NO_DRIVER,
        "start one in another terminal, aeron-spark {server}; or name its directory with --dir or AERON_DIR{others}",
    ),
    (
        r"no archive reads control requests on channel=aeron:ipc",
        "start one in another terminal, aeron-spark archive run --beside-driver --dir {dir} --archive-dir FOLDER",
    ),
    (
        r"unknown recording id: \d+$|no recording found with recordingId",
        "aeron-spark archive list {folder} shows the recordings",
    ),
    (r"Permission denied", "run it as the user who owns that (`ls -ld` shows who), or take another folder"),
    (
        r"no subscriber within",
        (
            "start one in another terminal, aeron-spark subscribe{at} --channel {channel} --stream {stream}: channel "
            "and stream of both sides must be equal, and a longer --timeout waits longer"
        ),
    ),
    (
        r"Address already in use",
        "another program or another driver has that port: `ss -lunp` shows which; end it or take another port",
    ),
    (
        r"Cannot assign requested address",
        "a subscriber's endpoint is an address of its own machine; `ip address` shows them",
    ),
    (r"Unable to resolve host", "correct the name, or write the address itself: endpoint=192.168.1.7:40123"),
    (r"port invalid|Unresolved", "an endpoint is host:port, for example aeron:udp?endpoint=localhost:40123"),
    (
        r"invalid URI|URIs for UDP must|unknown.*scheme",
        "a channel is aeron:ipc, or aeron:udp?endpoint=host:port; quote it, the shell takes ? and | for its own",
    ),
)


def hint(error: str, options: argparse.Namespace) -> str:
    """A remedy, with the command's own directory, channel and stream in it; empty where none is known."""
    given = getattr(options, "dir", None)
    where = shlex.quote(str(given or default_aeron_dir()))
    values = {
        "dir": where,
        "server": f"archive run --dir {where} --archive-dir FOLDER"
        if options.verb == "archive"
        else f"driver --dir {where}",
        "others": other_drivers() if _NO_DRIVER in error else "",
        "at": f" --dir {where}" if given else "",
        "channel": shlex.quote(str(getattr(options, "channel", "aeron:ipc"))),
        "stream": getattr(options, "stream", 1001),
        "folder": shlex.quote(str(getattr(options, "path", "FOLDER"))),
    }
    return next((text.format(**values) for pattern, text in _HINTS if re.search(pattern, error)), "")
