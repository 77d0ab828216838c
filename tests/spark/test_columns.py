"""The rows of a read: columns by option and schema, times, payloads as text, Arrow rows and SBE fields, pushed filters.

The readers are driven as Spark drives them; one query at the end goes through Spark with its setting for filters on and off.

Spec: 09 §5.
"""

from __future__ import annotations

import datetime as dt
import logging
import os
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, LessThan, Not
from pyspark.sql.pandas.types import to_arrow_schema

from aeron_spark.archive.segments import Folder
from aeron_spark.errors import DataLossError, UsageError
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.reading.batch import AeronBatchReader, PushdownReader, RangesPartition
from aeron_spark.spark.reading.payload import ArrowPayload
from aeron_spark.spark.reading.rows import Interval, Rows, _microseconds, read_schema
from aeron_spark.spark.source import AeronDataSource
from tests.kit import dirs
from tests.spark import recorded
from tests.spark.readers import batch, ddl, read
from tests.spark.test_choice import NOTE, SCHEMA, tick

UNKNOWN = struct.pack("<4H", 4, 99, 7, 0) + bytes(4)
SHORT = tick(1, 1)[:20]
CHANNEL = recorded.CHANNEL


def stream(*batches: pa.RecordBatch, schema: pa.Schema | None = None) -> bytes:
    """A message: a stream of batches, of none with the schema."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema or batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """0: ticks and notes stamped in us; 1: text; 2: Arrow streams of 0 to 2 rows; 3: SBE that cannot all be decoded."""
    work = tmp_path_factory.mktemp("columns")
    (work / "ticks.xml").write_text(SCHEMA, encoding="utf-8")
    schema = pa.schema([("a", pa.uint16()), ("b", pa.dictionary(pa.int8(), pa.string()))])
    batches = [
        pa.record_batch([list(range(n % 3)), pa.array([f"x{n}"] * (n % 3), schema.field("b").type)], schema=schema)
        for n in range(20)
    ]
    streams = [stream(one) for one in batches]
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, work / "archive") as archive:
        publication = archive.record(1000)
        for part in range(50):
            now = time.time_ns()
            bodies = [NOTE if index % 5 == 4 else tick(now, part) for index in range(100)]
            stamps = pa.array([0 if index == 7 else now // 1000 for index in range(100)])
            publication.offer_batch(pa.array(bodies, pa.binary()), reserved_values=stamps, timeout=20)
        archive.stop(publication, 1000)
        texts = ["grüße".encode(), b"plain", b"\xff\xfe"]
        for stream_id, messages in ((1001, texts), (1002, streams), (1003, [tick(5000, 1), UNKNOWN, NOTE, SHORT, b""])):
            publication = archive.record(stream_id)
            publication.offer_batch(messages, timeout=20)
            archive.stop(publication, stream_id)
    return work / "archive"


@pytest.fixture
def sbe(folder: Path) -> dict[str, str]:
    return {"payload": "sbe", "sbeSchema": str(folder.parent / "ticks.xml")}


def test_schemas_are_exactly_what_spark_compares(folder: Path, sbe: dict[str, str]) -> None:
    """Each batch's schema, nullability of every column too, equals what Spark makes of the declared one."""
    everything = (
        "recording_id,session_id,stream_id,position,next_position,reserved_value,value,term_id,term_offset,flags,"
    )
    everything += "timestamp,timestamp_ns,channel,source_identity"
    for options in ({}, {"columns": everything}, {"columns": "channel"}, {"columns": "flags,position"}, sbe,
                    {**sbe, "sbeMessage": "Tick"}, {"recordingIds": "2", "payload": "arrow"}):  # fmt: skip
        given = {"recordingIds": "0", **options}
        parsed = ReadOptions.parse({"path": str(folder), **given}, streaming=False)
        schema = read_schema(parsed)
        reader = AeronBatchReader(parsed, schema)
        found = [one for partition in reader.partitions() for one in reader.read(partition)]
        assert found
        assert all(one.schema.equals(to_arrow_schema(schema, timezone="UTC")) for one in found)
        nullable = {field.name for field in schema.fields if field.nullable}
        assert bool(nullable) == any((name in ("payload", "columns") and value != "channel" and "flags" not in value)
                                     or value == everything for name, value in options.items())  # fmt: skip


