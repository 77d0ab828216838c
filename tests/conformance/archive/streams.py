"""Streams to record and replays to read, frame by frame.

run = record(session, 3001, count=100)            # a stopped recording of 100 messages of the payload rule
live = begin(session, 3002); live.publish(10)      # one that goes on
replay = Replay(session, run.recording_id); frames = replay.read_to_end()
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from typing import Any

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.callback import Callbacks
from aeron_spark._native.check import check
from aeron_spark.client import Client
from aeron_spark.closing import Closing
from aeron_spark.publication import Publication
from aeron_spark.subscription import Image, Subscription
from tests.conformance.archive import codec
from tests.conformance.archive.archive import await_value
from tests.conformance.archive.codec import LOCAL, OK, START, STOP, Message
from tests.conformance.archive.control import Session
from tests.conformance.archive.folder import DATA, FRAME_HEADER, Frame, aligned
from tests.kit.payload import RESERVED_FACTOR, payload
from tests.kit.wait import wait_until

IPC = "aeron:ipc?term-length=64k"
# Fragmented, whole, empty, and of odd lengths.
SIZES = (100, 1376, 3000, 8, 0, 5, 8000)

_FRAME = struct.Struct("<iBBH")
_replay_streams = itertools.count(40_001)
_keys = itertools.count(1)


class Stream(Closing):
    """A publication of messages of the payload rule; `messages` counts them, `key` is their stream key."""

    def __init__(self, client: Client, channel: str, stream_id: int, *, exclusive: bool = True) -> None:
        add = client.add_exclusive_publication if exclusive else client.add_publication
        self.publication: Publication = add(channel, stream_id)
        self.channel = channel
        self.stream_id = stream_id
        self.key = next(_keys)
        self.messages = 0

    @property
    def session_id(self) -> int:
        """Session id of the publication."""
        return int(self.publication.session_id)

    @property
    def position(self) -> int:
        """Position behind the published data."""
        return int(self.publication.position)

    def publish(self, count: int, sizes: Sequence[int] = SIZES) -> int:
        """Publish the next messages with their reserved values; the position after them."""
        indexes = range(self.messages, self.messages + count)
        bodies = [payload(self.key, index, sizes[index % len(sizes)]) for index in indexes]
        position = self.publication.offer_batch(
            bodies, reserved_values=[index * RESERVED_FACTOR for index in indexes], timeout=20
        )
        self.messages += count
        return int(position)

    def close(self) -> None:
        """Close the publication; closed already is fine."""
        self.publication.close()


class Recorded(Stream):
    """A stream that an archive records: `recording_id`, `subscription_id`, the request's `correlation_id` and its `signal`."""

    def __init__(
        self, session: Session, channel: str, stream_id: int, *, client: Client | None = None, exclusive: bool = True
    ) -> None:
        super().__init__(client or session.archive.client, channel, stream_id, exclusive=exclusive)
        self.session = session
        self.subscription_id = codec.NULL
        self.correlation_id = codec.NULL
        self.recording_id = codec.NULL
        self.signal: Message | None = None

    def await_recorded(self, position: int | None = None) -> int:
        """Wait until the recorded position is `position`, by default the publication's; returns it."""
        want = self.position if position is None else position

        def recorded() -> int | None:
            counter = self.session.archive.recording_counter(self.recording_id)
            return None if counter is None else counter.value

        await_value(recorded, want, f"the recorded position of {self.recording_id}", timeout=20)
        return want

    def write(self, count: int, sizes: Sequence[int] = SIZES) -> int:
        """Publish, and wait until it is recorded; the position."""
        return self.await_recorded(self.publish(count, sizes))

    def stop(self) -> Message:
        """Stop the recording by its subscription; the STOP signal."""
        assert self.session.ok("StopRecordingSubscriptionRequest", subscriptionId=self.subscription_id) == 0
        return self.session.signal(STOP, self.recording_id)


def begin(
    session: Session,
    stream_id: int,
    *,
    channel: str = IPC,
    record_channel: str | None = None,
    location: int = LOCAL,
    auto_stop: bool = False,
    exclusive: bool = True,
    client: Client | None = None,
    extend: int | None = None,
) -> Recorded:
    """Start a recording (`extend`: go on with one) and add the publication that it records; nothing is published yet."""
    fields: dict[str, Any] = {} if extend is None else {"recordingId": extend}
    correlation_id = session.request(
        "StartRecordingRequest2" if extend is None else "ExtendRecordingRequest2",
        channel=record_channel or channel,
        streamId=stream_id,
        sourceLocation=location,
        autoStop=int(auto_stop),
        **fields,
    )
    answer = session.answer(correlation_id)
    assert answer.code == OK, answer
    run = Recorded(session, channel, stream_id, client=client, exclusive=exclusive)
    run.subscription_id = answer.relevantId
    run.correlation_id = correlation_id
    run.signal = session.expect(
        "RecordingSignalEvent",
        lambda it: it.correlationId == correlation_id and it.signal == (START if extend is None else codec.EXTEND),
    )
    run.recording_id = run.signal.recordingId
    run.publication.wait_connected(20)
    return run


def record(session: Session, stream_id: int, *, count: int, sizes: Sequence[int] = SIZES, **options: Any) -> Recorded:
    """A stopped recording of `count` messages; its publication is closed."""
    run = begin(session, stream_id, **options)
    run.write(count, sizes)
    run.stop()
    run.close()
    return run


