"""What a compressed file holds: all that can be decompressed, up to its end or to where it is damaged.

gzip is decompressed by zlib, zstd by Arrow. A call of theirs that fails gives nothing of what it had decompressed. So where
gzip is damaged, it is decompressed again byte by byte; of zstd, no call gets more than a block.
"""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

#: What reading raises where a file is damaged.
FAILURES = (OSError, EOFError, zlib.error, pa.ArrowInvalid)

_ENDS = "it ends within compressed data: it is truncated, or still being written"
_READ = 64 << 10
_CHUNK = 256 << 10
_GZIP_MAGIC = b"\x1f\x8b\x08"
#: A header and a checksum of gzip, and any window.
_GZIP_WINDOW = 31
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
#: Without the last 4 of its bits, which are free.
_SKIPPED_MAGIC = 0x184D2A5
_HAS_CHECKSUM = 4
#: A block of one byte, as often as its length tells.
_REPEATED = 1


class Decompressed:
    """Reads chunks, of which each is good until the next."""

    def __init__(self, chunks: Iterator[bytes | memoryview]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readinto1(self, room: memoryview) -> int:
        """Fill some of the room; 0 at the end."""
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        count = min(len(room), len(self._rest))
        room[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def decompressed(file: io.BufferedReader[Any]) -> Decompressed | io.BufferedReader[Any]:
    """What the file holds, decompressed where its first bytes say so."""
    first = file.peek(4)[:4]
    if first.startswith(_GZIP_MAGIC):
        return Decompressed(_gunzipped(file))
    return Decompressed(_unzstd(file)) if first == _ZSTD_MAGIC or _is_skipped(first) else file


def _gunzipped(file: io.BufferedReader[Any]) -> Iterator[bytes]:
    """Members one behind the other, each with or without zeros behind it."""
    data = file.read(_READ)
    while data:
        member = zlib.decompressobj(_GZIP_WINDOW)
        while data and not member.eof:
            before = member.copy()
            try:
                chunk = member.decompress(data, _CHUNK)
            except zlib.error:
                yield _before_damage(before, data)
                raise
            yield chunk
            data = member.unused_data if member.eof else member.unconsumed_tail or file.read(_READ)
        if not member.eof:
            yield member.flush()
            raise EOFError(_ENDS)
        data = data.lstrip(b"\0")
        while not data and file.peek(1):
            data = file.read(_READ).lstrip(b"\0")


def _before_damage(member: Any, data: bytes) -> bytes:
    """What a member gives of these bytes before it fails."""
    found = bytearray()
    try:
        for at in range(len(data)):
            rest = data[at : at + 1]
            while byte := member.decompress(rest, 1):
                found += byte
                rest = member.unconsumed_tail
    except zlib.error:
        return bytes(found)
    raise AssertionError("zlib failed, and then did not")


def _unzstd(file: io.BufferedReader[Any]) -> Iterator[memoryview]:
    """Frames one behind the other.

    Arrow copies what it has into the room before it decompresses the next block, and fails there without a word of how much
    that was. The noise shows it: what was not copied to is unchanged. One time in 256, the last byte is what the noise was.
    """
    stream = pa.CompressedInputStream(pa.PythonFile(_Pieces(_pieces(file)), "r"), "zstd")
    room, noise = bytearray(_CHUNK), os.urandom(_CHUNK)
    while True:
        room[:] = noise
        try:
            got = stream.readinto(room)
        except FAILURES:
            got = next((end for end in range(_CHUNK, 0, -1) if room[end - 1] != noise[end - 1]), 0)
            yield memoryview(room)[:got]
            raise
        if not got:
            return
        yield memoryview(room)[:got]


class _Pieces(io.RawIOBase):
    """Gives a reader, with each call, bytes of one piece."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        self._rest = self._rest or next(self._pieces, b"")
        piece, self._rest = self._rest[:size], self._rest[size:]
        return piece


def _is_skipped(magic: bytes) -> bool:
    """Whether a frame holds something for other programs. Spec: RFC 8878, 3.1.2."""
    return len(magic) == len(_ZSTD_MAGIC) and int.from_bytes(magic, "little") >> 4 == _SKIPPED_MAGIC


def _pieces(file: io.BufferedReader[Any]) -> Iterator[bytes]:
    """Headers and blocks of frames, without those that hold something for other programs. Spec: RFC 8878, 3.1."""
    while magic := file.read(4):
        if _is_skipped(magic):
            left = int.from_bytes(file.read(4), "little")
            while left and (skipped := file.read(min(left, _READ))):
                left -= len(skipped)
            if left:
                raise EOFError(_ENDS)
            continue
        head = magic + file.read(1)
        flags = head[-1]
        is_single = flags & 0x20
        yield head + file.read((not is_single) + (0, 1, 2, 4)[flags & 3] + (is_single >> 5, 2, 4, 8)[flags >> 6])
        is_last = 0
        while not is_last and (header := file.read(3)):
            number = int.from_bytes(header, "little")
            is_last, kind, length = number & 1, number >> 1 & 3, number >> 3
            yield header + file.read(1 if kind == _REPEATED else length)
        if flags & _HAS_CHECKSUM:
            yield file.read(4)
