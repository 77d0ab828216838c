"""Makes the golden offsets: an archive, and what two streaming queries over it had journaled when they stopped.

    python -m tests.spark.golden VERSION

writes tests/golden/spark/checkpoints-VERSION.tar.gz. It is run once for each change of an offset or of the ledger's entries
and its output never made again: the test is that a later release goes on from it.
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.datasource import ReadMaxRows

from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.reading.rows import read_schema
from aeron_spark.spark.reading.stream import AeronStreamReader
from tests.kit import dirs
from tests.spark import recorded
from tests.spark.readers import read
from tests.spark.test_ledger import Sink, close_pool

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "spark"
#: Options of each query and messages of a batch, by the name of its journal.
QUERIES = {
    "positions": ({"channelPattern": "aeron:ipc", "streamId": "1001"}, 9),
    "committed": ({"isolation": "read_committed"}, 1),
}
Row = tuple[int, int, str]


def reader_of(name: str, archive: Path) -> AeronStreamReader:
    """The reader that Spark would have for a query, from the archive's begin on."""
    given = {"path": str(archive), "startingPositions": "earliest", **QUERIES[name][0]}
    options = ReadOptions.parse(given, streaming=True)
    return AeronStreamReader(options, read_schema(options))


def rows_between(reader: AeronStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[Row]:
    """What a batch holds."""
    rows = read(reader, reader.partitions(start, end))
    return [(row["recording_id"], row["position"], row["value"].hex()) for row in rows]


def batches(name: str, archive: Path) -> list[tuple[str, list[Row]]]:
    """End of each batch, as Spark journals it, and its rows; the first of them has the initial offset and none."""
    reader = reader_of(name, archive)
    start = reader.initialOffset()
    found: list[tuple[str, list[Row]]] = [(json.dumps(start), [])]
    while (end := reader.latestOffset(start, ReadMaxRows(QUERIES[name][1]))) != start:
        found.append((json.dumps(end), rows_between(reader, start, end)))
        start = end
    reader.stop()
    return found


def record(folder: Path) -> None:
    """Two recordings of a stream, and four batches of an exactly-once write with lost attempts between."""
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, folder) as archive:
        for _ in range(2):
            archive.recorded(1001, 20, [8, 100, 1377])
        sink = Sink(archive)
        sink.writing["streamId"] = "2001"
        for batch in range(4):
            sink.task(b"lost", batch=batch)
            sink.commit(sink.task(b"a%d" % batch, b"b%d" % batch, batch=batch))
        close_pool()


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        work = Path(made)
        record(work / "archive")
        for name in QUERIES:
            (work / f"{name}.json").write_text(json.dumps(batches(name, work / "archive"), indent=0), "utf-8")
        with tarfile.open(GOLDEN / f"checkpoints-{sys.argv[1]}.tar.gz", "w:gz") as packed:
            packed.add(work, arcname=".")


if __name__ == "__main__":
    main()
