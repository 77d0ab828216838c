"""Entries without bytes, counts, versions and nulls at the edges: columns and plain walk alike. Spec: 10 §3, §10, §13, §14."""

from __future__ import annotations

import random
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from aeron_spark.errors import InternalError, UsageError
from aeron_spark.sbe import DecodeError, Decoder, Encoder, Schema, Walker, parse
from aeron_spark.sbe.run import check_batch
from tests.sbe.test_columns import assert_same
from tests.sbe.test_schema import HEADER, schema


def dimension(name: str, length: str, count: str, more: str = "") -> str:
    return (
        f'<composite name="{name}"><type name="blockLength" primitiveType="{length}"/>'
        f'<type name="numInGroup" primitiveType="{count}"/>{more}</composite>'
    )


SIZE = dimension("groupSizeEncoding", "uint16", "uint32")
TEXT = (
    '<composite name="text"><type name="length" primitiveType="uint8"/>'
    '<type name="varData" primitiveType="uint8" length="0" characterEncoding="UTF-8"/></composite>'
)


def header(length: int = 0, version: int = 1) -> bytes:
    return struct.pack("<HHHH", length, 1, 1, version)


def kind_of(read: Schema, payload: bytes, **options: Any) -> str | None:
    """The error of both."""
    batch = Decoder(read, "M", **options).decode([payload])
    error: str | None = batch.column("sbe_error").to_pylist()[0]
    if error is None:
        Walker(read, **options).decode(payload)
        return None
    with pytest.raises(DecodeError) as failed:
        Walker(read, **options).decode(payload)
    assert (failed.value.kind, failed.value.offset) == (error, batch.column("sbe_error_at").to_pylist()[0])
    return error


@pytest.mark.parametrize(
    "newer", ['<group name="n" id="2" sinceVersion="1"/>', '<data name="d" id="2" type="text" sinceVersion="1"/>']
)
def test_entries_that_hold_only_what_is_newer_are_bounded(newer: str) -> None:
    read = parse(schema(SIZE + TEXT, f'<message name="M" id="1"><group name="g" id="1">{newer}</group></message>'))
    for count, expected in ((1000, None), (1001, "LIMIT"), (2**31 - 1, "LIMIT"), (2**32 - 1, "LIMIT")):
        payload = header(version=0) + struct.pack("<HI", 0, count)
        assert kind_of(read, payload, max_entries=1000) == expected
    assert kind_of(read, header(version=0) + struct.pack("<HI", 1, 1) + b"!", max_entries=1000) is None


NESTED = parse(
    schema(SIZE, '<message name="M" id="1"><group name="o" id="1"><group name="i" id="2"/></group></message>')
)


def test_entries_without_bytes_are_bounded_over_the_whole_message() -> None:
    def nested(outer: int, inner: int) -> bytes:
        return header() + struct.pack("<HI", 0, outer) + struct.pack("<HI", 0, inner) * outer

    assert kind_of(NESTED, nested(10, 100), max_entries=1000) is None
    assert kind_of(NESTED, nested(10, 101), max_entries=1000) == "LIMIT"
    assert kind_of(NESTED, nested(2000, 1_000_000)) == "LIMIT"
    assert Decoder(NESTED, "M", max_entries=2**63 - 1).decode([nested(10, 100)]).num_rows == 1
    # Each message has its own.
    batch = Decoder(NESTED, "M", max_entries=1000).decode([nested(10, 100), nested(10, 101), nested(10, 100)])
    assert batch.column("sbe_error").to_pylist() == [None, "LIMIT", None]
    assert pa.compute.list_value_length(batch.column("o")).to_pylist() == [10, None, 10]


def counting(entries: int) -> bytes:
    return header() + struct.pack("<HI", 0, entries)


BARE = parse(schema(SIZE, '<message name="M" id="1"><group name="g" id="1"/></message>'))


