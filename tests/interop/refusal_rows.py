"""The provocations: see `refusals`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.conformance.archive import folder
from tests.conformance.archive.codec import LOCAL
from tests.interop.refusals import Fields, Row, World

MAX = 2**63 - 1
SEGMENT, TERM = 131_072, 65_536
REPLAY_TO = {"replayChannel": "aeron:ipc", "replayStreamId": 9_999}


def of(name: str, **fields: object) -> Callable[[World], Fields]:
    """Fields of a request about a recording."""
    return lambda world: {"recordingId": world.id_of(name), **fields}


def fixed(**fields: object) -> Callable[[World], Fields]:
    """Fields that are the same in each world."""
    return lambda _: dict(fields)


def replay(name: str, **fields: object) -> Callable[[World], Fields]:
    """Fields of a replay without a subscriber."""
    return lambda world: {"recordingId": world.id_of(name), **REPLAY_TO, **fields}


def replay_from_end(name: str, behind: int, **fields: object) -> Callable[[World], Fields]:
    """As `replay`, from the end of the recording or a little behind it."""
    return lambda world: replay(name, position=world.stop_of(name) + behind, **fields)(world)


def migrate(source: str, to: str) -> Callable[[World], Fields]:
    """Fields of a migration."""
    return lambda world: {"srcRecordingId": world.id_of(source), "dstRecordingId": world.id_of(to)}


def bounded(name: str, limit: int, **fields: object) -> Callable[[World], Fields]:
    """As `replay`, up to a counter of that value."""

    def made(world: World) -> Fields:
        world.limit.value = limit
        return {**replay(name, **fields)(world), "limitCounterId": world.limit.counter_id}

    return made


def replicate(source: str, **fields: object) -> Callable[[World], Fields]:
    """Fields of a replication from the archive itself."""

    def made(world: World) -> Fields:
        return {
            "srcRecordingId": world.id_of(source) if source else 999,
            "srcControlChannel": world.archive.control_channel,
            "replicationChannel": "aeron:udp?endpoint=127.0.0.1:0",
            **{key: value(world) if callable(value) else value for key, value in fields.items()},
        }

    return made


def segment(world: World, name: str, base: int) -> Path:
    """A segment file of a recording."""
    return folder.segment_path(world.archive.archive_dir, world.id_of(name), base)


def remove_segments(world: World, *names: str) -> None:
    """Delete the first segment of recordings."""
    for name in names:
        segment(world, name, 0).unlink()


def copy_segment(world: World, source: str, to: str, base: int = 0) -> None:
    """Put another segment in the place before a recording's first."""
    shutil.copyfile(segment(world, source, base), segment(world, to, 0))


UNKNOWN = 999
UNKNOWN_IDS = [
    "ExtendRecordingRequest2",
    "TruncateRecordingRequest",
    "StopPositionRequest",
    "StartPositionRequest",
    "RecordingPositionRequest",
    "MaxRecordedPositionRequest",
    "StopRecordingByIdentityRequest",
    "PurgeRecordingRequest",
    "DetachSegmentsRequest",
    "DeleteDetachedSegmentsRequest",
    "PurgeSegmentsRequest",
    "AttachSegmentsRequest",
    "UpdateChannelRequest",
    "ListRecordingRequest",
    "ReplayRequest",
]


