"""Recordings of an archive that is reached over the network only: listed by requests, read by replays.

The media driver beside the reader receives the replays. A replay ends at its requested end: a message boundary, a
term's begin, or the recording's end. A replay that ends earlier (the archive died, the network is cut) raises; it is
never reported as the end of the data.
"""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

import pyarrow as pa

from aeron_spark.archive.client import Archive
from aeron_spark.archive.cuts import TermCuts
from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.replay import Replay
from aeron_spark.archive.segments import READ_COLUMNS, Extent, OnDoubt, warn_of_doubt
from aeron_spark.batch import DEFAULT_BYTES, DEFAULT_ROWS, RECORDING_ID, Batches, schema_of
from aeron_spark.channel import ChannelUri
from aeron_spark.errors import AeronError, ClosedError, PeerError, UsageError, WaitTimeoutError
from aeron_spark.types import Position

__all__ = ["RemoteArchive", "answers_channel", "own_address"]

T = TypeVar("T")

_POLL_SECONDS = 0.1
_BOUNDARIES = ("position", "next_position")


def own_address(control_channel: str) -> str:
    """Local address that routes to the control channel's endpoint; UsageError if the channel has no endpoint."""
    endpoint = ChannelUri.parse(control_channel).params.get("endpoint", "")
    host, separator, port = endpoint.rpartition(":")
    if not separator or not port.isdecimal():
        raise UsageError(f"control channel {control_channel!r} needs endpoint=<host>:<port> of the archive")
    bare = host.strip("[]")
    try:
        found = socket.getaddrinfo(bare, int(port), type=socket.SOCK_DGRAM)[0]
        with socket.socket(found[0], socket.SOCK_DGRAM) as probe:
            probe.connect(found[4])  # chooses a route, sends nothing
            address = str(probe.getsockname()[0])
    except OSError as error:
        raise PeerError(
            f"no route to the archive at {endpoint} of control channel {control_channel!r}: {error}"
        ) from None
    return f"[{address}]" if ":" in address else address


def answers_channel(control_channel: str) -> str:
    """Where an archive reaches this process: at any free port of the address that the archive sees."""
    if ChannelUri.parse(control_channel).media == "ipc":
        return "aeron:ipc"
    return f"aeron:udp?endpoint={own_address(control_channel)}:0"


