"""What an archive client gives Python beside blocking calls.

Requests that do not wait, states, the environment, recorded publications, recording positions and events, ReplayMerge and
PersistentSubscription: a driver and an archive of ours in this process, messages that tell their index.

Spec: 05 §13.1.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from aeron_spark import Archive, ArchivingMediaDriver, ClosedError, PeerError, UsageError, WaitTimeoutError
from aeron_spark.archive import (
    ArchiveState,
    MergeState,
    PersistentFailure,
    PersistentSubscription,
    RecordingEvent,
    RecordingEventKind,
    RecordingEvents,
    ReplayMerge,
    StartPosition,
    find_recording_position,
)
from aeron_spark.publication import Publication
from aeron_spark.types import Header, Signal
from tests.kit.ports import free_port
from tests.kit.wait import wait_until
from tests.python.conftest import SETTINGS

IPC = "aeron:ipc?term-length=64k"
STREAM = 1001


def message(index: int) -> bytes:
    return struct.pack("<q", index) + bytes([index % 251]) * (index * 997 % 4000)


def publish(publication: Publication, first: int, count: int) -> int:
    return int(publication.offer_batch([message(index) for index in range(first, first + count)], timeout=20))


class Reader:
    """Takes batches and messages, and knows which message must come next."""

    def __init__(self) -> None:
        self.next = 0
        self.position = 0

    def batch(self, batch: pa.RecordBatch) -> None:
        for value, position, end in zip(
            batch["value"].to_pylist(), batch["position"].to_pylist(), batch["next_position"].to_pylist(), strict=True
        ):
            assert value == message(self.next)
            assert self.position <= position < end
            self.position = end
            self.next += 1

    def message(self, body: bytes, header: Header) -> None:
        assert body == message(self.next)
        assert header.position > self.position
        self.position = header.position
        self.next += 1


def until(step: Callable[[], object], condition: Callable[[], bool], what: str) -> None:
    def stepped() -> bool:
        step()
        return condition()

    wait_until(stepped, 30, what)


def test_calls_are_answered_in_any_order(servers: ArchivingMediaDriver) -> None:
    with Archive(aeron_dir=servers.aeron_dir) as archive:
        with archive.add_recorded_publication(IPC, STREAM) as publication:
            recording_id = archive.wait_recording("aeron:ipc", STREAM, publication.session_id)
            end = publish(publication, 0, 10)
            archive.wait_position(recording_id, end)
            reached = archive.calls.recording_position(recording_id)
            unknown = archive.calls.start_position(99)
            listed = archive.calls.recordings()
            assert archive.calls.recording(98).result() == []
            assert archive.start_position(recording_id) == 0
            assert [one.recording_id for one in listed.result(10)] == [recording_id]
            with pytest.raises(PeerError, match="unknown recording id: 99") as raised:
                unknown.result(10)
            assert raised.value.code == 5
            assert unknown.done()
            assert reached.result(10) == end
            assert reached.result() == end
            assert len({reached.correlation_id, unknown.correlation_id, listed.correlation_id}) == 3
            closed = archive.calls.stop_position(recording_id)
            closed.close()
            with pytest.raises(ClosedError):
                closed.result()
            with pytest.raises(UsageError, match="publication already added"):
                archive.add_recorded_publication(IPC, STREAM)
        late = archive.calls.max_recorded_position(recording_id)
    with pytest.raises(ClosedError):
        late.result()


def test_a_call_without_an_answer_times_out(servers: ArchivingMediaDriver) -> None:
    with Archive(aeron_dir=servers.aeron_dir) as archive:
        call = archive.calls.start_position(0)
        archive.client.close()
        with pytest.raises((ClosedError, WaitTimeoutError)):
            call.result(5)


def test_states_and_errors_that_nobody_waits_for(servers: ArchivingMediaDriver) -> None:
    errors: list[tuple[int, int]] = []
    with Archive(
        aeron_dir=servers.aeron_dir, on_error=lambda failure, request: errors.append((failure.code, request))
    ) as archive:
        assert archive.state == ArchiveState.CONNECTED
        assert archive.poll_for_error() is None
        assert archive.poll_for_signals() == 0
        forgotten = archive.calls.start_position(99)
        wanted = (5, forgotten.correlation_id)
        forgotten.close()
        until(archive.poll, lambda: bool(errors), "the error to be told")
        assert errors == [wanted]
    with Archive(aeron_dir=servers.aeron_dir) as archive:
        archive.calls.start_position(99).close()
        texts: list[str] = []
        until(lambda: texts.extend(filter(None, [archive.poll_for_error()])), lambda: bool(texts), "the error's text")
        assert texts == ["unknown recording id: 99"]
        servers.archive.close()
        until(lambda: texts.extend(filter(None, [archive.poll_for_error()])), lambda: len(texts) > 1, "the end")
        assert texts[1] == "not connected"
        assert archive.state == ArchiveState.DISCONNECTED
        with pytest.raises(ClosedError, match="client is closed"):
            archive.start_position(0)
        assert archive.state == ArchiveState.CLOSED


def test_the_environment_says_what_is_not_given(servers: ArchivingMediaDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AERON_DIR", str(servers.aeron_dir))
    monkeypatch.setenv("AERON_ARCHIVE_CONTROL_STREAM_ID", "10")
    monkeypatch.setenv("AERON_ARCHIVE_CONTROL_RESPONSE_STREAM_ID", "29")
    monkeypatch.setenv("AERON_ARCHIVE_CONTROL_TERM_BUFFER_LENGTH", "128k")
    monkeypatch.setenv("AERON_ARCHIVE_MESSAGE_TIMEOUT", "7s")
    with Archive() as archive:
        assert archive.timeout == 7
    with Archive(timeout=8) as archive:
        assert archive.timeout == 8
    monkeypatch.setenv("AERON_ARCHIVE_CONTROL_STREAM_ID", "ten")
    with pytest.raises(UsageError, match="AERON_ARCHIVE_CONTROL_STREAM_ID=ten"):
        Archive()


def test_recording_positions_and_events(aeron_dir: Path, archive_dir: Path) -> None:
    settings = {
        **SETTINGS,
        "aeron.archive.recording.events.enabled": "true",
        "aeron.archive.recording.events.channel": "aeron:ipc",
    }
    told: list[RecordingEvent] = []
    signals: list[Signal] = []
    with (
        ArchivingMediaDriver(archive_dir, aeron_dir, settings=settings),
        Archive(aeron_dir=aeron_dir, on_signal=signals.append) as archive,
        archive.client.add_subscription("aeron:ipc", 30) as subscription,
        RecordingEvents(subscription, told.append) as events,
    ):
        subscription.wait_image(10).close()
        publication = archive.add_recorded_exclusive_publication(IPC, STREAM)
        recording_id = archive.wait_recording("aeron:ipc", STREAM, publication.session_id)
        end = publish(publication, 0, 5)
        counter = find_recording_position(archive.client, recording_id=recording_id, archive_id=archive.archive_id)
        assert counter is not None
        assert counter == find_recording_position(archive.client, session_id=publication.session_id)
        assert (counter.recording_id, counter.source_identity) == (recording_id, "aeron:ipc")
        wait_until(lambda: counter.position == end, 10, "the recorded position")
        assert find_recording_position(archive.client, recording_id=99) is None
        with pytest.raises(UsageError):
            find_recording_position(archive.client)
        publication.close()
        until(events.poll, lambda: told[-1:] != [] and told[-1].kind == RecordingEventKind.STOPPED, "the end's event")
        assert told[0].kind == RecordingEventKind.STARTED
        assert (told[0].stream_id, told[0].source_identity) == (STREAM, "aeron:ipc")
        assert told[-1].position == end
        wait_until(lambda: not counter.is_active, 10, "the counter to go")
        assert counter.position is None
        until(archive.poll_for_signals, lambda: len(signals) >= 2, "the signals")


def persistent(archive: Archive, recording_id: int, **options: object) -> PersistentSubscription:
    arguments: dict[str, object] = {
        "recording_id": recording_id,
        "live_channel": "aeron:ipc",
        "live_stream_id": STREAM,
        "replay_channel": "aeron:ipc",
        "replay_stream_id": 2001,
        "start_position": StartPosition.FROM_START,
        **options,
    }
    return PersistentSubscription(archive.client, **arguments)  # type: ignore[arg-type]


def test_a_persistent_subscription_in_batches(servers: ArchivingMediaDriver) -> None:
    happened: list[str] = []
    reader = Reader()
    with Archive(aeron_dir=servers.aeron_dir) as archive, archive.add_recorded_publication(IPC, STREAM) as publication:
        recording_id = archive.wait_recording("aeron:ipc", STREAM, publication.session_id)
        end = publish(publication, 0, 100)
        archive.wait_position(recording_id, end)
        with persistent(
            archive,
            recording_id,
            on_live_joined=lambda: happened.append("joined"),
            on_live_left=lambda: happened.append("left"),
            on_error=lambda failure: happened.append(str(failure)),
        ) as stream:
            assert stream.position == StartPosition.FROM_START
            until(lambda: reader.batch(stream.poll_batch(0.1)), lambda: reader.next == 100 and stream.is_live, "live")
            assert stream.position == end
            publish(publication, 100, 10)
            until(lambda: stream.poll(reader.message), lambda: reader.next == 110, "what was published live")
            assert (happened, stream.failure) == (["joined"], None)
            publication.close()
            until(lambda: stream.poll_batch(0.1), lambda: "left" in happened, "the loss of live")


def test_a_persistent_subscription_that_cannot_work_says_why(servers: ArchivingMediaDriver) -> None:
    errors: list[str] = []
    with (
        Archive(aeron_dir=servers.aeron_dir) as archive,
        persistent(archive, 99, on_error=lambda failure: errors.append(str(failure))) as stream,
    ):

        def fails() -> bool:
            try:
                stream.poll_batch(0.1)
            except PeerError as failure:
                return "unknown recording id: 99" in str(failure)
            return False

        wait_until(fails, 10, "the failure")
        assert stream.failure == PersistentFailure.RECORDING_NOT_FOUND
        assert errors == ["unknown recording id: 99"]
    with Archive(aeron_dir=servers.aeron_dir) as archive, pytest.raises(UsageError, match="start_position"):
        persistent(archive, 0, start_position=-3)


def test_what_a_listener_raises_the_poll_raises(servers: ArchivingMediaDriver) -> None:
    def joined() -> None:
        raise KeyError("mine")

    with Archive(aeron_dir=servers.aeron_dir) as archive, archive.add_recorded_publication(IPC, STREAM) as publication:
        recording_id = archive.wait_recording("aeron:ipc", STREAM, publication.session_id)
        publish(publication, 0, 3)
        with persistent(archive, recording_id, on_live_joined=joined) as stream:

            def raises() -> bool:
                try:
                    stream.poll_batch(0.1)
                except KeyError:
                    return True
                return False

            wait_until(raises, 20, "the listener's exception")
            assert stream.is_live


def test_a_merge_times_out_while_messages_come() -> None:
    class Fast:
        """A merge whose publisher is as fast as its reader."""

        is_merged = False
        state = MergeState.CATCHUP
        began = time.monotonic()

        def poll(self, _: object) -> int:
            assert time.monotonic() < self.began + 10, "a wait of 10 ms has not ended"
            return 1

    with pytest.raises(WaitTimeoutError, match=r"has not merged within 0.01 s: CATCHUP"):
        ReplayMerge.wait_merged(Fast(), lambda *_: None, 0.01)  # type: ignore[arg-type]


def test_a_replay_merges(servers: ArchivingMediaDriver) -> None:
    port = free_port()
    channel = f"aeron:udp?control=127.0.0.1:{port}|control-mode=dynamic|term-length=64k|ssc=true"
    reader = Reader()
    with (
        Archive(aeron_dir=servers.aeron_dir) as archive,
        archive.add_recorded_publication(channel, STREAM) as publication,
    ):
        session = f"session-id={publication.session_id}"
        recording_id = archive.wait_recording(f"127.0.0.1:{port}", STREAM, publication.session_id)
        archive.wait_position(recording_id, publish(publication, 0, 50))
        with archive.client.add_subscription(f"aeron:udp?control-mode=manual|{session}", STREAM) as subscription:
            merge = ReplayMerge(
                archive,
                subscription,
                replay_channel=f"aeron:udp?{session}",
                replay_destination="aeron:udp?endpoint=127.0.0.1:0",
                live_destination=f"aeron:udp?endpoint=127.0.0.1:0|control=127.0.0.1:{port}",
                recording_id=recording_id,
            )
            published = 50

            def step() -> None:
                nonlocal published
                reader.batch(merge.poll_batch(0.05))
                if reader.next == published and not merge.is_merged:
                    publish(publication, published, 1)
                    published += 1

            until(step, lambda: merge.is_merged, "the merge")
            assert merge.is_live_added
            image = merge.image
            assert image is not None
            merge.close()
            publish(publication, published, 5)
            until(lambda: reader.batch(image.poll_batch(0.05)), lambda: reader.next == published + 5, "live messages")
            image.close()
        with archive.client.add_subscription("aeron:udp?control-mode=manual", STREAM) as subscription:
            with pytest.raises(UsageError, match="IPC merging is not supported"):
                ReplayMerge(
                    archive,
                    subscription,
                    replay_channel="aeron:ipc",
                    replay_destination="aeron:udp?endpoint=127.0.0.1:0",
                    live_destination="aeron:udp?endpoint=127.0.0.1:0",
                    recording_id=recording_id,
                )
