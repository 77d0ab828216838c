"""A driver in this process, a client on it, a recording made through the archive, and the recordings of a market."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aeron_spark import Archive, ArchivingMediaDriver, Client, MediaDriver
from aeron_spark.cli.__main__ import main
from aeron_spark.tables import scans
from tests.kit.market import Market, opened

SETTINGS = {
    "aeron.threading.mode": "SHARED",
    "aeron.archive.threading.mode": "SHARED",
    "aeron.ipc.term.buffer.length": "64k",
    "aeron.archive.segment.file.length": "128k",
    "aeron.driver.termination.validator": "allow",
}
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def driver(aeron_dir: Path) -> Iterator[MediaDriver]:
    with MediaDriver(aeron_dir, settings=SETTINGS) as made:
        yield made


@pytest.fixture
def client(driver: MediaDriver) -> Iterator[Client]:
    with Client(driver.aeron_dir, name="test") as made:
        yield made


@pytest.fixture
def servers(aeron_dir: Path, archive_dir: Path) -> Iterator[ArchivingMediaDriver]:
    with ArchivingMediaDriver(archive_dir, aeron_dir, settings=SETTINGS) as made:
        yield made


@pytest.fixture
def archive(servers: ArchivingMediaDriver) -> Iterator[Archive]:
    with Archive(aeron_dir=servers.aeron_dir) as opened:
        yield opened


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """`run(verb, ...)` is `aeron-spark archive verb ...`: its exit code, and all that it prints."""

    def archive_verb(verb: str, *arguments: object) -> tuple[int, str]:
        code = main(["archive", verb, *map(str, arguments)])
        captured = capfd.readouterr()
        return code, captured.out + captured.err

    return archive_verb


@pytest.fixture(scope="module")
def market() -> Iterator[Market]:
    with opened() as made:
        yield made


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scans read little at a time."""
    monkeypatch.setattr(scans, "PIECE_BYTES", 50_000)
    monkeypatch.setattr(scans, "MAX_CUTS", 3)
