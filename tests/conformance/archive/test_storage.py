"""Recovery and storage, Spec: 08 §19.75-83: what a killed archive finds again, and a catalog that grows."""

from __future__ import annotations

from contextlib import ExitStack

from tests.conformance.archive import folder
from tests.conformance.archive.archive import Archive
from tests.conformance.archive.control import Session
from tests.conformance.archive.streams import begin, record

CAPACITY = 4096
RECORDINGS = 30


def test_s75_a_killed_archive_finds_the_end_of_the_last_whole_frame(opened: ExitStack) -> None:
    """Killed in mid-recording: the stop position is the end of the last whole frame, which is all that was told."""
    archive = opened.enter_context(Archive(apart=True))
    session = opened.enter_context(Session(archive))
    with begin(session, 1) as run:
        told = run.write(200)
        archive.kill()
    archive.start()
    session = opened.enter_context(Session(archive))
    descriptor = session.descriptor(run.recording_id)
    assert (descriptor.startPosition, descriptor.stopPosition) == (0, told)


def test_s79_a_catalog_that_fills_grows_by_half(opened: ExitStack) -> None:
    """The file grows by half, again and again, and all recordings stay readable."""
    archive = opened.enter_context(Archive({"aeron.archive.catalog.capacity": str(CAPACITY)}))
    session = opened.enter_context(Session(archive))
    ids = [record(session, 100 + number, count=1).recording_id for number in range(RECORDINGS)]
    length, expected = (archive.archive_dir / "archive.catalog").stat().st_size, CAPACITY
    while expected < length:
        expected += expected // 2
    assert length == expected > CAPACITY
    catalog = folder.Catalog.read(archive.archive_dir)
    assert [catalog.of(recording_id).recording_id for recording_id in ids] == ids
