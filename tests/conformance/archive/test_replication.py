"""Replication between two archives with a driver each, and response channels: Spec: 08 §10, §11, 07 §11.

Scenarios 14, 58, 59 and 84 to 93. Both archives are the peer under test; tests/interop/test_archive_replication.py mixes them.

Spec: 11 D22.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from tests.conformance.archive import codec
from tests.conformance.archive.archive import ERRORS, MTU, REPLAY_SESSIONS, TERM, Archive, await_value, ours
from tests.conformance.archive.codec import (
    ACTIVE_RECORDING,
    EXTEND,
    GENERIC,
    MERGE,
    NULL,
    OK,
    REPLICATE,
    REPLICATE_END,
    REPLICATION_CONNECTION_FAILURE,
    STOP,
    SYNC,
    UNKNOWN_RECORDING,
    UNKNOWN_REPLICATION,
)
from tests.conformance.archive.conftest import Archives
from tests.conformance.archive.control import Control, Session
from tests.conformance.archive.replication import await_end, replicate, same_bytes
from tests.conformance.archive.streams import IPC, Frames, Recorded, Replay, assert_messages, begin, record
from tests.kit.ports import free_port
from tests.kit.wait import wait_until

FRAME_1024 = (1024,)


@pytest.fixture(scope="module")
def source(archives: Archives) -> Archive:
    """The archive that is replicated from; its own driver, its own folder."""
    return archives({"aeron.archive.id": "77"})


@pytest.fixture
def of_source(source: Archive, opened: ExitStack) -> Session:
    """A control session with the source."""
    return opened.enter_context(Session(source))


@pytest.fixture(scope="module")
def hasty(archives: Archives) -> Archive:
    """A destination that gives its sources, and the images of their replays, 5 s: a machine may stand still for less."""
    return archives({"aeron.archive.message.timeout": "5s", "aeron.image.liveness.timeout": "5s"})


def mortal(archive_id: int) -> Archive:
    """An archive to be killed beside its driver, which forgets dead clients after 5 s."""
    return Archive({"aeron.archive.id": str(archive_id), "aeron.client.liveness.timeout": "5s"}, apart=True)


def revive(archive: Archive) -> None:
    """Start a killed archive again, once its driver has forgotten it."""
    wait_until(lambda: not archive.counters(ERRORS), 20, "the driver to forget the dead archive")
    archive.start()


def stop_of(run: Recorded) -> int:
    """The stop position of a recording whose publication is closed."""
    return run.session.ok("StopPositionRequest", recordingId=run.recording_id)


def test_s84_a_stopped_recording_is_copied(session: Session, of_source: Session, stream: int) -> None:
    """OK, REPLICATE, an extra OK, EXTEND, SYNC, REPLICATE_END and STOP in this order; every byte is the source's."""
    run = record(of_source, stream, count=120)
    replication = replicate(session, of_source.archive, run.recording_id)
    events = await_end(session, replication, stops=True)
    copy = events[0].recordingId
    subscription = events[1].relevantId
    assert (events[1].name, events[1].code) == ("ControlResponse", OK)
    signals = [(it.signal, it.position, it.subscriptionId) for it in events if it.name == "RecordingSignalEvent"]
    assert signals[:3] == [(REPLICATE, 0, NULL), (EXTEND, 0, subscription), (SYNC, stop_of(run), subscription)]
    assert sorted(signals[3:]) == sorted([(REPLICATE_END, NULL, NULL), (STOP, stop_of(run), subscription)])
    mine, theirs = session.descriptor(copy), of_source.descriptor(run.recording_id)
    for field in ("startTimestamp", "startPosition", "stopPosition", "initialTermId", "termBufferLength", "mtuLength"):
        assert getattr(mine, field) == getattr(theirs, field), field
    for field in ("sessionId", "streamId", "strippedChannel", "originalChannel", "sourceIdentity", "segmentFileLength"):
        assert getattr(mine, field) == getattr(theirs, field), field
    same_bytes(of_source.archive, run.recording_id, session.archive, copy, stop_of(run))


