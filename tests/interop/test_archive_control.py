"""Goal: a stock AeronArchive client cannot tell the archive under test from its own, for what it offers over IPC.

Method: one driver and one archive under test serve the file; each test records a stream of its own through the stock
client, and every byte of a replay is compared with the payload rule.
"""

# ruff: noqa: PLR0917 - fixtures are arguments
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.interop.archiving import (
    IPC,
    NULL_POSITION,
    Opened,
    Recorded,
    assert_messages,
    assert_replays,
    begin,
    descriptor,
    extend_channel,
    record,
    wait_recorded,
    wait_stopped,
)
from tests.kit import dirs, stock
from tests.kit.cnc import Cnc
from tests.kit.subject import Subject
from tests.kit.wait import wait_until

EVENTS_STREAM = 30
SETTINGS = {
    "aeron.archive.id": "42",
    "aeron.archive.recording.events.enabled": "true",
    "aeron.archive.recording.events.channel": "aeron:ipc",
    "aeron.archive.recording.events.stream.id": str(EVENTS_STREAM),
}
GENERIC, UNKNOWN_SUBSCRIPTION, UNKNOWN_RECORDING, INVALID_POSITION = 0, 4, 5, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """The servers which all tests of the file share."""

    aeron_dir: Path
    archive_dir: Path


@pytest.fixture(scope="module")
def servers(subject: Subject) -> Iterator[Servers]:
    with (
        dirs.fresh("shared") as aeron_dir,
        dirs.fresh("archive") as archive_dir,
        subject.driver(aeron_dir),
        subject.archive(aeron_dir, archive_dir, SETTINGS),
    ):
        yield Servers(aeron_dir=aeron_dir, archive_dir=archive_dir)


@pytest.fixture
def archive(peer: Any, servers: Servers, opened: Opened) -> Any:
    """A stock archive client with a control session of its own."""
    return opened(peer.archiveClient(str(servers.aeron_dir)))


def test_a_session_opens_and_closes(peer: Any, archive: Any, servers: Servers, opened: Opened) -> None:
    assert archive.raw().archiveId() == 42
    cnc = Cnc(servers.aeron_dir)
    before = cnc.value_of("Archive Control Sessions")
    assert before is not None
    other = opened(peer.archiveClient(str(servers.aeron_dir)))
    assert other.raw().controlSessionId() != archive.raw().controlSessionId()
    wait_until(lambda: cnc.value_of("Archive Control Sessions") == before + 1, 10, "the session to be counted")
    other.close()
    wait_until(lambda: cnc.value_of("Archive Control Sessions") == before, 10, "the session to go")
    with stock.raises("ArchiveException", "unknown recording id: 999999"):
        archive.raw().getStartPosition(999_999)


def test_every_byte_of_a_recording_is_replayed(archive: Any, stream: int, opened: Opened) -> None:
    run = record(archive, opened, stream, 1000)
    assert run.position > 8 * 131072, "the recording spans segments"
    assert_replays(archive, opened, run.recording_id, 1000, stop=run.position)


def test_a_recording_that_ends_with_a_segment(archive: Any, stream: int, opened: Opened) -> None:
    # 128 frames of 1024 bytes fill a segment of 128 KiB to the last byte.
    run = record(archive, opened, stream, 128, sizes=[992])
    assert run.position == 131072
    assert_replays(archive, opened, run.recording_id, 128, stop=run.position, sizes=[992])


def test_a_start_position_other_than_zero(archive: Any, stream: int, opened: Opened) -> None:
    channel = f"{IPC}|init-term-id=7|term-id=10|term-offset=4096|mtu=1408"
    run = record(archive, opened, stream, 300, channel=channel)
    start = archive.raw().getStartPosition(run.recording_id)
    assert start == 3 * 65536 + 4096
    assert_replays(archive, opened, run.recording_id, 300, start=start, stop=run.position)


def test_a_replay_of_a_part(archive: Any, stream: int, opened: Opened) -> None:
    run = begin(archive, opened, stream)
    middle = run.publish(archive, 0, 50)
    later = run.publish(archive, 50, 50)
    run.publish(archive, 100, 50)
    assert_replays(archive, opened, run.recording_id, 50, start=middle, stop=later, first=50)
    archive.raw().stopRecording(run.subscription_id)


