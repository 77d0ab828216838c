"""Counters written into a live driver's cnc.dat by hand, as any process of its user can: many, or with hostile bytes.

Offsets by the specification (Spec: 01 §2.2, §5). They begin behind the highest id in use; the driver must add none meanwhile.
"""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.kit.cnc import HEADER_LENGTH, HEARTBEAT_OFFSET, METADATA_LENGTH, RING_TRAILER_LENGTH, VALUE_LENGTH

_HEADER = struct.Struct("<iiiii")
_ALLOCATED = 1


@dataclass(frozen=True, kw_only=True)
class Forged:
    """A counter as it shall be read."""

    type_id: int
    label: bytes = b""
    key: bytes = b""
    value: int = 0
    registration_id: int = 0
    reference_id: int = 0
    label_length: int | None = None


def stream_key(registration_id: int, session_id: int, stream_id: int, channel: bytes) -> bytes:
    """The key of a stream's counters."""
    return struct.pack("<qiii", registration_id, session_id, stream_id, len(channel)) + channel


@contextmanager
def forged(aeron_dir: Path, counters: Iterable[Forged]) -> Iterator[None]:
    """Write them for the length of a `with` block."""
    with (aeron_dir / "cnc.dat").open("r+b") as file, mmap.mmap(file.fileno(), 0) as cnc:
        _, to_driver, to_clients, metadata_bytes, _ = _HEADER.unpack_from(cnc)
        metadata = HEADER_LENGTH + to_driver + to_clients
        values = metadata + metadata_bytes
        first = 0
        while struct.unpack_from("<i", cnc, metadata + first * METADATA_LENGTH)[0] != 0:
            first += 1
        end = first
        for end, one in enumerate(counters, first):
            at, value_at = metadata + end * METADATA_LENGTH, values + end * VALUE_LENGTH
            struct.pack_into("<qqqq", cnc, value_at, one.value, one.registration_id, -1, one.reference_id)
            struct.pack_into("<q112s", cnc, at + 8, 2**63 - 1, one.key)
            length = len(one.label) if one.label_length is None else one.label_length
            struct.pack_into("<i380s", cnc, at + 128, length, one.label)
            struct.pack_into("<ii", cnc, at, _ALLOCATED, one.type_id)
        yield
        cnc[metadata + first * METADATA_LENGTH : metadata + (end + 1) * METADATA_LENGTH] = bytes(
            (end + 1 - first) * METADATA_LENGTH
        )


def set_heartbeat_back(aeron_dir: Path, seconds: float) -> None:
    """Make a driver that is paused or dead look as if it had last worked so long ago."""
    with (aeron_dir / "cnc.dat").open("r+b") as file:
        _, to_driver, *_ = _HEADER.unpack(file.read(_HEADER.size))
        file.seek(HEADER_LENGTH + to_driver - RING_TRAILER_LENGTH + HEARTBEAT_OFFSET)
        file.write(struct.pack("<q", int((time.time() - seconds) * 1000)))
