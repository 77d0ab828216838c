"""Options of columns, framings, unions and exploded groups: each against values worked out by hand.

Spec: 10 §14, §15, 10 §11.
"""

from __future__ import annotations

import pickle
import random
import struct
from decimal import Decimal
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from aeron_spark.errors import UsageError
from aeron_spark.sbe import DecodeError, Decoder, Encoder, decode, load, parse, times
from tests.kit.columns import changed
from tests.sbe.test_schema import schema
from tests.sbe.test_walk import FRAMED, message
from tests.sbe.vectors import GOLDEN, messages, schema_of

TYPES = (
    '<composite name="Price"><type name="mantissa" primitiveType="int64"/>'
    '<type name="exponent" primitiveType="int8" presence="constant">-2</type></composite>'
    '<composite name="Loose"><type name="mantissa" primitiveType="int64"/>'
    '<type name="exponent" primitiveType="int8"/></composite>'
    '<enum name="Side" encodingType="char"><validValue name="Buy">B</validValue></enum>'
    '<enum name="Flag" encodingType="uint8"><validValue name="No">0</validValue><validValue name="Yes">1</validValue></enum>'
    '<set name="Bits" encodingType="uint8"><choice name="a">0</choice><choice name="c">2</choice></set>'
    '<type name="Name" primitiveType="char" length="4"/><type name="Raw" primitiveType="uint8" length="2"/>'
    '<type name="One" primitiveType="uint8" presence="constant">1</type>'
    '<composite name="text"><type name="length" primitiveType="uint8"/>'
    '<type name="varData" primitiveType="uint8" length="0" characterEncoding="UTF-8"/></composite>'
    '<composite name="groupSizeEncoding"><type name="blockLength" primitiveType="uint16"/>'
    '<type name="numInGroup" primitiveType="uint8"/></composite>'
)
TIMES = (
    '<composite name="Stamp" semanticType="UTCTimestamp"><type name="time" primitiveType="uint64"/>'
    '<type name="unit" primitiveType="uint8"/></composite>'
    '<composite name="Due" semanticType="MonthYear"><type name="year" primitiveType="uint16" presence="optional"/>'
    '<type name="month" primitiveType="uint8" presence="optional"/><type name="day" primitiveType="uint8" presence="optional"/>'
    '<type name="week" primitiveType="uint8" presence="optional"/></composite>'
)
BODY = (
    '<message name="M" id="1"><field name="id" id="1" type="uint64"/><field name="px" id="2" type="Price"/>'
    '<field name="free" id="3" type="Loose"/><field name="side" id="4" type="Side"/><field name="flag" id="5" type="Flag"/>'
    '<field name="bits" id="6" type="Bits"/><field name="name" id="7" type="Name"/><field name="raw" id="8" type="Raw"/>'
    '<field name="one" id="9" type="One"/><field name="at" id="10" type="uint64" semanticType="UTCTimestamp"/>'
    '<group name="legs" id="11"><field name="id" id="12" type="uint8"/>'
    '<group name="fills" id="13"><field name="n" id="14" type="uint8"/></group></group>'
    '<data name="note" id="15" type="text"/></message>'
    '<message name="N" id="2"><field name="n" id="1" type="uint32"/></message>'
)
SCHEMA = parse(schema(TYPES, BODY))


def m(*, number: int = 7, free: tuple[int, int] = (5, -1), side: bytes = b"B", flag: int = 1, legs: bytes = b"\x01\0\0",
      note: bytes = b"", at: int = 1500, bits: int = 5) -> bytes:  # fmt: skip
    block = (
        struct.pack("<Qqqb", number, -150, *free)
        + side
        + bytes([flag, bits])
        + b"ab  "
        + b"\1\2"
        + struct.pack("<Q", at)
    )
    return struct.pack("<HHHH", len(block), 1, 1, 1) + block + legs + bytes([len(note)]) + note


def n(value: int) -> bytes:
    return struct.pack("<HHHHI", 4, 2, 1, 1, value)


