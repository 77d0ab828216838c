"""Goal: rarely used calls of a stock AeronArchive client work on our archive as on its own.

Method: one archive under test (`--subject stock` proves the tests on the stock one); odd arguments and their answers, then many
sessions, long texts, listings while recordings come and go, and connects that do not block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.archiving import IPC, Opened, Recorded, begin, descriptor, wait_stopped
from tests.kit import dirs, stock
from tests.kit.ports import free_port
from tests.kit.subject import Subject
from tests.kit.wait import wait_until

SETTINGS = {"aeron.archive.id": "43"}
UNKNOWN = 987_654


@pytest.fixture(scope="module")
def servers(subject: Subject) -> Iterator[Path]:
    with (
        dirs.fresh("shared") as aeron_dir,
        dirs.fresh("archive") as archive_dir,
        subject.driver(aeron_dir),
        subject.archive(aeron_dir, archive_dir, SETTINGS),
    ):
        yield aeron_dir


@pytest.fixture
def archive(peer: Any, servers: Path, opened: Opened) -> Any:
    return opened(peer.archiveClient(str(servers)))


@pytest.fixture
def params(gateway: stock.Gateway) -> Callable[[], Any]:
    new: Callable[[], Any] = gateway.jvm.io.aeron.archive.client.ReplayParams
    return new


@pytest.fixture
def run(archive: Any, stream: int, opened: Opened) -> Recorded:
    """An active recording of some messages."""
    recorded = begin(archive, opened, stream, channel=f"{IPC}|mtu=1408")
    position = recorded.publish(archive, 0, 30)
    return Recorded(
        recording_id=recorded.recording_id,
        subscription_id=recorded.subscription_id,
        publication=recorded.publication,
        position=position,
    )


REPLAYS: dict[str, tuple[Callable[[Any, Recorded], Any], str]] = {
    "reads below a datagram": (lambda p, _: p.fileIoMaxLength(1407), "fileIoMaxLength=1407 < mtuLength=1408"),
    "a limit that is no counter": (lambda p, _: p.boundingLimitCounterId(4000), "Counter id is not allocated: 4000"),
    "a limit beyond all counters": (
        lambda p, _: p.boundingLimitCounterId(99_999_999),
        "limit counter id= 99999999 because of",
    ),
    "a negative length": (lambda p, _: p.length(-3), "replay length must be positive: replayLength=-3, length=-3"),
    "a position that is none": (lambda p, _: p.position(-5), "position=-5 is not a multiple of FRAME_ALIGNMENT"),
    "before the start": (lambda p, _: p.position(-32), "position=-32 is less than recording start position=0"),
    "behind the end": (lambda p, run: p.position(run.position + 64), "must be less than the limit position="),
}


@pytest.mark.parametrize("name", REPLAYS)
def test_replays_that_can_not_be(
    archive: Any, run: Recorded, params: Callable[[], Any], stream: int, name: str
) -> None:
    change, text = REPLAYS[name]
    with stock.raises("ArchiveException", text):
        archive.raw().startReplay(run.recording_id, "aeron:ipc", stream + 1000, change(params(), run))


def test_replays_that_can_be(
    archive: Any, run: Recorded, params: Callable[[], Any], stream: int, opened: Opened
) -> None:
    """Short reads, reads of no length, and a length beyond all positions: each gives the recorded data."""
    for index, changed in enumerate(
        (
            params().fileIoMaxLength(4096),
            params().fileIoMaxLength(0),
            params().fileIoMaxLength(-5),
            params().length(2**63 - 1),
        )
    ):
        subscription = opened(archive.client().subscription(f"aeron:ipc?alias=r{index}", stream + 1000))
        reading = opened(subscription.read(30, None))
        archive.raw().startReplay(run.recording_id, f"aeron:ipc?alias=r{index}", stream + 1000, changed)
        wait_until(lambda reading=reading: reading.count() == 30, 20, "the messages", state=reading.seen)
        archive.raw().stopAllReplays(run.recording_id)
        subscription.close()
    archive.raw().stopReplay(UNKNOWN)
    archive.raw().stopAllReplays(-1)


def test_stopping_in_each_way(archive: Any, run: Recorded, stream: int, opened: Opened) -> None:
    """By subscription, publication, channel and identity; an unknown recording is distinguished from a stopped one."""
    raw = archive.raw()
    assert raw.tryStopRecordingByIdentity(run.recording_id)
    wait_stopped(archive, run.recording_id, run.position)
    assert not raw.tryStopRecordingByIdentity(run.recording_id)
    with stock.raises("ArchiveException", f"unknown recording id: {UNKNOWN}"):
        raw.tryStopRecordingByIdentity(UNKNOWN)
    assert not raw.tryStopRecording(UNKNOWN)
    assert not raw.tryStopRecording(f"aeron:ipc?alias=none{stream}", stream)
    with stock.raises("ArchiveException", f"no recording subscription found for subscriptionId={UNKNOWN}"):
        raw.stopRecording(UNKNOWN)
    again = begin(archive, opened, stream + 1000)
    position = again.publish(archive, 0, 3)
    assert raw.tryStopRecording(again.subscription_id)
    wait_stopped(archive, again.recording_id, position)


@pytest.mark.parametrize("length", [500, 1300, 3000])
def test_long_channels(archive: Any, stream: int, opened: Opened, length: int) -> None:
    """Requests and descriptors of more than a datagram; a channel longer than a URI may be is refused."""
    alias = "x" * length
    run = begin(archive, opened, stream, channel=f"{IPC}|alias={alias}")
    position = run.publish(archive, 0, 5)
    (found,) = archive.listRecordingsForUri(0, 1000, alias, stream)
    assert alias in descriptor(found)["originalChannel"]
    assert len(archive.listRecordingSubscriptions(0, 10, alias, stream)) == 1
    assert archive.raw().tryStopRecording(f"{IPC}|alias={alias}", stream)
    wait_stopped(archive, run.recording_id, position)
    archive.raw().updateChannel(run.recording_id, f"aeron:ipc?alias={'y' * length}")
    assert "y" * length in descriptor(archive.listRecording(run.recording_id)[0])["originalChannel"]
    with stock.raises("ArchiveException", "URI length .* exceeds max supported length"):
        archive.startRecording(f"{IPC}|alias={'z' * 6000}", stream)


def test_pages_of_descriptors_while_recordings_come_and_go(
    peer: Any, servers: Path, archive: Any, stream: int, opened: Opened
) -> None:
    """Each page is in order and whole; each earlier recording is on one page, once."""
    reader = opened(peer.archiveClient(str(servers)))
    before: list[int] = []
    for index in range(12):
        run = begin(archive, opened, stream + 1000 * index)
        position = run.publish(archive, 0, 1)
        before.append(run.recording_id)
        seen: list[int] = []
        next_id = before[0]
        while page := [int(descriptor(line)["recordingId"]) for line in reader.listRecordings(next_id, 5)]:
            seen += page
            next_id = page[-1] + 1
        assert seen == sorted(set(seen))
        assert set(before) <= set(seen)
        assert archive.raw().tryStopRecordingByIdentity(run.recording_id)
        wait_stopped(archive, run.recording_id, position)


def test_an_error_after_the_answer(archive: Any, run: Recorded, params: Callable[[], Any], stream: int) -> None:
    """A replay without a subscriber is started, then reported to a client that polls for errors."""
    raw = archive.raw()
    assert raw.pollForErrorResponse() is None
    raw.startReplay(run.recording_id, f"aeron:udp?endpoint=127.0.0.1:{free_port()}", stream + 1000, params())
    text = wait_until(raw.pollForErrorResponse, 20, "the error")
    assert "no connection established for replayChannel=aeron:udp?endpoint=127.0.0.1:" in text
    assert raw.getStartPosition(run.recording_id) == 0


def test_many_sessions_and_connects_that_do_not_block(
    gateway: stock.Gateway, peer: Any, servers: Path, archive: Any, opened: Opened
) -> None:
    """Thirty sessions at once, each with an id of its own; a connect step by step, with a timeout of its own."""
    sessions = [opened(peer.archiveClient(str(servers))).raw() for _ in range(30)]
    assert len({session.controlSessionId() for session in sessions}) == 30
    assert {session.archiveId() for session in sessions} == {43}
    client = gateway.jvm.io.aeron.archive.client.AeronArchive
    context = (
        client.Context()
        .aeron(archive.raw().context().aeron())
        .ownsAeronClient(False)  # noqa: FBT003 - as Java has it
        .controlRequestChannel("aeron:ipc")
        .controlResponseChannel("aeron:ipc")
        .messageTimeoutNs(20_000_000_000)
    )
    connecting = client.asyncConnect(context)
    connected = opened(wait_until(connecting.poll, 20, "the connect", state=lambda: str(connecting.state())))
    assert connected.context().messageTimeoutNs() == 20_000_000_000
    assert connected.archiveProxy().keepAlive(connected.controlSessionId(), 77)
    assert connected.archiveId() == 43
    assert str(connected.state()) == "CONNECTED"
