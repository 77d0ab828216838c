"""Messages: the reference tool's values, and what malformed ones give. Spec: 10 §5-10, §13, §15."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

import pytest

from aeron_spark.errors import UsageError
from aeron_spark.sbe import Decoded, DecodeError, Decoder, Walker, decode, load, parse
from tests.sbe.test_schema import schema
from tests.sbe.vectors import GOLDEN, READ_BY, messages, schema_of


@pytest.mark.parametrize("name", READ_BY)
def test_the_reference_tools_values(name: str) -> None:
    walker = Walker(load(schema_of(name)))
    count = 0
    for line in messages(name):
        found = walker.decode(bytes.fromhex(line["hex"]))
        # As text: 1 and 1.0, and names in another order, are not the same.
        assert json.dumps(found.values) == json.dumps(line["values"]), line["name"]
        assert found.consumed == line["consumed"], line["name"]
        assert (found.template_id, found.version, found.block_length) == tuple(
            line[key] for key in ("template_id", "version", "block_length")
        )
        assert found.message.name == line["message"]
        count += 1
    assert count > 0


@pytest.mark.parametrize("line", messages("car/malformed"), ids=lambda line: line["name"])
def test_malformed_messages(line: dict[str, Any]) -> None:
    walker = Walker(load(GOLDEN / "car/example-schema.xml"))
    payload = bytes.fromhex(line["hex"])
    if line["expect"] == "OK":
        found = walker.decode(payload)
        assert (found.consumed, found.values) == (line["consumed"], line["values"])
        return
    with pytest.raises(DecodeError) as failed:
        walker.decode(payload)
    assert failed.value.kind.startswith(line["expect"])
    assert 0 <= failed.value.offset <= len(payload)


@pytest.mark.parametrize("name", READ_BY)
def test_every_prefix_is_an_error_or_the_same(name: str) -> None:
    walker = Walker(load(schema_of(name)))
    for line in messages(name):
        payload = bytes.fromhex(line["hex"])
        step = max(1, len(payload) // 40)
        for length in range(0, len(payload), step):
            try:
                found = walker.decode(payload[:length])
            except DecodeError:
                assert length < line["consumed"]
            else:
                assert (found.consumed, found.values) == (line["consumed"], line["values"])


def test_mutations_are_errors_or_messages(rng: random.Random) -> None:
    walkers = {name: Walker(load(schema_of(name))) for name in READ_BY}
    pool = [(name, bytes.fromhex(line["hex"])) for name in READ_BY for line in messages(name)]
    refused = 0
    for _ in range(4000):
        name, original = rng.choice(pool)
        payload = bytearray(original)
        for _ in range(rng.randint(1, 3)):
            payload[rng.randrange(len(payload))] = rng.randrange(256)
        try:
            found = walkers[name].decode(bytes(payload))
        except DecodeError:
            refused += 1
        else:
            assert found.consumed <= len(payload)
            json.dumps(found.values)
    assert 0 < refused < 4000


GROUPS = schema(
    '<composite name="dims"><type name="blockLength" primitiveType="uint16"/><type name="numInGroup" primitiveType="uint32"/>'
    "</composite>",
    '<message name="M" id="1"><group name="g" id="1" dimensionType="dims"/></message>',
)


def test_hostile_counts_allocate_nothing() -> None:
    walker = Walker(parse(GROUPS))
    with pytest.raises(DecodeError, match="LIMIT"):
        walker.decode(struct.pack("<HHHHHI", 0, 1, 1, 1, 0, 2**32 - 1))
    with pytest.raises(DecodeError, match="SHORT_GROUP_ENTRY"):
        walker.decode(struct.pack("<HHHHHI", 0, 1, 1, 1, 1, 2**32 - 1))


def test_a_group_that_the_schema_does_not_know_is_skipped_where_the_wire_counts() -> None:
    counted = (
        '<composite name="messageHeader"><type name="blockLength" primitiveType="uint16"/>'
        '<type name="templateId" primitiveType="uint16"/><type name="schemaId" primitiveType="uint16"/>'
        '<type name="version" primitiveType="uint16"/><type name="numGroups" primitiveType="uint16"/>'
        '<type name="numVarDataFields" primitiveType="uint16"/></composite>'
        '<composite name="dims"><type name="blockLength" primitiveType="uint16"/>'
        '<type name="numInGroup" primitiveType="uint16"/>'
        '<type name="numGroups" primitiveType="uint16"/><type name="numVarDataFields" primitiveType="uint16"/></composite>'
        '<composite name="text"><type name="length" primitiveType="uint8"/>'
        '<type name="varData" primitiveType="char" length="0"/></composite>'
    )
    body = (
        '<message name="M" id="1"><group name="g" id="1" dimensionType="dims">'
        '<field name="x" id="2" type="uint8"/></group>'
        '<data name="d" id="3" type="text"/></message>'
    )
    text = f'<messageSchema id="1" version="1"><types>{counted}</types>{body}</messageSchema>'
    header = struct.pack("<HHHHHH", 0, 1, 1, 2, 2, 2)
    known = struct.pack("<HHHHB", 1, 1, 0, 0, 7)
    newer = struct.pack("<HHHHBB", 1, 1, 0, 1, 9, 2) + b"zz"
    found = Walker(parse(text)).decode(header + known + newer + b"\x02hi" + b"\x01!")
    assert found.values == {"g": [{"x": 7}], "d": "hi"}
    assert found.consumed == len(header + known + newer) + 5
    with pytest.raises(DecodeError, match="NEWER_VERSION"):
        Walker(parse(text)).decode(header + known + newer[:-3])


# -- framing -----------------------------------------------------------------------------------------------------------------

ONE = parse(schema("", '<message name="M" id="1"><field name="n" id="1" type="uint32"/></message>'))


def message(value: int) -> bytes:
    return struct.pack("<HHHHI", 4, 1, 1, 1, value)


def values(payload: bytes, framing: str, **options: int) -> list[int | str]:
    return [
        one.values["n"] if isinstance(one, Decoded) else one.kind
        for one in decode(ONE, payload, framing=framing, **options)
    ]


FRAMED = {
    "messages": (b"", b"%s", b""),
    "cme-udp": (bytes(12), struct.pack("<H", 14) + b"%s", b""),
    "cme-tcp": (b"\xfe\xca" + bytes(12), struct.pack("<H", 14) + b"%s", b""),
    "ilink3": (b"", struct.pack("<H", 16) + b"\xfe\xca%s", b""),
    "sofh-le4": (b"", struct.pack("<H", 16) + b"\x50\xeb%s", b""),
    "sofh": (b"", struct.pack(">I", 18) + b"\xeb\x50%s", b""),
    "sofh-le6": (b"", struct.pack("<I", 18) + b"\x50\xeb%s", b""),
    "memx": (b"\x02\x12" + bytes(16) + b"\0\x03", struct.pack(">H", 12) + b"%s", b""),
}


@pytest.mark.parametrize("framing", FRAMED)
def test_framings(framing: str) -> None:
    head, frame, tail = FRAMED[framing]
    payload = head + b"".join(frame.replace(b"%s", message(value)) for value in (1, 2, 3)) + tail
    assert values(payload, framing) == [1, 2, 3]
    assert values(b"??" + payload, framing, skip=2) == [1, 2, 3]
    cut = values(payload[:-1], framing)
    assert cut[:2] == [1, 2]
    assert cut[2] in ("FRAME_SIZE", "SHORT_BLOCK")
    assert len(cut) == 3


def test_a_bad_message_in_a_frame_spoils_no_other() -> None:
    frame = struct.pack("<H", 14) + b"%s"
    bad = struct.pack("<HHHHI", 4, 9, 1, 1, 0)
    payload = bytes(12) + b"".join(frame.replace(b"%s", one) for one in (message(1), bad, message(3)))
    assert values(payload, "cme-udp") == [1, "UNKNOWN_TEMPLATE", 3]


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"\x00\x12" + bytes(16), []),  # a heartbeat
        (b"\x00\x12" + bytes(18), []),  # one with a count of 0
        (b"\x00\x12", ["FRAME_SIZE"]),
        (b"\x00\x12" + bytes(15), ["FRAME_SIZE"]),
        (b"\x00\x12" + bytes(19), ["FRAME_TYPE"]),
        (bytes(20), ["FRAME_TYPE"]),
        (bytes(100), ["FRAME_TYPE"]),
        (b"\0", ["FRAME_SIZE"]),
        (b"", ["FRAME_SIZE"]),
        (b"\x01\x12" + bytes(18), ["FRAME_TYPE"]),
        (b"\x02\x13" + bytes(18), ["FRAME_TYPE"]),
        (b"\x02\x12" + bytes(18), []),
    ],
)
def test_a_heartbeat_of_memx_is_told_from_what_is_none(payload: bytes, expected: list[str]) -> None:
    assert values(payload, "memx") == expected
    rows = Decoder(ONE, "M", framing="memx").decode([payload])
    assert rows.column("sbe_error").to_pylist() == expected


def test_marks_sizes_and_names_that_can_not_be() -> None:
    assert values(struct.pack("<H", 16) + b"\0\0" + message(1), "ilink3") == ["FRAME_TYPE"]
    assert values(bytes(12) + struct.pack("<H", 0) + message(1), "cme-udp") == ["FRAME_SIZE"]
    assert values(bytes(3), "cme-udp") == ["FRAME_SIZE"]
    with pytest.raises(UsageError, match="cme-udp"):
        values(b"", "cme")
