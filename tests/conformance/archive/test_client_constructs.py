"""Scenarios 94 to 105 of Spec: 08 §19: what our client makes of an archive, ours or the stock one.

Streams are published by our client and tell their index; readers know which message must come next, so that one that came
twice, not at all or torn fails the test where it happens. What ends an archive has one of its own beside a driver that lives
on.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from aeron_spark import Archive as ArchiveClient
from aeron_spark import ClosedError, DataLossError, PeerError, UsageError, WaitTimeoutError
from aeron_spark.archive import (
    PersistentFailure,
    PersistentState,
    PersistentSubscription,
    ReplayMerge,
    StartPosition,
    find_recording_position,
)
from aeron_spark.publication import Publication
from aeron_spark.types import RecordingSignal, Signal
from tests.conformance.archive.archive import REPLAY_SESSIONS, Archive
from tests.kit.ports import free_port
from tests.kit.wait import wait_until

PERSISTENT_STATE, JOIN_DIFFERENCE, LIVE_LEFT, LIVE_JOINED = 114, 115, 116, 117
IPC = "aeron:ipc?term-length=64k"
TIMEOUT_S = 30.0

# Untethered readers are given up after 0.2 s and taken up again after as long; silent images end after 1 s.
QUICK = {
    "aeron.untethered.window.limit.timeout": "200ms",
    "aeron.untethered.resting.timeout": "200ms",
    "aeron.image.liveness.timeout": "1s",
}


def message(index: int) -> bytes:
    """Up to three fragments."""
    return struct.pack("<q", index) + bytes([index % 251]) * (index * 997 % 4000)


@dataclass
class Recorded:
    """A publication, its recording, and how many messages were published and read."""

    publication: Publication
    recording_id: int
    published: int = 0
    read: int = 0
    position: int = 0

    def publish(self, count: int) -> int:
        """The next messages; the position after them."""
        bodies = [message(index) for index in range(self.published, self.published + count)]
        self.published += count
        return int(self.publication.offer_batch(bodies, timeout=TIMEOUT_S))

    def take(self, batch: pa.RecordBatch) -> None:
        """What was read is what comes next."""
        columns = (batch[name].to_pylist() for name in ("value", "position", "next_position"))
        for value, position, end in zip(*columns, strict=True):
            assert value == message(self.read)
            assert self.position <= position < end
            self.position = end
            self.read += 1


@dataclass
class Happened:
    """What a persistent subscription reported to its listener."""

    joined: int = 0
    left: int = 0
    errors: list[str] = field(default_factory=list)

    def listener(self) -> dict[str, Any]:
        """Keyword arguments of a PersistentSubscription."""

        def joined() -> None:
            self.joined += 1

        def left() -> None:
            self.left += 1

        return {
            "on_live_joined": joined,
            "on_live_left": left,
            "on_error": lambda failure: self.errors.append(str(failure)),
        }


@pytest.fixture
def client(archive: Archive, opened: ExitStack) -> ArchiveClient:
    """An archive client of ours, over IPC."""
    return opened.enter_context(ArchiveClient(archive.client))


@pytest.fixture(scope="module")
def quick() -> Iterator[Archive]:
    """An archive beside a driver that gives slow and silent ones up soon."""
    with Archive(QUICK, apart=True) as archive:
        yield archive


@pytest.fixture
def mortal(opened: ExitStack) -> Archive:
    """An archive beside its driver, to be killed."""
    return opened.enter_context(Archive(QUICK, apart=True))


def record(client: ArchiveClient, channel: str, stream: int, opened: ExitStack) -> Recorded:
    """A publication that is recorded from its first message."""
    publication = opened.enter_context(client.add_recorded_publication(channel, stream))
    session_id = publication.session_id
    position = wait_until(
        lambda: find_recording_position(client.client, session_id=session_id), TIMEOUT_S, "the recording"
    )
    publication.wait_connected(TIMEOUT_S)
    return Recorded(publication, position.recording_id)


def live_channels(port: int) -> tuple[str, str]:
    """Channel of a publisher with as many readers as come, and that of its readers."""
    return (
        f"aeron:udp?control=127.0.0.1:{port}|control-mode=dynamic|term-length=64k",
        f"aeron:udp?endpoint=127.0.0.1:0|control=127.0.0.1:{port}|control-mode=dynamic",
    )


def until(step: Callable[[], object], condition: Callable[[], object], what: str) -> None:
    """Steps until a condition holds."""

    def stepped() -> object:
        step()
        return condition()

    wait_until(stepped, TIMEOUT_S, what)


def raised_by(step: Callable[[], object], kind: type[BaseException]) -> BaseException:
    """What a step raises sooner or later."""

    def failure() -> BaseException | None:
        try:
            step()
        except kind as raised:
            return raised
        return None

    return wait_until(failure, TIMEOUT_S, f"a {kind.__name__}")


# -- ReplayMerge -------------------------------------------------------------------------------------------------------------


def merge_of(
    client: ArchiveClient,
    run: Recorded,
    port: int,
    opened: ExitStack,
    *,
    stream: int,
    timeout: float = 5.0,
    replay_session: int | None = None,
) -> ReplayMerge:
    """A merge of a recorded stream's past with its present."""
    session = f"session-id={run.publication.session_id}"
    replayed = session if replay_session is None else f"session-id={replay_session}"
    subscription = opened.enter_context(
        client.client.add_subscription(f"aeron:udp?control-mode=manual|{session}", stream)
    )
    return opened.enter_context(
        ReplayMerge(
            client,
            subscription,
            replay_channel=f"aeron:udp?{replayed}",
            replay_destination="aeron:udp?endpoint=127.0.0.1:0",
            live_destination=f"aeron:udp?endpoint=127.0.0.1:0|control=127.0.0.1:{port}",
            recording_id=run.recording_id,
            progress_timeout=timeout,
        )
    )


