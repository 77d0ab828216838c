"""Recordings as a pandas DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aeron_spark.errors import UsageError
from aeron_spark.extras import missing
from aeron_spark.tables.scans import Scan, Source, scan

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_aeron"]

#: pandas' types for what numpy has none for, so that a whole number stays one where a row has none.
ARROW_TYPES = "pyarrow"


def read_aeron(
    source: Source | Scan,
    recordings: int | list[int] | None = None,
    *,
    dtype_backend: str | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Messages as a DataFrame; the arguments are those of `aeron_spark.tables.scan`.

        quotes = read_aeron("recordings", 3, sbe="prices.xml", message="Quote", columns=["timestamp", "price"])

    `dtype_backend`: "pyarrow" keeps Arrow's types; by default they are numpy's, and message bytes are objects. All rows
    are in memory: choose `columns` and `filter`, or take the batches of a `scan` one by one.
    """
    try:
        import pandas as pd  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise missing(error, "pandas") from None
    if dtype_backend not in {None, ARROW_TYPES}:
        raise UsageError(f"dtype_backend={dtype_backend!r} is none of pyarrow, None")
    table = (source if isinstance(source, Scan) else scan(source, recordings, **options)).to_table()
    mapper = pd.ArrowDtype if dtype_backend == ARROW_TYPES else None
    return table.to_pandas(types_mapper=mapper, split_blocks=True, self_destruct=True)
