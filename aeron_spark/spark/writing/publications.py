"""Publications of a Python worker: kept from task to task, closed when idle.

Opening one costs a few round trips, and more with a recording; a small partition should not pay that each time. One task at
a time uses a pooled publication. A task that succeeds returns it to the pool, where it waits ``linger`` seconds for the next
task; one that fails closes it. A thread closes publications whose linger has timed out. The client of a directory lives as
long as the worker.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from aeron_spark.archive.client import Archive
from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.remote import answers_channel
from aeron_spark.channel import ChannelUri
from aeron_spark.client import Client
from aeron_spark.counters import Counters
from aeron_spark.errors import AeronError, ClosedError, PeerError, UsageError, WaitTimeoutError
from aeron_spark.publication import ExclusivePublication
from aeron_spark.spark.launch import ensure_archive, ensure_driver, live_archive
from aeron_spark.spark.planning.selection import identity_of
from aeron_spark.spark.writing.options import WriteOptions
from aeron_spark.streams import StreamCounter, streams
from aeron_spark.types import SourceLocation

__all__ = ["PooledPublication", "client_of", "driver_of", "give_back", "open_archive", "source_of", "take"]

_POLL_SECONDS = 0.002
_CLOSER = "aeron-spark-sink-closer"
#: Pooled publications with a shorter linger may be given back while the closer sleeps.
MAX_SLEEP_SECONDS = 1.0
#: An archive on the network answers in this time, or in publishTimeout if that is shorter.
MAX_ANSWER_SECONDS = 10.0
#: Over UDP: the flow control says "connected" only when the group is whole.
_AS_MANY_AS_ASKED_FOR = 1 << 30

_clients: dict[str, Client] = {}
_idle: dict[tuple[object, ...], list[PooledPublication]] = {}
_lock = threading.Lock()


@dataclass
class PooledPublication:
    """An open publication and, where it is recorded, the session with its archive and the recording that holds it."""

    key: tuple[object, ...]
    aeron_dir: str
    publication: ExclusivePublication
    archive: Archive | None
    archive_id: int | None
    recording: Recording | None
    idle_until: float = 0.0

    def is_usable(self) -> bool:
        """Whether another task may publish here: nothing of it has ended since."""
        try:
            if self.publication.position < 0:
                return False
            if self.archive is None or self.recording is None:
                return True
            return (
                self.publication.is_connected
                and self.archive.recording_position(self.recording.recording_id) is not None
            )
        except AeronError:
            return False

    def wait_recorded(self, position: int, options: WriteOptions, application: str) -> None:
        """Block until the archive has recorded up to there; `publishTimeout` at most."""
        assert self.archive is not None  # noqa: S101 - see above
        assert self.recording is not None  # noqa: S101
        recording_id, timeout = self.recording.recording_id, options.publish_timeout
        try:
            self.archive.wait_position(recording_id, position, timeout=timeout)
        except ClosedError:
            # The archive ends a session that asks nothing for some minutes, as that of a task that publishes for longer. The
            # recording goes on.
            self.archive.close()
            self.archive, archive_id = open_archive(options, application)
            found = self.archive.recording(recording_id)
            if archive_id != self.archive_id or found is None or identity_of(found) != identity_of(self.recording):
                raise
            self.archive.wait_position(recording_id, position, timeout=timeout)

    def close(self) -> None:
        """End the publication, and with it the recording."""
        try:
            self.publication.close()
        finally:
            if self.archive is not None:
                self.archive.close()


def take(options: WriteOptions, channel: str, stream_id: int, application: str) -> PooledPublication:
    """A pooled publication to a destination, to be given back or closed; with at least ``await_subscribers`` of them there."""
    key = (channel, stream_id, options.aeron_dir, options.archive, options.control_stream_id)
    while True:
        with _lock:
            waiting = _idle.get(key)
            pooled = waiting.pop() if waiting else None
        if pooled is None:
            pooled = _open(options, channel, stream_id, application, key)
        elif not pooled.is_usable():
            pooled.close()
            continue
        try:
            _await_subscribers(pooled, options)
        except BaseException:
            pooled.close()
            raise
        return pooled


def give_back(pooled: PooledPublication, linger: float) -> None:
    """Keep a pooled publication for the next task, for ``linger`` seconds at most."""
    if linger <= 0:
        pooled.close()
        return
    pooled.idle_until = time.monotonic() + linger
    with _lock:
        _idle.setdefault(pooled.key, []).append(pooled)
        if not any(thread.name == _CLOSER for thread in threading.enumerate()):
            threading.Thread(target=_close_idle, name=_CLOSER, daemon=True).start()


def _close_idle() -> None:
    """Closes publications whose linger has timed out, until none is idle."""
    while True:
        now = time.monotonic()
        late: list[PooledPublication] = []
        with _lock:
            for idle in _idle.values():
                late += [pooled for pooled in idle if pooled.idle_until <= now]
                idle[:] = [pooled for pooled in idle if pooled.idle_until > now]
            waiting = [pooled.idle_until for idle in _idle.values() for pooled in idle]
            if not waiting:
                # Under the lock, so that who gives back next sees that it needs another thread.
                threading.current_thread().name = f"{_CLOSER} that ends"
        for pooled in late:
            pooled.close()
        if not waiting:
            return
        time.sleep(min(MAX_SLEEP_SECONDS, max(0.0, min(waiting) - now)))


def _open(
    options: WriteOptions, channel: str, stream_id: int, application: str, key: tuple[object, ...]
) -> PooledPublication:
    """Opens it, and tries a second time: a driver or archive that seems alive may have ended within the last 10 s."""
    try:
        return _open_once(options, channel, stream_id, application, key)
    except (ClosedError, WaitTimeoutError):
        return _open_once(options, channel, stream_id, application, key)


def _open_once(
    options: WriteOptions, channel: str, stream_id: int, application: str, key: tuple[object, ...]
) -> PooledPublication:
    if options.archive is None:
        aeron_dir = driver_of(options, application)
        return PooledPublication(
            key, aeron_dir, client_of(aeron_dir).add_exclusive_publication(channel, stream_id), None, None, None
        )
    source = source_of(options, channel)
    archive, archive_id = open_archive(options, application)
    try:
        publication = archive.client.add_exclusive_publication(channel, stream_id)
        try:
            recording = _record(archive, publication, source, options.publish_timeout)
        except BaseException:
            publication.close()
            raise
    except BaseException:
        archive.close()
        raise
    return PooledPublication(key, str(archive.client.aeron_dir), publication, archive, archive_id, recording)


def source_of(options: WriteOptions, channel: str) -> SourceLocation:
    """Where the archive finds a channel: beside its own driver, or on the network. UsageError where it would find nothing."""
    if options.is_spied:
        return SourceLocation.LOCAL
    if ChannelUri.parse(channel).media != "udp":
        raise UsageError(
            f"the archive at {options.control_channel} does not hear {channel}: rows that it is to record go to channels "
            f"that end at it"
        )
    return SourceLocation.REMOTE


def _record(archive: Archive, publication: ExclusivePublication, source: SourceLocation, timeout: float) -> Recording:
    """Begins a recording of this publication alone, that ends with it, and waits until it is there."""
    session_id, stream_id = publication.session_id, publication.stream_id
    # An older recording may have the same session id: session ids are random, and a driver's next life knows no used ones.
    before = archive.find_last_matching_recording("", stream_id, session_id)
    first = 0 if before is None else before + 1
    channel = ChannelUri.parse(publication.channel).with_params(session_id=session_id)
    archive.start_recording(channel, stream_id, source=source, auto_stop=True)
    deadline = time.monotonic() + timeout
    while (found := archive.find_last_matching_recording("", stream_id, session_id, min_recording_id=first)) is None:
        if time.monotonic() >= deadline:
            raise WaitTimeoutError(f"the archive began no recording of {publication!r} within {timeout} s")
        time.sleep(_POLL_SECONDS)
    recording = archive.recording(found)
    if recording is None:
        raise PeerError(f"recording {found} of {publication!r} is gone as soon as it began")
    return recording


def _await_subscribers(pooled: PooledPublication, options: WriteOptions) -> None:
    """The first one is waited for by publishing itself; over UDP the channel's flow control knows how many there are to be."""
    if options.await_subscribers == 1:
        return
    publication = pooled.publication
    deadline = time.monotonic() + options.publish_timeout
    with Counters(pooled.aeron_dir) as counters:
        while (there := _subscribers(publication, counters)) < options.await_subscribers:
            if time.monotonic() >= deadline:
                raise WaitTimeoutError(
                    f"{publication!r} has {there} of {options.await_subscribers} subscribers after "
                    f"{options.publish_timeout} s: start them, or change awaitSubscribers or publishTimeout"
                )
            time.sleep(_POLL_SECONDS)


