"""`aeron-spark sbe`: look at a schema, and at messages by it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aeron_spark.cli.common import add_json, add_verb, at_least, print_json
from aeron_spark.errors import StorageError, UsageError
from aeron_spark.sbe import FRAMINGS, DecodeError, SchemaError, check, decode, load

EXAMPLES = """\
  aeron-spark sbe check prices.xml
  aeron-spark sbe decode --schema prices.xml message.bin
  aeron-spark sbe decode --schema mdp3.xml --framing cme-udp --hex packets.txt | jq .values"""


def add_to(verbs: Any) -> None:
    """Add the verb with its own verbs."""
    verb = add_verb(verbs, "sbe", _no_verb, about="check SBE schemas, decode messages by them", examples=EXAMPLES)
    inner = verb.add_subparsers(title="verbs", dest="sbe_verb", required=True, metavar="VERB")
    _add_check(inner)
    _add_decode(inner)


def _no_verb(_options: argparse.Namespace) -> int:
    raise UsageError("check or decode?")


def _add_check(verbs: Any) -> None:
    verb = add_verb(
        verbs,
        "check",
        _run_check,
        about="say whether a schema can be used: OK, OK_WARN, or what is wrong; exit code 1 if it can't",
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
        about="print each message as one JSON object; exit code 1 if one could not be decoded",
        examples=(
            "  aeron-spark sbe decode --schema prices.xml message.bin\n"
            "  echo 2a00... | aeron-spark sbe decode --schema prices.xml --hex -"
        ),
    )
    verb.add_argument("--schema", metavar="X.xml", required=True, help="schema file")
    verb.add_argument(
        "--framing",
        metavar="NAME",
        default="none",
        help=f"how messages lie in a payload: {' '.join(FRAMINGS)}, or lengthPrefix=u16be,... with the settings of docs/sbe.md",
    )
    verb.add_argument(
        "--skip", metavar="BYTES", type=at_least(0), default=0, help="bytes before the framing begins (default 0)"
    )
    verb.add_argument(
        "--hex", action="store_true", help="each line is a payload in hexadecimal digits, not the file as it is"
    )
    _add_header(verb)
    verb.add_argument("file", metavar="FILE", help="payload, or - for standard input")


def _add_header(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--header", metavar="TYPE", help="composite that heads the messages, where the schema tells another"
    )


def _run_check(options: argparse.Namespace) -> int:
    try:
        schema, findings = check(options.schema, header_type=options.header)
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
    if options.file == "-" and sys.stdin is None:
        raise UsageError("standard input is closed; give a file, or pipe the payload in")
    try:
        return sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
    except OSError as failure:
        raise StorageError(f"cannot read {options.file}: {failure.strerror}", code=failure.errno or 0) from None


def _payloads(options: argparse.Namespace) -> Iterator[tuple[dict[str, int], bytes]]:
    """Where each payload stands, for errors, and its bytes."""
    content = _content(options)
    if not options.hex:
        yield {}, content
        return
    for number, line in enumerate(content.split(b"\n"), 1):
        digits = b"".join(line.split())
        if not digits:
            continue
        if len(digits) % 2:
            raise UsageError(f"line {number} of {options.file} has {len(digits)} hexadecimal digits; a byte is two")
        try:
            yield {"line": number}, bytes.fromhex(digits.decode("ascii"))
        except ValueError as failure:
            raise UsageError(f"line {number} of {options.file} is not hexadecimal: {failure}") from None


def _run_decode(options: argparse.Namespace) -> int:
    schema = load(options.schema, header_type=options.header)
    failed = 0
    for where, payload in _payloads(options):
        for one in decode(schema, payload, framing=options.framing, skip=options.skip):
            if isinstance(one, DecodeError):
                failed += 1
                print_json({"error": one.kind, **where, "offset": one.offset, "text": str(one)})
            else:
                print_json(
                    {
                        "message": one.message.name,
                        "template_id": one.template_id,
                        "version": one.version,
                        "consumed": one.consumed,
                        "values": one.values,
                    }
                )
    return 1 if failed else 0
