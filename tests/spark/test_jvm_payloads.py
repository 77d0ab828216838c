"""Payloads in the engine of Spark's JVM: texts and SBE columns, against Python's reader, to the value.

What is whole the JVM decodes; where a message or a value is not, Python does, for a batch.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from aeron_spark.sbe import Decoder, parse
from tests.kit import dirs, require
from tests.sbe.test_options import BODY, LEGS, SCHEMA, TYPES, m, n
from tests.sbe.test_schema import schema
from tests.spark import recorded
from tests.spark.session import JAR
from tests.spark.test_jvm import metrics_of, plan_of, told
from tests.spark.test_jvm_shown import logged

MORE_TYPES = (
    '<type name="Maybe" primitiveType="int32" presence="optional"/><type name="Levels" primitiveType="int16" length="3"/>'
    '<type name="Day" primitiveType="uint16"/><type name="Ratio" primitiveType="double"/>'
    '<composite name="Both"><type name="low" primitiveType="int8"/><type name="high" primitiveType="uint32"/></composite>'
)
"""Beside those of `BODY`, so that each kind of column is there."""
MORE = (
    '<message name="More" id="3"><field name="maybe" id="1" type="Maybe"/><field name="levels" id="2" type="Levels"/>'
    '<field name="day" id="3" type="Day" semanticType="LocalMktDate"/><field name="ratio" id="4" type="Ratio"/>'
    '<field name="both" id="5" type="Both" sinceVersion="1"/></message>'
)
FRAMED = "lengthPrefix=u16be,packetHeaderBytes=1"
MESSAGES, PLAIN, TEXTS, BROKEN, FRAMES, SKIPPED, SHORT = 1001, 1002, 1003, 1004, 1005, 1006, 1007
"""Streams: of several templates, of one, of text, with what cannot be decoded or does not fit its column, of frames, behind
other bytes, and with blocks that are too short for their version."""


def more(index: int) -> bytes:
    """A value of each kind; every fifth is of the first version of the message, which lacks the last field."""
    is_first, maybe = index % 5 == 2, -(2**31) if index % 4 == 1 else index
    body = struct.pack("<ihhhHd", maybe, index, -index, 3, index, index / 7)
    body += b"" if is_first else struct.pack("<bI", -index % 100, 2**32 - 1 - index)
    return struct.pack("<HHHH", len(body), 3, 1, 0 if is_first else 1) + body


def plain(index: int) -> bytes:
    return m(number=2**63 + index, free=(index, -1), at=1500 * index, bits=index % 8, legs=LEGS if index % 2 else b"\x01\0\0",
             note=b"caf\xc3\xa9" * (index % 4))  # fmt: skip


def framed(*parts: bytes) -> bytes:
    return b"\x7e" + b"".join(struct.pack(">H", len(one) + 2) + one for one in parts)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    archive_dir = tmp_path_factory.mktemp("payloads") / "archive"
    bad = {17: m()[:-9], 18: b"", 31: m(side=b"X"), 44: m(at=2**64 - 5), 50: struct.pack("<HHHH", 0, 99, 1, 1)}
    streams = {
        MESSAGES: [[plain(index), n(index), more(index)][index % 3] for index in range(300)],
        PLAIN: [plain(index) for index in range(300)],
        TEXTS: [f"äöü {index} 🙂".encode() for index in range(99)] + [b"", b"end"],
        BROKEN: [bad.get(index, plain(index)) for index in range(60)],
        FRAMES: [framed(plain(index), n(index), plain(index + 1)) for index in range(100)],
        SKIPPED: [b"abc" + plain(index) for index in range(60)],
        SHORT: [more(index)[:6] + bytes([index % 2]) + more(index)[7:] for index in (2, 7, 12, 17)],
    }
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, archive_dir) as archive:
        for stream_id, payloads in streams.items():
            publication = archive.record(stream_id)
            publication.offer_batch(payloads, timeout=20)
            archive.stop(publication, stream_id)
    (archive_dir / "schema.xml").write_text(schema(TYPES + MORE_TYPES, BODY + MORE), encoding="utf-8")
    return archive_dir


@pytest.fixture(autouse=True)
def with_jar() -> None:
    """The session has the jar."""
    if not JAR:
        require.missing("the jar of Spark's JVM, which `make build` makes where there is a JDK of Java 17 or newer")


def load(spark: SparkSession, folder: Path, engine: str, stream_id: int, **options: str) -> DataFrame:
    given = {"payload": "sbe", "streamId": str(stream_id), "rowsPerBatch": "50", **options}
    if given["payload"] == "sbe":
        given["sbeSchema"] = str(folder / "schema.xml")
    return spark.read.format("aeron").options(engine=engine, **given).load(str(folder))


def rows_of(frame: DataFrame) -> list[Any]:
    return frame.orderBy(*(name for name in ("position", "id", "n", "maybe") if name in frame.columns)).collect()


def same(spark: SparkSession, folder: Path, stream_id: int, **options: str) -> DataFrame:
    """The JVM's frame, whose rows are those of Python."""
    ours, pythons = (load(spark, folder, engine, stream_id, **options) for engine in ("jvm", "python"))
    assert "engine=jvm" in plan_of(ours)
    assert ours.schema == pythons.schema
    found = rows_of(ours)
    assert found == rows_of(pythons)
    assert len(found) > 0
    return ours


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sbeUint64": "bits", "sbeEnums": "values", "sbeSets": "bits", "sbeChars": "trim", "sbeByteArrays": "array"},
        {"sbeDecimals": "parts", "sbeTimestamps": "long", "sbeChars": "binary", "sbeConstants": "drop"},
        {"sbeHeader": "true", "onSbeError": "null", "sbeTimes": "id:us", "sbeUint64": "long"},
        {"sbeDecimals": "double"},
    ],
    ids=str,
)
def test_each_kind_of_column_is_as_in_python(spark: SparkSession, folder: Path, options: dict[str, str]) -> None:
    """In a stream of several templates, whose other messages have no row, and alone."""
    frame = same(spark, folder, PLAIN, sbeMessage="M", **options)
    assert frame.count() == 300
    whole = options.get("sbeUint64") != "long"
    assert (metrics_of(frame)["aeronHandedOver"] == 0) == whole, "as 2^63 does not fit"
    assert same(spark, folder, MESSAGES, sbeMessage="M", **options).count() == 100


