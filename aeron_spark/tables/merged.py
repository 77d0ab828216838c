"""Recordings merged by time: one stream of rows whose times ascend, as a stable sort of all recordings would give it.

A recording is never reordered: a message that is earlier than one before it, or that has no time, counts as of the time
before it. At equal times the recording with the lower id is first. Memory is bounded: each recording is read in small pieces,
and its next piece is needed only when the piece before has been given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Self

import numpy as np
import pyarrow as pa

from aeron_spark.archive.times import time_ns
from aeron_spark.closing import Closing
from aeron_spark.errors import ClosedError, UsageError
from aeron_spark.given import reader_of
from aeron_spark.tables.clock import MERGE_TIME

__all__ = ["MEMORY_BYTES", "Merged", "Part", "Run", "merge"]

#: Of all recordings' pieces together, about; each is read ahead by one.
MEMORY_BYTES = 64 << 20
_EARLIEST = np.iinfo(np.int64).min

#: The batches of one piece of a recording, with their errors; and how to read it.
Read = Callable[[], tuple[list[pa.RecordBatch], Exception | None]]


@dataclass(frozen=True, slots=True)
class Part:
    """Rows in time order. `times`: by what they were sorted, in ns; `runs`: the recording of each, by its number."""

    times: np.ndarray
    runs: np.ndarray
    batch: pa.RecordBatch

    def slice(self, start: int, end: int) -> Part:
        """Rows [start, end), without a copy."""
        return Part(self.times[start:end], self.runs[start:end], self.batch.slice(start, end - start))


class Run:
    """One recording's rows, piece by piece; `number` decides at equal times. The next piece is read by `pool` meanwhile."""

    def __init__(self, number: int, recording_id: int, reads: Iterator[Read], pool: ThreadPoolExecutor | None) -> None:
        self.number = number
        self.times = np.empty(0, np.int64)
        self.batch: pa.RecordBatch | None = None
        self._recording_id = recording_id
        self._reads = reads
        self._pool = pool
        self._next: Future[tuple[list[pa.RecordBatch], Exception | None]] | None = None
        self._batches: list[pa.RecordBatch] = []
        self._failure: Exception | None = None
        self._latest = _EARLIEST
        self.ahead()

    def ahead(self) -> None:
        """Begin to read the next piece."""
        read = next(self._reads, None) if self._pool is not None else None
        self._next = None if read is None or self._pool is None else self._pool.submit(read)

    def has_rows(self) -> bool:
        """Rows to give; reads on where all were given. Raises what ended the recording's rows."""
        while not len(self.times):
            if self._batches:
                self._take(self._batches.pop(0))
            elif self._failure is not None:
                raise self._failure
            elif not self._read():
                return False
        return True

    def _read(self) -> bool:
        if self._pool is not None:
            if self._next is None:
                return False
            self._batches, self._failure = self._next.result()
            self.ahead()
            return True
        read = next(self._reads, None)
        if read is None:
            return False
        self._batches, self._failure = read()
        return True

    def _take(self, batch: pa.RecordBatch) -> None:
        column = batch.column(MERGE_TIME.name)
        known = np.asarray(column.is_valid())
        numbers = column.cast(pa.int64()).fill_null(0).to_numpy()
        if self._latest == _EARLIEST:
            if len(known) and not known.any():
                raise UsageError(
                    f"recording {self._recording_id}: the first {len(known)} messages have no time, so nothing tells their "
                    f"place among others: choose another time, or leave them out by a filter"
                )
            # The first messages count as of the first time.
            numbers = np.where(known, numbers, numbers[int(known.argmax())] if len(known) else 0)
            known = np.ones(len(known), bool)
        times = np.maximum.accumulate(np.where(known, numbers, self._latest))
        self.times = np.maximum(times, self._latest)
        self.batch = batch
        if len(self.times):
            self._latest = int(self.times[-1])

    def cut(self, count: int) -> tuple[np.ndarray, pa.RecordBatch]:
        """The first rows, which are given with that."""
        assert self.batch is not None  # noqa: S101 - has_rows was True
        times, rows = self.times[:count], self.batch.slice(0, count)
        self.times, self.batch = self.times[count:], self.batch.slice(count)
        return times, rows


