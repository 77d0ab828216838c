"""Compares two snapshots: what the servers do. Pure functions over plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from aeron_spark.live.change import Change
from aeron_spark.live.facts import Client, Error, Facts, Loss, Recording, ServerFact, Stream
from aeron_spark.live.flows import StreamsByIds, stream_facts
from aeron_spark.live.snapshot import ArchiveReading, Beat, Entry, Recorded, Server, ServerState, Snapshot, Values

_MS = 1000


def facts(now: Snapshot, before: Snapshot | None = None) -> Facts:
    """What the snapshots say. A server that started again between them has no rates yet."""
    now = replace(now, archives=_with_copies(now.archives))
    change = Change(now, before)
    streams, of_recording = stream_facts(now, change)
    recordings = _recordings(now, change, of_recording)
    return Facts(
        time_ms=now.time_ms,
        seconds=change.seconds,
        streams=streams,
        recordings=recordings,
        servers=tuple(_servers(now, change)),
        clients=tuple(_clients(now, streams)),
        errors=tuple(_errors(now, change)),
        losses=tuple(_losses(now, change)),
        left_out=dict(+sum((Counter(one.left_out) for one in (*now.drivers, *now.archives)), Counter())),
    )


def _with_copies(archives: Sequence[ArchiveReading]) -> tuple[ArchiveReading, ...]:
    """A folder that was copied while its archive ran names that archive's process: the archive has the newest heartbeat."""
    owners: dict[tuple[str, int | None, int | None], ArchiveReading] = {}
    for one in archives:
        if one.state == ServerState.ALIVE:
            owners[_process(one)] = min(
                owners.get(_process(one), one), one, key=lambda each: each.heartbeat_age_s or 0.0
            )
    found = []
    for one in archives:
        owner = owners.get(_process(one), one)
        if one.inode != owner.inode:
            what = f"a copy of {owner.path}, made while the archive of that ran; no archive runs here"
            one = replace(one, state=ServerState.DEAD, trouble=what)  # noqa: PLW2901
        found.append(one)
    return tuple(found)


def _process(archive: ArchiveReading) -> tuple[str, int | None, int | None]:
    return archive.archive_id, archive.pid, archive.start_ms


def _may_have(now: Snapshot, archive: ArchiveReading, path: str) -> bool:
    """Whether an archive has counters in a driver's directory: a dead one only what a dead driver left."""
    return archive.state == ServerState.ALIVE or any(
        one.path == path and one.state != ServerState.ALIVE for one in now.drivers
    )


def _state(archive: ArchiveReading, state: str) -> str:
    """Of a recording: one without an end is unfinished once its archive is dead."""
    return "unfinished" if state == "active" and archive.state != ServerState.ALIVE else state


def _recordings(now: Snapshot, change: Change, by_ids: StreamsByIds) -> tuple[Recording, ...]:
    active: dict[tuple[str, str, int], Recorded] = {
        (reading.path, one.archive_id, one.recording_id): one for reading in now.drivers for one in reading.recorded
    }
    found = []
    for archive in now.archives:
        for entry in archive.entries:
            key = _counter_of(archive, entry, active) if entry.state == "active" else None
            key = key if key is not None and _may_have(now, archive, key[0]) else None
            counter = (key[0], active.pop(key)) if key is not None else None
            found.append(_recording(archive, entry, counter, change, by_ids))
    for (path, _, _), one in active.items():
        state = next(each.state for each in now.drivers if each.path == path)
        bare = ArchiveReading(path=path, state=state, archive_id=one.archive_id)
        found.append(_recording(bare, None, (path, one), change, by_ids))
    return tuple(found)


def _counter_of(
    archive: ArchiveReading, entry: Entry, active: Mapping[tuple[str, str, int], Recorded]
) -> tuple[str, str, int] | None:
    """The key of an active recording's counter: of the archive's own directory first."""
    keys = [(archive.aeron_dir, archive_id, entry.recording_id) for archive_id in (archive.archive_id, "")]
    exact = next((key for key in keys if key in active), None)
    if exact is not None:
        return exact
    paths = {path for path, _, _ in active}
    return next(
        (
            key
            for path in sorted(paths)
            if (key := (path, archive.archive_id, entry.recording_id)) in active
            and active[key].session_id == entry.session_id
        ),
        None,
    )