def test_s94_replay_merge(archive: Archive, client: ArchiveClient, stream: int, opened: ExitStack) -> None:
    """Each message once and in order, MERGED is reached, and the archive's replay has ended."""
    port = free_port()
    run = record(client, live_channels(port)[0], stream, opened)
    run.publish(60)
    merge = merge_of(client, run, port, opened, stream=stream)

    def step() -> None:
        run.take(merge.poll_batch(0.05))
        if run.read == run.published and not merge.is_merged:
            run.publish(1)

    until(step, lambda: merge.is_merged, "the merge")
    assert merge.is_live_added
    archive.await_counter(REPLAY_SESSIONS, 0)
    run.publish(22)  # more than half a term
    until(step, lambda: run.read == run.published, "live messages")


def test_s95_the_archive_dies_before_the_merge(mortal: Archive, stream: int, opened: ExitStack) -> None:
    """The merge fails for good and says so at each call."""
    port = free_port()
    client = opened.enter_context(ArchiveClient(mortal.client))
    run = record(client, live_channels(port)[0], stream, opened)
    run.publish(10)
    merge = merge_of(client, run, port, opened, stream=stream)
    mortal.stop()
    failure = raised_by(lambda: run.take(merge.poll_batch(0.05)), ClosedError)
    assert merge.has_failed
    with pytest.raises(ClosedError) as again:
        merge.do_work()
    assert str(again.value) == str(failure)


def test_s96_no_progress(client: ArchiveClient, stream: int, opened: ExitStack) -> None:
    """A replay that never comes, as the subscription is of another session, ends in the timeout's error."""
    port = free_port()
    run = record(client, live_channels(port)[0], stream, opened)
    run.publish(5)
    other = client.client.next_session_id(stream)
    merge = merge_of(client, run, port, opened, stream=stream, timeout=1.0, replay_session=other)
    failure = raised_by(lambda: merge.poll_batch(0.05), WaitTimeoutError)
    assert "ReplayMerge no progress: state=CATCHUP, activeTransportCount=0" in str(failure)
    assert merge.has_failed


# -- PersistentSubscription --------------------------------------------------------------------------------------------------


def persistent(archive: Archive, run: Recorded, stream: int, **options: Any) -> PersistentSubscription:
    """A persistent subscription to a recorded stream, over IPC unless options say otherwise."""
    arguments: dict[str, Any] = {
        "recording_id": run.recording_id,
        "live_channel": "aeron:ipc",
        "live_stream_id": stream,
        "replay_channel": "aeron:ipc",
        "replay_stream_id": stream + 10_000,
        "start_position": StartPosition.FROM_START,
    }
    return PersistentSubscription(options.pop("client", archive.client), **{**arguments, **options})


def reads(persisted: PersistentSubscription, run: Recorded) -> Callable[[], None]:
    """A step that reads everything available."""
    return lambda: run.take(persisted.poll_batch(0.02))


def follow(persisted: PersistentSubscription, run: Recorded) -> None:
    """Publish and read until it is live and has everything."""

    def step() -> None:
        run.take(persisted.poll_batch(0.02))
        if run.read == run.published and not persisted.is_live:
            run.publish(1)

    until(step, lambda: persisted.is_live and run.read == run.published, "the live stream")