@pytest.mark.parametrize("framing", ["none", "sofh"])
def test_entries_without_bytes_are_bounded_over_a_batch(framing: str) -> None:
    """A few bytes a message, each within its bound, were entries without bound."""
    decoder = Decoder(BARE, "M", framing=framing)

    def packed(*counts: int) -> list[bytes]:
        messages = [counting(one) for one in counts]
        if framing == "none":
            return messages
        # All in one payload, which is no smaller for fewer payloads at once.
        return [b"".join(struct.pack(">IH", 6 + len(one), 0x5BE0) + one for one in messages)]

    with pytest.raises(UsageError, match=r"20 messages in one batch: .*entries that take no bytes.*lower max_entries"):
        decoder.decode(packed(*[65_534] * 20))
    counts = [65_534, 65_535, 3, *[60_000] * 20, 0, 65_535, 7]
    payloads = packed(*counts)
    parts = list(decoder.decode_parts(pa.array([None, *payloads], pa.binary())))
    assert len(parts) > 1
    sizes = [size for one in parts for size in pa.compute.list_value_length(one.batch.column("g")).to_pylist()]
    assert sizes == [None if one == 65_535 else one for one in counts]
    errors = [error for one in parts for error in one.batch.column("sbe_error").to_pylist()]
    assert errors == ["LIMIT" if one == 65_535 else None for one in counts]
    rows = [row for one in parts for row in one.payload.tolist()]
    assert rows == [1 + at if framing == "none" else 1 for at in range(len(counts))]
    assert not any(one.is_one_each for one in parts)
    assert max(len(one.batch.column("g").values) for one in parts) <= 2**20 + 64 * len(counts)


def test_messages_with_some_entries_without_bytes_are_one_batch() -> None:
    payloads = [counting(60)] * 20_000
    decoder = Decoder(BARE, "M")
    [rows] = decoder.decode_parts(payloads)
    assert rows.is_one_each
    assert len(rows.batch.column("g").values) == 1_200_000
    # What a message that is an error would have had does not count.
    assert set(Decoder(BARE, "M", max_entries=999).decode([counting(1000)] * 1000)["sbe_error"].to_pylist()) == {
        "LIMIT"
    }


COUNTED = parse(
    '<messageSchema id="1" version="1"><types>'
    + HEADER.replace(
        "</composite>",
        '<type name="numGroups" primitiveType="uint16"/><type name="numVarDataFields" primitiveType="uint16"/></composite>',
    )
    + dimension(
        "groupSizeEncoding", "uint16", "int32",
        '<type name="numGroups" primitiveType="uint16"/><type name="numVarDataFields" primitiveType="uint16"/>',
    ).replace('name="numInGroup"', 'name="numInGroup" minValue="0"')
    + TEXT
    + '</types><message name="M" id="1"><group name="g" id="1"><field name="x" id="2" type="uint8"/></group>'
    '<data name="d" id="3" type="text"/></message></messageSchema>'
)  # fmt: skip


def unknown(length: int, count: int, groups: int = 0, data: int = 0) -> bytes:
    return struct.pack("<HiHH", length, count, groups, data)


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        (unknown(0, 1000) + b"\0", None),
        (unknown(0, 1001) + b"\0", "NEWER_VERSION"),
        (unknown(0, 500, groups=1) + unknown(0, 2) * 500 + b"\0", None),
        (unknown(0, 500, groups=1) + unknown(0, 3) * 500 + b"\0", "NEWER_VERSION"),
        (unknown(1, -1) + b"\0", "NEWER_VERSION"),
        (unknown(0, 1, groups=1) * 63 + unknown(1, 1) + b"!\0", None),
        (unknown(0, 1, groups=1) * 5000 + unknown(1, 1) + b"!\0", "NEWER_VERSION"),
    ],
)
def test_unknown_groups_are_bounded_too(rest: bytes, expected: str | None) -> None:
    payload = struct.pack("<6H", 0, 1, 1, 2, 2, 1) + unknown(1, 1) + b"\7" + rest
    assert kind_of(COUNTED, payload, max_entries=1000) == expected


def test_what_is_too_much_for_a_batch_says_so() -> None:
    with pytest.raises(InternalError, match=r"5 messages in one batch: there is not enough memory.*decode fewer"):
        check_batch(-7, 5)
    with pytest.raises(UsageError, match="more than 2 GiB of text"):
        check_batch(-1, 5)