def test_s85_a_copy_in_sync_is_left_alone(session: Session, of_source: Session, stream: int) -> None:
    """Replicating once more to the same recording gives SYNC and REPLICATE_END, and nothing else."""
    run = record(of_source, stream, count=10)
    copy = await_end(session, replicate(session, of_source.archive, run.recording_id), stops=True)[0].recordingId
    replication = replicate(session, of_source.archive, run.recording_id, dstRecordingId=copy)
    events = await_end(session, replication)
    assert [(it.signal, it.recordingId, it.subscriptionId) for it in events] == [
        (SYNC, copy, NULL),
        (REPLICATE_END, copy, NULL),
    ]
    assert events[0].position == stop_of(run)


def test_s86_an_active_source_is_followed(session: Session, of_source: Session, stream: int) -> None:
    """The copy grows with its source until that stops; then it stops at the same position."""
    run = begin(of_source, stream)
    run.write(20)
    replication = replicate(session, of_source.archive, run.recording_id)
    copy = session.signal(EXTEND).recordingId
    position = run.write(40)
    await_value(
        lambda: session.ok("MaxRecordedPositionRequest", recordingId=copy), position, "the copy's position", timeout=20
    )
    run.stop()
    run.close()
    events = await_end(session, replication, stops=True)
    assert not [it for it in events if it.name == "RecordingSignalEvent" and it.signal == SYNC]
    assert session.ok("StopPositionRequest", recordingId=copy) == position
    same_bytes(of_source.archive, run.recording_id, session.archive, copy, position)


def test_s87_up_to_a_stop_position(session: Session, of_source: Session, stream: int) -> None:
    """The copy ends at the stop position without SYNC; it can be replicated further from there."""
    run = record(of_source, stream, count=10, sizes=FRAME_1024)
    replication = replicate(session, of_source.archive, run.recording_id, stopPosition=2112)
    events = await_end(session, replication, stops=True)
    copy = events[0].recordingId
    assert SYNC not in [it.signal for it in events if it.name == "RecordingSignalEvent"]
    assert session.ok("StopPositionRequest", recordingId=copy) == 2112
    replication = replicate(session, of_source.archive, run.recording_id, dstRecordingId=copy, fileIoMaxLength=TERM)
    events = await_end(session, replication, stops=True)
    assert [it.position for it in events if it.name == "RecordingSignalEvent" and it.signal in (EXTEND, SYNC)] == [
        2112,
        stop_of(run),
    ]
    same_bytes(of_source.archive, run.recording_id, session.archive, copy, stop_of(run))


def test_s87_a_session_id_of_its_own(session: Session, of_source: Session, stream: int) -> None:
    """The replay has the session id that was asked for; the copy's descriptor says it, its messages are the source's."""
    run = record(of_source, stream, count=10)
    replication = replicate(session, of_source.archive, run.recording_id, replicationSessionId=4711)
    copy = await_end(session, replication, stops=True)[0].recordingId
    assert session.descriptor(copy).sessionId == 4711
    with Replay(session, copy) as replay:
        assert_messages(replay.read_to_end(), run, 10)


def live(of_source: Session, stream: int) -> Any:
    """A recorded stream that waits for every receiver, so that bursts lose nothing beyond repair."""
    channel = f"aeron:udp?control-mode=dynamic|control=127.0.0.1:{free_port()}|term-length={TERM}|mtu={MTU}|fc=min"
    return begin(of_source, stream, channel=channel), channel


def test_s88_a_copy_merges_with_the_live_stream(session: Session, of_source: Session, stream: int) -> None:
    """MERGE is signalled, the source's replay ends, and the recording continues from the live stream without a gap."""
    run, channel = live(of_source, stream)
    run.write(60)
    control = channel.split("control=")[1].split("|")[0]
    replication = replicate(
        session,
        of_source.archive,
        run.recording_id,
        liveDestination=f"aeron:udp?endpoint=127.0.0.1:{free_port()}|control={control}",
    )
    copy = session.signal(EXTEND).recordingId

    def merged() -> bool:
        if run.messages < 4000:
            run.publish(1, FRAME_1024)
        return bool(session.seen("RecordingSignalEvent", lambda it: it.signal in (MERGE, REPLICATE_END)))

    wait_until(merged, 30, "MERGE", state=lambda: session.inbox)
    merge = session.signal(MERGE)
    assert (merge.correlationId, merge.recordingId) == (replication, copy)
    assert session.signal(REPLICATE_END).recordingId == copy
    position = run.write(50)
    await_value(
        lambda: session.ok("MaxRecordedPositionRequest", recordingId=copy), position, "the copy's position", timeout=20
    )
    await_value(lambda: of_source.archive.counter(REPLAY_SESSIONS), 0, "the source's replays")
    run.stop()
    assert session.ok("StopRecordingByIdentityRequest", recordingId=copy) == 1
    run.close()
    assert session.signal(STOP, copy).position == position
    same_bytes(of_source.archive, run.recording_id, session.archive, copy, position)


