"""Recordings as a relation of DuckDB.

DuckDB reads a scan itself: it passes the columns and those filters that Arrow compares as it does. Its EXPLAIN shows both at
ARROW_SCAN. What it does not pass, it applies itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from aeron_spark.batch import DEFAULT_ROWS, Batches
from aeron_spark.extras import missing
from aeron_spark.given import reader_of
from aeron_spark.tables.scans import Scan, Source, scan

if TYPE_CHECKING:
    import duckdb

__all__ = ["from_aeron"]

#: DuckDB cuts batches itself, and each has a fixed cost.
BATCH_ROWS = 4 * DEFAULT_ROWS


def from_aeron(
    source: Source | Scan,
    recordings: int | list[int] | None = None,
    *,
    connection: duckdb.DuckDBPyConnection | None = None,
    **options: Any,
) -> duckdb.DuckDBPyRelation:
    """Messages as a relation of `connection` (default: DuckDB's own); the arguments are those of `aeron_spark.tables.scan`.

        quotes = from_aeron("recordings", 3, sbe="prices.xml", message="Quote")
        duckdb.sql("SELECT symbol, avg(price) FROM quotes WHERE timestamp >= now() - INTERVAL 1 HOUR GROUP BY symbol")

    Nothing is read before a query runs, and each query reads anew. `timestamp` has microseconds, as DuckDB has with a time
    zone: filters on nanoseconds it would not pass. Batches have at most 262,144 rows.
    """
    try:
        import duckdb  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise missing(error, "duckdb") from None
    usual = {"time_unit": "us", "batch_rows": BATCH_ROWS}
    found = source if isinstance(source, Scan) else scan(source, recordings, **{**usual, **options})
    return (connection or duckdb).from_arrow(_Direct(found))


class _Direct(Scan):
    """A scan whose batches DuckDB takes itself: pyarrow's scanner would pass each one between threads of its own.

    Text is in dictionaries. To DuckDB, too, that is text.
    """

    def __init__(self, of: Scan) -> None:
        super().__init__(replace(of._plan, dictionaries=True), of._columns, of._expression)

    def scanner(  # type: ignore[override]
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 - as a dataset's
        **_how: Any,
    ) -> _Pass:
        return _Pass(self._pass(columns, filter))


class _Pass:
    """What DuckDB asks a scanner for."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches

    def to_reader(self) -> pa.RecordBatchReader:
        return reader_of(self._batches.schema, self._batches, self._batches.close)
