"""A day in the life of our archive with a stock AeronArchive client: every operation, and every byte compared.

    python -m tests.interop.archive_day [--messages 65536]

`Day` is a sequence of hours on two archives: the subject, whose clients are stock Java, and a stock one beside it. Messages are
of the payload rule, 1,024 bytes with their header, so that segments hold whole messages; what a replay gives is digested by the
reader in Java and compared with the rule. Used by test_archive_day (short) and `make interop-long`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.interop.archiving import NULL_POSITION, descriptor, extend_channel_of, wait_recorded, wait_stopped
from tests.kit import dirs, processes, stock
from tests.kit.payload import expected
from tests.kit.ports import free_port
from tests.kit.subject import Subject
from tests.kit.wait import wait_until

FRAME, BODY = 1024, 992
SEGMENT = 131_072
IPC = "aeron:ipc?term-length=64k|mtu=1408"
SIGNALS = {"START": 0, "STOP": 1, "EXTEND": 2, "REPLICATE": 3, "SYNC": 5, "DELETE": 6, "REPLICATE_END": 7}

DRIVER: Mapping[str, str] = {
    "aeron.spies.simulate.connection": "true",
    "aeron.term.buffer.length": "64k",
    "aeron.timer.interval": "100ms",
    "aeron.publication.linger.timeout": "200ms",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """An archive, how others reach it, and a stock client on its driver."""

    name: str
    aeron_dir: Path
    archive_dir: Path
    control: str
    client: Any


def _archive_settings(control: str) -> dict[str, str]:
    return {
        "aeron.archive.control.channel.enabled": "true",
        "aeron.archive.control.channel": control,
        "aeron.archive.segment.file.length": str(SEGMENT),
        "aeron.archive.replication.channel": "aeron:udp?endpoint=127.0.0.1:0",
        "aeron.archive.low.storage.space.threshold": "1m",
    }


class Day:
    """Two archives and their clients; each method is an hour, in the order of `run`.

    `messages` are those of each recording, a multiple of 128 that is 1,024 at least; `timeout_ms` bounds each read of them.
    """

    def __init__(self, subject: Subject, peer: Any, opened: ExitStack, *, messages: int, timeout_ms: int) -> None:
        assert messages % 128 == 0
        assert messages >= 1024
        self.messages = messages
        self.timeout_ms = timeout_ms
        self._peer = peer
        self._opened = opened
        self._next_stream = 7001
        self._key = 0
        self.compared = 0
        directory, folder = self._dirs()
        control = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
        opened.enter_context(subject.driver(directory, DRIVER))
        opened.enter_context(subject.archive(directory, folder, _archive_settings(control)))
        self.subject = self._side("subject", directory, folder, control)
        directory, folder = self._dirs()
        control = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
        opened.enter_context(
            stock.archive(directory, folder, with_driver=True, settings={**DRIVER, **_archive_settings(control)})
        )
        self.stock = self._side("stock", directory, folder, control)

    def _dirs(self) -> tuple[Path, Path]:
        return self._opened.enter_context(dirs.fresh("day")), self._opened.enter_context(dirs.fresh("day-archive"))

    def _side(self, name: str, aeron_dir: Path, archive_dir: Path, control: str) -> Side:
        client = self._close_later(self._peer.archiveClient(str(aeron_dir)))
        return Side(name=name, aeron_dir=aeron_dir, archive_dir=archive_dir, control=control, client=client)

    def _close_later(self, resource: Any) -> Any:
        self._opened.callback(resource.close)
        return resource

    def _stream(self) -> int:
        self._next_stream += 1
        return self._next_stream

    def run(self, tell: Callable[[str], None] = lambda _: None) -> None:
        """The whole day; `tell` is called for each hour."""
        hours = (self.record_and_extend, self.merge, self.truncate, self.segments, self.replicate, self.purge)
        for hour in hours:
            tell(hour.__name__)
            hour()

    # -- helpers -------------------------------------------------------------------------------------------------------------

    def _publish(self, publication: Any, key: int, first: int, count: int) -> int:
        return int(publication.publish(key, first, count, [BODY], self.timeout_ms))

    def _record(self, side: Side, count: int, *, channel: str = IPC, extend: int | None = None, first: int = 0) -> int:
        """A stopped recording of messages first .. first+count-1, new or extended; the id is also their stream key."""
        raw, stream = side.client.raw(), self._stream()
        if extend is None:
            subscription = side.client.startRecording(channel, stream)
        else:
            stream = int(descriptor(side.client.listRecording(extend)[0])["streamId"])
            subscription = side.client.extendRecording(extend, channel, stream)
        publication = side.client.client().exclusivePublication(channel, stream)
        try:
            assert publication.awaitConnected(self.timeout_ms)
            session = publication.raw().sessionId()
            recording_id = extend
            if recording_id is None:
                recording_id = (
                    wait_until(
                        lambda: raw.findLastMatchingRecording(0, "aeron:ipc", stream, session) + 1, 20, "the recording"
                    )
                    - 1
                )
            else:
                wait_until(lambda: raw.getStopPosition(extend) == NULL_POSITION, 20, "the extension to begin")
            position = self._publish(publication, recording_id, first, count)
            wait_recorded(side.client, recording_id, position)
            raw.stopRecording(subscription)
            wait_stopped(side.client, recording_id, position)
        finally:
            publication.close()
        return recording_id

    def _extend(self, side: Side, recording_id: int, first: int, count: int) -> None:
        last = descriptor(side.client.listRecording(recording_id)[0])
        names = ("initialTermId", "termBufferLength", "mtuLength", "stopPosition")
        channel = extend_channel_of(*(int(last[name]) for name in names))
        self._record(side, count, channel=channel, extend=recording_id, first=first)

    def _compare(
        self,
        side: Side,
        recording_id: int,
        count: int,
        *,
        key: int | None = None,
        first: int = 0,
        start: int | None = None,
    ) -> None:
        """A replay from `start` to the end gives messages first .. first+count-1 of a stream key."""
        raw = side.client.raw()
        begin = raw.getStartPosition(recording_id) if start is None else start
        stop = raw.getStopPosition(recording_id)
        replay = side.client.replay(recording_id, begin, stop - begin, self._stream())
        subscription = replay.subscription()
        try:
            reading = subscription.read(count, None)
            assert reading.awaitEnd(self.timeout_ms), f"{side.name}: {reading.seen()} of {count} messages came"
            self._check(reading, recording_id if key is None else key, count, first)
            assert reading.position() == stop
        finally:
            subscription.close()

    def _check(self, reading: Any, key: int, count: int, first: int = 0) -> None:
        want = expected(key, count, [BODY], first=first)
        assert (reading.count(), reading.bytes(), reading.crc()) == (want.count, want.length, want.crc)
        self.compared += want.length

    def _await_signal(self, side: Side, recording_id: int, name: str) -> None:
        def came() -> bool:
            heads = (f"recording={recording_id}|", f"|signal={SIGNALS[name]}")
            # The Java codec prints an enum's name.
            return any(
                line.startswith(heads[0]) and line.endswith((heads[1], f"|signal={name}"))
                for line in side.client.signals()
            )

        wait_until(came, 30, f"{name} of recording {recording_id}", state=side.client.signals)

    # -- hours ---------------------------------------------------------------------------------------------------------------

    def record_and_extend(self) -> None:
        """A recording, then more of it by another publication; replayed whole and in part."""
        side, half = self.subject, self.messages // 2
        recording_id = self._record(side, half)
        self._compare(side, recording_id, half)
        self._extend(side, recording_id, half, half)
        self._await_signal(side, recording_id, "EXTEND")
        self._compare(side, recording_id, self.messages)
        self._compare(side, recording_id, self.messages - 100, first=100, start=100 * FRAME)

    def merge(self) -> None:
        """A late reader merges the recording of a live udp stream into the stream itself."""
        side, stream, live = self.subject, self._stream(), f"127.0.0.1:{free_port()}"
        channel = f"aeron:udp?control-mode=dynamic|control={live}|term-length=64k|mtu=1408|fc=max"
        subscription = side.client.startRecording(channel, stream)
        publication = self._close_later(side.client.client().exclusivePublication(channel, stream))
        assert publication.awaitConnected(self.timeout_ms)
        session = publication.raw().sessionId()
        raw = side.client.raw()
        recording_id = (
            wait_until(lambda: raw.findLastMatchingRecording(0, live, stream, session) + 1, 20, "the recording") - 1
        )
        early = self.messages // 2
        wait_recorded(side.client, recording_id, self._publish(publication, recording_id, 0, early))
        other = self._close_later(self._peer.archiveClient(str(side.aeron_dir)))
        merging = self._close_later(other.merge(live, stream, session, recording_id, self.messages))
        published = early
        # A live stream of its own pace, which the merge catches up with.
        while published < self.messages:
            step = min(16, self.messages - published - (0 if merging.isMerged() else 1))
            if step > 0 and merging.seen() + 64 >= published:
                wait_recorded(side.client, recording_id, self._publish(publication, recording_id, published, step))
                published += step
            else:
                before = merging.seen()
                wait_until(
                    lambda: merging.isMerged() or merging.seen() > before,  # noqa: B023
                    30,
                    "the merge to go on",
                    state=lambda: (merging.seen(), merging.isMerged(), published),  # noqa: B023
                )
        assert merging.awaitEnd(self.timeout_ms), (merging.seen(), merging.isMerged())
        self._check(merging, recording_id, self.messages)
        raw.stopRecording(subscription)
        wait_stopped(side.client, recording_id, self.messages * FRAME)
        self._compare(side, recording_id, self.messages)

    def truncate(self) -> None:
        """A recording cut in the middle of a segment, and gone on with from there."""
        side, kept = self.subject, self.messages // 2 + 5
        recording_id = self._record(side, self.messages)
        assert side.client.raw().truncateRecording(recording_id, kept * FRAME) > 0
        self._await_signal(side, recording_id, "DELETE")
        self._compare(side, recording_id, kept)
        self._extend(side, recording_id, kept, self.messages - kept)
        self._compare(side, recording_id, self.messages)

    def segments(self) -> None:
        """Segments detached and attached again, then purged: the remaining data is replayed each time."""
        side, two = self.subject, 2 * SEGMENT
        raw = side.client.raw()
        recording_id = self._record(side, self.messages)
        gone = two // FRAME
        raw.detachSegments(recording_id, two)
        assert raw.getStartPosition(recording_id) == two
        self._compare(side, recording_id, self.messages - gone, first=gone)
        assert raw.attachSegments(recording_id) == 2
        assert raw.getStartPosition(recording_id) == 0
        self._compare(side, recording_id, self.messages)
        assert raw.purgeSegments(recording_id, two) == 2
        self._await_signal(side, recording_id, "DELETE")
        assert not (side.archive_dir / f"{recording_id}-0.rec").exists()
        self._compare(side, recording_id, self.messages - gone, first=gone)

    def replicate(self) -> None:
        """A stopped recording from the stock archive to the subject, and one back; then a source that was extended."""
        for source, destination in ((self.stock, self.subject), (self.subject, self.stock)):
            half = self.messages // 2
            recording_id = self._record(source, half)
            raw = destination.client.raw()
            raw.replicate(recording_id, -1, 10, source.control, None)
            copy = self._await_copy(destination, half * FRAME, recording_id, source)
            self._compare(destination, copy, half, key=recording_id)
            self._extend(source, recording_id, half, half)
            raw.replicate(recording_id, copy, 10, source.control, None)
            wait_stopped(destination.client, copy, 2 * half * FRAME)
            self._compare(destination, copy, 2 * half, key=recording_id)

    def _await_copy(self, side: Side, stop: int, source_id: int, source: Side) -> int:
        """The recording that a replication made, once it has all and has stopped."""
        session = descriptor(source.client.listRecording(source_id)[0])["sessionId"]

        def copied() -> int | None:
            lines = [descriptor(line) for line in side.client.listRecordings(0, 1000)]
            found = [it for it in lines if it["sessionId"] == session and int(it["stopPosition"]) == stop]
            return int(found[-1]["recordingId"]) + 1 if found else None

        return wait_until(copied, 60, f"a copy on the {side.name} archive", state=side.client.signals) - 1

    def purge(self) -> None:
        """At the end of the day every recording goes."""
        side = self.subject
        raw = side.client.raw()
        ids = [int(descriptor(line)["recordingId"]) for line in side.client.listRecordings(0, 1000)]
        for recording_id in ids:
            assert raw.purgeRecording(recording_id) >= 1
            self._await_signal(side, recording_id, "DELETE")
        assert list(side.client.listRecordings(0, 1000)) == []
        assert list(side.archive_dir.glob("*.rec")) == []


def main() -> int:
    """Run a long day on our archive; a line of JSON at the end."""
    parser = argparse.ArgumentParser(description="A day in the life of our archive with a stock client.")
    parser.add_argument("--messages", type=int, default=65_536, help="of each recording, a multiple of 128")
    arguments = parser.parse_args()
    began = time.monotonic()
    try:
        with stock.Gateway() as gateway, ExitStack() as opened:
            day = Day(Subject(kind="ours"), gateway.peer, opened, messages=arguments.messages, timeout_ms=300_000)
            day.run(lambda hour: print(hour, flush=True))
            row = {
                "messages": arguments.messages,
                "compared_bytes": day.compared,
                "seconds": round(time.monotonic() - began, 1),
                "release": stock.version(),
            }
            print(json.dumps(row))
    finally:
        processes.end_all()
    return 0


if __name__ == "__main__":
    sys.exit(main())
