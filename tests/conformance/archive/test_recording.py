"""Scenarios 18 to 35: recordings start, stop, extend, and lie on disk as they must.

Spec: 07 §12, 08 §2.1-2.2, §4.1-4.2, §4.4-4.5.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.conformance.archive import codec, folder
from tests.conformance.archive.archive import (
    EVENTS_STREAM,
    IS_OURS,
    RECORDING_SESSIONS,
    SEGMENT,
    TERM,
    Archive,
    await_value,
    tool,
)
from tests.conformance.archive.codec import (
    ACTIVE_RECORDING,
    ACTIVE_SUBSCRIPTION,
    ERROR,
    EXTEND,
    GENERIC,
    INVALID_EXTENSION,
    LOCAL,
    NULL,
    OK,
    REMOTE,
    START,
    STOP,
    UNKNOWN_RECORDING,
    UNKNOWN_SUBSCRIPTION,
    Message,
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
    extend_channel,
    record,
)
from tests.kit.ports import free_port
from tests.kit.wait import wait_until

Streams = Callable[[], int]


def listed(session: Session, stream_id: int, fragment: str = "") -> list[Message]:
    """The recording subscriptions of a stream."""
    found, _ = session.descriptors(
        "ListRecordingSubscriptionsRequest",
        subscriptionCount=100,
        applyStreamId=1,
        streamId=stream_id,
        channel=fragment,
    )
    return found


def start(session: Session, stream_id: int, channel: str = IPC, *, location: int = LOCAL, auto_stop: int = 0) -> int:
    """Start a recording; the subscription id."""
    return session.ok(
        "StartRecordingRequest2", channel=channel, streamId=stream_id, sourceLocation=location, autoStop=auto_stop
    )


def test_s18_start_recording(archive: Archive, session: Session, stream: int, opened: ExitStack) -> None:
    """A recording of ipc answers OK(subscription), then START with the request's ids; counter 100 has its key and label."""
    publication = opened.enter_context(Stream(archive.client, IPC, stream))
    correlation_id = session.request("StartRecordingRequest", channel=IPC, streamId=stream, sourceLocation=LOCAL)
    answer = session.answer(correlation_id)
    assert (answer.code, answer.errorMessage) == (OK, "")
    signal = session.signal(START)
    assert (signal.correlationId, signal.subscriptionId, signal.position) == (correlation_id, answer.relevantId, 0)
    counter = archive.recording_counter(signal.recordingId)
    assert counter is not None
    source = b"aeron:ipc"
    archive_id = folder.archive_id(archive.archive_dir)
    key = struct.pack("<qii", signal.recordingId, publication.session_id, len(source)) + source
    assert counter.key.rstrip(b"\0") == (key + struct.pack("<q", archive_id)).rstrip(b"\0")
    assert counter.label == (
        f"rec-pos: {signal.recordingId} {publication.session_id} {stream} aeron:ipc - archiveId={archive_id}"
    )
    position = publication.publish(10)
    await_value(lambda: getattr(archive.recording_counter(signal.recordingId), "value", None), position, "counter 100")
    descriptor = session.descriptor(signal.recordingId)
    assert (descriptor.originalChannel, descriptor.strippedChannel) == (IPC, "aeron:ipc")
    assert descriptor.sourceIdentity == "aeron:ipc"
    assert session.ok("StopRecordingSubscriptionRequest", subscriptionId=answer.relevantId) == 0
    assert session.signal(STOP, signal.recordingId).position == position
    await_value(lambda: archive.recording_counter(signal.recordingId), None, "counter 100 after the end")


def test_s19_a_stream_is_recorded_once(session: Session, stream: int) -> None:
    """The same channel and stream again is E3; with a session-id it is another key."""
    first = start(session, stream)
    for channel in (IPC, "aeron:ipc?alias=other", "aeron-spy:aeron:ipc"):
        refused = session.refused("StartRecordingRequest2", channel=channel, streamId=stream, sourceLocation=LOCAL)
        assert (refused.relevantId, refused.errorMessage) == (
            ACTIVE_SUBSCRIPTION,
            f"recording exists for streamId={stream} channel={channel}",
        )
    other = start(session, stream, f"{IPC}|session-id=77")
    assert {one.subscriptionId for one in listed(session, stream)} == {first, other}
    assert session.ok("StopRecordingRequest", channel="aeron:ipc?session-id=77", streamId=stream) == 0
    assert [one.subscriptionId for one in listed(session, stream)] == [first]
    session.ok("StopRecordingSubscriptionRequest", subscriptionId=first)
    assert listed(session, stream) == []
    session.ok("StopRecordingSubscriptionRequest", subscriptionId=start(session, stream, "aeron:ipc"))