def own_counter(archive: Archive, type_id: int, stream: int) -> int:
    """Value of a persistent subscription's counter, by its live stream."""
    (found,) = [one for one in archive.counters(type_id) if f" {stream} aeron:" in one.label]
    return found.value


def test_s97_from_start(archive: Archive, client: ArchiveClient, stream: int, opened: ExitStack) -> None:
    """All messages once, joined once, and the counters say it."""
    run = record(client, IPC, stream, opened)
    run.publish(100)
    happened = Happened()
    persisted = opened.enter_context(persistent(archive, run, stream, **happened.listener()))
    follow(persisted, run)
    assert (happened.joined, happened.left, happened.errors) == (1, 0, [])
    assert own_counter(archive, PERSISTENT_STATE, stream) == PersistentState.LIVE
    assert own_counter(archive, LIVE_JOINED, stream) == 1
    assert own_counter(archive, LIVE_LEFT, stream) == 0
    archive.await_counter(REPLAY_SESSIONS, 0)


def test_s98_from_live(archive: Archive, client: ArchiveClient, stream: int, opened: ExitStack) -> None:
    """Joins live at once, without a gap, and delivers messages published from then on."""
    run = record(client, IPC, stream, opened)
    run.position = run.publish(10)
    run.read = run.published
    happened = Happened()
    persisted = opened.enter_context(
        persistent(archive, run, stream, start_position=StartPosition.FROM_LIVE, **happened.listener())
    )
    until(reads(persisted, run), lambda: persisted.is_live, "the live stream")
    assert (happened.joined, own_counter(archive, JOIN_DIFFERENCE, stream)) == (1, 0)
    run.publish(10)
    until(reads(persisted, run), lambda: run.read == run.published, "live messages")


def test_s99_live_is_lost_and_joined_again(quick: Archive, stream: int, opened: ExitStack) -> None:
    """A reader given up by flow control replays the gap and is live again: nothing twice, nothing left out, nothing torn."""
    client = opened.enter_context(ArchiveClient(quick.client))
    run = record(client, IPC, stream, opened)
    run.publish(10)
    happened = Happened()
    persisted = opened.enter_context(
        persistent(quick, run, stream, live_channel="aeron:ipc?tether=false", **happened.listener())
    )
    for round_ in (1, 2):
        follow(persisted, run)
        run.publish(60)  # more than a window: taken once the reader is given up
        until(reads(persisted, run), lambda lefts=round_: happened.left >= lefts, "the loss of live")
    follow(persisted, run)
    assert happened.left >= 2  # where the machine stands still for 0.2 s, live is lost once more
    assert (happened.joined, happened.errors) == (happened.left + 1, [])
    assert own_counter(quick, LIVE_LEFT, stream) == happened.left
    assert own_counter(quick, LIVE_JOINED, stream) == happened.joined


def test_s100_what_cannot_work(archive: Archive, client: ArchiveClient, stream: int, opened: ExitStack) -> None:
    """Positions beyond a stopped recording, unknown recordings and other streams fail for good, each with its reason."""
    run = record(client, IPC, stream, opened)
    end = run.publish(10)
    client.wait_position(run.recording_id, end)
    run.publication.close()
    wait_until(lambda: client.stop_position(run.recording_id) == end, TIMEOUT_S, "the recording's end")
    for options, reason, kind in (
        ({"start_position": end + 32}, PersistentFailure.INVALID_START_POSITION, DataLossError),
        ({"recording_id": 1 << 40}, PersistentFailure.RECORDING_NOT_FOUND, PeerError),
        ({"live_stream_id": stream + 1}, PersistentFailure.STREAM_ID_MISMATCH, UsageError),
    ):
        persisted = opened.enter_context(persistent(archive, run, stream, **options))
        raised_by(lambda stream=persisted: stream.poll_batch(0.02), kind)
        assert (persisted.state, persisted.failure) == (PersistentState.FAILED, reason)


