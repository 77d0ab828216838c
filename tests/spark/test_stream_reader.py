"""What a streaming reader answers where Spark asks it for the newest offset alone, as before 4.2; here on every pyspark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import InputPartition

from aeron_spark.spark.features import WholeStreamReader
from aeron_spark.spark.planning.ranges import Budget

Json = dict[str, object]


def offset(position: int) -> Json:
    return {"version": 1, "positions": {"0": position}}


class Reader(WholeStreamReader):
    """Tells where it was asked to begin."""

    def __init__(self) -> None:
        self.begins: list[Json] = []

    def initialOffset(self) -> Json:
        return offset(0)

    def next_offset(self, start: Json, limit: Budget) -> Json:
        assert limit == Budget(max_bytes=None, max_messages=None)
        self.begins.append(start)
        return start

    def plan(self, start: Json, end: Json) -> Sequence[InputPartition]:
        return [InputPartition((start, end))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return iter(())

    limit = newest_offset = pin = None  # type: ignore[assignment]


def test_a_batch_begins_where_the_last_one_has_ended() -> None:
    reader = Reader()
    reader.latestOffset()
    reader.partitions(offset(0), offset(64))
    reader.latestOffset()
    assert reader.begins == [offset(0), offset(64)]


def test_what_the_jvm_asks_for_ends_no_batch() -> None:
    reader = Reader()
    for request in ({"realTime": {"begin": 1}}, {"lagTo": offset(128)}):
        reader.partitions(offset(64), request)
        reader.latestOffset()
    assert reader.begins == [offset(64), offset(64)]
