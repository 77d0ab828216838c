"""Golden folders are kept packed; this unpacks them."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: Path, to: Path) -> None:
    """Unpack a .tar.gz of ours below a folder."""
    with tarfile.open(archive) as packed:
        # The argument `filter` is younger than Python 3.11; without it, or this, Python 3.12 warns.
        packed.extraction_filter = lambda member, _: member
        packed.extractall(to)  # noqa: S202 - our own files
