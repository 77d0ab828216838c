"""Options of payload=sbe: their effect on a message, refusals, and rows through Spark in batch and stream."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from aeron_spark.errors import DataLossError, UsageError
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.planning.sbe_options import load_schema
from aeron_spark.spark.reading.payload import SbePayload
from aeron_spark.spark.reading.rows import read_schema
from tests.kit import dirs
from tests.sbe.test_headers import VENUE, venue
from tests.sbe.test_options import ARGUMENTS, BODY, CASES, LEGS, TYPES, later, m, n
from tests.sbe.test_options import TIMES as LATER_TYPES
from tests.sbe.test_schema import schema
from tests.spark import recorded
from tests.spark.readers import batch, read, stream

SPELT = {
    "uint64": "sbeUint64", "enums": "sbeEnums", "unknown_enum": "sbeUnknownEnum", "sets": "sbeSets", "decimals": "sbeDecimals",
    "timestamps": "sbeTimestamps", "month_years": "sbeMonthYears", "chars": "sbeChars", "byte_arrays": "sbeByteArrays",
    "bad_text": "sbeBadText", "times": "sbeTimes", "empty_as_null": "sbeEmptyAsNull",
}  # fmt: skip
LATER_BODY = (
    '<message name="M" id="1"><field name="sent" id="1" type="Stamp" semanticType="UTCTimestamp"/>'
    '<field name="due" id="2" type="Due" semanticType="MonthYear"/></message>'
)
SCHEMAS = {
    "main": schema(TYPES, BODY),
    "later": schema(LATER_TYPES, LATER_BODY),
    "venue": schema(VENUE, '<message name="M" id="7"><field name="n" id="1" type="uint32"/></message>'),
    "other": schema("", '<message name="Other" id="1"><field name="b" id="1" type="uint8"/></message>', id="2"),
}
FRAMED = "lengthPrefix=u16be,packetHeaderBytes=1"


def framed(*parts: bytes) -> bytes:
    return b"\x7e" + b"".join(struct.pack(">H", len(one) + 2) + one for one in parts)


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("schemas")
    for name, text in SCHEMAS.items():
        (folder / f"{name}.xml").write_text(text, encoding="utf-8")
    return folder


def parsed(schemas: Path, name: str = "main", **options: str) -> ReadOptions:
    given = {"path": "x", "payload": "sbe", "sbeSchema": str(schemas / f"{name}.xml"), **options}
    return ReadOptions.parse({key.lower(): value for key, value in given.items()}, streaming=False)


def rows(options: ReadOptions, *payloads: bytes) -> list[dict[str, Any]]:
    """What a task makes of messages, with the index of each one's message."""
    assert options.sbe is not None
    payload = pickle.loads(pickle.dumps(SbePayload(options.sbe)))  # noqa: S301 - our own bytes
    names = read_schema(options).names
    wanted = {name for name in names if name in payload.schema.names}
    found: list[dict[str, Any]] = []
    for made, source in payload.rows(pa.array(payloads, pa.binary()), wanted):
        for field in made.schema:
            assert field.type == payload.schema.field(field.name).type
        moments = [field.name for field in made.schema if pa.types.is_timestamp(field.type)]
        as_numbers = made
        for name in moments:
            at = made.schema.get_field_index(name)
            as_numbers = as_numbers.set_column(at, name, made.column(name).cast(pa.int64()))
        found += [{**row, "#": index} for row, index in zip(as_numbers.to_pylist(), source.tolist(), strict=True)]
    return found


def spelt(options: dict[str, Any]) -> dict[str, str]:
    found = {}
    for name, value in options.items():
        text = ",".join(f"{key}:{unit}" for key, unit in value.items()) if isinstance(value, dict) else value
        found[SPELT[name]] = ",".join(text) if isinstance(text, list) else text
    return found


@pytest.mark.parametrize(
    ("name", "wire", "options", "expected"), [case for case in CASES if "spark" not in case[2] and case[0] != "one"]
)
def test_every_option_of_values(schemas: Path, name: str, wire: Any, options: dict[str, Any], expected: Any) -> None:
    is_later = name in ("sent", "due")
    make = later if is_later else m
    payload = m() if wire is None else make(**{ARGUMENTS.get(name, name): wire})
    chosen = parsed(schemas, "later" if is_later else "main", sbeMessage="M", onSbeError="null", **spelt(options))
    [row] = rows(chosen, payload)
    in_microseconds = name == "at" and expected == 1500 and "timestamps" not in options
    assert row[name] == (1 if in_microseconds else expected)