def test_the_versions_of_a_message(spark: SparkSession, folder: Path) -> None:
    frame = same(spark, folder, MESSAGES, sbeMessage="More")
    assert frame.where("both IS NULL").count() == 20
    assert frame.where("maybe IS NULL").count() == 25
    assert metrics_of(frame)["aeronHandedOver"] == 0


def test_a_block_that_is_too_short_for_its_version(spark: SparkSession, folder: Path) -> None:
    frame = same(spark, folder, SHORT, sbeMessage="More")
    assert frame.count() == 4
    assert metrics_of(frame)["aeronHandedOver"] > 0


def test_columns_that_are_not_asked_for_are_not_made(spark: SparkSession, folder: Path) -> None:
    ours, pythons = (load(spark, folder, engine, PLAIN, sbeMessage="M") for engine in ("jvm", "python"))
    for names in (
        ["id"],
        ["legs", "position"],
        ["note", "side"],
        ["bits.element"],
        ["px", "free.mantissa"],
        ["one"],
        ["position"],
    ):
        chosen = ["explode(bits) AS bit" if name == "bits.element" else name for name in names]
        narrow = ours.selectExpr(*chosen)
        assert narrow.collect() == pythons.selectExpr(*chosen).collect()
    assert "engine=jvm struct<px:decimal(19,2)>" in plan_of(ours.select("px"))
    grouped = ours.groupBy("side").agg({"px": "sum", "*": "count"}).collect()
    assert grouped == pythons.groupBy("side").agg({"px": "sum", "*": "count"}).collect()
    assert ours.count() == 300
    # A value that does not fit is no error where its column is not asked for.
    lossy = load(spark, folder, "jvm", PLAIN, sbeMessage="M", sbeUint64="long")
    assert lossy.select("px").count() == 300
    assert "do not fit the types of their columns" in told(lossy.select("id"))