def test_counts_and_lengths_are_written_within_their_ranges() -> None:
    def encoder(count: str, length: str) -> Encoder:
        types = (
            '<composite name="groupSizeEncoding"><type name="blockLength" primitiveType="uint8"/>'
            f'<type name="numInGroup" primitiveType="uint8"{count}/></composite>'
            f'<composite name="bytes"><type name="length" primitiveType="uint8"{length}/>'
            '<type name="varData" primitiveType="uint8" length="0"/></composite>'
        )
        group = '<group name="g" id="1"><field name="x" id="2" type="uint8"/></group>'
        return Encoder(
            parse(schema(types, f'<message name="M" id="1">{group}<data name="d" id="3" type="bytes"/></message>')), "M"
        )

    def encoded(one: Encoder, *rows: tuple[int, int]) -> list[bytes]:
        given = [{"g": [{"x": 1}] * count, "d": b"!" * size} for count, size in rows]
        found: list[bytes] = one.encode(pa.RecordBatch.from_pylist(given, schema=one.arrow_schema)).to_pylist()
        return found

    narrow = encoder(' minValue="1" maxValue="3"', ' maxValue="4"')
    assert len(encoded(narrow, (1, 0), (3, 4))) == 2
    for row, text in (
        ((4, 0), "column g: 4 entries.* 1 to 3"),
        ((0, 0), "column g: 0 entries"),
        ((1, 5), "data of 5 bytes.* 0 to 4"),
    ):
        with pytest.raises(UsageError, match=text):
            encoded(narrow, (2, 2), row)
    assert encoded(narrow) == []
    bare, whole = encoder("", ""), encoder(' maxValue="255"', ' maxValue="255"')
    assert len(encoded(bare, (254, 254))) == len(encoded(whole, (255, 255))) == 1
    for row, text in (((255, 0), "255 entries"), ((0, 255), "data of 255 bytes")):
        with pytest.raises(UsageError, match=text):
            encoded(bare, row)
    # What is too much to write may be read.
    [payload] = encoded(whole, (255, 255))
    assert Decoder(bare.schema, "M").decode([payload]).column("sbe_error").to_pylist() == [None]


def test_a_negative_count_is_no_empty_group() -> None:
    size = dimension("groupSizeEncoding", "uint16", "int8").replace(
        'name="numInGroup"', 'name="numInGroup" minValue="0"'
    )
    read = parse(schema(size, '<message name="M" id="1"><group name="g" id="1"/></message>'))
    assert kind_of(read, header() + b"\0\0\x7f") is None
    assert kind_of(read, header() + b"\0\0\xff") == "SHORT_GROUP_ENTRY"


@pytest.mark.parametrize("body", ["", '<field name="x" id="2" type="uint8"/>', '<group name="i" id="2"/>'])
def test_the_block_length_of_a_group_without_entries_is_not_looked_at(body: str) -> None:
    read = parse(
        schema(
            dimension("groupSizeEncoding", "uint32", "uint8"),
            f'<message name="M" id="1"><group name="g" id="1">{body}</group></message>',
        )
    )
    for length in (2**31 - 1, 2**31, 2**32 - 1):
        assert_same(read, [header() + struct.pack("<IB", length, 0)] * 5, "M")
        assert kind_of(read, header() + struct.pack("<IB", length, 0)) is None
        assert kind_of(read, header() + struct.pack("<IB", length, 1)) == "SHORT_GROUP_ENTRY"


def test_a_version_of_64_bits_is_newer_than_any() -> None:
    head = HEADER.replace('name="version" primitiveType="uint16"', 'name="version" primitiveType="uint64"')
    body = (
        '<message name="M" id="1"><field name="a" id="1" type="uint8"/>'
        '<field name="b" id="2" type="uint8" sinceVersion="1"/></message>'
    )
    read = parse(f'<messageSchema id="1" version="1"><types>{head}</types>{body}</messageSchema>')
    for version in (1, 2**63 - 1, 2**63, 2**64 - 1):
        payload = struct.pack("<HHHQBB", 2, 1, 1, version, 5, 6)
        assert assert_same(read, [payload], "M") == 0
        assert Decoder(read, "M").decode([payload]).column("b").to_pylist() == [6]
        assert kind_of(read, payload[:-1]) == ("SHORT_BLOCK" if version == 1 else "NEWER_VERSION")