def extend_channel(descriptor: Message, *, base: str = "aeron:ipc?", **changed: int) -> str:
    """Channel of a publication that continues at a recording's stop position, with some values changed."""
    stop, term = descriptor.stopPosition, descriptor.termBufferLength
    term_id = (descriptor.initialTermId + stop // term + 2**31) % 2**32 - 2**31
    values = {
        "term-length": term,
        "mtu": descriptor.mtuLength,
        "init-term-id": descriptor.initialTermId,
        "term-id": term_id,
        "term-offset": stop % term,
    }
    values |= {name.replace("_", "-"): value for name, value in changed.items()}
    return base + "|".join(f"{name}={value}" for name, value in values.items())


class Frames:
    """Takes an image's DATA frames one by one with their headers; padding shows as a jump of positions."""

    def __init__(
        self,
        subscription: Subscription,
        session_id: int | None = None,
        *,
        image: Image | None = None,
        timeout: float = 20.0,
    ) -> None:
        self.subscription = subscription
        self.image: Image = subscription.wait_image(timeout, session_id) if image is None else image
        self.frames: list[Frame] = []
        self._callbacks = Callbacks(on_message=self._take)

    def _take(self, data: Any, length: int, raw: Any) -> None:
        header = bytes(ffi.buffer(raw.frame, FRAME_HEADER))
        frame_length, _version, flags, kind = _FRAME.unpack_from(header)
        self.frames.append(
            Frame(
                begin=raw.position - aligned(frame_length),
                length=frame_length,
                flags=flags,
                type=kind,
                term_offset=raw.term_offset,
                session_id=raw.session_id,
                stream_id=raw.stream_id,
                term_id=raw.term_id,
                reserved_value=raw.reserved_value,
                payload=bytes(ffi.buffer(data, length)),
            )
        )

    def poll(self, limit: int = 256) -> int:
        """Take up to `limit` frames; how many came."""
        with self.image._use() as image:
            count = lib.as_image_controlled_poll(image, lib.asp_on_message, self._callbacks.context, limit)
        self._callbacks.reraise()
        return check(count) if count < 0 else int(count)

    def read_to(self, position: int, *, timeout: float = 20.0) -> list[Frame]:
        """Take frames until the image is at `position`; returns all so far."""

        def there() -> bool:
            self.poll()
            return self.image.position >= position

        wait_until(there, timeout, f"the image to reach {position}", state=lambda: self.image.position)
        assert self.image.position == position
        return self.frames

    def read_to_end(self, *, timeout: float = 20.0) -> list[Frame]:
        """Take frames until the stream has ended; all of them."""

        def ended() -> bool:
            self.poll()
            return self.image.is_ended

        wait_until(ended, timeout, "the image to end", state=lambda: self.image.position)
        return self.frames


class Replay(Closing):
    """A replay: the request, its OK (`session_id`), a subscription and the image's frames.

    `channel` is what the archive replays to. The subscription is made before the request, on a replay stream of its own.
    `fields` are those of ReplayRequest, or of BoundedReplayRequest with a `limitCounterId`.
    """

    def __init__(
        self, session: Session, recording_id: int, *, channel: str = IPC, client: Client | None = None, **fields: Any
    ) -> None:
        self.session = session
        self.stream_id = int(fields.pop("replayStreamId", next(_replay_streams)))
        self.subscription = (client or session.archive.client).add_subscription(channel, self.stream_id)
        name = "BoundedReplayRequest" if "limitCounterId" in fields else "ReplayRequest"
        self.correlation_id = session.request(
            name, recordingId=recording_id, replayChannel=channel, replayStreamId=self.stream_id, **fields
        )
        answer = session.answer(self.correlation_id)
        assert answer.code == OK, answer
        self.session_id = int(answer.relevantId)
        self.image_session_id = (self.session_id + 2**31) % 2**32 - 2**31
        self._frames: Frames | None = None

    @property
    def taken(self) -> Frames:
        """The replay's image, once it is there."""
        if self._frames is None:
            self._frames = Frames(self.subscription, self.image_session_id)
        return self._frames

    def poll_if_there(self) -> None:
        """Take frames. A replay that fails at once may be gone before anybody has seen its image."""
        if self._frames is None and (image := self.subscription.image(self.image_session_id)) is not None:
            self._frames = Frames(self.subscription, image=image)
        if self._frames is not None:
            self._frames.poll()

    def read_to(self, position: int) -> list[Frame]:
        """All DATA frames up to a position."""
        return self.taken.read_to(position)

    def read_to_end(self) -> list[Frame]:
        """All DATA frames up to the end of the stream."""
        return self.taken.read_to_end()

    def stop(self) -> None:
        """Ask the archive to stop it."""
        assert self.session.ok("StopReplayRequest", replaySessionId=self.session_id) == 0

    def await_gone(self) -> None:
        """Wait until the image has gone."""
        wait_until(lambda: not self.subscription.is_connected, 20, "the replay's image to go")

    def close(self) -> None:
        """Close the subscription."""
        self.subscription.close()


def assert_content(got: Sequence[Frame], recorded: Sequence[Frame]) -> None:
    """A replay's frames are the recorded DATA frames: places, lengths, flags, types, reserved values and payloads."""
    want = [frame.content for frame in recorded if frame.type == DATA]
    assert [frame.content for frame in got] == want


def assert_messages(
    got: Sequence[Frame], run: Stream, count: int, *, first: int = 0, sizes: Sequence[int] = SIZES
) -> None:
    """The frames join to messages first .. first+count-1 of a stream, with their reserved values."""
    bodies: list[bytes] = []
    reserved: list[int] = []
    for frame in got:
        if frame.flags & 0x80:
            bodies.append(b"")
            reserved.append(frame.reserved_value)
        bodies[-1] += frame.payload
    indexes = range(first, first + count)
    assert bodies == [payload(run.key, index, sizes[index % len(sizes)]) for index in indexes]
    assert reserved == [index * RESERVED_FACTOR for index in indexes]