def test_a_limit_of_rows_leaves_batches_of_messages_whole(spark: SparkSession, folder: Path) -> None:
    """As few messages may be a row: else each batch would be as short as the limit."""
    limited = load(spark, folder, "jvm", PLAIN, sbeMessage="M", minPartitions="1").select("id").limit(7)
    assert "limit=7" in plan_of(limited)
    assert metrics_of(limited)["aeronMessages"] == 50
    assert len(limited.collect()) == 7


def test_messages_in_frames(spark: SparkSession, folder: Path) -> None:
    frame = same(
        spark, folder, FRAMES, sbeMessage="M", sbeFraming=FRAMED, columns="position,next_position,id,legs,timestamp_ns"
    )
    assert frame.count() == 200
    assert frame.select("position").distinct().count() == 100
    assert same(spark, folder, FRAMES, sbeMessage="N", sbeFraming=FRAMED).count() == 100
    assert same(spark, folder, PLAIN, sbeMessage="M", sbeSkip="0").count() == 300
    skipped = same(spark, folder, SKIPPED, sbeMessage="M", sbeSkip="3")
    assert metrics_of(skipped)["aeronHandedOver"] == 0


@pytest.mark.parametrize("on_error", ["null", "drop"])
def test_what_cannot_be_decoded_is_what_python_makes_of_it(spark: SparkSession, folder: Path, on_error: str) -> None:
    """Rows of nulls with their error, or none; unknown values and those that do not fit; batch by batch."""
    options = {"sbeMessage": "M", "onSbeError": on_error, "rowsPerBatch": "10"}
    names = {"columns": "position,id,side,at,note" + (",sbe_error,sbe_error_at,sbe_raw" if on_error == "null" else "")}
    frame = same(spark, folder, BROKEN, **options, **names)
    assert frame.count() == (60 if on_error == "null" else 57)
    metrics = metrics_of(frame)
    assert 0 < metrics["aeronHandedOver"] < metrics["aeronBytes"] + metrics["aeronHandedOver"]
    assert metrics["aeronBytes"] > 0, "the other batches are the JVM's"


def test_rows_come_once_where_python_reads_a_batch_and_then_the_rest(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    """The batch for a message that cannot be decoded; the rest for damage in the batch behind it."""
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    options = {"sbeMessage": "M", "onSbeError": "null", "rowsPerBatch": "10", "minPartitions": "1"}
    names = {"columns": "position,recording_id,id,sbe_error"}
    rows = rows_of(load(spark, folder, "python", BROKEN, **options, **names))
    assert rows[17].sbe_error is not None
    with (copy / f"{rows[0].recording_id}-0.rec").open("r+b") as file:
        file.seek(rows[22].position)
        file.write(b"\x05\0\0\0")  # no frame is that short
    assert same(spark, copy, BROKEN, onCorruption="skip", **options, **names).count() == 22


def test_errors_are_those_of_python(spark: SparkSession, folder: Path) -> None:
    for options in (
        {"sbeMessage": "M"},
        {"sbeMessage": "M", "sbeOthers": "error"},
        {"sbeMessage": "N", "sbeFraming": FRAMED},
    ):
        stream_id = MESSAGES if "sbeOthers" in options else BROKEN
        ours, pythons = (told(load(spark, folder, engine, stream_id, **options)) for engine in ("jvm", "python"))
        assert ours == pythons
        assert "payload=sbe: " in ours


def batches_of(frame: DataFrame) -> int:
    """How many batches the scan of a frame gives to Spark."""
    plan = frame._jdf.queryExecution().executedPlan()
    plan.executeCollect()
    while not plan.metrics().contains("numInputBatches"):
        plan = plan.children().head()
    return int(plan.metrics().apply("numInputBatches").value())


def test_bytes_in_groups_bound_a_batch_that_python_reads(spark: SparkSession, tmp_path: Path) -> None:
    """Behind damage Python reads the rest, here all: 4,096 rows were a batch, of any length."""
    sizes = (
        '<composite name="text"><type name="length" primitiveType="uint16"/>'
        '<type name="varData" primitiveType="uint8" length="0" characterEncoding="UTF-8"/></composite>'
        '<composite name="groupSizeEncoding"><type name="blockLength" primitiveType="uint16"/>'
        '<type name="numInGroup" primitiveType="uint8"/></composite>'
    )
    group = (
        '<message name="M" id="1"><group name="parts" id="1"><field name="n" id="2" type="uint8"/>'
        '<data name="body" id="3" type="text"/></group></message>'
    )
    message = struct.pack("<HHHHHBBH", 0, 1, 1, 1, 1, 1, 7, 4000) + b"x" * 4000
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, tmp_path / "archive") as archive:
        publication = archive.record(PLAIN)
        publication.offer_batch([message] * 100, timeout=20)
        archive.stop(publication, PLAIN)
    (tmp_path / "archive" / "schema.xml").write_text(schema(sizes, group), encoding="utf-8")
    with (tmp_path / "archive" / "0-0.rec").open("r+b") as file:
        file.write(b"\x05\0\0\0")  # the length of the first frame
    limits = {"onCorruption": "skip", "bytesPerBatch": "16k", "minPartitions": "1"}
    frame = same(spark, tmp_path / "archive", PLAIN, sbeMessage="M", **limits)
    assert frame.count() == 85, "without a term"
    assert batches_of(frame) >= 85 * 4000 // (16_384 + 4_200)