@pytest.mark.parametrize(
    "channel", [f"{IPC}|alias={'z' * 6000}", f"aeron:udp?endpoint=localhost:0|interface={'i' * 2000}"]
)
def test_an_error_about_a_long_channel_is_an_answer(session: Session, stream: int, channel: str) -> None:
    """The driver's error quotes the channel; however long it is, the client gets an answer."""
    refused = session.refused("StartRecordingRequest2", channel=channel, streamId=stream, sourceLocation=LOCAL)
    assert refused.errorMessage


def test_s20_each_publication_is_a_recording(
    archive: Archive, session: Session, stream: int, opened: ExitStack
) -> None:
    """Two publications of one recorded stream are two recordings, each with its session."""
    subscription = start(session, stream)
    publications = [opened.enter_context(Stream(archive.client, IPC, stream)) for _ in range(2)]
    ids = [session.signal(START).recordingId for _ in publications]
    assert len(set(ids)) == 2
    sessions = {session.descriptor(recording_id).sessionId for recording_id in ids}
    assert sessions == {publication.session_id for publication in publications}
    session.ok("StopRecordingSubscriptionRequest", subscriptionId=subscription)
    assert {session.signal(STOP).recordingId for _ in ids} == set(ids)


def test_s21_a_publisher_ends_its_recording(archive: Archive, session: Session, stream: int) -> None:
    """When the publisher closes, STOP and the catalog have its last position, and a time not before the start."""
    run = begin(session, stream)
    position = run.publish(25)
    run.close()
    stopped = session.signal(STOP, run.recording_id)
    assert (stopped.position, stopped.subscriptionId) == (position, run.subscription_id)
    assert stopped.correlationId == run.correlation_id
    descriptor = session.descriptor(run.recording_id)
    assert descriptor.stopPosition == position
    assert descriptor.stopTimestamp >= descriptor.startTimestamp > 0
    on_disk = archive.catalog().of(run.recording_id)
    assert (on_disk.stop_position, on_disk.state) == (position, folder.VALID)
    session.ok("StopRecordingSubscriptionRequest", subscriptionId=run.subscription_id)


def test_s22_auto_stop(archive: Archive, session: Session, streams: Streams) -> None:
    """With auto-stop the subscription goes with its recording; without, a new publication is a new recording."""
    once = begin(session, streams(), auto_stop=True)
    once.close()
    session.signal(STOP, once.recording_id)
    wait_until(lambda: not listed(session, once.stream_id), 10, "the subscription to go")
    for_ever = begin(session, streams())
    for_ever.close()
    session.signal(STOP, for_ever.recording_id)
    assert [one.subscriptionId for one in listed(session, for_ever.stream_id)] == [for_ever.subscription_id]
    with Stream(archive.client, IPC, for_ever.stream_id):
        again = session.signal(START)
        assert again.recordingId > for_ever.recording_id
        assert again.subscriptionId == for_ever.subscription_id
        assert again.correlationId == for_ever.correlation_id
        session.ok("StopRecordingSubscriptionRequest", subscriptionId=for_ever.subscription_id)
        session.signal(STOP, again.recordingId)


def test_s23_stop_what_is_not_recorded(session: Session, stream: int) -> None:
    """Stopping by a channel, stream or subscription that is not recorded is E4; keys with a session-id are others."""
    refused = session.refused("StopRecordingRequest", channel=IPC, streamId=stream)
    assert refused.relevantId == UNKNOWN_SUBSCRIPTION
    assert refused.errorMessage == f"no recording found for streamId={stream} channel={IPC}"
    refused = session.refused("StopRecordingSubscriptionRequest", subscriptionId=123_456_789)
    assert refused.relevantId == UNKNOWN_SUBSCRIPTION
    assert refused.errorMessage == "no recording subscription found for subscriptionId=123456789"
    start(session, stream)
    assert session.refused("StopRecordingRequest", channel=f"{IPC}|session-id=5", streamId=stream).relevantId == 4
    assert session.ok("StopRecordingRequest", channel="aeron:ipc", streamId=stream) == 0


