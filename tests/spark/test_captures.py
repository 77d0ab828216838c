"""Imported captures are read by Spark as by everything else: one digest by Spark, a scan and `cat`."""

from __future__ import annotations

import hashlib
import io
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from aeron_spark.captures import import_capture
from aeron_spark.cli.__main__ import main
from aeron_spark.tables import scan
from tests.kit.captures import RAW, START_NS, udp, write_pcap
from tests.kit.payload import payloads

COLUMNS = ["recording_id", "position", "next_position", "reserved_value", "value"]


def digest(table: pa.Table) -> tuple[int, str]:
    rows = sorted(tuple(row.values()) for row in table.select(COLUMNS).to_pylist())
    return len(rows), hashlib.sha256(repr(rows).encode()).hexdigest()


@pytest.mark.usefixtures("engine")
def test_an_import_is_the_same_rows_for_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two flows of datagrams, with the times of their packets."""
    messages = list(payloads(1, 2000, [100, 1400, 3, 0]))
    packets = [(START_NS + 1000 * at, udp(one, 9000 + at % 2)) for at, one in enumerate(messages)]
    folder = tmp_path / "folder"
    import_capture(write_pcap(tmp_path / "capture", packets, link=RAW), folder, captured="udp")
    out = io.TextIOWrapper(io.BytesIO(), write_through=True)
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["cat", str(folder), "--format", "arrow", "--columns", ",".join(COLUMNS)]) == 0
    printed = pa.ipc.open_stream(out.buffer.getvalue()).read_all()  # type: ignore[attr-defined]
    rows = spark.read.format("aeron").option("columns", ",".join(COLUMNS)).load(str(folder))
    found = digest(rows.toArrow())
    assert found == digest(scan(folder).to_table()) == digest(printed)
    assert found[0] == len(messages)
    times = rows.selectExpr("min(reserved_value)", "max(reserved_value)").first()
    assert times is not None
    assert list(times) == [START_NS, START_NS + 1000 * (len(messages) - 1)]