def test_the_null_of_a_float_is_that_of_its_width() -> None:
    kinds = "".join(
        f'<type name="{kind}0" primitiveType="{kind}" presence="optional" nullValue="{null}"/>'
        for kind, null in (("float", "0.1"), ("double", "0"))
    )
    body = '<message name="M" id="1"><field name="f" id="1" type="float0"/><field name="d" id="2" type="double0"/></message>'
    read = parse(schema(kinds, body))
    payloads = [header(12) + struct.pack("<fd", *one) for one in ((0.1, 0.0), (0.25, -0.0))]
    assert assert_same(read, payloads, "M") == 0
    assert Walker(read).decode(payloads[0]).values == {"f": None, "d": None}
    assert Walker(read).decode(payloads[1]).values == {"f": 0.25, "d": 0.0}


def test_a_composite_is_null_by_its_first_member_that_takes_bytes() -> None:
    types = (
        '<composite name="Unit"><type name="unit" primitiveType="uint8" presence="constant">9</type></composite>'
        '<composite name="C"><ref name="u" type="Unit"/><type name="n" primitiveType="int16"/></composite>'
    )
    read = parse(
        schema(types, '<message name="M" id="1"><field name="c" id="1" type="C" presence="optional"/></message>')
    )
    payloads = [header(2) + struct.pack("<h", one) for one in (-32768, 7)]
    assert assert_same(read, payloads, "M") == 0
    assert Walker(read).decode(payloads[0]).values == {"c": None}
    batch = Decoder(read, "M", on_error="fail").decode(payloads)
    assert batch.column("c").to_pylist() == [None, {"u": {"unit": 9}, "n": 7}]
    assert Encoder(read, "M").encode(batch).to_pylist() == payloads


@pytest.mark.parametrize(
    ("kind", "exponent", "digits"), [("int64", 20, 38), ("int32", 20, 30), ("uint64", 19, 38), ("int8", 37, 38)]
)
def test_large_constant_exponents_are_decimals(kind: str, exponent: int, digits: int) -> None:
    types = (
        f'<composite name="Px"><type name="mantissa" primitiveType="{kind}"/>'
        f'<type name="exponent" primitiveType="int8" presence="constant">{exponent}</type></composite>'
    )
    read = parse(schema(types, '<message name="M" id="1"><field name="px" id="1" type="Px"/></message>'))
    width = {"int8": 1, "int32": 4}.get(kind, 8)
    payloads = [header(width) + one.to_bytes(width, "little", signed=True) for one in (0, 5, 127)]
    found = Decoder(read, "M").decode_rows(payloads)
    assert found.batch.schema.field("px").type == pa.decimal128(digits, 0)
    values: list[Decimal | None] = [Decimal(one).scaleb(exponent) for one in (0, 5, 127)]
    assert found.batch.column("px").to_pylist() == [*values[:2], None if kind == "int8" else values[2]]
    assert found.lost == (1 if kind == "int8" else 0)


