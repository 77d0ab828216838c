"""SBE messages whose fields, and a message whose own name, are those of columns that every scan has."""

from __future__ import annotations

import struct

SCHEMA = """<?xml version="1.0" encoding="UTF-8"?>
<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" package="hiding" id="5" version="0" byteOrder="littleEndian">
  <types>
    <composite name="messageHeader"><type name="blockLength" primitiveType="uint16"/>
      <type name="templateId" primitiveType="uint16"/><type name="schemaId" primitiveType="uint16"/>
      <type name="version" primitiveType="uint16"/></composite>
  </types>
  <sbe:message name="Row" id="1"><field name="price" id="1" type="int64"/>
    <field name="position" id="2" type="uint8" presence="optional"/><field name="timestamp" id="3" type="int64"/>
    <field name="value" id="4" type="uint32"/><field name="flags" id="5" type="uint8"/>
    <field name="recording_id" id="6" type="uint8"/><field name="reserved_value" id="7" type="uint8"/>
    <field name="sbe_template" id="8" type="uint8"/></sbe:message>
  <sbe:message name="value" id="2"><field name="price" id="1" type="int64"/></sbe:message>
</sbe:messageSchema>"""
#: What a recording of messages has: their prices, and positions of their own, of which 255 is null.
PRICES, PLACES = (7, 8, 9), (9, 255, 0)
LENGTH = 96
MESSAGES = [
    struct.pack("<HHHHqBqIBBBB", 25, 1, 5, 0, price, place, -price, 40 + price, 3, 77, 5, 6)
    for price, place in zip(PRICES, PLACES, strict=True)
]
OTHER = struct.pack("<HHHHq", 8, 2, 5, 0, 11)
