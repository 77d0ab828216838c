"""Batches of more than a column of Arrow holds: joined ones, and those of a merge. Method: the limit is a small one."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from aeron_spark import batch
from aeron_spark.tables import merged, scan
from aeron_spark.testing import RecordedFolder


class Chunked:
    """`pyarrow.Table` as if a column had no more than `LIMIT` bytes where there are 2 GiB: more are several chunks."""

    LIMIT = 20_000

    @classmethod
    def from_batches(cls, batches: Sequence[pa.RecordBatch]) -> Any:
        chunks: list[list[pa.RecordBatch]] = [[]]
        for one in batches:
            if chunks[-1] and sum(each.nbytes for each in [*chunks[-1], one]) > cls.LIMIT:
                chunks.append([])
            chunks[-1].append(one)
        combined = [one for each in chunks for one in pa.Table.from_batches(each).combine_chunks().to_batches()]
        return SimpleNamespace(combine_chunks=lambda: pa.Table.from_batches(combined))

    def __getattr__(self, name: str) -> Any:
        return Chunked if name == "Table" else getattr(pa, name)


def test_joined_batches_of_more_than_a_column_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    small = [pa.record_batch({"value": [bytes(900)] * 10}) for _ in range(10)]
    monkeypatch.setattr(batch, "pa", Chunked())
    found = list(batch.joined(small, max_rows=10_000, max_bytes=1 << 40))
    assert pa.Table.from_batches(found).equals(pa.Table.from_batches(small))


def test_a_merge_of_more_than_a_column_can_have(aeron_folder: RecordedFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many recordings with large messages."""
    ids = [
        aeron_folder.write([b"%d:%d" % (number, n) + bytes(900) for n in range(40)], reserved_values=[
            1 + n * 3 % 120 + n // 3 for n in range(40)
        ]).recording_id
        for number in range(3)
    ]  # fmt: skip
    table = scan(aeron_folder.path, ids, timestamp="reserved(ns)", threads=1)
    with table.by_time() as found:
        whole = pa.Table.from_batches(list(found))
    assert whole.num_rows == 120
    monkeypatch.setattr(merged, "pa", Chunked())
    with table.by_time() as found:
        assert pa.Table.from_batches(list(found)).equals(whole)
