"""Payloads of other protocols to recordings of messages: a datagram, or what a framing finds in it or in a connection's bytes.

A recording has the messages of one flow, each with the packet's time as reserved value. Its frames are made here, as a
publication would make them; nothing of them was captured but the payload.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from aeron_spark.captures.ordering import Budget, Missing, Order, Run
from aeron_spark.captures.packets import Packets, by_value, chosen, gathered
from aeron_spark.captures.report import Imported, Log
from aeron_spark.captures.writing import Import, ImportedRecording
from aeron_spark.errors import UsageError
from aeron_spark.sbe.framing import Framing
from aeron_spark.sbe.packets import Frames, cut

if TYPE_CHECKING:
    from aeron_spark.captures.files import CaptureFile

TERM_LENGTH = 16 << 20
STREAM_ID = 1001
_MTU = 1408
#: Longest message that the terms hold.
_MOST = TERM_LENGTH // 8
_FIN, _SYN, _RST, _PSH = 1, 2, 4, 8
_WINDOW = 1 << 30


@dataclass(slots=True)
class _Flow:
    number: int
    name: str
    recording: ImportedRecording | None = None
    #: UDP: latest time so far.
    last_ns: int = 0
    #: TCP: order of its bytes, sequence number of position 0, and position behind its last byte; -1: it has not ended.
    order: Order | None = None
    first: int = 0
    end: int = -1
    #: TCP: position of the FIN, which has a sequence number of its own; -1: there was none.
    fin: int = -1
    tail: bytes = b""
    #: Its SYN was captured, so there is nothing before position 0.
    is_whole: bool = False
    #: Nothing more of it can be read, or written.
    is_left_out: bool = False


class _Sink(ABC):
    """What UDP and TCP have in common: recordings of flows."""

    def __init__(self, framing: Framing, segment_length: int, budget: Budget) -> None:
        self._framing = framing
        self._budget = budget
        self._segment_length = max(segment_length, TERM_LENGTH)
        self._flows: dict[int, _Flow] = {}

    def open(self, source: CaptureFile, target: Import, log: Log) -> None:
        """Where flows are known, recordings are made, and what happens is told."""
        self._source, self._target, self._log = source, target, log

    def add(self, packets: Packets) -> int:
        """Take a batch; the number of its packets that belong to flows."""
        for (number,), rows in by_value(packets.flow):
            self._add(self._flow(number), packets.take(rows))
        return len(packets)

    def finish(self) -> None:
        """End all recordings."""
        for flow in self._flows.values():
            self._close(flow)

    @abstractmethod
    def _add(self, flow: _Flow, packets: Packets) -> None:
        """Take the packets of a flow."""

    def _close(self, flow: _Flow) -> None:
        """No more comes of a flow."""
        self._end(flow)

    def _flow(self, number: int) -> _Flow:
        if number not in self._flows:
            known = self._source.flow(number)
            self._flows[number] = _Flow(number, f"{known.protocol} from {known.origin} to {known.endpoint}")
        return self._flows[number]

    def _write(
        self, flow: _Flow, content: np.ndarray, start: np.ndarray, length: np.ndarray, time_ns: np.ndarray
    ) -> None:
        if not len(start) or flow.is_left_out:
            return
        if flow.recording is None:
            if why := self._target.no_room():
                self._log.problem(f"{flow.name} is left out from there on: {why}")
                flow.is_left_out = True
                return
            flow.recording = self._begin(flow, int(time_ns[0]))
        flow.recording.add_messages(content, start, length, time_ns)
        self._log.imported += len(start)

    def _begin(self, flow: _Flow, time_ns: int) -> ImportedRecording:
        known = self._source.flow(flow.number)
        channel = f"aeron:udp?endpoint={known.endpoint}"
        values: dict[str, int | str] = {
            "start_timestamp_ms": time_ns // 1_000_000, "start_position": 0, "initial_term_id": 0,
            "segment_file_length": self._segment_length, "term_buffer_length": TERM_LENGTH, "mtu_length": _MTU,
            "session_id": flow.number, "stream_id": STREAM_ID, "stripped_channel": channel, "original_channel": channel,
            "source_identity": f"{known.protocol}:{known.origin}",
        }  # fmt: skip
        return ImportedRecording(self._target, values)

    def _end(self, flow: _Flow) -> None:
        if flow.recording is None:
            return
        known = self._source.flow(flow.number)
        self._log.recordings.append(
            Imported(
                recording_id=flow.recording.recording_id,
                stream_id=STREAM_ID,
                session_id=flow.number,
                channel=f"aeron:udp?endpoint={known.endpoint}",
                source=f"{known.protocol}:{known.origin}",
                start_position=0,
                stop_position=flow.recording.end(),
            )
        )
        flow.recording = None


class UdpSink(_Sink):
    """Takes batches of UDP packets."""

    def _add(self, flow: _Flow, packets: Packets) -> None:
        times = np.maximum(np.maximum.accumulate(packets.time_ns), flow.last_ns)
        flow.last_ns = int(times[-1])
        if not self._framing.size:
            self._write_possible(flow, packets.content, packets.start, packets.length, times)
            return
        content, offsets = gathered(packets.content, packets.start, packets.length)
        found = frames_of(self._framing, content, offsets)
        is_good = np.ones(len(found.starts), bool) if found.errors is None else found.errors == 0
        if not is_good.all():
            self._log.problem(
                f"{flow.name}: {int((~is_good).sum()):,} datagrams do not have the framing; what follows in them is left out"
            )
        self._write_possible(
            flow, content, found.starts[is_good], (found.ends - found.starts)[is_good], times[found.payload[is_good]]
        )

    def _write_possible(
        self, flow: _Flow, content: np.ndarray, start: np.ndarray, length: np.ndarray, time_ns: np.ndarray
    ) -> None:
        """Without what is too long: where a network card splits datagrams, their headers bound no length."""
        if too_long := int((length > _MOST).sum()):
            self._log.problem(f"{flow.name}: {too_long:,} messages of more than {_MOST:,} bytes are left out")
        rows = chosen(length <= _MOST)
        self._write(flow, content, start[rows], length[rows], time_ns[rows])


class TcpSink(_Sink):
    """Takes batches of TCP segments. A direction of a connection is a flow; a gap in it ends what can be read of it."""

    def __init__(self, framing: Framing, segment_length: int, budget: Budget) -> None:
        if not framing.size:
            raise UsageError(
                "TCP has no messages of its own: give the framing (docs/sbe.md, Several messages in a payload)"
            )
        if framing.packet_header:
            raise UsageError("a framing with a packet header is of datagrams: a connection has no packets")
        super().__init__(framing, segment_length, budget)

    def _add(self, flow: _Flow, packets: Packets) -> None:
        """In stretches between the beginnings and ends of connections: ports are used again."""
        begins = np.flatnonzero(packets.more & _SYN)
        ends = np.flatnonzero(packets.more & (_FIN | _RST)) + 1
        for part in np.split(np.arange(len(packets)), np.union1d(begins, ends)):
            if not len(part):
                continue
            of_part = packets.take(part)
            first = int(of_part.sequence[0])
            if int(of_part.more[0]) & _SYN and (flow.order is None or first != flow.first):
                self._renew(flow)
                flow.order, flow.first, flow.is_whole = self._order(), first, True
            payloads = self._without_keep_alives(flow, of_part.take(of_part.length > 0))
            own = self._count_own(flow, payloads)
            self._add_bytes(flow, payloads.take(slice(own)))
            if own < len(payloads):
                self._renew(flow)
                self._add_bytes(flow, payloads.take(slice(own, None)))
            if int(of_part.more[-1]) & (_FIN | _RST) and flow.order is not None:
                last = int(_positions(flow, flow.order, of_part)[-1] + of_part.length[-1])
                flow.end = max(flow.end, flow.order.next, last)
                flow.fin = last if int(of_part.more[-1]) & _FIN else flow.fin

    def _renew(self, flow: _Flow) -> None:
        """Another connection begins."""
        self._close(flow)
        flow.order, flow.end, flow.fin, flow.is_left_out, flow.is_whole = None, -1, -1, False, False

    def _without_keep_alives(self, flow: _Flow, packets: Packets) -> Packets:
        """Without those behind a FIN: they have its sequence number, and a byte that is none of the connection's."""
        if flow.order is None or flow.fin < 0:
            return packets
        is_data = (packets.length > 1) | (_positions(flow, flow.order, packets) != flow.fin)
        self._log.repeated += int((~is_data).sum())
        return packets.take(chosen(is_data))

    def _count_own(self, flow: _Flow, packets: Packets) -> int:
        """How many are of the connection; behind its end others can be of one whose beginning was not captured.

        What lies within it was sent again, or late. What goes on where it ended shows that it has not: a RST that does not fit
        is ignored by who receives it.
        """
        if flow.order is None or flow.end < 0 or not len(packets):
            return len(packets)
        position = _positions(flow, flow.order, packets)
        ends = np.append(max(flow.end, flow.order.next), position + packets.length)
        others = np.flatnonzero((position < 0) | (position > np.maximum.accumulate(ends)[:-1]))
        return int(others[0]) if len(others) else len(packets)

    def _add_bytes(self, flow: _Flow, packets: Packets) -> None:
        if not len(packets) or flow.is_left_out:
            return
        if flow.order is None:
            keep_alives = _leading_keep_alives(packets)
            self._log.repeated += keep_alives
            packets = packets.take(slice(keep_alives, None))
            if not len(packets):
                return
            ahead = (packets.sequence - packets.sequence[0]).view(np.int32)
            flow.order, flow.first = self._order(), (int(packets.sequence[0]) + int(ahead.min())) % 2**32
        position = _positions(flow, flow.order, packets)
        self._take(
            flow,
            flow.order.add(packets.content, position, packets.length, packets.start, packets.length, packets.time_ns),
        )

    def _take(self, flow: _Flow, pieces: Iterator[Run | Missing]) -> None:
        for piece in pieces:
            if isinstance(piece, Missing):
                self._log.gap(flow.name, piece.start, piece.end)
                self._lose(flow, f"bytes {piece.start} to {piece.end} are missing")
                return
            if flow.is_left_out:
                return
            self._cut(flow, piece)

    def _lose(self, flow: _Flow, why: str) -> None:
        self._log.problem(
            f"{flow.name}: {why}, and where the next message begins is not known; the rest of it is left out"
        )
        flow.is_left_out = True
        self._keep(flow, b"")
        if flow.order is not None:
            flow.order.drop()

    def _cut(self, flow: _Flow, run: Run) -> None:
        """The whole messages of the bytes so far; the rest waits for more."""
        gathered_bytes, offsets = gathered(run.content, run.start, run.length)
        content = np.concatenate([np.frombuffer(flow.tail, np.uint8), gathered_bytes])
        ends = offsets[1:] + len(flow.tail)
        found = frames_of(self._framing, content, np.array([0, len(content)], np.int64))
        good = len(found.starts)
        if found.errors is not None and good and found.errors[-1]:
            good -= 1
        lengths = found.ends[:good] - found.starts[:good]
        # What is too long begins no message, whether it came in one piece or its end is still to come.
        good = int(np.argmax(lengths > _MOST)) if (lengths > _MOST).any() else good
        times = run.time_ns[np.searchsorted(ends, found.ends[:good])]
        self._write(flow, content, found.starts[:good], lengths[:good], times)
        rest = int(found.ends[good - 1]) if good else 0
        self._keep(flow, content[rest:].tobytes())
        if flow.tail and not self._may_begin_a_message(flow.tail):
            begin = run.end - len(flow.tail)
            self._lose(flow, f"byte {begin} does not begin a message of the framing of up to {_MOST:,} bytes")
        elif self._budget.is_used_up:
            self._lose(flow, "too many connections wait for the rest of a message; choose some with --port")

    def _order(self) -> Order:
        return Order(0, window=_WINDOW, trim=lambda body, skip: body[skip:], budget=self._budget)

    def _keep(self, flow: _Flow, tail: bytes) -> None:
        self._budget.give(len(flow.tail))
        flow.tail = tail
        self._budget.take(len(tail))

    def _may_begin_a_message(self, tail: bytes) -> bool:
        framing = self._framing
        width = struct.calcsize(framing.size)
        mark = tail[framing.mark_at : framing.mark_at + 2]
        if framing.marks and len(mark) == len(framing.marks[0]) and mark not in framing.marks:
            return False
        if len(tail) < framing.size_at + width:
            return True
        size = struct.unpack_from(framing.size, tail, framing.size_at)[0] + framing.size_adds
        is_possible = max(framing.skip, framing.size_at + width) <= size <= _MOST + framing.skip
        return bool(is_possible and size > len(tail))

    def _close(self, flow: _Flow) -> None:
        if flow.order is not None:
            self._take(flow, flow.order.finish())
            self._log.repeated += flow.order.repeated
            if flow.order.early and not flow.is_whole:
                self._log.problem(
                    f"{flow.name}: {flow.order.early:,} segments begin before its first captured byte, and what they have of "
                    "before it is left out: capture from before the connection begins"
                )
        if flow.tail:
            self._log.problem(f"{flow.name}: its last message is not whole; {len(flow.tail):,} bytes are left out")
        self._keep(flow, b"")
        super()._close(flow)


def _positions(flow: _Flow, order: Order, packets: Packets) -> np.ndarray:
    """Where bytes of a connection are. Sequence numbers wrap: each is the nearest to what is expected."""
    expected = np.uint32((flow.first + order.next) & 0xFFFFFFFF)
    return (packets.sequence - expected).view(np.int32).astype(np.int64) + order.next


def _leading_keep_alives(packets: Packets) -> int:
    """How many begin a connection that is known by nothing else: a byte that the other side has already, of any value.

    Spec: RFC 9293, 3.8.4. A byte that is sent for its own sake has PSH.
    """
    is_data = (packets.length > 1) | (packets.more & _PSH > 0)
    return int(np.argmax(is_data)) if is_data.any() else len(packets)


def frames_of(framing: Framing, content: np.ndarray, offsets: np.ndarray) -> Frames:
    """The messages of payloads, without what frames them."""
    return cut(framing, pa.py_buffer(content), offsets, 0, _never, header=0)


def _never(_content: object, _start: int, _end: int) -> tuple[int, int]:
    raise AssertionError("a framing with sizes needs no walk")
