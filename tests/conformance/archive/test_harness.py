"""The harness itself: a stream is recorded, listed, read from the folder and replayed, every frame."""

from __future__ import annotations

from tests.conformance.archive import folder
from tests.conformance.archive.archive import Archive
from tests.conformance.archive.control import Session
from tests.conformance.archive.streams import Replay, assert_content, assert_messages, record


def test_what_is_recorded_is_replayed(archive: Archive, session: Session, stream: int) -> None:
    run = record(session, stream, count=100)
    descriptor = session.descriptor(run.recording_id)
    on_disk = folder.frames(archive.archive_dir, run.recording_id)
    assert on_disk[-1].end == descriptor.stopPosition == archive.catalog().of(run.recording_id).stop_position
    with Replay(session, run.recording_id) as replay:
        got = replay.read_to_end()
        assert_content(got, on_disk)
        assert_messages(got, run, 100)
        assert {frame.session_id for frame in got} == {replay.image_session_id}
        assert {frame.stream_id for frame in got} == {replay.stream_id}
