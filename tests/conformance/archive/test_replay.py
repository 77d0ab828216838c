"""Scenarios 43 to 60: replays give the recorded data in the requested range, and refuse impossible requests.

Spec: 08 §7.2-7.4.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from aeron_spark._native._lib import lib
from tests.conformance.archive import folder
from tests.conformance.archive.archive import READ_BYTES, REPLAY_SESSIONS, SEGMENT, TERM, Archive, await_value, ours
from tests.conformance.archive.codec import (
    EMPTY_RECORDING,
    ERROR,
    GENERIC,
    INVALID_POSITION,
    MAX_REPLAYS,
    OK,
    REMOTE,
    STOP,
    UNKNOWN_RECORDING,
)
from tests.conformance.archive.conftest import Archives
from tests.conformance.archive.control import Session
from tests.conformance.archive.folder import DATA, PAD
from tests.conformance.archive.streams import (
    IPC,
    Recorded,
    Replay,
    Stream,
    assert_content,
    assert_messages,
    begin,
    record,
)
from tests.kit.ports import free_port
from tests.kit.processes import Process
from tests.kit.wait import wait_until

Streams = Callable[[], int]
ALL_STREAMS = 90_001
SUFFIX = r", recordingId=\d+, replaySessionId=-?\d+, segmentFile=\d+-\d+\.rec$"


@pytest.fixture(scope="module")
def run(archive: Archive) -> Iterator[Recorded]:
    """A stopped recording of 200 messages over several segments, for tests that change nothing."""
    with Session(archive) as session:
        yield record(session, ALL_STREAMS, count=200)


def ask(session: Session, recording_id: int, **fields: object) -> int:
    """Send a replay request to a stream without a subscriber; its correlation id."""
    values = {"replayChannel": IPC, "replayStreamId": 99_999, **fields}
    name = "BoundedReplayRequest" if "limitCounterId" in values else "ReplayRequest"
    return session.request(name, recordingId=recording_id, **values)


def test_s43_a_whole_replay(archive: Archive, session: Session, run: Recorded) -> None:
    """A replay has the recorded payloads, flags, reserved values and positions under its own ids, and an end of stream."""
    frames = folder.frames(archive.archive_dir, run.recording_id)
    assert len(folder.segments(archive.archive_dir, run.recording_id)) > 2
    before = archive.counter(READ_BYTES)
    with Replay(session, run.recording_id) as replay:
        got = replay.read_to_end()
        assert replay.taken.image.end_of_stream_position in (frames[-1].end, None)
    assert_content(got, frames)
    assert_messages(got, run, 200)
    assert {(frame.session_id, frame.stream_id) for frame in got} == {(replay.image_session_id, replay.stream_id)}
    # What did not fit a batch whole is read twice.
    assert archive.counter(READ_BYTES) - before >= sum(
        frame.end - frame.begin for frame in frames if frame.type == DATA
    )


@pytest.mark.parametrize("spied", [True, False], ids=["local", "remote"])
def test_s43_a_replay_over_udp(archive: Archive, session: Session, stream: int, spied: bool) -> None:
    """A recording of udp, by a spy or as a subscriber, replayed over udp, is the same to the byte."""
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}|term-length=64k"
    run = record(session, stream, count=100, channel=channel, **({} if spied else {"location": REMOTE}))
    with Replay(session, run.recording_id, channel=f"aeron:udp?endpoint=127.0.0.1:{free_port()}") as replay:
        got = replay.read_to_end()
    assert_content(got, folder.frames(archive.archive_dir, run.recording_id))
    assert_messages(got, run, 100)


def test_s44_positions_that_cannot_be(session: Session, run: Recorded, streams: Streams) -> None:
    """A position off the alignment is E0; beyond or at the end, or below the start, E16; each with its text."""
    stop = session.descriptor(run.recording_id).stopPosition

    def refused(recording_id: int, position: int) -> tuple[int, str]:
        answer = session.answer(ask(session, recording_id, position=position))
        assert answer.code == ERROR
        return answer.relevantId, answer.errorMessage

    mine = run.recording_id
    start = "requested replay start position="
    assert refused(mine, 33) == (GENERIC, f"{start}33 is not a multiple of FRAME_ALIGNMENT (32) for recording {mine}")
    for position in (1 << 20, stop):
        assert refused(mine, position) == (
            INVALID_POSITION,
            f"{start}{position} must be less than the limit position={stop} for recording {mine}",
        )
    late = record(session, streams(), count=5, channel=f"{IPC}|mtu=1408|init-term-id=1|term-id=1|term-offset=128")
    assert refused(late.recording_id, 64) == (
        INVALID_POSITION,
        f"{start}64 is less than recording start position=128 for recording {late.recording_id}",
    )
    assert refused(late.recording_id, -32)[0] == INVALID_POSITION
    assert refused(999_999, 0) == (UNKNOWN_RECORDING, "unknown recording id: 999999")


def test_s45_a_position_inside_a_frame(archive: Archive, session: Session, run: Recorded) -> None:
    """An aligned position that is no frame's is E16, with the place in the file, and no OK comes."""
    answer = session.answer(ask(session, run.recording_id, position=64))
    assert (answer.code, answer.relevantId) == (ERROR, INVALID_POSITION)
    assert answer.errorMessage.startswith(
        "replayPosition=64 (segmentFilePosition=0, segmentOffset=0, termOffset=64, frameOffset=0) does not point to a valid "
        f"frame, recordingId={run.recording_id}, "
    )
    assert re.search(SUFFIX, answer.errorMessage)
    session.barrier()
    assert session.seen("ControlResponse") == []
    await_value(lambda: archive.counter(REPLAY_SESSIONS), 0, "replay sessions")


