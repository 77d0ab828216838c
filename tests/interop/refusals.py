"""Control requests that an archive refuses, or accepts at the limit, each sent to two archives.

A `World` is an archive with the same recordings in the same order, whoever serves it, so that ids and positions are equal.
A `Row` is one request; `provoke` sends it and gives all that is answered on its correlation id, with what differs by chance
(paths, ports, session ids) replaced. The rows are in `refusal_rows`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from aeron_spark.closing import Closing
from tests.conformance.archive import codec
from tests.conformance.archive.archive import REPLAY_SESSIONS, Archive, await_value
from tests.conformance.archive.codec import ERROR, OK, RECORDING_UNKNOWN, SUBSCRIPTION_UNKNOWN, Message
from tests.conformance.archive.control import Session
from tests.conformance.archive.streams import IPC, Recorded, begin
from tests.kit.ports import free_port
from tests.kit.wait import DeadlineError

Fields = dict[str, Any]
CODES = {OK: "OK", ERROR: "E", RECORDING_UNKNOWN: "RECORDING_UNKNOWN", SUBSCRIPTION_UNKNOWN: "SUBSCRIPTION_UNKNOWN"}
LATE = f"{IPC}|mtu=1408|init-term-id=1|term-id=1|term-offset=128"
FULL = (992,)
PER_SEGMENT = 128  # messages of FULL bytes
SILENCE_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One request. `prepare` comes before it; `ends`: answers are read up to the end of a replication."""

    name: str
    request: str
    fields: Callable[[World], Fields] = lambda _: {}
    prepare: Callable[[World], object] = lambda _: None
    ends: bool = False