def test_all_options_of_the_decoder_are_there() -> None:
    from aeron_spark.sbe import Options
    from aeron_spark.spark.planning.sbe_options import SbeOptions

    snake = {"".join(f"_{one.lower()}" if one.isupper() else one for one in name)[4:] for name in SbeOptions.NAMES}
    missing = set(Options.__dataclass_fields__) - snake
    assert missing == {"on_error", "spark"}, "onSbeError; and Spark it is"


def test_strange_columns_come_and_go(schemas: Path) -> None:
    assert "one" in rows(parsed(schemas, sbeMessage="M"), m())[0]
    assert "one" not in rows(parsed(schemas, sbeMessage="M", sbeConstants="drop"), m())[0]
    [row] = rows(parsed(schemas, sbeMessage="M", sbeHeader="true"), m())
    (length,) = struct.unpack_from("<H", m())
    assert row["sbe_header"] == {"blockLength": length, "templateId": 1, "schemaId": 1, "version": 1}


def test_framing_skip_explode_and_others(schemas: Path) -> None:
    payloads = [b"??" + framed(m(legs=LEGS), n(3), m(number=9, legs=LEGS)), b"??" + framed()]
    options = {"sbeFraming": FRAMED, "sbeSkip": "2", "sbeMessage": "M"}
    plain = rows(parsed(schemas, **options), *payloads)
    assert [(row["id"], row["#"]) for row in plain] == [(7, 0), (9, 0)]
    exploded = rows(parsed(schemas, **options, sbeExplode="legs"), *payloads)
    assert [(row["id"], row["legs.id"], row["#"]) for row in exploded] == [
        (7, 10, 0),
        (7, 11, 0),
        (9, 10, 0),
        (9, 11, 0),
    ]
    union = rows(parsed(schemas, sbeFraming=FRAMED, sbeSkip="2"), *payloads)
    assert [(row["template_id"], row["template"]) for row in union] == [(1, "M"), (2, "N"), (1, "M")]
    with pytest.raises(DataLossError, match=r"message 0 of a batch, template 2: UNKNOWN_TEMPLATE; 1 of 3 cannot"):
        rows(parsed(schemas, **options, sbeOthers="error"), *payloads)


def test_what_becomes_of_messages_that_can_not_be_decoded(schemas: Path) -> None:
    cut = framed(n(1)) + struct.pack(">H", 99) + n(2)
    payloads = [framed(n(1), n(2)[:-1], n(3)), cut]
    kept = rows(parsed(schemas, sbeFraming=FRAMED, sbeMessage="N", onSbeError="null"), *payloads)
    assert [(row["n"], row["sbe_error"], row["#"]) for row in kept] == [
        (1, None, 0), (None, "SHORT_BLOCK", 0), (3, None, 0), (1, None, 1), (None, "FRAME_SIZE", 1),
    ]  # fmt: skip
    assert [row["sbe_raw"] for row in kept] == [None, n(2)[:-1], None, None, struct.pack(">H", 99) + n(2)]
    assert "value" not in read_schema(parsed(schemas, sbeFraming=FRAMED, onSbeError="null")).names
    dropped = rows(parsed(schemas, sbeFraming=FRAMED, sbeMessage="N", onSbeError="drop"), *payloads)
    assert [row["n"] for row in dropped] == [1, 3, 1]
    with pytest.raises(DataLossError, match="template 2: SHORT_BLOCK; 2 of 5"):
        rows(parsed(schemas, sbeFraming=FRAMED, sbeMessage="N"), *payloads)
    lost = {"sbeMessage": "M", "sbeUint64": "long"}
    with pytest.raises(DataLossError, match="1 values of 1 messages do not fit"):
        rows(parsed(schemas, **lost), m(number=2**63))
    assert rows(parsed(schemas, **lost, onSbeError="drop"), m(number=2**63))[0]["id"] is None
    strict = {"sbeMessage": "M", "sbeUnknownEnum": "error"}
    with pytest.raises(DataLossError, match="BAD_ENUM; 1 of 2"):
        rows(parsed(schemas, **strict), m(), m(side=b"X"))
    assert [row["side"] for row in rows(parsed(schemas, **strict, onSbeError="drop"), m(), m(side=b"X"))] == ["Buy"]
    kept = rows(parsed(schemas, **strict, onSbeError="null"), m(), m(side=b"X"))
    assert [row["sbe_error"] for row in kept] == [None, "BAD_ENUM"]


