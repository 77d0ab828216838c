"""A control session that is driven message by message.

    session = Session(archive)                       # connects over the local control channel
    sub = session.ok("StartRecordingRequest2", channel="aeron:ipc", streamId=7, sourceLocation=LOCAL)   # relevantId
    failed = session.refused("StopRecordingRequest", channel="aeron:ipc", streamId=8)                   # the ERROR
    event = session.expect("RecordingSignalEvent", lambda it: it.signal == START)

What came and was not expected yet waits in `inbox`, in order. `barrier()` makes everything that the archive had to say up to
now come in: the proof that something did not come.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, TypeVar

from aeron_spark.client import Client
from aeron_spark.closing import Closing
from aeron_spark.types import Header, Outcome
from tests.conformance.archive import codec
from tests.conformance.archive.archive import CONTROL_STREAM, LOCAL_CONTROL, Archive
from tests.conformance.archive.codec import ERROR, OK, Message
from tests.kit.wait import DeadlineError, wait_until

T = TypeVar("T")
Predicate = Callable[[Message], bool]

_response_streams = itertools.count(20_001)
_correlations = itertools.count(1 << 33)


class Control(Closing):
    """A request publication and a response subscription; no session yet.

    `channel` and `stream_id` are those of requests, `response_channel` is what the archive is told to answer on (and what is
    subscribed to, unless `subscribe_to` says otherwise); each has a response stream of its own. `{subscription}` in `channel`
    stands for the subscription's registration id, which is how response channels are asked for.
    """

    def __init__(
        self,
        archive: Archive,
        *,
        client: Client | None = None,
        channel: str = LOCAL_CONTROL,
        stream_id: int = CONTROL_STREAM,
        response_channel: str = LOCAL_CONTROL,
        response_stream_id: int | None = None,
        subscribe_to: str | None = None,
        connected: bool = True,
    ) -> None:
        self.archive = archive
        client = client or archive.client
        self.response_channel = response_channel
        self.response_stream_id = response_stream_id or next(_response_streams)
        self.subscription = client.add_subscription(subscribe_to or response_channel, self.response_stream_id)
        asked_on = channel.replace("{subscription}", str(self.subscription.registration_id))
        self.publication = client.add_exclusive_publication(asked_on, stream_id)
        self.inbox: list[Message] = []
        self.session_id = codec.NULL
        if connected:
            self._await(lambda: self.publication.is_connected, 20, f"a subscriber of {self.publication!r}")

    def _await(
        self, predicate: Callable[[], T | None], timeout: float, what: str, state: Callable[[], object] | None = None
    ) -> T:
        """As `wait_until`; a failure shows the archive, too."""
        try:
            return wait_until(predicate, timeout, what, state=state)
        except DeadlineError as error:
            raise DeadlineError(f"{error}\n{self.archive.report()}") from None

    def send(self, raw: bytes) -> None:
        """Send bytes as one message."""

        def sent() -> bool:
            result = self.publication.offer(raw)
            assert result > 0 or result in (Outcome.BACK_PRESSURED, Outcome.ADMIN_ACTION), result
            return result > 0

        self._await(sent, 10, "a request to be taken")

    def connect(self, **fields: Any) -> int:
        """Send a connect request of today, `fields` changed; returns its correlation id."""
        return self.request(
            "AuthConnectRequest",
            **{
                "responseStreamId": self.response_stream_id,
                "responseChannel": self.response_channel,
                "clientInfo": "name=conformance",
                **fields,
            },
        )

    @staticmethod
    def new_correlation_id() -> int:
        """A correlation id for a request that is sent otherwise."""
        return next(_correlations)

    def request(self, name: str, **fields: Any) -> int:
        """Send a request, by default of this session; returns its correlation id."""
        names = [field for field, _ in codec.TEMPLATES[name].fields]
        if "controlSessionId" in names:
            fields.setdefault("controlSessionId", self.session_id)
        if "correlationId" in names:
            fields.setdefault("correlationId", next(_correlations))
        self.send(codec.encode(name, **fields))
        return int(fields.get("correlationId", codec.NULL))

    # -- answers -------------------------------------------------------------------------------------------------------------

    def poll(self) -> None:
        """Take in what has come."""

        def take(message: bytes, _: Header) -> None:
            self.inbox.append(codec.decode(message))

        while self.subscription.poll(take):
            pass

    def seen(self, name: str | None = None, predicate: Predicate = lambda _: True) -> list[Message]:
        """Received messages of a kind that no call has expected yet; they stay in the inbox."""
        self.poll()
        return [message for message in self.inbox if name in (None, message.name) and predicate(message)]

    def expect(self, name: str, predicate: Predicate = lambda _: True, *, timeout: float = 20.0) -> Message:
        """Wait for a message and take it out of the inbox; what came before it stays."""

        def found() -> Message | None:
            return next(iter(self.seen(name, predicate)), None)

        message = self._await(found, timeout, f"a {name}", lambda: self.inbox)
        self.inbox.remove(message)
        return message

    def answer(self, correlation_id: int, *, timeout: float = 20.0) -> Message:
        """The ControlResponse to a request."""
        return self.expect("ControlResponse", lambda it: it.correlationId == correlation_id, timeout=timeout)

    def ok(self, name: str, **fields: Any) -> int:
        """Send a request that is answered with OK; its relevant id."""
        answer = self.answer(self.request(name, **fields))
        assert answer.code == OK, answer
        return int(answer.relevantId)

    def refused(self, name: str, **fields: Any) -> Message:
        """Send a request that is answered with ERROR; the answer, `relevantId` being the error code."""
        answer = self.answer(self.request(name, **fields))
        assert answer.code == ERROR, answer
        return answer

    def barrier(self) -> None:
        """Ask for the archive id and take in everything up to the answer: what did not come by then, was not sent."""
        self.ok("ArchiveIdRequest")

    @property
    def is_connected(self) -> bool:
        """Whether the archive's response stream is there."""
        return self.subscription.is_connected

    def await_gone(self, *, timeout: float = 20.0) -> None:
        """Wait until the archive has ended its response stream; earlier messages go to the inbox."""

        def gone() -> bool:
            self.poll()
            return not self.subscription.is_connected

        self._await(gone, timeout, "the response stream to end")

    def close(self) -> None:
        """Close publication and subscription, without a word to the archive."""
        self.publication.close()
        self.subscription.close()


