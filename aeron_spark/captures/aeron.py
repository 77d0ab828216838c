"""Aeron streams of a capture to recordings. Spec: 04 §1, 06 §7.

A stream is a session and a stream id of one flow. Its setup frame gives initial term id and term length, and so positions:
what was captured before it waits, within the budget. A datagram that was sent again, or took another way, is put where it
belongs. A session that begins again, by a setup frame of other terms or of a position behind it, begins another recording.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from aeron_spark._native._lib import lib
from aeron_spark.captures.ordering import Budget, Missing, Order, Run
from aeron_spark.captures.packets import Packets, by_value, chosen, gathered
from aeron_spark.captures.report import Imported, Log
from aeron_spark.captures.writing import Import, ImportedRecording
from aeron_spark.sbe.run import pointer

if TYPE_CHECKING:
    from aeron_spark.captures.files import CaptureFile

MOST_STREAMS = 65_536
_HEADER = 32
#: A setup frame of an earlier position, so long after the last frame, is no straggler: the session has begun again.
_RESTART_NS = 10**9
_DATAGRAM = np.dtype(
    [
        (name, np.int32)
        for name in (
            *("kind", "session_id", "stream_id", "term_id", "term_offset", "extent", "longest"),
            *("initial_term_id", "term_length", "mtu_length"),
        )
    ]
)
#: Where no setup frame tells it: the longest that there is.
_DEFAULT_MTU = 65_504


@dataclass(slots=True)
class _Stream:
    flow: int
    session_id: int
    stream_id: int
    initial_term_id: int = 0
    term_length: int = 0
    mtu_length: int = _DEFAULT_MTU
    is_given: bool = False
    is_left_out: bool = False
    #: Where its setup frame says that it begins; -1: it has none.
    set_up_at: int = -1
    order: Order | None = None
    recording: ImportedRecording | None = None
    start: int = 0
    name: str = ""
    waiting: list[tuple[np.ndarray, Packets]] = field(default_factory=list)
    waiting_bytes: int = 0


class AeronSink:
    """Takes batches of UDP packets."""

    def __init__(
        self, term_length: int | None, initial_term_id: int | None, segment_length: int, budget: Budget
    ) -> None:
        self._budget = budget
        self._term_length, self._initial_term_id = term_length, initial_term_id
        self._segment_length = segment_length
        self._streams: dict[tuple[int, int, int], _Stream] = {}

    def open(self, source: CaptureFile, target: Import, log: Log) -> None:
        """Where flows are known, recordings are made, and what happens is told."""
        self._source, self._target, self._log = source, target, log

    def add(self, packets: Packets) -> int:
        """Take a batch; the number of its packets that are Aeron's."""
        found = np.empty(len(packets), _DATAGRAM)
        lib.as_datagrams_read(
            pointer("uint8_t *", packets.content),
            pointer("int64_t *", packets.start),
            pointer("int64_t *", packets.length),
            len(packets),
            pointer("as_datagram *", found),
        )
        setups = np.flatnonzero(found["kind"] == lib.AS_DATAGRAM_SETUP).tolist()
        for before, end in pairwise((-1, *setups, len(packets))):
            if before >= 0:
                self._set_up(int(packets.flow[before]), found[before], int(packets.time_ns[before]))
            between = slice(before + 1, end)
            of_frames = chosen(found["kind"][between] == lib.AS_DATAGRAM_FRAMES)
            self._add_frames(found[between][of_frames], packets.take(between).take(of_frames))
        return int((found["kind"] != lib.AS_DATAGRAM_FOREIGN).sum())

    def _add_frames(self, frames: np.ndarray, packets: Packets) -> None:
        if not len(frames):
            return
        for key, rows in by_value(packets.flow, frames["session_id"], frames["stream_id"]):
            stream = self._stream(*key)
            if stream is not None:
                self._add(stream, frames[rows], packets.take(rows))

    def finish(self) -> None:
        """End all recordings; streams whose terms are not known are left out."""
        for stream in self._streams.values():
            if stream.waiting_bytes and not stream.is_left_out:
                self._leave_out(
                    stream,
                    "the capture has no setup frame of it, so its positions are not known; give --term-length and "
                    "--initial-term-id if you know them",
                )
            self._finish(stream)

    # -- streams -------------------------------------------------------------------------------------------------------------

    def _stream(self, flow: int, session_id: int, stream_id: int) -> _Stream | None:
        """The stream; None: there are too many."""
        key = (flow, session_id, stream_id)
        found = self._streams.get(key)
        if found is None:
            if len(self._streams) >= MOST_STREAMS:
                self._log.problem_once(
                    f"the capture has more than {MOST_STREAMS:,} streams: the others are left out; choose some with --port"
                )
                return None
            found = self._streams[key] = _Stream(flow, session_id, stream_id)
            known = self._source.flow(flow)
            found.name = f"stream {stream_id} of session {session_id} from {known.origin} to {known.endpoint}"
            if self._term_length is not None and self._initial_term_id is not None:
                found.term_length, found.initial_term_id, found.is_given = (
                    self._term_length,
                    self._initial_term_id,
                    True,
                )
        return found

    def _set_up(self, flow: int, setup: np.void, time_ns: int) -> None:
        stream = self._stream(flow, int(setup["session_id"]), int(setup["stream_id"]))
        if stream is None or stream.is_left_out:
            return
        terms = (int(setup["initial_term_id"]), int(setup["term_length"]))
        is_other = stream.term_length != 0 and terms != (stream.initial_term_id, stream.term_length)
        if is_other and stream.is_given:
            self._finish(stream)
            self._leave_out(
                stream,
                f"its setup frame has initial term id {terms[0]} and term length {terms[1]}, not those of "
                "--initial-term-id and --term-length",
            )
            return
        term_count = (int(setup["term_id"]) - terms[0]) % 2**32
        position = term_count * terms[1] + int(setup["term_offset"]) if term_count < 2**31 else -1
        if stream.order is not None:
            is_behind = 0 <= position < stream.order.next and time_ns - stream.order.last_ns > _RESTART_NS
            if not (is_other or is_behind):
                return
            self._finish(stream)
        stream.initial_term_id, stream.term_length = terms
        stream.mtu_length, stream.set_up_at = int(setup["mtu_length"]), position
        waiting, stream.waiting = stream.waiting, []
        self._budget.give(stream.waiting_bytes)
        stream.waiting_bytes = 0
        for frames, packets in waiting:
            self._add(stream, frames, packets)

    def _leave_out(self, stream: _Stream, why: str) -> None:
        self._log.problem(f"{stream.name} is left out{' from there on' if stream.order else ''}: {why}")
        stream.is_left_out = True
        if stream.order is not None:
            stream.order.drop()
        stream.waiting.clear()
        self._budget.give(stream.waiting_bytes)
        stream.waiting_bytes = 0
        self._end(stream)

    def _wait(self, stream: _Stream, frames: np.ndarray, packets: Packets) -> None:
        """Keep copies until a setup frame comes: the columns are used again for the next batch, and a few rows hold no more."""
        content, bounds = gathered(packets.content, packets.start, packets.length)
        kept = replace(packets.take(np.arange(len(packets))), content=content, start=bounds[:-1])
        stream.waiting.append((frames.copy(), kept))
        stream.waiting_bytes += kept_bytes(kept)
        self._budget.take(kept_bytes(kept))
        if self._budget.is_used_up:
            self._leave_out(
                stream, "too much of it was captured before its setup frame; give --term-length and --initial-term-id"
            )

    def _add(self, stream: _Stream, frames: np.ndarray, packets: Packets) -> None:
        if stream.is_left_out:
            return
        if not stream.term_length:
            self._wait(stream, frames, packets)
            return
        terms = (frames["term_id"] - np.int32(stream.initial_term_id)).astype(np.int64)
        offset, extent = frames["term_offset"].astype(np.int64), frames["extent"].astype(np.int64)
        position = terms * stream.term_length + offset
        is_possible = (terms >= 0) & (offset + extent <= stream.term_length) & (frames["longest"] <= stream.mtu_length)
        if not is_possible.all():
            self._log.problem(
                f"{stream.name}: {int((~is_possible).sum()):,} datagrams do not fit its terms and its MTU, and are left out"
            )
            position, extent, packets = position[is_possible], extent[is_possible], packets.take(is_possible)
            if not len(position):
                return
        if stream.order is None:
            first = int(position.min())
            first = min(first, stream.set_up_at) if stream.set_up_at >= 0 else first
            stream.order = Order(first, window=stream.term_length, trim=_without_frames, budget=self._budget)
        self._take(
            stream,
            stream.order.add(packets.content, position, extent, packets.start, packets.length, packets.time_ns),
        )

    def _finish(self, stream: _Stream) -> None:
        """Write what waits, and end the recording."""
        order = stream.order
        if order is not None and not stream.is_left_out:
            self._take(stream, order.finish())
            stream.order = None
            self._log.repeated += order.repeated
            if order.early:
                self._log.problem(
                    f"{stream.name}: {order.early:,} datagrams begin before position {order.first}, where its first recording "
                    "had begun when they came, and are left out: capture from before the stream begins"
                )
            if order.contradicting:
                self._log.problem(
                    f"{stream.name}: {order.contradicting:,} datagrams contradict others at their positions, and are left out"
                )
        self._end(stream)

    # -- recordings ----------------------------------------------------------------------------------------------------------

    def _take(self, stream: _Stream, pieces: Iterator[Run | Missing]) -> None:
        for piece in pieces:
            if isinstance(piece, Missing):
                self._log.gap(stream.name, piece.start, piece.end)
                self._end(stream)
                continue
            recording = stream.recording or self._begin(stream, piece)
            if recording is None:
                return
            recording.add_frames(piece.content, piece.start, piece.length, piece.time_ns)
            self._log.imported += len(piece.start)

    def _begin(self, stream: _Stream, piece: Run) -> ImportedRecording | None:
        """Its next recording; None: there is no room for one."""
        if why := self._target.no_room():
            self._leave_out(stream, why)
            return None
        flow = self._source.flow(stream.flow)
        channel = f"aeron:udp?endpoint={flow.endpoint}"
        stream.start = piece.position
        stream.recording = ImportedRecording(
            self._target,
            {
                "start_timestamp_ms": int(piece.time_ns[0]) // 1_000_000,
                "start_position": piece.position,
                "initial_term_id": stream.initial_term_id,
                "segment_file_length": max(self._segment_length, stream.term_length),
                "term_buffer_length": stream.term_length,
                "mtu_length": stream.mtu_length,
                "session_id": stream.session_id,
                "stream_id": stream.stream_id,
                "stripped_channel": channel,
                "original_channel": channel,
                "source_identity": flow.origin,
            },
        )
        return stream.recording

    def _end(self, stream: _Stream) -> None:
        if stream.recording is None:
            return
        flow = self._source.flow(stream.flow)
        self._log.recordings.append(
            Imported(
                recording_id=stream.recording.recording_id,
                stream_id=stream.stream_id,
                session_id=stream.session_id,
                channel=f"aeron:udp?endpoint={flow.endpoint}",
                source=flow.origin,
                start_position=stream.start,
                stop_position=stream.recording.end(),
            )
        )
        stream.recording = None


def kept_bytes(packets: Packets) -> int:
    """Memory of packets that wait."""
    return len(packets.content) + 100 * len(packets)


def _without_frames(body: bytes, skip: int) -> bytes | None:
    """A datagram without the frames of its first `skip` bytes of term."""
    at = 0
    while at < min(skip, len(body)):
        at += (int.from_bytes(body[at : at + 4], "little") + _HEADER - 1) // _HEADER * _HEADER
    return body[at:] if at == skip and at < len(body) else None
