"""Headers, several schemas, strict blocks, counters, framing by settings. Spec: 10 §5, §10, §13, §15."""

from __future__ import annotations

import pickle
import random
import struct
from collections import Counter

import pyarrow as pa
import pytest

from aeron_spark.errors import UsageError
from aeron_spark.sbe import DecodeError, Decoder, Walker, load, parse
from tests.sbe.test_columns import by_message
from tests.sbe.test_schema import schema
from tests.sbe.test_walk import GROUPS, message
from tests.sbe.vectors import READ_BY, messages, schema_of

VENUE = (
    '<composite name="venue"><type name="length" primitiveType="uint16"/><type name="kind" primitiveType="uint8"/>'
    '<type name="sequence" primitiveType="uint64"/></composite>'
)
BODY = (
    '<message name="M" id="7"><field name="n" id="1" type="uint32"/>'
    '<field name="late" id="2" type="uint8" sinceVersion="1"/></message>'
    '<message name="N" id="8"><field name="x" id="1" type="uint8"/></message>'
)


def venue(kind: int, sequence: int, body: bytes) -> bytes:
    return struct.pack("<HBQ", 11 + len(body), kind, sequence) + body


@pytest.mark.parametrize("spark", [False, True])
def test_a_header_that_the_schema_does_not_name(spark: bool) -> None:
    text = schema(VENUE, BODY)
    payloads = [venue(7, 2**64 - 2, b"\1\0\0\0\5"), venue(9, 1, b""), venue(7, 3, b"\2\0\0\0\6")]
    chosen = {"header_type": "venue", "header_map": {"templateId": "kind"}, "header": True, "spark": spark}
    decoder = Decoder(text, "M", **chosen)
    for one in (decoder, pickle.loads(pickle.dumps(decoder))):  # noqa: S301 - our own bytes
        batch = one.decode(payloads)
        batch.validate(full=True)
        assert batch.schema.equals(decoder.arrow_schema)
        assert batch.column("n").to_pylist() == [1, None, 2]
        assert batch.column("late").to_pylist() == [5, None, 6]
        assert batch.column("sbe_header").to_pylist() == [
            {"length": 16, "kind": 7, "sequence": 2**64 - 2}, None, {"length": 16, "kind": 7, "sequence": 3},
        ]  # fmt: skip
    union = Decoder(text, **chosen).decode([*payloads, venue(8, 4, b"\7")])
    assert union.schema.equals(Decoder(text, **chosen).arrow_schema)
    assert [one and one["sequence"] for one in union.column("sbe_header").to_pylist()] == [2**64 - 2, None, 3, 4]
    assert union.column("N").to_pylist() == [None, None, None, {"x": 7}]
    with pytest.raises(UsageError, match="still to be read"):
        Decoder(parse(schema("", BODY)), "M", header_type="venue")


@pytest.mark.parametrize("name", READ_BY)
def test_headers_are_the_messages_own(name: str) -> None:
    read = load(schema_of(name))
    for line in messages(name):
        payload = bytes.fromhex(line["hex"])
        [found] = Decoder(read, line["message"], header=True, columns=["sbe_header"]).decode([payload]).to_pylist()
        assert list(found) == ["sbe_header"]
        for member in read.header.composite.members:
            told = int.from_bytes(
                payload[member.offset : member.offset + member.type.size], "big" if read.is_big_endian else "little"
            )
            assert found["sbe_header"][member.name] == told
        assert found["sbe_header"]["version"] == line["version"]


OTHER = parse(schema("", '<message name="M" id="7"><field name="b" id="1" type="uint8"/></message>', id="2"))
FIRST = parse(schema("", BODY))


def of(schema_id: int, template_id: int, body: bytes) -> bytes:
    return struct.pack("<HHHH", len(body), template_id, schema_id, 1) + body


