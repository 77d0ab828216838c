"""`aeron-spark sbe wireshark`: tshark, with the dissector of a schema, shows the values that the reference tool reads.

Method: the messages of tests/golden/sbe become UDP datagrams, or Aeron data frames, of a capture; tshark prints fields and
values, which are held against the golden values, each under the name that the schema gives it.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeron_spark.cli.__main__ import main
from aeron_spark.errors import UsageError
from aeron_spark.sbe import Schema, load, parse
from aeron_spark.sbe.model import Block, Composite, Enum, Scalar, Set, Type
from aeron_spark.sbe.wireshark import dissector, literal, protocol_name
from tests.kit import captures, tshark
from tests.sbe.test_schema import schema as schema_text
from tests.sbe.vectors import GOLDEN, READ_BY, messages, schema_of

Leaf = tuple[str, str]


def written(folder: Path, schema: Schema, *, framing: str = "none") -> Path:
    script = folder / "dissector.lua"
    script.write_text(dissector(schema, framing=framing), "utf-8")
    return script


def shown(capture: Path, script: Path, *more: str) -> list[list[Leaf]]:
    """Names and values that tshark shows of each packet's messages, in order."""
    return [list(leaves(layers)) for layers in tshark.trees(capture, script=script, more=(*tshark.AERON, *more))]


def leaves(tree: Any, name: str = "") -> Iterator[Leaf]:
    match tree:
        case dict():
            for key, value in tree.items():
                yield from leaves(value, key)
        case list():
            for value in tree:
                yield from leaves(value, name)
        case _ if name.startswith("sbe_") and name.count(".") > 1 and ".header." not in name:
            yield name.partition(".")[2], tree


def expected(of: Block, values: dict[str, Any], path: str) -> Iterator[Leaf]:
    """The golden values of a message as tshark shows them."""
    for field in of.fields:
        if field.presence != "constant" and values[field.name] is not None:
            yield from expected_value(field.type, values[field.name], f"{path}.{field.name}")
    for group in of.groups:
        for entry in values[group.name] or ():
            yield from expected(group, entry, f"{path}.{group.name}")
    for data in of.data:
        content = values[data.name]
        if content is not None:
            text = content if isinstance(content, str) else ":".join(re.findall("..", content["hex"]))
            yield f"{path}.{data.name}", text


def expected_value(of: Type, value: Any, path: str) -> Iterator[Leaf]:
    match of:
        case Composite():
            for member in of.members:
                if not member.is_constant and value[member.name] is not None:
                    yield from expected_value(member.type, value[member.name], f"{path}.{member.name}")
        case Set():
            yield path, str(value["raw"])
            yield from ((f"{path}.{name}", str(int(name in value["names"]))) for name, _ in of.choices)
        case Enum():
            yield path, str(value["unknown"] if isinstance(value, dict) else dict(of.values)[value])
        case Scalar():
            values = value if isinstance(value, list) else [value]
            yield from ((path, str(one)) for one in values if one is not None)


def alike(found: list[Leaf], wanted: list[Leaf]) -> bool:
    return len(found) == len(wanted) and all(
        name == other and (text == value or same_number(text, value))
        for (name, text), (other, value) in zip(sorted(found), sorted(wanted), strict=True)
    )


def same_number(text: str, value: str) -> bool:
    """Wireshark prints six digits of a float."""
    try:
        one, other = float(text), float(value)
    except ValueError:
        return False
    return math.isclose(one, other, rel_tol=1e-5) or (math.isnan(one) and math.isnan(other))


@pytest.mark.interop
@pytest.mark.parametrize("name", READ_BY)
def test_tshark_shows_what_the_reference_tool_reads(name: str, tmp_path: Path) -> None:
    schema = load(schema_of(name))
    lines = messages(name)
    capture = captures.write_pcap(
        tmp_path / "capture.pcap",
        [(number, captures.udp(bytes.fromhex(line["hex"]))) for number, line in enumerate(lines)],
        link=captures.RAW,
    )
    found = shown(capture, written(tmp_path, schema))
    for packet, line in zip(found, lines, strict=True):
        message = schema.messages[line["template_id"]]
        wanted = list(expected(message, line["values"], message.name))
        assert alike(packet, wanted), (sorted(packet), sorted(wanted))


CAR = "car/car_v0"


