"""Pushed filters: of every kind, on every column and around every bound, a narrowed read gives what the whole one does.

The readers are driven as Spark drives them. A filter is never applied by Spark here, so what a narrowed read gives are just the
rows that the filter keeps: the columns of the filters are among those read. What is planned is looked at besides, as rows that
are read and dropped again would not show.
"""

from __future__ import annotations

import datetime as dt
import itertools
import operator
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
)

from aeron_spark.spark.reading.batch import PushdownReader, RangesPartition
from tests.kit import dirs
from tests.spark import recorded
from tests.spark.readers import batch, read

Row = dict[str, Any]

#: Message and frame: 96 bytes.
FRAME = 96
COUNT = 60
SCHEMA = """<?xml version="1.0"?>
<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" package="hides" id="7" version="0" byteOrder="littleEndian">
  <types><composite name="messageHeader">
    <type name="blockLength" primitiveType="uint16"/><type name="templateId" primitiveType="uint16"/>
    <type name="schemaId" primitiveType="uint16"/><type name="version" primitiveType="uint16"/>
  </composite></types>
  <sbe:message name="Order" id="1">
    <field name="at" id="1" type="int64"/><field name="position" id="2" type="int64"/>
    <field name="recording_id" id="3" type="int64"/><field name="timestamp_ns" id="4" type="int64"/>
    <field name="stream_id" id="5" type="int64"/>
  </sbe:message>
  <sbe:message name="Cancel" id="2"><field name="at" id="1" type="int64"/></sbe:message>
</sbe:messageSchema>
"""
COLUMNS = ("recording_id", "session_id", "stream_id", "position", "timestamp", "timestamp_ns")
#: The filters with one literal, and when Spark keeps a row by each.
KINDS: dict[type[Filter], Callable[[int, int], bool]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}
LEAST, MOST = -(1 << 63), (1 << 63) - 1


def message(number: int, at: int) -> bytes:
    if number % 5 == 4:
        return (struct.pack("<4H", 8, 2, 7, 0) + struct.pack("<q", at)).ljust(FRAME - 32, b"\0")
    fields = struct.pack("<5q", at, number, 7000 + number, 2 * number, 5)
    return (struct.pack("<4H", 40, 1, 7, 0) + fields).ljust(FRAME - 32, b"\0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Three recordings of 60 messages, two of them of one stream; each message has times of its own, one in seven has none."""
    work = tmp_path_factory.mktemp("filters")
    (work / "hides.xml").write_text(SCHEMA, "utf-8")
    settings = {"aeron.spark.archive.time.index.interval": "1us", "aeron.spark.archive.time.index.bytes": "1"}
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, work / "archive", settings) as archive:
        for recording_id, stream_id in enumerate((1001, 1001, 1002)):
            publication = archive.record(stream_id)
            for number in range(COUNT):
                stamp = 1_700_000_000_000_000 + 1000 * recording_id + 3 * number
                stamps = pa.array([0 if number % 7 == 3 else stamp], pa.int64())
                publication.offer_batch([message(number, stamp * 1000 + number)], reserved_values=stamps, timeout=20)
                archive.control.wait_position(recording_id, publication.position, timeout=20)
            archive.stop(publication, stream_id)
    return work / "archive"


def number_of(value: object) -> int | None:
    """A value as filters count it: a time in microseconds."""
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    assert value is None or isinstance(value, int)
    return value


def literal(column: str, number: int) -> object:
    """As Spark gives it to a filter."""
    if column != "timestamp":
        return number
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=number)


def bounds_of(column: str, rows: Sequence[Row], rng: random.Random) -> list[int]:
    """Literals on, just before and just behind values of a column: its ends and some between; and outside."""
    values = sorted({number for row in rows if (number := number_of(row[column])) is not None})
    chosen = {values[0], values[-1], *rng.sample(values, min(len(values), 3))}
    far = (0, 1 << 50) if column == "timestamp" else (LEAST, -1, 0, MOST)
    return sorted({value + step for value in chosen for step in (-1, 0, 1)} | set(far))