@pytest.mark.parametrize(
    ("unit", "unit_ns"), [("", 1), ("nanosecond", 1), ("microsecond", 10**3), ("millisecond", 10**6), ("second", 10**9)]
)
@pytest.mark.parametrize("kind", ["uint64", "int64"])
def test_a_time_of_day_is_less_than_a_day(kind: str, unit: str, unit_ns: int, rng: random.Random) -> None:
    more = f'semanticType="UTCTimeOnly" timeUnit="{unit}"' if unit else 'semanticType="UTCTimeOnly"'
    body = f'<message name="M" id="1"><field name="t" id="1" type="{kind}" {more}/></message>'
    day = 86_400 * 10**9 // unit_ns
    for order in ("littleEndian", "bigEndian"):
        read = parse(schema("", body, byteOrder=order))
        code = ("<" if order == "littleEndian" else ">") + "HHHH" + ("Q" if kind == "uint64" else "q")
        times = [0, day - 1, day, 2**62, 2**63 - 1, 2**64 - 2 if kind == "uint64" else -1, rng.randrange(day)]
        payloads = [struct.pack(code, 8, 1, 1, 1, one) for one in times]
        assert assert_same(read, payloads * 30, "M") == 0
        found = Decoder(read, "M").decode_rows(payloads)
        assert found.lost == 4
        assert found.batch.schema.field("t").type == pa.time64("ns")
        expected = [0, (day - 1) * unit_ns, None, None, None, None, times[6] * unit_ns]
        assert found.batch.column("t").cast(pa.int64()).to_pylist() == expected
        # Spark has no time of day: there it is the number.
        spark = Decoder(read, "M", spark=True).decode(payloads[:5])
        assert spark.column("t").to_pylist() == times[:5]


def test_a_time_of_day_in_an_unknown_unit_is_a_number() -> None:
    field = '<field name="t" id="1" type="int64" semanticType="UTCTimeOnly" timeUnit="minute"/>'
    batch = Decoder(parse(schema("", f'<message name="M" id="1">{field}</message>')), "M").decode(
        [header(8) + struct.pack("<q", 570)]
    )
    assert batch.column("t").equals(pa.array([570], pa.int64()))


@pytest.mark.parametrize("semantic", ["LocalMktDate", "UTCDateOnly"])
def test_a_day_that_no_date_holds_is_lost(semantic: str) -> None:
    field = f'<field name="d" id="1" type="uint32" semanticType="{semantic}" presence="optional"/>'
    days = [19_000, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1]
    for order in ("littleEndian", "bigEndian"):
        read = parse(schema("", f'<message name="M" id="1">{field}</message>', byteOrder=order))
        code = ("<" if order == "littleEndian" else ">") + "HHHHI"
        payloads = [struct.pack(code, 4, 1, 1, 1, one) for one in days]
        assert assert_same(read, payloads * 30, "M") == 0
        for spark in (False, True):
            found = Decoder(read, "M", spark=spark).decode_rows(payloads)
            assert found.batch.schema.field("d").type == pa.date32()
            assert found.batch.column("d").cast(pa.int32()).to_pylist() == [*days[:2], None, None, None]
            assert found.lost == 2
        with pytest.raises(DecodeError, match="LOST_VALUE"):
            Decoder(read, "M", on_error="fail").decode(payloads)
    # C alone does not make the column: the decoder, with what it counts, is the only one.
    told = Decoder(read, "M", spark=True).for_c()
    assert not isinstance(told, str)
    assert told.lacks[0] == "d"


def test_a_month_without_a_year_is_null() -> None:
    types = '<composite name="Due">' + "".join(
        f'<type name="{name}" primitiveType="{kind}" presence="optional"/>'
        for name, kind in (("month", "uint8"), ("year", "uint16"), ("day", "uint8"), ("week", "uint8"))
    )
    for presence in ("required", "optional"):
        field = f'<field name="due" id="1" type="Due" semanticType="MonthYear" presence="{presence}"/>'
        body = f'<message name="M" id="1">{field}</message>'
        read = parse(schema(types + "</composite>", body))
        payloads = [header(5) + struct.pack("<BHBB", *one) for one in ((1, 65535, 255, 255), (2, 2026, 255, 255))]
        assert assert_same(read, payloads, "M") == 0
        expected = [None, {"month": 2, "year": 2026, "day": None, "week": None}]
        batch = Decoder(read, "M", on_error="fail").decode(payloads)
        assert batch.column("due").to_pylist() == expected
        raw = Decoder(read, "M", timestamps="long").decode(payloads[:1]).column("due").to_pylist()
        assert raw == [{"month": 1, "year": None, "day": None, "week": None}]
        written = Encoder(read, "M").encode(batch).to_pylist()
        assert written == [header(5) + struct.pack("<BHBB", 255, 65535, 255, 255), payloads[1]]
