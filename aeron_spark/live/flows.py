"""Streams out of the counters of drivers: their parties, and who holds back whom. Pure functions.

Counters of different threads are read one after the other, so a distance may be off by what passed meanwhile. It is never
negative.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from aeron_spark.live.change import Change
from aeron_spark.live.facts import Flow, Party, Stream
from aeron_spark.live.snapshot import Counted, DriverReading, Snapshot
from aeron_spark.streams import ROLES, StreamCounter, distances

#: A stream is slow if this share of what its publisher may send ahead is used.
_SLOW_SHARE = 0.75
_RECEIVED = frozenset({StreamCounter.RECEIVER_POSITION, StreamCounter.RECEIVER_HIGH_WATER_MARK})
#: Positions that belong to a client; those of sender and receiver are the driver's.
_BY_CLIENTS = frozenset({StreamCounter.PUBLISHER_POSITION, StreamCounter.SUBSCRIBER_POSITION})
#: By stream and session id: for what is known by these alone.
StreamsByIds = dict[tuple[int | None, int], list[Stream]]


class _Group:
    """The counters of one publication or image, and its subscribers."""

    def __init__(self, reading: DriverReading) -> None:
        self.reading = reading
        self.by_type: dict[int, Counted] = {}
        self.subscribers: list[Counted] = []

    @property
    def any(self) -> Counted:
        return next(iter(self.by_type.values())) if self.by_type else self.subscribers[0]

    @property
    def is_image(self) -> bool:
        return not _RECEIVED.isdisjoint(self.by_type)

    def value(self, *kinds: int) -> int | None:
        return next((self.by_type[kind].value for kind in kinds if kind in self.by_type), None)


def _groups(reading: DriverReading) -> Iterator[_Group]:
    found: dict[int, _Group] = {}
    subscribers = []
    for one in reading.counted:
        if one.type_id == StreamCounter.SUBSCRIBER_POSITION:
            subscribers.append(one)
        else:
            found.setdefault(one.registration_id, _Group(reading)).by_type[one.type_id] = one
    alone = []
    for one in subscribers:
        if one.reference_id in found:
            found[one.reference_id].subscribers.append(one)
        else:  # its image has just come or gone
            alone.append(_Group(reading))
            alone[-1].subscribers.append(one)
    yield from found.values()
    yield from alone


def stream_facts(now: Snapshot, change: Change) -> tuple[tuple[Stream, ...], StreamsByIds]:
    """All streams; and by stream and session id, for what is known by these alone."""
    groups = [group for reading in now.drivers for group in _groups(reading)]
    published: dict[tuple[int, int], list[_Group]] = {}
    for group in groups:
        if group.by_type and not group.is_image:
            published.setdefault((group.any.stream_id, group.any.session_id), []).append(group)
    images: dict[int, list[_Group]] = {}
    alone = []
    for group in groups:
        if group.by_type and not group.is_image:
            continue
        sources = published.get((group.any.stream_id, group.any.session_id), [])
        if len(sources) == 1 and group.is_image:
            images.setdefault(id(sources[0]), []).append(group)
        else:
            alone.append(group)
    names = {
        (reading.path, client.client_id): client.name or f"client {client.client_id}"
        for reading in now.drivers
        for client in reading.clients
    }
    recorded = _recorded_by(now)
    heads = [one for same in published.values() for one in same] + alone
    found = [_stream(group, images.get(id(group), []), change, names, recorded) for group in heads]
    by_ids: StreamsByIds = {}
    for stream in found:
        by_ids.setdefault((stream.stream_id, stream.session_id), []).append(stream)
    return tuple(found), by_ids


def _recorded_by(now: Snapshot) -> Mapping[tuple[int | None, int], tuple[str, ...]]:
    found: dict[tuple[int | None, int], tuple[str, ...]] = {}
    for reading in now.drivers:
        for one in reading.recorded:
            key = (one.stream_id, one.session_id)
            found[key] = (*found.get(key, ()), f"{one.archive_id}:{one.recording_id}")
    return found


def _stream(
    group: _Group,
    images: Sequence[_Group],
    change: Change,
    names: Mapping[tuple[str, int], str],
    recorded: Mapping[tuple[int | None, int], tuple[str, ...]],
) -> Stream:
    one, path = group.any, group.reading.path
    parties = _parties(group, images, change, names)
    head = group.value(
        StreamCounter.PUBLISHER_POSITION, StreamCounter.SENDER_POSITION, StreamCounter.RECEIVER_HIGH_WATER_MARK
    )
    first = parties[0] if parties else None
    readers = [party for party in parties if party.role == "subscriber"]
    position = head if head is not None else max((party.position for party in parties), default=0)
    slowest = min((party.position for party in readers), default=None)
    flow, holder, held = _flow(parties, has_images=bool(images))
    received = group.value(StreamCounter.SENDER_NAKS_RECEIVED)
    sent = [each.value(StreamCounter.RECEIVER_NAKS_SENT) or 0 for each in (group, *images)]
    return Stream(
        key=f"{path}#{one.registration_id}",
        directory=path,
        stream_id=one.stream_id,
        session_id=one.session_id,
        channel=one.channel,
        position=position,
        rate=first.rate if first is not None else None,
        behind=None if slowest is None or head is None else max(0, position - slowest),
        flow=flow,
        holder=holder,
        held=held,
        naks=received if received is not None else sum(sent),
        back_pressure=group.value(StreamCounter.SENDER_BACK_PRESSURE) or 0,
        recordings=recorded.get((one.stream_id, one.session_id), ()),
        parties=parties,
    )


def _parties(
    group: _Group, images: Sequence[_Group], change: Change, names: Mapping[tuple[str, int], str]
) -> tuple[Party, ...]:
    """In the order in which data passes."""
    found: list[Party] = []

    def add(own: _Group, counted: Counted, after: int | None) -> int:
        path = own.reading.path
        positions = {(kind, each.registration_id): each.value for kind, each in own.by_type.items()}
        is_subscriber = counted.type_id == StreamCounter.SUBSCRIBER_POSITION
        party_id = counted.reference_id if is_subscriber else counted.registration_id
        behind, window = distances(positions, counted.type_id, party_id, counted.value)
        found.append(
            Party(
                role=ROLES[counted.type_id],
                directory=path,
                channel=counted.channel,
                registration_id=counted.registration_id,
                client_id=counted.owner_id,
                client=names.get((path, counted.owner_id), "") if counted.type_id in _BY_CLIENTS else "",
                after=after,
                position=counted.value,
                rate=change.position_rate(path, counted),
                behind=behind,
                window=window,
            )
        )
        return len(found) - 1

    def add_all(own: _Group, after: int | None) -> int | None:
        for kind in (StreamCounter.PUBLISHER_POSITION, StreamCounter.SENDER_POSITION, StreamCounter.RECEIVER_POSITION):
            if kind in own.by_type:
                after = add(own, own.by_type[kind], after)
        for subscriber in sorted(own.subscribers, key=lambda each: each.value):
            add(own, subscriber, after)
        return after

    last = add_all(group, None)
    for image in images:
        add_all(image, last)
    return tuple(found)


def _flow(parties: Sequence[Party], *, has_images: bool) -> tuple[Flow, str, str]:
    """Whether somebody may not go on, or nearly; who holds back, and whom."""
    of = {party.role: party for party in parties[:2]}
    publisher, sender = of.get("publisher"), of.get("sender")
    readers = [party for party in parties if party.role == "subscriber"]
    last_reader = min(readers, key=lambda party: party.position, default=None)
    beyond = last_reader.name if last_reader is not None and has_images else "receivers elsewhere, or none"
    # Receivers let pass less than the sender has. It stops before its limit where the next frame does not fit.
    is_held = sender is not None and sender.window is not None and sender.window < (sender.behind or 0)
    if sender is not None and is_held and 0 in {sender.window, sender.rate}:
        return Flow.BLOCKED, beyond, sender.name
    # The publisher waits for its sender, and for whoever reads its log: subscribers over IPC, spies.
    last = 0 if sender is None else 1
    awaited = [
        party for party in parties if party.after is not None and party.after <= last and party.role != "receiver"
    ]
    slowest = min(awaited, key=lambda party: party.position, default=None)
    if publisher is None or publisher.window is None or slowest is None:
        return (Flow.OK if readers or sender is not None else Flow.NO_READER), "", ""
    pending = max(0, publisher.position - slowest.position)
    if pending == 0 and publisher.window == 0 and not readers:
        return Flow.NO_READER, "", ""
    if pending == 0 or pending < _SLOW_SHARE * (pending + publisher.window):
        return Flow.OK, "", ""
    flow = Flow.BLOCKED if publisher.window == 0 else Flow.SLOW
    if slowest.role == "sender" and is_held:
        return flow, beyond, slowest.name
    return flow, slowest.name, publisher.name