def test_texts(spark: SparkSession, folder: Path) -> None:
    frame = same(spark, folder, TEXTS, payload="string", columns="position,value")
    assert frame.count() == 101
    assert metrics_of(frame)["aeronHandedOver"] == 0
    ours, pythons = (told(load(spark, folder, engine, PLAIN, payload="string")) for engine in ("jvm", "python"))
    assert ours == pythons
    assert "is no UTF-8" in ours
    assert load(spark, folder, "jvm", PLAIN, payload="string").count() == 300, "nobody has asked for the text"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "payload=sbe for messages of several templates"),
        ({"sbeMessage": "M", "sbeExplode": "legs"}, "payload=sbe for entries of a group as rows"),
        ({"sbeMessage": "M", "sbeDecimals": "decimal(18,2)"}, "column px: only Python makes values of this kind"),
        ({"payload": "string", "timestampFrom": "sbe:at"}, "timestampFrom=sbe:at"),
    ],
)
def test_what_is_left_to_python_says_why(spark: SparkSession, folder: Path, options: dict[str, str], why: str) -> None:
    given = {"sbeSchema": str(folder / "schema.xml"), **options}
    frame = load(spark, folder, "auto", PLAIN, **given)
    assert "engine=jvm" not in plan_of(frame)
    with pytest.raises(Exception, match="engine=jvm cannot read with") as failed:
        load(spark, folder, "jvm", PLAIN, **given).collect()
    assert why in str(failed.value)


def test_a_stream_of_sbe(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    given = {"payload": "sbe", "sbeSchema": str(folder / "schema.xml"), "sbeMessage": "M", "onSbeError": "null"}
    taken: list[Any] = []
    for turn, engine in enumerate(("jvm", "python")):
        stream = spark.readStream.format("aeron").options(engine=engine, startingPositions="earliest", **given)
        rows: list[Any] = []
        query = (
            stream.option("maxMessagesPerTrigger", "40")
            .option("recordingIds", "0, 1, 3")
            .load(str(folder))
            .writeStream.foreachBatch(lambda frame, _, rows=rows: rows.extend(frame.collect()))
            .option("checkpointLocation", str(tmp_path / str(turn)))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)
        assert query.exception() is None
        taken.append(sorted(rows, key=lambda row: (row.recording_id, row.position)))
    assert taken[0] == taken[1]
    assert len(taken[0]) == 460


def test_a_plan_for_c_is_the_same_each_time() -> None:
    """It holds no address of this process."""
    found = [Decoder(parse(schema(TYPES, BODY)), "M", spark=True).for_c() for _ in range(2)]
    assert found[0] == found[1]
    assert not isinstance(found[0], str)
    assert found[0].lacks == ()
    names = Decoder(SCHEMA, "M", spark=True, on_error="drop").arrow_schema.names
    assert found[0].columns == tuple(names)


def test_a_task_says_once_that_it_leaves_batches_to_python(spark: SparkSession, folder: Path) -> None:
    options = {"sbeMessage": "M", "onSbeError": "drop", "rowsPerBatch": "10", "minPartitions": "1"}
    with logged(spark) as lines:
        assert load(spark, folder, "jvm", BROKEN, **options).count() == 57
    assert str(lines.toString()).count("Python reads a batch of recording") == 1