def unknown_recordings() -> Iterator[Row]:
    """Each request about a recording that is not there."""
    for request in UNKNOWN_IDS:
        fields: Fields = {"recordingId": UNKNOWN}
        if request.startswith(("Extend", "Update")):
            fields["channel"] = "aeron:ipc"
        if request == "ReplayRequest":
            fields |= REPLAY_TO
        yield Row(name=f"unknown recording: {request}", request=request, fields=fixed(**fields))
    yield Row(
        name="unknown recording: MigrateSegmentsRequest of it",
        request="MigrateSegmentsRequest",
        fields=lambda world: {"srcRecordingId": UNKNOWN, "dstRecordingId": world.id_of("run")},
    )
    yield Row(
        name="unknown recording: MigrateSegmentsRequest to it",
        request="MigrateSegmentsRequest",
        fields=lambda world: {"srcRecordingId": world.id_of("run"), "dstRecordingId": UNKNOWN},
    )
    yield Row(name="unknown replay: stop", request="StopReplayRequest", fields=fixed(replaySessionId=4711))
    yield Row(name="unknown replay: stop all", request="StopAllReplaysRequest", fields=fixed(recordingId=UNKNOWN))
    yield Row(name="unknown replication: stop", request="StopReplicationRequest", fields=fixed(replicationId=4711))
    yield Row(name="unknown recording: token", request="ReplayTokenRequest", fields=fixed(recordingId=UNKNOWN))
    yield Row(
        name="unknown channel: stop", request="StopRecordingRequest", fields=fixed(channel="aeron:ipc", streamId=77)
    )
    yield Row(
        name="unknown subscription: stop",
        request="StopRecordingSubscriptionRequest",
        fields=fixed(subscriptionId=4711),
    )


def queries() -> Iterator[Row]:
    """Listings and searches that cannot be."""
    yield Row(
        name="find last: negative id",
        request="FindLastMatchingRecordingRequest",
        fields=fixed(minRecordingId=-1, streamId=1001, channel="ipc"),
    )
    yield Row(
        name="list: behind the end", request="ListRecordingsRequest", fields=fixed(fromRecordingId=500, recordCount=3)
    )
    yield Row(
        name="list uri: nothing",
        request="ListRecordingsForUriRequest",
        fields=fixed(fromRecordingId=0, recordCount=3, streamId=1, channel="none"),
    )
    yield Row(
        name="list subscriptions: behind the end",
        request="ListRecordingSubscriptionsRequest",
        fields=fixed(pseudoIndex=50, subscriptionCount=3),
    )
    yield Row(
        name="list subscriptions: none",
        request="ListRecordingSubscriptionsRequest",
        fields=fixed(pseudoIndex=0, subscriptionCount=0),
    )


BAD_CHANNELS = {
    "empty": "",
    "no aeron": "ipc",
    "unknown medium": "aeron:tcp",
    "no parameter": "aeron:udp?",
    "no endpoint": "aeron:udp?mtu=1408",
    "unresolvable": "aeron:udp?endpoint=no.such.host.invalid:4000",
    "no port": "aeron:udp?endpoint=127.0.0.1",
    "no value": "aeron:ipc?term-length",
    "odd mtu": "aeron:udp?endpoint=127.0.0.1:4000|mtu=1409",
    "odd term": "aeron:ipc?term-length=65537",
}

BAD_VALUES = (
    "session-id=2147483648",
    "session-id= 5",
    "session-id=0x10",
    "ttl=x",
    "ttl=256",
    "ttl=-1",
    "gtag=x",
    "gtag=9223372036854775808",
    "stream-id=x",
    "response-correlation-id=x",
    "response-correlation-id=-2",
    "media-rcv-ts-offset=x",
    "channel-rcv-ts-offset=x",
    "channel-snd-ts-offset=2147483648",
    "control-mode=bogus",
)
GOOD_VALUES = (
    "session-id=+5",
    "session-id=-2147483648",
    "ttl=+4",
    "ttl=255",
    "gtag=-5",
    "stream-id=+9999",
    "response-correlation-id=-1",
    "response-correlation-id=prototype",
    "channel-rcv-ts-offset=reserved",
    "channel-rcv-ts-offset=-8",
    "fc=bogus",
    "cc=bogus",
)


