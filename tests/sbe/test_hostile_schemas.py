"""Schemas that anybody may send: what must be refused with a kind and a line, and what must end soon. Spec: 10 §2.1, §12."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import pyarrow as pa
import pytest

from aeron_spark.sbe import DecodeError, Decoder, SchemaError, Walker, check, decode, load, parse
from aeron_spark.sbe.model import Enum
from tests.sbe.test_schema import HEADER, schema

XI = 'xmlns:xi="http://www.w3.org/2001/XInclude"'
DIMENSION = (
    '<composite name="groupSizeEncoding"><type name="blockLength" primitiveType="uint16"/>'
    '<type name="numInGroup" primitiveType="uint8"{}/></composite>'
)


def kind_of(text: str | bytes) -> str:
    """The verdict on a text."""
    with pytest.raises(SchemaError) as failed:
        parse(text)
    assert all(len(one.text) < 400 for one in failed.value.problems)
    return failed.value.kind


def message(*fields: str) -> str:
    """A message of these fields."""
    return '<message name="M" id="1">' + "".join(fields) + "</message>"


def a_message(block: bytes) -> bytes:
    """Bytes of the message 1 of `schema()`."""
    return struct.pack("<4H", len(block), 1, 1, 1) + block


def value(text: str, block: bytes) -> object:
    """The field x of both decoders, which must agree."""
    read = parse(text)
    walked = Walker(read).decode(memoryview(a_message(block))).values["x"]
    assert Decoder(read, message="M").decode(pa.array([a_message(block)]))["x"][0].as_py() == walked
    return walked


@pytest.mark.parametrize("extra", ['e:length="2"', 'e:offset="4"', 'e:presence="constant"', 'e:sinceVersion="9"'])
def test_attributes_of_other_namespaces_mean_nothing(extra: str) -> None:
    types = f'<type name="T" primitiveType="int32" xmlns:e="urn:e" {extra}/>'
    body = message(f'<field name="x" id="1" type="T" xmlns:e="urn:e" {extra}/>')
    assert value(schema(types, body), struct.pack("<i", 9)) == 9


def test_a_constant_with_an_offset_moves_what_follows() -> None:
    types = '<type name="C" primitiveType="int8" presence="constant">5</type>'
    fields = ('<field name="a" id="1" type="int32"/>', '<field name="c" id="2" type="C" offset="8"/>',
              '<field name="x" id="3" type="int32"/>')  # fmt: skip
    assert value(schema(types, message(*fields)), struct.pack("<3i", 1, 2, 3)) == 3


def test_text_has_no_encoding_whatever_it_declares() -> None:
    types = '<type name="C" primitiveType="char" presence="constant" characterEncoding="UTF-8">é</type>'
    body = schema(types, message('<field name="x" id="1" type="C"/>'))
    for encoding in ("ISO-8859-1", "UTF-16", "UTF-8", "nope"):
        declared = f'<?xml version="1.0" encoding="{encoding}"?>{body}'
        assert parse(declared).messages[1].fields[0].constant == "é"
    assert (
        parse(f'<?xml version="1.0" encoding="ISO-8859-1"?>{body}'.encode("latin-1")).messages[1].fields[0].constant
        == "é"
    )
    assert kind_of(schema("", "\ud800")) == "SCHEMA_XML"


@pytest.mark.parametrize("encoding", ["nope", "hex", "utf-32", "gbk", "Shift_JIS", "UTF-7", "idna", "undefined"])
def test_encodings_of_files_that_can_not_be_read(encoding: str) -> None:
    assert kind_of(f'<?xml version="1.0" encoding="{encoding}"?>{schema()}'.encode()) == "SCHEMA_XML"


@pytest.mark.parametrize("depth", [2, 8])
def test_includes_that_multiply_end_soon(tmp_path: Path, depth: int) -> None:
    for level in range(depth):
        inside = f'<xi:include href="i{level + 1}.xml"/>' * 20 if level < depth - 1 else ""
        (tmp_path / f"i{level}.xml").write_text(
            f'<messageSchema id="1" {XI}>{inside}</messageSchema>', encoding="utf-8"
        )
    if depth == 2:
        assert load(tmp_path / "i0.xml").id == 1
        return
    with pytest.raises(SchemaError, match="more than 255 files") as failed:
        load(tmp_path / "i0.xml")
    assert failed.value.kind == "SCHEMA_INCLUDE"


def test_an_include_in_types_is_included(tmp_path: Path) -> None:
    (tmp_path / "common.xml").write_text(f"<types>{HEADER}</types>", encoding="utf-8")
    (tmp_path / "whole.xml").write_text(
        '<messageSchema id="9"><types><type name="T" primitiveType="int16"/></types></messageSchema>', encoding="utf-8"
    )
    file = tmp_path / "schema.xml"
    file.write_text(
        f'<messageSchema id="1" {XI}><types><xi:include href="common.xml"/><xi:include href="whole.xml"/></types>'
        '<e:include xmlns:e="urn:e">see there</e:include>'
        + message('<field name="x" id="1" type="T"/>')
        + "</messageSchema>",
        encoding="utf-8",
    )
    assert check(file)[0].messages[1].block_length == 2
    assert kind_of(schema("", message('<xi:include href="a"/>'))) == "SCHEMA_INCLUDE"


@pytest.mark.parametrize("href", ["x" * 300, "a/" * 3000 + "b", "loop.xml"])
def test_paths_that_can_not_be_followed(tmp_path: Path, href: str) -> None:
    (tmp_path / "loop.xml").symlink_to("loop.xml")
    file = tmp_path / "schema.xml"
    file.write_text(f'<messageSchema id="1" {XI}><xi:include href="{href}"/></messageSchema>', encoding="utf-8")
    with pytest.raises(SchemaError) as failed:
        load(file)
    assert (failed.value.kind, failed.value.problems[0].line) == ("SCHEMA_INCLUDE", 1)
    with pytest.raises(SchemaError) as failed:
        load(tmp_path / href)
    assert failed.value.kind == "SCHEMA_XML"


def nested(count: int, name: str, inner: str = "") -> str:
    """Elements in one another."""
    opened = "".join(f'<{name} name="n{index}" id="1">' for index in range(count))
    return opened + inner + f"</{name}>" * count


def test_what_is_nested_too_deep() -> None:
    dimension = DIMENSION.format("")
    assert kind_of(schema(dimension, message(nested(3000, "group")))) == "SCHEMA_XML"
    assert kind_of(schema(dimension, message(nested(17, "group")))) == "SCHEMA_ORDER"
    assert kind_of(schema(nested(3000, "composite"))) == "SCHEMA_XML"
    assert kind_of(schema(nested(17, "composite"))) == "SCHEMA_TYPE"
    chain = [f'<composite name="c{index}"><ref name="r" type="c{index + 1}"/></composite>' for index in range(2000)] + [
        '<composite name="c2000"><type name="v" primitiveType="int8"/></composite>'
    ]
    assert kind_of(schema("".join(chain))) == "SCHEMA_TYPE"
    assert kind_of(schema("".join(reversed(chain)))) == "SCHEMA_TYPE"
    enums = (f'<enum name="e{index}" encodingType="e{index + 1}"/>' for index in range(2000))
    assert kind_of(schema("".join(enums))) == "SCHEMA_TYPE"
    twice = '<type name="t" primitiveType="int8">' + nested(5000, "x") + "</type>"
    assert kind_of(schema(twice + twice)) == "SCHEMA_XML"


def test_the_deepest_that_is_taken_makes_columns() -> None:
    inner = '<type name="v" primitiveType="int8"/>'
    types = DIMENSION.format("") + nested(16, "composite", inner)
    read = parse(schema(types, message(nested(16, "group", '<field name="x" id="1" type="n0"/>'))))
    columns = Decoder(read, message="M").decode(pa.array([a_message(b"") + b"\0\0\0"]))
    assert columns["n0"][0].as_py() == []


def test_references_that_multiply() -> None:
    parts = [
        f'<composite name="c{index}">'
        + "".join(f'<ref name="r{one}" type="c{index + 1}"/>' for one in range(10))
        + "</composite>"
        for index in range(8)
    ]
    last = '<composite name="c8"><type name="v" primitiveType="int8" presence="constant">1</type></composite>'
    assert kind_of(schema("".join(parts) + last)) == "SCHEMA_TYPE"


@pytest.mark.parametrize(
    ("types", "field", "kind"),
    [
        ('<type name="T" primitiveType="int8" offset="' + "1" * 5000 + '"/>', "", "OK"),
        ("", 'offset="' + "1" * 5000 + '"', "SCHEMA_ATTR"),
        ("", 'offset="4294967295"', "SCHEMA_BLOCK"),
        ('<type name="T" primitiveType="int64" length="4294967295"/>', "", "SCHEMA_ATTR"),
        ('<composite name="T"><type name="v" primitiveType="int8" offset="4294967295"/></composite>', "", "SCHEMA_OFFSET"),
        ('<type name="T" primitiveType="int32" minValue="abc"/>', "", "SCHEMA_ATTR"),
        ('<type name="T" primitiveType="char" maxValue="zz"/>', "", "SCHEMA_ATTR"),
        ('<type name="T" primitiveType="uint8" maxValue="300"/>', "", "OK_WARN"),
        ('<type name="T" primitiveType="float" presence="optional" nullValue="1e39"/>', "", "OK_WARN"),
        ('<type name="T" primitiveType="double" presence="optional" nullValue="1e400"/>', "", "OK_WARN"),
        ('<type name="T" primitiveType="float" presence="optional" nullValue="3.4028235e38"/>', "", "OK"),
        ('<enum name="T" encodingType="uint8"><validValue name="A">1_0</validValue></enum>', "", "SCHEMA_ENUM"),
        ('<enum name="T" encodingType="uint8"><validValue name="A">\u0663</validValue></enum>', "", "SCHEMA_ENUM"),
        ('<enum name="T" encodingType="uint8"><validValue name="A">' + "9" * 5000 + "</validValue></enum>", "", "SCHEMA_ENUM"),
        ('<type name="uint8" primitiveType="uint16"/>', "", "OK_WARN"),
        ('<type name="uint8" primitiveType="uint8"/>', "", "OK"),
        ('<enum name="T" encodingType="uint8"><validValue name="class">1</validValue></enum>', "", "OK_WARN"),
        ('<type name="1 a-b" primitiveType="int8"/>', "", "OK_WARN"),
        *((f'<type name="T" primitiveType="char" length="4" characterEncoding="{one}"/>', "", "SCHEMA_CHARSET")
          for one in ("hex", "base64", "zlib", "rot13", "idna", "undefined", "punycode", "unicode_escape", "UTF-16")),
        ('<type name="T" primitiveType="uint8" length="4" characterEncoding="FOO"/>', "", "OK"),
        ('<type name="T" primitiveType="uint8" length="0" characterEncoding="FOO"/>', "", "SCHEMA_CHARSET"),
    ],
)  # fmt: skip
def test_more_verdicts(tmp_path: Path, types: str, field: str, kind: str) -> None:
    name = "T" if 'name="T"' in types else "int8"
    text = schema(types, message(f'<field name="x" id="1" type="{name}" {field}/>'))
    if not kind.startswith("OK"):
        assert kind_of(text) == kind
        return
    file = tmp_path / "schema.xml"
    file.write_text(text, encoding="utf-8")
    read, warnings = check(file)
    assert ("OK_WARN" if warnings else "OK") == kind
    Decoder(read, message="M").decode(pa.array([a_message(b"\1" * read.messages[1].block_length)]))


def test_ids_are_compared_as_numbers() -> None:
    fields = ('<field name="a" id="1" type="int8"/>', '<field name="b" id="01" type="int8"/>')
    assert kind_of(schema("", message(*fields))) == "SCHEMA_DUPLICATE"


def test_a_least_count_beyond_the_type_is_refused() -> None:
    body = message('<group name="g" id="1"/>')
    assert kind_of(schema(DIMENSION.format(' minValue="300"'), body)) == "SCHEMA_DIMENSION"
    assert parse(schema(DIMENSION.format(' minValue="1"'), body)).messages[1].groups


def test_wide_text_in_data_whose_length_is_not_told() -> None:
    types = (
        '<composite name="V"><type name="length" primitiveType="uint8"/>'
        '<type name="varData" primitiveType="uint8" characterEncoding="UTF-16LE"/></composite>'
    )
    text = "hé".encode("utf-16-le")
    read = parse(schema(types, message('<data name="x" id="1" type="V"/>')))
    payload = a_message(b"") + bytes([len(text)]) + text
    assert Walker(read).decode(memoryview(payload)).values["x"] == "hé"
    assert Decoder(read, message="M").decode(pa.array([payload]))["x"].to_pylist() == ["hé"]


def test_a_schema_of_types_alone_needs_no_header(tmp_path: Path) -> None:
    file = tmp_path / "common.xml"
    file.write_text(
        '<messageSchema id="1"><types><type name="T" primitiveType="int8"/></types></messageSchema>', encoding="utf-8"
    )
    read, warnings = check(file)
    assert [one.text for one in warnings] == ["there is no message in it"]
    assert read.header.composite.size == 8


def test_an_enum_of_many_values_is_read_in_one_go() -> None:
    values = "".join(f'<validValue name="v{index}">{index}</validValue>' for index in range(100_000))
    before = time.process_time()
    read = parse(schema(f'<enum name="E" encodingType="uint32">{values}</enum>'))
    # Comparing each with each takes minutes.
    assert time.process_time() - before < 30
    made = read.types["E"]
    assert isinstance(made, Enum)
    assert len(made.values) == 100_000


@pytest.mark.parametrize("size", [0, 2, 5, 9])
def test_a_frame_that_holds_no_header_ends_its_packet(size: int) -> None:
    read = parse(schema("", message('<field name="x" id="1" type="int32"/>')))
    good = a_message(struct.pack("<i", 9))
    frame = struct.pack("<H", 2 + len(good)) + good
    bad = bytes(12) + frame + struct.pack("<H", size) + bytes(size) + frame
    fine = bytes(12) + frame + frame
    walked = [
        one.kind if isinstance(one, DecodeError) else one.values["x"] for one in decode(read, bad, framing="cme-udp")
    ]
    assert walked == [9, "FRAME_SIZE"]
    rows = Decoder(read, message="M", framing="cme-udp").decode(pa.array([fine, bad, fine]))
    assert rows["x"].to_pylist() == [9, 9, 9, None, 9, 9]
    assert rows["sbe_error"].to_pylist() == [None, None, None, "FRAME_SIZE", None, None]


@pytest.mark.parametrize("name", ["Other", "groupSizeEncoding"])
def test_a_constant_of_something_else_than_its_enum(name: str) -> None:
    enums = "".join(
        f'<enum name="{one}" encodingType="uint8"><validValue name="a">1</validValue></enum>'
        for one in ("Own", "Other")
    )
    field = f'<field name="f" id="1" type="Own" presence="constant" valueRef="{name}.a"/>'
    assert kind_of(schema(enums + DIMENSION.format(""), message(field))) == "SCHEMA_CONST"
    assert parse(schema(enums, message(field.replace(f"{name}.a", "Own.a"))))
