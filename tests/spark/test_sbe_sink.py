"""payload=sbe of the sink: typed rows to messages, columns checked before the query starts, the same rows read again."""

from __future__ import annotations

import struct
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DateType, LongType, NullType, StringType, StructField, StructType, YearMonthIntervalType

from aeron_spark.errors import UsageError
from aeron_spark.sbe import Decoder
from aeron_spark.spark.source import AeronDataSource
from aeron_spark.spark.writing import encode
from aeron_spark.spark.writing.options import WriteOptions
from tests.kit import dirs
from tests.sbe.test_schema import schema
from tests.spark import recorded

STREAM_ID = 1001
TYPES = (
    '<composite name="groupSizeEncoding"><type name="blockLength" primitiveType="uint16"/>'
    '<type name="numInGroup" primitiveType="uint8"/></composite>'
    '<composite name="price"><type name="mantissa" primitiveType="int64" presence="optional"/>'
    '<type name="exponent" primitiveType="int8" presence="constant">-4</type></composite>'
    '<composite name="free"><type name="mantissa" primitiveType="int64"/><type name="exponent" primitiveType="int8"/>'
    "</composite>"
    '<composite name="text"><type name="length" primitiveType="uint16"/>'
    '<type name="varData" primitiveType="uint8" length="0" characterEncoding="UTF-8"/></composite>'
    '<composite name="blob"><type name="length" primitiveType="uint16"/><type name="varData" primitiveType="uint8" length="0"/>'
    "</composite>"
    '<enum name="side" encodingType="char"><validValue name="Buy">B</validValue><validValue name="Sell">S</validValue></enum>'
    '<set name="flags" encodingType="uint16"><choice name="firm">0</choice><choice name="hidden">9</choice></set>'
    '<type name="symbol" primitiveType="char" length="6"/>'
)
BODY = (
    '<message name="Order" id="3"><field name="id" id="1" type="uint64"/>'
    '<field name="at" id="2" type="uint64" semanticType="UTCTimestamp" timeUnit="microsecond"/>'
    '<field name="symbol" id="3" type="symbol"/><field name="side" id="4" type="side"/>'
    '<field name="px" id="5" type="price"/><field name="open" id="6" type="free"/><field name="flags" id="7" type="flags"/>'
    '<field name="qty" id="8" type="uint32" presence="optional"/><field name="ratio" id="9" type="double"/>'
    '<field name="venue" id="10" type="uint8" presence="optional" sinceVersion="1"/>'
    '<group name="legs" id="11"><field name="n" id="12" type="int16"/><field name="side" id="13" type="side"/>'
    '<group name="fills" id="14"><field name="px" id="15" type="price"/></group><data name="tag" id="16" type="text"/></group>'
    '<data name="note" id="17" type="text"/><data name="extra" id="18" type="blob"/></message>'
)


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("schema") / "orders.xml"
    path.write_text(schema(TYPES, BODY), encoding="utf-8")
    return str(path)


def frame(spark: SparkSession, count: int = 500) -> DataFrame:
    """Rows of every kind of column, with nulls where there may be some."""
    return spark.range(0, count, 1, 3).selectExpr(
        "CAST(id * 1000003 AS DECIMAL(20,0)) AS id",
        "timestamp_micros(1700000000000000 + id) AS at",
        "concat('S', id % 1000) AS symbol",
        "if(id % 2 = 0, 'Buy', 'Sell') AS side",
        "if(id % 7 = 0, null, CAST(id / 8 AS DECIMAL(19,4))) AS px",
        "named_struct('mantissa', id, 'exponent', CAST(-id % 5 AS TINYINT)) AS open",
        "CASE id % 3 WHEN 0 THEN array() WHEN 1 THEN array('firm') ELSE array('firm', 'hidden') END AS flags",
        "if(id % 5 = 0, null, id) AS qty",
        "id / 3 AS ratio",
        "CAST(if(id % 4 = 0, null, id % 200) AS SMALLINT) AS venue",
        "transform(filter(sequence(0, CAST(id % 4 AS INT)), k -> k > 0), k -> named_struct('n', CAST(k AS SMALLINT), "
        "'side', 'Sell', 'fills', if(k = 2, array(), array(named_struct('px', CAST(k + 0.25 AS DECIMAL(19,4))))), "
        "'tag', concat('ä', k))) AS legs",
        "if(id % 3 = 0, '', concat('note ', id)) AS note",
        "CAST(CAST(id AS STRING) AS BINARY) AS extra",
    )


def sink(orders: str, **more: str) -> dict[str, str]:
    given = {"channel": recorded.CHANNEL, "streamId": str(STREAM_ID), "payload": "sbe", "sbeSchema": orders}
    return {**given, "sbeMessage": "Order", **more}


def read_again(spark: SparkSession, orders: str, folder: Path, **more: str) -> DataFrame:
    given = {"payload": "sbe", "sbeSchema": orders, "sbeMessage": "Order", **more}
    return spark.read.format("aeron").options(**given).load(str(folder))


