"""Record batches with other columns. Their methods for that came with pyarrow 16, and tests run with 15, too."""

from __future__ import annotations

import pyarrow as pa


def changed(batch: pa.RecordBatch, **columns: pa.Array | None) -> pa.RecordBatch:
    """With these columns in place of those of their names, or behind all others; None: without that one."""
    found = {**dict(zip(batch.schema.names, batch.columns, strict=True)), **columns}
    kept = {name: column for name, column in found.items() if column is not None}
    return pa.RecordBatch.from_arrays(list(kept.values()), names=list(kept)) if kept else batch.select([])
