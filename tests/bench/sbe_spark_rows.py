"""SBE end to end: from a recording's segments to typed columns in Spark, beside prebuilt batches of the same columns."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from aeron_spark.spark.source import AeronDataSource
from tests.bench.pairs import ROOT, Row, measure
from tests.bench.prebuilt import PrebuiltFileSource
from tests.bench.sbe_rows import GOLDEN, SCHEMAS, best_bids_and_asks
from tests.kit import dirs
from tests.spark import recorded
from tests.spark.session import build_session

ROWS = 2 << 20
STREAM_ID = 1001


def _record(folder: Path) -> None:
    messages = pa.array(best_bids_and_asks(), pa.binary())
    settings = {"aeron.archive.segment.file.length": "128m", "aeron.ipc.term.buffer.length": "16m"}
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, folder, settings) as archive:
        publication = archive.record(STREAM_ID, "aeron:ipc")
        for _ in range(ROWS // len(messages)):
            publication.offer_batch(messages, timeout=60)
        archive.stop(publication, STREAM_ID, "aeron:ipc")


def _first_batch(options: dict[str, str]) -> pa.RecordBatch:
    source = AeronDataSource(options)
    reader = source.reader(source.schema())
    return next(iter(reader.read(reader.partitions()[0])))


def run() -> list[Row]:
    """Best bids and asks, one task."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    schema, message = SCHEMAS["bbo"]
    chosen = {"payload": "sbe", "sbeSchema": str(GOLDEN / f"{schema}.xml"), "sbeMessage": message}
    options = {**chosen, "minPartitions": "1", "maxBytesPerPartition": "4g"}
    work = Path(tempfile.mkdtemp(prefix="aeron-spark-bench-"))
    spark = build_session("aeron-spark-bench", spark__driver__memory="4g")
    spark.dataSource.register(PrebuiltFileSource)

    def rate(frame: DataFrame) -> float:
        started = time.monotonic()
        frame.write.format("noop").mode("overwrite").save()
        return ROWS / (time.monotonic() - started)

    try:
        _record(work / "recorded")
        batch = _first_batch({**options, "path": str(work / "recorded")})
        file = work / "batch.arrow"
        with pa.ipc.new_file(file, batch.schema) as to:
            to.write_batch(batch)
        ours = spark.read.format("aeron").options(**options).load(str(work / "recorded"))
        peer = spark.read.format("prebuilt_file").options(path=str(file), rows=str(ROWS)).load()
        assert [one.name for one in ours.schema] == [one.name for one in peer.schema]
        return [
            measure(
                "sbe_spark",
                "rows/s",
                lambda: rate(ours),
                lambda: rate(peer),
                peer_name="prebuilt Arrow batches",
                target=0.8,
                ours_config={"access": "segments", **options},
                peer_config={"batch_rows": batch.num_rows},
                details={"rows": ROWS, "columns": batch.schema.names},
            )
        ]
    finally:
        spark.stop()
        shutil.rmtree(work, ignore_errors=True)