def test_several_schemas_are_picked_by_the_header() -> None:
    payloads = [of(1, 7, b"\1\0\0\0\2"), of(2, 7, b"\3"), of(3, 7, b""), of(2, 8, b"\4"), of(1, 8, b"\5"), b"short"]
    decoder = Decoder([FIRST, OTHER])
    found = pickle.loads(pickle.dumps(decoder)).decode_rows(payloads)  # noqa: S301 - our own bytes
    batch = found.batch
    batch.validate(full=True)
    assert batch.schema.equals(decoder.arrow_schema)
    assert batch.column("sbe_schema_id").to_pylist() == [1, 2, 3, 2, 1, None]
    assert batch.column("sbe_template_id").to_pylist() == [7, 7, 7, 8, 8, None]
    assert batch.column("sbe_template").to_pylist() == ["M_1", "M_2", None, None, "N", None]
    assert batch.column("M_1").to_pylist() == [{"n": 1, "late": 2}, *[None] * 5]
    assert batch.column("M_2").to_pylist() == [None, {"b": 3}, *[None] * 4]
    assert batch.column("N").to_pylist() == [*[None] * 4, {"x": 5}, None]
    assert batch.column("sbe_error").to_pylist() == [
        None, None, "UNKNOWN_SCHEMA", "UNKNOWN_TEMPLATE", None, "SHORT_HEADER",
    ]  # fmt: skip
    one = Decoder([FIRST, OTHER], "M_2", others="skip").decode_rows(payloads)
    assert (one.skipped, one.payload.tolist()) == (2, [1, 2, 3, 5])
    assert one.batch.column("b").to_pylist() == [3, None, None, None]
    together = Decoder([FIRST, OTHER], framing="messages", on_error="drop").decode_rows([b"".join(payloads[:2])])
    assert together.batch.column("sbe_template").to_pylist() == ["M_1", "M_2"]
    with pytest.raises(UsageError, match=r"no message 'M' .*M_1, N, M_2; did you mean M_"):
        Decoder([FIRST, OTHER], "M")
    with pytest.raises(UsageError, match="the same id"):
        Decoder([FIRST, FIRST])
    big = parse(schema("", BODY, id="5", byteOrder="bigEndian"))
    with pytest.raises(UsageError, match="headers differ"):
        Decoder([FIRST, big])
    with pytest.raises(UsageError, match="no schema"):
        Decoder([])


def test_template_ids_however_large() -> None:
    wide = (
        '<composite name="messageHeader"><type name="blockLength" primitiveType="uint16"/>'
        '<type name="templateId" primitiveType="uint32"/><type name="schemaId" primitiveType="uint16"/>'
        '<type name="version" primitiveType="uint16"/></composite>'
    )
    body = '<message name="A" id="4294967295"/><message name="B" id="70000"/><message name="C" id="1"/>'
    text = f'<messageSchema id="1"><types>{wide}</types>{body}</messageSchema>'
    payloads = [struct.pack("<HIHH", 0, one, 1, 0) for one in (4294967295, 70000, 1, 0, 2, 70001, 4294967294)]
    found = Decoder(text).decode(payloads).column("sbe_template").to_pylist()
    assert found == ["A", "B", "C", None, None, None, None]


@pytest.mark.parametrize("name", ["car/car_v1", "features/features_le", "features/features_be"])
def test_strict_blocks_are_those_of_the_plain_walk(name: str, rng: random.Random) -> None:
    """Versions and block lengths changed: the walk and the columns refuse the same, and count the same values."""
    read = load(schema_of(name))
    header = read.header
    assert header.block_length is not None
    assert header.version is not None
    kinds: Counter[str] = Counter()
    for message_name, payloads in by_message(messages(name)).items():
        changed = []
        for _ in range(80):
            payload = bytearray(rng.choice(payloads))
            for role, least in ((header.version, 0), (header.block_length, 3)):
                at = slice(role.offset, role.end)
                order = "big" if read.is_big_endian else "little"
                value = int.from_bytes(payload[at], order) - rng.choice((0, 0, 1, least))
                payload[at] = max(0, value).to_bytes(role.primitive.size, order)  # type: ignore[arg-type]
            changed.append(bytes(payload))
        batch = Decoder(read, message_name, strict_blocks=True).decode(changed)
        walker = Walker(read, strict_blocks=True)
        for payload, error in zip(changed, batch.column("sbe_error").to_pylist(), strict=True):
            try:
                expected = None if walker.decode(payload) else ""
            except DecodeError as failure:
                expected = failure.kind
            assert error == expected, payload.hex()
            kinds[str(error)] += 1
    assert kinds["None"] > 0
    assert kinds["BLOCK_TOO_SMALL"] > 0