@pytest.mark.parametrize("fc", ["min", "max"])
def test_s88_a_burst_after_the_merge(session: Session, of_source: Session, stream: int, fc: str) -> None:
    """A quiet live stream has taken the copy for its receiver before MERGE: more than half a term at once does not lose it."""
    control = f"127.0.0.1:{free_port()}"
    channel = f"aeron:udp?control-mode=dynamic|control={control}|term-length={TERM}|mtu={MTU}|fc={fc}"
    run = begin(of_source, stream, channel=channel)
    run.write(20, FRAME_1024)
    live = f"aeron:udp?endpoint=127.0.0.1:{free_port()}|control={control}"
    replicate(session, of_source.archive, run.recording_id, liveDestination=live)
    copy = session.signal(EXTEND).recordingId

    def reached() -> int:
        return session.ok("MaxRecordedPositionRequest", recordingId=copy)

    def merged() -> bool:
        if run.messages < 3000 and reached() == run.position:
            run.publish(1, FRAME_1024)
        return bool(session.seen("RecordingSignalEvent", lambda it: it.signal in (MERGE, REPLICATE_END)))

    wait_until(merged, 30, "MERGE", state=lambda: session.inbox)
    session.signal(MERGE, copy)
    position = run.write(50, FRAME_1024)
    await_value(reached, position, "the copy's position", timeout=20)
    run.stop()
    assert session.ok("StopRecordingByIdentityRequest", recordingId=copy) == 1
    run.close()
    same_bytes(of_source.archive, run.recording_id, session.archive, copy, position)


def test_s88_a_stopped_source_can_not_be_merged(session: Session, of_source: Session, stream: int) -> None:
    """E0: there is no live stream to merge with."""
    run = record(of_source, stream, count=5)
    replication = replicate(
        session, of_source.archive, run.recording_id, liveDestination=f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    )
    events = await_end(session, replication)
    (error,) = [it for it in events if it.name == "ControlResponse"]
    assert (error.relevantId, error.errorMessage) == (GENERIC, "cannot live merge without active source recording")


def test_s89_a_tagged_replication(session: Session, of_source: Session, stream: int) -> None:
    """The copy's subscription carries the tags while it runs."""
    run = begin(of_source, stream)
    run.write(10)
    replication = replicate(session, of_source.archive, run.recording_id, channelTagId=8_123, subscriptionTagId=9_123)
    session.signal(EXTEND)
    (found,), _ = session.descriptors(
        "ListRecordingSubscriptionsRequest",
        pseudoIndex=0,
        subscriptionCount=1,
        applyStreamId=0,
        streamId=0,
        channel="tags=8123,9123",
    )
    assert found.streamId == stream
    run.stop()
    run.close()
    await_end(session, replication, stops=True)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"channelTagId": 7}, "response channels can't be used with tagged replication"),
        (
            {"liveDestination": "aeron:udp?endpoint=127.0.0.1:19999"},
            "response channels can't be used with live destinations",
        ),
    ],
)
def test_s89_response_channels_alone(session: Session, source: Archive, fields: dict[str, Any], text: str) -> None:
    """A response replication channel with tags, or with a live destination, is E0."""
    refused = session.refused(
        "ReplicateRequest2",
        srcRecordingId=0,
        srcControlChannel=source.control_channel,
        replicationChannel="aeron:udp?control-mode=response|control=127.0.0.1:19998",
        **fields,
    )
    assert (refused.relevantId, refused.errorMessage) == (GENERIC, text)


def test_s90_what_the_source_does_not_have(session: Session, source: Archive) -> None:
    """E5 on the replication's id, then REPLICATE_END without a recording."""
    events = await_end(session, replicate(session, source, 987_654))
    assert (events[0].name, events[0].relevantId) == ("ControlResponse", UNKNOWN_RECORDING)
    assert events[0].errorMessage == "unknown src recording id 987654"
    assert (events[1].signal, events[1].recordingId) == (REPLICATE_END, NULL)


