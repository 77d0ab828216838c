"""A recording that is truncated below a query's offset and then extended past it.

The query must not read on behind bytes that it never saw. The frames have the same lengths, so that a message begins at every
position that the query knows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from aeron_spark.archive.segments import Folder
from aeron_spark.cli.__main__ import main
from aeron_spark.errors import DataLossError, PeerError
from aeron_spark.publication import ExclusivePublication
from tests.kit import dirs
from tests.kit.wait import wait_until
from tests.spark import recorded
from tests.spark.readers import Follower, read, stream

STREAM, LENGTH, FRAME = 1001, 100, 160
REPLACED = "other bytes stand before position"


@pytest.fixture
def archive() -> Iterator[recorded.Archive]:
    """An archive with recording 0: 100 messages of 100 bytes, stopped."""
    with ExitStack() as opened:
        aeron_dir, archive_dir = (opened.enter_context(dirs.fresh(name)) for name in ("aeron", "archive"))
        archive = opened.enter_context(recorded.archive(aeron_dir, archive_dir))
        assert archive.recorded(STREAM, 100, [LENGTH]) == 0
        yield archive


def extend(archive: recorded.Archive, count: int, *, first: int, session: str = "") -> None:
    """Go on with recording 0 at its end: messages first .. of the same lengths."""
    recording = archive.control.recording(0)
    assert recording is not None
    stop = recording.stop_position
    assert stop is not None
    place = f"init-term-id={recording.initial_term_id}|term-id={recording.term_id(stop)}"
    channel = f"{recorded.CHANNEL}|{place}|term-offset={recording.term_offset(stop)}{session}"

    def added() -> ExclusivePublication | None:
        try:
            return archive.client.add_exclusive_publication(channel, STREAM)
        except PeerError:
            return None  # the one before, of the same session, lingers

    with wait_until(added, 20, "the session to be free") as publication:
        subscribed = f"{recorded.CHANNEL}|session-id={publication.session_id}"
        archive.control.extend_recording(0, subscribed, STREAM)
        publication.wait_connected(10)
        recorded.publish(publication, STREAM, count, [LENGTH], first=first)
        archive.control.wait_position(0, publication.position, timeout=20)
        archive.control.stop_recording(subscribed, STREAM)
    wait_until(lambda: archive.control.stop_position(0) is not None, 20, "the recording to stop")


def replace_tail(archive: recorded.Archive, *, session: str = "") -> None:
    """The last 50 messages are replaced by 100 others."""
    archive.control.truncate_recording(0, 50 * FRAME)
    extend(archive, 100, first=1000, session=session)


def restarted(follower: Follower, path: Path, **options: str) -> Follower:
    """The query from its checkpoint, which holds the offset as text."""
    again = Follower(path, **options)
    again.offset = json.loads(json.dumps(follower.offset))
    return again


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("is_pinned", [False, True], ids=["session", "pinned"])
def test_a_replaced_tail_is_data_loss(archive: recorded.Archive, *, is_restarted: bool, is_pinned: bool) -> None:
    """Also where the publisher has the old session id, so that only the messages differ."""
    described = archive.control.recording(0)
    assert described is not None
    with ExitStack() as opened:
        follower = opened.enter_context(Follower(archive.archive_dir))
        assert len(follower.step()) == 100
        replace_tail(archive, session=f"|session-id={described.session_id}" if is_pinned else "")
        if is_restarted:
            follower = opened.enter_context(restarted(follower, archive.archive_dir))
        with pytest.raises(DataLossError, match=f"{REPLACED} {100 * FRAME} .*truncated and then extended"):
            follower.step()


def test_a_replaced_tail_is_told_if_the_query_may_go_on(
    archive: recorded.Archive, caplog: pytest.LogCaptureFixture
) -> None:
    with Follower(archive.archive_dir, failOnDataLoss="false") as follower:
        assert len(follower.step()) == 100
        replace_tail(archive)
        assert [row["position"] for row in follower.step()] == [index * FRAME for index in range(100, 150)]
        assert REPLACED in caplog.text
        assert follower.step() == []


def test_a_planned_batch_whose_end_was_replaced(archive: recorded.Archive) -> None:
    """Spark plans a batch, journals its end and dies: read later, it must be the planned batch."""
    with ExitStack() as opened:
        follower = opened.enter_context(Follower(archive.archive_dir))
        planned = follower.reader.latestOffset(follower.offset, ReadAllAvailable())
        replace_tail(archive)
        reader = stream(archive.archive_dir)
        opened.callback(reader.stop)
        with pytest.raises(DataLossError, match=REPLACED):
            read(reader, reader.partitions(follower.offset, planned))


def test_an_extension_alone_is_none(archive: recorded.Archive) -> None:
    with Follower(archive.archive_dir) as follower:
        assert len(follower.step()) == 100
        extend(archive, 20, first=100)
        assert len(follower.step()) == 20
        archive.control.truncate_recording(0, 110 * FRAME)
        with pytest.raises(DataLossError, match="was truncated"):
            follower.step()


def test_an_offset_without_marks_goes_on(archive: recorded.Archive) -> None:
    """As older releases wrote it."""
    with Follower(archive.archive_dir) as follower:
        assert len(follower.step()) == 100
        assert set(follower.offset["marks"]) == {"0"}  # type: ignore[call-overload]
        follower.offset = {name: value for name, value in follower.offset.items() if name != "marks"} | {"version": 1}
        extend(archive, 20, first=100)
        assert len(follower.step()) == 20


def test_checksums_that_are_put_in_are_no_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The checksum tool writes them where frames have their session id."""
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, tmp_path / "archive") as archive:
        assert archive.recorded(STREAM, 100, [LENGTH]) == 0
    path = tmp_path / "archive"
    with Folder(path) as folder:
        before = folder.fingerprint(0, 100 * FRAME)
    with Follower(path) as follower:
        planned = follower.reader.latestOffset(follower.offset, ReadAllAvailable())
        assert main(["archive", "checksum", str(path), "--checksum", "crc-32", "--all-segments", "--yes"]) == 0, (
            capsys.readouterr()
        )
        assert len(read(follower.reader, follower.reader.partitions(follower.offset, planned))) == 100
    with Folder(path) as folder:
        assert folder.fingerprint(0, 100 * FRAME) == before >> 16 << 16


def test_fingerprints(archive: recorded.Archive) -> None:
    """Of every position that a frame ends at, also behind padding, and of no other."""
    wide = archive.recorded(STREAM + 1, 100, [8, 7000])
    with Folder(archive.archive_dir) as folder:
        assert folder.fingerprint(0, 0) == 0
        assert folder.fingerprint(0, 32) == 0, "no frame ends there"
        marks = [folder.fingerprint(0, index * FRAME) for index in range(1, 101)]
        assert 0 not in marks
        assert len(set(marks)) == 100
        assert len({mark & 0xFFFF for mark in marks}) == 1, "one session"
        stop = folder.recording(wide).stop_position
        assert stop is not None
        ends = range(recorded.TERM_LENGTH, stop, recorded.TERM_LENGTH)
        assert all(folder.fingerprint(wide, end) for end in ends), "terms end with padding"