def test_strict_blocks_and_bounds(schemas: Path, tmp_path: Path) -> None:
    body = (
        '<message name="M" id="1"><field name="a" id="1" type="uint8"/>'
        '<field name="b" id="2" type="uint8" sinceVersion="1"/></message>'
    )
    (tmp_path / "late.xml").write_text(schema("", body), encoding="utf-8")
    short = struct.pack("<HHHHB", 1, 1, 1, 1, 7)
    given = {"sbeMessage": "M", "onSbeError": "null"}
    assert [row["a"] for row in rows(parsed(tmp_path, "late", **given), short)] == [7]
    [row] = rows(parsed(tmp_path, "late", **given, sbeStrictBlocks="true"), short)
    assert (row["a"], row["sbe_error"]) == (None, "BLOCK_TOO_SMALL")
    (tmp_path / "bare.xml").write_text(
        schema(TYPES, '<message name="M" id="1"><group name="g" id="1"/></message>'), encoding="utf-8"
    )
    bare = struct.pack("<HHHHHB", 0, 1, 1, 1, 0, 9)
    assert rows(parsed(tmp_path, "bare", **given, sbeMaxEntries="9"), bare)[0]["sbe_error"] is None
    assert rows(parsed(tmp_path, "bare", **given, sbeMaxEntries="8"), bare)[0]["sbe_error"] == "LIMIT"
    # More than a batch may hold.
    wide = TYPES.replace('name="numInGroup" primitiveType="uint8"', 'name="numInGroup" primitiveType="uint32"')
    assert wide != TYPES
    (tmp_path / "wide.xml").write_text(
        schema(wide, '<message name="M" id="1"><group name="g" id="1"/></message>'), encoding="utf-8"
    )
    counts = [60_000, 9] * 20
    many = rows(parsed(tmp_path, "wide", **given), *(struct.pack("<HHHHHI", 0, 1, 1, 1, 0, one) for one in counts))
    assert [(row["#"], len(row["g"])) for row in many] == list(enumerate(counts))


def test_headers_and_several_schemas(schemas: Path) -> None:
    given = {"sbeHeaderType": "venue", "sbeHeaderMap": "templateId:kind", "sbeMessage": "M"}
    assert [row["n"] for row in rows(parsed(schemas, "venue", **given), venue(7, 1, b"\5\0\0\0"))] == [5]
    both = f"{schemas / 'main.xml'}, {schemas / 'other.xml'}"
    payloads = [n(3), struct.pack("<HHHHB", 1, 1, 2, 1, 8), struct.pack("<HHHHB", 1, 1, 2, 1, 8)[:-1]]
    found = rows(parsed(schemas, sbeSchema=both, onSbeError="null"), *payloads)
    assert [(row["schema_id"], row["template_id"], row["template"]) for row in found] == [
        (1, 2, "N"), (2, 1, "Other"), (2, 1, "Other"),
    ]  # fmt: skip
    assert [row["Other"] for row in found] == [None, {"b": 8}, None]
    assert [row["b"] for row in rows(parsed(schemas, sbeSchema=both, sbeMessage="Other"), *payloads[:2])] == [8]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sbeFramming": "none"}, "did you mean sbeFraming"),
        ({"sbeFraming": "sofh-le"}, "sbeFraming='sofh-le'.*did you mean sofh"),
        ({"sbeFraming": "lengthPrefx=u16"}, "did you mean lengthPrefix"),
        ({"sbeEnums": "value"}, "did you mean values"),
        ({"sbeDecimals": "doubel"}, "sbeDecimals='doubel'.*did you mean double"),
        ({"sbeDecimals": "decimal(40,2)"}, "p up to 38"),
        ({"sbeTimes": "at"}, "write it like sentAt:ns"),
        ({"sbeTimes": "at:minutes"}, "the unit 'minutes' of at"),
        ({"sbeHeaderMap": "templateId"}, "write it like templateId:messageTypeId"),
        ({"sbeSkip": "-1"}, "sbeSkip='-1' is no whole number"),
        ({"sbeStrictBlocks": "yes"}, "choose one of false, true"),
        ({"onSbeError": "nul"}, "did you mean null"),
        ({"sbeExplode": "legs"}, "needs sbeMessage"),
        ({"sbeOthers": "error"}, "without sbeMessage"),
        ({"sbeEnums": "values", "sbeUnknownEnum": "null"}, "no value is unknown"),
        ({"payload": "binary"}, "sbeSchema cannot be given: it is for payload=sbe"),
        ({"payload": "binary", "timestampFrom": "sbe:at", "sbeEnums": "values"}, "sbeEnums cannot be given"),
    ],
)
def test_options_that_are_refused(schemas: Path, options: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parsed(schemas, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sbeMessage": "Mm"}, "it has M, N; did you mean M"),
        ({"sbeMessage": "M", "sbeExplode": "leg"}, "there is no group 'leg'; there are legs; did you mean legs"),
        ({"sbeHeaderType": "venus"}, "SCHEMA_HEADER"),
    ],
)
def test_options_that_the_schema_refuses(schemas: Path, options: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_schema(parsed(schemas, **options))


@pytest.fixture(scope="module")
def folder(schemas: Path) -> Iterator[Path]:
    """Packets of several messages each: 300 of M with two legs, and an N between."""
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir) as archive:
            publication = archive.record(1000)
            packets = [
                framed(m(number=k, at=1000 * k, legs=LEGS), n(k), m(number=k + 1, at=1000 * k + 500))
                for k in range(300)
            ]
            publication.offer_batch(packets, timeout=20)
            archive.stop(publication, 1000)
        yield archive_dir


