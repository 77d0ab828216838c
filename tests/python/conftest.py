"""A driver in this process, a client on it, and a recording made through the archive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aeron_spark import ArchivingMediaDriver, Client, MediaDriver

SETTINGS = {
    "aeron.threading.mode": "SHARED",
    "aeron.archive.threading.mode": "SHARED",
    "aeron.ipc.term.buffer.length": "64k",
    "aeron.archive.segment.file.length": "128k",
    "aeron.driver.termination.validator": "allow",
}


@pytest.fixture
def driver(aeron_dir: Path) -> Iterator[MediaDriver]:
    with MediaDriver(aeron_dir, settings=SETTINGS) as opened:
        yield opened


@pytest.fixture
def client(driver: MediaDriver) -> Iterator[Client]:
    with Client(driver.aeron_dir, name="test") as opened:
        yield opened


@pytest.fixture
def servers(aeron_dir: Path, archive_dir: Path) -> Iterator[ArchivingMediaDriver]:
    with ArchivingMediaDriver(archive_dir, aeron_dir, settings=SETTINGS) as opened:
        yield opened
