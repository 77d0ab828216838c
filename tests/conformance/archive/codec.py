"""The archive's control messages byte by byte, from the tables of Spec: 07 §3 alone.

`encode` makes any message, also of an older schema version, with another block length, or hostile; `decode` gives a `Message`
whose fields are read by the names of the tables. Neither shares a line with the product's codec.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

SCHEMA, VERSION = 101, 13
HEADER = struct.Struct("<HHHH")
NULL = -1

# Response codes and error codes. Spec: 07 §2.
OK, ERROR, RECORDING_UNKNOWN, SUBSCRIPTION_UNKNOWN = 0, 1, 2, 3
GENERIC, ACTIVE_LISTING, ACTIVE_RECORDING, ACTIVE_SUBSCRIPTION, UNKNOWN_SUBSCRIPTION = 0, 1, 2, 3, 4
UNKNOWN_RECORDING, UNKNOWN_REPLAY, MAX_REPLAYS, MAX_RECORDINGS, INVALID_EXTENSION = 5, 6, 7, 8, 9
AUTHENTICATION_REJECTED, STORAGE_SPACE, UNKNOWN_REPLICATION, UNAUTHORISED_ACTION = 10, 11, 12, 13
REPLICATION_CONNECTION_FAILURE, EMPTY_RECORDING, INVALID_POSITION = 14, 15, 16
START, STOP, EXTEND, REPLICATE, MERGE, SYNC, DELETE, REPLICATE_END = range(8)
LOCAL, REMOTE = 0, 1

PROTOCOL_VERSION = 1 << 16 | 12 << 8

_IDS = "controlSessionId q correlationId q"
_REC = f"{_IDS} recordingId q"
_TIMES = "startTimestamp q stopTimestamp q startPosition q stopPosition q"
_SRC = f"{_IDS} srcRecordingId q dstRecordingId q"
_TAGS = "channelTagId q subscriptionTagId q"

# name: (template id, root fields in order with their struct codes, var data in order)
_TABLE: dict[str, tuple[int, str, str]] = {
    "ControlResponse": (1, f"{_IDS} relevantId q code i version i", "errorMessage"),
    "ConnectRequest": (2, "correlationId q responseStreamId i version i", "responseChannel"),
    "CloseSessionRequest": (3, "controlSessionId q", ""),
    "StartRecordingRequest": (4, f"{_IDS} streamId i sourceLocation i", "channel"),
    "StopRecordingRequest": (5, f"{_IDS} streamId i", "channel"),
    "ReplayRequest": (
        6,
        f"{_REC} position q length q replayStreamId i fileIoMaxLength i replayToken q",
        "replayChannel",
    ),
    "StopReplayRequest": (7, f"{_IDS} replaySessionId q", ""),
    "ListRecordingsRequest": (8, f"{_IDS} fromRecordingId q recordCount i", ""),
    "ListRecordingsForUriRequest": (9, f"{_IDS} fromRecordingId q recordCount i streamId i", "channel"),
    "ListRecordingRequest": (10, _REC, ""),
    "ExtendRecordingRequest": (11, f"{_REC} streamId i sourceLocation i", "channel"),
    "RecordingPositionRequest": (12, _REC, ""),
    "TruncateRecordingRequest": (13, f"{_REC} position q", ""),
    "StopRecordingSubscriptionRequest": (14, f"{_IDS} subscriptionId q", ""),
    "StopPositionRequest": (15, _REC, ""),
    "FindLastMatchingRecordingRequest": (16, f"{_IDS} minRecordingId q sessionId i streamId i", "channel"),
    "ListRecordingSubscriptionsRequest": (
        17,
        f"{_IDS} pseudoIndex i subscriptionCount i applyStreamId i streamId i",
        "channel",
    ),
    "BoundedReplayRequest": (
        18,
        f"{_REC} position q length q limitCounterId i replayStreamId i fileIoMaxLength i replayToken q",
        "replayChannel",
    ),
    "StopAllReplaysRequest": (19, _REC, ""),
    "RecordingDescriptor": (
        22,
        f"{_REC} {_TIMES} initialTermId i segmentFileLength i termBufferLength i mtuLength i sessionId i streamId i",
        "strippedChannel originalChannel sourceIdentity",
    ),
    "RecordingSubscriptionDescriptor": (23, f"{_IDS} subscriptionId q streamId i", "strippedChannel"),
    "RecordingSignalEvent": (24, f"{_REC} subscriptionId q position q signal i", ""),
    "ReplicateRequest": (
        50,
        f"{_IDS} srcRecordingId q dstRecordingId q srcControlStreamId i",
        "srcControlChannel liveDestination",
    ),
    "StopReplicationRequest": (51, f"{_IDS} replicationId q", ""),
    "StartPositionRequest": (52, _REC, ""),
    "DetachSegmentsRequest": (53, f"{_REC} newStartPosition q", ""),
    "DeleteDetachedSegmentsRequest": (54, _REC, ""),
    "PurgeSegmentsRequest": (55, f"{_REC} newStartPosition q", ""),
    "AttachSegmentsRequest": (56, _REC, ""),
    "MigrateSegmentsRequest": (57, f"{_IDS} srcRecordingId q dstRecordingId q", ""),
    "AuthConnectRequest": (
        58,
        "correlationId q responseStreamId i version i",
        "responseChannel encodedCredentials clientInfo",
    ),
    "Challenge": (59, f"{_IDS} version i", "encodedChallenge"),
    "ChallengeResponse": (60, _IDS, "encodedCredentials"),
    "KeepAliveRequest": (61, _IDS, ""),
    "TaggedReplicateRequest": (
        62,
        f"{_SRC} {_TAGS} srcControlStreamId i",
        "srcControlChannel liveDestination",
    ),
    "StartRecordingRequest2": (63, f"{_IDS} streamId i sourceLocation i autoStop i", "channel"),
    "ExtendRecordingRequest2": (64, f"{_REC} streamId i sourceLocation i autoStop i", "channel"),
    "StopRecordingByIdentityRequest": (65, _REC, ""),
    "ReplicateRequest2": (
        66,
        f"{_SRC} stopPosition q {_TAGS} srcControlStreamId i fileIoMaxLength i replicationSessionId i",
        "srcControlChannel liveDestination replicationChannel encodedCredentials srcResponseChannel",
    ),
    "MaxRecordedPositionRequest": (67, _REC, ""),
    "ArchiveIdRequest": (68, _IDS, ""),
    "RecordingStarted": (101, "recordingId q startPosition q sessionId i streamId i", "channel sourceIdentity"),
    "RecordingProgress": (102, "recordingId q startPosition q position q", ""),
    "RecordingStopped": (103, "recordingId q startPosition q stopPosition q", ""),
    "PurgeRecordingRequest": (104, _REC, ""),
    "ReplayTokenRequest": (105, _REC, ""),
    "Ping": (106, "controlSessionId q", ""),
    "UpdateChannelRequest": (107, _REC, "channel"),
}

# What a client of today sends where a test says nothing.
_DEFAULTS: dict[str, int] = {
    "length": NULL,
    "position": NULL,
    "fileIoMaxLength": NULL,
    "replayToken": NULL,
    "stopPosition": NULL,
    "dstRecordingId": NULL,
    "channelTagId": NULL,
    "subscriptionTagId": NULL,
    "replicationSessionId": NULL,
    "srcControlStreamId": 10,
    "version": PROTOCOL_VERSION,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One message of the schema."""

    name: str
    id: int
    fields: tuple[tuple[str, str], ...]
    data: tuple[str, ...]

    @property
    def block_length(self) -> int:
        """Bytes of the root block in the current version."""
        return struct.calcsize("<" + "".join(code for _, code in self.fields))