def test_s46_a_length_inside_a_frame(session: Session, stream: int) -> None:
    """A length that ends within a frame is rounded up to the frame: of 1000 bytes comes the one frame of 1056."""
    run = record(session, stream, count=5, sizes=[1000])
    with Replay(session, run.recording_id, position=0, length=1000) as replay:
        (frame,) = replay.read_to_end()
    assert (frame.begin, frame.end, len(frame.payload)) == (0, 1056, 1000)


def test_s46_a_part(archive: Archive, session: Session, run: Recorded) -> None:
    """A replay from one frame to another gives the frames between, whatever segments they lie in."""
    frames = folder.frames(archive.archive_dir, run.recording_id)
    begin_at = next(frame.begin for frame in frames if frame.begin > SEGMENT - 2000)
    end_at = next(frame.begin for frame in frames if frame.begin > SEGMENT + 3 * 1408)
    with Replay(session, run.recording_id, position=begin_at, length=end_at - begin_at) as replay:
        got = replay.read_to_end()
    assert_content(got, [frame for frame in frames if begin_at <= frame.begin < end_at])


def test_s47_following_a_live_recording(archive: Archive, session: Session, stream: int) -> None:
    """A replay of an active recording of length -1 follows it, and ends when it has stopped and all was sent."""
    run = begin(session, stream)
    middle = run.write(20)
    with Replay(session, run.recording_id, position=0) as replay:
        replay.read_to(middle)
        end = run.write(300)
        replay.read_to(end)
        assert not replay.taken.image.is_ended
        run.stop()
        assert_messages(replay.read_to_end(), run, 320)
        assert replay.taken.image.position == end
    run.close()
    await_value(lambda: archive.counter(REPLAY_SESSIONS), 0, "replay sessions")


def test_s48_up_to_now(session: Session, stream: int) -> None:
    """Length -2 of an active recording ends where it stood at the request, whatever is recorded later."""
    run = begin(session, stream)
    run.write(20)
    now = run.write(1)
    with Replay(session, run.recording_id, position=0, length=-2) as replay:
        run.write(20)
        assert_messages(replay.read_to_end(), run, 21)
        assert replay.taken.image.position == now
    run.stop()
    run.close()


