"""The honest clients: streams at a known rate and logins, in processes of their own.

    python -m tests.attack.honest PART DIRECTORY PASSWORD

A line of JSON twenty times a second tells what was received so far, by name; a message that is missing, doubled or out of order
ends the process with an error. Publishers keep to a timetable: what they were late with they catch up.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

from aeron_spark import Client
from aeron_spark.archive import Archive
from aeron_spark.errors import AeronError
from aeron_spark.publication import ExclusivePublication
from aeron_spark.subscription import Subscription

VICTIM, FRIEND = "10.77.0.1", "10.77.0.2"
# Streams by name: where they are published to, and where they are read from.
IN, RECORDED, CAST, SLOW = 1001, 1002, 1003, 1004
TERM = "term-length=128k"
CHANNELS = {
    IN: f"aeron:udp?endpoint={VICTIM}:20121|{TERM}",
    RECORDED: f"aeron:udp?endpoint={VICTIM}:20122|{TERM}",
    CAST: f"aeron:udp?control={VICTIM}:20123|control-mode=dynamic|{TERM}",
    SLOW: f"aeron:udp?endpoint={FRIEND}:20124|{TERM}",
}
CAST_RECEIVED = f"aeron:udp?endpoint={FRIEND}:20125|control={VICTIM}:20123|control-mode=dynamic"
CONTROL = (VICTIM, 8010)
NAMES = (VICTIM, 8050)
RATE = 1000
LENGTH = 200
FRAME = 256  # a message with its header, aligned
LOGIN_EVERY_S = 0.5

_told: dict[str, float] = {}
_parent = os.getppid()


def _tell(counts: dict[str, int]) -> None:
    now = time.monotonic()
    if os.getppid() != _parent:
        sys.exit("whoever started this is gone")
    if now >= _told.get("next", 0.0):
        _told["next"] = now + 0.05
        print(json.dumps({"at": now, **counts}), flush=True)


class Sender:
    """Publishes numbered messages, `rate` a second, or as fast as the stream lets it."""

    def __init__(self, publication: ExclusivePublication, rate: int | None) -> None:
        self.publication = publication
        self.rate = rate
        self.sent = 0
        self.begun = 0.0

    def step(self) -> None:
        """Send the messages that are due."""
        if not self.publication.is_connected:
            return
        self.begun = self.begun or time.monotonic()
        due = 200 if self.rate is None else int((time.monotonic() - self.begun) * self.rate) - self.sent
        for _ in range(min(due, 200)):
            result = self.publication.offer(struct.pack("<q", self.sent).ljust(LENGTH, b"."))
            if result < 0:
                return
            self.sent += 1


class Receiver:
    """Reads numbered messages, at most `rate` a second; one that is not the next is an error."""

    def __init__(self, subscription: Subscription, rate: int | None = None) -> None:
        self.subscription = subscription
        self.rate = rate
        self.count = 0
        self.begun = 0.0
        self.session: int | None = None

    def step(self) -> None:
        """Read everything available, or the messages that are due."""
        due = 256
        if self.rate is not None:
            self.begun = self.begun or (time.monotonic() if self.subscription.is_connected else 0.0)
            due = int((time.monotonic() - self.begun) * self.rate) - self.count if self.begun else 0
        if due > 0:
            self.subscription.poll(self._take, min(due, 256))

    def _take(self, message: bytes, header: object) -> None:
        # The attacker may add streams of its own; what they hold is not looked at.
        session = int(header.session_id)  # type: ignore[attr-defined]
        if len(message) != LENGTH or self.session not in {None, session}:
            return
        self.session = session
        (number,) = struct.unpack_from("<q", message)
        if number != self.count:
            sys.exit(f"message {number} came where {self.count} was due")
        self.count += 1


def _streams(client: Client, sent: dict[int, int | None], received: dict[int, tuple[str, int | None]]) -> None:
    senders = [Sender(client.add_exclusive_publication(CHANNELS[one], one), rate) for one, rate in sent.items()]
    receivers = {
        name: Receiver(client.add_subscription(CAST_RECEIVED if one == CAST else CHANNELS[one], one), rate)
        for one, (name, rate) in received.items()
    }
    while True:
        for actor in (*senders, *receivers.values()):
            actor.step()
        _tell({name: one.count for name, one in receivers.items()})
        time.sleep(0.01)


def friend(client: Client, _: str) -> None:
    """The honest peer on another host."""
    _streams(client, {IN: RATE, RECORDED: RATE}, {CAST: ("cast", None), SLOW: ("slow", RATE)})


def victim(client: Client, _: str) -> None:
    """The honest application on the attacked host."""
    _streams(client, {CAST: RATE, SLOW: None}, {IN: ("in", None)})


def log_in(client: Client, credentials: bytes, timeout: float = 8.0) -> Archive:
    """A control session from the honest peer's host."""
    return Archive(
        client,
        control_channel=f"aeron:udp?endpoint={CONTROL[0]}:{CONTROL[1]}|term-length=64k",
        response_channel=f"aeron:udp?endpoint={FRIEND}:0",
        credentials=credentials,
        timeout=timeout,
    )


def logins(client: Client, credentials: str) -> None:
    """Logs in at a fixed pace, asks something, and leaves."""
    begun, count, failures, longest = time.monotonic(), 0, 0, 0.0
    while True:
        at = time.monotonic()
        try:
            with log_in(client, credentials.encode()) as archive:
                archive.recording(0)
            count += 1
        except AeronError as failure:
            failures += 1
            print(f"login failed: {failure}", file=sys.stderr, flush=True)
        longest = max(longest, time.monotonic() - at)
        _tell({"logins": count, "failures": failures, "slowest_ms": int(longest * 1000)})
        begun += LOGIN_EVERY_S
        time.sleep(max(0.0, begun - time.monotonic()))


PARTS: dict[str, Callable[[Client, str], None]] = {"friend": friend, "victim": victim, "logins": logins}

if __name__ == "__main__":
    with Client(Path(sys.argv[2]), timeout=30) as opened:
        PARTS[sys.argv[1]](opened, sys.argv[3])