LEGS = b"\x01\0\x02" + b"\x0a\x01\0\x02\1\2" + b"\x0b\x01\0\0"
"""Leg 10 with fills 1 and 2, leg 11 without."""


LATER = parse(
    schema(
        TIMES,
        '<message name="M" id="1"><field name="sent" id="1" type="Stamp" semanticType="UTCTimestamp"/>'
        '<field name="due" id="2" type="Due" semanticType="MonthYear"/></message>',
    )
)


def later(*, sent: tuple[int, int] = (0, 9), due: tuple[int, int, int, int] = (2026, 1, 1, 1)) -> bytes:
    return struct.pack("<HHHH", 14, 1, 1, 1) + struct.pack("<QB", *sent) + struct.pack("<HBBB", *due)


def column(name: str, payload: bytes, **options: Any) -> Any:
    decoder = Decoder(LATER if name in ("sent", "due") else SCHEMA, "M", **options)
    batch = decoder.decode([payload])
    assert batch.schema.equals(decoder.arrow_schema)
    batch.validate(full=True)
    found = batch.column(name)
    return found.cast(pa.int64())[0].as_py() if pa.types.is_timestamp(found.type) else found[0].as_py()


CASES = [
    ("id", 2**64 - 1, {}, Decimal(2**64 - 1)),
    ("id", 7, {"uint64": "long"}, 7),
    ("id", 2**64 - 1, {"uint64": "long"}, None),
    ("id", 2**64 - 1, {"uint64": "bits"}, -1),
    ("px", None, {}, Decimal("-1.50")),
    ("px", None, {"decimals": "double"}, -1.5),
    ("px", None, {"decimals": "parts"}, {"mantissa": -150, "exponent": -2}),
    ("px", None, {"decimals": "decimal(10,4)"}, Decimal("-1.5")),
    ("px", None, {"decimals": "decimal(10,0)"}, None),
    ("free", (5, -1), {}, {"mantissa": 5, "exponent": -1}),
    ("free", (5, -1), {"decimals": "double"}, 0.5),
    ("free", (2**62 + 1, -25), {"decimals": "double"}, float(f"{2**62 + 1}e-25")),
    ("free", (3, 2), {"decimals": "decimal(5,1)"}, Decimal(300)),
    ("free", (3, 4), {"decimals": "decimal(5,1)"}, None),
    ("free", (0, 100), {"decimals": "decimal(5,1)"}, Decimal(0)),
    ("side", b"B", {}, "Buy"),
    ("side", b"X", {}, "X"),
    ("side", b"X", {"unknown_enum": "null"}, None),
    ("side", b"X", {"enums": "values"}, "X"),
    ("flag", 1, {"enums": "values"}, 1),
    ("flag", 1, {"enums": "bool"}, True),
    ("flag", 0, {"enums": "bool"}, False),
    ("flag", 9, {"enums": "bool"}, None),
    ("flag", 255, {"enums": "bool"}, None),
    ("bits", 5, {}, ["a", "c"]),
    ("bits", 255, {"sets": "bits"}, 255),
    ("bits", 4, {"sets": "struct"}, {"a": False, "c": True}),
    ("raw", None, {}, b"\1\2"),
    ("raw", None, {"byte_arrays": "array"}, [1, 2]),
    ("name", None, {}, "ab  "),
    ("name", None, {"chars": "trim"}, "ab"),
    ("name", None, {"chars": "binary"}, b"ab  "),
    ("at", 1500, {}, 1500),
    ("at", 1500, {"timestamps": "us"}, 1),
    ("at", 1500, {"timestamps": "long"}, Decimal(1500)),
    ("at", 2**64 - 5, {}, None),
    ("note", b"\xff", {}, "\ufffd"),
    ("note", b"\xff", {"bad_text": "null"}, None),
    ("note", b"ok", {"bad_text": "error"}, "ok"),
    ("note", b"", {}, ""),
    ("note", b"", {"empty_as_null": ["note"]}, None),
    ("one", None, {"spark": True}, 1),
    ("id", 1500, {"times": {"id": "us"}, "timestamps": "us"}, 1500),
    ("sent", (1500, 6), {"timestamps": "us"}, 1500),
    ("sent", (1500, 9), {"timestamps": "us"}, 1),
    ("sent", (2**63 // 10**9 + 1, 0), {"timestamps": "us"}, None),
    ("sent", (3, 5), {"timestamps": "us"}, None),
    ("sent", (3, 5), {"timestamps": "long"}, {"time": Decimal(3), "unit": 5}),
    ("sent", (3, 5), {"times": {"sent": "ms"}, "timestamps": "us"}, 3000),
    ("due", (2026, 1, 255, 255), {"month_years": "text"}, "202601"),
    ("due", (2026, 1, 31, 255), {"month_years": "text"}, "20260131"),
    ("due", (2026, 12, 255, 2), {"month_years": "text"}, "202612w2"),
    ("due", (65535, 1, 1, 1), {"month_years": "text"}, None),
    ("due", (2026, 255, 1, 1), {"month_years": "text"}, None),
    ("due", (2026, 1, 255, 255), {}, {"year": 2026, "month": 1, "day": None, "week": None}),
]
ARGUMENTS = {"id": "number", "free": "free", "side": "side", "flag": "flag", "bits": "bits", "at": "at", "note": "note"}


@pytest.mark.parametrize(("name", "wire", "options", "expected"), CASES)
def test_values(name: str, wire: Any, options: dict[str, Any], expected: Any) -> None:
    make = later if name in ("sent", "due") else m
    payload = m() if wire is None else make(**{ARGUMENTS.get(name, name): wire})
    assert column(name, payload, **options) == expected
    with_spark = column(name, payload, **{**options, "spark": True})
    assert with_spark == (1 if name == "at" and expected == 1500 and "timestamps" not in options else expected)


@pytest.mark.parametrize(
    ("payload", "options"),
    [
        (m(number=2**63), {"uint64": "long"}),
        (m(side=b"X"), {"unknown_enum": "error"}),
        (m(note=b"\xff"), {"bad_text": "error"}),
        (m(free=(15, -1)), {"decimals": "decimal(5,0)"}),
    ],
)
def test_values_that_are_errors_when_asked(payload: bytes, options: dict[str, Any]) -> None:
    with pytest.raises(DecodeError):
        Decoder(SCHEMA, "M", on_error="fail", **options).decode([payload])


def test_values_that_are_errors_spoil_only_their_message() -> None:
    leg = b"\x01\0\x02" + b"\x0a\x01\0\0" + b"\x0b\x01\0\x01\x05"
    payloads = [m(), m(side=b"X", legs=leg), m(legs=leg), m(flag=9, note=b"ok\xff"), m(note=b"\xff"), m()[:-1], m()]
    wrong = {"unknown_enum": "error", "bad_text": "error"}
    kinds = [None, "BAD_ENUM", None, "BAD_ENUM", "BAD_TEXT", "SHORT_DATA_LENGTH", None]
    offsets = [None, 8 + 25, None, 8 + 26, len(m()), len(m()) - 1, None]
    for more in ({}, {"spark": True}, {"enums": "bool"}, {"columns": ["id", "side", "flag", "legs", "note", *_ERRORS]}):
        found = Decoder(SCHEMA, "M", **wrong, **more).decode_rows(payloads)
        found.batch.validate(full=True)
        assert found.lost == 0
        assert found.batch.column("sbe_error").to_pylist() == kinds
        assert found.batch.column("sbe_error_at").to_pylist() == offsets
        assert found.batch.column("sbe_raw").to_pylist() == [
            payload if kind else None for payload, kind in zip(payloads, kinds, strict=True)
        ]
        assert found.batch.column("id").to_pylist() == [None if kind else 7 for kind in kinds]
        assert pc.list_value_length(found.batch.column("legs")).to_pylist() == [0, None, 2, None, None, None, 0]
        dropped = Decoder(SCHEMA, "M", on_error="drop", **wrong).decode_rows(payloads)
        assert (dropped.dropped, dropped.payload.tolist()) == (4, [0, 2, 6])
    union = Decoder(SCHEMA, **wrong).decode([n(1), *payloads])
    assert union.column("sbe_error").to_pylist() == [None, *kinds]
    assert [row is None for row in union.column("M").to_pylist()] == [True, *[kind is not None for kind in kinds]]


_ERRORS = ("sbe_error", "sbe_error_at", "sbe_raw")


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (
            m(side=b"X"),
            "BAD_ENUM at offset 33: message 1, of payload 1, as M: side is 'X', which is no value of enum Side",
        ),
        (m(flag=9), "BAD_ENUM at offset 34: .* flag is 9, which is no value of enum Flag"),
        (m(note=b"\xff"), f"BAD_TEXT at offset {len(m())}: .* note is ff, which is not UTF-8"),
    ],
)
def test_a_value_that_is_an_error_is_named(payload: bytes, text: str) -> None:
    with pytest.raises(DecodeError, match=text):
        Decoder(SCHEMA, "M", on_error="fail", unknown_enum="error", bad_text="error").decode([m(), payload])