def same(found: DataFrame, expected: DataFrame) -> None:
    columns = sorted(expected.columns)
    assert_df_equality(
        found.select(columns),
        expected.select(columns),
        ignore_row_order=True,
        ignore_nullable=True,
        ignore_metadata=True,
    )


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_round_trip_of_a_batch(spark: SparkSession, orders: str, guarantee: str) -> None:
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir):
            rows = frame(spark).cache()
            for _ in range(2):
                options = sink(orders, recordTo=str(archive_dir), guarantee=guarantee, linger="0s")
                more = {"writeId": "orders"} if guarantee == "exactly-once" else {}
                rows.write.format("aeron").options(**options, **more).mode("append").save()
            isolation = "read_committed" if guarantee == "exactly-once" else "read_uncommitted"
            found = read_again(spark, orders, archive_dir, isolation=isolation, streamId=str(STREAM_ID))
            same(found, rows if guarantee == "exactly-once" else rows.union(rows))
            rows.unpersist()


def test_round_trip_of_a_stream(spark: SparkSession, orders: str, tmp_path: Path) -> None:
    """Typed columns of one stream become messages of another, with framing, exactly once, and are read as a stream again."""
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir):
            rows = frame(spark, 240).cache()
            rows.write.format("aeron").options(**sink(orders, recordTo=str(archive_dir))).mode("append").save()
            given = {"payload": "sbe", "sbeSchema": orders, "sbeMessage": "Order", "startingPositions": "earliest"}
            source = spark.readStream.format("aeron").options(
                **given, streamId=str(STREAM_ID), maxMessagesPerTrigger="100"
            )
            target = sink(orders, streamId="1002", sbeFraming="sofh", recordTo=str(archive_dir))
            query = (
                source.load(str(archive_dir))
                .select(*rows.columns)
                .writeStream.format("aeron")
                .options(**target, guarantee="exactly-once", checkpointLocation=str(tmp_path / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
            assert len(query.recentProgress) > 1
            again = {**given, "streamId": "1002", "sbeFraming": "sofh", "isolation": "read_committed"}
            back = (
                spark.readStream.format("aeron")
                .options(**again)
                .load(str(archive_dir))
                .select(*rows.columns)
                .writeStream.format("parquet")
                .options(path=str(tmp_path / "rows"), checkpointLocation=str(tmp_path / "second"))
                .trigger(availableNow=True)
                .start()
            )
            back.awaitTermination()
            same(spark.read.parquet(str(tmp_path / "rows")), rows)
            rows.unpersist()


# -- columns ------------------------------------------------------------------------------------------------------------------


def columns_of(orders: str, **options: str) -> StructType:
    return from_arrow_schema(Decoder(orders, "Order", spark=True, on_error="drop", **options).arrow_schema)


def changed(columns: StructType, name: str, field: StructField | None) -> StructType:
    fields = [
        field if one.name == name and field is not None else one
        for one in columns
        if one.name != name or field is not None
    ]
    return StructType(fields if name in columns.names or field is None else [*fields, field])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("name", "field", "words"),
    [
        ("id", None, "column id is missing, and its field is required"),
        ("legs", None, "column legs is missing"),
        ("note", None, "column note is missing"),
        ("ids", StructField("ids", LongType()), "message Order has no ids; .*did you mean id"),
        ("at", StructField("at", StringType()), "column at: string is no number"),
        (
            "at",
            StructField("at", DateType()),
            "column at: date32.* does not fit its field, whose semanticType is UTCTimestamp",
        ),
        ("side", StructField("side", StructType([])), "column side"),
        ("px", StructField("px", StringType()), "column px: string is no struct"),
        ("legs", StructField("legs", StringType()), "column legs: string is no list of structs"),
        ("id", StructField("id", NullType()), "column id: it has only nulls"),
        ("stream_id", StructField("stream_id", StringType()), "column stream_id is string, it must be int"),
        (
            "at",
            StructField("at", YearMonthIntervalType()),
            "column at is interval year to month, which cannot be published",
        ),
        ("flags", StructField("flags", StringType()), "column flags: string is neither a list of names"),
    ],
)
def test_columns_are_checked_before_anything_runs(
    orders: str, name: str, field: StructField | None, words: str, stream: bool
) -> None:
    source = AeronDataSource({key.lower(): value for key, value in sink(orders).items()})
    with pytest.raises(UsageError, match=words):
        (source.streamWriter if stream else source.writer)(changed(columns_of(orders), name, field), overwrite=False)


def test_columns_that_may_be_left_out(orders: str) -> None:
    source = AeronDataSource({key.lower(): value for key, value in sink(orders).items()})
    whole = columns_of(orders)
    for name in ("qty", "venue"):
        source.writer(changed(whole, name, None), overwrite=False)
    for options in (
        {"sets": "bits"},
        {"enums": "values"},
        {"timestamps": "long"},
        {"uint64": "long"},
        {"decimals": "parts"},
    ):
        source.writer(columns_of(orders, **options), overwrite=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sbeMessage": ""}, "sbeMessage is empty"),
        ({"sbeMessage": "Ordre"}, "it has Order; did you mean Order"),
        ({"sbeVersion": "2"}, "sbeVersion='2' is no whole number from 0 to 1"),
        ({"sbeFraming": "cme-udp"}, "can be written"),
        ({"sbeFraming": "sohf"}, "did you mean sofh"),
        ({"sbeVerson": "1"}, "did you mean sbeVersion"),
        ({"payload": "value"}, "sbeSchema cannot be given: it is for payload=sbe"),
        ({"payload": "sbee"}, "did you mean sbe"),
        ({"sbeSchema": "/nowhere/x.xml"}, "sbeSchema=/nowhere/x.xml"),
        ({"streamId": "", "channel": "aeron:ipc"}, "streamId"),
    ],
)
def test_options_that_are_refused(orders: str, options: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        WriteOptions.parse({key.lower(): value for key, value in {**sink(orders), **options}.items()}, ["id"])
    for name in ("sbeSchema", "sbeMessage"):
        without = {key.lower(): value for key, value in sink(orders).items() if key != name}
        with pytest.raises(UsageError, match=rf"needs {name}|{name} is missing: payload=sbe needs it"):
            WriteOptions.parse(without, ["id"])


# -- messages -----------------------------------------------------------------------------------------------------------------

SMALL = schema("", '<message name="M" id="1"><field name="n" id="1" type="uint8"/>'
    '<field name="late" id="2" type="uint8" presence="optional" sinceVersion="1"/></message>')  # fmt: skip


def encoder(tmp_path: Path, **options: str) -> encode.Encoder:
    (tmp_path / "small.xml").write_text(SMALL, encoding="utf-8")
    given = {"payload": "sbe", "sbeSchema": str(tmp_path / "small.xml"), "sbeMessage": "M", "streamId": "1", **options}
    parsed = WriteOptions.parse({key.lower(): value for key, value in given.items()}, ["n", "stream_id"])
    key = encode.RowKey(query=UUID(int=1), batch=3, partition=2)
    return encode.Encoder(parsed, key, lambda *_: 0)


def test_rows_go_where_they_say_with_their_keys(tmp_path: Path) -> None:
    batch = pa.record_batch({"n": pa.array([1, 2, 3]), "stream_id": pa.array([7, None, 7], pa.int32())})
    first, second = encoder(tmp_path, key="header").encode(batch)
    assert (first.stream_id, second.stream_id) == (7, 1)
    assert [value[encode.KEY_LENGTH :] for value in first.values.to_pylist()] == [
        struct.pack("<HHHHBB", 2, 1, 1, 1, n, 255) for n in (1, 3)
    ]
    assert first.values.to_pylist()[0][:4] == b"ASK1"
    decoder = Decoder(tmp_path / "small.xml", "M", skip=encode.KEY_LENGTH, on_error="fail")
    assert decoder.decode(first.values.to_pylist()).column("n").to_pylist() == [1, 3]


def test_an_older_version_and_framing(tmp_path: Path) -> None:
    [found] = encoder(tmp_path, sbeVersion="0", sbeFraming="lengthPrefix=u16be").encode(
        pa.record_batch({"n": pa.array([1])})
    )
    assert found.values.to_pylist() == [struct.pack(">H", 11) + struct.pack("<HHHHB", 1, 1, 1, 0, 1)]


@pytest.mark.parametrize("bad", [0, 5, 8])
@pytest.mark.parametrize(("value", "words"), [(None, "a null in a field that is required"), (300, "must fit uint8")])
def test_a_row_that_is_no_message_is_named(tmp_path: Path, bad: int, value: int | None, words: str) -> None:
    made = encoder(tmp_path)
    fine = pa.record_batch({"n": pa.array([1] * 10)})
    list(made.encode(fine))
    numbers: list[int | None] = [1] * 9
    numbers[bad] = value
    with pytest.raises(UsageError, match=rf"row {10 + bad} of partition 2 is no message M: column n: .*{words}"):
        list(made.encode(pa.record_batch({"n": pa.array(numbers, pa.int64())})))


def test_a_row_is_refused_for_its_own_reason(tmp_path: Path) -> None:
    """Another row's is found first, in the column before."""
    batch = pa.record_batch({"n": pa.array([1, 1, 1, 300]), "late": pa.array([1, 400, 1, 1])})
    with pytest.raises(UsageError, match=r"row 1 of partition 2 is no message M: column late: .*400"):
        list(encoder(tmp_path).encode(batch))


def test_more_than_a_batch_holds_is_the_fault_of_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeron_spark.sbe.encoder.MAX_BYTES", 25)
    with pytest.raises(UsageError, match=r"^30 bytes of messages in a batch"):
        list(encoder(tmp_path).encode(pa.record_batch({"n": pa.array([1, 1, 1])})))
