"""An archive's folder, read from Spec: 06 alone: catalog, segment files with their frames, and the mark file's error log."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

INVALID, VALID, DELETED = 0, 1, 2
PAD, DATA = 0, 1
BEGIN, END = 0x80, 0x40
FRAME_HEADER = 32

_BODY = struct.Struct("<7q6i")
_NAMES = (
    "control_session_id",
    "correlation_id",
    "recording_id",
    "start_timestamp",
    "stop_timestamp",
    "start_position",
    "stop_position",
    "initial_term_id",
    "segment_length",
    "term_length",
    "mtu",
    "session_id",
    "stream_id",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record of the catalog; `at` is its offset in the file, `length` that of its body with padding."""

    at: int
    length: int
    state: int
    checksum: int
    control_session_id: int
    correlation_id: int
    recording_id: int
    start_timestamp: int
    stop_timestamp: int
    start_position: int
    stop_position: int
    initial_term_id: int
    segment_length: int
    term_length: int
    mtu: int
    session_id: int
    stream_id: int
    stripped_channel: str
    original_channel: str
    source_identity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """The catalog file."""

    version: int
    next_recording_id: int
    alignment: int
    length: int
    records: tuple[Record, ...]

    @classmethod
    def read(cls, archive_dir: Path) -> Catalog:
        """All records, deleted and invalid ones as well."""
        raw = (archive_dir / "archive.catalog").read_bytes()
        version, header_length, next_id, alignment = struct.unpack_from("<iiqi", raw, 0)
        assert header_length == 32
        records, at = [], 32
        while at + 32 <= len(raw):
            length, state, checksum = struct.unpack_from("<iii", raw, at)
            if length <= 0:
                break
            records.append(_record(raw, at, length, state, checksum))
            at += aligned(length + 32, alignment)
        return cls(
            version=version, next_recording_id=next_id, alignment=alignment, length=len(raw), records=tuple(records)
        )

    def of(self, recording_id: int) -> Record:
        """The record of a recording."""
        return next(record for record in self.records if record.recording_id == recording_id)


def _record(raw: bytes, at: int, length: int, state: int, checksum: int) -> Record:
    fields = dict(zip(_NAMES, _BODY.unpack_from(raw, at + 32), strict=True))
    texts, where = [], at + 32 + 80
    for _ in range(3):
        (size,) = struct.unpack_from("<I", raw, where)
        texts.append(raw[where + 4 : where + 4 + size].decode("ascii"))
        where += 4 + size
    assert where <= at + 32 + length
    stripped, original, source = texts
    return Record(
        at=at,
        length=length,
        state=state,
        checksum=checksum,
        stripped_channel=stripped,
        original_channel=original,
        source_identity=source,
        **fields,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A frame with its header; `begin` and `end` are positions of the stream, `end` aligned."""

    begin: int
    length: int
    flags: int
    type: int
    term_offset: int
    session_id: int
    stream_id: int
    term_id: int
    reserved_value: int
    payload: bytes
    """Without the header; empty of a padding frame."""

    @property
    def end(self) -> int:
        """Where the next one begins."""
        return self.begin + aligned(self.length)

    @property
    def content(self) -> tuple[int, int, int, int, int, bytes]:
        """What a replay must not change: place, length, flags, type, reserved value, payload."""
        return self.begin, self.length, self.flags, self.type, self.reserved_value, self.payload


def aligned(length: int, alignment: int = 32) -> int:
    """Rounded up."""
    return -(-length // alignment) * alignment


def segments(archive_dir: Path, recording_id: int) -> list[int]:
    """Base positions of a recording's segment files, rising; those to be deleted (`.del`) do not count."""
    found = [path.name for path in archive_dir.glob(f"{recording_id}-*.rec")]
    return sorted(int(name.removesuffix(".rec").split("-")[1]) for name in found)


def segment_path(archive_dir: Path, recording_id: int, base: int) -> Path:
    """Path of a segment file."""
    return archive_dir / f"{recording_id}-{base}.rec"


def segment_base(record: Record, position: int) -> int:
    """Base position of the segment that holds a position. Spec: 06 §7.1."""
    first = record.start_position - record.start_position % record.term_length
    return first + (position - first) // record.segment_length * record.segment_length


def frames(
    archive_dir: Path, recording_id: int, *, stop: int | None = None, record: Record | None = None
) -> list[Frame]:
    """All frames of a recording from its start to `stop`, by default the catalog's stop position."""
    record = record or Catalog.read(archive_dir).of(recording_id)
    stop = record.stop_position if stop is None else stop
    found: list[Frame] = []
    position, base, raw = record.start_position, -1, b""
    while position < stop:
        if segment_base(record, position) != base:
            base = segment_base(record, position)
            raw = segment_path(archive_dir, recording_id, base).read_bytes()
        frame = _frame(raw, position - base, position)
        found.append(frame)
        position = frame.end
    assert position == stop, f"the last frame ends at {position}, not {stop}"
    return found


def _frame(raw: bytes, at: int, position: int) -> Frame:
    length, _version, flags, kind, term_offset, session, stream, term, reserved = struct.unpack_from(
        "<iBBHiiiiq", raw, at
    )
    assert length > 0, f"no frame at position {position}"
    return Frame(
        begin=position,
        length=length,
        flags=flags,
        type=kind,
        term_offset=term_offset,
        session_id=session,
        stream_id=stream,
        term_id=term,
        reserved_value=reserved,
        payload=b"" if kind == PAD else raw[at + FRAME_HEADER : at + length],
    )


def crc32_of(raw_payload: bytes) -> int:
    """The checksum of a DATA frame as the session id field holds it: payload with the zeros up to the alignment."""
    padded = raw_payload + bytes(aligned(len(raw_payload)) - len(raw_payload))
    return int.from_bytes(zlib.crc32(padded).to_bytes(4, "little"), "little", signed=True)


def mark_errors(archive_dir: Path) -> list[str]:
    """Texts of the distinct error log in the mark file, oldest first; none while there is no mark file."""
    try:
        raw = (archive_dir / "archive-mark.dat").read_bytes()
    except FileNotFoundError:
        return []
    if len(raw) < 136:
        return []
    header_length, error_length = struct.unpack_from("<ii", raw, 52)
    log, found, at = raw[header_length : header_length + error_length], [], 0
    while at + 24 <= len(log):
        (length,) = struct.unpack_from("<i", log, at)
        if length <= 0:
            break
        found.append(log[at + 24 : at + length].decode("utf-8", "replace"))
        at += aligned(length, 8)
    return found


def archive_id(archive_dir: Path) -> int:
    """The archive id in the mark file."""
    with (archive_dir / "archive-mark.dat").open("rb") as file:
        file.seek(64)
        return int.from_bytes(file.read(8), "little", signed=True)