def test_a_value_that_is_an_error_deep_in_groups() -> None:
    body = (
        '<message name="M" id="1"><group name="o" id="1"><group name="i" id="2"><field name="s" id="3" type="Side"/>'
        '<data name="d" id="4" type="text"/></group></group></message>'
    )
    read = parse(schema(TYPES, body))

    def nested(*groups: list[tuple[bytes, bytes]]) -> bytes:
        made = struct.pack("<HHHHHB", 0, 1, 1, 1, 0, len(groups))
        for one in groups:
            made += struct.pack("<HB", 1, len(one)) + b"".join(side + bytes([len(note)]) + note for side, note in one)
        return made

    good = nested([], [(b"B", b"x")], [])
    payloads = [
        good,
        nested([(b"B", b"")], [], [(b"B", b""), (b"Z", b"")]),
        good,
        nested([], [(b"B", b"\xff")]),
        nested(),
    ]
    decoder = Decoder(read, "M", unknown_enum="error", bad_text="error")
    batch = decoder.decode(payloads)
    batch.validate(full=True)
    assert batch.column("sbe_error").to_pylist() == [None, "BAD_ENUM", None, "BAD_TEXT", None]
    assert batch.column("sbe_error_at").to_pylist() == [None, 8 + 3 + 3 + 2 + 3 + 3 + 2, None, 8 + 3 + 3 + 3 + 2, None]
    assert batch.slice(0, 1).to_pylist() == decoder.decode([good]).to_pylist()
    with pytest.raises(DecodeError, match=r"o\.i\.s is 'Z'"):
        Decoder(read, "M", on_error="fail", unknown_enum="error").decode(payloads)
    # Messages back to back: the next one begins where the walk ends.
    stream = Decoder(read, "M", framing="messages", unknown_enum="error", bad_text="error").decode([b"".join(payloads)])
    assert stream.column("sbe_error").to_pylist() == batch.column("sbe_error").to_pylist()


