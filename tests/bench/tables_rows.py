"""Scans beside readers of Parquet files with the same rows, and of parts beside all: seconds of one pass, in one process.

Both read from the page cache. The Parquet files are as pyarrow writes them by default. Tables are taken batch by batch, as a
query takes them, and not kept.
"""

from __future__ import annotations

import json
import os
import random
import struct
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import dataset

from aeron_spark.tables import Scan, scan
from aeron_spark.tables.duckdb import BATCH_ROWS, from_aeron
from aeron_spark.testing import RecordedFolder, Servers
from tests.bench.floors import copied_s
from tests.bench.pairs import Limit, Row, measure
from tests.bench.spark_rows import record
from tests.kit import dirs

RAW_BYTES = 512 << 20
RAW_MESSAGE = 1024
QUOTES = 1_000_000
GOLDEN = Path(__file__).parents[1] / "golden" / "sbe" / "binance"
SCHEMA, MESSAGE = GOLDEN / "stream_1_0.xml", "BestBidAskStreamEvent"
TYPED = ("eventTime", "bookUpdateId", "bidPrice", "bidQty", "askPrice", "askQty", "symbol")


def _seconds(take: Callable[[], object], times: int = 1) -> float:
    """Of one pass, the mean of so many that follow each other."""
    started = time.perf_counter()
    for _ in range(times):
        take()
    return (time.perf_counter() - started) / times


def _taken(batches: Scan | dataset.Dataset, columns: list[str] | None = None) -> int:
    return sum(batch.num_rows for batch in batches.to_batches(columns=columns))


#: A run is a fraction of a second, and two threads of one process feel what else the two cores do.
PAIRS = 15
#: Of the time in which the kernel copies the segments, that is near enough: columns without payloads need that copy as well.
COPIED_SHARE = 0.8
#: Passes of 2 ms that make a run: a single one behind 512 MiB has a row of its own, as it finds its code in no cache.
SHORT_PASSES = 20


def _row(
    name: str,
    ours: Callable[[], object],
    peer: Callable[[], object],
    *,
    peer_name: str,
    target: float | None,
    what: str,
    passes: int = 1,
    limit: Limit | None = None,
) -> Row:
    return measure(
        name,
        "s",
        lambda: _seconds(ours, passes),
        lambda: _seconds(peer),
        peer_name=peer_name,
        target=target,
        higher_is_better=False,
        pairs=PAIRS,
        ours_config={"read": what, "passes": passes},
        peer_config={"read": what},
        limit=limit,
    )


def raw_rows(work: Path) -> list[Row]:
    """Messages of 1 KiB as bytes."""
    record(work / "raw", RAW_MESSAGE, RAW_BYTES)
    whole = scan(work / "raw")
    file = work / "raw.parquet"
    pq.write_table(whole.to_table(), file)
    parquet = dataset.dataset(file)
    times = whole.to_table(columns=["timestamp"])["timestamp"]
    low, high = times[len(times) // 2], times[len(times) // 2 + len(times) // 100]
    part = whole.filter((pc.field("timestamp") >= low) & (pc.field("timestamp") < high))
    rows = f"{len(times)} messages of {RAW_MESSAGE} bytes"

    def every() -> int:
        return _taken(whole)

    def position() -> int:
        return _taken(whole, ["position"])

    copy = Limit(of=lambda: copied_s(work / "raw", os.cpu_count() or 1), scale=1.0, share=COPIED_SHARE)
    return [
        _row(
            "tables_raw",
            every,
            lambda: _taken(parquet),
            peer_name="pyarrow's scan of Parquet",
            target=1.0,
            what=rows,
        ),
        _row(
            "tables_position",
            position,
            every,
            peer_name="all columns",
            target=1.5,
            what=rows,
            limit=copy,
        ),
        _row(
            "tables_one_percent_by_time",
            lambda: _taken(part),
            every,
            peer_name="all rows",
            target=20.0,
            what=rows,
            passes=SHORT_PASSES,
        ),
        _row(
            "tables_one_percent_behind_all",
            lambda: _taken(part),
            every,
            peer_name="all rows",
            target=None,
            what=rows,
        ),
    ]


def _quotes() -> list[bytes]:
    rng = random.Random(1)
    lines = (GOLDEN / "stream_realistic.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    payloads = [bytearray.fromhex(one["hex"]) for one in found if one["message"] == MESSAGE]
    made = []
    for _ in range(QUOTES):
        payload = rng.choice(payloads)
        struct.pack_into("<q", payload, 26, rng.randrange(10**7))
        made.append(bytes(payload))
    return made


def _mean(field: pa.Field) -> str:
    """An aggregate that needs every value: extremes stand in a Parquet file's statistics."""
    if pa.types.is_timestamp(field.type):
        return f"avg(epoch_us({field.name}))"
    return f"avg({field.name})" if pa.types.is_primitive(field.type) else f"avg(octet_length(encode({field.name})))"


def typed_rows(work: Path) -> list[Row]:
    """SBE messages as typed columns."""
    with Servers(settings={"aeron.archive.segment.file.length": "128m"}) as servers:
        written = RecordedFolder(servers).write(pa.array(_quotes(), pa.binary()), channel="aeron:ipc?term-length=16m")
        options = {"sbe": SCHEMA, "message": MESSAGE, "sbe_options": {"decimals": "double"}}
        columns = [name for name in TYPED if name in scan(servers.archive_dir, **options).schema.names]
        typed = scan(servers.archive_dir, written.recording_id, columns=columns, **options)
        file = work / "typed.parquet"
        pq.write_table(typed.to_table(), file)
        parquet = dataset.dataset(file)
        every = ", ".join(_mean(typed.schema.field(name)) for name in columns)
        rows = f"{QUOTES} messages, {len(columns)} columns"

        quotes = scan(
            servers.archive_dir, written.recording_id, columns=columns, batch_rows=BATCH_ROWS, **options
        )  # as from_aeron(folder) makes it

        def ours(what: str) -> Callable[[], object]:
            return lambda: from_aeron(quotes).aggregate(what).fetchall()

        def peer(what: str) -> Callable[[], object]:
            return lambda: duckdb.read_parquet(str(file)).aggregate(what).fetchall()

        first = _mean(typed.schema.field(columns[1]))
        return [
            _row(
                "tables_sbe",
                lambda: _taken(typed),
                lambda: _taken(parquet),
                peer_name="pyarrow's scan of Parquet",
                target=0.7,
                what=rows,
            ),
            _row(
                "tables_duckdb_all",
                ours(every),
                peer(every),
                peer_name="DuckDB's scan of Parquet",
                target=0.5,
                what=rows,
            ),
            _row(
                "tables_duckdb_one",
                ours(first),
                peer(first),
                peer_name="DuckDB's scan of Parquet",
                target=None,
                what=rows,
            ),
        ]


def run() -> list[Row]:
    """The rows of group `tables`."""
    with dirs.fresh("tables") as work:
        return [*raw_rows(work), *typed_rows(work)]