def test_a_replay_follows_a_live_recording_to_its_end(archive: Any, stream: int, opened: Opened) -> None:
    run = begin(archive, opened, stream)
    run.publish(archive, 0, 20)
    replay = archive.replay(run.recording_id, 0, 2**63 - 1, 2002)
    subscription = opened(replay.subscription())
    reading = opened(subscription.read(120, None))
    position = run.publish(archive, 20, 100)
    assert_messages(reading, run.recording_id, 120)
    assert reading.position() == position
    archive.raw().stopRecording(run.subscription_id)
    wait_stopped(archive, run.recording_id, position)
    opened(subscription.read(1, None))
    wait_until(lambda: subscription.raw().imageCount() == 0, 15, "the replay to end with its recording")


def test_a_bounded_replay_stops_at_its_counter(archive: Any, stream: int, opened: Opened) -> None:
    run = begin(archive, opened, stream)
    first = run.publish(archive, 0, 50)
    second = run.publish(archive, 50, 50)
    limit = opened(archive.client().counter(2345, "limit of a bounded replay"))
    limit.setOrdered(first)
    replay = archive.boundedReplay(run.recording_id, 0, 2**63 - 1, limit.id(), 2003)
    subscription = opened(replay.subscription())
    reading = opened(subscription.read(100, None))
    wait_until(lambda: reading.seen() == 50, 10, "what lies before the limit", state=reading.seen)
    for _ in range(20):
        archive.raw().getRecordingPosition(run.recording_id)
    assert subscription.image().position() == first
    limit.setOrdered(second)
    assert_messages(reading, run.recording_id, 100)
    archive.raw().stopReplay(replay.sessionId())
    archive.raw().stopRecording(run.subscription_id)


def test_a_replay_is_stopped(archive: Any, servers: Servers, stream: int, opened: Opened) -> None:
    run = record(archive, opened, stream, 500)
    replay = archive.replay(run.recording_id, 0, run.position, 2004)
    subscription = opened(replay.subscription())
    wait_until(subscription.image, 10, "the replay's image")
    archive.raw().stopReplay(replay.sessionId())
    wait_until(lambda: subscription.raw().imageCount() == 0, 10, "the image to go, unread as it is")
    wait_until(lambda: Cnc(servers.aeron_dir).value_of("Archive Replay Sessions") == 0, 10, "the replay session to go")


def test_positions_while_active_and_after(archive: Any, stream: int, opened: Opened) -> None:
    run = begin(archive, opened, stream)
    position = run.publish(archive, 0, 100)
    client = archive.raw()
    assert client.getStartPosition(run.recording_id) == 0
    assert client.getRecordingPosition(run.recording_id) == position
    assert client.getStopPosition(run.recording_id) == NULL_POSITION
    assert client.getMaxRecordedPosition(run.recording_id) == position
    client.stopRecording(run.subscription_id)
    wait_stopped(archive, run.recording_id, position)
    assert client.getRecordingPosition(run.recording_id) == NULL_POSITION
    assert client.getMaxRecordedPosition(run.recording_id) == position


def test_counters_of_an_active_recording(archive: Any, servers: Servers, stream: int, opened: Opened) -> None:
    run = begin(archive, opened, stream)
    position = run.publish(archive, 0, 10)
    session = run.publication.raw().sessionId()
    found = next(c for c in Cnc(servers.aeron_dir).counters() if c.label.startswith(f"rec-pos: {run.recording_id} "))
    assert found.type_id == 100
    assert found.label == f"rec-pos: {run.recording_id} {session} {stream} aeron:ipc - archiveId=42"
    assert found.value == position
    key = run.recording_id.to_bytes(8, "little") + (session & 0xFFFFFFFF).to_bytes(4, "little")
    key += (9).to_bytes(4, "little") + b"aeron:ipc" + (42).to_bytes(8, "little")
    assert found.key == key.ljust(112, b"\0")
    archive.raw().stopRecording(run.subscription_id)
    wait_until(
        lambda: found.id not in {c.id for c in Cnc(servers.aeron_dir).counters() if c.type_id == 100},
        10,
        "the counter to be freed",
    )


def test_stop_by_channel(archive: Any, stream: int, opened: Opened) -> None:
    run = begin(archive, opened, stream)
    position = run.publish(archive, 0, 10)
    archive.raw().stopRecording(IPC, stream)
    wait_stopped(archive, run.recording_id, position)
    with stock.raises("ArchiveException", f"no recording found for streamId={stream}"):
        archive.raw().stopRecording(IPC, stream)