def test_s90_a_source_that_is_not_there(hasty: Archive, sessions: Callable[..., Session]) -> None:
    """E14 after the message timeout; until then the archive serves everybody."""
    session = sessions(hasty)
    replication = session.ok(
        "ReplicateRequest2", srcRecordingId=0, srcControlChannel=f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    )
    session.barrier()
    assert not [it for it in session.inbox if it.fields.get("correlationId") == replication]
    events = await_end(session, replication)
    assert (events[0].name, events[0].relevantId) == ("ControlResponse", REPLICATION_CONNECTION_FAILURE)


@ours("Spec: 07 §7 - upstream only logs a replication channel that is no URI, and answers nothing")
def test_s90_a_replication_channel_that_is_none(session: Session, source: Archive) -> None:
    """E0 with the reason."""
    request = session.request(
        "ReplicateRequest2", srcRecordingId=0, srcControlChannel=source.control_channel, replicationChannel="nonsense"
    )
    answer = session.answer(request, timeout=3)
    assert (answer.relevantId, "must start with 'aeron:'" in answer.errorMessage) == (GENERIC, True)


def test_s91_stopping_a_replication(session: Session, of_source: Session, stream: int) -> None:
    """OK(0), STOP and REPLICATE_END; the copy keeps its data, and the id is unknown from then on."""
    run = begin(of_source, stream)
    position = run.write(20)
    replication = replicate(session, of_source.archive, run.recording_id)
    copy = session.signal(EXTEND).recordingId
    await_value(
        lambda: session.ok("MaxRecordedPositionRequest", recordingId=copy), position, "the copy's position", timeout=20
    )
    assert session.ok("StopReplicationRequest", replicationId=replication) == 0
    await_end(session, replication, stops=True)
    assert session.ok("StopPositionRequest", recordingId=copy) == position
    await_value(lambda: of_source.archive.counter(REPLAY_SESSIONS), 0, "the source's replays", timeout=20)
    refused = session.refused("StopReplicationRequest", replicationId=replication)
    assert (refused.relevantId, refused.errorMessage) == (
        UNKNOWN_REPLICATION,
        f"unknown replication id {replication}",
    )
    run.stop()
    run.close()


def test_s92_destinations_that_can_not_be(session: Session, source: Archive, stream: int) -> None:
    """An unknown destination is E5, an active one E2."""
    refused = session.refused(
        "ReplicateRequest2", srcRecordingId=0, dstRecordingId=987_654, srcControlChannel=source.control_channel
    )
    assert (refused.relevantId, refused.errorMessage) == (UNKNOWN_RECORDING, "unknown destination recording id 987654")
    run = begin(session, stream)
    refused = session.refused(
        "ReplicateRequest2", srcRecordingId=0, dstRecordingId=run.recording_id, srcControlChannel=source.control_channel
    )
    assert (refused.relevantId, refused.errorMessage) == (
        ACTIVE_RECORDING,
        f"cannot replicate to active recording {run.recording_id}",
    )
    run.stop()
    run.close()


def test_s93_the_source_dies(hasty: Archive, sessions: Callable[..., Session], opened: ExitStack, stream: int) -> None:
    """The copy of a killed source has a valid stop position, and continues when the source is back."""
    session = sessions(hasty)
    dying = opened.enter_context(mortal(78))
    of_dying = Session(dying)
    run = begin(of_dying, stream)
    position = run.write(60)
    replication = replicate(session, dying, run.recording_id)
    copy = session.signal(EXTEND).recordingId
    await_value(
        lambda: session.ok("MaxRecordedPositionRequest", recordingId=copy), position, "the copy's position", timeout=20
    )
    dying.kill()
    await_end(session, replication, stops=True)
    run.close()
    Control.close(of_dying)
    assert session.ok("StopPositionRequest", recordingId=copy) == position
    revive(dying)
    of_revived = opened.enter_context(Session(dying))
    stop = of_revived.ok("StopPositionRequest", recordingId=run.recording_id)
    assert stop >= position
    await_end(session, replicate(session, dying, run.recording_id, dstRecordingId=copy))
    await_value(lambda: session.ok("StopPositionRequest", recordingId=copy), stop, "the copy's stop position")
    same_bytes(dying, run.recording_id, session.archive, copy, stop)