def channels() -> Iterator[Row]:
    """Channels that are none, in each request that has one."""
    for what, channel in BAD_CHANNELS.items():
        yield Row(
            name=f"start: {what}",
            request="StartRecordingRequest2",
            fields=fixed(channel=channel, streamId=2001, sourceLocation=LOCAL),
        )
        yield Row(name=f"stop: {what}", request="StopRecordingRequest", fields=fixed(channel=channel, streamId=2001))
        yield Row(
            name=f"extend: {what}",
            request="ExtendRecordingRequest2",
            fields=of("empty", channel=channel, streamId=1002, sourceLocation=LOCAL),
        )
        yield Row(name=f"replay: {what}", request="ReplayRequest", fields=replay("run", replayChannel=channel))
        yield Row(name=f"update: {what}", request="UpdateChannelRequest", fields=of("empty", channel=channel))
    for what, channel in {
        "linger": "aeron:ipc?linger=5s",
        "mtu": "aeron:ipc?mtu=x",
        "session": "aeron:ipc?session-id=x",
    }.items():
        yield Row(name=f"replay: bad {what}", request="ReplayRequest", fields=replay("run", replayChannel=channel))
    for value in BAD_VALUES:
        channel = f"aeron:ipc?{value}"
        yield Row(
            name=f"start: {value}",
            request="StartRecordingRequest2",
            fields=fixed(channel=channel, streamId=2001, sourceLocation=LOCAL),
        )
        yield Row(name=f"replay: {value}", request="ReplayRequest", fields=replay("run", replayChannel=channel))
    for value in GOOD_VALUES:
        channel = f"aeron:ipc?{value}"
        yield Row(name=f"replay: {value}", request="ReplayRequest", fields=replay("run", replayChannel=channel))
    of_session = "aeron:udp?endpoint=127.0.0.1:24997|session-id=2147483648"
    yield Row(
        name="extend: session beyond 32 bits",
        request="ExtendRecordingRequest2",
        fields=of("empty", channel=of_session, streamId=1002, sourceLocation=LOCAL),
    )
    yield Row(
        name="update: session beyond 32 bits", request="UpdateChannelRequest", fields=of("empty", channel=of_session)
    )


def recordings() -> Iterator[Row]:
    """Starting, extending and stopping what can't be."""
    yield Row(
        name="start: exists",
        request="StartRecordingRequest2",
        fields=lambda world: {"channel": world.live.channel, "streamId": 1004, "sourceLocation": LOCAL},
    )
    yield Row(
        name="extend: active", request="ExtendRecordingRequest2", fields=of("live", channel="aeron:ipc", streamId=1004)
    )
    yield Row(
        name="extend: another stream",
        request="ExtendRecordingRequest2",
        fields=of("run", channel="aeron:ipc", streamId=5),
    )
    yield Row(name="stop by identity: stopped", request="StopRecordingByIdentityRequest", fields=of("run"))


POSITIONS = {
    "none": -1,
    "minus two": -2,
    "minus 32": -32,
    "start": 0,
    "odd": 33,
    "inside a frame": 64,
    "max": MAX,
    "min": -(2**63),
}
LENGTHS = {"all": -1, "all and stop": -2, "minus 3": -3, "nothing": 0, "one": 1, "max": MAX, "min": -(2**63)}


def replays() -> Iterator[Row]:
    """Every boundary of position and length, of stopped, empty, active and late recordings."""
    yield Row(name="replay of what was truncated to its start", request="ReplayRequest", fields=replay("cut"))
    for name in ("run", "empty", "late", "live", "idle", "begun_late"):
        for where, position in POSITIONS.items():
            yield Row(name=f"replay {name} at {where}", request="ReplayRequest", fields=replay(name, position=position))
        for what, length in LENGTHS.items():
            yield Row(name=f"replay {name}, length {what}", request="ReplayRequest", fields=replay(name, length=length))
            for where, behind in {"at": 0, "behind": 32}.items():
                yield Row(
                    name=f"replay {name} {where} its end, length {what}",
                    request="ReplayRequest",
                    fields=replay_from_end(name, behind, length=length),
                )
        for limit in (-1, 0, 1024):
            for what, length in LENGTHS.items():
                yield Row(
                    name=f"replay {name} bounded by {limit}, length {what}",
                    request="BoundedReplayRequest",
                    fields=bounded(name, limit, length=length),
                )
    yield Row(name="replay: fileIoMaxLength", request="ReplayRequest", fields=replay("run", fileIoMaxLength=100))
    yield Row(name="replay: fileIoMaxLength 0", request="ReplayRequest", fields=replay("run", fileIoMaxLength=0))
    for counter_id in (-1, 5000, 1 << 30):
        yield Row(
            name=f"replay: limit counter {counter_id}",
            request="BoundedReplayRequest",
            fields=replay("run", limitCounterId=counter_id),
        )