class World(Closing):
    """An archive, its driver and recordings in every state; stream ids are 1001 and on.

    0 `run`: stopped, three segments; 1 `empty`: stopped, nothing in it; 2 `late`: stopped, empty, from 128; 3 `live`: active;
    4 `idle`: active, empty; 5 `head`, 6 `tail`: stopped, to be joined; 7 `begun_late`: stopped, from 128, messages;
    8 `other`: as `head`, of another stream; 9 `torn`: stopped, for the truncation that stock does before it refuses;
    10 `cut`: truncated to its start; 11 `seam_head`, 12 `seam_tail`: one behind the other, but not at a segment;
    13 `wide`: as `head`, of a larger MTU. `guarded` is an archive with users, which serves as a source.
    """

    def __init__(self, peer: str) -> None:
        self.stack = ExitStack()
        self.archive = self.stack.enter_context(
            Archive(
                {"aeron.archive.message.timeout": "1s", "aeron.archive.max.concurrent.replays": "3"},
                peer=peer,
                apart=True,
            )
        )
        self.guarded = self.stack.enter_context(
            Archive({"aeron.archive.authenticator.supplier": "peers.UsersAuthenticatorSupplier"}, peer="stock-java")
        )
        self.session = self.stack.enter_context(Session(self.archive))
        self.dead_port = free_port()
        session = self.session
        self.run = _recorded(session, 1001, count=2 * PER_SEGMENT + 10, channel=_from(0))
        self.empty = _recorded(session, 1002, count=0, channel=_from(0))
        self.late = _recorded(session, 1003, count=0, channel=LATE)
        self.live = begin(session, 1004, channel=_from(0))
        self.live.write(2 * PER_SEGMENT + 10, FULL)
        self.idle = begin(session, 1005, channel=_from(0))
        self.head = _recorded(session, 1006, count=PER_SEGMENT, channel=_from(0))
        self.tail = _recorded(session, 1006, count=PER_SEGMENT + 1, channel=_from(131_072))
        self.begun_late = _recorded(session, 1007, count=10, channel=LATE)
        self.other = _recorded(session, 1008, count=PER_SEGMENT, channel=_from(0))
        self.torn = _recorded(session, 1009, count=10, channel=_from(0))
        self.cut = _recorded(session, 1010, count=10, channel=_from(0))
        self.seam_head = _recorded(session, 1011, count=10, channel=_from(0))
        self.seam_tail = _recorded(session, 1011, count=10, channel=_from(10_240))
        self.wide = _recorded(session, 1006, count=PER_SEGMENT, channel=_from(0).replace("mtu=1408", "mtu=4096"))
        session.ok("TruncateRecordingRequest", recordingId=self.id_of("cut"), position=0)
        session.signal(codec.DELETE)
        self.limit = self.archive.client.add_counter(2345, "limit of a bounded replay")
        self.stack.callback(self.limit.close)
        runs = ("run", "empty", "late", "live", "idle", "begun_late")
        self._stops = {
            name: int(session.ok("MaxRecordedPositionRequest", recordingId=self.id_of(name))) for name in runs
        }

    def id_of(self, name: str) -> int:
        """A recording's id."""
        run: Recorded = getattr(self, name)
        return run.recording_id

    def stop_of(self, name: str) -> int:
        """Where a recording ends."""
        return self._stops[name]

    # -- what comes ----------------------------------------------------------------------------------------------------------

    def provoke(self, row: Row) -> list[str]:
        """Send the request of a row; all that was answered."""
        session = self.session
        session.barrier()
        session.inbox.clear()
        row.prepare(self)
        correlation_id = session.request(row.request, **row.fields(self))
        answers = self._first(correlation_id)
        if row.ends and answers and answers[0].fields.get("code") == OK:
            answers += self._replication(answers[0].relevantId)
        # A replay that nobody takes ends when it is stopped; what it would still say comes before the barrier's answer.
        session.ok("StopAllReplaysRequest", recordingId=-1)
        await_value(lambda: self.archive.counter(REPLAY_SESSIONS), 0, "replay sessions", timeout=20)
        session.barrier()
        answers += session.seen(predicate=lambda it: it.fields.get("correlationId") == correlation_id)
        session.inbox.clear()
        return [self._text(message) for message in answers]

    def _first(self, correlation_id: int) -> list[Message]:
        # The stock archive leaves some without an answer.
        try:
            return [self.session.next_of(correlation_id, timeout=SILENCE_S)]
        except DeadlineError:
            return []

    def _replication(self, replication: int) -> list[Message]:
        events: list[Message] = []
        while not any(it.name == "RecordingSignalEvent" and it.signal == codec.REPLICATE_END for it in events):
            events.append(self.session.next_of(replication, timeout=30))
        return [it for it in events if it.name == "ControlResponse"]

    def _text(self, message: Message) -> str:
        if message.name == "RecordingSignalEvent":
            return f"signal {message.signal} of {message.recordingId}"
        if message.name != "ControlResponse":
            return message.name
        if message.code == OK:
            return "OK"
        return self.normal(f"{CODES[message.code]} {message.relevantId}: {message.errorMessage}".rstrip(": "))

    def normal(self, text: str) -> str:
        """A text without the parts that differ between runs."""
        text = text.replace(str(self.archive.archive_dir), "<folder>").replace(str(self.archive.aeron_dir), "<aeron>")
        text = text.replace(str(self.guarded.control_port), "<guarded port>")
        text = text.replace(str(self.archive.control_port), "<port>").replace(str(self.dead_port), "<dead port>")
        text = re.sub(r"archiveId=-?\d+", "archiveId=<n>", text)
        text = re.sub(r"session-id=-?\d+", "session-id=<n>", text)
        text = re.sub(r"(replaySessionId|replicationId|controlSessionId|correlationId)=-?\d+", r"\1=<n>", text)
        return re.sub(r"-?\d{7,}", "<n>", text)

    def close(self) -> None:
        """End it all."""
        self.stack.close()


def _recorded(session: Session, stream: int, *, count: int, channel: str) -> Recorded:
    run = begin(session, stream, channel=channel)
    if count:
        run.write(count, FULL)
    run.stop()
    run.close()
    return run


def _from(position: int) -> str:
    return f"{IPC}|mtu=1408|init-term-id=1|term-id={1 + position // 65_536}|term-offset={position % 65_536}"
