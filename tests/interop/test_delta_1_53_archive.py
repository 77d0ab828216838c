"""Goal: what our archive does since Aeron 1.53 (Spec: 11 §5) it does beside a stock driver, too, in Java or in C.

Method: the stock driver with our archive on it, control messages made byte by byte, by a client of ours on the same directory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from aeron_spark.client import Client
from tests.conformance.archive.archive import CONTROL_SESSION, REC_POS, RECORDING_SESSIONS
from tests.conformance.archive.control import Control, Session
from tests.conformance.archive.folder import mark_errors
from tests.conformance.archive.streams import Replay, Stream, assert_messages, begin, record
from tests.kit import native, stock, stock_c
from tests.kit.cnc import Cnc, Counter
from tests.kit.wait import wait_until

IMAGE_REJECTED = 13
MAX_RECORDINGS = 8
LOCAL = {"channel": "aeron:ipc", "sourceLocation": 0}
SETTINGS = {"aeron.archive.max.concurrent.recordings": "3", "aeron.archive.segment.file.length": "2m"}
_streams = itertools.count(8001)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """An archive of ours on a stock driver, and who asks it."""

    client: Client
    aeron_dir: Path
    archive_dir: Path
    errors: list[tuple[int, str]] = field(default_factory=list)

    def has(self, type_id: int) -> bool:
        """Whether there is a counter of this type."""
        return any(counter.type_id == type_id for counter in Cnc(self.aeron_dir).counters())

    def recording_counter(self, recording_id: int) -> Counter | None:
        """The counter of a recording's position."""
        found = (one for one in Cnc(self.aeron_dir).counters() if one.type_id == REC_POS)
        return next((one for one in found if int.from_bytes(one.key[:8], "little") == recording_id), None)

    def await_recordings(self, count: int) -> None:
        """Wait until that many are being recorded."""
        wait_until(
            lambda: (
                [one.value for one in Cnc(self.aeron_dir).counters() if one.type_id == RECORDING_SESSIONS] == [count]
            ),
            20,
            f"{count} recordings",
        )

    def open(self, kind: type[Control]) -> Any:
        """A control session, or one that is not connected yet."""
        return kind(cast("Any", self))

    def await_logged(self, text: str) -> None:
        """Wait for the archive to have a text in its error log, once."""
        wait_until(
            lambda: sum(text in one for one in mark_errors(self.archive_dir)) == 1,
            10,
            text,
            state=lambda: mark_errors(self.archive_dir),
        )


@pytest.fixture(params=["java", "c"])
def beside(request: pytest.FixtureRequest, aeron_dir: Path, archive_dir: Path) -> Iterator[Beside]:
    errors: list[tuple[int, str]] = []
    settings = {"aeron.timer.interval": "100ms", "aeron.publication.linger.timeout": "200ms"}
    with ExitStack() as opened:
        if request.param == "java":
            opened.enter_context(stock.driver(aeron_dir, threading="SHARED", settings=settings))
        else:
            opened.enter_context(stock_c.driver(aeron_dir, settings))
        opened.enter_context(native.archive(aeron_dir, archive_dir, SETTINGS))
        client = Client(aeron_dir, timeout=30, on_publication_error=lambda *what: errors.append((what[3], what[4])))
        opened.enter_context(client)
        yield Beside(client=client, aeron_dir=aeron_dir, archive_dir=archive_dir, errors=errors)


def test_d21_a_session_obeys_its_own_image(beside: Beside) -> None:
    """Another client that knows the id gets no answer, nor does the session, which continues; the error log has it."""
    with beside.open(Session) as owner, beside.open(Session) as other:
        own, other.session_id = other.session_id, owner.session_id
        start = {"channel": "aeron:ipc", "streamId": 7001}
        tried = [
            other.request("ListRecordingsRequest", fromRecordingId=0, recordCount=10),
            other.request("StartRecordingRequest2", sourceLocation=0, **start),
            other.request("KeepAliveRequest"),
            other.request("CloseSessionRequest"),
        ]
        other.session_id = own
        other.barrier()  # all that was tried before has been looked at
        owner.barrier()
        assert not [it for one in (owner, other) for it in one.seen() if it.fields.get("correlationId") in tried]
        for action in (8, 63, 61):
            beside.await_logged(f"unauthorised archive action={action} controlSessionId={owner.session_id} ")
        assert not beside.has(REC_POS)


