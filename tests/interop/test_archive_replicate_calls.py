"""Goal: a replication requested by a stock client or ours, from any host, copies every message, with every parameter.

Method: a source whose clients log in, and a destination, one of them ours; the caller knows the source's password. Each way of
asking is tried between both; the copy is replayed and its messages compared. What was shown as credentials must be in no log.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from py4j.protocol import Py4JJavaError

from aeron_spark import Archive as ArchiveClient
from aeron_spark import PeerError
from aeron_spark.archive.users import user_line
from aeron_spark.types import RecordingSignal, Signal
from tests.conformance.archive.archive import CONTROL_STREAM, MTU, TERM, Archive
from tests.conformance.archive.control import Session
from tests.conformance.archive.streams import Recorded, Replay, assert_messages, begin, record
from tests.kit import dirs, stock
from tests.kit.ports import free_port
from tests.kit.wait import wait_until

ALICE = b"alice:open sesame"
FRAME_1024 = (1024,)
REFUSED = "Replication connection failed=.*authentication rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """A source whose clients log in, the destination, and a session with each."""

    source: Archive
    destination: Archive
    of_source: Session
    of_destination: Session


@pytest.fixture(scope="module", params=["stock-to-ours", "ours-to-stock", "ours-to-ours"])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    first, second = ("stock-java" if end == "stock" else end for end in request.param.split("-to-"))
    with ExitStack() as opened:
        secrets = opened.enter_context(dirs.fresh("users"))
        users = secrets / "users"
        users.touch(0o600)
        users.write_text(user_line("alice", "open sesame", ["all"], iterations=1000))
        guarded = {
            "aeron.archive.id": "70",
            "aeron.spark.archive.credentials.file": str(users),
            "aeron.archive.authenticator.supplier": "peers.UsersAuthenticatorSupplier",
        }
        del guarded[
            "aeron.archive.authenticator.supplier" if first == "ours" else "aeron.spark.archive.credentials.file"
        ]
        source = opened.enter_context(Archive(guarded, apart=True, peer=first))
        quick = {"aeron.archive.id": "71", "aeron.archive.message.timeout": "5s"}
        destination = opened.enter_context(Archive(quick, apart=True, peer=second))
        of_source = opened.enter_context(Session(source, fields={"encodedCredentials": ALICE}))
        of_destination = opened.enter_context(Session(destination))
        yield Ends(source=source, destination=destination, of_source=of_source, of_destination=of_destination)


class OurCaller:
    """Our client of the destination."""

    def __init__(self, ends: Ends, opened: ExitStack) -> None:
        self._signals: list[Signal] = []
        self._archive = opened.enter_context(ArchiveClient(ends.destination.client, on_signal=self._signals.append))
        self._channel = ends.source.control_channel

    def replicate(self, original: int, **params: Any) -> int:
        """Ask with `Archive.replicate`'s own names."""
        return self._archive.replicate(original, self._channel, CONTROL_STREAM, **params)

    def signals(self) -> list[tuple[str, int]]:
        """Names and recording ids of what came; raises what failed."""
        self._archive.poll()
        return [(RecordingSignal(it.signal).name, it.recording_id) for it in self._signals]


