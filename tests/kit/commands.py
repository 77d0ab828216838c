"""A client made by hand: commands go into the driver's ring byte by byte, answers come out of the broadcast buffer as they are.

Written from the specification alone (Spec: 01 §3-4, 03 §2-3). It is the only client of its directory: it claims space in
the ring without the atomic steps that several producers would need. Whatever a command says is sent, so a driver can be asked
for what no client library would ask.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.kit.cnc import HEADER_LENGTH, RING_TRAILER_LENGTH, Cnc
from tests.kit.wait import wait_until

ADD_PUBLICATION, REMOVE_PUBLICATION, ADD_EXCLUSIVE_PUBLICATION = 0x01, 0x02, 0x03
ADD_SUBSCRIPTION, REMOVE_SUBSCRIPTION = 0x04, 0x05
ADD_DESTINATION, REMOVE_DESTINATION = 0x07, 0x08
ADD_COUNTER, REMOVE_COUNTER, CLIENT_CLOSE = 0x09, 0x0A, 0x0B
ADD_RCV_DESTINATION, REMOVE_RCV_DESTINATION = 0x0C, 0x0D
ADD_STATIC_COUNTER, REJECT_IMAGE, REMOVE_DESTINATION_BY_ID, NEXT_SESSION_ID = 0x0F, 0x10, 0x11, 0x12

ERROR, AVAILABLE_IMAGE, PUBLICATION_READY, SUCCESS = 0x0F01, 0x0F02, 0x0F03, 0x0F04
UNAVAILABLE_IMAGE, EXCLUSIVE_PUBLICATION_READY, SUBSCRIPTION_READY = 0x0F05, 0x0F06, 0x0F07
COUNTER_READY, STATIC_COUNTER, PUBLICATION_ERROR, SESSION_ID = 0x0F08, 0x0F0B, 0x0F0C, 0x0F0D

_TAIL, _HEAD, _CORRELATION = 128, 384, 512  # of the ring's trailer
_BROADCAST_TRAILER_LENGTH, _BROADCAST_TAIL = 128, 8
_PADDING = -1
_ANSWER_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of the driver's to all clients."""

    type_id: int
    body: bytes

    @property
    def correlation_id(self) -> int:
        """What it answers; all but the answers to a subscriber's own images begin with it."""
        return int(struct.unpack_from("<q", self.body)[0])

    @property
    def error(self) -> tuple[int, str]:
        """Code and text of an ERROR."""
        code, length = struct.unpack_from("<ii", self.body, 8)
        return code, self.body[16 : 16 + length].decode("ascii", "replace")


class HandMadeClient:
    """A client of the driver in `aeron_dir`, which it alone uses; a context manager."""

    def __init__(self, aeron_dir: Path, *, first_id: int = 0) -> None:
        """Attach; ids are taken from `first_id` on, where those before are not used up already."""
        header = Cnc(aeron_dir).header()
        assert header is not None, f"no driver in {aeron_dir}"
        with (aeron_dir / "cnc.dat").open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self._ring = HEADER_LENGTH
        self._ring_capacity = header.to_driver_length - RING_TRAILER_LENGTH
        self._broadcast = HEADER_LENGTH + header.to_driver_length
        self._broadcast_capacity = header.to_clients_length - _BROADCAST_TRAILER_LENGTH
        self._next = self._i64(self._broadcast + self._broadcast_capacity + _BROADCAST_TAIL).value
        counter = self._i64(self._ring + self._ring_capacity + _CORRELATION)
        counter.value = max(counter.value, first_id)
        self.client_id = self.next_id()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.send(CLIENT_CLOSE, struct.pack("<qq", self.client_id, -1))
        self._map.close()

    # One store or load each: the driver looks at them meanwhile.
    def _i64(self, at: int) -> ctypes.c_int64:
        return ctypes.c_int64.from_buffer(self._map, at)

    def _i32(self, at: int) -> ctypes.c_int32:
        return ctypes.c_int32.from_buffer(self._map, at)

    def next_id(self) -> int:
        """A correlation id."""
        counter = self._i64(self._ring + self._ring_capacity + _CORRELATION)
        taken = counter.value
        counter.value = taken + 1
        return taken

    def send(self, type_id: int, body: bytes) -> None:
        """Write a command into the ring, as soon as there is room for it twice: the end of the ring may be too short for it."""
        trailer = self._ring + self._ring_capacity
        tail = self._i64(trailer + _TAIL)
        need = len(body) + 8 + 7 & ~7
        wait_until(
            lambda: tail.value + 2 * need - self._i64(trailer + _HEAD).value <= self._ring_capacity,
            _ANSWER_TIMEOUT_S,
            "room for a command",
        )
        index = tail.value % self._ring_capacity
        if index + need > self._ring_capacity:
            rest = self._ring_capacity - index
            tail.value += rest
            self._i32(self._ring + index + 4).value = _PADDING
            self._i32(self._ring + index).value = rest
            self.send(type_id, body)
            return
        at = self._ring + index
        tail.value += need
        self._map[at + 8 : at + 8 + len(body)] = body
        self._i32(at + 4).value = type_id
        self._i32(at).value = len(body) + 8

    def received(self) -> list[Message]:
        """What the driver has sent to all clients since the last call."""
        found = []
        end = self._i64(self._broadcast + self._broadcast_capacity + _BROADCAST_TAIL).value
        assert end - self._next <= self._broadcast_capacity, "the driver sent more than the buffer holds"
        while self._next < end:
            at = self._broadcast + self._next % self._broadcast_capacity
            length, type_id = struct.unpack_from("<ii", self._map, at)
            if type_id != _PADDING:
                found.append(Message(type_id=type_id, body=self._map[at + 8 : at + length]))
            self._next += length + 7 & ~7
        return found

    def until_answered(self) -> list[Message]:
        """All messages up to the answer of a command that is always answered, sent behind all others."""
        barrier = self.next_id()
        self.send(NEXT_SESSION_ID, struct.pack("<qqi", self.client_id, barrier, 0))
        found: list[Message] = []

        def is_answered() -> bool:
            found.extend(self.received())
            return bool(found) and any(
                one.type_id == SESSION_ID and one.correlation_id == barrier for one in reversed(found)
            )

        wait_until(is_answered, _ANSWER_TIMEOUT_S, "the driver to answer", state=lambda: found)
        return [one for one in found if one.type_id != SESSION_ID or one.correlation_id != barrier]
