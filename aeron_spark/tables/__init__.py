"""Recordings and live streams as tables: for pyarrow, pandas, Polars and DuckDB.

    from aeron_spark.tables import scan

    messages = scan("recordings")
    table = messages.to_table(columns=["position", "value"], filter="stream_id = 1001")

`aeron_spark.tables.pandas`, `.polars` and `.duckdb` give a DataFrame, a LazyFrame and a relation.
"""

from __future__ import annotations

from aeron_spark.tables.scans import Scan, scan

__all__ = ["Scan", "scan"]