def _subscribers(publication: ExclusivePublication, counters: Counters) -> int:
    if ChannelUri.parse(publication.channel).media != "ipc":
        return _AS_MANY_AS_ASKED_FOR if publication.is_connected else 0
    own = publication.constants.registration_id
    return sum(
        row.type_id == StreamCounter.SUBSCRIBER_POSITION and row.reference_id == own for row in streams(counters.rows())
    )


def open_archive(options: WriteOptions, application: str) -> tuple[Archive, int | None]:
    """A session with the recording archive, and its id if it reports one. Starts that of recordTo if none is alive."""
    aeron_dir = driver_of(options, application)
    record_to = options.record_to
    if record_to is None:
        assert options.control_channel is not None  # noqa: S101 - callers have seen that there is an archive
        file = options.archive_credentials_file
        remote = Archive(
            client_of(aeron_dir),
            timeout=min(options.publish_timeout, MAX_ANSWER_SECONDS),
            control_channel=options.control_channel,
            control_stream_id=options.control_stream_id,
            response_channel=answers_channel(options.control_channel),
            credentials=None if file is None else Path(file),
            client_info="name=aeron-spark-sink",
        )
        return remote, remote.archive_id
    info = ensure_archive(record_to, aeron_dir)
    archive = Archive(client_of(aeron_dir), control_stream_id=info.local_control_stream_id)
    if archive.archive_id is not None and archive.archive_id != info.archive_id:
        found = archive.archive_id
        archive.close()
        raise PeerError(
            f"archive {found} answers on the driver in {aeron_dir}, but archive {info.archive_id} owns "
            f"{record_to}: two archives share a driver and a control stream, give one another driver (aeronDir) or "
            f"another aeron.archive.local.control.stream.id"
        )
    return archive, info.archive_id


def driver_of(options: WriteOptions, application: str) -> str:
    """Directory of the driver to publish on: an archive that is alive decides it, as it records from its own driver."""
    alive = live_archive(options.record_to) if options.record_to is not None else None
    if alive is None:
        return ensure_driver(options.aeron_dir, application=application, may_launch=options.launch_driver)
    if options.aeron_dir is not None and os.path.realpath(options.aeron_dir) != os.path.realpath(str(alive.aeron_dir)):
        raise UsageError(
            f"the archive on {options.record_to} works with the driver of {alive.aeron_dir}, not of {options.aeron_dir}: "
            f"leave aeronDir out, or name that directory"
        )
    return str(alive.aeron_dir)


def client_of(aeron_dir: str) -> Client:
    """The worker's client of a directory."""
    with _lock:
        client = _clients.get(aeron_dir)
        if client is not None and client.is_closed:
            client.close()
            client = None
        if client is None:
            client = _clients[aeron_dir] = Client(aeron_dir, name="aeron-spark-sink")
        return client
