"""Files of captured packets, which people give where payloads are wanted: known by their first bytes."""

from __future__ import annotations

import re
from contextlib import suppress

import pyarrow as pa

# Magic number and version of pcap, in either byte order, with times in micro- or nanoseconds.
_PCAP = re.compile(
    rb"(?:\xd4\xc3\xb2\xa1|\x4d\x3c\xb2\xa1)\x02\x00\x04\x00|(?:\xa1\xb2\xc3\xd4|\xa1\xb2\x3c\x4d)\x00\x02\x00\x04"
)
# Type, any length and byte order of a section header.
_PCAPNG = re.compile(rb"\n\r\r\n.{4}(?:\x1a\x2b\x3c\x4d|\x4d\x3c\x2b\x1a)", re.DOTALL)
_COMPRESSED = {b"\x1f\x8b\x08": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_HEAD = 12


def capture_format(content: bytes) -> str | None:
    """`pcap` or `pcapng`, with how it is compressed; None: it is no capture file."""
    if _PCAP.match(content):
        return "pcap"
    if _PCAPNG.match(content):
        return "pcapng"
    codec = compression(content)
    inner = capture_format(_head(content, codec)) if codec else None
    return f"{inner}, compressed by {codec}" if inner else None


def compression(content: bytes) -> str | None:
    """`gzip` or `zstd` where a file is compressed so, else None."""
    codec = next((codec for magic, codec in _COMPRESSED.items() if content.startswith(magic)), None)
    return codec if codec and _head(content, codec) else None


def _head(content: bytes, codec: str) -> bytes:
    """The first bytes of what was compressed; none: it can't be decompressed."""
    with suppress(OSError, pa.ArrowInvalid):
        return bytes(pa.CompressedInputStream(pa.BufferReader(content), codec).read(_HEAD))
    return b""