def narrowed(folder: Path, filters: Sequence[Filter], **options: str) -> tuple[list[Row], int]:
    """The rows of a read with filters, and how many bytes were planned for it."""
    reader = batch(folder, kind=PushdownReader, **options)
    assert isinstance(reader, PushdownReader)
    assert list(reader.pushFilters(list(filters))) == list(filters), "Spark applies them as well"
    partitions = reader.partitions()
    planned = 0
    for partition in partitions:
        assert isinstance(partition, RangesPartition)
        planned += sum(part.end - part.start for part in partition.ranges)
    return read(reader, partitions), planned


def source(folder: Path, name: str) -> dict[str, str]:
    """Options of a read that has all columns to filter by, times from that source."""
    sbe = {"sbeSchema": str(folder.parent / "hides.xml")} if name.startswith("sbe") else {}
    return {"columns": ",".join(COLUMNS), "timestampFrom": name, **sbe}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("column", "times"),
    [
        *((column, "index") for column in COLUMNS),
        *itertools.product(("timestamp", "timestamp_ns"), ("reserved(us)", "sbe:at(ns)")),
    ],
)
def test_each_kind_on_each_column(
    folder: Path, rng: random.Random, column: str, kind: type[Filter], times: str
) -> None:
    options = source(folder, times)
    whole = read(batch(folder, **options))
    assert len(whole) == 3 * COUNT
    for bound in bounds_of(column, whole, rng):
        expected = [row for row in whole if (one := number_of(row[column])) is not None and KINDS[kind](one, bound)]
        found, _ = narrowed(folder, [kind((column,), literal(column, bound))], **options)  # type: ignore[call-arg]
        assert found == expected, (kind.__name__, column, bound)


@pytest.mark.parametrize("column", COLUMNS)
def test_in(folder: Path, rng: random.Random, column: str) -> None:
    """With values that are there and that are not; a null among them says nothing about any row."""
    options = source(folder, "index")
    whole = read(batch(folder, **options))
    bounds = bounds_of(column, whole, rng)
    for count in (0, 1, 2, 5):
        members = rng.sample(bounds, count)
        values = [literal(column, one) for one in members] + [None] * (count % 2)
        found, _ = narrowed(folder, [In((column,), tuple(values))], **options)
        assert found == [row for row in whole if number_of(row[column]) in members], (column, members)