def maintenance() -> Iterator[Row]:
    """Truncating, purging, detaching, attaching and migrating what can't be."""
    yield Row(name="truncate: active", request="TruncateRecordingRequest", fields=of("live", position=0))
    for where, position in {"odd": 33, "behind": 1 << 20, "negative": -1, "minus 32": -32, "max": MAX}.items():
        yield Row(name=f"truncate: {where}", request="TruncateRecordingRequest", fields=of("run", position=position))
    yield Row(name="truncate: inside a frame", request="TruncateRecordingRequest", fields=of("torn", position=64))
    yield Row(
        name="truncate: below the start", request="TruncateRecordingRequest", fields=of("begun_late", position=64)
    )
    yield Row(name="purge: active", request="PurgeRecordingRequest", fields=of("live"))
    for request in ("DetachSegmentsRequest", "PurgeSegmentsRequest"):
        for name in ("run", "live", "empty"):
            for position in (-1, 0, 33, 64, TERM, 2 * SEGMENT + 32, 3 * SEGMENT, MAX):
                yield Row(
                    name=f"{request} of {name} at {position}",
                    request=request,
                    fields=of(name, newStartPosition=position),
                )
    yield Row(name="delete detached: none", request="DeleteDetachedSegmentsRequest", fields=of("run"))
    yield Row(name="attach: none", request="AttachSegmentsRequest", fields=of("run"))
    yield Row(name="attach: late", request="AttachSegmentsRequest", fields=of("begun_late"))
    for source, to in (
        ("live", "run"),
        ("run", "other"),
        ("begun_late", "run"),
        ("run", "run"),
        ("head", "live"),
        ("empty", "run"),
        ("head", "wide"),
        ("seam_head", "seam_tail"),
        ("seam_tail", "seam_head"),
    ):
        yield Row(
            name=f"migrate: {source} to {to}",
            request="MigrateSegmentsRequest",
            fields=migrate(source, to),
        )
    yield Row(
        name="migrate: a file is there already",
        request="MigrateSegmentsRequest",
        fields=migrate("head", "tail"),
        prepare=lambda world: segment(world, "tail", 0).touch(),
    )
    yield Row(
        name="migrate: a file is missing",
        request="MigrateSegmentsRequest",
        fields=migrate("head", "tail"),
        prepare=lambda world: remove_segments(world, "tail", "head"),
    )
    yield Row(
        name="attach: a file of another length",
        request="AttachSegmentsRequest",
        fields=of("tail"),
        prepare=lambda world: segment(world, "tail", 0).write_bytes(bytes(100)),
    )
    yield Row(
        name="attach: a file without a frame",
        request="AttachSegmentsRequest",
        fields=of("tail"),
        prepare=lambda world: segment(world, "tail", 0).write_bytes(bytes(SEGMENT)),
    )
    yield Row(
        name="attach: a file of another stream",
        request="AttachSegmentsRequest",
        fields=of("tail"),
        prepare=lambda world: copy_segment(world, "other", "tail"),
    )
    yield Row(
        name="attach: a file of another term",
        request="AttachSegmentsRequest",
        fields=of("tail"),
        prepare=lambda world: copy_segment(world, "tail", "tail", 131_072),
    )
    yield Row(
        name="replay: a segment is missing",
        request="ReplayRequest",
        fields=replay("wide"),
        prepare=lambda world: segment(world, "wide", 0).unlink(),
    )