@pytest.mark.parametrize("source", ["index", "reserved(us)", "sbe:at"])
def test_times(folder: Path, source: str) -> None:
    names = "position,next_position,reserved_value,value,timestamp,timestamp_ns"
    options = {"sbeSchema": str(folder.parent / "ticks.xml")} if "sbe" in source else {}
    rows = read(batch(folder, recordingIds="0", columns=names, timestampFrom=source, **options))
    assert len(rows) == 5000
    for row in rows:
        stamp = row["reserved_value"]
        if source == "reserved(us)":
            assert row["timestamp_ns"] == (stamp * 1000 if stamp else None)
        elif source == "sbe:at":
            assert row["timestamp_ns"] == (
                None if row["value"] == NOTE else struct.unpack_from("<Q", row["value"], 8)[0]
            )
        elif stamp:
            assert abs(row["timestamp_ns"] - stamp * 1000) < 60 * 10**9
        if row["timestamp_ns"] is None:
            assert row["timestamp"] is None
        else:
            assert row["timestamp"] == dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(
                microseconds=row["timestamp_ns"] // 1000
            )
    if source == "index":
        times = [row["timestamp_ns"] for row in rows]
        assert times == sorted(times)


def test_microseconds_are_rounded_down() -> None:
    """Also before 1970."""
    given = [-1001, -1000, -1, 0, 999, 1000, None]
    assert _microseconds(pa.array(given, pa.int64())).cast(pa.int64()).to_pylist() == [-2, -1, -1, 0, 0, 1, None]


def test_a_time_is_that_of_the_messages_last_byte(folder: Path) -> None:
    """What is written behind a message is another one's, with another time."""

    class Timed:
        """A folder whose times follow from positions."""

        @staticmethod
        def index_times_at(_: int, positions: pa.Array) -> pa.Array:
            return positions.cast(pa.timestamp("ns", "UTC"))

    options = ReadOptions.parse({"path": str(folder)}, streaming=False)
    batch = pa.record_batch({"next_position": pa.array([64, 192], pa.int64())})
    with Folder(folder) as opened:
        rows = Rows(options, ddl("timestamp_ns bigint"))
        (made,) = rows.make(Timed(), opened.recording(0), batch, {})  # type: ignore[arg-type]
    assert made.column("timestamp_ns").to_pylist() == [63, 191]


def test_index_does_not_guess(folder: Path, tmp_path: Path) -> None:
    """Without an index of its own archive a message has no time: that of a file is not its."""
    import shutil

    shutil.copytree(folder, tmp_path / "copy")
    for index in (tmp_path / "copy").glob("*.time-index"):
        index.unlink()
    assert {row["timestamp"] for row in read(batch(tmp_path / "copy", columns="timestamp", recordingIds="0"))} == {None}


def test_channel_and_identity(folder: Path) -> None:
    (row,) = read(batch(folder, "channel string, source_identity string, value binary", recordingIds="1", tail="1"))
    assert row == {"channel": CHANNEL, "source_identity": "aeron:ipc", "value": b"\xff\xfe"}


def test_text(folder: Path) -> None:
    options = {"recordingIds": "1", "payload": "string"}
    end = read(batch(folder, recordingIds="1"))[1]["next_position"]
    rows = read(batch(folder, endingPositions=f'{{"1": {end}}}', **options))
    assert [row["value"] for row in rows] == ["grüße", "plain"]
    with pytest.raises(
        DataLossError, match=f"the message at position {end} of recording 1 is no UTF-8.*payload=binary"
    ):
        read(batch(folder, **options))


