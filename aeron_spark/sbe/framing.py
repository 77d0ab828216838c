"""Where the messages of a payload begin and end. Spec: 10 §15.

A payload is what one Aeron message, datagram or file holds: perhaps a packet header, then messages, each with its size in front
or in its own header.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from aeron_spark.errors import UsageError
from aeron_spark.sbe.walk import DecodeError


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """One way to frame: `struct` codes with their byte order; offsets and sizes in bytes.

    `packet_header`: bytes before the first message. `count`: where the number of messages stands in it. `size`: the message's
    size, at `size_at` of the frame; `size_adds` is what the frame is longer than that. `skip`: from the frame's beginning to
    the SBE header. `marks`: what must stand at `mark_at`, any of them. `quiet_types`: first byte of packets without messages.
    """

    packet_header: int = 0
    count: str = ""
    count_at: int = 0
    size: str = ""
    size_at: int = 0
    size_adds: int = 0
    skip: int = 0
    marks: tuple[bytes, ...] = ()
    mark_at: int = 0
    mark_is_of_packet: bool = False
    quiet_types: bytes = b""


NONE = Framing()
MESSAGES = Framing(size="walk")

FRAMINGS = {
    "none": NONE,
    "messages": MESSAGES,
    "cme-udp": Framing(packet_header=12, size="<H", skip=2),
    "cme-tcp": Framing(packet_header=14, size="<H", skip=2, marks=(b"\xfe\xca",), mark_is_of_packet=True),
    "ilink3": Framing(size="<H", skip=4, marks=(b"\xfe\xca",), mark_at=2),
    "sofh-le4": Framing(size="<H", skip=4, marks=(b"\x50\xeb",), mark_at=2),
    "sofh": Framing(size=">I", skip=6, marks=(b"\x5b\xe0", b"\xeb\x50"), mark_at=4),
    "sofh-le6": Framing(size="<I", skip=6, marks=(b"\x50\xeb",), mark_at=4),
    "memx": Framing(packet_header=20, count=">H", count_at=18, size=">H", size_adds=2, skip=2, quiet_types=b"\0"),
    "coinbase-md": Framing(packet_header=24, count="<B", count_at=19, size="<H"),
    "coinbase-ord": Framing(size="<H", size_at=2),
    "deribit-md": Framing(packet_header=24, count="<H", count_at=22, size="<H"),
}


def named(name: str) -> Framing:
    """The framing of a name. UsageError names the choices."""
    if name not in FRAMINGS:
        raise UsageError(f"framing '{name}' is not one of {' '.join(FRAMINGS)}")
    return FRAMINGS[name]


def frames(framing: Framing, payload: bytes | memoryview) -> Iterator[tuple[int, int]]:
    """Where each message's SBE header begins, and where its frame ends.

    DecodeError: FRAME_SIZE, a size that can't be, or a stream cut inside of a frame; FRAME_TYPE, a mark that is not there. What
    came before is right. Not for `messages`, whose ends only a walk finds.
    """
    end = len(payload)
    if not framing.size:
        yield 0, end
        return
    if len(payload) < framing.packet_header:
        if framing.quiet_types and len(payload) and payload[0] in framing.quiet_types:
            return
        raise DecodeError(
            "FRAME_SIZE", 0, f"a packet header of {framing.packet_header} bytes, of which {end} are there"
        )
    if framing.quiet_types and payload[0] in framing.quiet_types:
        return
    if framing.mark_is_of_packet:
        _check_mark(framing, payload, framing.mark_at)
    left = struct.unpack_from(framing.count, payload, framing.count_at)[0] if framing.count else -1
    at = framing.packet_header
    width = struct.calcsize(framing.size)
    while left != 0 and (left > 0 or at < end):
        if at + framing.size_at + width > end:
            raise DecodeError("FRAME_SIZE", at, f"{end - at} bytes, too few for a message's size")
        size = struct.unpack_from(framing.size, payload, at + framing.size_at)[0] + framing.size_adds
        if size < max(framing.skip, framing.size_at + width) or size > end - at:
            raise DecodeError("FRAME_SIZE", at, f"a frame of {size} bytes, {end - at} are there")
        if framing.marks and not framing.mark_is_of_packet:
            _check_mark(framing, payload, at + framing.mark_at)
        yield at + framing.skip, at + size
        at += size
        left -= 1


def _check_mark(framing: Framing, payload: bytes | memoryview, at: int) -> None:
    found = bytes(payload[at : at + len(framing.marks[0])])
    if found not in framing.marks:
        wanted = " or ".join(mark.hex() for mark in framing.marks)
        raise DecodeError("FRAME_TYPE", at, f"{found.hex()} instead of {wanted}")