def test_rows_of_packets_through_spark(spark: SparkSession, folder: Path, schemas: Path, tmp_path: Path) -> None:
    given = {
        "payload": "sbe", "sbeSchema": str(schemas / "main.xml"), "sbeFraming": FRAMED, "sbeMessage": "M",
        "sbeExplode": "legs", "sbeUint64": "long", "sbeEnums": "bool",
    }  # fmt: skip
    frame = spark.read.format("aeron").options(**given, minPartitions="3").load(str(folder))
    assert dict(frame.dtypes) | {"id": "bigint", "legs.id": "smallint", "flag": "boolean"} == dict(frame.dtypes)
    assert frame.where("flag").selectExpr("count(*)", "sum(id)", "sum(`legs.id`)").first() == (600, 2 * 44850, 21 * 300)
    query = (
        spark.readStream.format("aeron")
        .options(**given, startingPositions="earliest", maxMessagesPerTrigger="100")
        .load(str(folder))
        .drop("fills")
        .writeStream.format("parquet")
        .option("path", str(tmp_path / "rows"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert len(query.recentProgress) >= 3
    written = spark.read.parquet(str(tmp_path / "rows"))
    assert written.exceptAll(frame.drop("fills")).count() == 0
    assert written.count() == 600


def test_times_of_packets_are_their_earliest(folder: Path, schemas: Path) -> None:
    given = {"sbeSchema": str(schemas / "main.xml"), "sbeFraming": FRAMED, "timestampFrom": "sbe:at"}
    found = read(batch(folder, columns="position,timestamp_ns", **given))
    assert [row["timestamp_ns"] for row in found] == [1000 * k for k in range(300)]
    late = read(batch(folder, columns="timestamp_ns", startingTimestamp="150us", **given))
    assert [row["timestamp_ns"] for row in late] == [1000 * k for k in range(150, 300)]


def test_a_stream_of_the_union(folder: Path, schemas: Path) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    reader = stream(
        folder, payload="sbe", sbeSchema=str(schemas / "main.xml"), sbeFraming=FRAMED, columns="template,N,position"
    )
    start = reader.initialOffset()
    found = read(reader, reader.partitions(start, reader.latestOffset(start, ReadAllAvailable())))
    reader.stop()
    assert [row["template"] for row in found] == ["M", "N", "M"] * 300
    assert [row["N"]["n"] for row in found if row["N"]] == list(range(300))
    assert len({row["position"] for row in found}) == 300


def test_a_schema_may_be_given_as_text(schemas: Path) -> None:
    """For machines that share no files with the client; an error says so, and does not print it all."""
    given = ReadOptions.parse({"path": "x", "payload": "sbe", "sbeschema": f"\n{SCHEMAS['main']}"}, streaming=False)
    assert given.sbe is not None
    assert given.sbe.load() == parsed(schemas).sbe.load()  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="sbeSchema=<the schema given as text>: ") as told:
        load_schema("<nothing/>")
    assert "<nothing/>" not in str(told.value)