def test_s24_stop_by_identity(archive: Archive, session: Session, stream: int) -> None:
    """Stopping a recording by its id: OK(1) and STOP while active, OK(0) afterwards, E5 if it is unknown."""
    run = begin(session, stream)
    position = run.write(5)
    assert session.ok("StopRecordingByIdentityRequest", recordingId=run.recording_id) == 1
    assert session.signal(STOP, run.recording_id).position == position
    await_value(lambda: listed(session, stream), [], "the subscription to be gone")
    assert session.ok("StopRecordingByIdentityRequest", recordingId=run.recording_id) == 0
    refused = session.refused("StopRecordingByIdentityRequest", recordingId=999_999)
    assert (refused.relevantId, refused.errorMessage) == (UNKNOWN_RECORDING, "unknown recording id: 999999")
    run.close()


def test_s27_a_full_segment(archive: Archive, session: Session, stream: int) -> None:
    """Frames that fill a segment to the last byte leave a second, empty one; the recording stops at its base."""
    run = record(session, stream, count=SEGMENT // 1024, sizes=[992])
    assert session.descriptor(run.recording_id).stopPosition == SEGMENT
    assert folder.segments(archive.archive_dir, run.recording_id) == [0, SEGMENT]
    paths = [folder.segment_path(archive.archive_dir, run.recording_id, base) for base in (0, SEGMENT)]
    assert [path.stat().st_size for path in paths] == [SEGMENT, SEGMENT]
    assert not any(paths[1].read_bytes())
    frames = folder.frames(archive.archive_dir, run.recording_id)
    assert [frame.begin for frame in frames] == list(range(0, SEGMENT, 1024))


def test_s28_padding_on_disk(archive: Archive, session: Session, stream: int) -> None:
    """Where a message did not fit its term, the file has the 32-byte header of the padding, and zeros behind it."""
    run = record(session, stream, count=70, sizes=[1000])
    (pad,) = [frame for frame in folder.frames(archive.archive_dir, run.recording_id) if frame.type == PAD]
    assert (pad.end, pad.flags, pad.term_offset) == (TERM, 0xC0, pad.begin)
    assert pad.length == TERM - pad.begin > 32
    raw = folder.segment_path(archive.archive_dir, run.recording_id, 0).read_bytes()
    assert not any(raw[pad.begin + 32 : pad.end])
    assert raw[pad.end : pad.end + 4] != bytes(4)


@pytest.mark.parametrize("terms", [0, 2])
def test_s29_a_recording_that_joins_late(archive: Archive, session: Session, stream: int, terms: int) -> None:
    """A recording that begins 96 bytes behind the start of a segment has that segment for its first, zero before it."""
    base = terms * TERM
    channel = f"{IPC}|mtu=1408|init-term-id=7|term-id={7 + terms}|term-offset=96"
    run = record(session, stream, count=30, channel=channel)
    descriptor = session.descriptor(run.recording_id)
    assert (descriptor.startPosition, descriptor.initialTermId) == (base + 96, 7)
    assert run.signal is not None
    assert run.signal.position == base + 96
    assert folder.segments(archive.archive_dir, run.recording_id)[0] == base
    raw = folder.segment_path(archive.archive_dir, run.recording_id, base).read_bytes()
    assert not any(raw[:96])
    assert_messages(folder.frames(archive.archive_dir, run.recording_id), run, 30)


@pytest.mark.interop
def test_s30_record_checksum(archives: Archives, stream: int) -> None:
    """With a record checksum each DATA frame holds the CRC-32 of its aligned payload, and ArchiveTool finds it right."""
    archive = archives(CHECKED)
    with Session(archive) as session:
        run = record(session, stream, count=100)
        frames = folder.frames(archive.archive_dir, run.recording_id)
        data = [frame for frame in frames if frame.type == DATA]
        assert [frame.session_id for frame in data] == [folder.crc32_of(frame.payload) for frame in data]
        padding = [frame for frame in frames if frame.type == PAD]
        assert {frame.session_id for frame in padding} == {run.session_id}
        result = tool(
            archive.archive_dir, "verify", str(run.recording_id), "-a", "-checksum", "org.agrona.checksum.Crc32"
        )
        assert f"(recordingId={run.recording_id}, file={run.recording_id}-0.rec) OK" in result.out or (
            "OK" in result.out and "ERR" not in result.out
        ), result.out
        with Replay(session, run.recording_id) as replay:
            got = replay.read_to_end()
            assert_content(got, frames)
            assert {frame.session_id for frame in got} == {replay.image_session_id}


CHECKED = {
    "aeron.archive.record.checksum": "org.agrona.checksum.Crc32",
    "aeron.archive.replay.checksum": "org.agrona.checksum.Crc32",
}


def test_s31_extend(archive: Archive, session: Session, stream: int) -> None:
    """A publication that continues at the stop position extends: EXTEND there, a new session id, and one whole stream."""
    run = record(session, stream, count=40)
    before = session.descriptor(run.recording_id)
    more = begin(session, stream, channel=extend_channel(before), extend=run.recording_id)
    assert more.signal is not None
    assert (more.signal.position, more.signal.signal) == (before.stopPosition, EXTEND)
    assert (more.recording_id, more.signal.subscriptionId) == (run.recording_id, more.subscription_id)
    now = session.descriptor(run.recording_id)
    assert (now.stopPosition, now.stopTimestamp, now.sessionId) == (NULL, NULL, more.session_id)
    assert more.session_id != run.session_id
    record_on_disk = archive.catalog().of(run.recording_id)
    assert (record_on_disk.control_session_id, record_on_disk.correlation_id) == (
        session.session_id,
        more.correlation_id,
    )
    more.write(60)
    more.stop()
    more.close()
    frames = folder.frames(archive.archive_dir, run.recording_id)
    split = next(index for index, frame in enumerate(frames) if frame.begin == before.stopPosition)
    assert_messages([frame for frame in frames[:split] if frame.type == DATA], run, 40)
    assert_messages([frame for frame in frames[split:] if frame.type == DATA], more, 60)
    with Replay(session, run.recording_id) as replay:
        assert_content(replay.read_to_end(), frames)


def test_s31_extend_over_udp(archive: Archive, session: Session, stream: int) -> None:
    """A REMOTE recording of udp is extended by a udp publication; the source identity stays the first one's."""
    endpoint = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    run = record(session, stream, count=40, channel=f"{endpoint}|term-length=64k", location=REMOTE)
    before = session.descriptor(run.recording_id)
    assert before.sourceIdentity.startswith("127.0.0.1:")
    channel = extend_channel(before, base=f"{endpoint}|")
    more = begin(session, stream, channel=channel, record_channel=endpoint, extend=run.recording_id, location=REMOTE)
    more.write(60)
    more.stop()
    more.close()
    after = session.descriptor(run.recording_id)
    assert (after.sourceIdentity, after.originalChannel) == (before.sourceIdentity, before.originalChannel)
    with Replay(session, run.recording_id) as replay:
        assert_content(replay.read_to_end(), folder.frames(archive.archive_dir, run.recording_id))


def test_s31_extend_by_a_spy(archive: Archive, session: Session, stream: int) -> None:
    """A LOCAL recording of udp is extended through a spy."""
    endpoint = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    run = record(session, stream, count=40, channel=f"{endpoint}|term-length=64k")
    before = session.descriptor(run.recording_id)
    channel = extend_channel(before, base=f"{endpoint}|")
    more = begin(session, stream, channel=channel, record_channel=endpoint, extend=run.recording_id)
    assert listed(session, stream)[0].strippedChannel == f"aeron-spy:{endpoint}"
    more.write(10)
    more.stop()
    more.close()
    frames = [frame for frame in folder.frames(archive.archive_dir, run.recording_id) if frame.type == DATA]
    assert_messages([frame for frame in frames if frame.begin >= before.stopPosition], more, 10)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"term_offset": 128}, "image.joinPosition="),
        ({"init_term_id": 99, "term_id": 99}, "image.initialTermId=99 != rec.initialTermId="),
        ({"mtu": 4096}, "image.mtuLength=4096 != rec.mtuLength=1408"),
        ({"term_length": 2 * TERM}, "image.termBufferLength=131072 != rec.termBufferLength=65536"),
    ],
    ids=["position", "initial-term-id", "mtu", "term-length"],
)
def test_s32_extend_with_another_stream(
    archive: Archive, session: Session, streams: Streams, changed: dict[str, int], text: str
) -> None:
    """An image that does not fit the recording is E9 on the extend request; the catalog stays as it was."""
    run = record(
        session, streams(), count=20, sizes=[100], channel=f"{IPC}|init-term-id=5|term-id=5|term-offset=0|mtu=1408"
    )
    before = archive.catalog().of(run.recording_id)
    correlation_id = session.request(
        "ExtendRecordingRequest",
        recordingId=run.recording_id,
        channel=IPC,
        streamId=run.stream_id,
        sourceLocation=LOCAL,
    )
    assert session.answer(correlation_id).code == OK
    with Stream(archive.client, extend_channel(session.descriptor(run.recording_id), **changed), run.stream_id):
        refused = session.answer(correlation_id)
        assert (refused.code, refused.relevantId) == (ERROR, INVALID_EXTENSION)
        assert f"cannot extend recording {run.recording_id} " in refused.errorMessage
        assert text in refused.errorMessage
    assert archive.catalog().of(run.recording_id) == before
    assert session.ok("StopRecordingRequest", channel=IPC, streamId=run.stream_id) == 0