LATE = parse(
    schema(
        '<composite name="groupSizeEncoding"><type name="blockLength" primitiveType="uint16"/>'
        '<type name="numInGroup" primitiveType="uint8"/></composite>',
        '<message name="M" id="1"><field name="n" id="1" type="uint32"/><field name="m" id="2" type="uint8" sinceVersion="1"/>'
        '<group name="g" id="3"><field name="a" id="4" type="uint8"/><field name="b" id="5" type="uint8" sinceVersion="1"/>'
        "</group></message>",
    )
)


def late(block: bytes, version: int, entry: bytes, count: int, behind: bytes = b"") -> bytes:
    body = struct.pack("<HHHH", len(block), 1, 1, version) + block + struct.pack("<HB", len(entry), count)
    return body + entry * count + behind


def test_short_blocks_and_unread_bytes_are_counted() -> None:
    payloads = [
        late(bytes(5), 1, bytes(2), 2),
        late(bytes(4), 0, bytes(1), 3, b"???"),
        late(bytes(4), 1, bytes(1), 2, b"??"),
        late(bytes(3), 1, bytes(2), 1, b"?"),
    ]
    found = Decoder(LATE, "M").decode_rows(payloads)
    assert (found.short_fields, found.unread_bytes) == (1 + 2, 5)
    assert found.batch.column("sbe_error").to_pylist() == [None, None, None, "BLOCK_TOO_SMALL"]
    assert found.batch.column("m").to_pylist() == [0, None, None, None]
    strict = Decoder(LATE, "M", strict_blocks=True).decode_rows([*payloads, late(bytes(5), 1, bytes(1), 0)])
    assert strict.batch.column("sbe_error").to_pylist() == [None, None, "BLOCK_TOO_SMALL", "BLOCK_TOO_SMALL", None]
    assert (strict.short_fields, strict.unread_bytes) == (0, 3)
    entries = Decoder(LATE, "M", strict_blocks=True).decode([late(bytes(5), 1, bytes(1), 1)])
    assert entries.column("sbe_error").to_pylist() == ["GROUP_BLOCK_TOO_SMALL"]
    alike = Decoder(LATE, "M").decode_rows([payloads[2]] * 9)
    assert (alike.short_fields, alike.unread_bytes) == (27, 18)
    union = Decoder(LATE).decode_rows(payloads)
    assert (union.short_fields, union.unread_bytes) == (3, 5)


def test_entries_without_bytes_are_bounded_as_one_likes() -> None:
    payload = struct.pack("<HHHHHI", 0, 1, 1, 1, 0, 1000)
    assert Decoder(GROUPS, "M").decode([payload]).column("sbe_error").to_pylist() == [None]
    limited = Decoder(GROUPS, "M", max_entries=999).decode([payload])
    assert limited.column("sbe_error").to_pylist() == ["LIMIT"]


def test_only_the_columns_that_are_asked_for() -> None:
    decoder = Decoder(LATE, "M", columns=["g", "n"])
    assert decoder.arrow_schema.names == ["n", "g"]
    assert decoder.decode([late(b"\7\0\0\0\1", 1, b"\2\3", 1)]).to_pylist() == [{"n": 7, "g": [{"a": 2, "b": 3}]}]
    rows = Decoder(LATE, "M", columns=["a"], explode="g", on_error="drop").decode([late(bytes(5), 1, b"\2\3", 2)])
    assert rows.to_pylist() == [{"a": 2}, {"a": 2}]
    union = Decoder(FIRST, columns=["sbe_template", "N"], on_error="drop")
    assert union.decode([of(1, 8, b"\4"), of(1, 7, bytes(5))]).to_pylist() == [
        {"sbe_template": "N", "N": {"x": 4}}, {"sbe_template": "M", "N": None},
    ]  # fmt: skip
    with pytest.raises(UsageError, match=r"no column 'nn'.*did you mean n"):
        Decoder(LATE, "M", columns=["nn"])
    assert Decoder(LATE, "M", columns=[], on_error="drop").decode([late(bytes(5), 1, bytes(2), 1)]).num_rows == 1


