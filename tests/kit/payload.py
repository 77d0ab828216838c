"""The payload rule of all tests and captured vectors, and a digest over payloads in order.

Byte j of message i of stream `stream_key` is `(stream_key*17 + i*31 + j) & 0xff`; a payload of 8 bytes or more then
begins with the int64 `stream_key << 32 | i`, little-endian. The reserved value of message i is `i * 1000003`.
The Java peers obey the same rule (tests/interop/java, Payload).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

RESERVED_FACTOR = 1_000_003

_RAMP = bytes(j & 0xFF for j in range(512))


def payload(stream_key: int, index: int, length: int) -> bytes:
    """Message `index` of stream `stream_key`, `length` bytes long."""
    phase = (stream_key * 17 + index * 31) & 0xFF
    period = _RAMP[phase : phase + 256]
    body = (period * (length // 256 + 1))[:length]
    if length < 8:
        return body
    return struct.pack("<q", stream_key << 32 | index) + body[8:]


def payloads(stream_key: int, count: int, sizes: Sequence[int], *, first: int = 0) -> Iterator[bytes]:
    """Messages first .. first+count-1, sizes taken in turn by index."""
    for index in range(first, first + count):
        yield payload(stream_key, index, sizes[index % len(sizes)])


@dataclass(slots=True)
class Digest:
    """Count, length in bytes and CRC-32 of payloads in the order they came."""

    count: int = 0
    length: int = 0
    crc: int = 0

    def add(self, body: bytes) -> None:
        """Take in the next payload."""
        self.count += 1
        self.length += len(body)
        self.crc = zlib.crc32(body, self.crc)


def expected(stream_key: int, count: int, sizes: Sequence[int], *, first: int = 0) -> Digest:
    """The digest that a reader of all these messages must end with."""
    digest = Digest()
    for body in payloads(stream_key, count, sizes, first=first):
        digest.add(body)
    return digest