@pytest.mark.interop
def test_a_message_in_an_aeron_stream_and_one_of_several_fragments(tmp_path: Path) -> None:
    schema = load(schema_of(CAR))
    line = messages(CAR)[0]
    content = bytes.fromhex(line["hex"])
    packets = [captures.udp(captures.setup_frame())]
    offset = 0
    for length in (len(content), 64):
        for first in range(0, len(content), length):
            piece = content[first : first + length]
            flags = (0x80 if first == 0 else 0) | (0x40 if first + length >= len(content) else 0)
            packets.append(captures.udp(captures.data_frame(piece, offset, flags=flags)))
            offset += 32 + (len(piece) + 31) // 32 * 32
    capture = captures.write_pcap(tmp_path / "aeron.pcap", enumerate(packets), link=captures.RAW)
    message = schema.messages[line["template_id"]]
    wanted = list(expected(message, line["values"], message.name))
    found = [packet for packet in shown(capture, written(tmp_path, schema)) if packet]
    assert len(found) == 2
    assert all(alike(packet, wanted) for packet in found)


@pytest.mark.interop
@pytest.mark.parametrize(
    "framing", ["messages", "sofh", "cme-udp", "memx", "lengthPrefix=u16be,lengthIncludesSelf=false"]
)
def test_several_messages_of_a_packet(framing: str, tmp_path: Path) -> None:
    schema = load(schema_of(CAR))
    lines = messages(CAR)[:3]
    bodies = [bytes.fromhex(line["hex"]) for line in lines]
    heads = {
        "messages": lambda _: b"",
        "sofh": lambda body: struct.pack(">IH", len(body) + 6, 0x5BE0),
        "cme-udp": lambda body: struct.pack("<H", len(body) + 2),
        "memx": lambda body: struct.pack(">H", len(body)),
    }
    head = heads.get(framing, lambda body: struct.pack(">H", len(body)))
    before = {"cme-udp": bytes(12), "memx": b"\x02\x12" + bytes(16) + struct.pack(">H", len(bodies))}.get(framing, b"")
    payload = before + b"".join(head(body) + body for body in bodies)
    capture = captures.write_pcap(tmp_path / "capture.pcap", [(0, captures.udp(payload))], link=captures.RAW)
    wanted = [leaf for line in lines for leaf in expected(schema.messages[1], line["values"], "Car")]
    (found,) = shown(capture, written(tmp_path, schema, framing=framing))
    assert alike(found, wanted)


@pytest.mark.interop
def test_a_message_that_is_cut_off_is_told(tmp_path: Path) -> None:
    """At each length: an expert's error, never an error of the script, and no value that is not there."""
    schema = load(schema_of(CAR))
    line = messages(CAR)[0]
    content = bytes.fromhex(line["hex"])
    packets = [captures.udp(content[:length]) for length in range(1, len(content) + 1)]
    capture = captures.write_pcap(tmp_path / "capture.pcap", enumerate(packets), link=captures.RAW)
    wanted = sorted(expected(schema.messages[1], line["values"], "Car"))
    script = written(tmp_path, schema)
    whole = shown(capture, script, "-d", "udp.port==9000,sbe_baseline")
    told = tshark.run(
        capture, "-d", "udp.port==9000,sbe_baseline", "-T", "fields", "-e", "sbe_baseline.cut", script=script
    ).splitlines()
    assert [bool(text) for text in told] == [True] * (len(content) - 1) + [False]
    assert alike(whole[-1], wanted)
    assert all(len(packet) <= len(wanted) for packet in whole)
    assert "Lua Error" not in tshark.run(capture, "-V", "-d", "udp.port==9000,sbe_baseline", script=script)


def of_xml(
    folder: Path, schema: Schema, *datagrams: bytes, framing: str = "none"
) -> tuple[list[list[Leaf]], list[str]]:
    """What tshark shows of each datagram, and the texts of its experts."""
    capture = captures.write_pcap(folder / "capture.pcap", enumerate(map(captures.udp, datagrams)), link=captures.RAW)
    script = written(folder, schema, framing=framing)
    more = ("-d", f"udp.port==9000,{protocol_name(schema)}")
    experts = tshark.run(capture, *more, "-T", "fields", "-e", "_ws.expert.message", script=script)
    return shown(capture, script, *more), experts.splitlines()


VAR_DATA = """<composite name="Text"><type name="length" primitiveType="uint16"/>
<type name="varData" primitiveType="uint8" length="0" characterEncoding="{0}"/></composite>"""
CHARS = '<type name="Chars" primitiveType="char" length="8" characterEncoding="{0}"/>'


