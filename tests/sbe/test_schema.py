"""Schemas: what is accepted, and what is refused with which text. Spec: 10 §2, §12, §19 cases 1-18. Spec: 10 §4."""

from __future__ import annotations

from pathlib import Path

import pytest

from aeron_spark.errors import UsageError
from aeron_spark.sbe import SchemaError, check, load, parse
from aeron_spark.sbe.model import Composite, Enum, Scalar
from tests.sbe.vectors import GOLDEN, messages

HEADER = (
    '<composite name="messageHeader"><type name="blockLength" primitiveType="uint16"/>'
    '<type name="templateId" primitiveType="uint16"/><type name="schemaId" primitiveType="uint16"/>'
    '<type name="version" primitiveType="uint16"/></composite>'
)


def schema(types: str = "", body: str = "", **attributes: str) -> str:
    """A small schema."""
    more = "".join(f' {name}="{value}"' for name, value in {"id": "1", "version": "1", **attributes}.items())
    return f"<messageSchema{more}><types>{HEADER}{types}</types>{body}</messageSchema>"


@pytest.mark.parametrize("case", messages("checks/schemas"), ids=lambda case: case["name"])
def test_the_verdicts(case: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / case["name"]
    file.write_text(case["schema"], encoding="utf-8")
    if case["verdict"].startswith("OK"):
        assert bool(check(file)[1]) == (case["verdict"] == "OK_WARN")
        return
    with pytest.raises(SchemaError) as failed:
        check(file)
    assert failed.value.kind == case["verdict"]
    assert failed.value.problems[0].line > 0
    assert failed.value.problems[0].file == str(file.resolve())


def test_every_error_is_told_at_once_with_its_line_and_path() -> None:
    text = schema(
        '\n<enum name="Side" encodingType="uint8"><validValue name="Buy">300</validValue></enum>',
        '\n<message name="Order" id="1">\n<field name="px" id="1" type="nothing"/>\n'
        '<field name="qty" id="1" type="int32"/></message>',
    )
    with pytest.raises(SchemaError) as failed:
        parse(text)
    assert [(one.kind, one.line, one.path) for one in failed.value.problems] == [
        ("SCHEMA_ENUM", 2, "enum[Side]"),
        ("SCHEMA_DUPLICATE", 5, "message[Order]"),
        ("SCHEMA_TYPE", 4, "message[Order]/field[px]"),
    ]
    assert "there is no type 'nothing'" in str(failed.value)


@pytest.mark.parametrize(
    ("href", "words"),
    [
        ("missing.xml", "there is no file"),
        ("../outside.xml", "out of the schema's folder"),
        ("/etc/passwd", "not a file name relative"),
        ("http://localhost/types.xml", "not a file name relative"),
        ("self.xml", "includes itself"),
    ],
)
def test_includes_that_are_refused(tmp_path: Path, href: str, words: str) -> None:
    folder = tmp_path / "schemas"
    folder.mkdir()
    (tmp_path / "outside.xml").write_text("<types/>", encoding="utf-8")
    file = folder / "self.xml"
    file.write_text(
        f'<messageSchema id="1" xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="{href}"/></messageSchema>',
        encoding="utf-8",
    )
    with pytest.raises(SchemaError) as failed:
        load(file)
    assert failed.value.kind == "SCHEMA_INCLUDE"
    assert words in str(failed.value)


@pytest.mark.parametrize(
    ("doctype", "words"),
    [
        ('<!DOCTYPE m [<!ENTITY a "aaaa">]>', "declarations"),
        ("<!DOCTYPE m []>", "declarations"),
        ('<!DOCTYPE m SYSTEM "file:///etc/passwd">', "an external identifier"),
        ('<!DOCTYPE m PUBLIC "-//X//Y" "http://localhost/m.dtd">', "an external identifier"),
    ],
)
def test_a_document_type_that_declares_or_fetches_is_refused(doctype: str, words: str) -> None:
    with pytest.raises(SchemaError, match=f"has {words}.*take it out") as failed:
        parse(doctype + schema())
    assert failed.value.kind == "SCHEMA_XML"


def test_a_document_type_that_says_nothing(tmp_path: Path) -> None:
    """As in each schema that B3 publishes; entities stay unknown."""
    doctype = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE xml>\n'
    body = '<message name="M" id="1"/><xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="more.xml"/>'
    (tmp_path / "b3.xml").write_text(doctype + schema("", body), encoding="utf-8")
    (tmp_path / "more.xml").write_text(
        f'{doctype}<types><type name="T" primitiveType="int8"/></types>', encoding="utf-8"
    )
    assert check(tmp_path / "b3.xml")[1] == ()
    with pytest.raises(SchemaError, match="undefined entity"):
        parse(doctype + schema("", '<message name="&a;" id="1"/>'))


@pytest.mark.parametrize("text", ["", "<messageSchema", "<types/>", "\0", "<messageSchema id='1'></types>"])
def test_what_is_no_schema(text: str) -> None:
    with pytest.raises(SchemaError) as failed:
        parse(text)
    assert failed.value.kind == "SCHEMA_XML"


SPACES = (
    '<enum name="Session" encodingType="char"><validValue name="Regular"> </validValue>'
    '<validValue name="Late">&#32;</validValue><validValue name="Pre">\n P\t</validValue></enum>'
    '<type name="Pad" primitiveType="char" presence="constant"> </type>'
    '<type name="Wide" primitiveType="char" length="4" presence="constant"> AB </type>'
)


def test_a_space_is_a_value_of_char() -> None:
    """As in MEMOIR Last Sale; white space around other values is layout."""
    types = parse(schema(SPACES)).types
    session, pad, wide = types["Session"], types["Pad"], types["Wide"]
    assert isinstance(session, Enum)
    assert session.values == (("Regular", 32), ("Late", 32), ("Pre", 80))
    assert isinstance(pad, Scalar)
    assert isinstance(wide, Scalar)
    assert (pad.constant, pad.length, wide.constant) == (" ", 1, "AB")
    for text in ("", "  ", "\n", "\t"):
        with pytest.raises(SchemaError, match="Blank has no value"):
            parse(schema(SPACES.replace("\n P\t", text).replace("Pre", "Blank")))
    with pytest.raises(SchemaError, match="is not a number"):
        parse(schema('<enum name="E" encodingType="uint8"><validValue name="A">x</validValue></enum>'))
    with pytest.raises(SchemaError, match="A has no value"):
        parse(schema('<enum name="E" encodingType="uint8"><validValue name="A"> </validValue></enum>'))


@pytest.mark.parametrize(
    ("encoding", "null", "value"),
    [
        ("uint8", "", 255),
        ("uint8", 'nullValue="0"', 0),
        ("uint16", "", 65535),
        ("int8", "", -128),
        ("int64", "", -(2**63)),
        ("uint64", "", 2**64 - 1),
        ("Named", "", 99),
    ],
)
def test_a_name_of_the_null_value_is_a_warning(tmp_path: Path, encoding: str, null: str, value: int) -> None:
    types = '<type name="Named" primitiveType="uint8" nullValue="99" presence="optional"/>'
    values = f'<validValue name="Buy">1</validValue>\n<validValue name="Neither">{value}</validValue>'
    enum = f'<enum name="Side" encodingType="{encoding}" {null}>{values}</enum>'
    file = tmp_path / "x.xml"
    file.write_text(schema(types + enum, '<message name="M" id="1"/>'), encoding="utf-8")
    read, [warning] = check(file)
    assert (warning.path, warning.line) == ("enum[Side]", 2)
    assert f"Neither={value} is the enum's null value: it is decoded as null" in warning.text
    side = read.types["Side"]
    assert isinstance(side, Enum)
    assert (side.null, side.values) == (value, (("Buy", 1), ("Neither", value)))


def test_values_out_of_range_are_errors_still() -> None:
    """The type's own null value is one, too, where the enum has another."""
    for null, value in (("", 256), ("", -1), ('nullValue="0"', 255)):
        enum = f'<enum name="E" encodingType="uint8" {null}><validValue name="A">{value}</validValue></enum>'
        with pytest.raises(SchemaError, match=f"A={value} is not in uint8's range, 0 to 254") as failed:
            parse(schema(enum))
        assert failed.value.kind == "SCHEMA_ENUM"


def test_offsets_and_blocks() -> None:
    read = load(GOLDEN / "features/features_le.xml")
    scalars = read.messages[1]
    assert scalars.block_length == 220
    assert [(one.name, one.offset) for one in scalars.fields[:6]] == [
        ("c", 0),
        ("i8", 1),
        ("i16", 2),
        ("i32", 8),
        ("i64", 16),
        ("u8", 24),
    ]
    outer = read.types["Outer"]
    assert isinstance(outer, Composite)
    assert [(one.name, one.offset) for one in outer.members] == [
        ("tag", 0),
        ("inner", 4),
        ("subPart", 13),
        ("price", 18),
    ]
    assert outer.size == 26
    assert read.header.composite.size == 12
    assert read.messages[4].groups[0].groups[0].dimension.size == 8


def test_forward_references_and_redefined_primitives() -> None:
    read = parse(
        schema(
            '<composite name="Px"><type name="mantissa" primitiveType="int64"/><ref name="side" type="Side"/></composite>'
            '<type name="int8" primitiveType="int8"/>'
            '<enum name="Side" encodingType="int8"><validValue name="Buy"> 1 </validValue></enum>',
            '<message name="M" id="7"><field name="px" id="1" type="Px"/><field name="n" id="2" type="uint32"/></message>',
        )
    )
    side = read.types["Side"]
    assert isinstance(side, Enum)
    assert side.values == (("Buy", 1),)
    assert isinstance(read.messages[7].fields[1].type, Scalar)
    assert read.messages[7].block_length == 13


def test_header_members_that_are_not_there_are_named_with_those_that_are() -> None:
    text = schema(
        '<composite name="venue"><type name="length" primitiveType="uint16"/><type name="kind" primitiveType="uint16"/>'
        "</composite>",
        '<message name="M" id="7"/>',
    )
    with pytest.raises(SchemaError, match="has no member templateId, but length, kind: say by a header map"):
        parse(text, header_type="venue")
    with pytest.raises(SchemaError, match=r"has no member sort, but length, kind: .* its templateId"):
        parse(text, header_type="venue", header_map={"templateId": "sort"})
    with pytest.raises(UsageError, match=r"'templateID' is none of templateId.*did you mean templateId"):
        parse(text, header_type="venue", header_map={"templateID": "kind"})


def test_a_header_of_another_name_may_lack_what_the_schema_tells() -> None:
    text = schema(
        '<composite name="venue"><type name="length" primitiveType="uint16"/><type name="kind" primitiveType="uint16"/>'
        "</composite>",
        '<message name="M" id="7"/>',
    )
    header = parse(text, header_type="venue", header_map={"templateId": "kind"}).header
    assert header.template_id.offset == 2
    assert header.block_length is None
    with pytest.raises(SchemaError) as failed:
        parse(text, header_type="venue")
    assert failed.value.kind == "SCHEMA_HEADER"