def test_lost_values_are_counted() -> None:
    found = Decoder(SCHEMA, "M", uint64="long").decode_rows([m(number=2**63), m(), m(at=2**64 - 5)])
    assert found.lost == 2
    assert found.batch.column("id").to_pylist() == [None, 7, 7]


def test_constants_and_deprecated_may_go() -> None:
    assert "one" in Decoder(SCHEMA, "M").arrow_schema.names
    assert "one" not in Decoder(SCHEMA, "M", constants="drop").arrow_schema.names
    old = parse(schema("", '<message name="M" id="1"><field name="n" id="1" type="uint8" deprecated="1"/></message>'))
    assert "n" not in Decoder(old, "M", drop_deprecated=True).arrow_schema.names


def test_sibling_exponents() -> None:
    lines = [one for one in messages("binance/stream_realistic") if one["message"] == "DepthDiffStreamEvent"]
    lines += [one for one in messages("binance/stream_realistic") if one["message"] == "BestBidAskStreamEvent"]
    checked = 0
    for line in lines:
        decoder = Decoder(load(schema_of("binance/stream_realistic")), line["message"], decimals="decimal(38,18)")
        [row] = changed(decoder.decode([bytes.fromhex(line["hex"])]), eventTime=None).to_pylist()
        values = line["values"]
        if "bidPrice" in values:
            assert row["bidPrice"] == Decimal(values["bidPrice"]).scaleb(values["priceExponent"])
            checked += 1
        for entry, told in zip(row.get("bids") or [], values.get("bids") or [], strict=True):
            assert entry["qty"] == Decimal(told["qty"]).scaleb(values["qtyExponent"])
            checked += 1
    assert checked > 3