@pytest.mark.interop
@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("US-ASCII", "ABC"), ("UTF_8", "Zürich €"), ("latin1", "Zürich"), ("ISO-8859-15", "10 €"),
        ("windows-1252", "10 €"), ("cp1251", "Ж"), ("UTF-16LE", "ABCĀ€"), ("utf_16_be", "ABCĀ€"),
    ],
)  # fmt: skip
def test_text_is_shown_by_its_charset(charset: str, text: str, tmp_path: Path) -> None:
    """However the schema spells it, in data and in an array; text of which every character takes more bytes in UTF-8."""
    is_wide = "16" in charset and charset[:1] in "uU"
    fields = "" if is_wide else '<field name="chars" id="1" type="Chars"/>'
    types = VAR_DATA.format(charset) + ("" if is_wide else CHARS.format(charset))
    schema = parse(
        schema_text(types, f'<message name="Note" id="1">{fields}<data name="text" id="2" type="Text"/></message>')
    )
    content = text.encode(charset)
    block = b"" if is_wide else content[:8].ljust(8, b"\0")
    payload = struct.pack("<HHHH", len(block), 1, schema.id, 0) + block + struct.pack("<H", len(content)) + content
    wanted = [] if is_wide else [("Note.chars", content[:8].decode(charset, "ignore"))]
    assert of_xml(tmp_path, schema, payload) == ([[*wanted, ("Note.text", text)]], [""])


@pytest.mark.interop
def test_text_of_a_charset_that_wireshark_has_not_is_shown_as_bytes(tmp_path: Path) -> None:
    types = VAR_DATA.format("UTF-16") + CHARS.format("koi8-r")
    fields = '<field name="chars" id="1" type="Chars"/><data name="text" id="2" type="Text"/>'
    schema = parse(schema_text(types, f'<message name="Note" id="1">{fields}</message>'))
    payload = struct.pack("<HHHH", 8, 1, schema.id, 0) + b"\xf6".ljust(8, b"\0") + b"\4\0\xff\xfeA\0"
    leaves_of = [("Note.chars", "f6:00:00:00:00:00:00:00"), ("Note.text", "ff:fe:41:00")]
    assert of_xml(tmp_path, schema, payload) == ([leaves_of], [""])


@pytest.mark.interop
@pytest.mark.parametrize("charset", ["UTF-8", "UTF-16LE"])
def test_what_is_behind_a_nul_is_told(charset: str, tmp_path: Path) -> None:
    """Wireshark's texts end there; a zero byte within a character of UTF-16, or in two of them, is none."""
    schema = parse(
        schema_text(
            VAR_DATA.format(charset), '<message name="Note" id="1"><data name="t" id="2" type="Text"/></message>'
        )
    )
    contents = [text.encode(charset) for text in ("AĀC", "A\0BC")]
    head = struct.pack("<HHHH", 0, 1, schema.id, 0)
    packets = [head + struct.pack("<H", len(content)) + content for content in contents]
    found, experts = of_xml(tmp_path, schema, *packets)
    assert found == [[("Note.t", "AĀC")], [("Note.t", "A")]]
    # Wireshark has words of its own for some of these, before ours.
    text = f"text is shown up to its NUL; its bytes are {contents[1].hex().upper()}"
    assert (experts[0], experts[1].split(",")[-1]) == ("", text)


GROUP = """<composite name="groupSizeEncoding"><type name="blockLength" primitiveType="uint16"/>
<type name="numInGroup" primitiveType="{0}"/></composite>"""


@pytest.mark.interop
def test_what_no_decoder_takes_is_an_error(tmp_path: Path) -> None:
    """A number of entries below 0; another version where the header has no block length to find what follows by."""
    signed = GROUP.format('int8" minValue="0')
    body = '<message name="Note" id="1"><group name="g" id="2"><field name="q" id="3" type="uint8"/></group></message>'
    schema = parse(schema_text(signed, body))
    payload = struct.pack("<HHHHHb", 0, 1, schema.id, 0, 1, -3) + b"xyz"
    assert of_xml(tmp_path, schema, payload) == ([[]], ["g has -3 entries"])
    head = "".join(f'<type name="{name}" primitiveType="uint16"/>' for name in ("templateId", "schemaId", "version"))
    text = schema_text(
        f'<composite name="short">{head}</composite>',
        '<message name="Note" id="1"><field name="a" id="1" type="uint8"/></message>',
    )
    schema = parse(text, header_type="short")
    packets = [struct.pack("<HHHB", 1, schema.id, schema.version + version, 7) for version in (0, 1)]
    told = f"version {schema.version + 1} without a block length; the schema is {schema.version}"
    assert of_xml(tmp_path, schema, *packets) == ([[("Note.a", "7")], []], ["", told])