def test_d25_a_session_that_fails_ends_at_once(beside: Beside) -> None:
    """The stock driver refuses the response channel: who asked hears of it by the end of his image, and nothing is left."""
    with beside.open(Control) as control:
        control.connect(responseChannel="aeron:udp?endpoint=127.0.0.1:20|mtu=33")
        wait_until(lambda: beside.errors, 20, "the end of the requests' image")
        code, text = beside.errors[0]
        assert code == IMAGE_REJECTED
        assert text.startswith("failed with exception: ")
        beside.await_logged("terminated: failed with exception: ")
        wait_until(lambda: not beside.has(CONTROL_SESSION), 10, "the session's counter to go")


def assert_full(session: Session, name: str, text: str, **fields: Any) -> None:
    """The request is refused because as much is recorded as may be."""
    refused = session.refused(name, **LOCAL, **fields)
    assert (refused.relevantId, refused.errorMessage) == (MAX_RECORDINGS, text)


def test_d26_d27_an_accepted_request_holds_a_slot(beside: Beside) -> None:
    """No publisher comes: three requests take three slots, a stop gives one back, and an extension takes it."""
    with beside.open(Session) as session:
        first, second = (record(session, next(_streams), count=1) for _ in range(2))
        held = [session.ok("StartRecordingRequest2", **LOCAL, streamId=next(_streams)) for _ in range(3)]
        assert_full(session, "StartRecordingRequest2", "max concurrent recordings reached 3", streamId=next(_streams))
        session.ok("StopRecordingSubscriptionRequest", subscriptionId=held[0])
        session.ok("ExtendRecordingRequest2", **LOCAL, recordingId=first.recording_id, streamId=first.stream_id)
        assert_full(
            session,
            "ExtendRecordingRequest2",
            "max concurrent recordings reached at 3",
            recordingId=second.recording_id,
            streamId=second.stream_id,
        )


def test_d28_each_image_takes_a_slot_and_gives_it_back(beside: Beside) -> None:
    """Three images of one subscription, which the stock driver ends, leave three slots, and no fourth."""
    with beside.open(Session) as session:
        stream = next(_streams)
        session.ok("StartRecordingRequest2", **LOCAL, streamId=stream)
        publications = [Stream(beside.client, "aeron:ipc", stream) for _ in range(3)]
        beside.await_recordings(3)
        for publication in publications:
            publication.close()
        beside.await_recordings(0)
        for _ in range(3):
            session.ok("StartRecordingRequest2", **LOCAL, streamId=next(_streams))
        assert_full(session, "StartRecordingRequest2", "max concurrent recordings reached 3", streamId=next(_streams))


def test_d29_a_first_frame_far_inside_the_term_is_attached(beside: Beside) -> None:
    """The stock driver's log begins there; what comes back is replayed through it."""
    mib, sizes, count = 1 << 20, (60_000,), 60
    start = 5 * mib + 32
    at = f"init-term-id=7|term-id=9|term-offset={start % (2 * mib)}"
    with beside.open(Session) as session:
        run = begin(session, next(_streams), channel=f"aeron:ipc?term-length=2m|{at}")
        run.write(count, sizes)
        run.stop()
        run.close()
        assert session.ok("DetachSegmentsRequest", recordingId=run.recording_id, newStartPosition=6 * mib) == 0
        assert session.ok("AttachSegmentsRequest", recordingId=run.recording_id) == 1
        assert session.descriptor(run.recording_id).startPosition == start
        with Replay(session, run.recording_id) as replay:
            assert_messages(replay.read_to_end(), run, count, sizes=sizes)