def test_stop_by_identity(archive: Any, stream: int, opened: Opened) -> None:
    run = begin(archive, opened, stream)
    position = run.publish(archive, 0, 10)
    assert archive.raw().tryStopRecordingByIdentity(run.recording_id)
    wait_stopped(archive, run.recording_id, position)
    assert not archive.raw().tryStopRecordingByIdentity(run.recording_id)


def test_auto_stop_ends_the_subscription_with_its_publication(archive: Any, stream: int, opened: Opened) -> None:
    run = begin(archive, opened, stream, auto_stop=True)
    position = run.publish(archive, 0, 10)
    run.publication.close()
    wait_stopped(archive, run.recording_id, position)
    wait_until(
        lambda: not archive.listRecordingSubscriptions(0, 100, "aeron:ipc", stream),
        10,
        "the recording subscription to go",
    )


def test_a_subscription_without_auto_stop_records_the_next_publication(
    archive: Any, stream: int, opened: Opened
) -> None:
    first = begin(archive, opened, stream)
    position = first.publish(archive, 0, 10)
    first.publication.close()
    wait_stopped(archive, first.recording_id, position)
    publication = opened(archive.client().exclusivePublication(IPC, stream))
    assert publication.awaitConnected(10_000)
    session = publication.raw().sessionId()
    second = wait_until(
        lambda: archive.raw().findLastMatchingRecording(first.recording_id + 1, "aeron:ipc", stream, session) + 1,
        10,
        "the second recording",
    )
    assert second - 1 > first.recording_id
    archive.raw().stopRecording(first.subscription_id)


def test_an_extended_recording_is_one(archive: Any, stream: int, opened: Opened) -> None:
    run = record(archive, opened, stream, 100)
    before = descriptor(archive.listRecording(run.recording_id)[0])
    channel = extend_channel(archive, run.recording_id)
    again = begin(archive, opened, stream, channel=channel, extend=run.recording_id)
    assert again.recording_id == run.recording_id
    assert again.position == run.position
    position = again.publish(archive, 100, 150)
    archive.raw().stopRecording(again.subscription_id)
    wait_stopped(archive, run.recording_id, position)
    assert_replays(archive, opened, run.recording_id, 250, stop=position)
    after = descriptor(archive.listRecording(run.recording_id)[0])
    assert after["sessionId"] == str(again.publication.raw().sessionId()) != before["sessionId"]
    unchanged = ("startTimestamp", "startPosition", "initialTermId", "streamId", "originalChannel", "strippedChannel")
    assert [after[name] for name in unchanged] == [before[name] for name in unchanged]
    mine = [line for line in archive.signals() if line.startswith(f"recording={run.recording_id}|")]
    assert mine == [
        f"recording={run.recording_id}|position=0|signal=START",
        f"recording={run.recording_id}|position={run.position}|signal=STOP",
        f"recording={run.recording_id}|position={run.position}|signal=EXTEND",
        f"recording={run.recording_id}|position={position}|signal=STOP",
    ]


def test_an_extension_must_fit(archive: Any, stream: int, opened: Opened) -> None:
    run = record(archive, opened, stream, 10)
    with stock.raises("ArchiveException", f"cannot extend recording {run.recording_id} with streamId={stream + 5000}"):
        archive.extendRecording(run.recording_id, IPC, stream + 5000)
    with stock.raises("ArchiveException", "unknown recording id: 999999"):
        archive.extendRecording(999_999, IPC, stream)
    running = begin(archive, opened, stream)
    with stock.raises("ArchiveException", f"cannot extend active recording {running.recording_id}"):
        archive.extendRecording(running.recording_id, f"{IPC}|alias=other", stream)
    archive.raw().stopRecording(running.subscription_id)


def test_an_image_that_does_not_continue_the_recording_is_reported(archive: Any, stream: int, opened: Opened) -> None:
    run = record(archive, opened, stream, 10)
    subscription_id = archive.extendRecording(run.recording_id, IPC, stream)
    publication = opened(archive.client().exclusivePublication(IPC, stream))
    assert publication.awaitConnected(10_000)
    text = wait_until(lambda: archive.raw().pollForErrorResponse(), 10, "the error")
    assert f"cannot extend recording {run.recording_id} image.joinPosition=0 != rec.stopPosition={run.position}" in text
    archive.raw().stopRecording(subscription_id)


