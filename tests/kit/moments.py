"""SBE messages of dates, times and numbers that Python or JSON has no form for, and what is shown of them."""

from __future__ import annotations

import math
import struct

SCHEMA = """<?xml version="1.0" encoding="UTF-8"?>
<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" package="moments" id="9" version="0" byteOrder="littleEndian">
  <types>
    <composite name="messageHeader"><type name="blockLength" primitiveType="uint16"/>
      <type name="templateId" primitiveType="uint16"/><type name="schemaId" primitiveType="uint16"/>
      <type name="version" primitiveType="uint16"/></composite>
    <composite name="groupSizeEncoding"><type name="blockLength" primitiveType="uint16"/>
      <type name="numInGroup" primitiveType="uint16"/></composite>
    <type name="Key" primitiveType="uint8" length="4"/>
  </types>
  <sbe:message name="Moment" id="1">
    <field name="at" id="1" type="int64" semanticType="UTCTimestamp" timeUnit="millisecond"/>
    <field name="exact" id="2" type="int64" semanticType="UTCTimestamp"/>
    <field name="day" id="3" type="int32" semanticType="LocalMktDate"/>
    <field name="clock" id="4" type="int64" semanticType="UTCTimeOnly"/>
    <field name="price" id="5" type="double"/><field name="size" id="6" type="float"/><field name="key" id="7" type="Key"/>
    <group name="legs" id="8" dimensionType="groupSizeEncoding">
      <field name="due" id="9" type="int32" semanticType="LocalMktDate"/></group>
  </sbe:message>
</sbe:messageSchema>"""
CLOCK_NS = 34_200_123_456_789


def _moment(at_ms: int, exact_ns: int, days: int, price: float, size: float) -> bytes:
    body = struct.pack("<qqiqdf4s", at_ms, exact_ns, days, CLOCK_NS, price, size, b"\1\2\3\4")
    return struct.pack("<4H", len(body), 1, 9, 0) + body + struct.pack("<2Hi", 4, 1, days)


MESSAGES = [
    _moment(1_700_000_000_000, 1_700_000_000_123_456_789, 19_675, 1.5, 2.5),
    _moment(2**62, -1, 2**31 - 1, math.nan, -math.inf),
]
FIELDS = [
    {
        "at": "2023-11-14T22:13:20.000Z",
        "exact": "2023-11-14T22:13:20.123456789Z",
        "day": "2023-11-14",
        "clock": "09:30:00.123456789",
        "price": 1.5,
        "size": 2.5,
        "key": "01020304",
        "legs": [{"due": "2023-11-14"}],
    },
    {
        "at": f"{2**62} ms since 1970",
        "exact": "1969-12-31T23:59:59.999999999Z",
        "day": f"{2**31 - 1} days since 1970",
        "clock": "09:30:00.123456789",
        "price": "NaN",
        "size": "-Infinity",
        "key": "01020304",
        "legs": [{"due": f"{2**31 - 1} days since 1970"}],
    },
]
