"""Columns: the values of the plain walk, whatever the messages. Spec: 10 §10, §13, §14, §18, §19 cases 49-58."""

from __future__ import annotations

import random
import struct
from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from aeron_spark.errors import UsageError
from aeron_spark.sbe import DecodeError, Decoder, Schema, Walker, load, parse
from tests.sbe.expected import comparable, row_of, rows_of
from tests.sbe.test_schema import schema
from tests.sbe.vectors import READ_BY, messages, schema_of


def walked(read: Schema, payload: bytes, message: str) -> dict[str, Any] | str:
    """The row that the plain walk gives, or the kind of its error."""
    ids = read.header.schema_id, read.header.template_id
    if len(payload) >= read.header.composite.size:
        schema_id, template_id = (
            int.from_bytes(payload[role.offset : role.end], "big" if read.is_big_endian else "little")
            for role in ids
            if role is not None
        )
        if schema_id == read.id and read.messages.get(template_id) is not read.message(message):
            return "UNKNOWN_TEMPLATE"
    try:
        found = Walker(read).decode(payload)
    except DecodeError as failure:
        return failure.kind
    row = row_of(found.message, found.values)
    assert row is not None
    return row


def assert_same(read: Schema, payloads: list[bytes], message: str, decoder: Decoder | None = None) -> int:
    """Columns and walk agree on every payload; returns how many were refused."""
    batch = (decoder or Decoder(read, message)).decode(payloads)
    batch.validate(full=True)
    refused = 0
    for payload, row in zip(payloads, rows_of(batch), strict=True):
        error, raw = row.pop("sbe_error"), row.pop("sbe_raw")
        assert raw == (payload if error else None)
        at = row.pop("sbe_error_at")
        assert at is None if error is None else 0 <= at <= len(payload)
        expected = walked(read, payload, message)
        if isinstance(expected, str):
            refused += 1
            assert error == expected, payload.hex()
            assert all(value is None for value in row.values()), payload.hex()
        else:
            assert error is None, payload.hex()
            assert row == comparable(expected), payload.hex()
    return refused


def by_message(lines: Iterable[dict[str, Any]]) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = defaultdict(list)
    for line in lines:
        found[line["message"]].append(bytes.fromhex(line["hex"]))
    return found


@pytest.mark.parametrize("name", READ_BY)
def test_the_reference_tools_messages(name: str) -> None:
    read = load(schema_of(name))
    for message, payloads in by_message(messages(name)).items():
        assert assert_same(read, payloads, message) == 0
        assert assert_same(read, payloads * 70, message) == 0


@pytest.mark.parametrize("name", READ_BY)
def test_prefixes_among_whole_messages(name: str, rng: random.Random) -> None:
    read = load(schema_of(name))
    for message, payloads in by_message(messages(name)).items():
        mixed = [one[: rng.randrange(len(one) + 1)] for one in payloads for _ in range(4)] + payloads
        rng.shuffle(mixed)
        assert_same(read, mixed, message)