def test_s49_bounded(archive: Archive, session: Session, stream: int, opened: ExitStack) -> None:
    """A bounded replay sends no frame beyond its counter; raising it releases more, up to the counter's end."""
    run = begin(session, stream)
    first, second, third = run.write(20), run.write(20), run.write(20)
    limit = archive.client.add_counter(2345, "limit of a bounded replay")
    opened.callback(limit.close)
    limit.value = first
    replay = opened.enter_context(
        Replay(session, run.recording_id, position=0, length=2**63 - 1, limitCounterId=limit.counter_id)
    )
    replay.read_to(first)
    session.barrier()
    assert replay.taken.poll() == 0
    limit.value = second
    replay.read_to(second)
    refused = session.answer(ask(session, run.recording_id, position=third, limitCounterId=limit.counter_id))
    assert (refused.code, refused.relevantId) == (ERROR, INVALID_POSITION)
    assert refused.errorMessage == (
        f"requested replay start position={third} must be less than the limit position={second} for recording "
        f"{run.recording_id}"
    )
    limit.value = third
    limit.close()
    assert_messages(replay.read_to_end(), run, 60)
    run.stop()
    run.close()


@ours("Spec: 08 §8 - upstream's replay does not go on after its limit was inside a frame")
def test_s49_a_limit_inside_a_frame(archive: Archive, session: Session, run: Recorded, opened: ExitStack) -> None:
    """A frame that crosses the limit is not sent before the limit covers it."""
    frames = folder.frames(archive.archive_dir, run.recording_id)
    limit = archive.client.add_counter(2345, "limit of a bounded replay")
    opened.callback(limit.close)
    limit.value = frames[2].begin + 32
    with Replay(session, run.recording_id, position=0, limitCounterId=limit.counter_id) as replay:
        replay.read_to(frames[2].begin)
        session.barrier()
        assert replay.taken.poll() == 0
        limit.value = frames[5].begin
        replay.read_to(frames[5].begin)


@ours("Spec: 08 §8 - upstream reads on behind the end of the recording")
def test_s49_bounded_beyond_the_end(archive: Archive, session: Session, run: Recorded, opened: ExitStack) -> None:
    """A bounded replay of a stopped recording ends at the recording's end, however large its counter is."""
    limit = archive.client.add_counter(2345, "limit of a bounded replay")
    opened.callback(limit.close)
    limit.value = 2**63 - 1
    with Replay(session, run.recording_id, position=0, limitCounterId=limit.counter_id) as replay:
        assert_messages(replay.read_to_end(), run, 200)


def test_s49_no_such_counter(session: Session, run: Recorded) -> None:
    """A limit counter that is not allocated, or an id out of range, is E0 before all else."""
    refused = session.answer(ask(session, 999_999, limitCounterId=5000))
    assert (refused.code, refused.relevantId) == (ERROR, GENERIC)
    assert refused.errorMessage.startswith("unable to create replay limit counter id= 5000 because of: ")
    for counter_id in (1 << 20, -1):
        refused = session.answer(ask(session, run.recording_id, limitCounterId=counter_id))
        assert (refused.code, refused.relevantId) == (ERROR, GENERIC)
        assert refused.errorMessage.startswith(f"unable to create replay limit counter id= {counter_id} because of: ")


def test_s50_nobody_comes(impatient: Archive, stream: int) -> None:
    """Without a subscriber OK comes first and after the connect timeout an ERROR on the same correlation id."""
    with Session(impatient) as session:
        run = record(session, stream, count=5)
        correlation_id = ask(session, run.recording_id, replayStreamId=stream)
        assert session.answer(correlation_id).code == OK
        late = session.answer(correlation_id)
        assert (late.code, late.relevantId) == (ERROR, GENERIC)
        assert late.errorMessage.startswith("no connection established for replayChannel=aeron:ipc?")
        assert f"replayStreamId={stream}, recordingId={run.recording_id}, " in late.errorMessage
        assert re.search(SUFFIX, late.errorMessage)
        impatient.await_error("no connection established for replayChannel=")
        await_value(lambda: impatient.counter(REPLAY_SESSIONS), 0, "replay sessions")


