"""Puts the IP fragments of UDP datagrams, or of TCP segments, together. A datagram takes the place of its last fragment.

The pieces must tile it exactly, and its checksum, where it has one, must be right: identifications are used again, so pieces of
two datagrams can have the same. Fragments of other protocols stay what they are.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from aeron_spark._native._lib import lib

if TYPE_CHECKING:
    from aeron_spark.captures.packets import Flow, Packets

#: Kind of a packet that is, or is to be, a part of a whole datagram.
PIECE = lib.AS_CAPTURE_MALFORMED + 1

_MORE = 1 << 31
_MOST_PENDING = 1024
_LONGEST = 65_535
_UDP_HEADER, _TCP_HEADER = 8, 20
_UDP, _TCP = 17, 6
_SYN, _RST = 2, 4
_ONES = 0xFFFF


@dataclass(slots=True)
class _Datagram:
    pieces: dict[int, bytes] = field(default_factory=dict)
    held: int = 0
    end: int = -1

    def body(self) -> bytes | None:
        """All of it; None: pieces are missing, or overlap."""
        at = 0
        for offset in sorted(self.pieces):
            if offset != at:
                return None
            at += len(self.pieces[offset])
        return b"".join(self.pieces[offset] for offset in sorted(self.pieces)) if at == self.end else None


class Fragments:
    """What is not complete yet: at most a thousand datagrams of at most 64 KiB, of which the oldest goes first."""

    def __init__(self, kind: int, flow_at: Callable[[int], Flow], flow_of: Callable[[int, int, int], int]) -> None:
        self._kind, self._flow_at, self._flow_of = kind, flow_at, flow_of
        self._protocol = _TCP if kind == lib.AS_CAPTURE_TCP else _UDP
        self._pending: dict[tuple[int, int], _Datagram] = {}
        self._given_up = 0

    @property
    def incomplete(self) -> int:
        """Datagrams of which fragments are missing or wrong, so far."""
        return self._given_up + len(self._pending)

    def join(self, packets: Packets) -> Packets:
        """The packets with whole datagrams in the place of last fragments; the others are their pieces."""
        rows = np.flatnonzero(packets.kind == lib.AS_CAPTURE_FRAGMENT)
        end, added = len(packets.content), []
        for row in rows.tolist():
            of = self._flow_at(int(packets.flow[row]))
            if not packets.length[row] or of.number != self._protocol:
                continue
            packets.kind[row] = PIECE
            body = self._add(packets, row)
            if body is None:
                continue
            header = _header_size(of, body)
            flow = self._flow_of(int(packets.flow[row]), _number(body, 0), _number(body, 2)) if header else -1
            if flow < 0:
                self._given_up += 1
                continue
            packets.kind[row], packets.flow[row] = self._kind, flow
            packets.start[row], packets.length[row] = end + header, len(body) - header
            if of.number == _TCP:  # as `read_tcp` in C
                flags = packets.more[row] = body[13]
                packets.sequence[row] = (_number(body, 4, 4) + bool(flags & _SYN)) % 2**32
                packets.length[row] *= not flags & _RST
            added.append(np.frombuffer(body, np.uint8))
            end += len(body)
        return replace(packets, content=np.concatenate([packets.content, *added])) if added else packets

    def _add(self, packets: Packets, row: int) -> bytes | None:
        """The datagram that this fragment completes."""
        start, length, more = int(packets.start[row]), int(packets.length[row]), int(packets.more[row])
        offset, key = more & (_MORE - 1), (int(packets.flow[row]), int(packets.sequence[row]))
        datagram = self._pending.get(key)
        body = packets.content[start : start + length].tobytes()
        if datagram is not None and datagram.pieces.get(offset) == body:
            return None
        if datagram is not None and (offset in datagram.pieces or datagram.held + length > _LONGEST):
            del self._pending[key]  # of another datagram of the same identification
            self._given_up += 1
            datagram = None
        if datagram is None:
            if len(self._pending) >= _MOST_PENDING:
                del self._pending[next(iter(self._pending))]
                self._given_up += 1
            datagram = self._pending[key] = _Datagram()
        datagram.pieces[offset] = body
        datagram.held += length
        if not more & _MORE:
            datagram.end = offset + length
        if datagram.held != datagram.end:
            return None
        whole = datagram.body()
        if whole is not None:
            del self._pending[key]
        return whole


def _number(body: bytes, at: int, size: int = 2) -> int:
    return int.from_bytes(body[at : at + size], "big")


def _header_size(flow: Flow, body: bytes) -> int:
    """Of a datagram or segment; 0: the bytes are none."""
    if flow.number == _TCP:
        size = (body[12] >> 4) * 4 if len(body) >= _TCP_HEADER else 0
        return size if _TCP_HEADER <= size <= len(body) and _is_intact(flow, body) else 0
    is_right = len(body) >= _UDP_HEADER and _number(body, 4) == len(body)
    return _UDP_HEADER if is_right and (not _number(body, 6) or _is_intact(flow, body)) else 0


def _is_intact(flow: Flow, body: bytes) -> bool:
    """Whether the checksum is right: all of it and its addresses give only ones, in ones' complement."""
    addresses = b"".join(ipaddress.ip_address(one).packed for one in (flow.source, flow.target))
    content = addresses + bytes([0, flow.number]) + len(body).to_bytes(2, "big") + body
    total = int(np.frombuffer(content + bytes(len(content) % 2), ">u2").sum(dtype=np.int64))
    while total > _ONES:
        total = (total & _ONES) + (total >> 16)
    return total == _ONES
