"""Streams by their counters: positions by stream, and who is how far behind whom. Pure functions over counter rows.

A stream's counters carry its ids and its channel in key and label. What is wrong in them, because another process wrote them,
makes a row with less in it, never an error. Spec: 01 §7.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from aeron_spark.counters import CounterRow


class StreamCounter(IntEnum):
    """Type ids of the counters that belong to a stream."""

    PUBLISHER_LIMIT = 1
    SENDER_POSITION = 2
    RECEIVER_HIGH_WATER_MARK = 3
    SUBSCRIBER_POSITION = 4
    RECEIVER_POSITION = 5
    SENDER_LIMIT = 9
    PUBLISHER_POSITION = 12
    SENDER_BACK_PRESSURE = 13
    SENDER_NAKS_RECEIVED = 19
    RECEIVER_NAKS_SENT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRow:
    """One counter of a stream. `registration_id` is of the publication, image or subscription that it belongs to."""

    stream_id: int
    session_id: int
    channel: str
    name: str
    type_id: int
    registration_id: int
    reference_id: int
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogRow:
    """One party of a stream: where it is, how many bytes it is behind the one before it, how many it may still go on.

    `role` is publisher, sender, receiver or subscriber. `behind` is None for a publisher and for a subscriber of which nobody
    knows what it reads; `window` is None where there is none. A subscriber has a row for each image, `reference_id`.
    """

    stream_id: int
    session_id: int
    channel: str
    role: str
    registration_id: int
    reference_id: int
    position: int
    behind: int | None
    window: int | None


#: Positions by type of the counter and registration id; of a subscriber none, as one registration has many.
Positions = Mapping[tuple[int, int], int]

_KEY = struct.Struct("<qii i")
_LABEL = re.compile(r"(?P<name>[^:]*): -?\d+ -?\d+ -?\d+ (?P<channel>.*?)(?: @-?\d+)?\Z", re.DOTALL)


def streams(rows: Iterable[CounterRow]) -> list[StreamRow]:
    """The counters of streams, by stream, session, channel and type."""
    known = frozenset(StreamCounter)
    found = [stream_row(row) for row in rows if row.type_id in known]
    return sorted(
        found, key=lambda row: (row.stream_id, row.session_id, row.channel, row.registration_id, row.type_id, row.name)
    )


def stream_row(row: CounterRow) -> StreamRow:
    """A counter with the key of a stream, taken apart."""
    registration_id, session_id, stream_id, channel_length = _KEY.unpack_from(row.key.ljust(_KEY.size, b"\0"))
    label = _LABEL.match(row.label)
    channel = row.key[_KEY.size : _KEY.size + max(0, channel_length)].decode("ascii", "replace")
    return StreamRow(
        stream_id=stream_id,
        session_id=session_id,
        channel=label["channel"] if label else channel,
        name=label["name"] if label else row.label.partition(":")[0],
        type_id=row.type_id,
        registration_id=registration_id,
        reference_id=row.reference_id,
        value=row.value,
    )


ROLES: Mapping[int, str] = {
    StreamCounter.PUBLISHER_POSITION: "publisher",
    StreamCounter.SENDER_POSITION: "sender",
    StreamCounter.RECEIVER_POSITION: "receiver",
    StreamCounter.SUBSCRIBER_POSITION: "subscriber",
}
# What comes before a party: of a subscriber its image, else the publication; over the network a spy reads what was sent, over
# IPC what was published.
_BEFORE: Mapping[int, tuple[StreamCounter, ...]] = {
    StreamCounter.SENDER_POSITION: (StreamCounter.PUBLISHER_POSITION,),
    StreamCounter.RECEIVER_POSITION: (StreamCounter.RECEIVER_HIGH_WATER_MARK,),
    StreamCounter.SUBSCRIBER_POSITION: (
        StreamCounter.RECEIVER_HIGH_WATER_MARK,
        StreamCounter.SENDER_POSITION,
        StreamCounter.PUBLISHER_POSITION,
    ),
}
_LIMIT: Mapping[int, StreamCounter] = {
    StreamCounter.PUBLISHER_POSITION: StreamCounter.PUBLISHER_LIMIT,
    StreamCounter.SENDER_POSITION: StreamCounter.SENDER_LIMIT,
}


def distances(positions: Positions, type_id: int, party_id: int, value: int) -> tuple[int | None, int | None]:
    """How many bytes the party is behind the one before it, and how many it may go on; None where that is not known.

    `party_id` is the registration id of its publication or image; of a subscriber its reference id.
    """
    before = (positions.get((kind, party_id)) for kind in _BEFORE.get(type_id, ()))
    behind = next((position for position in before if position is not None), None)
    limit = positions.get((_LIMIT[type_id], party_id)) if type_id in _LIMIT else None
    return _less(behind, value), _less(limit, value)


def backlog(rows: Iterable[CounterRow]) -> list[BacklogRow]:
    """Who is how far behind, in the order in which data passes: publisher, sender, receiver, subscriber."""
    listed = streams(rows)
    positions = {
        (row.type_id, row.registration_id): row.value
        for row in listed
        if row.type_id != StreamCounter.SUBSCRIBER_POSITION
    }
    found = []
    for row in listed:
        if row.type_id not in ROLES:
            continue
        is_subscriber = row.type_id == StreamCounter.SUBSCRIBER_POSITION
        party_id = row.reference_id if is_subscriber else row.registration_id
        behind, window = distances(positions, row.type_id, party_id, row.value)
        found.append(
            BacklogRow(
                stream_id=row.stream_id,
                session_id=row.session_id,
                channel=row.channel,
                role=ROLES[row.type_id],
                registration_id=row.registration_id,
                reference_id=row.reference_id,
                position=row.value,
                behind=behind,
                window=window,
            )
        )
    order = {role: place for place, role in enumerate(ROLES.values())}
    return sorted(
        found, key=lambda row: (row.stream_id, row.session_id, order[row.role], row.channel, row.registration_id)
    )


def _less(greater: int | None, less: int) -> int | None:
    """A distance; counters of different threads are read one after the other, so it may seem negative for a moment."""
    return None if greater is None else max(0, greater - less)