def test_s51_stop(archive: Archive, session: Session, stream: int) -> None:
    """StopReplay is OK(0) and the image closes at once; an unknown id is OK(0) as well."""
    run = begin(session, stream)
    run.write(20)
    with Replay(session, run.recording_id, position=0) as replay:
        image = replay.taken.image
        assert session.ok("StopReplayRequest", replaySessionId=4711) == 0
        assert not image.is_ended
        replay.stop()
        replay.await_gone()
        with image._use() as pointer:
            assert lib.as_image_is_publication_revoked(pointer)
    await_value(lambda: archive.counter(REPLAY_SESSIONS), 0, "replay sessions")
    session.barrier()
    assert session.seen("ControlResponse") == []
    run.stop()
    run.close()


def test_s51_what_was_stopped_is_over(session: Session, streams: Streams) -> None:
    """In an archive of one thread a stopped replay does not block the request behind the OK of its stop."""
    for _ in range(10):
        run = record(session, streams(), count=5)
        with Replay(session, run.recording_id) as replay:
            replay.stop()
            session.ok("PurgeRecordingRequest", recordingId=run.recording_id)
        run = record(session, streams(), count=5)
        for _ in range(3):
            assert session.answer(ask(session, run.recording_id)).code == OK
        session.ok("StopAllReplaysRequest", recordingId=run.recording_id)
        session.ok("PurgeRecordingRequest", recordingId=run.recording_id)


def test_s51_stop_all(archive: Archive, session: Session, run: Recorded, stream: int) -> None:
    """StopAllReplays ends those of one recording, and with -1 all."""
    live = begin(session, stream)
    live.write(20)
    with Replay(session, run.recording_id) as first, Replay(session, live.recording_id) as second:
        for replay in (first, second):
            wait_until(lambda replay=replay: replay.taken.poll(1) == 1, 20, "a frame")  # type: ignore[misc]
        assert session.ok("StopAllReplaysRequest", recordingId=live.recording_id) == 0
        second.await_gone()
        assert first.subscription.is_connected
        assert session.ok("StopAllReplaysRequest", recordingId=-1) == 0
        first.await_gone()
    live.stop()
    live.close()


def test_s52_the_subscriber_leaves(archive: Archive, session: Session, run: Recorded) -> None:
    """When the subscriber leaves, the replay ends without a word and its slot is free."""
    with Replay(session, run.recording_id) as replay:
        replay.taken.poll(3)
        await_value(lambda: archive.counter(REPLAY_SESSIONS), 1, "replay sessions")
    await_value(lambda: archive.counter(REPLAY_SESSIONS), 0, "replay sessions")
    session.barrier()
    assert session.seen("ControlResponse") == []


def test_s52_a_slow_subscriber_holds_nobody_up(archive: Archive, session: Session, run: Recorded, stream: int) -> None:
    """A subscriber that does not read holds its own replay up; recordings and other replays go on."""
    with Replay(session, run.recording_id) as slow:
        slow.taken.poll(1)
        with Replay(session, run.recording_id) as quick:
            quick.read_to_end()
        other = record(session, stream, count=20)
        assert other.signal is not None
        assert_messages(slow.read_to_end(), run, 200)


QUICK_LIVENESS = {
    "aeron.client.liveness.timeout": "5s",  # a machine that stands still is no death
    "aeron.publication.unblock.timeout": "6s",
    "aeron.untethered.window.limit.timeout": "1s",
    "aeron.untethered.resting.timeout": "1s",
}

# Reads one frame of a replay and then nothing more, until it is killed.
DEAD_READER = """
import signal, sys
from aeron_spark.client import Client
client = Client(sys.argv[1])
subscription = client.add_subscription(sys.argv[2], int(sys.argv[3]))
print("ready", flush=True)
image = subscription.wait_image(30)
while not image.poll(lambda *_: None, 1):
    pass
print("reading", flush=True)
signal.pause()
"""