@pytest.mark.interop
@pytest.mark.parametrize("is_aeron", [False, True])
def test_entries_without_bytes_are_bounded_over_a_packet(is_aeron: bool, tmp_path: Path) -> None:
    """Of many messages in a payload, and of many frames of an Aeron stream in a datagram; each packet has its own."""
    schema = parse(
        schema_text(GROUP.format("uint16"), '<message name="Note" id="1"><group name="g" id="2"/></message>')
    )
    one = struct.pack("<HHHHHH", 0, 1, schema.id, 0, 0, 4000)
    if is_aeron:
        packet = b"".join(captures.data_frame(one, 64 * number, flags=0xC0) for number in range(20))
        more = tshark.AERON
    else:
        packet, more = one * 20, ("-d", f"udp.port==9000,{protocol_name(schema)}")
    packets = [captures.udp(captures.setup_frame()), captures.udp(packet)] if is_aeron else [captures.udp(packet)] * 2
    capture = captures.write_pcap(tmp_path / "capture.pcap", enumerate(packets), link=captures.RAW)
    script = written(tmp_path, schema, framing="none" if is_aeron else "messages")
    text = tshark.run(capture, *more, "-V", script=script)
    shown_of_each = 10_001 + (17 if is_aeron else 0)
    assert len(re.findall(r"^ +g \d+$", text, re.MULTILINE)) == shown_of_each * (1 if is_aeron else 2)
    assert "g has too many entries without bytes" in text


def test_a_name_of_a_schema_is_never_code() -> None:
    """A string is one token of Lua, whatever is in it: all is escaped but letters, digits, blanks and `_`."""
    assert literal('"] os.exit()\n\u65e5') == r'"\034\093 os\046exit\040\041\010\230\151\165"'
    every = literal("".join(map(chr, range(256))))
    assert re.fullmatch(r'"(?:[A-Za-z0-9_ ]|\\\d{3})*"', every)


@pytest.mark.interop
def test_a_nasty_schema_is_shown_as_it_is(tmp_path: Path) -> None:
    text = schema_text(
        '<enum name="Kind" encodingType="char"><validValue name="quote">"</validValue>'
        '<validValue name="slash">\\</validValue></enum>',
        '<message name="Note" id="1"><field name="a" id="1" type="Kind"/></message>',
    )
    schema = parse(text)
    script = written(tmp_path, schema)
    body = struct.pack("<HHHH", 1, 1, schema.id, 0)
    capture = captures.write_pcap(
        tmp_path / "capture.pcap", [(0, captures.udp(body + b'"')), (1, captures.udp(body + b"\\"))], link=captures.RAW
    )
    assert [value for packet in shown(capture, script) for _, value in packet] == ["34", "92"]


def test_the_verb_writes_the_file_and_says_how_to_load_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = str(GOLDEN / "car/example-schema.xml")
    target = tmp_path / "car.lua"
    assert main(["sbe", "wireshark", schema, "--out", str(target)]) == 0
    assert f"tshark -X lua_script:{target}" in capsys.readouterr().out
    assert target.read_text("utf-8") == dissector(load(schema))
    assert main(["sbe", "wireshark", schema]) == 0
    assert capsys.readouterr().out == target.read_text("utf-8")
    assert main(["sbe", "wireshark", schema, "--out", str(target)]) == 2
    assert "is there already; give --overwrite" in capsys.readouterr().err
    assert main(["sbe", "wireshark", schema, "--framing", "sohf"]) == 2
    assert "did you mean sofh" in capsys.readouterr().err


def test_a_protocol_has_a_name_that_wireshark_takes() -> None:
    schema = parse(schema_text(body='<message name="Note" id="1"/>'))
    assert re.fullmatch(r"sbe_[a-z0-9_]+", protocol_name(schema))


def test_too_many_fields_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeron_spark.sbe.wireshark._MOST_FIELDS", 3)
    with pytest.raises(UsageError, match="more than 3 fields"):
        dissector(load(schema_of(CAR)))