class Session(Control):
    """A connected control session: `connect` is answered, and a KeepAlive has ended the repeating of it."""

    def __init__(self, archive: Archive, **options: Any) -> None:
        fields = options.pop("fields", {})
        self._was_ended = False
        self._answered: int | None = None
        super().__init__(archive, **options)
        correlation_id = self.connect(**fields)
        answer = self.answer(correlation_id)
        assert answer.code == OK, answer
        self.session_id = answer.controlSessionId
        assert answer.relevantId == self.session_id
        self._answered = correlation_id
        self.request("KeepAliveRequest")

    def poll(self) -> None:
        """Take in what has come, but for copies of the answer that were sent before the KeepAlive came to the archive."""
        super().poll()
        if self._answered is not None:
            self.inbox = [it for it in self.inbox if it.fields.get("correlationId") != self._answered]

    # -- shortcuts -----------------------------------------------------------------------------------------------------------

    def signal(self, signal: int, recording_id: int | None = None, *, timeout: float = 20.0) -> Message:
        """Wait for a recording signal, of a recording if one is named."""
        return self.expect(
            "RecordingSignalEvent",
            lambda it: it.signal == signal and recording_id in (None, it.recordingId),
            timeout=timeout,
        )

    def descriptors(self, name: str = "ListRecordingsRequest", **fields: Any) -> tuple[list[Message], Message | None]:
        """Run a listing to its end: the descriptors, and what ended it (None: the count was reached)."""
        count = fields.get("recordCount", fields.get("subscriptionCount", 1))
        correlation_id = self.request(name, **fields)
        found: list[Message] = []
        while len(found) < count:
            message = self.next_of(correlation_id)
            if message.name == "ControlResponse":
                return found, message
            found.append(message)
        return found, None

    def next_of(self, correlation_id: int, *, timeout: float = 20.0) -> Message:
        """The next message of any kind with a correlation id."""

        def mine() -> Message | None:
            self.poll()
            return next((it for it in self.inbox if it.fields.get("correlationId") == correlation_id), None)

        message = self._await(mine, timeout, f"a message for {correlation_id}", lambda: self.inbox)
        self.inbox.remove(message)
        return message

    def descriptor(self, recording_id: int) -> Message:
        """The descriptor of a recording that is there."""
        (found,), end = self.descriptors("ListRecordingRequest", recordingId=recording_id)
        assert end is None, end
        return found

    def end(self) -> None:
        """Close the session by request; nothing answers."""
        self._was_ended = True
        self.request("CloseSessionRequest")

    def close(self) -> None:
        """End the session, then close publication and subscription. A second end would be a warning in a later test."""
        if not self._was_ended and not self.publication.is_closed and self.publication.is_connected:
            self.end()
        super().close()