class RemoteArchive(TermCuts):
    """Read-only view of an archive's recordings over a control session, as `Folder` is of its folder.

    `replay_channel` is where the archive replays to: UDP with an endpoint of this machine, port 0, or IPC for an
    archive on this machine's driver. `stall_timeout` (seconds) bounds how long a replay may deliver no data. `close`
    leaves the archive's session open. Rows carry the recording's session id, because a replay has its own.
    `reopened` gives another session where the one before has ended: a view that asks nothing for some minutes loses it.
    Thread rule: the session serialises calls; readers of several ranges may be open at a time.
    """

    has_segment_files = False

    def __init__(
        self,
        archive: Archive,
        replay_channel: str,
        *,
        stall_timeout: float = 30.0,
        reopened: Callable[[], Archive] | None = None,
    ) -> None:
        self._archive = archive
        self._reopened = reopened
        self._replay_channel = replay_channel
        self._stall_timeout = stall_timeout
        #: Replaces a folder's path in texts.
        self.path = f"archive {archive.archive_id}"
        self._known: dict[int, Recording] = {}
        self._is_listed = False

    def refresh(self) -> None:
        """Drop the cached recordings; they are requested again when needed."""
        self._known.clear()
        self._is_listed = False

    def recordings(self) -> list[Recording]:
        """Every recording, by id."""
        if not self._is_listed:
            found = self._asked(lambda archive: archive.recordings())
            self._known = {recording.recording_id: recording for recording in found}
            self._is_listed = True
        return list(self._known.values())

    def recording(self, recording_id: int) -> Recording:
        """One recording; UsageError for an unknown id. Requests that recording only."""
        known = self._known.get(recording_id)
        if known is None:
            known = self._asked(lambda archive: archive.recording(recording_id))
            if known is None:
                raise UsageError(
                    f"the archive has no recording {recording_id}: see which with 'aeron-spark archive list'"
                )
            self._known[recording_id] = known
        return known

    def extent(self, recording_id: int) -> Extent:
        """The range of a recording that can be read now; requests the position of an active one."""
        recording = self.recording(recording_id)
        if recording.stop_position is not None:
            return Extent(
                start_position=recording.start_position, limit_position=recording.stop_position, is_active=False
            )
        position = self._asked(lambda archive: archive.max_recorded_position(recording_id))
        return Extent(start_position=recording.start_position, limit_position=position, is_active=True)

    def read(
        self,
        recording_id: int,
        start: int | None = None,
        end: int | None = None,
        *,
        limit: int | None = None,
        columns: Sequence[str] = READ_COLUMNS,
        row_capacity: int = DEFAULT_ROWS,
        byte_capacity: int | None = None,
        on_doubt: OnDoubt = warn_of_doubt,  # noqa: ARG002 - the archive checks what it replays
    ) -> Batches:
        """Messages that begin in [start, end), by one bounded replay; see `Folder.read`.

        PeerError: the archive refuses, or the replay ended early; WaitTimeoutError: no data for the stall timeout.
        """
        recording = self.recording(recording_id)
        if start is None or end is None or limit is None:
            extent = self.extent(recording_id)
            start = extent.start_position if start is None else start
            limit = extent.limit_position if limit is None else limit
            end = limit if end is None else end
        schema = schema_of(columns, is_recorded=True)
        batches = self._replayed(
            recording,
            start,
            end,
            # A frame begins at each term begin and at the limit: a replay must not end inside a frame.
            stop=min(limit, -(-end // recording.term_buffer_length) * recording.term_buffer_length),
            schema=schema,
            row_capacity=row_capacity,
            byte_capacity=byte_capacity or DEFAULT_BYTES,
        )
        return Batches(schema, batches)

    def segment_rows(self, *_: object, **__: object) -> Iterator[pa.RecordBatch]:
        """UsageError: a replay delivers messages, not segment files."""
        raise UsageError("an archive's replays give no segment files: read its folder or an object store")

    def begins_message(self, recording_id: int, position: int) -> bool:
        """Whether a replay from `position` starts with a message; the archive refuses a position inside a frame."""
        recording = self.recording(recording_id)
        term_length = recording.term_buffer_length
        stop = min(self.extent(recording_id).limit_position, position - position % term_length + term_length)
        try:
            with self._replay(recording, position, stop) as replay, replay.wait_image(self._stall_timeout) as image:
                deadline = time.monotonic() + self._stall_timeout
                while True:
                    ended = image.is_ended
                    first = image.poll_batch(_POLL_SECONDS, columns=_BOUNDARIES, row_capacity=1)
                    if first.num_rows or ended or time.monotonic() > deadline:
                        break
                self._leave(replay)
        except (PeerError, ClosedError):
            return False
        return bool(first.num_rows) and first.column(0)[0].as_py() == position

    def _replayed(
        self,
        recording: Recording,
        start: int,
        end: int,
        *,
        stop: int,
        schema: pa.Schema,
        row_capacity: int,
        byte_capacity: int,
    ) -> Iterator[pa.RecordBatch]:
        if start >= end:
            return
        polled = tuple(dict.fromkeys((*_BOUNDARIES, *(name for name in schema.names if name != RECORDING_ID.name))))
        start, opened = self._replay_at_or_after(recording, start, stop)
        if opened is None:
            return
        with opened, self._left_by_reader(opened), opened.wait_image(self._stall_timeout) as image:
            deadline = time.monotonic() + self._stall_timeout
            reached = complete = arrived = start
            while complete < end and reached < stop:
                ended = image.is_ended
                try:
                    batch = image.poll_batch(
                        _POLL_SECONDS, columns=polled, row_capacity=row_capacity, byte_capacity=byte_capacity
                    )
                    position, flow_position = image.position, image.flow_position
                except ClosedError as closed:
                    raise self._short(recording, start, reached, stop) if image.is_ended else closed from None
                if batch.num_rows:
                    complete = batch.column(1)[-1].as_py()
                    yield from _rows_before(batch, end, recording, schema)
                # A long message takes its time to come whole.
                if flow_position == arrived and position == reached and not batch.num_rows:
                    if ended:
                        raise self._short(recording, start, reached, stop)
                    if time.monotonic() > deadline:
                        raise WaitTimeoutError(
                            f"replay of recording {recording.recording_id} on {self._replay_channel} gave nothing for "
                            f"{self._stall_timeout:.0f} s at position {reached} of [{start}, {stop}): look at the archive and "
                            f"at the network between, then try again",
                            position=Position(reached),
                        )
                    continue
                deadline = time.monotonic() + self._stall_timeout
                reached, arrived = position, flow_position
            if reached < stop:
                self._leave(opened)

    def _replay_at_or_after(self, recording: Recording, start: int, stop: int) -> tuple[int, Replay | None]:
        """Start at `start`, or if that is inside a frame, at the next boundary; None where that is `stop`."""
        try:
            return start, self._replay(recording, start, stop)
        except PeerError:
            boundary = self.align(recording.recording_id, start, stop)
            if boundary == start:
                raise  # the archive had another reason
            return boundary, self._replay(recording, boundary, stop) if boundary < stop else None

    def _asked(self, request: Callable[[Archive], T]) -> T:
        """The answer, in another session if this one has ended: an archive that was started again knows none of before."""
        try:
            return request(self._archive)
        except (ClosedError, WaitTimeoutError):
            if self._reopened is None:
                raise
        self._archive = self._reopened()
        return request(self._archive)

    def _replay(self, recording: Recording, start: int, stop: int) -> Replay:
        return self._asked(lambda archive: self._replay_of(archive, recording, start, stop))

    def _replay_of(self, archive: Archive, recording: Recording, start: int, stop: int) -> Replay:
        """Add a subscription of a stream of its own, and start a replay to it.

        On the recording's stream others would come, too: replays beside, and over IPC the live stream. Nobody here would poll
        their images, so their publishers would wait; and whoever records that stream would record the replay.
        """
        stream_id = secrets.randbits(31)
        subscription = archive.client.add_subscription(self._replay_channel, stream_id)
        try:
            channel = ChannelUri.parse(self._replay_channel)
            if channel.media == "udp":
                # The archive needs a resolved port.
                channel = channel.with_params(endpoint=subscription.resolved_endpoint)
            session = archive.start_replay(
                recording.recording_id, channel, stream_id, position=start, length=stop - start
            )
        except BaseException:
            subscription.close()
            raise
        return Replay(subscription, session)

    @contextmanager
    def _left_by_reader(self, replay: Replay) -> Iterator[None]:
        try:
            yield
        except GeneratorExit:
            self._leave(replay)
            raise

    def _leave(self, replay: Replay) -> None:
        """Stop a replay that is no longer read.

        The archive would detect it only after seconds, and limits concurrent replays.
        """
        with suppress(AeronError):
            self._archive.stop_replay(replay.replay_session_id)

    def _short(self, recording: Recording, start: int, reached: int, stop: int) -> PeerError:
        return PeerError(
            f"replay of recording {recording.recording_id} on {self._replay_channel} ended at position {reached} of "
            f"[{start}, {stop}): the archive ended it or is gone, or the network was cut; try again",
            position=Position(reached),
        )


def _rows_before(batch: pa.RecordBatch, end: int, recording: Recording, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows that begin before `end`, with the recording's id, stream and session."""
    positions = batch.column(0).to_numpy()
    rows = int(positions.searchsorted(end))
    if rows == 0:
        return
    kept = batch.slice(0, rows)
    constants = {
        RECORDING_ID.name: pa.scalar(recording.recording_id, pa.int64()),
        "stream_id": pa.scalar(recording.stream_id, pa.int32()),
        "session_id": pa.scalar(recording.session_id, pa.int32()),
    }
    arrays = [pa.repeat(constants[name], rows) if name in constants else kept.column(name) for name in schema.names]
    yield pa.RecordBatch.from_arrays(arrays, schema=schema)