def test_mutations(rng: random.Random) -> None:
    refused = 0
    for name in READ_BY:
        read = load(schema_of(name))
        for message, payloads in by_message(messages(name)).items():
            mutated = []
            for _ in range(60):
                payload = bytearray(rng.choice(payloads))
                for _ in range(rng.randint(1, 3)):
                    payload[rng.randrange(len(payload))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
                mutated.append(bytes(payload))
            refused += assert_same(read, mutated, message)
    assert refused > 0


def test_a_message_among_ones_that_are_alike(rng: random.Random) -> None:
    """Behind messages of one kind the walk only checks whether the next is alike: it must notice each difference."""
    refused = 0
    for name in READ_BY:
        read = load(schema_of(name))
        for message, payloads in by_message(messages(name)).items():
            decoder = Decoder(read, message)
            for _ in range(20):
                payload = rng.choice(payloads)
                changed = bytearray(payload)
                at = rng.randrange(len(changed))
                changed[at] = rng.choice((0, 1, 0x7F, 0xFF, (changed[at] + 1) % 256, (changed[at] - 1) % 256))
                cut = payload[: rng.randrange(len(payload))]
                for odd in (bytes(changed), cut, payload + b"\0"):
                    refused += assert_same(read, [payload, payload, odd, payload, payload], message, decoder)
    assert refused > 0


def test_a_short_soak(rng: random.Random) -> None:
    # Here, as the soak is made of this file's comparison.
    from tests.sbe.soak import soak

    assert max(soak(6_000, rng.randrange(2**32))) == 6_000


def test_malformed_messages() -> None:
    read = load(schema_of("car/car_v0"))
    lines = messages("car/malformed")
    batch = Decoder(read, "Car").decode([bytes.fromhex(line["hex"]) for line in lines])
    for line, error in zip(lines, batch.column("sbe_error").to_pylist(), strict=True):
        assert (error or "OK").startswith(line["expect"]), line["name"]


def test_versions_and_block_lengths_may_alternate() -> None:
    read = load(schema_of("car/car_v0_read_by_v1"))
    payloads = [
        payload
        for pair in zip(
            by_message(messages("car/car_v1"))["Car"],
            by_message(messages("car/car_v0_read_by_v1"))["Car"],
            strict=False,
        )
        for payload in pair
    ]
    assert assert_same(read, payloads * 20, "Car") == 0


ORDER = parse(
    schema(
        '<composite name="Price"><type name="mantissa" primitiveType="int64"/>'
        '<type name="exponent" primitiveType="int8" presence="constant">-2</type></composite>'
        '<enum name="Side" encodingType="uint8"><validValue name="Buy">1</validValue></enum>'
        '<type name="Day" primitiveType="uint16" semanticType="LocalMktDate"/>',
        '<message name="Order" id="1"><field name="id" id="1" type="uint64"/><field name="px" id="2" type="Price"/>'
        '<field name="side" id="3" type="Side"/><field name="at" id="4" type="uint64" semanticType="UTCTimestamp" '
        'timeUnit="microsecond"/><field name="day" id="5" type="Day"/></message><message name="Empty" id="2"/>',
    )
)


def order(number: int, price: int, side: int, at: int = 0, day: int = 0) -> bytes:
    return struct.pack("<HHHHQqBQH", 27, 1, 1, 1, number, price, side, at, day)


def test_types() -> None:
    batch = Decoder(ORDER, "Order").decode([order(2**64 - 1, -1, 1, 1_700_000_000_000_000, 19_000), order(1, 150, 7)])
    assert batch.schema.field("px").type == pa.decimal128(19, 2)
    assert batch.schema.field("at").type == pa.timestamp("us", "UTC")
    assert batch.schema.field("day").type == pa.date32()
    assert batch.column("id").to_pylist() == [Decimal(2**64 - 1), Decimal(1)]
    assert batch.column("px").to_pylist() == [Decimal("-0.01"), Decimal("1.50")]
    assert batch.column("side").to_pylist() == ["Buy", "7"]
    assert batch.column("at").cast(pa.int64()).to_pylist() == [1_700_000_000_000_000, 0]


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 1000, 4096, 4097, 9000])
def test_batches_of_any_size(count: int) -> None:
    batch = Decoder(ORDER, "Order").decode([order(number, number, 1) for number in range(count)])
    assert batch.num_rows == count
    assert batch.column("px").to_pylist() == [Decimal(number) / 100 for number in range(count)]
    for on_error in ("null", "drop", "fail"):
        empty = Decoder(ORDER, "Empty", on_error=on_error).decode([struct.pack("<HHHH", 0, 2, 1, 1)] * count)
        assert empty.num_rows == count


def test_slices_and_other_types_of_payload() -> None:
    payloads = [order(number, number, 1) for number in range(20)]
    decoder = Decoder(ORDER, "Order")
    whole = decoder.decode(payloads)
    assert decoder.decode(pa.array(payloads, pa.binary()).slice(5, 9)).equals(whole.slice(5, 9))
    assert decoder.decode(pa.chunked_array([payloads[:3], payloads[3:]], pa.binary())).equals(whole)
    with pytest.raises(UsageError, match="not binary"):
        decoder.decode(pa.array([1]))


def test_what_becomes_of_errors() -> None:
    payloads = [order(1, 1, 1), order(2, 2, 1)[:-1], order(3, 3, 1), b""]
    assert Decoder(ORDER, "Order").decode(payloads).column("sbe_error").to_pylist() == [
        None,
        "SHORT_BLOCK",
        None,
        "SHORT_HEADER",
    ]
    dropped = Decoder(ORDER, "Order", on_error="drop").decode(payloads)
    assert dropped.column("id").to_pylist() == [1, 3]
    with pytest.raises(DecodeError, match="message 1, of payload 1"):
        Decoder(ORDER, "Order", on_error="fail").decode(payloads)
    with pytest.raises(UsageError, match="it has Order, Empty"):
        Decoder(ORDER, "Trade").decode(payloads)
    with pytest.raises(UsageError, match="null, drop, fail"):
        Decoder(ORDER, on_error="ignore")
