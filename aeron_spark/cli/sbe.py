"""`aeron-spark sbe`: look at a schema, and at messages by it."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aeron_spark.cli.captures import capture_format, compression
from aeron_spark.cli.common import add_json, add_verb, at_least, print_json, standard_input
from aeron_spark.errors import StorageError, UsageError
from aeron_spark.names import pairs
from aeron_spark.sbe import FRAMINGS, DecodeError, SchemaError, check, decode, load
from aeron_spark.sbe.framing import named
from aeron_spark.sbe.wireshark import dissector, protocol_name

EXAMPLES = """\
  aeron-spark sbe check prices.xml
  aeron-spark sbe decode --schema prices.xml message.bin
  aeron-spark sbe decode --schema mdp3.xml --framing cme-udp --hex packets.txt | jq .values"""


_MAP_EXAMPLE = "templateId:messageTypeId"


def add_to(verbs: Any) -> None:
    """Add the verb with its own verbs."""
    verb = add_verb(verbs, "sbe", _no_verb, about="check SBE schemas, decode messages by them", examples=EXAMPLES)
    inner = verb.add_subparsers(title="verbs", dest="sbe_verb", required=True, metavar="VERB")
    _add_check(inner)
    _add_decode(inner)
    _add_wireshark(inner)


def _no_verb(_options: argparse.Namespace) -> int:
    raise UsageError("check, decode or wireshark?")


def _add_check(verbs: Any) -> None:
    verb = add_verb(
        verbs,
        "check",
        _run_check,
        about="check whether a schema can be used: OK, OK_WARN, or what is wrong; exit code 1 if it can't",
        examples="  aeron-spark sbe check prices.xml\n  aeron-spark sbe check prices.xml --json",
    )
    verb.add_argument("schema", metavar="X.xml", help="schema file; its includes lie in its folder")
    _add_header(verb)
    add_json(verb)


def _add_decode(verbs: Any) -> None:
    verb = add_verb(
        verbs,
        "decode",
        _run_decode,
        about="print each message as one JSON object a line; exit code 1 if one could not be decoded",
        examples=(
            "  aeron-spark sbe decode --schema prices.xml message.bin\n"
            "  echo 2a00... | aeron-spark sbe decode --schema prices.xml --hex -\n"
            "  tshark -r x.pcap -Y udp -T fields -e udp.payload | aeron-spark sbe decode --schema prices.xml --hex -\n"
            "  aeron-spark sbe decode --schema venue.xml --header venueHeader --header-map templateId:messageTypeId x.bin"
        ),
    )
    verb.add_argument("--schema", metavar="X.xml", required=True, help="schema file")
    _add_framing(verb)
    verb.add_argument(
        "--skip", metavar="BYTES", type=at_least(0), default=0, help="bytes before the framing begins (default 0)"
    )
    verb.add_argument(
        "--hex",
        action="store_true",
        help="each line is a payload in hexadecimal digits (with blanks or colons between, if you like), not the file as it is",
    )
    _add_header(verb)
    verb.add_argument("file", metavar="FILE", help="payload, or - for standard input")


def _add_wireshark(verbs: Any) -> None:
    verb = add_verb(
        verbs,
        "wireshark",
        _run_wireshark,
        about="write a dissector for Wireshark and tshark, which shows the messages of a schema in UDP and Aeron captures",
        examples="  aeron-spark sbe wireshark prices.xml --out prices.lua\n"
        "  aeron-spark sbe wireshark mdp3.xml --framing cme-udp --out mdp3.lua",
    )
    verb.add_argument("schema", metavar="X.xml", help="schema file; its includes lie in its folder")
    verb.add_argument("--out", metavar="FILE", help="Lua file to write (default: standard output)")
    verb.add_argument("--overwrite", action="store_true", help="replace the file if it exists")
    _add_framing(verb)
    _add_header(verb)


def _add_framing(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--framing",
        metavar="NAME",
        default="none",
        help=f"how messages lie in a payload: {' '.join(FRAMINGS)}, or lengthPrefix=u16be,... with the settings of docs/sbe.md",
    )


def _add_header(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--header", metavar="TYPE", help="composite that heads the messages, where the schema names another"
    )
    verb.add_argument(
        "--header-map",
        metavar="ROLE:MEMBER,...",
        default="",
        help="what the header's members are called, where they have other names: templateId:messageTypeId",
    )


def _header(options: argparse.Namespace) -> dict[str, Any]:
    """The header by the options, for `check` and `load`."""
    return {"header_type": options.header, "header_map": pairs("--header-map", options.header_map, _MAP_EXAMPLE)}


def _need_schema(options: argparse.Namespace) -> None:
    """A file that is not there is no finding about a schema."""
    try:
        Path(options.schema).stat()
    except OSError as failure:
        raise StorageError(
            f"cannot read {options.schema}: {failure.strerror}; give the file of an SBE schema",
            code=failure.errno or 0,
        ) from None


def _run_check(options: argparse.Namespace) -> int:
    _need_schema(options)
    try:
        schema, findings = check(options.schema, **_header(options))
    except SchemaError as failure:
        verdict, findings, counts = failure.kind, failure.problems, {}
    else:
        verdict = "OK_WARN" if findings else "OK"
        counts = {"schema_id": schema.id, "version": schema.version, "messages": len(schema.messages)}
    if options.json:
        print_json(
            {
                "verdict": verdict,
                **counts,
                "findings": [
                    {"kind": one.kind, "file": one.file, "line": one.line, "path": one.path, "text": one.text}
                    for one in findings
                ],
            }
        )
    else:
        print(verdict, *(f"{name}={value}" for name, value in counts.items()))
        for one in findings:
            print(one)
    return 0 if verdict.startswith("OK") else 1


def _content(options: argparse.Namespace) -> bytes:
    try:
        content = standard_input().buffer.read() if options.file == "-" else Path(options.file).read_bytes()
    except OSError as failure:
        raise StorageError(f"cannot read {options.file}: {failure.strerror}", code=failure.errno or 0) from None
    _refuse_containers(options, content)
    return content


def _refuse_containers(options: argparse.Namespace, content: bytes) -> None:
    """Files that have payloads in them, but are none."""
    name = "standard input" if options.file == "-" else options.file
    capture, codec = capture_format(content), compression(content)
    if capture is not None:
        raise UsageError(
            f"{name} is a capture file ({capture}), whose packets have other headers before their payloads. Take the payloads "
            f"out with tshark, one a line in hexadecimal digits:\n  {_extraction(options)}\n"
            f"For TCP write tcp.payload in both places; a message that is in two segments is an error then."
        )
    if codec is not None:
        raise UsageError(f"{name} is compressed by {codec}: decompress it first ({codec} -dc), and give what comes out")


def _extraction(options: argparse.Namespace) -> str:
    """The command that takes payloads out of a capture file, and decodes them by the options."""
    file = "FILE" if options.file == "-" else shlex.quote(options.file)
    words = ["aeron-spark", "sbe", "decode", "--schema", options.schema]
    for flag, value, default in (
        ("--framing", options.framing, "none"), ("--skip", options.skip, 0), ("--header", options.header, None),
        ("--header-map", options.header_map, ""),
    ):  # fmt: skip
        words += [] if value == default else [flag, str(value)]
    return f"tshark -r {file} -Y udp.payload -T fields -e udp.payload | {shlex.join([*words, '--hex', '-'])}"


def _payloads(options: argparse.Namespace) -> Iterator[tuple[dict[str, int], bytes]]:
    """Where each payload stands, and its bytes."""
    content = _content(options)
    if not options.hex:
        yield {}, content
        return
    for number, line in enumerate(content.split(b"\n"), 1):
        wrong = re.search(rb"[^0-9A-Fa-f:\s]", line)
        if wrong:
            found = ascii(wrong[0].decode("ascii")) if wrong[0].isascii() else f"the byte 0x{wrong[0].hex()}"
            raise UsageError(
                f"line {number} of {options.file} has {found} at character {wrong.start() + 1}, which is no hexadecimal digit; "
                f"without --hex the file is taken as it is"
            )
        digits = b"".join(line.replace(b":", b" ").split())
        if len(digits) % 2:
            raise UsageError(f"line {number} of {options.file} has {len(digits)} hexadecimal digits; a byte is two")
        if digits:
            yield {"line": number}, bytes.fromhex(digits.decode("ascii"))


def _run_decode(options: argparse.Namespace) -> int:
    named(options.framing)  # an unknown one is an error, whatever the input
    _need_schema(options)
    schema = load(options.schema, **_header(options))
    number = failed = 0
    for where, payload in _payloads(options):
        for one in decode(schema, payload, framing=options.framing, skip=options.skip):
            number += 1
            if isinstance(one, DecodeError):
                failed += 1
                print_json({"number": number, **where, "error": one.kind, "offset": one.offset, "text": str(one)})
            else:
                print_json(
                    {
                        "number": number,
                        **where,
                        "message": one.message.name,
                        "template_id": one.template_id,
                        "version": one.version,
                        "consumed": one.consumed,
                        "header": one.header,
                        "values": one.values,
                    }
                )
    if not number:
        print(f"{options.command}: there is no message in {options.file}", file=sys.stderr)
    return 1 if failed else 0


def _run_wireshark(options: argparse.Namespace) -> int:
    """Write the dissector, and how to load it."""
    named(options.framing)
    _need_schema(options)
    schema = load(options.schema, **_header(options))
    text = dissector(schema, framing=options.framing)
    if options.out is None:
        print(text, end="")
        return 0
    try:
        with Path(options.out).open("w" if options.overwrite else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{options.out} is there already; give --overwrite to replace it") from None
    except OSError as failure:
        raise StorageError(f"cannot write {options.out}: {failure.strerror}", code=failure.errno or 0) from None
    script = shlex.quote(options.out)
    print(
        f"{options.out}: protocol {protocol_name(schema)}, {len(schema.messages)} messages. In a capture of UDP or of Aeron:\n"
        f"  tshark -X lua_script:{script} -r CAPTURE -O {protocol_name(schema)} --enable-heuristic aeron_udp "
        "-o aeron.use_heuristic_subdissectors:TRUE -o aeron.reassemble_fragments:TRUE -o aeron.sequence_analysis:TRUE"
    )
    return 0