def test_s32_the_next_image_is_tried(archive: Archive, session: Session, stream: int) -> None:
    """An extend without auto-stop outlives an image that does not fit: the next one that does is taken."""
    run = record(session, stream, count=20)
    descriptor = session.descriptor(run.recording_id)
    correlation_id = session.request(
        "ExtendRecordingRequest2", recordingId=run.recording_id, channel=IPC, streamId=stream, sourceLocation=LOCAL
    )
    assert session.answer(correlation_id).code == OK
    with Stream(archive.client, extend_channel(descriptor, term_offset=0), stream):
        assert session.answer(correlation_id).relevantId == INVALID_EXTENSION
    with Stream(archive.client, extend_channel(descriptor), stream):
        assert session.signal(EXTEND, run.recording_id).correlationId == correlation_id
        session.ok("StopRecordingRequest", channel=IPC, streamId=stream)
        assert session.signal(STOP, run.recording_id).position == descriptor.stopPosition


def test_s32_auto_stop_ends_with_an_image_that_does_not_fit(archive: Archive, session: Session, stream: int) -> None:
    """An extend with auto-stop ends with the first image, even if that does not fit."""
    run = record(session, stream, count=20)
    descriptor = session.descriptor(run.recording_id)
    correlation_id = session.request(
        "ExtendRecordingRequest2",
        recordingId=run.recording_id,
        channel=IPC,
        streamId=stream,
        sourceLocation=LOCAL,
        autoStop=1,
    )
    assert session.answer(correlation_id).code == OK
    with Stream(archive.client, extend_channel(descriptor, term_offset=0), stream):
        assert session.answer(correlation_id).relevantId == INVALID_EXTENSION
    await_value(lambda: listed(session, stream), [], "the subscription to be gone")
    assert session.descriptor(run.recording_id).stopPosition == descriptor.stopPosition


