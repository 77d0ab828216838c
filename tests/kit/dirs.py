"""Fresh directories of the tests, recognisable and always removed.

Aeron directories lie in `/dev/shm/aeron-spark-test-*`, archives and other files in the same place: they are small.
The name holds the pid of the test session, and some letters as containers may share that memory: sessions that run side by
side do not accuse each other of leaks.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where Aeron directories live
PREFIX = f"aeron-spark-test-{os.getpid()}-{secrets.token_hex(3)}-"
# What stands for the machine's default Aeron directory, where somebody's driver may live.
DEFAULT = SHARED_MEMORY / f"{PREFIX}default"


def make(name: str) -> Path:
    """A fresh empty directory; the caller removes it, and the session's leak check sees to that."""
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{name}-", dir=SHARED_MEMORY))


def remove(path: Path) -> None:
    """Remove a directory tree and the error files that a driver writes beside it; gone already is fine."""
    shutil.rmtree(path, ignore_errors=True)
    for sibling in path.parent.glob(f"{path.name}-*-error.log"):
        sibling.unlink(missing_ok=True)


@contextmanager
def fresh(name: str) -> Iterator[Path]:
    """`make` for the length of a `with` block."""
    path = make(name)
    try:
        yield path
    finally:
        remove(path)


def leftovers() -> list[Path]:
    """What this session has made and not removed."""
    return sorted(SHARED_MEMORY.glob(f"{PREFIX}*"))