def test_list_forms(archive: Any, stream: int, opened: Opened) -> None:
    alias = f"list-{stream}"
    runs = [record(archive, opened, stream, 10, channel=f"{IPC}|alias={alias}") for _ in range(3)]
    ids = [run.recording_id for run in runs]
    assert ids == sorted(set(ids))

    def listed(lines: list[str]) -> list[int]:
        return [int(descriptor(line)["recordingId"]) for line in lines]

    assert listed(archive.listRecordings(ids[0], 3)) == ids
    assert listed(archive.listRecordings(ids[1], 1000)) == ids[1:], "fewer than asked: a response ends the list"
    assert listed(archive.listRecordings(ids[2] + 1, 10)) == []
    assert listed(archive.listRecordingsForUri(0, 2, f"alias={alias}", stream)) == ids[:2]
    assert listed(archive.listRecordingsForUri(0, 10, "alias=nobody", stream)) == []
    assert listed(archive.listRecordingsForUri(0, 10, alias, stream + 1)) == []
    assert listed(archive.listRecording(ids[1])) == [ids[1]]
    assert listed(archive.listRecording(999_999)) == []
    session = runs[1].publication.raw().sessionId()
    assert archive.raw().findLastMatchingRecording(0, alias, stream, session) == ids[1]
    assert archive.raw().findLastMatchingRecording(ids[1] + 1, alias, stream, session) == -1
    with stock.raises("ArchiveException", "minRecordingId=-1 < 0"):
        archive.raw().findLastMatchingRecording(-1, alias, stream, session)


def test_a_descriptor_says_all(archive: Any, stream: int, opened: Opened) -> None:
    channel = f"{IPC}|mtu=2048|alias=descriptor|session-id={stream}"
    run = record(archive, opened, stream, 10, channel=channel)
    found = descriptor(archive.listRecording(run.recording_id)[0])
    assert int(found.pop("startTimestamp")) <= int(found.pop("stopTimestamp"))
    assert found == {
        "recordingId": str(run.recording_id),
        "startPosition": "0",
        "stopPosition": str(run.position),
        "initialTermId": found["initialTermId"],
        "segmentFileLength": "131072",
        "termBufferLength": "65536",
        "mtuLength": "2048",
        "sessionId": str(stream),
        "streamId": str(stream),
        "strippedChannel": f"aeron:ipc?session-id={stream}|alias=descriptor",
        "originalChannel": channel,
        "sourceIdentity": "aeron:ipc",
    }


def test_recording_subscriptions_are_listed(archive: Any, stream: int) -> None:
    channels = [f"{IPC}|session-id={session}|alias=subs" for session in (stream, stream + 1)]
    ids = [archive.startRecording(channel, stream) for channel in channels]
    lines = archive.listRecordingSubscriptions(0, 100, "aeron:ipc", stream)
    assert sorted(line.split("|")[0] for line in lines) == sorted(f"subscription={one}" for one in ids)
    assert len(archive.listRecordingSubscriptions(0, 1, "aeron:ipc", stream)) == 1
    assert list(archive.listRecordingSubscriptions(0, 100, "alias=nobody", stream)) == []
    with stock.raises("ArchiveException", f"recording exists for streamId={stream}"):
        archive.startRecording(channels[0], stream)
    for one in ids:
        archive.raw().stopRecording(one)
    assert list(archive.listRecordingSubscriptions(0, 100, "aeron:ipc", stream)) == []


def test_signals_of_a_recording(archive: Any, stream: int, opened: Opened) -> None:
    run = record(archive, opened, stream, 10)
    wait_until(
        lambda: (
            [line for line in archive.signals() if line.startswith(f"recording={run.recording_id}|")]
            == [
                f"recording={run.recording_id}|position=0|signal=START",
                f"recording={run.recording_id}|position={run.position}|signal=STOP",
            ]
        ),
        10,
        "the signals",
        state=archive.signals,
    )


