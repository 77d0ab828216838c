"""Archive folders of which one thing has changed: every reader gives the recorded rows, or an error.

Method: a bit, a byte, a number or a name of a folder changes by seed; then all recordings are read and verified as their owner
would. What is allowed to differ without a word is what no checksum and no neighbour can tell, exactly: `unprotected`.
"""

from __future__ import annotations

import collections
import random
import shutil
import struct
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from aeron_spark.archive.segments import Folder
from aeron_spark.archive.tools import Catalog, VerifyOutcome
from aeron_spark.errors import AeronError, DoubtWarning
from tests.kit.packed import unpack

GOLDEN = Path(__file__).parents[1] / "golden" / "archive"
CHECKED = ("archive-crc", "archive-crc32c")
UNCHECKED = ("archive", "archive-full", "archive-replicated")
ROUNDS = 400
CATALOG = "archive.catalog"
COLUMNS = ("position", "next_position", "value")
ALIGNMENT = 32
PADDING, DATA = 0, 1


class Row(NamedTuple):
    """The parts that must not change: a message's position and its bytes."""

    position: int
    next_position: int
    value: bytes


class Frame(NamedTuple):
    """A frame of a segment file."""

    file: str
    offset: int
    length: int
    type: int


Rows = Mapping[int, list[Row]]


@dataclass(frozen=True, slots=True)
class Seen:
    """What reading a folder gave: rows of each recording, and the reports of readers and verify."""

    rows: Rows
    told: frozenset[str]
    verified: frozenset[str]


def read(folder: Path) -> tuple[dict[int, list[Row]], set[str]]:
    """Rows of every recording that is listed, and every error and warning."""
    rows: dict[int, list[Row]] = {}
    told: set[str] = set()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with Folder(folder) as opened:
                if getattr(opened.info(), "invalid_count", 0):
                    told.add("recordings are marked INVALID")
                for recording in opened.recordings():
                    found = rows[recording.recording_id] = []
                    try:
                        for batch in opened.read(recording.recording_id, columns=COLUMNS):
                            found += [Row(*row.values()) for row in batch.to_pylist()]
                    except AeronError as error:
                        told.add(f"recording {recording.recording_id}: {error}")
        except AeronError as error:
            told.add(str(error))
    return rows, told | {str(one.message) for one in caught}


def verify(folder: Path) -> set[str]:
    """What verifying all segments says, but for recordings that are good."""
    told = set()
    try:
        with Catalog(folder) as catalog:
            if catalog.info().damage:
                told.add(catalog.info().damage)
            for entry in catalog.entries():
                report = catalog.verify(entry, all_segments=True)
                if report.outcome not in {VerifyOutcome.OK, VerifyOutcome.SKIPPED} or report.text:
                    told.add(f"{entry.recording.recording_id} {report.outcome.name}: {report.text}")
    except AeronError as error:
        told.add(str(error))
    return told


def look(folder: Path) -> Seen:
    """All that can be seen of a folder."""
    rows, told = read(folder)
    return Seen(rows, frozenset(told), frozenset(verify(folder)))


def frames(folder: Path) -> list[Frame]:
    """Every frame of a good folder, by its segments alone."""
    found = []
    for path in sorted(folder.glob("*.rec")):
        content = path.read_bytes()
        offset = next(
            (at for at in range(0, len(content), ALIGNMENT) if any(content[at : at + ALIGNMENT])), len(content)
        )
        while offset < len(content):
            length, kind = struct.unpack_from("<i2xH", content, offset)
            if length <= 0:
                break
            found.append(Frame(path.name, offset, length, kind))
            offset += -(-length // ALIGNMENT) * ALIGNMENT
    return found


# -- what changes ----------------------------------------------------------------------------------------------------------


def put(path: Path, offset: int, change: Callable[[int], int]) -> str:
    """One byte of a file."""
    with path.open("r+b") as file:
        file.seek(offset)
        before = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([change(before) & 0xFF]))
    return f"{path.name}[{offset}] {before:#x} to {change(before) & 0xFF:#x}"


def bit_or_byte(rng: random.Random) -> Callable[[int], int]:
    """A change of one bit, or to any other value."""
    if rng.random() < 0.7:
        mask = 1 << rng.randrange(8)
        return lambda value: value ^ mask
    delta = rng.randrange(1, 256)
    return lambda value: value + delta