def test_exploded_groups() -> None:
    payloads = [m(legs=LEGS), m(), m()[:20], m(number=9, legs=LEGS)]
    decoder = Decoder(SCHEMA, "M", explode="legs")
    found = decoder.decode_rows(payloads)
    assert found.batch.schema.equals(decoder.arrow_schema)
    assert found.payload.tolist() == [0, 0, 2, 3, 3]
    assert found.batch.column("legs.id").to_pylist() == [10, 11, None, 10, 11]
    assert found.batch.column("id").to_pylist() == [7, 7, None, 9, 9]
    assert found.batch.column("sbe_error").to_pylist() == [None, None, "SHORT_BLOCK", None, None]
    inner = Decoder(SCHEMA, "M", explode="legs.fills", on_error="drop").decode_rows(payloads)
    assert inner.batch.column("n").to_pylist() == [1, 2, 1, 2]
    assert inner.payload.tolist() == [0, 0, 3, 3]
    with pytest.raises(UsageError, match="there are legs"):
        Decoder(SCHEMA, "M", explode="arms")
    with pytest.raises(UsageError, match="needs a message"):
        Decoder(SCHEMA, explode="legs")


def test_a_union_of_templates() -> None:
    payloads = [m(), n(3), struct.pack("<HHHH", 0, 9, 1, 1), b"", n(4)[:-1], m(number=8)]
    decoder = Decoder(SCHEMA)
    batch = decoder.decode(payloads)
    batch.validate(full=True)
    assert batch.schema.equals(decoder.arrow_schema)
    assert batch.column("sbe_template_id").to_pylist() == [1, 2, 9, None, 2, 1]
    assert batch.column("sbe_template").to_pylist() == ["M", "N", None, None, None, "M"]
    assert batch.column("N").to_pylist() == [None, {"n": 3}, None, None, None, None]
    assert pc.struct_field(batch.column("M"), "id").to_pylist() == [7, None, None, None, None, 8]
    assert batch.column("sbe_error").to_pylist() == [
        None,
        None,
        "UNKNOWN_TEMPLATE",
        "SHORT_HEADER",
        "SHORT_BLOCK",
        None,
    ]
    assert batch.column("sbe_raw").to_pylist() == [None, None, payloads[2], b"", payloads[4], None]
    dropped = Decoder(SCHEMA, on_error="drop").decode_rows(payloads)
    assert (dropped.dropped, dropped.payload.tolist()) == (3, [0, 1, 5])
    with pytest.raises(DecodeError, match="UNKNOWN_TEMPLATE"):
        Decoder(SCHEMA, on_error="fail").decode(payloads)


def test_other_templates_may_be_skipped() -> None:
    payloads = [m(), n(3), struct.pack("<HHHH", 0, 9, 1, 1), n(4)]
    assert Decoder(SCHEMA, "N").decode(payloads).column("sbe_error").to_pylist() == [
        "UNKNOWN_TEMPLATE", None, "UNKNOWN_TEMPLATE", None,
    ]  # fmt: skip
    found = Decoder(SCHEMA, "N", others="skip").decode_rows(payloads)
    assert found.batch.column("n").to_pylist() == [3, None, 4]
    assert (found.skipped, found.payload.tolist()) == (1, [1, 2, 3])


