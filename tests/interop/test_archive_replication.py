"""Goal: a recording goes from a stock archive to ours and from ours to a stock one, whole, in pieces, live, and over deaths.

Method: two archives with a driver each over UDP, one stock and one ours, both ways; control sessions are bare messages, and
what is compared is every byte of the segment files. Both alike: `tests/conformance/archive/test_replication.py`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from tests.conformance.archive import folder
from tests.conformance.archive.archive import ERRORS, MTU, TERM, Archive, await_value
from tests.conformance.archive.codec import EXTEND, MERGE, REPLICATE_END, STOP, SYNC
from tests.conformance.archive.control import Control, Session
from tests.conformance.archive.replication import await_end, common_end, replicate, same_bytes
from tests.conformance.archive.streams import begin, record
from tests.kit import stock
from tests.kit.ports import free_port
from tests.kit.wait import wait_until

FRAME_1024 = (1024,)
# Both notice what is gone after as long as a machine may stand still, instead of twice that.
SETTINGS = {
    "aeron.archive.message.timeout": "5s",
    "aeron.image.liveness.timeout": "5s",
    "aeron.client.liveness.timeout": "5s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """The two archives, and a session with each."""

    source: Archive
    destination: Archive
    of_source: Session
    of_destination: Session


@pytest.fixture(scope="module", params=["stock-to-ours", "ours-to-stock"])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    peers = ("stock-java", "ours") if request.param == "stock-to-ours" else ("ours", "stock-java")
    with ExitStack() as opened:
        source, destination = (
            opened.enter_context(Archive({**SETTINGS, "aeron.archive.id": str(60 + index)}, apart=True, peer=peer))
            for index, peer in enumerate(peers)
        )
        of_source, of_destination = (opened.enter_context(Session(end)) for end in (source, destination))
        yield Ends(source=source, destination=destination, of_source=of_source, of_destination=of_destination)


def await_copied(session: Session, copy: int, position: int) -> None:
    await_value(
        lambda: session.ok("MaxRecordedPositionRequest", recordingId=copy), position, "the copy's position", timeout=30
    )


def test_a_stopped_recording_in_two_pieces(ends: Ends) -> None:
    run = record(ends.of_source, 1, count=150)
    stop = ends.of_source.ok("StopPositionRequest", recordingId=run.recording_id)
    replication = replicate(ends.of_destination, ends.source, run.recording_id, stopPosition=TERM)
    copy = await_end(ends.of_destination, replication, stops=True)[0].recordingId
    reached = ends.of_destination.ok("StopPositionRequest", recordingId=copy)
    assert TERM <= reached < stop
    replication = replicate(ends.of_destination, ends.source, run.recording_id, dstRecordingId=copy)
    events = await_end(ends.of_destination, replication, stops=True)
    told = [(it.signal, it.position) for it in events if it.name == "RecordingSignalEvent"]
    assert told[:2] == [(EXTEND, reached), (SYNC, stop)]
    assert sorted(signal for signal, _ in told[2:]) == sorted([REPLICATE_END, STOP])
    same_bytes(ends.source, run.recording_id, ends.destination, copy, stop)


def test_an_active_recording(ends: Ends) -> None:
    run = begin(ends.of_source, 2)
    run.write(20)
    replication = replicate(ends.of_destination, ends.source, run.recording_id)
    copy = ends.of_destination.signal(EXTEND).recordingId
    position = run.write(100)
    await_copied(ends.of_destination, copy, position)
    run.stop()
    run.close()
    await_end(ends.of_destination, replication, stops=True)
    same_bytes(ends.source, run.recording_id, ends.destination, copy, position)


def test_merging_with_the_live_stream(ends: Ends) -> None:
    control = f"127.0.0.1:{free_port()}"
    channel = f"aeron:udp?control-mode=dynamic|control={control}|term-length={TERM}|mtu={MTU}|fc=min"
    run = begin(ends.of_source, 3, channel=channel)
    run.write(60)
    live = f"aeron:udp?endpoint=127.0.0.1:{free_port()}|control={control}"
    replicate(ends.of_destination, ends.source, run.recording_id, liveDestination=live)
    copy = ends.of_destination.signal(EXTEND).recordingId

    def merged() -> bool:
        if run.messages < 4000:
            run.publish(1, FRAME_1024)
        return bool(ends.of_destination.seen("RecordingSignalEvent", lambda it: it.signal in (MERGE, REPLICATE_END)))

    wait_until(merged, 30, "MERGE", state=lambda: ends.of_destination.inbox)
    ends.of_destination.signal(MERGE, copy)
    position = run.write(50)
    await_copied(ends.of_destination, copy, position)
    run.stop()
    run.close()
    assert ends.of_destination.signal(STOP, copy).position == position
    same_bytes(ends.source, run.recording_id, ends.destination, copy, position)


def await_some_way(session: Session, copy: int, stop: int, rng: random.Random) -> None:
    """Wait until the copy has come a random part of the way, so that a kill finds it anywhere."""
    position = rng.randrange(stop)
    wait_until(
        lambda: session.ok("MaxRecordedPositionRequest", recordingId=copy) >= position,
        20,
        f"the copy to reach {position}",
    )


def revive(archive: Archive) -> None:
    """Start an archive again.

    A kill leaves the pages of a write that were copied so far, and a stock archive refuses to start with the frame that is torn
    thus: its tool cuts it off. Ours makes a block visible when all of it is written.
    """
    wait_until(lambda: not archive.counters(ERRORS), 20, "the driver to forget the dead archive")
    try:
        archive.start()
    except AssertionError as refused:
        if archive.is_ours or "incomplete last fragment straddling page boundary" not in str(refused):
            raise
        stock.archive_tool(archive.archive_dir, "verify", answers="y\n")
        revive(archive)


def cut_padding(session: Session, ends: Ends, original: int, copy: int) -> None:
    """Take away what the death of a stock source has put at the end of a copy that ended with it.

    A stock replay moves the tail of its log, and then copies a block there. When it is killed in between, its driver sends
    padding in the place of what is not there yet, and that is recorded; nobody can copy on from within a frame. Ours moves the
    tail when the block is there.
    """
    stop = wait_until(lambda: session.ok("StopPositionRequest", recordingId=copy) + 1, 10, "the copy to be stopped") - 1
    end = common_end(ends.source, original, ends.destination, copy, stop)
    if end < stop:
        assert not ends.source.is_ours, f"ours sent what it never recorded, at {end} of {stop}"
        session.ok("TruncateRecordingRequest", recordingId=copy, position=end)
        await_value(lambda: session.ok("StopPositionRequest", recordingId=copy), end, "the copy's stop position")


def test_a_stock_archive_is_back_after_a_kill_within_a_write() -> None:
    with Archive({**SETTINGS, "aeron.archive.id": "62"}, apart=True, peer="stock-java") as archive:
        with Session(archive) as session:
            run = begin(session, 5)
            run.await_recorded(run.publish(30, FRAME_1024))
            archive.kill()
            run.close()
        torn, page = 27 * 1056, 7 * 4096
        with folder.segment_path(archive.archive_dir, run.recording_id, 0).open("r+b") as file:
            file.seek(page)
            file.write(bytes(30 * 1056 - page))
        revive(archive)
        with Session(archive) as session:
            assert session.ok("StopPositionRequest", recordingId=run.recording_id) == torn


def test_both_ends_die(ends: Ends, rng: random.Random) -> None:
    """The source, then the destination is killed while it copies; with both back the rest comes, every byte."""
    run = record(ends.of_source, 4, count=600, sizes=FRAME_1024)
    stop = ends.of_source.ok("StopPositionRequest", recordingId=run.recording_id)
    copies = []
    for victim, old in ((ends.source, ends.of_source), (ends.destination, ends.of_destination)):
        with Session(ends.destination) as session:
            replication = replicate(session, ends.source, run.recording_id)
            copies.append(session.signal(EXTEND).recordingId)
            await_some_way(session, copies[-1], stop, rng)
            victim.kill()
            Control.close(old)
            if victim is ends.source:
                await_end(session, replication)
                cut_padding(session, ends, run.recording_id, copies[-1])
        revive(victim)
    with Session(ends.source) as of_source, Session(ends.destination) as session:
        assert of_source.ok("StopPositionRequest", recordingId=run.recording_id) == stop
        for copy in copies:
            assert session.ok("StopPositionRequest", recordingId=copy) <= stop
            await_end(session, replicate(session, ends.source, run.recording_id, dstRecordingId=copy))
            await_value(
                lambda copy=copy: session.ok("StopPositionRequest", recordingId=copy), stop, "its stop position"
            )
            same_bytes(ends.source, run.recording_id, ends.destination, copy, stop)
