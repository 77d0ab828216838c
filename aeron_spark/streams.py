"""Streams by their counters: positions by stream, and who is how far behind whom. Pure functions over counter rows.

A stream's counters carry its ids and its channel in key and label. What is wrong in them, because another process wrote them,
makes a row with less in it, never an error. Spec: 01 §7.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
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
    knows what it reads; `window` is None where there is none.
    """

    stream_id: int
    session_id: int
    channel: str
    role: str
    registration_id: int
    position: int
    behind: int | None
    window: int | None


_KEY = struct.Struct("<qii i")
_LABEL = re.compile(r"(?P<name>[^:]*): -?\d+ -?\d+ -?\d+ (?P<channel>.*?)(?: @-?\d+)?\Z", re.DOTALL)


def streams(rows: Iterable[CounterRow]) -> list[StreamRow]:
    """The counters of streams, by stream, session, channel and type."""
    known = frozenset(StreamCounter)
    found = [_stream_row(row) for row in rows if row.type_id in known]
    return sorted(
        found, key=lambda row: (row.stream_id, row.session_id, row.channel, row.registration_id, row.type_id, row.name)
    )


def _stream_row(row: CounterRow) -> StreamRow:
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


def backlog(rows: Iterable[CounterRow]) -> list[BacklogRow]:
    """Who is how far behind, in the order in which data passes: publisher, sender, receiver, subscriber."""
    listed = streams(rows)
    by_party = {
        (row.type_id, row.registration_id): row for row in listed if row.type_id != StreamCounter.SUBSCRIBER_POSITION
    }

    def value(kind: StreamCounter, registration_id: int) -> int | None:
        row = by_party.get((kind, registration_id))
        return None if row is None else row.value

    def source_of(subscriber: StreamRow) -> int | None:
        # Its image, else the publication: over the network a spy reads what was sent, over IPC what was published.
        for kind in (
            StreamCounter.RECEIVER_HIGH_WATER_MARK,
            StreamCounter.SENDER_POSITION,
            StreamCounter.PUBLISHER_POSITION,
        ):
            position = value(kind, subscriber.reference_id)
            if position is not None:
                return position
        return None

    found = []
    for row in listed:
        own = row.registration_id
        parts: tuple[str, int | None, int | None]
        if row.type_id == StreamCounter.PUBLISHER_POSITION:
            parts = ("publisher", None, _less(value(StreamCounter.PUBLISHER_LIMIT, own), row.value))
        elif row.type_id == StreamCounter.SENDER_POSITION:
            published = value(StreamCounter.PUBLISHER_POSITION, own)
            parts = ("sender", _less(published, row.value), _less(value(StreamCounter.SENDER_LIMIT, own), row.value))
        elif row.type_id == StreamCounter.RECEIVER_POSITION:
            parts = ("receiver", _less(value(StreamCounter.RECEIVER_HIGH_WATER_MARK, own), row.value), None)
        elif row.type_id == StreamCounter.SUBSCRIBER_POSITION:
            parts = ("subscriber", _less(source_of(row), row.value), None)
        else:
            continue
        role, behind, window = parts
        found.append(
            BacklogRow(
                stream_id=row.stream_id,
                session_id=row.session_id,
                channel=row.channel,
                role=role,
                registration_id=own,
                position=row.value,
                behind=behind,
                window=window,
            )
        )
    order = {"publisher": 0, "sender": 1, "receiver": 2, "subscriber": 3}
    return sorted(
        found, key=lambda row: (row.stream_id, row.session_id, order[row.role], row.channel, row.registration_id)
    )


def _less(greater: int | None, less: int) -> int | None:
    """A distance; counters of different threads are read one after the other, so it may seem negative for a moment."""
    return None if greater is None else max(0, greater - less)