def test_other_templates_come_and_go() -> None:
    """From batch to batch of one decoder, beside messages that are errors; a count of rows that are their payloads is right."""
    unknown = struct.pack("<HHHH", 0, 9, 1, 1)
    decoder = Decoder(SCHEMA, "N", others="skip")
    for payloads, numbers, rows in (
        ([n(1), n(2)], [1, 2], [0, 1]),
        ([n(1), m(), n(2), m()], [1, 2], [0, 2]),
        ([m(), n(3), unknown], [3, None], [1, 2]),
        ([n(4), n(5)], [4, 5], [0, 1]),
        ([n(6), unknown, n(7)[:-1]], [6, None, None], [0, 1, 2]),
        ([m(), m()], [], []),
        ([], [], []),
    ):
        found = decoder.decode_rows(payloads)
        assert found.batch.column("n").to_pylist() == numbers
        assert (found.skipped, found.payload.tolist()) == (len(payloads) - len(rows), rows)
        assert not found.is_one_each or rows == list(range(len(payloads)))
    assert decoder.decode_rows([n(1), n(2)]).is_one_each
    assert not decoder.decode_rows(pa.array([None, n(2)])).is_one_each
    dropped = Decoder(SCHEMA, "N", on_error="drop").decode_rows([unknown, n(2)])
    assert (dropped.is_one_each, dropped.payload.tolist()) == (False, [1])


@pytest.mark.parametrize("count", [1, 3, 5000])
def test_doubles_of_many_messages(count: int, rng: random.Random) -> None:
    """Of a composite with a constant exponent, one with its own, one that may be absent, and a sibling of a group's parent."""
    types = TYPES + (
        '<composite name="Maybe"><type name="mantissa" primitiveType="int32" presence="optional"/>'
        '<type name="exponent" primitiveType="int8"/></composite>'
    )
    body = (
        '<message name="D" id="1"><field name="shift" id="1" type="int8"/><field name="px" id="2" type="Price"/>'
        '<field name="free" id="3" type="Loose"/><field name="maybe" id="4" type="Maybe" presence="optional"/>'
        '<field name="near" id="5" type="int64" exponent="shift"/>'
        '<group name="legs" id="6"><field name="far" id="7" type="int64" exponent="shift"/></group></message>'
    )
    given, payloads = [], []
    for _ in range(count):
        shift, mine = rng.randrange(-30, 30), rng.randrange(-20, 4)
        px, free, near, far = (
            rng.choice([rng.randrange(-(2**40), 2**40), rng.randrange(-(2**63), 2**63)]) for _ in "1234"
        )
        maybe = rng.choice([None, rng.randrange(-(2**31) + 1, 2**31)])
        block = struct.pack("<bqqbibq", shift, px, free, mine, -(2**31) if maybe is None else maybe, mine, near)
        payloads.append(struct.pack("<HHHH", len(block), 1, 1, 1) + block + struct.pack("<HBq", 8, 1, far))
        given.append(
            {
                "shift": shift,
                "px": float(f"{px}e-2"),
                "free": float(f"{free}e{mine}"),
                "maybe": None if maybe is None else float(f"{maybe}e{mine}"),
                "near": float(f"{near}e{shift}"),
                "legs": [{"far": float(f"{far}e{shift}")}],
            }
        )
    decoded = Decoder(parse(schema(types, body)), "D", decimals="double", on_error="fail").decode(payloads)
    decoded.validate(full=True)
    assert decoded.to_pylist() == given


ONE = parse(schema("", '<message name="M" id="1"><field name="n" id="1" type="uint32"/></message>'))


@pytest.mark.parametrize("framing", FRAMED)
def test_several_messages_in_a_payload(framing: str) -> None:
    head, frame, tail = FRAMED[framing]
    payload = head + b"".join(frame.replace(b"%s", message(value)) for value in (1, 2, 3)) + tail
    payloads = [b"??" + payload, b"??" + payload[:-1], b"", b"??" + payload]
    found = Decoder(ONE, "M", framing=framing, skip=2).decode_rows(payloads)
    rows = list(zip(found.payload.tolist(), found.batch.column("n").to_pylist(), strict=True))
    plain = [
        (index, one.values["n"] if not isinstance(one, DecodeError) else None)
        for index, payload in enumerate(payloads)
        for one in decode(ONE, payload, framing=framing, skip=2)
    ]
    assert rows == plain
    assert [one is None for _, one in rows] == [one is not None for one in found.batch.column("sbe_error").to_pylist()]


