"""What the archive tests share: record a stream through a stock client, replay it, and compare every byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.kit.payload import expected
from tests.kit.wait import wait_until

Opened = Callable[[Any], Any]

IPC = "aeron:ipc?term-length=64k"
SIZES = [100, 1408, 3000, 8, 0, 5, 8000]
TIMEOUT_MS = 10_000
NULL_POSITION = -1

# A driver that reaps a silent client after five seconds instead of ten: a machine may stand still for less.
QUICK_LIVENESS = {
    "aeron.timer.interval": "100ms",
    "aeron.client.liveness.timeout": "5s",
    "aeron.publication.unblock.timeout": "6s",
    "aeron.untethered.window.limit.timeout": "1s",
    "aeron.untethered.resting.timeout": "1s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A live stream: its recording, its publication, and where that stands."""

    recording_id: int
    subscription_id: int
    publication: Any
    position: int

    def publish(self, archive: Any, first: int, count: int, sizes: Sequence[int] = SIZES) -> int:
        """Publish further messages of stream key `recording_id`, wait until they are recorded; returns the position."""
        position = int(self.publication.publish(self.recording_id, first, count, list(sizes), TIMEOUT_MS))
        wait_recorded(archive, self.recording_id, position)
        return position


def wait_recorded(archive: Any, recording_id: int, position: int) -> None:
    """Wait until the recorded position is `position`."""
    wait_until(
        lambda: archive.raw().getRecordingPosition(recording_id) == position,
        10,
        f"recording {recording_id} to reach {position}",
        state=lambda: archive.raw().getRecordingPosition(recording_id),
    )


def wait_stopped(archive: Any, recording_id: int, position: int) -> None:
    """Wait until the recording has ended at `position`."""
    wait_until(
        lambda: archive.raw().getStopPosition(recording_id) == position,
        10,
        f"recording {recording_id} to stop at {position}",
        state=lambda: archive.raw().getStopPosition(recording_id),
    )


def begin(
    archive: Any, opened: Opened, stream: int, *, channel: str = IPC, auto_stop: bool = False, extend: int | None = None
) -> Recorded:
    """Start or extend a recording and add the publication that feeds it; nothing is published yet."""
    if extend is None:
        start = archive.startAutoStopRecording if auto_stop else archive.startRecording
        subscription_id = start(channel, stream)
    else:
        subscription_id = archive.extendRecording(extend, channel, stream)
    publication = opened(archive.client().exclusivePublication(channel, stream))
    assert publication.awaitConnected(TIMEOUT_MS)
    session = publication.raw().sessionId()
    recording_id = wait_until(
        lambda: archive.raw().findLastMatchingRecording(0, "aeron:ipc", stream, session) + 1,
        10,
        "the recording to start",
    )
    return Recorded(
        recording_id=recording_id - 1,
        subscription_id=subscription_id,
        publication=publication,
        position=publication.raw().position(),
    )


def record(
    archive: Any,
    opened: Opened,
    stream: int,
    count: int,
    *,
    sizes: Sequence[int] = SIZES,
    channel: str = IPC,
) -> Recorded:
    """A complete recording of `count` messages whose stream key is the recording id."""
    run = begin(archive, opened, stream, channel=channel)
    position = run.publish(archive, 0, count, sizes)
    archive.raw().stopRecording(run.subscription_id)
    wait_stopped(archive, run.recording_id, position)
    run.publication.close()
    return Recorded(
        recording_id=run.recording_id,
        subscription_id=run.subscription_id,
        publication=run.publication,
        position=position,
    )


def assert_messages(reading: Any, stream_key: int, count: int, *, sizes: Sequence[int] = SIZES, first: int = 0) -> None:
    """The reading ends with exactly these messages."""
    assert reading.awaitEnd(TIMEOUT_MS), f"{reading.seen()} of {count} messages came"
    want = expected(stream_key, count, sizes, first=first)
    assert (reading.count(), reading.bytes(), reading.crc()) == (want.count, want.length, want.crc)


def assert_replays(
    archive: Any,
    opened: Opened,
    recording_id: int,
    count: int,
    *,
    start: int = 0,
    stop: int,
    sizes: Sequence[int] = SIZES,
    stream_key: int | None = None,
    first: int = 0,
) -> None:
    """A replay of [start, stop) gives messages first .. first+count-1, every byte."""
    replay = archive.replay(recording_id, start, stop - start, 2001)
    opened(replay.subscription())
    reading = opened(replay.subscription().read(count, None))
    key = recording_id if stream_key is None else stream_key
    assert_messages(reading, key, count, sizes=sizes, first=first)
    assert reading.position() == stop


def descriptor(line: str) -> dict[str, str]:
    """A descriptor line of the Java peer as a dictionary; channels hold `|` themselves and come last."""
    names = ("strippedChannel", "originalChannel", "sourceIdentity")
    fields: dict[str, str] = {}
    rest = line
    for name in reversed(names):
        rest, fields[name] = rest.rsplit(f"|{name}=", 1)
    for part in rest.split("|"):
        name, value = part.split("=", 1)
        fields[name] = value
    return fields


def extend_channel_of(initial_term_id: int, term_length: int, mtu_length: int, stop_position: int) -> str:
    """The channel of a publication that goes on where a recording stops; term ids wrap at 32 bits."""
    term_id = (initial_term_id + stop_position // term_length + 2**31) % 2**32 - 2**31
    return (
        f"aeron:ipc?term-length={term_length}|mtu={mtu_length}|init-term-id={initial_term_id}"
        f"|term-id={term_id}|term-offset={stop_position % term_length}"
    )


def extend_channel(archive: Any, recording_id: int) -> str:
    """`extend_channel_of` by what the archive says of a recording."""
    last = descriptor(archive.listRecording(recording_id)[0])
    names = ("initialTermId", "termBufferLength", "mtuLength", "stopPosition")
    return extend_channel_of(*(int(last[name]) for name in names))