def _recording(
    archive: ArchiveReading,
    entry: Entry | None,
    counter: tuple[str, Recorded] | None,
    change: Change,
    by_ids: StreamsByIds,
) -> Recording:
    """Of its entry in a catalog, of its counter in a driver's directory, or of both."""
    path, recorded = counter if counter is not None else ("", None)
    archive_id = recorded.archive_id if recorded is not None else archive.archive_id
    one = entry if entry is not None else recorded
    assert one is not None  # noqa: S101 - for the type checker
    position = recorded.position if recorded is not None else entry.stop_position if entry is not None else None
    start = entry.start_position if entry is not None else None
    ids = (one.stream_id, one.session_id)
    streams = by_ids.get(ids, []) if recorded is not None and one.stream_id is not None else []
    stream = streams[0] if len(streams) == 1 else None
    return Recording(
        key=f"{archive.path}:{archive_id}:{one.recording_id}",
        archive=archive.path,
        archive_id=archive_id,
        recording_id=one.recording_id,
        state=_state(archive, entry.state if entry is not None else "active"),
        stream_id=one.stream_id,
        session_id=one.session_id,
        channel=one.channel,
        start_ms=entry.start_ms if entry is not None else None,
        stop_ms=entry.stop_ms if entry is not None else None,
        start_position=start,
        position=position,
        length=None if start is None or position is None else max(0, position - start),
        rate=change.recorded_rate(path, recorded) if recorded is not None else None,
        behind=None if stream is None or recorded is None else max(0, stream.position - recorded.position),
        stream=stream.key if stream is not None else "",
    )


def _servers(now: Snapshot, change: Change) -> Iterator[ServerFact]:
    counted = {
        (reading.path, archive_id): values for reading in now.drivers for archive_id, values in reading.archives.items()
    }
    for driver in now.drivers:
        was = change.drivers.get(driver.path)
        yield _server(
            "driver",
            driver,
            was,
            now.time_ms,
            in_rate=_value_rate(change, driver.values, was.values if was else {}, "aeron_driver_received_bytes"),
            out_rate=_value_rate(change, driver.values, was.values if was else {}, "aeron_driver_sent_bytes"),
            stalls=_stalls(driver.values, "aeron_driver_slow_cycles"),
        )
    for archive in now.archives:
        key = next(
            (one for one in counted if one == (archive.aeron_dir, archive.archive_id)),
            next((one for one in counted if one[1] == archive.archive_id), None),
        )
        key = key if key is not None and _may_have(now, archive, key[0]) else None
        values = counted.pop(key) if key is not None else {}
        yield _of_archive(archive, key, values, now.time_ms, change)
    for key, values in counted.items():
        state = next(one.state for one in now.drivers if one.path == key[0])
        bare = ArchiveReading(path=key[0], state=state, archive_id=key[1])
        yield _of_archive(bare, key, values, now.time_ms, change)


def _of_archive(
    archive: ArchiveReading, key: tuple[str, str] | None, values: Values, time_ms: int, change: Change
) -> ServerFact:
    was_driver = change.drivers.get(key[0]) if key is not None else None
    was = was_driver.archives.get(key[1], {}) if was_driver is not None and key is not None else {}
    recordings = values.get(("aeron_archive_recording_sessions", ""))
    if recordings is None and archive.entries:
        recordings = sum(_state(archive, one.state) == "active" for one in archive.entries)
    return _server(
        "archive",
        archive,
        change.archives.get(archive.path),
        time_ms,
        archive_id=archive.archive_id,
        full_s=archive.full_s,
        disk_bytes=archive.disk_bytes,
        in_rate=_value_rate(change, values, was, "aeron_archive_written_bytes"),
        out_rate=_value_rate(change, values, was, "aeron_archive_read_bytes"),
        stalls=_stalls(values, "aeron_archive_slow_cycles"),
        recordings=_whole(recordings),
        replays=_whole(values.get(("aeron_archive_replay_sessions", ""))),
        sessions=_whole(values.get(("aeron_archive_control_sessions", ""))),
    )