def change_header(rng: random.Random, folder: Path, all_frames: list[Frame]) -> str:
    """A byte of a frame's header; the type of a few is what matters most."""
    frame = rng.choice(all_frames)
    at = rng.choice([*range(24), 5, 5, 6, 6, 0, 1])
    return f"header byte {at} of {frame}: {put(folder / frame.file, frame.offset + at, bit_or_byte(rng))}"


def change_type(rng: random.Random, folder: Path, all_frames: list[Frame]) -> str:
    """A data frame becomes padding, or padding a data frame."""
    frame = rng.choice(all_frames)
    return f"type of {frame}: {put(folder / frame.file, frame.offset + 6, lambda value: value ^ 1)}"


def change_flags(rng: random.Random, folder: Path, all_frames: list[Frame]) -> str:
    """BEGIN or END appears or goes."""
    frame = rng.choice([one for one in all_frames if one.type == DATA])
    mask = rng.choice([0x80, 0x40, 0xC0])
    return f"flags of {frame}: {put(folder / frame.file, frame.offset + 5, lambda value: value ^ mask)}"


def change_payload(rng: random.Random, folder: Path, all_frames: list[Frame]) -> str:
    """A byte behind a header."""
    frame = rng.choice([one for one in all_frames if one.length > ALIGNMENT and one.type == DATA])
    at = rng.randrange(ALIGNMENT, frame.length)
    return f"payload byte {at} of {frame}: {put(folder / frame.file, frame.offset + at, bit_or_byte(rng))}"


def change_catalog(rng: random.Random, folder: Path, _frames: list[Frame]) -> str:
    """A byte of the catalog's header or of a record, header or body."""
    content = (folder / CATALOG).read_bytes()
    starts, offset = [0], 32
    while offset + 4 <= len(content) and (length := struct.unpack_from("<i", content, offset)[0]) > 0:
        starts.append(offset)
        offset += length + 32
    start = rng.choice(starts)
    at = rng.randrange(32) if start == 0 else rng.choice([*range(12), *range(32, 112), *range(72, 112), *range(12)])
    return f"catalog byte {at} of the record at {start}: {put(folder / CATALOG, start + at, bit_or_byte(rng))}"


def change_file(rng: random.Random, folder: Path, _frames: list[Frame]) -> str:
    """A segment goes, is cut, or gets another's name."""
    names = sorted(path.name for path in folder.glob("*.rec"))
    name = rng.choice(names)
    path = folder / name
    recording, base = name.removesuffix(".rec").split("-")
    what = rng.randrange(6)
    if what == 0:
        path.unlink()
    elif what == 1:
        with path.open("r+b") as file:
            file.truncate(rng.randrange(path.stat().st_size))
    elif what == 2:
        path.rename(folder / f"{recording}-{int(base) + rng.choice([-65536, 65536, 131072, 1, 32])}.rec")
    elif what == 3:
        path.rename(folder / f"{int(recording) + rng.choice([1, 7])}-{base}.rec")
    elif what == 4:
        path.rename(folder / f"{name}.del")
    else:
        other = folder / rng.choice(names)
        swap = folder / "swap"
        path.rename(swap)
        other.rename(path) if other != path else None
        swap.rename(other)
        return f"{name} and {other.name} change places"
    return f"{name}: change {what}"


CHECKED_CHANGES = (
    change_header,
    change_header,
    change_type,
    change_flags,
    change_payload,
    change_catalog,
    change_catalog,
    change_file,
)
UNCHECKED_CHANGES = (change_header, change_type, change_flags, change_catalog, change_catalog, change_file)


# -- what may differ -------------------------------------------------------------------------------------------------------


def is_unprotected(truth: Rows, seen: Rows, *, is_checked: bool) -> bool:
    """No reader can detect the change: see docs/archive-tools.md, "What a checksum covers"."""
    if truth.keys() != seen.keys():
        return False
    different = [(truth[one], seen[one]) for one in truth if truth[one] != seen[one]]
    if len(different) != 1:
        return False
    ((before, after),) = different
    if len(before) == len(after):
        # A last fragment's length within its 32 bytes: zeros that follow the message, or end it, count.
        pairs = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
        return (
            len(pairs) == 1
            and pairs[0][0].position == pairs[0][1].position
            and (
                pairs[0][0].value.rstrip(b"\0") == pairs[0][1].value.rstrip(b"\0")
                if is_checked
                else abs(len(pairs[0][0].value) - len(pairs[0][1].value)) < ALIGNMENT
            )
        )
    if after == before[1:] and before[0].position > 0:
        return True  # a recording that begins behind its stream's begin may begin inside a message
    if is_checked:
        return False
    # Without checksums a message of zeros is like padding, and the other way round.
    lacks, more = set(before) - set(after), set(after) - set(before)
    return len(lacks) + len(more) == 1 and not any(next(iter(lacks | more)).value)