@pytest.mark.parametrize("column", COLUMNS)
def test_filters_of_the_same_kind_together(folder: Path, column: str) -> None:
    """Two ranges give the narrower one, two sets their intersection."""
    options = source(folder, "index")
    whole = read(batch(folder, **options))
    values = sorted({number for row in whole if (number := number_of(row[column])) is not None})
    low, middle, high = values[0], values[len(values) // 2], values[-1]
    some, others = ({low, middle}, {middle, high})
    found, _ = narrowed(
        folder, [In((column,), tuple(literal(column, one) for one in of)) for of in (some, others)], **options
    )
    assert found == [row for row in whole if number_of(row[column]) in some & others]
    for kind, keeps in KINDS.items():
        for bounds in itertools.permutations((low, middle, high), 2):
            filters = [kind((column,), literal(column, bound)) for bound in bounds]  # type: ignore[call-arg]
            found, _ = narrowed(folder, filters, **options)
            expected = [
                row
                for row in whole
                if (one := number_of(row[column])) is not None and all(keeps(one, b) for b in bounds)
            ]
            assert found == expected, (kind.__name__, bounds)


def test_filters_together(folder: Path, rng: random.Random) -> None:
    """Joined by AND: both ends of one column, several columns."""
    options = source(folder, "index")
    whole = read(batch(folder, **options))
    bounds = {column: bounds_of(column, whole, rng) for column in COLUMNS}
    for column in COLUMNS:
        for _ in range(6):
            low, high = sorted(rng.sample(bounds[column], 2))
            ends = [
                GreaterThanOrEqual((column,), literal(column, low)),
                LessThanOrEqual((column,), literal(column, high)),
            ]
            found, _ = narrowed(folder, ends, **options)
            assert found == [
                row for row in whole if (one := number_of(row[column])) is not None and low <= one <= high
            ], (column, low, high)
    for _ in range(60):
        drawn = [(rng.choice(COLUMNS), rng.choice(list(KINDS))) for _ in range(rng.randrange(1, 5))]
        tests = [(column, kind, rng.choice(bounds[column])) for column, kind in drawn]
        found, _ = narrowed(
            folder, [kind((column,), literal(column, bound)) for column, kind, bound in tests], **options
        )  # type: ignore[call-arg]
        assert found == [
            row
            for row in whole
            if all(
                (one := number_of(row[column])) is not None and KINDS[kind](one, bound) for column, kind, bound in tests
            )
        ], tests


@pytest.mark.parametrize(
    "one",
    [
        Not(EqualTo(("recording_id",), 0)),
        EqualNullSafe(("timestamp",), None),
        EqualTo(("recording_id",), None),
        EqualTo(("recording_id",), value=True),
        EqualTo(("position",), 64.5),
        EqualTo(("value", "position"), 64),
        EqualTo(("reserved_value",), 1),
        In(("stream_id",), (1001, "1002")),
        IsNull(("timestamp",)),
        IsNotNull(("timestamp",)),
        StringContains(("value",), "x"),
    ],
    ids=str,
)
def test_filters_that_narrow_nothing(folder: Path, one: Filter) -> None:
    options = source(folder, "reserved(us)")
    assert narrowed(folder, [one], **options) == narrowed(folder, [], **options)


@pytest.mark.parametrize("column", ["position", "timestamp", "timestamp_ns"])
@pytest.mark.parametrize("is_low", [True, False])
def test_little_else_is_planned(folder: Path, column: str, is_low: bool) -> None:
    """Bounds of positions are exact, those of times to a message more at each end of a recording."""
    options = source(folder, "index")
    whole = read(batch(folder, **options))
    middle = whole[len(whole) // 2]
    kind = GreaterThanOrEqual if is_low else LessThan
    bound = number_of(middle[column])
    assert bound is not None
    rows, planned = narrowed(folder, [kind((column,), literal(column, bound))], **options)
    assert 0 < len(rows) < len(whole)
    assert len(rows) * FRAME <= planned <= len(rows) * FRAME + (0 if column == "position" else 3 * 2 * FRAME)


@pytest.mark.parametrize("column", ["recording_id", "stream_id"])
def test_recordings_that_are_excluded_are_not_planned(folder: Path, column: str) -> None:
    options = source(folder, "index")
    for value in {row[column] for row in read(batch(folder, **options))}:
        rows, planned = narrowed(folder, [EqualTo((column,), value)], **options)
        assert planned == len(rows) * FRAME


def test_bounds_far_outside_leave_nothing_to_read(folder: Path) -> None:
    options = source(folder, "index")
    for column in COLUMNS:
        for one in (GreaterThan((column,), MOST), LessThan((column,), LEAST)):
            assert narrowed(folder, [one], **options)[0] == []


@pytest.mark.parametrize("column", ["position", "recording_id", "stream_id", "timestamp_ns", "template_id"])
def test_fields_of_sbe_hide_columns_of_ours(folder: Path, rng: random.Random, column: str) -> None:
    """A filter on such a field does not limit the recording, position or time of a message."""
    one_message = {} if column == "template_id" else {"sbeMessage": "Order"}
    options = {"payload": "sbe", "sbeSchema": str(folder.parent / "hides.xml"), **one_message}
    whole = read(batch(folder, **options))
    assert len(whole) == 3 * (COUNT if column == "template_id" else COUNT * 4 // 5)
    for kind, bound in itertools.product(KINDS, rng.sample(bounds_of(column, whole, rng), 5)):
        found, _ = narrowed(folder, [kind((column,), bound)], **options)  # type: ignore[call-arg]
        assert found == [row for row in whole if KINDS[kind](row[column], bound)], (kind.__name__, bound)
