"""Recordings of a small market, whose rows are known: quotes and trades in SBE, and lines of text."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from aeron_spark import DataLossError
from aeron_spark.tables import Scan, scan
from aeron_spark.testing import RecordedFolder, Servers

SCHEMA = """<?xml version="1.0" encoding="UTF-8"?>
<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" package="prices" id="7" version="0" byteOrder="littleEndian">
  <types>
    <composite name="messageHeader"><type name="blockLength" primitiveType="uint16"/>
      <type name="templateId" primitiveType="uint16"/><type name="schemaId" primitiveType="uint16"/>
      <type name="version" primitiveType="uint16"/></composite>
    <enum name="Side" encodingType="char"><validValue name="BUY">B</validValue><validValue name="SELL">S</validValue></enum>
    <type name="Symbol" primitiveType="char" length="4"/>
  </types>
  <sbe:message name="Quote" id="1"><field name="number" id="1" type="int64"/><field name="price" id="2" type="int64"/>
    <field name="side" id="3" type="Side"/><field name="symbol" id="4" type="Symbol"/></sbe:message>
  <sbe:message name="Trade" id="2"><field name="number" id="1" type="int64"/>
    <field name="size" id="2" type="int64"/></sbe:message>
</sbe:messageSchema>"""
START_NS = 1_800_000_000_000_000_000
COUNT = 30_000
QUOTES, TEXTS = 1001, 2002


def quote(number: int) -> bytes:
    """A Quote in SBE."""
    side, symbol = b"BS"[number % 2 :][:1], (b"ABC\0", b"XYZ\0", b"LONG")[number % 3]
    return struct.pack("<HHHHqq1s4s", 21, 1, 7, 0, number, 100 + number % 50, side, symbol)


def trade(number: int) -> bytes:
    """A Trade in SBE."""
    return struct.pack("<HHHHqq", 16, 2, 7, 0, number, number % 9)


@dataclass(frozen=True)
class Market:
    """A folder with 0: quotes, and a trade after each fourth; 1: texts of another stream; 2: quotes and what is none."""

    servers: Servers
    path: Path
    recording: int
    texts: int
    broken: int
    whole: pa.Table


@contextmanager
def opened() -> Iterator[Market]:
    """The market, made anew; its archive runs while it is open."""
    messages = [trade(number) if number % 5 == 4 else quote(number) for number in range(COUNT)]
    with Servers(settings={"aeron.archive.segment.file.length": "1m"}) as servers:
        folder = RecordedFolder(servers)
        stamps = [START_NS + number * 1000 for number in range(COUNT)]
        channel = "aeron:ipc?term-length=256k"
        first = folder.write(messages, stream_id=QUOTES, channel=channel, reserved_values=stamps)
        texts = folder.write([f"line {number}" for number in range(500)], stream_id=TEXTS, channel=channel)
        broken = folder.write([*map(quote, range(10)), b"nonsense", *map(quote, range(10))], stream_id=3003)
        yield Market(
            servers,
            folder.path,
            first.recording_id,
            texts.recording_id,
            broken.recording_id,
            scan(folder.path, [first.recording_id, texts.recording_id]).to_table(),
        )


def of(market: Market, *recordings: int, **options: Any) -> Scan:
    """A scan of its quotes and its texts, or of the recordings given."""
    return scan(market.path, list(recordings) or [market.recording, market.texts], **options)


def read_bytes(table: Scan) -> int:
    """Bytes that a pass reads."""
    return sum(part.end - part.start for part in table.ranges())


def until_failure(table: Scan) -> tuple[list[dict[str, Any]], str]:
    """The rows before data are lost, and the text of that."""
    rows: list[dict[str, Any]] = []
    try:
        for batch in table:
            rows += batch.to_pylist()
    except DataLossError as failure:
        return rows, str(failure)
    raise AssertionError("nothing failed")