def test_recording_events(archive: Any, stream: int, opened: Opened) -> None:
    events = opened(archive.events("aeron:ipc", EVENTS_STREAM))
    run = record(archive, opened, stream, 10, channel=f"{IPC}|alias=events")
    session = run.publication.raw().sessionId()

    def mine() -> list[str]:
        return [line for line in events.poll() if f" recording={run.recording_id} " in line]

    stopped = f"stopped recording={run.recording_id} start=0 stop={run.position}"
    wait_until(lambda: stopped in mine(), 10, "the last event", state=mine)
    lines = mine()
    assert lines[0] == (
        f"started recording={run.recording_id} start=0 session={session} stream={stream} "
        f"channel={IPC}|alias=events source=aeron:ipc"
    )
    assert lines[-1] == stopped
    positions = [int(line.rsplit("=", 1)[1]) for line in lines[1:-1]]
    assert positions == sorted(set(positions))
    assert positions[-1] == run.position
    assert all(line.startswith(f"progress recording={run.recording_id} start=0 ") for line in lines[1:-1])


@pytest.fixture(scope="module")
def small(peer: Any, servers: Servers) -> Iterator[Recorded]:
    """A small finished recording, for requests that must be refused."""
    own = peer.archiveClient(str(servers.aeron_dir))
    try:
        resources: list[Any] = []

        def keep(resource: Any) -> Any:
            resources.append(resource)
            return resource

        yield record(own, keep, 990, 10)
    finally:
        own.close()


@pytest.mark.parametrize(
    ("position", "length", "code", "text"),
    [
        (5, 100, GENERIC, r"requested replay start position=5 is not a multiple of FRAME_ALIGNMENT \(32\)"),
        (2**30, 100, INVALID_POSITION, "requested replay start position=1073741824 must be less than the limit"),
        (-64, 100, INVALID_POSITION, "requested replay start position=-64 is less than recording start position=0"),
        (32, 64, INVALID_POSITION, "replayPosition=32 .*does not point to a valid frame"),
    ],
)
def test_a_replay_from_a_wrong_position_is_refused(
    archive: Any, small: Recorded, position: int, length: int, code: int, text: str
) -> None:
    with stock.raises("ArchiveException", text) as error:
        archive.replay(small.recording_id, position, length, 2005)
    assert error.java.errorCode() == code


def test_requests_on_an_unknown_recording_are_refused(archive: Any) -> None:
    client = archive.raw()
    for request in (
        client.getStartPosition,
        client.getStopPosition,
        client.getRecordingPosition,
        client.getMaxRecordedPosition,
        client.tryStopRecordingByIdentity,
        lambda recording_id: archive.replay(recording_id, 0, 100, 2006),
    ):
        with stock.raises("ArchiveException", "unknown recording id: 999999") as error:
            request(999_999)
        assert error.java.errorCode() == UNKNOWN_RECORDING


def test_stopping_what_is_not_recorded_is_refused(archive: Any) -> None:
    with stock.raises("ArchiveException", "no recording subscription found for subscriptionId=123456789") as error:
        archive.raw().stopRecording(123_456_789)
    assert error.java.errorCode() == UNKNOWN_SUBSCRIPTION
    assert not archive.raw().tryStopRecording("aeron:ipc?alias=nobody", 5555)


@pytest.mark.parametrize(
    ("channel", "text"),
    [
        ("aeron:nonsense", "unknown media: nonsense"),
        ("rubbish", "must start with 'aeron:'"),
        ("aeron:ipc?alias=a|", "no more input found, state=PARAMS_KEY"),
        ("aeron:ipc?alias", "no more input found, state=PARAMS_KEY"),
    ],
)
def test_a_channel_that_does_not_parse_is_refused(archive: Any, channel: str, text: str) -> None:
    with stock.raises("ArchiveException", text) as error:
        archive.startRecording(channel, 991)
    assert error.java.errorCode() == GENERIC


def test_the_recorded_position_is_never_ahead_of_the_file(
    archive: Any, servers: Servers, stream: int, opened: Opened
) -> None:
    run = begin(archive, opened, stream)
    position = run.publish(archive, 0, 300)
    wait_recorded(archive, run.recording_id, position)
    bases = sorted(int(path.stem.split("-", 1)[1]) for path in servers.archive_dir.glob(f"{run.recording_id}-*.rec"))
    assert bases == list(range(0, position + 1, 131072))
    for base in bases:
        assert (servers.archive_dir / f"{run.recording_id}-{base}.rec").stat().st_size == 131072
    archive.raw().stopRecording(run.subscription_id)
