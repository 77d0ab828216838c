"""Recordings as a relation of DuckDB.

DuckDB reads a scan itself: it passes the columns and those filters that Arrow compares as it does. Its EXPLAIN shows both at
PYTHON_ARROW_SCAN. What it does not pass, it applies itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aeron_spark.extras import missing
from aeron_spark.tables.scans import Scan, Source, scan

if TYPE_CHECKING:
    import duckdb

__all__ = ["from_aeron"]


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
    zone: filters on nanoseconds it would not pass.
    """
    try:
        import duckdb  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise missing(error, "duckdb") from None
    found = source if isinstance(source, Scan) else scan(source, recordings, **{"time_unit": "us", **options})
    return (connection or duckdb).from_arrow(found)
