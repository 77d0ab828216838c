"""Locates the messages of a payload. Spec: 10 §15.

A payload is the content of one Aeron message, datagram or file: an optional packet header, then messages, each with its
size before it or in its own header.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from aeron_spark.errors import UsageError
from aeron_spark.names import nearest
from aeron_spark.sbe.walk import DecodeError


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """One framing: `struct` codes with their byte order; offsets and sizes in bytes.

    `packet_header`: bytes before the first message. `count`: where the number of messages is in it. `size`: the
    message's size, at `size_at` of the frame; `size_adds` is the frame's excess over that size. `skip`: from the
    frame's beginning to the SBE header. `marks`: the valid values at `mark_at`. `quiet_mark`: the beginning of a packet
    without messages; such a packet is at least `quiet_bytes` long, and no longer than a packet header.
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
    quiet_mark: bytes = b""
    quiet_bytes: int = 0


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
    # A mark is a packet's type and the length of its header: 2 has messages, 0 is a heartbeat, without a count.
    "memx": Framing(
        packet_header=20,
        count=">H",
        count_at=18,
        size=">H",
        size_adds=2,
        skip=2,
        marks=(b"\x02\x12",),
        mark_is_of_packet=True,
        quiet_mark=b"\x00\x12",
        quiet_bytes=18,
    ),
    "coinbase-md": Framing(packet_header=24, count="<B", count_at=19, size="<H"),
    "coinbase-ord": Framing(size="<H", size_at=2),
    "deribit-md": Framing(packet_header=24, count="<H", count_at=22, size="<H"),
}


_SIZES = {"u8": "B", "u16": "H", "u32": "I"}
_SETTINGS = ("lengthPrefix", "lengthIncludesSelf", "lengthAdjust", "packetHeaderBytes", "countField")
_MAX_HEADER = 1 << 20
_MAX_DIGITS = 9


def named(name: str) -> Framing:
    """The framing of a name, or of settings: `lengthPrefix=u16be,packetHeaderBytes=12`. UsageError lists the choices.

    `lengthPrefix`: the size before each message, `u8`, `u16` or `u32`, with the suffix `be` if it is big-endian;
    `lengthIncludesSelf`: whether it counts its own bytes (`true`, the default, or `false`); `lengthAdjust`: additional
    bytes by which the frame exceeds the size; `packetHeaderBytes`: bytes before the first message; `countField`: the
    number of messages of the packet, `offset:type` in that header, in the size's byte order.
    """
    if name in FRAMINGS:
        return FRAMINGS[name]
    if "=" not in name:
        raise UsageError(
            f"framing '{name}' is not one of {' '.join(FRAMINGS)}, or lengthPrefix=u16{nearest(name, FRAMINGS)}"
        )
    given: dict[str, str] = {}
    for part in name.split(","):
        key, _, value = (one.strip() for one in part.partition("="))
        if key not in _SETTINGS:
            raise UsageError(
                f"framing: there is no setting '{key}'; there are {', '.join(_SETTINGS)}{nearest(key, _SETTINGS)}"
            )
        if key in given:
            raise UsageError(f"framing: {key} stands there twice")
        given[key] = value
    return _generic(given)


def _generic(given: dict[str, str]) -> Framing:
    if "lengthPrefix" not in given:
        raise UsageError("framing: lengthPrefix is missing, the type of the size before each message (u8, u16 or u32)")
    size = _size_code("lengthPrefix", given["lengthPrefix"])
    width = struct.calcsize(size)
    included = given.get("lengthIncludesSelf", "true")
    if included not in ("true", "false"):
        raise UsageError(f"framing: lengthIncludesSelf={included} is neither true nor false")
    adds = (0 if included == "true" else width) + _whole(given, "lengthAdjust", -_MAX_HEADER)
    header, count, at = _whole(given, "packetHeaderBytes", 0), "", 0
    if "countField" in given:
        offset, _, kind = given["countField"].partition(":")
        count, at = _size_code("countField", kind), _whole({"countField": offset}, "countField", 0)
        if at + struct.calcsize(count) > header:
            raise UsageError(f"framing: countField={given['countField']} is not within packetHeaderBytes={header}")
        if count[1] != "B" and size[1] != "B" and count[0] != size[0]:
            raise UsageError("framing: countField and lengthPrefix have different byte orders")
        # The size's byte order applies to both.
        size = count[0] + size[1] if size[1] == "B" else size
    return Framing(packet_header=header, count=count, count_at=at, size=size, size_adds=adds, skip=width)


def _size_code(name: str, text: str) -> str:
    kind = text.strip().removesuffix("be")
    if kind not in _SIZES:
        raise UsageError(f"framing: {name}={text} is not one of u8, u16, u32, with be behind it if it is big-endian")
    return (">" if text.strip().endswith("be") else "<") + _SIZES[kind]


def _whole(given: dict[str, str], name: str, low: int) -> int:
    text = given.get(name, "0").strip()
    digits = text.removeprefix("-")
    if not digits.isdecimal() or len(digits) > _MAX_DIGITS or not low <= int(text) <= _MAX_HEADER:
        raise UsageError(f"framing: {name}={text} is no whole number from {low} to {_MAX_HEADER}")
    return int(text)


def frames(framing: Framing, payload: bytes | memoryview, header: int = 0) -> Iterator[tuple[int, int]]:
    """Offset of each message's SBE header, which has `header` bytes, and the end of its frame.

    DecodeError: FRAME_SIZE, an invalid size, or a stream cut inside a frame; FRAME_TYPE, an unknown mark. Frames
    yielded before the error are valid. Not for `messages`, whose ends only a walk finds.
    """
    end = len(payload)
    if not framing.size:
        yield 0, end
        return
    may_be_quiet = framing.quiet_mark and framing.quiet_bytes <= end <= framing.packet_header
    if may_be_quiet and bytes(payload[: len(framing.quiet_mark)]) == framing.quiet_mark:
        return
    if end < framing.packet_header:
        raise DecodeError(
            "FRAME_SIZE", 0, f"a packet header of {framing.packet_header} bytes, of which {end} are there"
        )
    if framing.mark_is_of_packet:
        _check_mark(framing, payload, framing.mark_at)
    left = struct.unpack_from(framing.count, payload, framing.count_at)[0] if framing.count else -1
    at = framing.packet_header
    width = struct.calcsize(framing.size)
    least = max(framing.skip + header, framing.size_at + width)
    while left != 0 and (left > 0 or at < end):
        if at + framing.size_at + width > end:
            raise DecodeError("FRAME_SIZE", at, f"{end - at} bytes, too few for a message's size")
        size = struct.unpack_from(framing.size, payload, at + framing.size_at)[0] + framing.size_adds
        if size < least or size > end - at:
            raise DecodeError(
                "FRAME_SIZE", at, f"a frame of {size} bytes, of which {least} are headers; {end - at} are there"
            )
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