def test_s93_the_destination_dies(of_source: Session, opened: ExitStack, stream: int) -> None:
    """A destination that is killed while it copies starts again with its data, and continues to the last byte."""
    run = record(of_source, stream, count=400, sizes=FRAME_1024)
    dying = opened.enter_context(mortal(79))
    with Session(dying) as session:
        replicate(session, of_source.archive, run.recording_id)
        copy = session.signal(EXTEND).recordingId
        dying.kill()
    revive(dying)
    of_revived = opened.enter_context(Session(dying))
    reached = of_revived.ok("StopPositionRequest", recordingId=copy)
    assert 0 <= reached <= stop_of(run)
    await_end(of_revived, replicate(of_revived, of_source.archive, run.recording_id, dstRecordingId=copy))
    await_value(
        lambda: of_revived.ok("StopPositionRequest", recordingId=copy), stop_of(run), "the copy's stop position"
    )
    same_bytes(of_source.archive, run.recording_id, dying, copy, stop_of(run))


# -- response channels -------------------------------------------------------------------------------------------------------


def response_channels(kind: str, archive: Archive) -> tuple[str, str]:
    """Control channel and response channel of a session whose responses answer to its publication."""
    if kind == "ipc":
        return IPC, "aeron:ipc?control-mode=response|term-length=64k"
    return archive.control_channel, f"aeron:udp?control-mode=response|control=127.0.0.1:{free_port()}|term-length=64k"


@pytest.mark.parametrize("kind", ["udp", "ipc"])
def test_s14_control_over_response_channels(
    sessions: Callable[..., Session], archive: Archive, stream: int, kind: str
) -> None:
    """A session without a session id on its channels: connecting, recording, listing, replaying and closing."""
    channel, response_channel = response_channels(kind, archive)
    joint = "|" if "?" in channel else "?"
    asked_on = f"{channel}{joint}response-correlation-id={{subscription}}"
    session = sessions(channel=asked_on, response_channel=response_channel)
    run = record(session, stream, count=10)
    assert session.descriptor(run.recording_id).stopPosition == stop_of(run)
    with Replay(session, run.recording_id) as replay:
        assert_messages(replay.read_to_end(), run, 10)


class TokenReplay:
    """A replay over a response channel, asked for on a publication of its own that shows a token."""

    def __init__(
        self, session: Session, recording_id: int, token: int, kind: str, stream_id: int, **fields: Any
    ) -> None:
        archive = session.archive
        control, channel = response_channels(kind, archive)
        self.subscription = archive.client.add_subscription(channel, stream_id)
        joint = "|" if "?" in control else "?"
        self.publication = archive.client.add_exclusive_publication(
            f"{control}{joint}response-correlation-id={self.subscription.registration_id}", 10
        )
        self.publication.wait_connected(20)
        name = "BoundedReplayRequest" if "limitCounterId" in fields else "ReplayRequest"
        correlation_id = session.new_correlation_id()
        raw = codec.encode(
            name,
            controlSessionId=session.session_id,
            correlationId=correlation_id,
            recordingId=recording_id,
            replayChannel=channel,
            replayStreamId=stream_id,
            replayToken=token,
            **fields,
        )
        wait_until(lambda: self.publication.offer(raw) > 0, 10, "the replay request to be taken")
        self.correlation_id = correlation_id

    def close(self) -> None:
        """Close both ends."""
        self.publication.close()
        self.subscription.close()


@pytest.mark.parametrize("kind", ["udp", "ipc"])
def test_s58_a_replay_over_a_response_channel(
    session: Session, opened: ExitStack, streams: Callable[[], int], kind: str
) -> None:
    """With a token the replay is sent over the publication that presented it, whole or bounded; a token may be used again."""
    run = record(session, streams(), count=30)
    token = session.ok("ReplayTokenRequest", recordingId=run.recording_id)
    with session.archive.client.add_counter(1001, "limit") as limit:
        limit.value = stop_of(run)
        for fields in ({}, {"limitCounterId": limit.counter_id, "length": stop_of(run)}):
            replay = TokenReplay(session, run.recording_id, token, kind, streams(), **fields)
            opened.callback(replay.close)
            answer = session.answer(replay.correlation_id)
            assert answer.code == OK, answer
            frames = Frames(replay.subscription)
            opened.callback(frames.image.close)
            assert_messages(frames.read_to(stop_of(run)), run, 30)


