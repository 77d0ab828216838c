"""Goal: our client maintains recordings of a stock archive, and a stock client those of the archive under test.

Method: the story of `tests.kit.maintenance`, which `tests/python` tells to our archive, is told to a stock one; the stock
client calls the same operations on ours, and every byte that is left is replayed and compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.archiving import Opened, assert_replays, record
from tests.kit import dirs, stock
from tests.kit.maintenance import FRAME, PER_SEGMENT, SEGMENT, Story, await_no_replay
from tests.kit.subject import Subject
from tests.kit.wait import wait_until

SIZES = [FRAME - 32]
SETTINGS = {"aeron.archive.segment.file.length": str(SEGMENT)}
DELETE = "DELETE"


def test_our_client_maintains_what_a_stock_archive_holds(aeron_dir: Path, archive_dir: Path) -> None:
    with stock.archive(aeron_dir, archive_dir, with_driver=True, settings=SETTINGS):
        Story(aeron_dir, archive_dir, stream=1).tell()


@pytest.fixture
def servers(subject: Subject) -> Iterator[tuple[Path, Path]]:
    with (
        dirs.fresh("driver") as aeron_dir,
        dirs.fresh("archive") as archive_dir,
        subject.driver(aeron_dir),
        subject.archive(aeron_dir, archive_dir, SETTINGS),
    ):
        yield aeron_dir, archive_dir


def test_a_stock_client_maintains_what_our_archive_holds(
    peer: Any, servers: tuple[Path, Path], opened: Opened, stream: int
) -> None:
    aeron_dir, archive_dir = servers
    archive = opened(peer.archiveClient(str(aeron_dir)))
    raw = archive.raw()
    run = record(archive, opened, stream, 4 * PER_SEGMENT + 3, sizes=SIZES)
    one = run.recording_id

    raw.detachSegments(one, 2 * SEGMENT)
    assert raw.getStartPosition(one) == 2 * SEGMENT
    assert raw.attachSegments(one) == 2
    raw.detachSegments(one, SEGMENT)
    assert raw.deleteDetachedSegments(one) == 1
    await_deleted(archive, one, 1)
    assert raw.purgeSegments(one, 2 * SEGMENT) == 1
    await_deleted(archive, one, 2)
    assert raw.truncateRecording(one, 4 * SEGMENT - FRAME) == 1
    await_deleted(archive, one, 3)
    assert {path.name for path in archive_dir.glob("*.rec")} == {f"{one}-{n * SEGMENT}.rec" for n in (2, 3)}
    assert_replays(
        archive,
        opened,
        one,
        2 * PER_SEGMENT - 1,
        start=2 * SEGMENT,
        stop=4 * SEGMENT - FRAME,
        sizes=SIZES,
        first=2 * PER_SEGMENT,
    )
    await_no_replay(aeron_dir)
    assert raw.purgeRecording(one) == 2
    await_deleted(archive, one, 4)
    assert list(archive_dir.glob("*.rec")) == []
    assert list(archive.listRecording(one)) == []


def await_deleted(archive: Any, recording_id: int, count: int) -> None:
    """Wait until so many DELETE signals of the recording came."""

    def told() -> bool:
        lines = [line for line in archive.signals() if f"recording={recording_id}|" in line and DELETE in line]
        return len(lines) == count

    wait_until(told, 10, f"{count} DELETE signals", state=archive.signals)