def replications() -> Iterator[Row]:
    """Replications that can't be, or end with an error."""
    name = "ReplicateRequest2"
    yield Row(name="replicate: unknown destination", request=name, fields=replicate("run", dstRecordingId=UNKNOWN))
    yield Row(
        name="replicate: active destination",
        request=name,
        fields=replicate("run", dstRecordingId=lambda world: world.id_of("live")),
    )
    yield Row(name="replicate: unknown source", request=name, fields=replicate(""), ends=True)
    yield Row(
        name="replicate: nobody there",
        request=name,
        fields=replicate("run", srcControlChannel=lambda world: f"aeron:udp?endpoint=127.0.0.1:{world.dead_port}"),
        ends=True,
    )
    yield Row(name="replicate: fileIoMaxLength", request=name, fields=replicate("run", fileIoMaxLength=100), ends=True)
    yield Row(
        name="replicate: live merge of a stopped source",
        request=name,
        fields=replicate("run", liveDestination="aeron:udp?endpoint=127.0.0.1:24999"),
        ends=True,
    )
    for what, stop in {"negative": -5, "behind": 1 << 30, "odd": 33, "at the start": 0}.items():
        yield Row(name=f"replicate: stop {what}", request=name, fields=replicate("run", stopPosition=stop), ends=True)
    yield Row(
        name="replicate: the source has no replay left",
        request=name,
        fields=replicate("run"),
        prepare=lambda world: [world.session.ok("ReplayRequest", **replay("live")(world)) for _ in range(3)],
        ends=True,
    )
    for what, credentials in {"challenged": b"alice", "rejected": b"mallory:x", "no credentials": b""}.items():
        yield Row(
            name=f"replicate: {what}",
            request=name,
            fields=replicate(
                "run", srcControlChannel=lambda world: world.guarded.control_channel, encodedCredentials=credentials
            ),
            ends=True,
        )
    response = "aeron:udp?control-mode=response|control=127.0.0.1:24998"
    yield Row(
        name="replicate: response with live",
        request=name,
        fields=replicate("run", replicationChannel=response, liveDestination="aeron:udp?endpoint=127.0.0.1:24999"),
    )
    yield Row(
        name="replicate: response with tags",
        request=name,
        fields=replicate("run", replicationChannel=response, channelTagId=5),
    )
    yield Row(
        name="replicate: replication channel bad ttl",
        request=name,
        fields=replicate("run", replicationChannel="aeron:udp?endpoint=127.0.0.1:0|ttl=x"),
        ends=True,
    )
    for what in ("no aeron", "unknown medium"):
        yield Row(
            name=f"replicate: replication channel {what}",
            request=name,
            fields=replicate("run", replicationChannel=BAD_CHANNELS[what]),
        )
        yield Row(
            name=f"replicate: source channel {what}",
            request=name,
            fields=replicate("run", srcControlChannel=BAD_CHANNELS[what]),
            ends=True,
        )


GROUPS: dict[str, Callable[[], Iterator[Row]]] = {
    group.__name__: group
    for group in (unknown_recordings, queries, channels, recordings, replays, replications, maintenance)
}

# Rows by the beginning of their answer's difference: why it stays. A reason that no row needs any more is an error.
SILENT = "the stock archive only logs a channel that does not parse, and the client's request times out"
DRIVER = "the words of the media driver, which are those of the stock driver in C"
DIFFERENCES: dict[str, str] = {
    r"(replay|update): (empty|no aeron|unknown medium|no parameter|no value)|update: session beyond 32 bits": SILENT,
    r"replicate: replication channel (no aeron|unknown medium)": SILENT,
    r"(start|extend|replay): (no endpoint|unresolvable|no port)": DRIVER,
    r"replay .* length all and stop": "the stock archive starts the replay that it has just refused with error 15; and of the "
    "releases, 1.51 begins the text with a capital letter",
    r"replay (late|begun_late) at min": "the stock archive's subtraction overflows",
    r"replay: limit counter -1": "the stock archive shows an exception of its own buffers for a negative id",
    r"migrate: run to run": "the stock archive would join an empty recording with itself",
    r"replicate: nobody there": "ours says what to look at; the stock archive prints the inside of its client",
    r"replicate: stop negative": "the stock archive finds out after it has begun to extend the destination",
    r"replicate: stop at the start": "nothing is left to copy, which ours sees before it extends the destination",
}