def test_s52_the_subscriber_is_killed(archives: Archives, streams: Streams) -> None:
    """When a subscriber is killed in mid-replay, the replay ends without a response, and recording continues meanwhile."""
    archive = archives(QUICK_LIVENESS)
    with Session(archive) as session:
        run, stream_id = record(session, streams(), count=200), streams()
        reader = Process(
            "dead reader", [sys.executable, "-c", DEAD_READER, str(archive.aeron_dir), IPC, str(stream_id)]
        )
        reader.wait_ready(lambda: "ready" in reader.stdout())
        assert session.answer(ask(session, run.recording_id, replayStreamId=stream_id)).code == OK
        reader.wait_ready(lambda: "reading" in reader.stdout())
        assert archive.counter(REPLAY_SESSIONS) == 1
        reader.kill()
        assert record(session, streams(), count=50).recording_id > run.recording_id
        await_value(lambda: archive.counter(REPLAY_SESSIONS), 0, "replay sessions", timeout=20)
        session.barrier()
        assert session.seen("ControlResponse") == []


LIMITED = {"aeron.archive.max.concurrent.replays": "2"}


def test_s53_too_many_replays(archives: Archives, streams: Streams, opened: ExitStack) -> None:
    """With the most concurrent replays there may be, one more is E7; when one ended, there is room again."""
    archive = archives(LIMITED)
    session = opened.enter_context(Session(archive))
    run = begin(session, streams())
    run.write(5)
    first, _ = (opened.enter_context(Replay(session, run.recording_id)) for _ in range(2))
    refused = session.answer(ask(session, run.recording_id))
    assert (refused.code, refused.relevantId) == (ERROR, MAX_REPLAYS)
    assert refused.errorMessage == "max concurrent replays reached 2"
    first.stop()
    await_value(lambda: archive.counter(REPLAY_SESSIONS), 1, "replay sessions")
    with Replay(session, run.recording_id) as again:
        again.read_to(run.position)
    run.stop()
    run.close()


def test_s54_file_io_below_the_mtu(session: Session, run: Recorded) -> None:
    """A fileIoMaxLength below the recording's mtu is E0; one equal to it replays all."""
    refused = session.answer(ask(session, run.recording_id, fileIoMaxLength=1407))
    assert (refused.code, refused.relevantId, refused.errorMessage) == (
        ERROR,
        GENERIC,
        "fileIoMaxLength=1407 < mtuLength=1408",
    )
    with Replay(session, run.recording_id, fileIoMaxLength=1408) as replay:
        assert_messages(replay.read_to_end(), run, 200)


CHECKED = {
    "aeron.archive.record.checksum": "org.agrona.checksum.Crc32",
    "aeron.archive.replay.checksum": "org.agrona.checksum.Crc32",
}


def damage(archive: Archive, run: Recorded, position: int, change: Callable[[bytearray], None]) -> None:
    """Change the bytes of a segment file from a position on."""
    base = folder.segment_base(archive.catalog().of(run.recording_id), position)
    path = folder.segment_path(archive.archive_dir, run.recording_id, base)
    with path.open("r+b") as file:
        file.seek(position - base)
        content = bytearray(file.read(64))
        change(content)
        file.seek(position - base)
        file.write(content)


def test_s55_a_flipped_byte(archives: Archives, stream: int) -> None:
    """With a replay checksum a flipped byte on disk is an ERROR with its position, and the image is revoked."""
    archive = archives(CHECKED)
    with Session(archive) as session:
        run = record(session, stream, count=200)
        frames = [it for it in folder.frames(archive.archive_dir, run.recording_id) if it.type == DATA and it.payload]
        broken = next(frame for frame in frames if frame.begin > TERM)

        def flip(content: bytearray) -> None:
            content[32] ^= 1

        damage(archive, run, broken.begin, flip)
        with Replay(session, run.recording_id) as replay:
            failed = assert_fails(session, replay, f"CRC checksum mismatch at position={broken.begin} (")
            assert f"recorded checksum={broken.session_id}, computed checksum=" in failed