def test_s33_extend_refused(archive: Archive, session: Session, streams: Streams) -> None:
    """Extending an active recording is E2, one of another stream or an unknown one E5."""
    run = begin(session, streams())
    run.write(5)
    extend = {"recordingId": run.recording_id, "channel": f"{IPC}|session-id=9", "sourceLocation": LOCAL}
    refused = session.refused("ExtendRecordingRequest2", streamId=run.stream_id, **extend)
    assert (refused.relevantId, refused.errorMessage) == (
        ACTIVE_RECORDING,
        f"cannot extend active recording {run.recording_id}",
    )
    other = streams()
    refused = session.refused("ExtendRecordingRequest2", streamId=other, **extend)
    assert refused.relevantId == UNKNOWN_RECORDING
    assert refused.errorMessage == (
        f"cannot extend recording {run.recording_id} with streamId={other} for existing streamId={run.stream_id}"
    )
    refused = session.refused("ExtendRecordingRequest2", streamId=other, **{**extend, "recordingId": 999_999})
    assert (refused.relevantId, refused.errorMessage) == (UNKNOWN_RECORDING, "unknown recording id: 999999")
    run.stop()
    run.close()


class Events:
    """What the events stream said of one recording, in order."""

    def __init__(self, archive: Archive) -> None:
        self.subscription = archive.client.add_subscription("aeron:ipc", EVENTS_STREAM)
        self.subscription.wait_image(10).close()
        self.all: list[Message] = []

    def of(self, recording_id: int) -> list[Message]:
        """The events of a recording so far."""
        while self.subscription.poll(lambda message, _: self.all.append(codec.decode(message))):
            pass
        return [event for event in self.all if event.recordingId == recording_id]


