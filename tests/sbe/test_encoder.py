"""The encoder writes what the reference's codecs wrote, and what decoder and plain walk read. Spec: 10 §16, §19 case 65."""

from __future__ import annotations

import pickle
import random
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from aeron_spark.errors import UsageError
from aeron_spark.sbe import Decoder, Encoder, Schema, load, parse
from tests.kit.columns import changed
from tests.sbe import generated
from tests.sbe.test_columns import assert_same, by_message
from tests.sbe.test_options import BODY, SCHEMA, TYPES
from tests.sbe.test_schema import schema
from tests.sbe.vectors import messages, schema_of

SAME_VERSION = (
    "car/car_v0",
    "car/car_v1",
    "car/car_bigendian",
    "features/features_le",
    "features/features_be",
    "binance/stream_realistic",
)


@pytest.mark.parametrize("name", SAME_VERSION)
def test_the_reference_tools_bytes(name: str) -> None:
    read = load(schema_of(name))
    checked = 0
    for message, payloads in by_message(messages(name)).items():
        lengths = [one["consumed"] for one in messages(name) if one["message"] == message]
        batch = Decoder(read, message, on_error="fail", constants="drop", sets="bits", decimals="parts",
                        timestamps="long", chars="binary").decode(payloads)  # fmt: skip
        written = Encoder(read, message).encode(batch).to_pylist()
        for index, (made, payload, length) in enumerate(zip(written, payloads, lengths, strict=True)):
            # The features' header begins with a length of the whole, which is its application's.
            own = 4 if name.startswith("features") else 0
            assert made[own:].hex() == payload[own:length].hex(), f"{message} {index}"
            checked += 1
    assert checked > 0


@pytest.mark.parametrize("count", [0, 1, 40])
def test_schemas_of_chance(count: int, rng: random.Random) -> None:
    for _ in range(12):
        made = generated.Schema(rng)
        read = parse(made.text)
        encoder = Encoder(read, "M")
        batch = pa.RecordBatch.from_pylist([made.row() for _ in range(count)], schema=plain(encoder.arrow_schema))
        payloads = encoder.encode(batch)
        payloads.validate(full=True)
        assert assert_same(read, payloads.to_pylist(), "M") == 0
        decoded = Decoder(read, "M", on_error="fail", constants="drop", spark=True).decode(payloads)
        assert decoded.to_pylist() == batch.to_pylist(), made.text


def plain(of: pa.Schema) -> pa.Schema:
    """Without dictionaries, which rows of Python values can't be made into."""
    return pa.schema([(one.name, _plain(one.type)) for one in of])