def test_s101_the_archive_restarts(mortal: Archive, stream: int, opened: ExitStack) -> None:
    """While live nothing changes; a replay continues at its position when the archive is back."""
    client = opened.enter_context(ArchiveClient(mortal.client))
    run = record(client, IPC, stream, opened)
    run.publish(20)
    happened = Happened()
    persisted = opened.enter_context(persistent(mortal, run, stream, timeout=2, **happened.listener()))
    follow(persisted, run)
    recorded = int(run.publication.position)
    client.wait_position(run.recording_id, recorded)
    mortal.stop()
    run.publish(8)
    until(reads(persisted, run), lambda: run.read == run.published, "messages without an archive")
    assert (persisted.is_live, happened.joined, happened.left) == (True, 1, 0)
    # Of what was recorded, a replay that is cut in two.
    again = Recorded(run.publication, run.recording_id, published=run.published - 8)
    run.publication.close()
    mortal.start()
    replaying = opened.enter_context(persistent(mortal, again, stream, timeout=2))

    def some() -> None:
        again.take(replaying.poll_batch(0.02, row_capacity=1))

    until(some, lambda: again.read >= 3, "some of the replay")
    assert replaying.is_replaying
    mortal.stop()
    until(some, lambda: replaying.state == PersistentState.AWAIT_ARCHIVE_CONNECTION, "the loss of the archive")
    mortal.start()
    until(some, lambda: again.read == again.published, "the rest")
    assert again.position == recorded


def test_s102_no_live_publisher(archive: Archive, client: ArchiveClient, stream: int, opened: ExitStack) -> None:
    """Its absence is reported once, and the replay continues with newly recorded data."""
    run = record(client, IPC, stream, opened)
    client.wait_position(run.recording_id, run.publish(30))
    happened = Happened()
    persisted = opened.enter_context(
        persistent(archive, run, stream, live_channel="aeron:ipc?session-id=777", timeout=1, **happened.listener())
    )
    until(reads(persisted, run), lambda: happened.errors, "the error")
    assert "no image became available on the live subscription within 1s" in happened.errors[0]
    run.publish(30)
    until(reads(persisted, run), lambda: run.read == run.published, "the rest of the recording")
    assert persisted.is_replaying
    assert len(happened.errors) == 1


REPLAY_CHANNELS = {
    "fixed endpoint": "aeron:udp?endpoint=127.0.0.1:{port}",
    "port 0": "aeron:udp?endpoint=127.0.0.1:0",
    "response, udp": "aeron:udp?control-mode=response|control=127.0.0.1:{port}",
    "response, ipc": "aeron:ipc?control-mode=response",
}


@pytest.mark.parametrize("kind", REPLAY_CHANNELS)
def test_s103_kinds_of_replay_channels(
    archive: Archive, client: ArchiveClient, stream: int, opened: ExitStack, kind: str
) -> None:
    """Each kind of replay channel reaches live."""
    channel, live = live_channels(free_port())
    run = record(client, channel, stream, opened)
    run.publish(40)
    control: dict[str, Any] = {}
    if kind == "response, udp":
        control = {"control_channel": archive.control_channel, "response_channel": "aeron:udp?endpoint=127.0.0.1:0"}
    replay = REPLAY_CHANNELS[kind].format(port=free_port())
    persisted = opened.enter_context(
        persistent(archive, run, stream, live_channel=live, replay_channel=replay, **control)
    )
    follow(persisted, run)
    run.publish(10)
    until(reads(persisted, run), lambda: run.read == run.published, "live messages")


# -- calls -------------------------------------------------------------------------------------------------------------------


def test_s104_an_error_for_an_old_request(archive: Archive, opened: ExitStack) -> None:
    """A wait for another answer continues, and the handler is called."""
    errors: list[tuple[int, int, str]] = []
    client = opened.enter_context(
        ArchiveClient(
            archive.client, on_error=lambda failure, request: errors.append((failure.code, request, str(failure)))
        )
    )
    old = client.calls.start_position(1 << 40)
    request = old.correlation_id
    old.close()
    assert client.calls.find_last_matching_recording("nothing", 1, 2).result(TIMEOUT_S) is None
    until(client.poll, lambda: errors, "the error")
    ((code, told, text),) = errors
    assert (code, told) == (5, request)
    assert "unknown recording id: 1099511627776" in text


def test_s105_signals_between_request_and_answer(archive: Archive, stream: int, opened: ExitStack) -> None:
    """They are dispatched while an answer is awaited, and the answer is matched."""
    signals: list[Signal] = []
    client = opened.enter_context(ArchiveClient(archive.client, on_signal=signals.append))
    run = record(client, IPC, stream, opened)
    end = run.publish(3)
    client.wait_position(run.recording_id, end)
    signals.clear()
    position = client.calls.recording_position(run.recording_id)
    run.publication.close()
    wait_until(
        lambda: find_recording_position(client.client, recording_id=run.recording_id) is None,
        TIMEOUT_S,
        "the recording's end",
    )
    assert client.stop_position(run.recording_id) == end
    assert position.result(TIMEOUT_S) in {end, None}
    assert [(one.signal, one.position) for one in signals] == [(RecordingSignal.STOP, end)]