class StockCaller:
    """A stock client of the destination; the parameters by our names."""

    SETTERS: ClassVar = {
        "recording_id": "dstRecordingId",
        "stop_position": "stopPosition",
        "live_destination": "liveDestination",
        "replication_channel": "replicationChannel",
        "response_channel": "srcResponseChannel",
        "credentials": "encodedCredentials",
        "session_id": "replicationSessionId",
        "file_io_max_length": "fileIoMaxLength",
        "channel_tag": "channelTagId",
        "subscription_tag": "subscriptionTagId",
    }

    def __init__(self, ends: Ends, opened: ExitStack, gateway: stock.Gateway) -> None:
        self._client = gateway.peer.archiveClient(str(ends.destination.aeron_dir))
        opened.callback(self._client.close)
        self._new_params = gateway.jvm.io.aeron.archive.client.ReplicationParams
        self._channel = ends.source.control_channel

    def replicate(self, original: int, **params: Any) -> int:
        """Ask with a ReplicationParams."""
        asked = self._new_params()
        for name, value in params.items():
            getattr(asked, self.SETTERS[name])(value)
        return int(self._client.raw().replicate(original, CONTROL_STREAM, self._channel, asked))

    def raw(self) -> Any:
        """The stock client itself."""
        return self._client.raw()

    def signals(self) -> list[tuple[str, int]]:
        """Names and recording ids of what came; raises what failed."""
        failure = self._client.raw().pollForErrorResponse()
        if failure is not None:
            raise PeerError(failure)
        try:
            told = self._client.signals()
        except Py4JJavaError as error:  # one that came since
            raise PeerError(str(error)) from error
        lines = [dict(part.split("=") for part in line.split("|")) for line in told]
        return [(line["signal"], int(line["recording"])) for line in lines]


@pytest.fixture(params=["our client", "stock client"])
def caller(request: pytest.FixtureRequest, ends: Ends, opened: ExitStack) -> OurCaller | StockCaller:
    if request.param == "our client":
        return OurCaller(ends, opened)
    return StockCaller(ends, opened, request.getfixturevalue("gateway"))


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def await_signal(caller: OurCaller | StockCaller, name: str) -> int:
    """The recording of the first signal of a name."""
    found = wait_until(
        lambda: [recording_id for signal, recording_id in caller.signals() if signal == name],
        30,
        name,
        state=caller.signals,
    )
    return found[0]


def await_stop(ends: Ends, copy: int, position: int) -> None:
    wait_until(
        lambda: ends.of_destination.ok("StopPositionRequest", recordingId=copy) == position,
        20,
        f"the copy to stop at {position}",
        state=lambda: ends.of_destination.ok("StopPositionRequest", recordingId=copy),
    )


def stop_of(run: Recorded) -> int:
    return run.session.ok("StopPositionRequest", recordingId=run.recording_id)


def same_messages(ends: Ends, copy: int, run: Recorded, count: int, **options: Any) -> None:
    with Replay(ends.of_destination, copy) as replay:
        assert_messages(replay.read_to_end(), run, count, **options)


def response_channel() -> str:
    return f"aeron:udp?control-mode=response|control=127.0.0.1:{free_port()}|term-length=64k"


# A tag that is used again finds the channel of before, whose replay may still linger.
_tags = itertools.count(8001)

WAYS: dict[str, Callable[[], dict[str, Any]]] = {
    "nothing but credentials": dict,
    "a channel of its own": lambda: {"replication_channel": f"aeron:udp?endpoint=127.0.0.1:{free_port()}"},
    "a session id, short reads": lambda: {"session_id": 4711, "file_io_max_length": TERM},
    "tags": lambda: {"channel_tag": next(_tags), "subscription_tag": next(_tags)},
    "a channel tag": lambda: {"channel_tag": next(_tags)},
    "answers to an endpoint": lambda: {"response_channel": f"aeron:udp?endpoint=127.0.0.1:{free_port()}"},
    "answers to the request": lambda: {"response_channel": response_channel()},
    "answers and copy to the request": lambda: {
        "response_channel": response_channel(),
        "replication_channel": response_channel(),
    },
    "the copy to the request": lambda: {"replication_channel": response_channel()},
}
STOCK_FAULT = (
    "the copy to the request"  # the stock destination's second publication clashes with its first: Spec: 08 §10.3
)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_asking(ends: Ends, caller: OurCaller | StockCaller, stream: int, way: str) -> None:
    """A stopped recording is copied in two pieces, both asked for this way."""
    run = record(ends.of_source, stream, count=60)
    caller.replicate(run.recording_id, credentials=ALICE, stop_position=TERM, **WAYS[way]())
    if way == STOCK_FAULT and not ends.destination.is_ours:
        with pytest.raises(PeerError, match="clashing sessionId"):
            await_signal(caller, "REPLICATE_END")
        return
    copy = await_signal(caller, "REPLICATE_END")
    wait_until(lambda: ("STOP", copy) in caller.signals(), 20, "the end of the first piece")
    assert TERM <= ends.of_destination.ok("StopPositionRequest", recordingId=copy) < stop_of(run)
    caller.replicate(run.recording_id, credentials=ALICE, recording_id=copy, **WAYS[way]())
    await_signal(caller, "SYNC")
    await_stop(ends, copy, stop_of(run))
    same_messages(ends, copy, run, 60)