def assert_fails(session: Session, replay: Replay, text: str) -> str:
    """The replay ends with an ERROR on its request that begins with `text`, and its image goes; the ERROR's text."""

    def failed() -> str | None:
        replay.poll_if_there()
        mine = session.seen("ControlResponse", lambda it: it.correlationId == replay.correlation_id)
        return mine[0].errorMessage if mine else None

    message = wait_until(failed, 20, "the replay to fail")
    answer = session.answer(replay.correlation_id)
    assert (answer.code, answer.relevantId) == (ERROR, GENERIC)
    assert message.startswith(text), message
    assert re.search(SUFFIX, message), message
    replay.await_gone()
    return message


DAMAGES: dict[str, Callable[[bytearray], None]] = {
    "length-0": lambda content: content.__setitem__(slice(0, 4), bytes(4)),
    "length-below-0": lambda content: content.__setitem__(slice(0, 4), b"\x00\x00\x00\x80"),
}
DAMAGES_SEEN_BY_OURS: dict[str, Callable[[bytearray], None]] = {
    "length-beyond-the-term": lambda content: content.__setitem__(slice(0, 4), b"\x00\x00\x00\x10"),
    "length-of-a-half-header": lambda content: content.__setitem__(slice(0, 4), b"\x10\x00\x00\x00"),
    "term-id": lambda content: content.__setitem__(20, content[20] ^ 1),
    "term-offset": lambda content: content.__setitem__(8, content[8] ^ 32),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_s55_a_broken_frame(archive: Archive, session: Session, stream: int, kind: str) -> None:
    """A frame in mid-recording without a length is an ERROR with recording and position, and no stall."""
    run = record(session, stream, count=200)
    position = next(it.begin for it in folder.frames(archive.archive_dir, run.recording_id) if it.begin > TERM)
    damage(archive, run, position, DAMAGES[kind])
    with Replay(session, run.recording_id) as replay:
        text = assert_fails(session, replay, f"unexpected end of recording at position={position} (")
        assert f"recordingId={run.recording_id}," in text


@ours(
    "upstream looks at no header behind the first: it sends such a frame, or its replayer never comes back", hangs=True
)
@pytest.mark.parametrize("kind", DAMAGES_SEEN_BY_OURS)
@pytest.mark.parametrize("is_live", [False, True], ids=["stopped", "live"])
def test_s55_a_corrupt_header(archive: Archive, session: Session, stream: int, kind: str, is_live: bool) -> None:
    """A frame whose header can't be at its place is an ERROR with recording and position, also while it records."""
    run = begin(session, stream)
    run.write(200)
    if not is_live:
        run.stop()
    record_now = archive.catalog().of(run.recording_id)
    frames = folder.frames(archive.archive_dir, run.recording_id, stop=run.position, record=record_now)
    position = [it.begin for it in frames if it.type == DATA][-2]
    damage(archive, run, position, DAMAGES_SEEN_BY_OURS[kind])
    with Replay(session, run.recording_id, length=run.position) as replay:
        text = assert_fails(session, replay, "unexpected ")
        assert f" at position={position} (" in text
        assert f"recordingId={run.recording_id}," in text
    if is_live:
        run.stop()
    run.close()


@ours("upstream takes such a frame for one that is still being recorded, and waits for ever", hangs=True)
@pytest.mark.parametrize("is_live", [False, True], ids=["stopped", "live"])
def test_s55_a_frame_beyond_the_end(archive: Archive, session: Session, stream: int, is_live: bool) -> None:
    """A frame that ends beyond the recorded position is an ERROR with its position, although it fits its term."""
    run = begin(session, stream)
    stop = run.write(10, sizes=[1000])
    if not is_live:
        run.stop()
    damage(archive, run, stop - 1056, lambda content: content.__setitem__(slice(0, 4), b"\x00\x10\x00\x00"))
    with Replay(session, run.recording_id, length=2**63 - 1) as replay:
        assert_fails(session, replay, f"unexpected end of recording at position={stop - 1056} (")
    if is_live:
        run.stop()
    run.close()


def test_s56_a_missing_segment(archive: Archive, session: Session, stream: int) -> None:
    """A segment file in the middle that is missing is an ERROR that says so."""
    run = record(session, stream, count=200)
    bases = folder.segments(archive.archive_dir, run.recording_id)
    assert len(bases) > 2
    folder.segment_path(archive.archive_dir, run.recording_id, bases[1]).unlink()
    with Replay(session, run.recording_id) as replay:
        text = assert_fails(session, replay, "recording segment not found")
        assert text.endswith(f"segmentFile={run.recording_id}-{bases[1]}.rec")


def test_s56_a_missing_first_segment(impatient: Archive, stream: int) -> None:
    """If the segment of the position is missing, the replay waits for it until the connect timeout and is then an ERROR."""
    with Session(impatient) as session:
        run = record(session, stream, count=5)
        folder.segment_path(impatient.archive_dir, run.recording_id, 0).unlink()
        answer = session.answer(ask(session, run.recording_id, replayStreamId=stream))
        assert (answer.code, answer.relevantId) == (ERROR, GENERIC)
        assert answer.errorMessage.startswith("recording segment file not created")


@ours("Spec: 08 §7.1 row 10 - upstream goes on after E15 and starts the replay")
def test_s57_replay_and_stop_of_nothing(archive: Archive, session: Session, stream: int) -> None:
    """Replay-and-stop of an empty active recording is E15 and nothing else; no slot is taken."""
    run = begin(session, stream)
    refused = session.answer(ask(session, run.recording_id, length=-2, replayStreamId=stream))
    assert (refused.code, refused.relevantId) == (ERROR, EMPTY_RECORDING)
    assert refused.errorMessage == (
        f"when replaying and stopping the replay length must be non-zero, recordingId={run.recording_id}"
    )
    await_value(lambda: archive.counter(REPLAY_SESSIONS), 0, "replay sessions")
    with archive.client.add_subscription(IPC, stream + 1_000_000):
        session.barrier()
    assert session.seen("ControlResponse") == []
    assert archive.counter(REPLAY_SESSIONS) == 0
    run.stop()
    run.close()


@pytest.mark.parametrize("length", [-1, 1000, 2**63 - 1])
def test_s57_a_replay_of_an_empty_recording(archive: Archive, session: Session, stream: int, length: int) -> None:
    """Who asks for no position may replay a stopped recording that is empty: the stream ends without a frame."""
    run = begin(session, stream)
    run.stop()
    run.close()
    with Replay(session, run.recording_id, length=length) as replay:
        # Its image may have come and gone between two looks.
        await_value(lambda: archive.counter(REPLAY_SESSIONS), 0, "replay sessions", timeout=20)
        assert replay.subscription.poll(lambda _message, _header: None) == 0
    refused = session.answer(ask(session, run.recording_id, position=0, length=length))
    assert (refused.code, refused.relevantId) == (ERROR, INVALID_POSITION)


@ours("Spec: 08 §8 step 2 - upstream idles until the subscriber leaves")
@pytest.mark.parametrize("start", [0, 96])
def test_s57_a_length_of_nothing(archive: Archive, session: Session, stream: int, start: int) -> None:
    """A replay of length 0 ends at once, although its subscriber stays."""
    run = record(session, stream, count=5, channel=f"{IPC}|mtu=1408|init-term-id=1|term-id=1|term-offset={start}")
    with Replay(session, run.recording_id, position=start, length=0):
        await_value(lambda: archive.counter(REPLAY_SESSIONS), 0, "replay sessions", timeout=4)


def test_s57_following_from_an_empty_start(session: Session, stream: int) -> None:
    """A follow replay of a recording that is still empty begins with its first frame."""
    run = begin(session, stream)
    with Replay(session, run.recording_id) as replay:
        end = run.write(10)
        replay.read_to(end)
        run.stop()
        assert_messages(replay.read_to_end(), run, 10)
    run.close()


@pytest.mark.parametrize(
    ("channel", "text"),
    [("aeron:ipc?linger=5s", "failed to process replayChannel - "), ("aeron:udp?endpoint=nowhere.invalid:0", "")],
    ids=["linger", "name"],
)
def test_s54_channels_that_fail(session: Session, run: Recorded, channel: str, text: str) -> None:
    """A replay channel with a linger in units, or an endpoint that can't be resolved, is E0."""
    answer = session.answer(ask(session, run.recording_id, replayChannel=channel))
    assert (answer.code, answer.relevantId) == (ERROR, GENERIC)
    assert text in answer.errorMessage


@ours("Spec: 07 §7 - upstream only logs a replay channel that does not parse, and answers nothing")
@pytest.mark.parametrize("channel", ["nonsense", ""])
def test_s54_channels_that_do_not_parse(session: Session, run: Recorded, channel: str) -> None:
    """A replay channel that is no Aeron URI is answered with E0."""
    correlation_id = ask(session, run.recording_id, replayChannel=channel)
    session.barrier()
    (answer,) = session.seen("ControlResponse")
    assert (answer.correlationId, answer.code, answer.relevantId) == (correlation_id, ERROR, GENERIC)
    assert answer.errorMessage.startswith("failed to process replayChannel - ")


def test_s60_padding(archive: Archive, session: Session, stream: int) -> None:
    """Where the recording has a padding, the replay's positions jump over it."""
    run = record(session, stream, count=200, sizes=[1000])
    frames = folder.frames(archive.archive_dir, run.recording_id)
    pads = [frame for frame in frames if frame.type == PAD]
    assert len(pads) == 3
    with Replay(session, run.recording_id) as replay:
        got = replay.read_to_end()
    assert_content(got, frames)
    for pad in pads:
        assert next(frame.begin for frame in got if frame.begin >= pad.begin) == pad.end
    with Replay(session, run.recording_id, position=pads[0].begin) as replay:
        assert replay.read_to_end()[0].begin == pads[0].end


def test_s60_the_signal_of_a_stop_ends_no_replay_early(session: Session, stream: int) -> None:
    """A follow replay that lags behind when the recording stops still gives every frame."""
    run = begin(session, stream)
    run.write(20)
    with Replay(session, run.recording_id) as replay:
        replay.taken.poll(1)
        run.write(200)
        run.stop()
        run.close()
        assert_messages(replay.read_to_end(), run, 220)
    assert session.seen("RecordingSignalEvent", lambda it: it.signal == STOP) == []


def test_s52_the_publication_of_a_stream_lives_on(archive: Archive, session: Session, stream: int) -> None:
    """A replay whose control session has gone still runs to its end."""
    with Session(archive) as other:
        run = record(other, stream, count=200)
        replay = Replay(other, run.recording_id)
        replay.taken.poll(1)
    with replay:
        assert_messages(replay.read_to_end(), run, 200)


def test_s47_two_publications_one_recording_each(archive: Archive, session: Session, stream: int) -> None:
    """Concurrent recordings of one stream replay each its own messages."""
    first = begin(session, stream)
    with Stream(archive.client, IPC, stream) as second:
        signal = session.expect("RecordingSignalEvent")
        first.publish(30)
        second.publish(40)
        first.await_recorded()
        await_value(
            lambda: getattr(archive.recording_counter(signal.recordingId), "value", None), second.position, "it"
        )
        first.stop()
        session.signal(STOP, signal.recordingId)
    first.close()
    for recording_id, run, count in ((first.recording_id, first, 30), (signal.recordingId, second, 40)):
        with Replay(session, recording_id) as replay:
            assert_messages(replay.read_to_end(), run, count)
