"""Scenarios 76 to 82: crashes in mid-frame, catalogs that grow, folders in use, and records that are marked invalid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.conformance.archive import folder
from tests.conformance.archive.archive import TERM, Archive, ours, tool
from tests.conformance.archive.codec import NULL, RECORDING_UNKNOWN
from tests.conformance.archive.control import Session
from tests.conformance.archive.streams import IPC, Recorded, Replay, assert_messages, begin, record

PAGE = 4096
# Three frames of 1,408 bytes: the third lies on two pages.
SIZES, STRADDLING, END = [1376], 2 * 1408, 3 * 1408


@pytest.fixture
def crashed(stream: int) -> Iterator[Callable[[Callable[[Recorded], int]], tuple[Archive, Recorded]]]:
    """Kills an archive once what a function published is recorded: the archive, not running, and the recording."""
    with ExitStack() as opened:

        def crash(publish: Callable[[Recorded], int]) -> tuple[Archive, Recorded]:
            archive = opened.enter_context(Archive(control=False))
            session = Session(archive)
            run = begin(session, stream, channel=f"{IPC}|mtu=1408")
            run.await_recorded(publish(run))
            archive.kill()
            run.close()
            session.close()
            return archive, run

        yield crash


def zero(archive: Archive, run: Recorded, first: int, last: int) -> None:
    """Overwrite a part of the first segment, as if it had never reached the disk."""
    with folder.segment_path(archive.archive_dir, run.recording_id, 0).open("r+b") as file:
        file.seek(first)
        file.write(bytes(last - first))


def note_writer(archive: Archive, note: bytes) -> None:
    """Overwrite what our archive says of itself in the catalog's header, which others leave alone."""
    with (archive.archive_dir / "archive.catalog").open("r+b") as file:
        file.seek(28 - len(note))
        file.write(note)


@pytest.mark.interop
def test_s76_a_torn_last_frame(crashed: Callable[..., tuple[Archive, Recorded]]) -> None:
    """A last frame whose second page is missing stops the start with its file; verify with consent cuts it off."""
    archive, run = crashed(lambda run: run.publish(3, SIZES))
    zero(archive, run, PAGE, END)
    note_writer(archive, bytes(8))  # ours knows its own crashes; this is what another's folder looks like
    with pytest.raises(AssertionError, match="incomplete last fragment straddling page boundary") as refused:
        archive.start()
    assert str(folder.segment_path(archive.archive_dir, run.recording_id, 0)) in str(refused.value)
    result = tool(archive.archive_dir, "verify", answers="y\n")
    assert "straddles a page boundary" in result.out, result.out
    archive.start()
    with Session(archive) as session:
        assert session.descriptor(run.recording_id).stopPosition == STRADDLING
        with Replay(session, run.recording_id) as replay:
            assert_messages(replay.read_to_end(), run, 2, sizes=SIZES)


@ours("upstream refuses to start and leaves it to `verify`")
def test_s76_a_frame_that_lost_power_tore(crashed: Callable[..., tuple[Archive, Recorded]]) -> None:
    """After another boot of the machine, a last frame whose second page is missing is cut off, and the archive starts."""
    archive, run = crashed(lambda run: run.publish(3, SIZES))
    zero(archive, run, PAGE, END)
    note_writer(archive, b"boot")
    archive.start()
    with Session(archive) as session:
        assert session.descriptor(run.recording_id).stopPosition == STRADDLING
        with Replay(session, run.recording_id) as replay:
            assert_messages(replay.read_to_end(), run, 2, sizes=SIZES)


def test_s77_a_whole_last_frame(crashed: Callable[..., tuple[Archive, Recorded]]) -> None:
    """A last frame on two pages that is whole is kept."""
    archive, run = crashed(lambda run: run.publish(3, SIZES))
    archive.start()
    with Session(archive) as session:
        descriptor = session.descriptor(run.recording_id)
        assert descriptor.stopPosition == END
        assert descriptor.stopTimestamp >= descriptor.startTimestamp
        with Replay(session, run.recording_id) as replay:
            assert_messages(replay.read_to_end(), run, 3, sizes=SIZES)


@ours("Spec: 06 §6 - a padding that is last and crosses a page has no bytes to prove it, and upstream refuses to start")
def test_s78_a_padding_is_last(crashed: Callable[..., tuple[Archive, Recorded]]) -> None:
    """A recording whose last frame is a padding over several pages is recovered to its end."""

    def publish(run: Recorded) -> int:
        run.publish(42, SIZES)
        assert run.publication.offer(bytes(8000)) < 0
        assert run.position == TERM
        return TERM

    archive, run = crashed(publish)
    archive.start()
    with Session(archive) as session:
        assert session.descriptor(run.recording_id).stopPosition == TERM
        with Replay(session, run.recording_id) as replay:
            assert_messages(replay.read_to_end(), run, 42, sizes=SIZES)


def test_s79_the_catalog_grows(opened: ExitStack) -> None:
    """A full catalog grows by half of its length as often as needed; its records stay readable, after a restart too."""
    archive = opened.enter_context(Archive({"aeron.archive.catalog.capacity": "2048"}, control=False))
    with Session(archive) as session:
        runs = [record(session, 600, count=1, channel=f"{IPC}|alias={'x' * 200}") for _ in range(12)]
        lengths = [2048]
        while lengths[-1] < 32 + len(runs) * 640:
            lengths.append(lengths[-1] + lengths[-1] // 2)
        catalog = archive.catalog()
        assert catalog.length in lengths[1:]
        assert [it.recording_id for it in catalog.records] == [run.recording_id for run in runs]
    archive.stop()
    archive.start()
    with Session(archive) as session:
        found, _ = session.descriptors(fromRecordingId=0, recordCount=100)
        assert [it.recordingId for it in found] == [run.recording_id for run in runs]
        assert record(session, 601, count=1).recording_id == len(runs)


def test_s80_a_folder_in_use(archive: Archive) -> None:
    """A second archive on a folder whose archive runs is refused, and the first does not notice."""
    with pytest.raises(AssertionError, match="active mark file detected"):
        Archive(archive_dir=archive.archive_dir, control=False)
    with Session(archive) as session:
        session.barrier()


@pytest.mark.interop
def test_s82_marked_invalid(opened: ExitStack) -> None:
    """A record that was marked invalid is invisible; marked valid it is back after a restart."""
    archive = opened.enter_context(Archive(control=False))
    with Session(archive) as session:
        first, second = (record(session, 600, count=3) for _ in range(2))
    archive.stop()
    tool(archive.archive_dir, "mark-invalid", str(first.recording_id))
    assert archive.catalog().of(first.recording_id).state == folder.INVALID
    archive.start()
    with Session(archive) as session:
        found, _ = session.descriptors(fromRecordingId=0, recordCount=10)
        assert [it.recordingId for it in found] == [second.recording_id]
        found, end = session.descriptors("ListRecordingRequest", recordingId=first.recording_id)
        assert (found, end and end.code) == ([], RECORDING_UNKNOWN)
        assert session.refused("StartPositionRequest", recordingId=first.recording_id).relevantId == 5
    archive.stop()
    tool(archive.archive_dir, "mark-valid", str(first.recording_id))
    archive.start()
    with Session(archive) as session:
        assert session.descriptor(first.recording_id).startPosition == 0
        with Replay(session, first.recording_id) as replay:
            assert_messages(replay.read_to_end(), first, 3)
        assert session.ok("StopPositionRequest", recordingId=second.recording_id) not in (NULL, 0)