def test_a_live_destination(ends: Ends, caller: OurCaller | StockCaller, stream: int) -> None:
    """The copy merges with the live stream and continues with it."""
    control = f"127.0.0.1:{free_port()}"
    channel = f"aeron:udp?control-mode=dynamic|control={control}|term-length={TERM}|mtu={MTU}|fc=min"
    run = begin(ends.of_source, stream, channel=channel)
    run.write(20, FRAME_1024)
    live = f"aeron:udp?endpoint=127.0.0.1:{free_port()}|control={control}"
    caller.replicate(run.recording_id, credentials=ALICE, live_destination=live)

    def merged() -> list[int]:
        if run.messages < 3000:
            run.publish(1, FRAME_1024)
        return [recording_id for signal, recording_id in caller.signals() if signal == "MERGE"]

    copy = wait_until(merged, 30, "MERGE", state=caller.signals)[0]
    position = run.write(50, FRAME_1024)
    run.stop()
    run.close()
    await_stop(ends, copy, position)
    same_messages(ends, copy, run, run.messages, sizes=FRAME_1024)


@pytest.mark.parametrize("credentials", [b"", b"alice:open says me"], ids=["none", "wrong"])
def test_credentials_are_needed_and_told_to_nobody(
    ends: Ends, caller: OurCaller | StockCaller, stream: int, credentials: bytes
) -> None:
    """Without them, or with wrong ones, the source refuses; no error and no log contains them."""
    run = record(ends.of_source, stream, count=3)
    caller.replicate(run.recording_id, credentials=credentials)
    with pytest.raises(PeerError, match=REFUSED) as refused:
        await_signal(caller, "REPLICATE_END")
    said = [str(refused.value), *ends.source.errors(), *ends.destination.errors()]
    assert not [text for text in said if "open s" in text]


def test_the_older_overloads(ends: Ends, stream: int, gateway: stock.Gateway, opened: ExitStack) -> None:
    """A stock client's calls without a ReplicationParams, on a source that lets everybody in: each gives the same copy."""
    caller = StockCaller(ends, opened, gateway)
    run = record(ends.of_destination, stream, count=40)
    raw, control, stop = caller.raw(), ends.destination.control_channel, stop_of(run)
    endpoint = "aeron:udp?endpoint=127.0.0.1:0"
    calls: dict[str, Callable[[], int]] = {
        "replicate": lambda: raw.replicate(run.recording_id, -1, CONTROL_STREAM, control, None),
        "replicate to a position": lambda: raw.replicate(
            run.recording_id, -1, stop, CONTROL_STREAM, control, None, endpoint
        ),
        "tagged": lambda: raw.taggedReplicate(
            run.recording_id, -1, next(_tags), next(_tags), CONTROL_STREAM, control, None
        ),
        "tagged to a position": lambda: raw.taggedReplicate(
            run.recording_id, -1, stop, next(_tags), next(_tags), CONTROL_STREAM, control, None, endpoint
        ),
    }
    copies: set[int] = set()
    for name, call in calls.items():
        call()
        ended = wait_until(
            lambda: {copy for signal, copy in caller.signals() if signal == "REPLICATE_END"} - copies,
            30,
            f"the end of {name}",
            state=caller.signals,
        )
        (copy,) = ended
        copies.add(copy)
        await_stop(ends, copy, stop)
        same_messages(ends, copy, run, 40)