def _template(name: str, row: tuple[int, str, str]) -> Template:
    words = row[1].split()
    fields = tuple(zip(words[::2], words[1::2], strict=True))
    return Template(name=name, id=row[0], fields=fields, data=tuple(row[2].split()))


TEMPLATES: dict[str, Template] = {name: _template(name, row) for name, row in _TABLE.items()}
_BY_ID: dict[int, Template] = {template.id: template for template in TEMPLATES.values()}


class Message:
    """A decoded message: `name` of its template, the fields and texts of the tables as attributes, `raw` all its bytes."""

    def __init__(self, name: str, raw: bytes, fields: dict[str, Any]) -> None:
        self.name = name
        self.raw = raw
        self.fields = fields

    def __getattr__(self, name: str) -> Any:
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(f"{self.name} has no {name}, only {', '.join(self.fields)}") from None

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.fields.items())})"


def header(template_id: int, block_length: int, *, schema: int = SCHEMA, version: int = VERSION) -> bytes:
    """The message header."""
    return HEADER.pack(block_length, template_id, schema, version)


def encode(
    name: str, *, schema: int = SCHEMA, schema_version: int = VERSION, block_length: int | None = None, **values: Any
) -> bytes:
    """One message as bytes.

    A root block shorter than today's is cut there, and one that is longer filled up with 0xFF, as a sender of another schema
    version would have it. Texts may be str or bytes; None leaves a text (and its length) out, as versions without it do.
    """
    template = TEMPLATES[name]
    block = b"".join(
        struct.pack("<" + code, values.pop(field, _DEFAULTS.get(field, 0))) for field, code in template.fields
    )
    if block_length is not None:
        block = block[:block_length] + b"\xff" * (block_length - len(block))
    texts = b""
    for text in template.data:
        value = values.pop(text, b"")
        if value is not None:
            content = value.encode() if isinstance(value, str) else bytes(value)
            texts += struct.pack("<I", len(content)) + content
    assert not values, f"{name} has no {', '.join(values)}"
    return header(template.id, len(block), schema=schema, version=schema_version) + block + texts


def decode(raw: bytes) -> Message:
    """A message of the archive; a template that the tables lack, or bytes that end too early, are an error."""
    block_length, template_id, schema, version = HEADER.unpack_from(raw)
    assert schema == SCHEMA, f"schema {schema}: {raw.hex()}"
    assert version == VERSION, f"version {version}: {raw.hex()}"
    template = _BY_ID[template_id]
    assert block_length == template.block_length, f"{template.name}: block length {block_length}"
    fields: dict[str, Any] = {}
    at = HEADER.size
    for field, code in template.fields:
        (fields[field],) = struct.unpack_from("<" + code, raw, at)
        at += struct.calcsize("<" + code)
    for text in template.data:
        (length,) = struct.unpack_from("<I", raw, at)
        assert at + 4 + length <= len(raw), f"{template.name}.{text} of {length} bytes runs beyond {len(raw)}"
        content = raw[at + 4 : at + 4 + length]
        fields[text] = content if text.startswith("encoded") else content.decode("ascii")
        at += 4 + length
    fields["encoded_length"] = at
    return Message(template.name, raw, fields)
