"""Scenarios 36 to 42: listings, searches and positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.conformance.archive.archive import Archive, await_value, ours
from tests.conformance.archive.codec import (
    ACTIVE_LISTING,
    LOCAL,
    NULL,
    RECORDING_UNKNOWN,
    STOP,
    SUBSCRIPTION_UNKNOWN,
    UNKNOWN_RECORDING,
    Message,
)
from tests.conformance.archive.control import Session
from tests.conformance.archive.streams import IPC, Recorded, Stream, begin, record

Streams = Callable[[], int]
COUNT = 3


@pytest.fixture(scope="module")
def three() -> Iterator[tuple[Archive, list[Recorded]]]:
    """An archive of its own with three recordings of one stream and three channels, and no other client."""
    with Archive(control=False) as archive, Session(archive) as session:
        yield archive, [record(session, 700, count=1, channel=f"{IPC}|alias=number-{index}") for index in range(COUNT)]


@pytest.fixture
def asking(three: tuple[Archive, list[Recorded]], opened: ExitStack) -> Session:
    """A session with the archive of three recordings."""
    return opened.enter_context(Session(three[0]))


def ids(found: list[Message]) -> list[int]:
    """The recording ids of descriptors."""
    return [descriptor.recordingId for descriptor in found]


def test_s36_more_than_there_are(asking: Session) -> None:
    """Listing ten of three recordings gives three descriptors, then RECORDING_UNKNOWN with the next id."""
    found, end = asking.descriptors(fromRecordingId=0, recordCount=10)
    assert ids(found) == [0, 1, 2]
    assert end is not None
    assert (end.code, end.relevantId, end.errorMessage) == (RECORDING_UNKNOWN, COUNT, "")
    found, end = asking.descriptors(fromRecordingId=2, recordCount=10)
    assert (ids(found), end and end.relevantId) == ([2], COUNT)
    found, end = asking.descriptors(fromRecordingId=77, recordCount=10)
    assert (ids(found), end and end.relevantId) == ([], 77)
    found, end = asking.descriptors(fromRecordingId=-5, recordCount=2)
    assert (ids(found), end) == ([0, 1], None)
    for recording_id, expected in ((1, ([1], None)), (99, ([], 99))):
        found, end = asking.descriptors("ListRecordingRequest", recordingId=recording_id)
        assert (ids(found), end and end.relevantId) == expected


def test_s36_a_descriptor_has_all_fields(asking: Session, three: tuple[Archive, list[Recorded]]) -> None:
    """A descriptor has what the catalog has, behind the ids of session and request."""
    (found,), _ = asking.descriptors(fromRecordingId=1, recordCount=1)
    on_disk = three[0].catalog().of(1)
    assert (found.controlSessionId, found.recordingId) == (asking.session_id, 1)
    assert (found.startTimestamp, found.stopTimestamp) == (on_disk.start_timestamp, on_disk.stop_timestamp)
    assert (found.startPosition, found.stopPosition) == (on_disk.start_position, on_disk.stop_position)
    assert (found.initialTermId, found.segmentFileLength) == (on_disk.initial_term_id, on_disk.segment_length)
    assert (found.termBufferLength, found.mtuLength) == (on_disk.term_length, on_disk.mtu)
    assert (found.sessionId, found.streamId) == (on_disk.session_id, on_disk.stream_id)
    assert (found.strippedChannel, found.originalChannel) == (on_disk.stripped_channel, on_disk.original_channel)
    assert found.sourceIdentity == on_disk.source_identity
    # Spec: 07 §3 - the catalog's padding comes along.
    assert len(found.raw) == 8 + 16 + on_disk.length - 16


def test_s37_exactly_as_many(asking: Session) -> None:
    """Listing as many as there are ends without a terminator."""
    found, end = asking.descriptors(fromRecordingId=0, recordCount=COUNT)
    assert (ids(found), end) == ([0, 1, 2], None)
    asking.barrier()
    assert asking.seen("ControlResponse") == []


def test_s38_by_uri(asking: Session) -> None:
    """A listing by uri takes those whose original channel has the fragment and whose stream id is equal."""

    def found(fragment: str, stream_id: int = 700, count: int = 10) -> tuple[list[int], int | None]:
        descriptors, end = asking.descriptors(
            "ListRecordingsForUriRequest", fromRecordingId=0, recordCount=count, streamId=stream_id, channel=fragment
        )
        return ids(descriptors), None if end is None else end.relevantId

    assert found("alias=number-1") == ([1], COUNT)
    assert found("number-") == ([0, 1, 2], COUNT)
    assert found("number-", count=2) == ([0, 1], None)
    assert found("") == ([0, 1, 2], COUNT)
    assert found("number-", 701) == ([], COUNT)
    assert found("nowhere") == ([], COUNT)


def test_s39_find_last(asking: Session, three: tuple[Archive, list[Recorded]]) -> None:
    """The last match by session, stream and fragment at or above an id, else OK(-1); an id below 0 is E5."""
    runs = three[1]

    def last(
        run: Recorded, minimum: int = 0, fragment: str = "aeron:ipc", stream_id: int = 700, other_session: int = 0
    ) -> int:
        return asking.ok(
            "FindLastMatchingRecordingRequest",
            minRecordingId=minimum,
            sessionId=run.session_id ^ other_session,
            streamId=stream_id,
            channel=fragment,
        )

    run = runs[1]
    assert last(run) == last(run, 1) == last(run, fragment="number-1") == last(run, fragment="") == 1
    assert (
        last(run, 2)
        == last(run, fragment="number-2")
        == last(run, stream_id=701)
        == last(run, other_session=1 << 30)
        == NULL
    )
    refused = asking.refused("FindLastMatchingRecordingRequest", minRecordingId=-1, streamId=700, channel="")
    assert (refused.relevantId, refused.errorMessage) == (UNKNOWN_RECORDING, "minRecordingId=-1 < 0")


def test_s40_a_gap_in_the_ids(archive: Archive, session: Session, streams: Streams) -> None:
    """A listing passes over the id of a purged recording."""
    first, middle, last = (record(session, streams(), count=1) for _ in range(3))
    session.ok("PurgeRecordingRequest", recordingId=middle.recording_id)
    found, _ = session.descriptors(fromRecordingId=first.recording_id, recordCount=2)
    assert ids(found) == [first.recording_id, last.recording_id]
    found, end = session.descriptors("ListRecordingRequest", recordingId=middle.recording_id)
    assert found == []
    assert end is not None
    assert (end.code, end.relevantId) == (RECORDING_UNKNOWN, middle.recording_id)


def test_s41_subscriptions(archive: Archive, session: Session, stream: int) -> None:
    """Recording subscriptions from a pseudo index on, by stream and fragment; beyond the end SUBSCRIPTION_UNKNOWN."""
    subscriptions = {
        session.ok(
            "StartRecordingRequest2", channel=f"{IPC}|session-id={number}", streamId=stream, sourceLocation=LOCAL
        ): f"aeron:ipc?session-id={number}"
        for number in (1, 2, 3)
    }

    def found(index: int = 0, count: int = 10, fragment: str = "", **by: int) -> tuple[list[Message], Message | None]:
        return session.descriptors(
            "ListRecordingSubscriptionsRequest",
            **{
                "pseudoIndex": index,
                "subscriptionCount": count,
                "applyStreamId": 1,
                "streamId": stream,
                "channel": fragment,
                **by,
            },
        )

    mine, end = found()
    assert {one.subscriptionId: one.strippedChannel for one in mine} == subscriptions
    assert {one.streamId for one in mine} == {stream}
    assert end is not None
    assert (end.code, end.relevantId) == (SUBSCRIPTION_UNKNOWN, 0)
    assert found(count=3)[1] is None
    assert [one.strippedChannel for one in found(fragment="session-id=2")[0]] == ["aeron:ipc?session-id=2"]
    assert found(streamId=stream + 1_000_000)[0] == []
    assert found(fragment="term-length")[0] == [], "a stripped channel has no term length"
    every, _ = found(applyStreamId=0, count=1000)
    assert set(subscriptions) <= {one.subscriptionId for one in every}
    for index in (len(every), 1000, -1):
        nothing, end = found(index, applyStreamId=0)
        assert (nothing, end and end.code) == ([], SUBSCRIPTION_UNKNOWN)
    tail, _ = found(len(every) - 1, applyStreamId=0, count=1000)
    assert len(tail) == 1
    for subscription in subscriptions:
        session.ok("StopRecordingSubscriptionRequest", subscriptionId=subscription)


@pytest.mark.parametrize("count", [0, -1])
def test_s41_no_subscriptions_wanted(session: Session, stream: int, count: int) -> None:
    """A count of subscriptions that is not positive is SUBSCRIPTION_UNKNOWN."""
    subscription = session.ok("StartRecordingRequest2", channel=IPC, streamId=stream, sourceLocation=LOCAL)
    end = session.answer(session.request("ListRecordingSubscriptionsRequest", subscriptionCount=count))
    assert (end.code, end.relevantId) == (SUBSCRIPTION_UNKNOWN, 0)
    session.ok("StopRecordingSubscriptionRequest", subscriptionId=subscription)


@ours("Spec: 08 §6 - upstream is silent for 0 and lists for ever below it")
@pytest.mark.parametrize("count", [0, -1, -(2**31)])
@pytest.mark.parametrize("name", ["ListRecordingsRequest", "ListRecordingsForUriRequest"])
def test_s36_no_recordings_wanted(asking: Session, name: str, count: int) -> None:
    """A count that is not positive is answered with RECORDING_UNKNOWN of the asked id, and blocks no later listing."""
    correlation_id = asking.request(name, fromRecordingId=1, recordCount=count)
    asking.barrier()
    (answer,) = asking.seen("ControlResponse", lambda it: it.correlationId == correlation_id)
    assert (answer.code, answer.relevantId) == (RECORDING_UNKNOWN, 1)
    assert ids(asking.descriptors(fromRecordingId=0, recordCount=COUNT)[0]) == [0, 1, 2]
    asking.inbox.clear()


def test_s42_positions(archive: Archive, session: Session, stream: int) -> None:
    """While active stop is -1 and max is the recorded position; afterwards recorded is -1 and max is the stop position."""
    run = begin(session, stream, channel=f"{IPC}|mtu=1408|init-term-id=3|term-id=3|term-offset=64")
    position = run.write(20)

    def positions() -> dict[str, int]:
        names = ("StartPosition", "RecordingPosition", "StopPosition", "MaxRecordedPosition")
        return {name: session.ok(f"{name}Request", recordingId=run.recording_id) for name in names}

    assert positions() == {
        "StartPosition": 64,
        "RecordingPosition": position,
        "StopPosition": NULL,
        "MaxRecordedPosition": position,
    }
    run.stop()
    assert positions() == {
        "StartPosition": 64,
        "RecordingPosition": NULL,
        "StopPosition": position,
        "MaxRecordedPosition": position,
    }
    run.close()
    for name in ("StartPosition", "RecordingPosition", "StopPosition", "MaxRecordedPosition"):
        for unknown in (999_999, -1):
            refused = session.refused(f"{name}Request", recordingId=unknown)
            assert (refused.relevantId, refused.errorMessage) == (UNKNOWN_RECORDING, f"unknown recording id: {unknown}")


# More descriptors than a response stream of 64 KiB terms takes unread.
MANY = 150


@ours("Spec: 08 §6 - under back-pressure upstream may send a subscription twice, or never end", hangs=True)
def test_s41_a_slow_reader_misses_nothing(streams: Streams) -> None:
    """A session that does not read holds its listing of subscriptions up; read again, each one comes once, then the end."""
    with Archive(control=False) as archive, Session(archive) as session:
        stream_id = streams()
        pad = "x" * 300
        made = [
            session.ok(
                "StartRecordingRequest2",
                channel=f"{IPC}|session-id={number}|alias={pad}",
                streamId=stream_id,
                sourceLocation=LOCAL,
            )
            for number in range(1, MANY + 1)
        ]
        with Session(archive) as slow:
            correlation_id = slow.request(
                "ListRecordingSubscriptionsRequest",
                subscriptionCount=MANY + 1,
                applyStreamId=1,
                streamId=stream_id,
                channel="",
            )
            # A whole answer elsewhere: the listing has come as far as it can meanwhile.
            session.barrier()
            # Two go while the listing stands still: what was sent stays sent, and the rest is not shifted.
            for gone in (made[0], made[1]):
                session.ok("StopRecordingSubscriptionRequest", subscriptionId=gone)
            found = []
            while (message := slow.next_of(correlation_id, timeout=5)).name == "RecordingSubscriptionDescriptor":
                found.append(message.subscriptionId)
            assert message.code == SUBSCRIPTION_UNKNOWN
            assert sorted(found) == sorted(set(found))
            assert set(made[2:]) <= set(found)


def test_s36_a_slow_reader_misses_nothing(archive: Archive, session: Session, stream: int) -> None:
    """A session that does not read holds its listing up, and its second listing is E1; read again, all comes once."""
    alias = f"slow-{stream}-" + "x" * 700
    runs = [record(session, stream, count=1, channel=f"{IPC}|alias={alias}") for _ in range(40)]
    with Session(archive) as slow:
        wanted = {"fromRecordingId": 0, "streamId": stream, "channel": alias[:20]}
        first = slow.request("ListRecordingsForUriRequest", recordCount=1000, **wanted)
        # A whole answer elsewhere: the listing has come as far as it can meanwhile.
        session.barrier()
        second = slow.request("ListRecordingsForUriRequest", recordCount=1, **wanted)
        session.barrier()
        found = []
        while (message := slow.next_of(first)).name == "RecordingDescriptor":
            found.append(message)
        assert ids(found) == [run.recording_id for run in runs]
        assert message.code == RECORDING_UNKNOWN
        refused = slow.answer(second)
        assert (refused.relevantId, refused.errorMessage) == (ACTIVE_LISTING, "active listing already in progress")


@ours("Spec: 08 §4.3 - upstream loses the subscription from its lists while its other images go on")
def test_s24_stop_by_identity_of_one_of_two(archive: Archive, session: Session, stream: int, opened: ExitStack) -> None:
    """Stopping one of a subscription's two recordings by id leaves the other, and the subscription can still be stopped."""
    subscription = session.ok("StartRecordingRequest2", channel=IPC, streamId=stream, sourceLocation=LOCAL)
    for _ in range(2):
        opened.enter_context(Stream(archive.client, IPC, stream))
    first, second = (session.expect("RecordingSignalEvent").recordingId for _ in range(2))
    assert session.ok("StopRecordingByIdentityRequest", recordingId=first) == 1
    session.signal(STOP, first)
    assert archive.recording_counter(second) is not None
    found, _ = session.descriptors(
        "ListRecordingSubscriptionsRequest", subscriptionCount=10, applyStreamId=1, streamId=stream, channel=""
    )
    assert [one.subscriptionId for one in found] == [subscription]
    assert session.ok("StopRecordingRequest", channel=IPC, streamId=stream) == 0
    session.signal(STOP, second)
    await_value(lambda: archive.recording_counter(second), None, "the counter of the second recording")
