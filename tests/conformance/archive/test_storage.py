"""Recovery and storage, Spec: 08 §19 scenarios 75-83: what a killed archive finds again, and a catalog that grows."""

from __future__ import annotations

import struct
from contextlib import ExitStack

import pytest

from tests.conformance.archive import folder
from tests.conformance.archive.archive import Archive, ours
from tests.conformance.archive.codec import DELETE
from tests.conformance.archive.control import Session
from tests.conformance.archive.streams import IPC, Replay, begin, record

CAPACITY = 4096
START_POSITION = 40  # in a record's body
RECORDINGS = 30


def test_s75_a_killed_archive_finds_the_end_of_the_last_whole_frame(opened: ExitStack) -> None:
    """Killed in mid-recording: the stop position is the end of the last whole frame, at least the last reported position."""
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


@ours("the stock archive serves a recording whose entry can't be, from wherever that points to")
@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
def test_s82_an_entry_that_can_not_be(opened: ExitStack, *, is_killed: bool) -> None:
    """A recording whose start position is none is listed as it is, named in the error log, not served, and can be purged."""
    archive = opened.enter_context(Archive(apart=True))
    session = opened.enter_context(Session(archive))
    bad, good = (record(session, stream, count=10).recording_id for stream in (200, 201))
    session.close()
    if is_killed:
        archive.kill()
    else:
        archive.stop()
    at = archive.catalog().of(bad).at + 32 + START_POSITION
    with (archive.archive_dir / "archive.catalog").open("r+b") as file:
        file.seek(at)
        file.write(struct.pack("<q", 33))
    archive.start()
    session = opened.enter_context(Session(archive))
    found, _ = session.descriptors("ListRecordingsRequest", fromRecordingId=0, recordCount=10)
    assert [(one.recordingId, one.startPosition) for one in found] == [(bad, 33), (good, 0)]
    assert session.ok("StartPositionRequest", recordingId=bad) == 33
    text = f"catalog entry of recording {bad} is damaged: startPosition=33 must be a multiple of 32"
    assert archive.await_error(text).startswith("ERROR - ")
    requests: list[tuple[str, dict[str, object]]] = [
        ("ReplayRequest", {"replayChannel": IPC, "replayStreamId": 9}),
        ("ExtendRecordingRequest2", {"channel": IPC, "streamId": 200}),
        ("TruncateRecordingRequest", {"position": 33}),
        ("DetachSegmentsRequest", {"newStartPosition": 0}),
        ("DeleteDetachedSegmentsRequest", {}),
        ("PurgeSegmentsRequest", {"newStartPosition": 0}),
        ("AttachSegmentsRequest", {}),
    ]
    for name, fields in requests:
        assert session.refused(name, recordingId=bad, **fields).errorMessage.startswith(text)
    for source, to in ((bad, good), (good, bad)):
        refused = session.refused("MigrateSegmentsRequest", srcRecordingId=source, dstRecordingId=to)
        assert refused.errorMessage.startswith(text)
    refused = session.refused(
        "ReplicateRequest2",
        srcRecordingId=good,
        dstRecordingId=bad,
        srcControlChannel=archive.control_channel,
        replicationChannel="aeron:udp?endpoint=127.0.0.1:0",
    )
    assert refused.errorMessage.startswith(text)
    with Replay(session, good) as replay:
        assert replay.read_to_end()
    session.ok("PurgeRecordingRequest", recordingId=bad)
    session.signal(DELETE, bad)
    assert [path.name for path in archive.archive_dir.glob(f"{bad}-*.rec")] == []
