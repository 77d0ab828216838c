"""Batches that threads of other libraries take, and how those threads leave Python before the program ends.

pyarrow, DuckDB and others read ahead: a query with a LIMIT has its rows while a thread of theirs is inside of the next batch.
Where the interpreter ends meanwhile, Python aborts the program or waits for ever. So batches that are given away end with the
program, and the end waits for whoever is taking one.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator

import pyarrow as pa

__all__ = ["Given", "reader_of"]

#: A thread that has taken a batch comes for the next one sooner, or not before somebody wants more.
_IDLE_S = 0.1
_MOST_S = 5.0

_given: weakref.WeakSet[Given] = weakref.WeakSet()
_end = threading.Event()


class Given(Iterator[pa.RecordBatch]):
    """Batches for another library. `close` makes them end, also while a thread takes one."""

    def __init__(self, batches: Iterator[pa.RecordBatch], close: Callable[[], object]) -> None:
        self._batches = batches
        self.close = close
        self._taking = 0
        self._left_at = float("-inf")
        _given.add(self)

    def __next__(self) -> pa.RecordBatch:
        self._taking += 1
        try:
            if _end.is_set():
                raise StopIteration
            return next(self._batches)
        finally:
            self._taking -= 1
            if threading.get_ident() != threading.main_thread().ident:
                self._left_at = time.monotonic()

    def is_taken(self) -> bool:
        """A thread takes a batch, or may be about to come back."""
        return self._taking > 0 or time.monotonic() - self._left_at < _IDLE_S


def reader_of(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], close: Callable[[], object]
) -> pa.RecordBatchReader:
    """A reader for another library."""
    return pa.RecordBatchReader.from_batches(schema, Given(batches, close))


os.register_at_fork(after_in_child=_given.clear)  # the threads stay in the parent


@atexit.register  # after that of handle, which is imported above, and so before it
def _end_all() -> None:
    _end.set()
    taken = [one for one in _given if one.is_taken()]
    for one in taken:
        one.close()
    deadline = time.monotonic() + _MOST_S
    while time.monotonic() < deadline and any(one.is_taken() for one in taken):
        time.sleep(_IDLE_S / 10)