def test_frames_that_can_not_be() -> None:
    frame = struct.pack("<H", 14) + message(5)
    payloads = [bytes(12) + frame + struct.pack("<H", 1) + message(1), bytes(12) + frame, bytes(3)]
    found = Decoder(ONE, "M", framing="cme-udp").decode_rows(payloads)
    assert found.batch.column("n").to_pylist() == [5, None, 5, None]
    assert found.batch.column("sbe_error").to_pylist() == [None, "FRAME_SIZE", None, "FRAME_SIZE"]
    assert found.batch.column("sbe_raw").to_pylist() == [None, payloads[0][26:], None, payloads[2]]
    marked = struct.pack("<H", 16) + b"\0\0" + message(1)
    assert Decoder(ONE, "M", framing="ilink3").decode([marked]).column("sbe_error").to_pylist() == ["FRAME_TYPE"]


def test_null_payloads_have_no_row() -> None:
    found = Decoder(ONE, "M").decode_rows(pa.array([None, message(1), None, message(2)], pa.binary()))
    assert found.payload.tolist() == [1, 3]
    assert found.batch.column("n").to_pylist() == [1, 2]


def test_a_decoder_travels() -> None:
    for decoder in (
        Decoder(SCHEMA, "M", explode="legs", spark=True),
        Decoder(SCHEMA),
        Decoder(str(GOLDEN / "cme/refresh.xml")),
    ):
        copy = pickle.loads(pickle.dumps(decoder))  # noqa: S301 - our own bytes
        assert copy.arrow_schema.equals(decoder.arrow_schema)
        assert copy.decode([m(legs=LEGS)]).num_rows == decoder.decode([m(legs=LEGS)]).num_rows


@pytest.mark.parametrize(
    "options",
    [
        {"uint64": "int"},
        {"decimals": "decimal(39,2)"},
        {"decimals": "float"},
        {"colour": "red"},
        {"times": {"id": "minutes"}},
        {"decimals": "decimal(2,3)"},
        {"max_entries": 0},
        {"framing": "x"},
        {"framing": f"lengthPrefix=u16,lengthAdjust={'9' * 5000}"},
        {"skip": -1},
    ],
)
def test_options_that_can_not_be(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(options))):
        Decoder(SCHEMA, "M", **options)


def test_misspelt_options_name_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no option 'decimal'.*did you mean decimals"):
        Decoder(SCHEMA, "M", decimal="double")
    with pytest.raises(UsageError, match=r"sets='bit' is not one of .*did you mean bits"):
        Decoder(SCHEMA, "M", sets="bit")


def test_units_that_are_none_are_counted() -> None:
    payloads = [later(sent=(1, 7)), later(sent=(2**64 - 1, 9)), later(), later(due=(2026, 255, 1, 1))]
    assert Decoder(LATER, "M", month_years="text").decode_rows(payloads).lost == 3


def test_times_that_do_not_fit_are_null_and_counted() -> None:
    """In the widest unit and the narrowest; a time that is null already is not counted."""
    made, lost = times.nanoseconds(
        pa.array([2**63 - 1, 2**63 - 1, -(2**34), 5, None, 5], pa.int64()), pa.array([9, 0, 0, 0, 0, 7], pa.uint8())
    )
    assert made.to_pylist() == [2**63 - 1, None, None, 5 * 10**9, None, None]
    assert lost == 3


def test_microseconds_are_rounded_down() -> None:
    """Also before 1970."""
    given = [-1001, -1000, -1, 0, 999, 1000, None]
    assert times.microseconds(pa.array(given, pa.int64())).to_pylist() == [-2, -1, -1, 0, 0, 1, None]


