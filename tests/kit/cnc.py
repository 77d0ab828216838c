"""A reader of `cnc.dat`, written from the specification alone: the tests' own witness beside the stock tools.

Spec: 01 §2, §3.1, §5, §8 (header, to-driver trailer, counters, errors). It only reads, copies what it needs and maps nothing
for longer than a call, so a test can look at a directory whose driver was killed.
"""

from __future__ import annotations

import mmap
import struct
import time
from dataclasses import dataclass
from pathlib import Path

HEADER_LENGTH = 128
RING_TRAILER_LENGTH = 768
HEARTBEAT_OFFSET = 640
PID_OFFSET = 40
METADATA_LENGTH = 512
VALUE_LENGTH = 128
ERROR_HEADER_LENGTH = 24
ALLOCATED = 1
CLEAN_END = -1

_HEADER = struct.Struct("<6i3qi")


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The metadata header; lengths in bytes, the liveness timeout in ns, the start in epoch ms."""

    version: int
    to_driver_length: int
    to_clients_length: int
    counters_metadata_length: int
    counters_values_length: int
    error_log_length: int
    client_liveness_ns: int
    start_ms: int
    pid: int
    file_page_size: int

    def value_at(self, counter_id: int) -> int:
        """Offset of a counter's value in the file."""
        metadata = HEADER_LENGTH + self.to_driver_length + self.to_clients_length
        return metadata + self.counters_metadata_length + counter_id * VALUE_LENGTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """One allocated counter; the key is all its 112 bytes."""

    id: int
    type_id: int
    key: bytes
    label: str
    value: int
    registration_id: int
    owner_id: int
    reference_id: int


class Cnc:
    """`cnc.dat` of an Aeron directory; every call reads the file as it is then."""

    def __init__(self, aeron_dir: Path) -> None:
        self.path = aeron_dir / "cnc.dat"

    def header(self) -> Header | None:
        """The header, or None while the file is absent, too short or not ready."""
        try:
            with self.path.open("rb") as file:
                raw = file.read(HEADER_LENGTH)
        except FileNotFoundError:
            return None
        if len(raw) < HEADER_LENGTH:
            return None
        header = Header(**dict(zip(Header.__slots__, _HEADER.unpack_from(raw), strict=True)))
        return header if header.version != 0 else None

    def heartbeat_ms(self) -> int:
        """The driver's heartbeat in epoch ms, 0 before it is ready, -1 after a clean end."""
        header = self.header()
        if header is None:
            return 0
        offset = HEADER_LENGTH + header.to_driver_length - RING_TRAILER_LENGTH + HEARTBEAT_OFFSET
        with self.path.open("rb") as file:
            file.seek(offset)
            raw = file.read(8)
        return int(struct.unpack("<q", raw)[0]) if len(raw) == 8 else 0

    def is_live(self, *, within_ms: int = 10_000) -> bool:
        """Whether a driver is ready in this directory and its heartbeat is younger than `within_ms`."""
        heartbeat = self.heartbeat_ms()
        return heartbeat > 0 and time.time() * 1000 - heartbeat < within_ms

    def counters(self) -> list[Counter]:
        """All allocated counters by rising id; empty while there is no ready file."""
        header = self.header()
        if header is None:
            return []
        metadata = HEADER_LENGTH + header.to_driver_length + header.to_clients_length
        found = []
        with (
            self.path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view,
        ):
            for counter_id in range(header.counters_values_length // VALUE_LENGTH):
                at = metadata + counter_id * METADATA_LENGTH
                state, type_id = struct.unpack_from("<ii", view, at)
                if state == 0:
                    break
                if state != ALLOCATED:
                    continue
                (label_length,) = struct.unpack_from("<i", view, at + 128)
                value, registration, owner, reference = struct.unpack_from("<4q", view, header.value_at(counter_id))
                found.append(
                    Counter(
                        id=counter_id,
                        type_id=type_id,
                        key=bytes(view[at + 16 : at + 128]),
                        label=bytes(view[at + 132 : at + 132 + label_length]).decode("ascii", "replace"),
                        value=value,
                        registration_id=registration,
                        owner_id=owner,
                        reference_id=reference,
                    )
                )
        return found

    def errors(self) -> list[str]:
        """The texts of the distinct error log, oldest first. Spec: 01 §8."""
        header = self.header()
        if header is None:
            return []
        begin = HEADER_LENGTH + header.to_driver_length + header.to_clients_length
        begin += header.counters_metadata_length + header.counters_values_length
        with self.path.open("rb") as file:
            file.seek(begin)
            log = file.read(header.error_log_length)
        found, at = [], 0
        while at + ERROR_HEADER_LENGTH <= len(log):
            (length,) = struct.unpack_from("<i", log, at)
            if length <= 0:
                break
            found.append(log[at + ERROR_HEADER_LENGTH : at + length].decode("ascii", "replace"))
            at += length + 7 & ~7
        return found

    def value_of(self, label: str) -> int | None:
        """The value of the first counter whose label begins with `label`."""
        return next(
            (counter.value for counter in self.counters() if counter.label.startswith(label)),
            None,
        )