def test_arrow_streams(folder: Path) -> None:
    rows = read(batch(folder, recordingIds="2", payload="arrow"))
    assert [(row["a"], row["b"]) for row in rows] == [(k, f"x{n}") for n in range(20) for k in range(n % 3)]
    positions = [row["position"] for row in read(batch(folder, recordingIds="2"))]
    assert [row["position"] for row in rows] == [positions[n] for n in range(20) for _ in range(n % 3)]
    assert read(batch(folder, "b string", recordingIds="2", payload="arrow"))[0] == {"b": "x1"}
    with pytest.raises(DataLossError, match="no Arrow IPC stream"):
        batch(folder, recordingIds="1", payload="arrow")
    with pytest.raises(DataLossError, match="message 0 of a batch is no Arrow IPC stream"):
        read(batch(folder, "b string", recordingIds="1", payload="arrow"))
    with pytest.raises(UsageError, match=r"column b is dictionary.* in a message and int64 in the schema"):
        read(batch(folder, "b bigint", recordingIds="2", payload="arrow"))
    with pytest.raises(UsageError, match="has no column 'c', only"):
        read(batch(folder, "c bigint", recordingIds="2", payload="arrow"))


_NS = pa.timestamp("ns", "UTC")
#: Types with times in ns in them, and a value with a time.
HOLDERS: dict[str, tuple[pa.DataType, Callable[[int | None], Any]]] = {
    "time": (_NS, lambda time: time),
    "local": (pa.timestamp("ns"), lambda time: time),
    "list": (pa.list_(_NS), lambda time: [time, 1]),
    "large list": (pa.large_list(_NS), lambda time: [time]),
    "list of two": (pa.list_(_NS, 2), lambda time: [time, time]),
    "map": (pa.map_(pa.string(), _NS), lambda time: [("key", time)]),
    "struct": (pa.struct([("at", _NS), ("count", pa.uint8())]), lambda time: {"at": time, "count": 1}),
    "deep": (pa.list_(pa.struct([("at", pa.list_(_NS))])), lambda time: [{"at": [time]}, None]),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_times_of_arrow_streams_are_rounded_down_wherever_they_are(holder: str) -> None:
    """Also before 1970, and the least and greatest of 64 bits; in messages of several batches, and of none."""
    kind, value = HOLDERS[holder]
    times = [-(2**63), -1001, -1000, -1, None, 0, 999, 2**63 - 1]
    rows = pa.record_batch({"column": pa.array([*map(value, times), None], kind)})
    payload = ArrowPayload(rows.schema)
    messages = [stream(rows.slice(0, 3), rows.slice(3)), stream(schema=rows.schema)]
    ((found, of_message),) = payload.rows(pa.array(messages, pa.binary()), {"column"})
    micros = [None if time is None else time // 1000 for time in times]
    expected = pa.array([*map(value, micros), None], payload.schema.field(0).type)
    if holder == "list":
        expected = pa.array([*([time, 0] for time in micros), None], expected.type)
    assert found.column(0).equals(expected)
    assert of_message.tolist() == [0] * 9


def test_encoded_times_of_arrow_streams_are_rounded_down() -> None:
    rows = pa.record_batch({"column": pa.array([-1, None, -1], _NS).dictionary_encode()})
    ((found, _),) = ArrowPayload(rows.schema).rows(pa.array([stream(rows)], pa.binary()), {"column"})
    assert found.column(0).cast(pa.int64()).to_pylist() == [-1, None, -1]


def test_times_of_arrow_streams_that_microseconds_do_not_hold() -> None:
    rows = pa.record_batch({"column": pa.array([2**60], pa.timestamp("s"))})
    with pytest.raises(UsageError, match=r"column column is timestamp\[s\] in a message .*out of bounds"):
        list(ArrowPayload(rows.schema).rows(pa.array([stream(rows)], pa.binary()), {"column"}))


def test_sbe_of_one_message(folder: Path, sbe: dict[str, str]) -> None:
    rows = read(batch(folder, recordingIds="0", **sbe, sbeMessage="Tick"))
    plain = [row for row in read(batch(folder, recordingIds="0")) if row["value"] != NOTE]
    assert [row["position"] for row in rows] == [row["position"] for row in plain]
    for row, message in zip(rows, plain, strict=True):
        at, price, raw = struct.unpack_from("<QiQ", message["value"], 8)
        assert (row["price"], row["raw"]) == (price, raw)
        assert row["at"] == dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=at // 1000)


def test_sbe_of_all_messages(folder: Path, sbe: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    chosen = {"recordingIds": "3", **sbe}
    with pytest.raises(DataLossError, match=r"message 1 of a batch, template 99: UNKNOWN_TEMPLATE; 3 of 5.*onSbeError"):
        read(batch(folder, **chosen))
    rows = read(batch(folder, **chosen, onSbeError="null"))
    assert [row["sbe_error"] for row in rows] == [None, "UNKNOWN_TEMPLATE", None, "SHORT_BLOCK", "SHORT_HEADER"]
    assert [row["template_id"] for row in rows] == [1, 99, 2, 1, None]
    assert [row["template"] for row in rows] == ["Tick", None, "Note", "Tick", None]
    assert [row["value"] for row in rows] == [tick(5000, 1), UNKNOWN, NOTE, SHORT, b""]
    assert [row["Tick"] and row["Tick"]["price"] for row in rows] == [1, None, None, None, None]
    assert [row["Note"] and row["Note"]["code"] for row in rows] == [None, None, 5, None, None]
    with caplog.at_level(logging.WARNING):
        dropped = read(batch(folder, **chosen, onSbeError="drop"))
    assert [row["template"] for row in dropped] == ["Tick", "Note"]
    assert "dropped 3 of 5 messages" in caplog.text
    ticks = read(batch(folder, **chosen, onSbeError="drop", sbeMessage="Tick", columns="position,price"))
    assert [row["price"] for row in ticks] == [1]


@pytest.mark.parametrize(
    ("schema", "options", "names"),
    [
        ("value string", {}, "value is binary"),
        ("key binary", {}, "does not exist"),
        ("timestamp timestamp not null", {}, "timestamp can be null"),
        ("position bigint, position bigint", {}, "twice"),
        ("position bigint", {"columns": "value"}, "is not the schema's"),
        (None, {"columns": "value,valu"}, "column 'valu' does not exist"),
        (None, {"columns": "value,,position"}, "different names"),
        (None, {"payload": "json"}, "choose one of binary, string, arrow, sbe"),
        (None, {"payload": "sbe"}, "needs sbeSchema"),
        (None, {"sbeMessage": "Tick"}, "it is for payload=sbe"),
    ],
)
def test_refused(folder: Path, schema: str | None, options: dict[str, str], names: str) -> None:
    with pytest.raises(UsageError, match=names):
        batch(folder, schema, **options)


def test_sbe_schema_that_is_refused(folder: Path, tmp_path: Path, sbe: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"sbeMessage='Tock'.*it has Tick, Note"):
        batch(folder, **sbe, sbeMessage="Tock")
    broken = tmp_path / "broken.xml"
    broken.write_text(SCHEMA.replace('primitiveType="uint16"', 'primitiveType="uint17"', 1), encoding="utf-8")
    with pytest.raises(UsageError, match=r"broken\.xml: .*uint17"):
        batch(folder, payload="sbe", sbeSchema=str(broken))
    broken.unlink()
    with pytest.raises(UsageError, match=r"option sbeSchema=.*broken\.xml cannot be read \(No such file"):
        batch(folder, payload="sbe", sbeSchema=str(broken))


def test_a_stream_that_is_refused_says_why(folder: Path) -> None:
    """Not at its making, where Spark hides the reason."""
    source = AeronDataSource({"path": str(folder), "tial": "3"})
    reader = source.streamReader(ddl("value binary"))
    with pytest.raises(UsageError, match="did you mean tail"):
        reader.initialOffset()


def _utc(microseconds: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=microseconds)


def test_filters_narrow_what_is_read(folder: Path) -> None:
    """Never a row that Spark would have kept; and much less is read."""
    names = "recording_id,session_id,stream_id,position,timestamp,timestamp_ns"
    whole = read(batch(folder, columns=names))
    middle = sorted(row["position"] for row in whole)[len(whole) // 2]
    moment = whole[2500]["timestamp_ns"]
    session = whole[-1]["session_id"]
    for filters, keeps in (
        ([EqualTo(("recording_id",), 0)], lambda row: row["recording_id"] == 0),
        ([In(("stream_id",), (1001, 1002))], lambda row: row["stream_id"] in (1001, 1002)),
        ([GreaterThan(("position",), middle), LessThan(("position",), middle + 6400)],
         lambda row: middle < row["position"] < middle + 6400),
        ([EqualTo(("session_id",), session)], lambda row: row["session_id"] == session),
        ([GreaterThanOrEqual(("timestamp_ns",), moment)], lambda row: row["timestamp_ns"] >= moment),
        ([LessThan(("timestamp",), _utc(moment // 1000))], lambda row: row["timestamp_ns"] // 1000 < moment // 1000),
        ([EqualTo(("recording_id",), 1), EqualTo(("recording_id",), 2)], lambda _: False),
        ([Not(EqualTo(("recording_id",), 0))], lambda _: True),
        ([EqualTo(("recording_id",), None)], lambda _: True),
    ):  # fmt: skip
        reader = batch(folder, kind=PushdownReader, columns=names)
        assert isinstance(reader, PushdownReader)
        pushed: list[Filter] = filters  # type: ignore[assignment]
        assert list(reader.pushFilters(pushed)) == pushed, "Spark applies them as well"
        partitions = reader.partitions()
        rows = read(reader, partitions)
        assert [row for row in rows if keeps(row)] == [row for row in whole if keeps(row)]
        planned = sum(part.end - part.start for one in partitions for part in _ranges(one))
        if "session" not in str(filters) and "Not" not in str(filters) and "None" not in str(filters):
            assert planned < sum(part.end - part.start for one in batch(folder).partitions() for part in _ranges(one))


def _ranges(partition: Any) -> Any:
    assert isinstance(partition, RangesPartition)
    return partition.ranges


def test_filter_on_template(folder: Path, sbe: dict[str, str]) -> None:
    reader = batch(folder, kind=PushdownReader, recordingIds="0", **sbe)
    assert isinstance(reader, PushdownReader)
    reader.pushFilters([EqualTo(("template_id",), 2)])
    rows = read(reader)
    assert len(rows) == 1000
    assert {row["template"] for row in rows} == {"Note"}


def test_only_what_is_asked_for_is_read(folder: Path) -> None:
    for schema, native in (("channel string", ("position",)), ("timestamp timestamp", ("next_position",)),
                           ("flags smallint, value binary", ("flags", "value"))):  # fmt: skip
        options = ReadOptions.parse({"path": str(folder)}, streaming=False)
        assert Rows(options, ddl(schema)).native_columns == native


def test_filters_on_and_off_in_spark(spark: SparkSession, folder: Path, sbe: dict[str, str]) -> None:
    assert os.environ["PYSPARK_PYTHON"]
    for setting in ("true", "false"):
        spark.conf.set("spark.sql.python.filterPushdown.enabled", setting)
        try:
            narrowed = {**sbe, "recordingIds": "0", "filterPushdown": "true"}
            frame = spark.read.format("aeron").options(**narrowed).load(str(folder))
            notes = frame.where("template_id = 2 AND position >= 64").agg(F.count("*"), F.sum("Note.code")).first()
            assert tuple(notes) == (1000, 5000)
        finally:
            spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_uses_of_a_frame_do_not_narrow_each_other(spark: SparkSession, folder: Path) -> None:
    """Spark keeps what a pushed filter left with the table, for every use of it."""
    frame = spark.read.format("aeron").load(str(folder))
    whole = frame.count()
    first, others = frame.where("recording_id = 0"), frame.where("recording_id > 0")
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        assert 0 < first.count() < whole
        assert frame.count() == whole
        assert first.union(others).count() == whole
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_bounds_beyond_what_a_column_holds() -> None:
    column = pa.array([-(1 << 63), 0, (1 << 63) - 1, None], pa.int64())
    assert Interval(low=(1 << 63) - 1).mask(column).to_pylist() == [
        value == (1 << 63) - 1 for value in column.to_pylist()
    ]
    assert Interval(high=-(1 << 63)).mask(column).to_pylist() == [value == -(1 << 63) for value in column.to_pylist()]
    assert Interval(low=1 << 63).mask(column).to_pylist() == [False] * 4
    assert Interval(high=-(1 << 63) - 1).mask(column).to_pylist() == [False] * 4
    assert Interval(low=-(1 << 63), high=(1 << 63) - 1).mask(column).to_pylist() == [True, True, True, False]
