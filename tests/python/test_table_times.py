"""Times of tables at their borders: before 1970, ns of pandas, and fields that are none."""

from __future__ import annotations

import pandas as pd
import pytest

from aeron_spark import UsageError
from aeron_spark.tables import pruning, scan, scans
from aeron_spark.testing import RecordedFolder


@pytest.mark.parametrize("unit", ["ns", "us"])
def test_since_a_time_before_1970(aeron_folder: RecordedFolder, monkeypatch: pytest.MonkeyPatch, unit: str) -> None:
    """No message of that time or later is left out: units are rounded down, so that what is read begins early enough."""
    monkeypatch.setattr(pruning, "GRAIN_BYTES", 1024)
    monkeypatch.setattr(scans, "PIECE_BYTES", 1024)
    stamps = [stamp or 1 for stamp in range(-12_000, 12_000)]  # 0 is no time
    messages = [b"%d" % stamp for stamp in stamps]
    written = aeron_folder.write(messages, channel="aeron:ipc?term-length=64k", reserved_values=stamps)
    table = scan(aeron_folder.path, written.recording_id, timestamp="reserved(ns)", ascending=True, time_unit=unit)
    for since in (-13_000, -9_500, -9_001, -9_000, -8_999, -501, -1, 0, 1, 999, 9_500):
        with table.by_time(since) as found:
            values = [value for one in found for value in one.column("value").to_pylist()]
        assert values == [b"%d" % stamp for stamp in stamps if stamp >= since], since


def test_times_of_pandas_have_nanoseconds(aeron_folder: RecordedFolder) -> None:
    begin = 1_800_000_000_123_456_000
    recording = aeron_folder.write([b"%d" % n for n in range(9)], reserved_values=range(begin, begin + 9)).recording_id
    table = scan(aeron_folder.path, recording, timestamp="reserved(ns)")
    times = table.to_table(columns=["timestamp"]).to_pandas()["timestamp"]
    with table.by_time(times[3]) as found:
        assert [value for one in found.until(times[5]) for value in one.column("value").to_pylist()] == [
            b"3",
            b"4",
            b"5",
        ]
    with table.by_time(pd.Timestamp(begin - 1, tz="Europe/Berlin")) as found:
        assert sum(one.num_rows for one in found.until(pd.Timestamp(begin + 8, tz="UTC"))) == 9


SCHEMA = """<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" package="p" id="7" version="0">
  <types>
    <composite name="messageHeader"><type name="blockLength" primitiveType="uint16"/>
      <type name="templateId" primitiveType="uint16"/><type name="schemaId" primitiveType="uint16"/>
      <type name="version" primitiveType="uint16"/></composite>
    <composite name="Price"><type name="mantissa" primitiveType="int64"/>
      <type name="exponent" primitiveType="int8" presence="constant">EXPONENT</type></composite>
    <composite name="Any"><type name="mantissa" primitiveType="int64"/><type name="exponent" primitiveType="int8"/></composite>
    <enum name="Side" encodingType="uint8"><validValue name="buy">1</validValue><validValue name="sell">2</validValue></enum>
    <set name="Flags" encodingType="uint8"><choice name="first">0</choice></set>
    <type name="Text" primitiveType="char" length="4"/>
  </types>
  <sbe:message name="Row" id="1"><field name="price" id="1" type="Price"/><field name="any" id="2" type="Any"/>
    <field name="side" id="3" type="Side"/><field name="flags" id="4" type="Flags"/><field name="text" id="5" type="Text"/>
    <field name="real" id="6" type="double"/><field name="count" id="7" type="uint64"/></sbe:message>
</sbe:messageSchema>"""


@pytest.mark.parametrize("exponent", [-2, 0, 3])
@pytest.mark.parametrize("field", ["price", "any", "side", "flags", "text", "real"])
def test_what_is_no_time(aeron_folder: RecordedFolder, field: str, exponent: int) -> None:
    """Whatever the options make of it, and before a message is read."""
    schema = SCHEMA.replace("EXPONENT", str(exponent))
    for options in ({}, {"enums": "values", "sets": "bits", "decimals": "decimal(18,0)"}):
        with pytest.raises(UsageError, match=rf"timestamp=sbe:{field}: the field is .*, not a time or a number"):
            scan(aeron_folder.path, timestamp=f"sbe:{field}(ns)", sbe=schema, sbe_options=options)
    scan(aeron_folder.path, timestamp="sbe:count(ns)", sbe=schema)
