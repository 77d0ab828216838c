"""`partitionBy=time`: partitions follow each other in time, so that a sort in each gives what a merge of all recordings gives.

Method: recordings whose times overlap, with equal ones among them; the order without Spark is that of `Scan.by_time`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from aeron_spark.errors import UsageError
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.tables import scan
from aeron_spark.testing import RecordedFolder, Servers
from tests.kit.payload import payloads
from tests.spark.lake_kills import SCHEMA, quote

COUNT = 3000
ORDER = ("timestamp_ns", "recording_id", "position")
FIRST_US = 1_790_000_000_000_000


@pytest.fixture(scope="module")
def folder(module_rng: random.Random) -> Iterator[Path]:
    """Three recordings, one of them short and one late, with ascending times in ns; and two of SBE messages."""
    with Servers() as servers:
        written = RecordedFolder(servers)
        for stream_id, count, first in ((1, COUNT, 0), (2, COUNT // 50, 0), (3, COUNT, 40_000)):
            times = FIRST_US * 1000 + first + np.cumsum([module_rng.randrange(30) for _ in range(count)])
            sizes = [100, 1000, 3, 5000]
            written.write(list(payloads(stream_id, count, sizes)), stream_id=stream_id, reserved_values=times.tolist())
        for first in (0, 50):
            written.write([quote(1 + 100 * at + first) for at in range(COUNT)], stream_id=9)
        yield servers.archive_dir


def ordered(spark: SparkSession, folder: Path, **options: str) -> DataFrame:
    given = {"partitionBy": "time", "minPartitions": "7", "columns": ",".join(ORDER), **options}
    return spark.read.format("aeron").options(**given).load(str(folder)).sortWithinPartitions(*ORDER)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("source", "ids"), [("reserved(ns)", [0, 1, 2]), ("sbe:time", [3, 4]), ("index", [0, 1, 2, 3, 4])]
)
def test_sorted_partitions_are_the_merge(spark: SparkSession, folder: Path, source: str, ids: list[int]) -> None:
    of_sbe = {"sbeSchema": str(SCHEMA)} if source == "sbe:time" else {}
    frame = ordered(spark, folder, timestampFrom=source, recordingIds=",".join(map(str, ids)), **of_sbe)
    rows = [tuple(row) for row in frame.collect()]
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "Exchange" not in plan
    assert plan.count("Sort [") == 1
    assert frame.rdd.getNumPartitions() > 3
    table = scan(folder, ids, timestamp=source, **({"sbe": SCHEMA, "message": "Quote"} if of_sbe else {}))
    with table.by_time() as merged:
        expected = pa.Table.from_batches(list(merged), merged.schema)
    columns = [expected[name].to_pylist() for name in ("recording_id", "position")]
    assert [row[1:] for row in rows] == list(zip(*columns, strict=True))
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)


def test_times_that_descend_lose_and_repeat_nothing(spark: SparkSession, tmp_path: Path, rng: random.Random) -> None:
    with Servers() as servers:
        times = [FIRST_US + rng.randrange(10**6) for _ in range(COUNT)]
        written = RecordedFolder(servers).write(list(payloads(1, COUNT, [500])), reserved_values=times)
        rows = ordered(spark, servers.archive_dir, timestampFrom="reserved(us)").collect()
    assert sorted(row.position for row in rows) == list(written.positions)


def test_a_part_of_the_recordings_and_of_their_time(spark: SparkSession, folder: Path) -> None:
    positions = '{"0": 100000, "2": 200000}'
    options = {"recordingIds": "0,2", "timestampFrom": "reserved(ns)", "startingPositions": positions}
    rows = [tuple(row) for row in ordered(spark, folder, **options).collect()]
    by_position = spark.read.format("aeron").options(**options, columns=",".join(ORDER)).load(str(folder))
    assert rows == sorted(tuple(row) for row in by_position.collect())


def test_what_it_can_not_do(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it is for batch reads; a stream has what comes next"):
        ReadOptions.parse({"path": str(folder), "partitionby": "time"}, streaming=True)
    for path in folder.iterdir():
        if path.suffix in {".rec", ".catalog"}:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    with pytest.raises(Exception, match=r"partitionBy=time: recording 0 of .* has no time index"):
        ordered(spark, tmp_path).collect()