# -- framing by settings -------------------------------------------------------------------------------------------------------

ONE = parse(schema("", '<message name="M" id="1"><field name="n" id="1" type="uint32"/></message>'))
GENERIC = {
    "lengthPrefix=u16,packetHeaderBytes=12": ("cme-udp", bytes(12), lambda body: struct.pack("<H", len(body) + 2)),
    "lengthPrefix=u16be, lengthIncludesSelf=false, packetHeaderBytes=20, countField=18:u16be": (
        "memx", b"\x02\x12" + bytes(16) + b"\0\x03", lambda body: struct.pack(">H", len(body)),
    ),
    "lengthPrefix=u32be,lengthIncludesSelf=false": (None, b"", lambda body: struct.pack(">I", len(body))),
    "lengthPrefix=u8,lengthIncludesSelf=true": (None, b"", lambda body: bytes([len(body) + 1])),
    "lengthPrefix=u8,lengthAdjust=-3": (None, b"", lambda body: bytes([len(body) + 4])),
    "lengthPrefix=u8,packetHeaderBytes=3,countField=1:u16be": (None, b"\0\0\3", lambda body: bytes([len(body) + 1])),
}  # fmt: skip


@pytest.mark.parametrize("framing", GENERIC)
def test_framing_by_settings(framing: str, rng: random.Random) -> None:
    """As the named ones do, and as the plain walk does, whole and cut and changed."""
    from aeron_spark.sbe import decode

    like, head, size = GENERIC[framing]
    payload = head + b"".join(size(message(value)) + message(value) for value in (1, 2, 3))
    payloads = [payload, payload[:-1], b"", head]
    for _ in range(40):
        changed = bytearray(payload)
        changed[rng.randrange(len(changed))] = rng.randrange(256)
        payloads.append(bytes(changed))
    found = Decoder(ONE, "M", framing=framing).decode_rows(payloads)
    plain = [
        (index, one.kind if isinstance(one, DecodeError) else one.values["n"])
        for index, one_payload in enumerate(payloads)
        for one in decode(ONE, one_payload, framing=framing)
    ]
    rows = zip(found.batch.column("n").to_pylist(), found.batch.column("sbe_error").to_pylist(), strict=True)
    assert list(zip(found.payload.tolist(), [n if error is None else error for n, error in rows], strict=True)) == plain
    assert plain[:3] == [(0, 1), (0, 2), (0, 3)]
    if like is not None:
        named = Decoder(ONE, "M", framing=like).decode_rows(payloads[:4])
        same = Decoder(ONE, "M", framing=framing).decode_rows(payloads[:4])
        assert named.batch.equals(same.batch)
        assert named.payload.tolist() == same.payload.tolist()


@pytest.mark.parametrize(
    ("framing", "words"),
    [
        ("cme_udp", "did you mean cme-udp"),
        ("lengthPrefx=u16", "no setting 'lengthPrefx'.*did you mean lengthPrefix"),
        ("lengthPrefix=u24", "lengthPrefix=u24 is not one of u8, u16, u32"),
        ("packetHeaderBytes=3", "lengthPrefix is missing"),
        ("lengthPrefix=u16,lengthPrefix=u8", "twice"),
        ("lengthPrefix=u16,lengthIncludesSelf=yes", "neither true nor false"),
        ("lengthPrefix=u16,lengthAdjust=x", "no whole number"),
        ("lengthPrefix=u16,packetHeaderBytes=-1", "no whole number"),
        ("lengthPrefix=u16,packetHeaderBytes=4,countField=3:u16", "not within packetHeaderBytes=4"),
        ("lengthPrefix=u16,packetHeaderBytes=4,countField=u16", "countField="),
        ("lengthPrefix=u16,packetHeaderBytes=4,countField=0:u16be", "different byte orders"),
    ],
)
def test_framings_that_can_not_be(framing: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Decoder(ONE, "M", framing=framing)


def test_a_payload_of_nothing() -> None:
    for framing in ("none", "lengthPrefix=u8"):
        assert Decoder(ONE, "M", framing=framing).decode(pa.array([], pa.binary())).num_rows == 0