def test_s34_recording_events(archive: Archive, session: Session, stream: int, opened: ExitStack) -> None:
    """The events stream has the start, increasing progress, and the stop; for an extension from its join on."""
    events = Events(archive)
    opened.callback(events.subscription.close)
    run = begin(session, stream)
    wait_until(lambda: events.of(run.recording_id), 10, "the started event")
    for _ in range(3):
        position = run.write(20)
        wait_until(
            lambda: getattr(events.of(run.recording_id)[-1], "position", 0) == position,  # noqa: B023
            10,
            "the progress",
        )
    run.stop()
    run.close()
    wait_until(lambda: events.of(run.recording_id)[-1].name == "RecordingStopped", 10, "the stopped event")
    first, *progress, last = events.of(run.recording_id)
    assert (first.name, first.startPosition, first.sessionId, first.streamId) == (
        "RecordingStarted",
        0,
        run.session_id,
        stream,
    )
    assert (first.channel, first.sourceIdentity) == (IPC, "aeron:ipc")
    positions = [event.position for event in progress]
    assert {event.name for event in progress} == {"RecordingProgress"}
    assert positions == sorted(set(positions))
    assert (positions[-1], last.startPosition, last.stopPosition) == (run_end(session, run), 0, run_end(session, run))
    more = begin(session, stream, channel=extend_channel(session.descriptor(run.recording_id)), extend=run.recording_id)
    more.stop()
    more.close()
    wait_until(lambda: len(events.of(run.recording_id)) == len(positions) + 4, 10, "the events of the extension")
    started, stopped = events.of(run.recording_id)[-2:]
    assert (started.startPosition, stopped.startPosition, stopped.stopPosition) == (positions[-1],) * 3


def run_end(session: Session, run: Recorded) -> int:
    """Stop position of a recording."""
    return int(session.descriptor(run.recording_id).stopPosition)


def test_s35_a_spy_is_listed_as_one(archive: Archive, session: Session, stream: int) -> None:
    """A LOCAL recording of udp records through a spy, and its subscription is listed with that prefix."""
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}|alias=spied"
    run = begin(session, stream, channel=f"{channel}|term-length=64k", record_channel=f"{channel}|term-length=64k")
    (one,) = listed(session, stream)
    assert one.strippedChannel == f"aeron-spy:{channel}"
    run.write(50)
    run.stop()
    run.close()
    assert session.descriptor(run.recording_id).strippedChannel == channel
    assert_messages([it for it in folder.frames(archive.archive_dir, run.recording_id) if it.type == DATA], run, 50)


def test_s35_a_remote_stream_is_no_spy(archive: Archive, session: Session, stream: int) -> None:
    """A REMOTE recording of udp has a subscription of its own, and the publisher's address as source identity."""
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    run = begin(session, stream, channel=f"{channel}|term-length=64k", record_channel=channel, location=REMOTE)
    (one,) = listed(session, stream)
    assert one.strippedChannel == channel
    run.write(50)
    run.stop()
    run.close()
    assert session.descriptor(run.recording_id).sourceIdentity.startswith("127.0.0.1:")
    assert_messages([it for it in folder.frames(archive.archive_dir, run.recording_id) if it.type == DATA], run, 50)


@pytest.mark.parametrize(
    ("channel", "text"),
    [
        ("nonsense", "Aeron URIs must start with 'aeron:', found: nonsense"),
        ("aeron:tcp?endpoint=x", "unknown media: tcp"),
        ("", "Aeron URIs must start with 'aeron:', found: "),
        ("aeron:ipc?alias=a|", "no more input found, state=PARAMS_KEY in aeron:ipc?alias=a|"),
        ("aeron:ipc?alias", "no more input found, state=PARAMS_KEY in aeron:ipc?alias"),
    ],
    ids=["no-uri", "media", "empty", "no-key", "no-value"],
)
def test_s18_channels_that_do_not_parse(
    archive: Archive, session: Session, stream: int, channel: str, text: str
) -> None:
    """A channel that is no Aeron URI is E0 with the reason."""
    refused = session.refused("StartRecordingRequest2", channel=channel, streamId=stream, sourceLocation=LOCAL)
    assert refused.relevantId == GENERIC
    if IS_OURS:
        assert refused.errorMessage == text
    else:
        assert text.removeprefix("unknown ") in refused.errorMessage
    session.barrier()


