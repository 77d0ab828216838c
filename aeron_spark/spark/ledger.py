"""The ledger of the exactly-once sink: which published ranges count. One entry per batch of a query, the first one wins.

Tasks publish to recordings. They can be killed, repeated and run twice at a time, and what they published cannot be taken
back. So published rows alone do not count. When all tasks of a batch are done, the driver's ``commit`` appends one entry to
the ledger, a recording of the same archive, with the ranges of the winning attempts. Readers with
``isolation=read_committed`` deliver only the ranges of entries.

**Format.** The ledger is every recording of stream ``LEDGER_STREAM_ID`` whose channel has the alias ``aeron-spark-ledger``, in
the order of their ids; it is extended from commit to commit. A message is an entry, in one frame, little-endian:

    0   4 bytes  "ASLE"
    4   uint16   version, 1
    6   uint16   0
    8   16 bytes query, a UUID in the order of its text; of a batch write, of its writeId or random;
                 inside of foreachBatch, of both
    24  int64    batch; -1 of a batch write outside of foreachBatch
    32  int64    when it was written, ms since the epoch
    40  uint32   count of ranges
    44  uint32   CRC-32 of the whole entry with 0 in this field
    48  48 bytes for each range: int64 recording id, uint64 identity of the recording (``recording_identity``),
                 int64 begin, int64 end (message boundaries), int64 messages, int32 stream id, int32 session id

The frame's reserved value is ``entry_key(query, batch)``, so that an entry is found without parsing the others.

**What an entry guarantees.** Each range lies whole in its recording, below the recorded position and, with ``syncLevel``, on
disk. The committer makes sure of that before it appends (``commit.py``), and the archive never gives up what it has recorded.

**First wins.** A batch that is run again has the same (query, batch). An entry for a key that an earlier entry has is ignored
by readers. A committer does not even write one: it reads the ledger up to its end after it has become the only writer, since
an archive extends a recording from one publication at a time. Beginning a recording locks nothing: committers that come first
at the same time begin one each, without entries, and then all extend the same one.

**Crashes.** An entry is one frame, and recovery ends a crashed recording at its last whole frame: an entry is there or not.
An entry counts even if its committer died before it knew, or if ``commit`` raised afterwards. The batch then runs again and
finds its entry; no entry names the ranges that it published again. Nothing ever removes an entry.

**Retention.** An entry is needed while its batch can run again (the newest of each query can) and while its ranges are to be
read. No retention policy deletes the ledger. An operator can purge its older segments as those of any recording;
``read_committed`` then no longer delivers their ranges. Messages that were purged while their entry remains are lost data.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from uuid import UUID

import numpy as np

from aeron_spark.archive.recordings import Recording, is_ledger
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.errors import DataLossError, UsageError

__all__ = [
    "ENTRY_VERSION",
    "FRAME_HEADER_BYTES",
    "LEDGER_CHANNEL",
    "LEDGER_STREAM_ID",
    "Batches",
    "Entries",
    "Entry",
    "OffsetEntry",
    "PublishedRange",
    "batches_before",
    "decode_entry",
    "encode_entry",
    "entry_key",
    "first_of_each",
    "has_entry",
    "is_ledger",
    "joined",
    "read_entries",
]

LEDGER_STREAM_ID = int.from_bytes(b"ASLE", "big")
_ALIAS = "alias=aeron-spark-ledger"
#: The largest MTU there is, so that an entry is one frame.
LEDGER_CHANNEL = f"aeron:ipc?{_ALIAS}|term-length=1m|mtu=65504"
FRAME_HEADER_BYTES = 32
MAX_ENTRY_BYTES = 65504 - FRAME_HEADER_BYTES

_MAGIC, ENTRY_VERSION = b"ASLE", 1
_HEAD = struct.Struct("<4sHH16sqqII")
_RANGE = struct.Struct("<qQqqqii")
_CRC_OFFSET = 44


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRange:
    """What was published to one recording: [begin, end), message boundaries.

    ``identity`` distinguishes the recording from another archive's of the same id (see ``recording_identity``).
    """

    recording_id: int
    identity: int
    begin: int
    end: int
    messages: int
    stream_id: int
    session_id: int


_FIELDS = attrgetter(*PublishedRange.__slots__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What one batch published; ``batch`` is -1 for a batch write outside of foreachBatch."""

    query: UUID
    batch: int
    written_ms: int
    ranges: tuple[PublishedRange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetEntry:
    """An entry and where in the ledger it is."""

    entry: Entry
    recording_id: int
    position: int
    next_position: int


def entry_key(query: UUID, batch: int) -> int:
    """63 bits of what an entry is found by."""
    return int.from_bytes(hashlib.sha256(query.bytes + struct.pack("<q", batch)).digest()[:8], "big") >> 1


def _pack(ranges: Iterable[PublishedRange]) -> bytes:
    return b"".join(_RANGE.pack(*_FIELDS(part)) for part in ranges)


def _unpack(packed: bytes | bytearray) -> tuple[PublishedRange, ...]:
    names = PublishedRange.__slots__
    return tuple(PublishedRange(**dict(zip(names, values, strict=True))) for values in _RANGE.iter_unpack(packed))


def encode_entry(entry: Entry, max_bytes: int = MAX_ENTRY_BYTES) -> bytes:
    """Bytes of an entry; UsageError if it is too large for a frame of the ledger."""
    head = (_MAGIC, ENTRY_VERSION, 0, entry.query.bytes, entry.batch, entry.written_ms, len(entry.ranges))
    ranges = _pack(entry.ranges)
    if _HEAD.size + len(ranges) > max_bytes:
        most = (max_bytes - _HEAD.size) // _RANGE.size
        raise UsageError(
            f"the batch was published in {len(entry.ranges)} ranges, an entry of the ledger holds {most}: "
            f"write to fewer streams at a time, or with fewer workers"
        )
    crc = zlib.crc32(_HEAD.pack(*head, 0) + ranges)
    return _HEAD.pack(*head, crc) + ranges


def decode_entry(message: bytes, where: str) -> Entry:
    """An entry from its bytes; DataLossError for bytes that are none."""
    if len(message) < _HEAD.size:
        raise DataLossError(f"{where}: {len(message)} bytes are no entry of a ledger")
    magic, version, _, query, batch, written_ms, count, crc = _HEAD.unpack_from(message)
    if magic != _MAGIC:
        raise DataLossError(
            f"{where}: no entry of a ledger begins with {magic!r}; something else published on its stream"
        )
    zeroed = message[:_CRC_OFFSET] + bytes(4) + message[_HEAD.size :]
    if zlib.crc32(zeroed) != crc:
        raise DataLossError(f"{where}: the entry's checksum is wrong, the ledger is damaged: restore its segment files")
    if version != ENTRY_VERSION:
        raise UsageError(
            f"{where}: the entry has version {version}, this release reads {ENTRY_VERSION}: use a newer one"
        )
    if len(message) != _HEAD.size + count * _RANGE.size:
        raise DataLossError(f"{where}: the entry has {len(message)} bytes, which is wrong for {count} ranges")
    return Entry(query=UUID(bytes=query), batch=batch, written_ms=written_ms, ranges=_unpack(message[_HEAD.size :]))


def joined(ranges: Iterable[PublishedRange]) -> tuple[PublishedRange, ...]:
    """The same ranges, those that follow each other in a recording as one, empty ones left out."""
    found: list[PublishedRange] = []
    for part in sorted(ranges, key=lambda part: (part.recording_id, part.begin)):
        last = found[-1] if found else None
        if part.begin == part.end:
            continue
        if last is not None and last.recording_id == part.recording_id and last.end >= part.begin:
            if last.end > part.begin:
                raise UsageError(f"recording {part.recording_id}: two tasks published [{part.begin}, {last.end})")
            found[-1] = replace(last, end=part.end, messages=last.messages + part.messages)
        else:
            found.append(part)
    return tuple(found)


def read_entries(folder: RecordingSource, after: Mapping[int, int]) -> Iterator[OffsetEntry]:
    """The ledger's entries in their order, of each of its recordings those from the position in ``after`` on."""
    for recording in folder.recordings():
        if not is_ledger(recording):
            continue
        recording_id = recording.recording_id
        extent = folder.extent(recording_id)
        start = max(extent.start_position, after.get(recording_id, 0))
        columns = ("position", "next_position", "value")
        for batch in folder.read(
            recording_id, start, extent.limit_position, limit=extent.limit_position, columns=columns
        ):
            for position, next_position, value in zip(
                *(batch.column(name).to_pylist() for name in columns), strict=True
            ):
                where = f"ledger recording {recording_id} of {folder.path}, position {position}"
                yield OffsetEntry(
                    entry=decode_entry(value, where),
                    recording_id=recording_id,
                    position=position,
                    next_position=next_position,
                )


def has_entry(folder: RecordingSource, recordings: Iterable[Recording], query: UUID, batch: int) -> bool:
    """Whether the ledger among these recordings has an entry of that key, as far as it goes now."""
    key = entry_key(query, batch)
    for recording in filter(is_ledger, recordings):
        for part in folder.read(recording.recording_id, columns=("reserved_value", "value")):
            for row in np.flatnonzero(part.column("reserved_value").to_numpy() == key):
                entry = decode_entry(part.column("value")[int(row)].as_py(), f"ledger of {folder.path}")
                if (entry.query, entry.batch) == (query, batch):
                    return True
    return False


def batches_before(folder: RecordingSource, ends: Mapping[int, int | None]) -> dict[int, int]:
    """How many batches that count have rows of a recording before a position, of None anywhere in it; by recording."""
    found = dict.fromkeys(ends, 0)
    for item in first_of_each(read_entries(folder, {}), Batches()):
        held = {part.recording_id for part in item.entry.ranges if _begins_before(part, ends)}
        for recording_id in held:
            found[recording_id] += 1
    return found


def _begins_before(part: PublishedRange, ends: Mapping[int, int | None]) -> bool:
    end = ends.get(part.recording_id, -1)
    return end is None or part.begin < end


class Batches:
    """(query, batch) of entries. A query's batches follow each other: it keeps the bounds of runs, not each batch."""

    def __init__(self) -> None:
        #: By query: begin and end of each run, ascending.
        self._bounds: dict[int, list[int]] = {}

    def add(self, query: UUID, batch: int) -> bool:
        """Add a batch; False: it was there."""
        bounds = self._bounds.setdefault(query.int, [])
        if bisect_right(bounds, batch) % 2 == 1:
            return False
        beside = slice(bisect_left(bounds, batch), bisect_right(bounds, batch + 1))
        # Where it meets a run, the bound between them goes.
        bounds[beside] = sorted({batch, batch + 1}.symmetric_difference(bounds[beside]))
        return True


class Entries:
    """Entries of one recording of the ledger, by position: 24 bytes for each, and 48 for each of its ranges."""

    def __init__(self) -> None:
        self._positions, self._next_positions = array("q"), array("q")
        self._ranges = bytearray()
        #: Where the ranges of each end.
        self._ends = array("q")

    def append(self, item: OffsetEntry) -> None:
        """Add the next one."""
        self._positions.append(item.position)
        self._next_positions.append(item.next_position)
        self._ranges += _pack(item.entry.ranges)
        self._ends.append(len(self._ranges))

    def between(self, begin: int, end: int) -> Iterator[tuple[int, tuple[PublishedRange, ...]]]:
        """The position behind each entry of [begin, end), and its ranges."""
        first, behind = (bisect_left(self._positions, at) for at in (begin, end))
        for index in range(first, behind):
            packed = self._ranges[self._ends[index - 1] if index else 0 : self._ends[index]]
            yield self._next_positions[index], _unpack(packed)


def first_of_each(entries: Iterable[OffsetEntry], seen: Batches) -> Iterator[OffsetEntry]:
    """Those that count: the first of each (query, batch). ``seen`` remembers them."""
    for item in entries:
        if seen.add(item.entry.query, item.entry.batch):
            yield item