@dataclass(slots=True)
class Tally:
    """How often what came of a change."""

    counts: collections.Counter[str]
    silent: list[str]


def mutate(golden: str, rng: random.Random, rounds: int, scratch: Path) -> Tally:
    """Change, read, restore."""
    unpack(GOLDEN / f"{golden}.tar.gz", scratch)
    good = scratch / golden
    truth, all_frames = look(good), frames(good)
    is_checked = golden in CHECKED
    changes = CHECKED_CHANGES if is_checked else UNCHECKED_CHANGES
    tally = Tally(collections.Counter(), [])
    for _ in range(rounds):
        bad = scratch / "bad"
        shutil.copytree(good, bad)
        what = rng.choice(changes)(rng, bad, all_frames)
        seen = look(bad)
        shutil.rmtree(bad)
        if seen.told - truth.told:
            tally.counts["told by the reader"] += 1
        elif seen.rows == truth.rows:
            tally.counts["rows as recorded"] += 1
        elif seen.verified - truth.verified:
            tally.counts["told by verify alone"] += 1
        elif is_unprotected(truth.rows, seen.rows, is_checked=is_checked):
            tally.counts["unprotected"] += 1
        else:
            tally.counts["SILENT"] += 1
            tally.silent.append(f"{golden}: {what}")
    return tally


@pytest.fixture(name="scratch")
def _scratch(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.mark.parametrize("golden", [*CHECKED, *UNCHECKED])
def test_no_change_goes_unseen(golden: str, rng: random.Random, scratch: Path) -> None:
    tally = mutate(golden, rng, ROUNDS if golden in CHECKED else ROUNDS // 2, scratch)
    assert not tally.silent
    assert tally.counts["told by the reader"] > sum(tally.counts.values()) // 3


@pytest.mark.parametrize("golden", [*CHECKED, *UNCHECKED, "archive-crashed"])
def test_what_stock_recorded_is_in_no_doubt(golden: str, scratch: Path) -> None:
    unpack(GOLDEN / f"{golden}.tar.gz", scratch)
    assert not read(scratch / golden)[1]


def test_a_doubt_is_a_warning_or_a_call(scratch: Path) -> None:
    unpack(GOLDEN / "archive-crc32c.tar.gz", scratch)
    folder = scratch / "archive-crc32c"
    whole = len(read(folder)[0][0])
    file = folder / "0-0.rec"
    content = file.read_bytes()
    both = [
        one for one in frames(folder) if one.file == file.name and content[one.offset + 5] == 0xC0 and one.type == DATA
    ]
    frame = next(one for one, behind in pairwise(both) if behind.offset - one.offset < one.length + ALIGNMENT)
    put(file, frame.offset + 5, lambda flags: flags ^ 0x40)
    told: list[str] = []
    with Folder(folder) as opened:
        with pytest.warns(DoubtWarning, match=f"recording 0 at position {frame.offset}: a message breaks off"):
            assert opened.read(0).read_all().num_rows == whole - 1
        assert opened.read(0, on_doubt=told.append).read_all().num_rows == whole - 1
    assert len(told) == 1


@pytest.mark.parametrize("emptied", ["start at its stop", "stop at its start"])
def test_verify_tells_of_an_emptied_recording(emptied: str, scratch: Path) -> None:
    unpack(GOLDEN / "archive-full.tar.gz", scratch)
    folder = scratch / "archive-full"
    positions = 32 + 32 + 40  # catalog header, record header, fields before the start position
    with (folder / CATALOG).open("r+b") as file:
        file.seek(positions)
        start, stop = struct.unpack("<qq", file.read(16))
        file.seek(positions)
        file.write(struct.pack("<qq", stop, stop) if emptied.startswith("start") else struct.pack("<qq", start, start))
    assert read(folder)[0][0] == []
    doubt = "segments stand before startPosition=131072" if emptied.startswith("start") else "frame"
    assert [one for one in verify(folder) if one.startswith("0 ") and doubt in one], verify(folder)