def _plain(of: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(of):
        return of.value_type
    if pa.types.is_list(of):
        return pa.list_(_plain(of.value_type))
    if pa.types.is_struct(of):
        return pa.struct([(one.name, _plain(one.type)) for one in of])
    return of


def row(**changes: Any) -> dict[str, Any]:
    return {
        "id": 7, "px": {"mantissa": -150}, "free": {"mantissa": 5, "exponent": -1}, "side": "Buy", "flag": "Yes",
        "bits": ["a", "c"], "name": "ab", "raw": b"\1\2", "at": 1500, "legs": [], "note": "", **changes,
    }  # fmt: skip


KINDS = pa.schema(
    [
        ("id", pa.decimal128(38, 0)), ("px", pa.struct([("mantissa", pa.int64())])),
        ("free", pa.struct([("mantissa", pa.int64()), ("exponent", pa.int16())])), ("side", pa.string()), ("flag", pa.string()),
        ("bits", pa.list_(pa.string())), ("name", pa.string()), ("raw", pa.binary()), ("at", pa.timestamp("ns", "UTC")),
        ("legs", pa.list_(pa.struct([("id", pa.int64()), ("fills", pa.list_(pa.struct([("n", pa.int64())])))]))),
        ("note", pa.string()),
    ]
)  # fmt: skip


def encoded(**changes: Any) -> bytes:
    batch = pa.RecordBatch.from_pylist([row(**changes)], schema=KINDS)
    [made] = Encoder(SCHEMA, "M").encode(batch).to_pylist()
    return bytes(made)


def test_a_message() -> None:
    legs = [{"id": 10, "fills": [{"n": 1}, {"n": 2}]}, {"id": 11, "fills": None}]
    found = Decoder(SCHEMA, "M", on_error="fail").decode([encoded(legs=legs, note="hä")])
    assert found.column("legs").to_pylist() == [[legs[0], {"id": 11, "fills": []}]]
    assert found.column("note").to_pylist() == ["hä"]
    assert found.column("at").cast(pa.int64()).to_pylist() == [1500]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"id": None}, "column id: a null"),
        ({"id": 2**64}, "column id"),
        ({"side": "Sell"}, "no 'Sell'; it has Buy"),
        ({"bits": ["b"]}, "no 'b'; it has a, c"),
        ({"name": "abcde"}, "5 bytes, the field has 4"),
        ({"name": "ä"}, "column name"),
        ({"name": "a\0b"}, "column name: a value with a zero byte inside"),
        ({"name": "\0b"}, "column name: a value with a zero byte inside"),
        ({"raw": b"\1"}, "column raw"),
        ({"note": "x" * 256}, "data of 256 bytes"),
        ({"legs": [{"id": 256, "fills": []}]}, "column legs.id"),
        ({"legs": [{"id": 1, "fills": []}] * 256}, "256 entries"),
        ({"legs": [None]}, "an entry that is null"),
        ({"free": None}, "column free: a null"),
        ({"free": {"mantissa": 1, "exponent": 300}}, "column free.exponent"),
    ],
)
def test_what_a_message_can_not_hold(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        encoded(**changes)


def test_zeros_behind_a_text_are_padding() -> None:
    assert encoded(name="a\0\0") == encoded(name="a")


def test_times_decimals_and_nulls() -> None:
    types = TYPES.replace("</enum>", "</enum>", 1)
    body = BODY.split("<group")[0].replace('name="px"', 'name="px" presence="optional"') + "</message>"
    read = parse(schema(types, body))
    columns = {
        "id": pa.array([1, 2]), "px": pa.array([None, "1.25"]).cast(pa.decimal128(10, 2)),
        "free": pa.array([{"mantissa": 1, "exponent": 0}] * 2), "side": pa.array([None, "Buy"]),
        "flag": pa.array([True, False]),
        "bits": pa.array([1, 255], pa.uint8()), "name": pa.array(["", "abcd"]), "raw": pa.array([b"ab", b"cd"], pa.binary(2)),
        "at": pa.array([5, 6], pa.timestamp("us", "UTC")),
    }  # fmt: skip
    batch = pa.RecordBatch.from_pydict(columns)
    found = Decoder(read, "M", on_error="fail", sets="bits").decode(Encoder(read, "M").encode(batch))
    assert [None if one is None else str(one) for one in found.column("px").to_pylist()] == [None, "1.25"]
    assert found.column("at").cast(pa.int64()).to_pylist() == [5000, 6000]
    assert found.column("bits").to_pylist() == [1, 255]
    assert found.column("flag").to_pylist() == ["Yes", "No"]
    without = Encoder(read, "M").encode(changed(batch, px=None))
    assert Decoder(read, "M", on_error="fail").decode(without).column("px").null_count == 2
    for drop, text in (("id", "column id is missing"), ("none", "no extra")):
        wrong = changed(batch, **{drop: None}) if drop != "none" else changed(batch, extra=pa.array([1, 2]))
        with pytest.raises(UsageError, match=text):
            Encoder(read, "M").encode(wrong)
    finer = changed(batch, px=pa.array(["1.234", "1"]).cast(pa.decimal128(10, 3)))
    with pytest.raises(UsageError, match="column px"):
        Encoder(read, "M").encode(finer)


@pytest.mark.parametrize("framing", ["none", "sofh", "sofh-le4", "sofh-le6", "ilink3"])
def test_framings(framing: str) -> None:
    one = parse(schema("", '<message name="M" id="1"><field name="n" id="1" type="uint32"/></message>'))
    encoder = pickle.loads(pickle.dumps(Encoder(one, "M", framing=framing)))  # noqa: S301 - our own bytes
    payloads = encoder.encode(pa.RecordBatch.from_pydict({"n": pa.array([1, 2, 3])})).to_pylist()
    together = payloads if framing == "none" else [b"".join(payloads)]
    assert Decoder(one, "M", framing=framing, on_error="fail").decode(together).column("n").to_pylist() == [1, 2, 3]
    if framing == "sofh":
        assert payloads[0][:6] == struct.pack(">IH", 18, 0xEB50)
    with pytest.raises(UsageError, match="can be written"):
        Encoder(one, "M", framing="cme-udp")


def test_framings_by_settings_and_sizes_that_they_hold() -> None:
    text = (
        '<composite name="text"><type name="length" primitiveType="uint32"/><type name="varData" primitiveType="uint8" '
    )
    text += 'length="0"/></composite>'
    one = parse(schema(text, '<message name="M" id="1"><data name="d" id="1" type="text"/></message>'))
    for framing, most in (
        ("lengthPrefix=u8,lengthIncludesSelf=false", 255),
        ("lengthPrefix=u8", 254),
        ("ilink3", 65531),
    ):
        encoder = Encoder(one, "M", framing=framing)
        exact, longer = (pa.RecordBatch.from_pydict({"d": pa.array([bytes(most - 12 + more)])}) for more in (0, 1))
        [payload] = encoder.encode(exact).to_pylist()
        found = Decoder(one, "M", framing=framing, on_error="fail").decode([payload * 2])
        assert found.column("d").to_pylist() == exact.column("d").to_pylist() * 2
        with pytest.raises(UsageError, match="the framing's size holds up to"):
            encoder.encode(longer)


OLDER = {"car/car_v0_read_by_v1": 0, "features/features_v0_read_by_v3": 0}


@pytest.mark.parametrize("name", OLDER)
def test_an_older_version_is_what_its_own_codec_wrote(name: str) -> None:
    read, version = load(schema_of(name)), OLDER[name]
    assert read.version > version
    checked = 0
    for message, payloads in by_message(messages(name)).items():
        lengths = [one["consumed"] for one in messages(name) if one["message"] == message]
        batch = Decoder(read, message, on_error="fail", constants="drop", sets="bits", decimals="parts",
                        timestamps="long", chars="binary").decode(payloads)  # fmt: skip
        encoder = pickle.loads(pickle.dumps(Encoder(read, message, version=version)))  # noqa: S301 - our own bytes
        newer = [one for one in batch.schema.names if one not in encoder.arrow_schema.names]
        assert all(batch.column(one).null_count == len(payloads) for one in newer)
        written = encoder.encode(changed(batch, **dict.fromkeys(newer))).to_pylist()
        for made, payload, length in zip(written, payloads, lengths, strict=True):
            own = 4 if name.startswith("features") else 0
            assert made[own:].hex() == payload[own:length].hex(), message
            checked += 1
    assert checked > 0


def test_what_a_version_does_not_have() -> None:
    body = (
        '<message name="M" id="1" blockLength="8"><field name="a" id="1" type="uint32"/>'
        '<field name="b" id="2" type="uint8" offset="6" sinceVersion="2"/></message>'
        '<message name="N" id="2" sinceVersion="1"/>'
    )
    read = parse(schema("", body, version="2"))
    batch = pa.RecordBatch.from_pydict({"a": pa.array([1])})
    assert Encoder(read, "M", version=1).encode(batch).to_pylist() == [struct.pack("<HHHHIH", 6, 1, 1, 1, 1, 0)]
    both = changed(batch, b=pa.array([2], pa.uint8()))
    assert Encoder(read, "M").encode(both).to_pylist() == [struct.pack("<HHHHIHBB", 8, 1, 1, 2, 1, 0, 2, 0)]
    with pytest.raises(UsageError, match="message M has no b; it has a"):
        Encoder(read, "M", version=1).encode(both)
    with pytest.raises(UsageError, match="message N came with version 1"):
        Encoder(read, "N", version=0)
    for version in (-1, 3):
        with pytest.raises(UsageError, match="0 to 2"):
            Encoder(read, "M", version=version)


KINDS_OF_COLUMNS = [
    pa.int8(), pa.uint64(), pa.float64(), pa.string(), pa.binary(), pa.bool_(), pa.date32(), pa.timestamp("us"),
    pa.timestamp("ns", "UTC"), pa.decimal128(38, 18), pa.list_(pa.string()), pa.list_(pa.int32()), pa.null(),
    pa.struct([("a", pa.int8())]), pa.list_(pa.struct([("a", pa.int8())])), pa.map_(pa.string(), pa.string()),
    pa.duration("us"), pa.time64("ns"), pa.struct([]), pa.list_(pa.binary()), pa.dictionary(pa.int16(), pa.int64()),
    pa.struct([("mantissa", pa.string()), ("exponent", pa.string())]), pa.month_day_nano_interval(),
]  # fmt: skip


def refusal(call: Callable[[], object]) -> str:
    """What a call is refused with, if it is; other errors pass."""
    try:
        call()
    except UsageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", ["features/features_le", "car/car_v1"])
def test_columns_of_any_type_are_written_or_refused(name: str) -> None:
    """Nothing but UsageError, with rows and without, and a type that is refused without rows is refused with them."""
    read = load(schema_of(name))
    refused = 0
    for message in read.messages.values():
        encoder = Encoder(read, message.name)
        encoder.check_columns(encoder.arrow_schema)
        for field in encoder.arrow_schema:
            for kind in KINDS_OF_COLUMNS:
                given = pa.schema(
                    [one.with_type(kind) if one.name == field.name else one for one in encoder.arrow_schema]
                )
                rows = pa.RecordBatch.from_arrays([pa.nulls(2, one.type) for one in given], schema=given)
                if told := refusal(lambda: encoder.check_columns(given)):  # noqa: B023 - called at once
                    refused += 1
                    assert field.name in told
                    assert refusal(lambda: encoder.encode(rows))  # noqa: B023
                else:
                    refusal(lambda: encoder.encode(rows))  # noqa: B023
    assert refused > 100


def test_decimals_of_a_positive_exponent_and_times_of_a_unit_on_the_wire() -> None:
    read = load(schema_of("features/features_le"))
    encoder = Encoder(read, "Composites")
    assert encoder.arrow_schema.field("tw").type == pa.timestamp("ns", "UTC")
    line = next(one for one in messages("features/features_le") if one["message"] == "Composites")
    batch = Decoder(read, "Composites", on_error="fail", constants="drop").decode([bytes.fromhex(line["hex"])])
    for value, fits in ((Decimal(1200), True), (Decimal(1250), False), (None, True)):
        other = changed(batch, p32=pa.array([value], pa.decimal128(12, 0)))
        if not fits:
            with pytest.raises(UsageError, match="column p32"):
                encoder.encode(other)
            continue
        again = Decoder(read, "Composites", on_error="fail", constants="drop").decode(encoder.encode(other))
        assert again.column("p32").to_pylist() == [value]
        assert again.column("tw").equals(batch.column("tw"))


def test_a_value_that_means_null_is_refused() -> None:
    one = parse(
        schema("", '<message name="M" id="1"><field name="n" id="1" type="uint8" presence="optional"/></message>')
    )
    encoder = Encoder(one, "M")
    assert encoder.encode(pa.RecordBatch.from_pydict({"n": pa.array([1, None])})).to_pylist()[1][-1] == 255
    with pytest.raises(UsageError, match="means null"):
        encoder.encode(pa.RecordBatch.from_pydict({"n": pa.array([255])}))


def field_of(kind: str, more: str = "", types: str = "") -> Schema:
    """A schema whose one message has one field `f`."""
    return parse(schema(types, f'<message name="M" id="1"><field name="f" id="1" type="{kind}" {more}/></message>'))


def written(read: Schema, column: pa.Array) -> pa.Array:
    """The column as it is read again."""
    encoder = Encoder(read, "M")
    encoder.check_columns(pa.schema([("f", column.type)]))
    payloads = encoder.encode(pa.RecordBatch.from_arrays([column], ["f"]))
    return Decoder(read, "M", on_error="fail").decode(payloads).column("f")


HALF_PAST_NINE_S = 34_200
UNITS = {"s": ("second", 1), "ms": ("millisecond", 10**3), "us": ("microsecond", 10**6), "ns": ("", 10**9)}


@pytest.mark.parametrize("given", UNITS)
@pytest.mark.parametrize("unit", UNITS)
def test_times_are_written_in_the_unit_of_their_field(unit: str, given: str) -> None:
    name, per_second = UNITS[unit]
    more = f'timeUnit="{name}"' if name else ""
    time_of = pa.time32 if given in ("s", "ms") else pa.time64
    for semantic, kind in (("UTCTimeOnly", time_of(given)), ("UTCTimestamp", pa.timestamp(given))):
        read = field_of("int64", f'semanticType="{semantic}" {more}')
        plain = pa.int32() if kind.bit_width == 32 else pa.int64()
        times = pa.array([HALF_PAST_NINE_S * UNITS[given][1]], plain).cast(kind)
        for column in (times, times.dictionary_encode()):
            payloads = Encoder(read, "M").encode(pa.RecordBatch.from_arrays([column], ["f"]))
            assert payloads.to_pylist() == [struct.pack("<HHHHq", 8, 1, 1, 1, HALF_PAST_NINE_S * per_second)]
            assert written(read, column).cast(times.type).equals(times)
        if UNITS[given][1] > per_second:
            finer = pa.array([HALF_PAST_NINE_S * UNITS[given][1] + 1], plain).cast(kind)
            with pytest.raises(UsageError, match=f"column f: .* would lose data.*unit is {unit}"):
                written(read, finer)


DAY, TIME, TIMESTAMP = pa.date32(), pa.time64("us"), pa.timestamp("us")
STAMP = (
    '<composite name="Stamp"><type name="time" primitiveType="uint64"/>'
    '<type name="unit" primitiveType="uint8"/></composite>'
    '<composite name="Whole"><type name="mantissa" primitiveType="int64"/>'
    '<type name="exponent" primitiveType="int8" presence="constant">0</type></composite>'
    '<composite name="Nanos"><type name="time" primitiveType="uint64"/>'
    '<type name="unit" primitiveType="uint8" presence="constant">9</type></composite>'
)


@pytest.mark.parametrize(
    ("kind", "semantic", "given"),
    [
        ("int64", "UTCTimestamp", DAY), ("int64", "UTCTimestamp", TIME), ("int64", "UTCTimestamp", pa.time32("ms")),
        ("int64", "UTCTimeOnly", DAY), ("int64", "UTCTimeOnly", TIMESTAMP),
        ("int32", "LocalMktDate", TIME), ("int32", "UTCDateOnly", TIMESTAMP), ("int32", "Qty", DAY),
        ("int64", "", TIME), ("int64", "", TIMESTAMP), ("double", "", DAY), ("double", "UTCTimestamp", TIMESTAMP),
        ("Whole", "", TIMESTAMP), ("Nanos", "", pa.decimal128(20, 0)), ("Nanos", "UTCTimeOnly", TIMESTAMP), ("Nanos", "", TIME),
        ("Stamp", "UTCTimestamp", pa.struct([("time", TIMESTAMP), ("unit", pa.uint8())])),
        ("Stamp", "UTCTimestamp", pa.struct([("time", DAY), ("unit", pa.uint8())])),
    ],
)  # fmt: skip
def test_a_time_of_another_kind_than_its_field_is_refused_without_rows(
    kind: str, semantic: str, given: pa.DataType
) -> None:
    encoder = Encoder(field_of(kind, f'semanticType="{semantic}"' if semantic else "", STAMP), "M")
    with pytest.raises(UsageError, match="column f"):
        encoder.check_columns(pa.schema([("f", given)]))


@pytest.mark.parametrize(
    ("kind", "semantic"), [("uint16", "LocalMktDate"), ("int32", "UTCDateOnly"), ("int64", ""), ("uint32", "int")]
)
def test_days_are_written_to_dates_and_plain_integers(kind: str, semantic: str) -> None:
    read = field_of(kind, f'semanticType="{semantic}"' if semantic else "")
    assert written(read, pa.array([19_723], DAY)).cast(pa.int32()).to_pylist() == [19_723]


@pytest.mark.parametrize("kind", ["float", "double"])
def test_a_float_that_means_null_is_refused(kind: str) -> None:
    read = field_of("Zero", "", f'<type name="Zero" primitiveType="{kind}" presence="optional" nullValue="0"/>')
    found = written(read, pa.array([-0.0, None, 1.5, float("nan"), float("inf")])).to_pylist()
    assert [str(one) for one in found] == ["-0.0", "None", "1.5", "nan", "inf"]
    with pytest.raises(UsageError, match=r"column f: the value 0\S* means null"):
        written(read, pa.array([0.0, None, 1.0]))
    # NaN is the null value where the schema names none.
    usual = field_of(kind, 'presence="optional"')
    assert written(usual, pa.array([float("nan"), None, 0.0])).to_pylist() == [None, None, 0.0]


def test_a_text_that_means_null_is_refused() -> None:
    read = field_of("Name", "", '<type name="Name" primitiveType="char" length="3" presence="optional" nullValue="-"/>')
    assert written(read, pa.array(["a-", None, ""])).to_pylist() == ["a-", None, ""]
    with pytest.raises(UsageError, match="column f: a text that begins with '-'"):
        written(read, pa.array(["-a"]))


def test_a_number_beyond_its_floats_is_refused() -> None:
    read = field_of("float")
    values = [3.4028234663852886e38, float("inf"), -float("inf")]
    assert written(read, pa.array(values)).to_pylist() == values
    for beyond in (pa.array([1e300]), pa.array([-4e38]), pa.array([Decimal(10**60)], pa.decimal256(70, 0))):
        with pytest.raises(UsageError, match="column f: a value beyond the range of float"):
            written(read, beyond)