def _server(
    kind: str,
    reading: Server,
    was: Server | None,
    time_ms: int,
    *,
    in_rate: float | None,
    out_rate: float | None,
    stalls: int,
    archive_id: str = "",
    full_s: float | None = None,
    disk_bytes: int | None = None,
    recordings: int | None = None,
    replays: int | None = None,
    sessions: int | None = None,
) -> ServerFact:
    errors = sum(one.count for one in reading.errors)
    is_alive = reading.state == ServerState.ALIVE and reading.start_ms is not None
    return ServerFact(
        key=f"{kind}:{reading.path}:{archive_id}",
        kind=kind,
        path=reading.path,
        archive_id=archive_id,
        state=reading.state,
        trouble=reading.trouble,
        pid=reading.pid,
        up_s=max(0.0, (time_ms - (reading.start_ms or 0)) / _MS) if is_alive else None,
        heartbeat_age_s=reading.heartbeat_age_s,
        free_bytes=reading.free_bytes,
        total_bytes=reading.total_bytes,
        full_s=full_s,
        disk_bytes=disk_bytes,
        in_rate=in_rate,
        out_rate=out_rate,
        errors=errors,
        new_errors=0 if was is None else max(0, errors - sum(one.count for one in was.errors)),
        stalls=stalls,
        recordings=recordings,
        replays=replays,
        sessions=sessions,
    )


def _value_rate(change: Change, now: Values, before: Values, name: str) -> float | None:
    key = (name, "")
    return change.rate(now[key], before.get(key)) if key in now else None


def _stalls(values: Values, name: str) -> int:
    return int(sum(value for (metric, _), value in values.items() if metric == name))


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _clients(now: Snapshot, streams: Iterable[Stream]) -> Iterator[Client]:
    publications: dict[tuple[str, int], int] = {}
    behind: dict[tuple[str, int], list[int]] = {}
    for stream in streams:
        for party in stream.parties:
            key = (party.directory, party.client_id)
            if party.role == "publisher":
                publications[key] = publications.get(key, 0) + 1
            elif party.role == "subscriber":
                behind.setdefault(key, []).append(party.behind or 0)
    for reading in now.drivers:
        for beat in _distinct(reading.clients):
            key = (reading.path, beat.client_id)
            yield Client(
                key=f"{reading.path}#{beat.client_id}",
                directory=reading.path,
                client_id=beat.client_id,
                name=beat.name,
                age_s=beat.age_s,
                publications=publications.get(key, 0),
                subscribers=len(behind.get(key, [])),
                behind=max(behind.get(key, []), default=None),
            )


def _distinct(beats: Iterable[Beat]) -> Iterable[Beat]:
    return {beat.client_id: beat for beat in beats}.values()


def _errors(now: Snapshot, change: Change) -> Iterator[Error]:
    before = {
        one.key: one.count
        for reading in (*change.drivers.values(), *change.archives.values())
        for one in reading.errors
    }
    known = {*change.drivers, *change.archives}
    for reading in (*now.drivers, *now.archives):
        for place, one in enumerate(reading.errors):
            yield Error(
                key=f"{one.module}:{reading.path}:{place}",
                module=one.module,
                directory=reading.path,
                level=one.level,
                message=one.message,
                count=one.count,
                new=max(0, one.count - before.get(one.key, 0)) if reading.path in known else 0,
                first_ms=one.first_ms,
                last_ms=one.last_ms,
            )


def _losses(now: Snapshot, change: Change) -> Iterator[Loss]:
    for reading in now.drivers:
        was = change.drivers.get(reading.path)
        before = [one.lost_bytes for one in was.losses] if was is not None else []
        for place, one in enumerate(reading.losses):
            then = before[place] if place < len(before) else 0 if was is not None else one.lost_bytes
            yield Loss(
                key=f"{reading.path}:{place}",
                directory=reading.path,
                stream_id=one.stream_id,
                session_id=one.session_id,
                channel=one.channel,
                source=one.source,
                gaps=one.gaps,
                lost_bytes=one.lost_bytes,
                new_bytes=max(0, one.lost_bytes - then),
                last_ms=one.last_ms,
            )