@ours("Spec: 07 §11 - upstream only logs a token that is wrong or too old, and answers nothing")
@pytest.mark.parametrize("wrong", ["token", "recording"])
def test_s58_a_wrong_token(session: Session, opened: ExitStack, streams: Callable[[], int], wrong: str) -> None:
    """E0 on the session that the request names; nothing is replayed."""
    run = record(session, streams(), count=3)
    other = record(session, streams(), count=3)
    token = session.ok("ReplayTokenRequest", recordingId=run.recording_id)
    shown = token ^ 1 if wrong == "token" else token
    asked = run.recording_id if wrong == "token" else other.recording_id
    replay = TokenReplay(session, asked, shown, "ipc", streams())
    opened.callback(replay.close)
    answer = session.answer(replay.correlation_id, timeout=3)
    assert (answer.relevantId, answer.errorMessage) == (
        GENERIC,
        f"Unknown session or token timeout for replayToken={shown}",
    )


@ours("Spec: 07 §11 - upstream only logs a token that is wrong or too old, and answers nothing")
def test_s58_a_token_expires(
    impatient: Archive, sessions: Callable[..., Session], opened: ExitStack, streams: Callable[[], int]
) -> None:
    """After the connect timeout a token is worth nothing."""
    session = sessions(impatient)
    run = record(session, streams(), count=3)
    token = session.ok("ReplayTokenRequest", recordingId=run.recording_id)

    def refused() -> bool:
        replay = TokenReplay(session, run.recording_id, token, "ipc", streams())
        opened.callback(replay.close)
        answer = session.answer(replay.correlation_id)
        return str(answer.errorMessage).startswith("Unknown session or token timeout")

    wait_until(refused, 20, "the token to expire")


def test_s58_a_token_ends_with_its_session(
    session: Session, sessions: Callable[..., Session], opened: ExitStack, streams: Callable[[], int]
) -> None:
    """A token of a closed session is unknown: nothing is replayed, and no other session gets an answer."""
    run = record(session, streams(), count=3)
    brief = sessions()
    token = brief.ok("ReplayTokenRequest", recordingId=run.recording_id)
    brief.end()
    brief.await_gone()
    replay = TokenReplay(session, run.recording_id, token, "ipc", streams())
    opened.callback(replay.close)
    session.archive.await_error(f"replayToken={token}")
    assert not replay.subscription.is_connected


@pytest.mark.parametrize("kind", ["udp", "ipc"])
def test_s59_a_session_id_in_the_replay_channel(session: Session, stream: int, kind: str) -> None:
    """The low half of the replay's session id is the one that the channel names; also over UDP."""
    run = record(session, stream, count=12)
    base = IPC if kind == "ipc" else f"aeron:udp?endpoint=127.0.0.1:{free_port()}|term-length=64k"
    with Replay(session, run.recording_id, channel=f"{base}|session-id=4242") as replay:
        assert replay.session_id & 0xFFFFFFFF == 4242
        assert_messages(replay.read_to_end(), run, 12)


@pytest.mark.parametrize("place", ["endpoint", "multicast", "dynamic"])
def test_s59_replays_over_udp(session: Session, sessions: Callable[..., Session], stream: int, place: str) -> None:
    """A session over the network control channel, and its replay to an endpoint, a group, and a dynamic control channel."""
    answers = f"aeron:udp?endpoint=127.0.0.1:{free_port()}|term-length=64k"
    over_udp = sessions(channel=session.archive.control_channel, response_channel=answers)
    run = record(over_udp, stream, count=40)
    channel = {
        "endpoint": f"aeron:udp?endpoint=127.0.0.1:{free_port()}",
        "multicast": f"aeron:udp?endpoint=224.20.30.39:{free_port()}|interface=127.0.0.1",
        "dynamic": f"aeron:udp?control-mode=dynamic|control=127.0.0.1:{free_port()}|endpoint=127.0.0.1:{free_port()}",
    }[place]
    with Replay(over_udp, run.recording_id, channel=channel) as replay:
        assert_messages(replay.read_to_end(), run, 40)