@pytest.mark.parametrize("channel", ["nonsense", ""])
def test_s23_stop_channels_that_do_not_parse(session: Session, stream: int, channel: str) -> None:
    """Stopping by a channel that is no Aeron URI is E0 with the reason."""
    refused = session.refused("StopRecordingRequest", channel=channel, streamId=stream)
    assert refused.relevantId == GENERIC
    assert f"Aeron URIs must start with 'aeron:', found: {channel}" in refused.errorMessage
    session.barrier()


@pytest.mark.parametrize("location", [LOCAL, REMOTE], ids=["local", "remote"])
def test_s18_a_channel_that_the_driver_refuses(session: Session, stream: int, location: int) -> None:
    """What the driver refuses to subscribe to is E0 with its text, and is not listed."""
    channel = "aeron:udp?endpoint=127.0.0.1:99999"
    refused = session.refused("StartRecordingRequest2", channel=channel, streamId=stream, sourceLocation=location)
    assert refused.relevantId == GENERIC
    assert refused.errorMessage
    assert listed(session, stream) == []


def test_s22_auto_stop_ends_all_of_its_subscription(
    archive: Archive, session: Session, stream: int, opened: ExitStack
) -> None:
    """With auto-stop the end of one of two recordings ends the other as well."""
    first = begin(session, stream, auto_stop=True)
    second = opened.enter_context(Stream(archive.client, IPC, stream))
    other = session.signal(START).recordingId
    second.publish(3)
    await_value(lambda: getattr(archive.recording_counter(other), "value", None), second.position, "the second one")
    first.close()
    assert {session.signal(STOP).recordingId for _ in range(2)} == {first.recording_id, other}
    await_value(lambda: listed(session, stream), [], "the subscription to be gone")
    assert session.descriptor(other).stopPosition == second.position


def test_s18_many_in_a_row(archive: Archive, session: Session, stream: int) -> None:
    """A stream that is recorded, stopped and recorded again has a new recording each time, with the messages published then."""
    before = archive.counter(RECORDING_SESSIONS)
    runs = [record(session, stream, count=5) for _ in range(5)]
    assert len({run.recording_id for run in runs}) == len(runs)
    for run in runs:
        assert_messages(folder.frames(archive.archive_dir, run.recording_id), run, 5)
    await_value(lambda: archive.counter(RECORDING_SESSIONS), before, "recording sessions")


def test_s23_what_was_stopped_is_over(session: Session, streams: Streams) -> None:
    """In an archive of one thread the request behind the OK of a stop finds the recording ended, however it was stopped."""
    for stop in ("StopRecordingSubscriptionRequest", "StopRecordingByIdentityRequest", "StopRecordingRequest"):
        for _ in range(10):
            stream = streams()
            run = begin(session, stream)
            position = run.write(3)
            named = {"subscriptionId": run.subscription_id}
            if stop == "StopRecordingByIdentityRequest":
                named = {"recordingId": run.recording_id}
            elif stop == "StopRecordingRequest":
                named = {"channel": run.channel, "streamId": stream}
            session.ok(stop, **named)
            assert session.ok("StopPositionRequest", recordingId=run.recording_id) == position
            run.close()


def test_s23_what_was_stopped_can_be_extended(session: Session, streams: Streams) -> None:
    """A stopped recording can be extended and purged at once."""
    for round_number in range(10):
        stream = streams()
        run = begin(session, stream)
        if round_number % 2:
            run.write(3)
        session.ok("StopRecordingSubscriptionRequest", subscriptionId=run.subscription_id)
        subscription = session.ok(
            "ExtendRecordingRequest2",
            recordingId=run.recording_id,
            channel=f"{IPC}|session-id=99",
            streamId=stream,
            sourceLocation=LOCAL,
        )
        session.ok("StopRecordingSubscriptionRequest", subscriptionId=subscription)
        session.ok("PurgeRecordingRequest", recordingId=run.recording_id)
        run.close()