def test_columns_of_the_same_name_are_refused() -> None:
    taken = parse(schema("", '<message name="M" id="1"><field name="sbe_error" id="1" type="uint8"/></message>'))
    with pytest.raises(UsageError, match="sbe_error"):
        Decoder(taken, "M")
    assert Decoder(taken, "M", on_error="drop").arrow_schema.names == ["sbe_error"]


# -- null values that have a name, and spaces --------------------------------------------------------------------------------

NAMED_NULL = parse(
    schema(
        '<enum name="Small" encodingType="uint8"><validValue name="A">1</validValue>'
        '<validValue name="None">255</validValue></enum>'
        '<enum name="Large" encodingType="uint16" nullValue="0"><validValue name="Zero">0</validValue>'
        '<validValue name="A">1</validValue></enum>'
        '<enum name="Session" encodingType="char"><validValue name="Regular"> </validValue>'
        '<validValue name="Late">L</validValue></enum>'
        '<type name="Pad" primitiveType="char" presence="constant"> </type>',
        '<message name="M" id="1"><field name="small" id="1" type="Small"/><field name="large" id="2" type="Large"/>'
        '<field name="session" id="3" type="Session"/><field name="mark" id="4" type="char"/>'
        '<field name="pad" id="5" type="Pad"/></message>',
    )
)


def named_null(small: int, large: int, session: bytes, mark: bytes = b" ") -> bytes:
    return struct.pack("<HHHHBHcc", 5, 1, 1, 1, small, large, session, mark)


@pytest.mark.parametrize("spark", [False, True])
def test_a_named_null_value_is_null_and_a_space_is_a_name(spark: bool) -> None:
    payloads = [named_null(255, 0, b" "), named_null(1, 1, b"L"), named_null(255, 1, b" ")]
    batch = Decoder(NAMED_NULL, "M", on_error="fail", spark=spark).decode(payloads)
    batch.validate(full=True)
    assert batch.to_pylist() == [
        {"small": None, "large": None, "session": "Regular", "mark": " ", "pad": " "},
        {"small": "A", "large": "A", "session": "Late", "mark": " ", "pad": " "},
        {"small": None, "large": "A", "session": "Regular", "mark": " ", "pad": " "},
    ]
    assert [one.values for payload in payloads for one in decode(NAMED_NULL, payload)] == batch.to_pylist()
    values = Decoder(NAMED_NULL, "M", on_error="fail", enums="values", spark=spark, chars="trim").decode(payloads[:1])
    assert values.to_pylist() == [{"small": None, "large": None, "session": " ", "mark": " ", "pad": " "}]


def test_a_null_value_may_be_written_by_its_name_its_number_or_as_null() -> None:
    expected = [named_null(255, 0, b" ")]
    columns = {"session": ["Regular"], "mark": [" "]}
    for small, large in (
        (["None"], ["Zero"]),
        (pa.array([255], pa.int32()), pa.array([0], pa.int64())),
        (pa.array([None], pa.string()), pa.array([None], pa.uint16())),
    ):
        batch = pa.RecordBatch.from_pydict({"small": small, "large": large, **columns})
        assert Encoder(NAMED_NULL, "M").encode(batch).to_pylist() == expected
    batch = pa.RecordBatch.from_pydict({"small": ["Other"], "large": ["Zero"], **columns})
    with pytest.raises(UsageError, match="has no 'Other'; it has A, None"):
        Encoder(NAMED_NULL, "M").encode(batch)


def test_decoded_messages_are_taken_by_others() -> None:
    """Names of enums as dictionaries, groups as lists of structs, decimals."""
    batch = Decoder(SCHEMA, "M", on_error="fail").decode([m(legs=LEGS), m(legs=LEGS, side=b"?")])
    assert pl.DataFrame(batch).to_dicts() == duckdb.from_arrow(batch).pl().to_dicts()
    found = duckdb.sql("SELECT side, px, len(legs), legs[1].fills[2].n FROM batch ORDER BY side DESC").fetchall()
    assert found == [("Buy", Decimal("-1.50"), 2, 2), ("?", Decimal("-1.50"), 2, 2)]