def merge(runs: Sequence[Run], *, max_rows: int) -> Iterator[Part]:
    """All rows of the runs, which are in the order of their numbers. An error of a run follows all rows before it."""
    left = [run for run in runs if run.has_rows()]
    while left:
        # No run has a row to come before the last row at hand of the run that ends first: all up to it are known.
        first = min(left, key=lambda run: (run.times[-1], run.number))
        horizon = first.times[-1]
        parts = []
        for run in left:
            side: Literal["right", "left"] = "right" if run.number <= first.number else "left"
            if count := int(np.searchsorted(run.times, horizon, side=side)):
                parts.append((run.number, *run.cut(count)))
        for whole in _sorted(parts):
            for start in range(0, len(whole.times), max_rows):
                yield whole.slice(start, start + max_rows)
        left = [run for run in left if run.has_rows()]


def _sorted(parts: Sequence[tuple[int, np.ndarray, pa.RecordBatch]]) -> Iterator[Part]:
    """All rows of the parts in order; halves of them where they are too large to be copied at once."""
    if len(parts) == 1:
        number, times, batch = parts[0]
        yield Part(times, np.full(len(times), number, np.int32), batch)
        return
    times = np.concatenate([of_run for _, of_run, _ in parts])
    part_of = np.repeat(np.arange(len(parts)), [len(of_run) for _, of_run, _ in parts])
    order = times.argsort(kind="stable")
    combined = pa.Table.from_batches([rows for _, _, rows in parts]).combine_chunks().to_batches()
    if len(combined) > 1:  # a column would have more than 2 GiB
        del combined
        early = np.bincount(part_of[order[: len(order) // 2]], minlength=len(parts)).tolist()
        halves = zip(parts, early, strict=True)
        cut = [((run, at[:n], rows.slice(0, n)), (run, at[n:], rows.slice(n))) for (run, at, rows), n in halves]
        for half in zip(*cut, strict=True):
            yield from _sorted([part for part in half if len(part[1])])
        return
    runs = np.array([number for number, _, _ in parts], np.int32)[part_of]
    yield Part(times[order], runs[order], combined[0].take(pa.array(order)))


class Merged(Closing):
    """Rows of many recordings in time order: made by `Scan.by_time`.

        with scan("recordings", timestamp="reserved(ns)").by_time() as merged:
            for batch in merged.until(open_ns): ...      # what was known then, and nothing later
            for batch in merged: ...                     # the rest

    Each row is given once. Thread rule: one thread at a time.
    """

    def __init__(
        self, schema: pa.Schema, parts: Iterator[Part], close: Callable[[], object], *, since_ns: int | None = None
    ) -> None:
        #: Of the batches.
        self.schema = schema
        self._parts = parts
        self._close = close
        self._rest: Part | None = None
        self._since_ns = _EARLIEST if since_ns is None else since_ns
        self._is_open = True

    def until(self, when: datetime | int) -> Iterator[pa.RecordBatch]:
        """The rows that are left whose time is at or before `when` (ns since 1970-01-01 UTC, or a datetime)."""
        limit = time_ns(when)
        while (part := self._part()) is not None:
            count = int(part.times.searchsorted(limit, side="right"))
            self._rest = part.slice(count, len(part.times)) if count < len(part.times) else None
            if count:
                yield self._columns(part.batch.slice(0, count))
            if self._rest is not None:
                return

    def parts(self) -> Iterator[Part]:
        """The rows that are left, with the times by which they were sorted."""
        while (part := self._part()) is not None:
            self._rest = None
            yield part

    def _part(self) -> Part | None:
        if not self._is_open:
            raise ClosedError("this merge is closed: call by_time() again")
        if self._rest is not None:
            return self._rest
        while (part := next(self._parts, None)) is not None:
            if early := int(part.times.searchsorted(self._since_ns)):
                part = part.slice(early, len(part.times))
            if len(part.times):
                break
        return part

    def _columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch if batch.schema.equals(self.schema) else batch.select(self.schema.names)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        part = self._part()
        if part is None:
            raise StopIteration
        self._rest = None
        return self._columns(part.batch)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The batches that are left."""
        return reader_of(self.schema, self, self.close).__arrow_c_stream__(requested_schema)

    def close(self) -> None:
        """Free what is read from; again is harmless."""
        if self._is_open:
            self._is_open = False
            self._rest = None
            self._close()
